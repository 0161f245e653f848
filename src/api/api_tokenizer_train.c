#include <unistd.h>

#include "api/api_context.h"
#include "base/file.h"
#include "base/inside.h"
#include "data/stream/text_source.h"
#include "sifr/tokenizer.h"
#include "text/tokenizer/tokenizer_train.h"

/* An existing tokenizer may belong to models that were trained with it. */
static sifr_status check_output(const char *output, sifr_error *error) {
    static const char *const names[] = {"tokenizer.json", "tokenizer_config.json"};
    char path[BASE_PATH_LENGTH];
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        BASE_TRY(base_path_join(path, output, names[i], error));
        if (access(path, F_OK) == 0)
            return base_fail(error, SIFR_USAGE,
                             "%s: already exists; name another --output, or give --overwrite",
                             path);
    }
    return SIFR_OK;
}

static sifr_status feed(text_tokenizer_trainer *trainer, const data_text_source *source,
                        sifr_error *error) {
    for (size_t i = 0; i < source->count; i++) {
        base_map map = {0};
        BASE_TRY(data_text_source_map(source, i, &map, error));
        sifr_status status =
            text_tokenizer_trainer_feed(trainer, (const char *)map.data, map.size, error);
        base_unmap(&map);
        BASE_TRY(status);
    }
    return SIFR_OK;
}

static void say_oddities(const sifr_tokenizer_trained *made, int64_t asked, const sifr_log *log) {
    if (made->invalid_sequences)
        base_log(log, SIFR_LOG_WARNING, "%llu invalid UTF-8 sequence%s read as U+FFFD",
                 (unsigned long long)made->invalid_sequences,
                 made->invalid_sequences == 1 ? "" : "s");
    if (made->empty_files)
        base_log(log, SIFR_LOG_WARNING, "%lld empty file%s left out", (long long)made->empty_files,
                 made->empty_files == 1 ? "" : "s");
    if (made->vocab_size < asked)
        base_log(log, SIFR_LOG_WARNING, "the text has enough for %lld tokens only",
                 (long long)made->vocab_size);
}

static sifr_status train(const sifr_tokenizer_train_options *o, text_tokenizer_trainer *trainer,
                         sifr_tokenizer_trained *made, sifr_error *error) {
    data_text_source source = {0};
    sifr_status status = data_text_source_open(o->paths, o->path_count, &source, error);
    if (status == SIFR_OK) status = feed(trainer, &source, error);
    if (status == SIFR_OK) status = text_tokenizer_trainer_finish(trainer, error);
    if (status == SIFR_OK) status = text_tokenizer_trainer_write(trainer, o->output, error);
    if (status == SIFR_OK)
        *made = (sifr_tokenizer_trained){
            .vocab_size = text_tokenizer_trainer_size(trainer),
            .bytes = source.bytes,
            .invalid_sequences = text_tokenizer_trainer_invalid(trainer),
            .documents = (int64_t)source.count,
            .empty_files = (int64_t)source.empty_files,
        };
    data_text_source_close(&source);
    return status;
}

sifr_status sifr_tokenizer_train(sifr_context *context, const sifr_tokenizer_train_options *options,
                                 sifr_tokenizer_trained *out, sifr_error *error) {
    BASE_ENTER(error, context);
    sifr_tokenizer_train_options o;
    sifr_tokenizer_trained made;
    text_tokenizer_trainer *trainer;
    BASE_TRY(api_take_options("sifr_tokenizer_train_options", options, sizeof o, &o, error));
    if (out) BASE_TRY(api_check_result("sifr_tokenizer_trained", out, error));
    BASE_TRY(api_check_list("sifr_tokenizer_train_options.paths", o.paths, o.path_count, error));
    if (!o.output) return base_fail(error, SIFR_USAGE, "--output: give the folder to write to");
    if (!o.overwrite) BASE_TRY(check_output(o.output, error));
    text_tokenizer_options known = {.vocab_size = o.vocab_size,
                                    .min_frequency = o.min_frequency,
                                    .model_max_length = o.model_max_length,
                                    .type = o.type,
                                    .split = o.split,
                                    .lowercase = o.lowercase};
    BASE_TRY(text_tokenizer_trainer_new(&known, &trainer, error));
    sifr_status status = train(&o, trainer, &made, error);
    text_tokenizer_trainer_free(trainer);
    BASE_TRY(status);
    say_oddities(&made, o.vocab_size, &context->log);
    if (out) api_give_result(&made, sizeof made, out);
    return SIFR_OK;
}
