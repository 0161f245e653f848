#include <libgen.h>
#include <stdio.h>
#include <string.h>

#include "api/api_context.h"
#include "base/file.h"
#include "base/inside.h"
#include "base/text.h"
#include "data/stream/token_store.h"
#include "data/stream/tokenise.h"
#include "sifr/tokenizer.h"

static const char *plural(int64_t count) {
    return count == 1 ? "" : "s";
}

/* What is odd about the text. */
static void say_oddities(const data_text_source *source, const data_tokenised *counts,
                         const sifr_log *log) {
    char number[32];
    const char *path, *kind = data_text_source_records(source, &path);
    if (kind)
        base_log(
            log, SIFR_LOG_WARNING,
            "%s: %s is tokenised as plain text, with its quotes and field names, not as records",
            path, kind);
    if (counts->invalid)
        base_log(log, SIFR_LOG_WARNING,
                 "%s sequence%s in %lld document%s no valid UTF-8, and read as U+FFFD",
                 base_format_count((int64_t)counts->invalid, number),
                 plural((int64_t)counts->invalid), (long long)counts->invalid_documents,
                 counts->invalid_documents == 1 ? " is" : "s are");
    if (source->empty_files)
        base_log(log, SIFR_LOG_INFO, "%zu empty file%s left out", source->empty_files,
                 plural((int64_t)source->empty_files));
    if (source->links)
        base_log(log, SIFR_LOG_INFO, "%zu link%s to directories not followed", source->links,
                 plural((int64_t)source->links));
    if (counts->unfinished)
        base_log(log, SIFR_LOG_INFO, "%lld document%s without a newline at the end; none added",
                 (long long)counts->unfinished, plural(counts->unfinished));
}

static sifr_status make_parent(const char *prefix, sifr_error *error) {
    char parent[BASE_PATH_LENGTH];
    if (strlen(prefix) >= sizeof parent - 8)
        return base_fail(error, SIFR_USAGE, "--output: the path is too long");
    strcpy(parent, prefix);
    return base_make_directories(dirname(parent), error);
}

/* A mistyped prefix must not replace the text, or another program's files. */
static sifr_status check_output(const char *prefix, sifr_error *error) {
    char data[BASE_PATH_LENGTH + 4], index[BASE_PATH_LENGTH + 4];
    data_token_store store = {0};
    sifr_error reason;
    snprintf(data, sizeof data, "%s.bin", prefix);
    snprintf(index, sizeof index, "%s.idx", prefix);
    if (!base_is_file(data) && !base_is_file(index)) return SIFR_OK;
    if (base_is_file(data) && base_is_file(index) &&
        data_token_store_open(prefix, &store, &reason) == SIFR_OK) {
        data_token_store_close(&store);
        return SIFR_OK;
    }
    return base_fail(error, SIFR_USAGE,
                     "--output %s: %s exists and is of no whole token store; name another", prefix,
                     base_is_file(data) ? data : index);
}

static void tell_progress(void *user, uint64_t bytes, uint64_t total, double seconds) {
    const sifr_tokenize_options *o = user;
    BASE_OUT(o->progress(o->user, bytes, total, seconds));
}

static sifr_status write_store(sifr_tokenize_options *o, const data_text_source *source,
                               const text_tokenizer *tokenizer, int32_t eos, const sifr_log *log,
                               data_tokenised *counts, sifr_error *error) {
    const base_progress progress = {o->progress ? tell_progress : NULL, o};
    data_tokenise_options options = {.special = !o->no_special_tokens,
                                     .separator = eos,
                                     .threads = o->threads,
                                     .progress = &progress};
    BASE_TRY(make_parent(o->output, error));
    BASE_TRY(data_tokenise(source, tokenizer, &options, o->output, counts, error));
    data_tokenise_say(tokenizer, options.special, eos, log);
    data_tokenise_say_doubled(tokenizer, counts->doubled, "document", log);
    say_oddities(source, counts, log);
    return SIFR_OK;
}

static sifr_status tokenize(sifr_tokenize_options *o, const sifr_log *log, data_text_source *source,
                            data_tokenised *counts, sifr_error *error) {
    text_tokenizer *tokenizer;
    BASE_TRY(text_tokenizer_load(o->tokenizer, &tokenizer, error));
    int32_t eos = text_tokenizer_eos(tokenizer);
    sifr_status status = SIFR_OK;
    if (eos < 0)
        status = base_fail(error, SIFR_USAGE,
                           "%s: the tokenizer has no end-of-text token, so documents could not be "
                           "told apart; set \"eos_token\" in its tokenizer_config.json",
                           o->tokenizer);
    if (status == SIFR_OK) status = data_text_source_open(o->paths, o->path_count, source, error);
    if (status == SIFR_OK) status = write_store(o, source, tokenizer, eos, log, counts, error);
    text_tokenizer_free(tokenizer);
    return status;
}

sifr_status sifr_tokenize(sifr_context *context, const sifr_tokenize_options *options,
                          sifr_tokenized *out, sifr_error *error) {
    BASE_ENTER(error, context);
    sifr_tokenize_options known;
    data_text_source source = {0};
    data_tokenised counts;
    BASE_TRY(api_take_options("sifr_tokenize_options", options, sizeof known, &known, error));
    if (out) BASE_TRY(api_check_result("sifr_tokenized", out, error));
    BASE_TRY(api_check_list("sifr_tokenize_options.paths", known.paths, known.path_count, error));
    if (known.threads < 0)
        return base_fail(error, SIFR_USAGE, "--threads %d: must be 0 or more", known.threads);
    if (!known.tokenizer || !known.output)
        return base_fail(error, SIFR_USAGE, "--tokenizer and --output: both are needed");
    BASE_TRY(check_output(known.output, error));
    sifr_status status = tokenize(&known, &context->log, &source, &counts, error);
    if (status == SIFR_OK && out)
        api_give_result(&(sifr_tokenized){.documents = counts.documents,
                                          .tokens = counts.tokens,
                                          .bytes = counts.bytes,
                                          .invalid_sequences = counts.invalid,
                                          .invalid_documents = counts.invalid_documents,
                                          .empty_files = (int64_t)source.empty_files,
                                          .documents_without_newline = counts.unfinished,
                                          .seconds = counts.seconds},
                        sizeof *out, out);
    data_text_source_close(&source);
    return status;
}
