#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/checked.h"
#include "base/file.h"
#include "base/heap.h"
#include "base/text.h"
#include "cli/commands.h"
#include "cli/options.h"
#include "data/stream/text_source.h"
#include "text/tokenizer/tokenizer.h"
#include "text/tokenizer/tokenizer_train.h"

static sifr_status read_input(text_tokenizer_text *text, sifr_error *error) {
    for (;;) {
        size_t needed;
        if (!base_add_size(text->count, 65536, &needed)) return base_fail_alloc(error, SIZE_MAX);
        BASE_TRY(base_grow(&text->bytes, &text->room, needed, 1, error));
        ssize_t got = read(STDIN_FILENO, text->bytes + text->count, text->room - text->count);
        if (got == 0) return SIFR_OK;
        if (got < 0 && errno == EINTR) continue;
        if (got < 0) return base_fail_errno(error, errno, "standard input: cannot read");
        text->count += (size_t)got;
    }
}

static void warn_invalid(const char *name, uint64_t invalid) {
    if (!invalid) return;
    sifr_log log = cli_log(name);
    base_log(&log, SIFR_LOG_WARNING, "%llu invalid UTF-8 sequence%s read as U+FFFD",
             (unsigned long long)invalid, invalid == 1 ? "" : "s");
}

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

static sifr_status train(const cli_list *data, const text_tokenizer_options *options,
                         const char *output, bool overwrite, bool json, sifr_error *error) {
    data_text_source source = {0};
    text_tokenizer_trainer *trainer = NULL;
    char count[32], bytes[32];
    sifr_status status;
    if (!overwrite) BASE_TRY(check_output(output, error));
    BASE_TRY_GOTO(status, text_tokenizer_trainer_new(options, &trainer, error), done);
    BASE_TRY_GOTO(status, data_text_source_open(data->items, data->count, &source, error), done);
    for (size_t i = 0; i < source.count; i++) {
        base_map map = {0};
        BASE_TRY_GOTO(status, data_text_source_map(&source, i, &map, error), done);
        status = text_tokenizer_trainer_feed(trainer, (const char *)map.data, map.size, error);
        base_unmap(&map);
        if (status != SIFR_OK) goto done;
    }
    BASE_TRY_GOTO(status, text_tokenizer_trainer_finish(trainer, error), done);
    BASE_TRY_GOTO(status, text_tokenizer_trainer_write(trainer, output, error), done);
    int64_t size = text_tokenizer_trainer_size(trainer);
    uint64_t invalid = text_tokenizer_trainer_invalid(trainer);
    sifr_log log = cli_log("tokenizer train");
    warn_invalid("tokenizer train", invalid);
    if (source.empty_files)
        base_log(&log, SIFR_LOG_WARNING, "%zu empty file%s left out", source.empty_files,
                 source.empty_files == 1 ? "" : "s");
    if (size < options->vocab_size)
        base_log(&log, SIFR_LOG_WARNING, "the text has enough for %lld tokens only",
                 (long long)size);
    if (json)
        printf("{\"vocab_size\": %lld, \"documents\": %zu, \"bytes\": %llu, \"empty_files\": %zu, "
               "\"invalid_utf8\": %llu}\n",
               (long long)size, source.count, (unsigned long long)source.bytes, source.empty_files,
               (unsigned long long)invalid);
    else
        printf("%s tokens from %s of text in %zu document%s: %s/tokenizer.json\n",
               base_format_count(size, count), base_format_bytes(source.bytes, bytes), source.count,
               source.count == 1 ? "" : "s", output);
done:
    data_text_source_close(&source);
    text_tokenizer_trainer_free(trainer);
    return status;
}

static int run_train(int argc, char **argv) {
    static const cli_usage usage = {
        .name = "tokenizer train",
        .summary = "Trains a tokenizer on text (byte-level BPE, Unigram or WordPiece) and writes\n"
                   "tokenizer.json and tokenizer_config.json, which the tokenizers library and\n"
                   "transformers load.",
        .example = "sifr tokenizer train --vocab-size 4096 --data books/ notes.txt --output my-bpe",
    };
    cli_list data = {0};
    text_tokenizer_options options = {0};
    const char *output = NULL;
    bool json = false, overwrite = false;
    const cli_option table[] = {
        {"vocab-size", CLI_COUNT, "N", "tokens in all, with bytes or characters and special tokens",
         &options.vocab_size, NULL, true},
        {"type", CLI_TEXT, "TYPE", "bpe (default), unigram or wordpiece", &options.type, NULL,
         false},
        {"data", CLI_LIST, "PATH", "text files, directories, or patterns in quotes", &data, NULL,
         true},
        {"output", CLI_TEXT, "DIR", "folder to write to", &output, NULL, true},
        {"split", CLI_TEXT, "KIND", "how bpe cuts text into words: gpt2 (default), llama3 or qwen2",
         &options.split, NULL, false},
        {"lowercase", CLI_FLAG, NULL, "wordpiece: make letters small, without accents",
         &options.lowercase, NULL, false},
        {"min-frequency", CLI_COUNT, "N", "do not merge pairs that occur less often (default: 0)",
         &options.min_frequency, NULL, false},
        {"model-max-length", CLI_COUNT, "N", "model_max_length to write to tokenizer_config.json",
         &options.model_max_length, NULL, false},
        {"overwrite", CLI_FLAG, NULL, "replace existing files", &overwrite, NULL, false},
        {"json", CLI_FLAG, NULL, "print one JSON object", &json, NULL, false},
    };
    int code;
    sifr_error error = {0};
    if (!cli_parse(&usage, table, sizeof table / sizeof *table, argc, argv, NULL, &code))
        return code;
    sifr_status status = train(&data, &options, output, overwrite, json, &error);
    cli_list_free(&data);
    return status == SIFR_OK ? SIFR_OK : cli_fail(usage.name, &error);
}

static sifr_status encode(const char *path, bool special, bool json, sifr_error *error) {
    text_tokenizer *tokenizer = NULL;
    text_tokenizer_scratch *scratch = NULL;
    text_tokenizer_text text = {0};
    text_tokenizer_ids ids = {0};
    sifr_status status;
    BASE_TRY_GOTO(status, text_tokenizer_load(path, &tokenizer, error), done);
    BASE_TRY_GOTO(status, text_tokenizer_scratch_new(tokenizer, &scratch, error), done);
    BASE_TRY_GOTO(status, read_input(&text, error), done);
    BASE_TRY_GOTO(
        status,
        text_tokenizer_encode(tokenizer, scratch, text.bytes, text.count, special, &ids, error),
        done);
    warn_invalid("tokenizer encode", text_tokenizer_invalid(scratch));
    if (json) printf("{\"ids\": [");
    for (size_t i = 0; i < ids.count; i++)
        printf("%s%d", i == 0 ? "" : json ? ", " : " ", ids.ids[i]);
    printf(json ? "]}\n" : "\n");
done:
    text_tokenizer_ids_free(&ids);
    text_tokenizer_text_free(&text);
    text_tokenizer_scratch_free(scratch);
    text_tokenizer_free(tokenizer);
    return status;
}

static int run_encode(int argc, char **argv) {
    static const cli_usage usage = {
        .name = "tokenizer encode",
        .summary = "Reads text from standard input and prints its token ids.",
        .example = "echo 'Hello world' | sifr tokenizer encode --tokenizer my-bpe --json",
    };
    const char *path = NULL;
    bool json = false, special = false;
    const cli_option table[] = {
        {"tokenizer", CLI_TEXT, "DIR", "model folder, or a tokenizer.json", &path, NULL, true},
        {"add-special-tokens", CLI_FLAG, NULL,
         "add the special tokens that the post-processor puts around a text", &special, NULL,
         false},
        {"json", CLI_FLAG, NULL, "print {\"ids\": […]}", &json, NULL, false},
    };
    int code;
    sifr_error error = {0};
    if (!cli_parse(&usage, table, sizeof table / sizeof *table, argc, argv, NULL, &code))
        return code;
    if (encode(path, special, json, &error) != SIFR_OK) return cli_fail(usage.name, &error);
    return SIFR_OK;
}

/* Reads ids in either form that encode prints: whole numbers, with [ ] { } , "ids": between them.
 */
static sifr_status read_ids(const text_tokenizer_text *text, text_tokenizer_ids *ids,
                            sifr_error *error) {
    static const char label[] = "\"ids\":";
    for (size_t i = 0; i < text->count;) {
        char c = text->bytes[i];
        if (c >= '0' && c <= '9') {
            int64_t id = 0;
            for (; i < text->count && text->bytes[i] >= '0' && text->bytes[i] <= '9'; i++) {
                id = id * 10 + (text->bytes[i] - '0');
                if (id > INT32_MAX)
                    return base_fail(error, SIFR_FAILED,
                                     "standard input: id number %zu is larger than any token id",
                                     ids->count);
            }
            BASE_TRY(base_grow(&ids->ids, &ids->room, ids->count + 1, sizeof *ids->ids, error));
            ids->ids[ids->count++] = (int32_t)id;
        } else if (text->count - i >= sizeof label - 1 &&
                   memcmp(text->bytes + i, label, sizeof label - 1) == 0) {
            i += sizeof label - 1;
        } else if (c && strchr(" \t\r\n,[]{}", c)) {
            i++;
        } else {
            return base_fail(error, SIFR_FAILED,
                             "standard input: byte %zu is not part of a list of token ids (`1 2 3` "
                             "or {\"ids\": [1, 2, 3]})",
                             i);
        }
    }
    return SIFR_OK;
}

/* Prints {"text": …}; a text that ends inside a character cannot be printed so. */
static sifr_status print_json(const text_tokenizer_text *text, sifr_error *error) {
    json_t *string = json_stringn(text->bytes, text->count);
    if (!string)
        return base_fail(
            error, SIFR_FAILED,
            "the text of these ids is not valid UTF-8, which JSON needs; leave --json out");
    json_t *object = json_pack("{s:o}", "text", string);
    if (!object) return base_fail(error, SIFR_NO_MEMORY, "no memory for the text");
    json_dumpf(object, stdout, 0);
    putchar('\n');
    json_decref(object);
    return SIFR_OK;
}

static sifr_status decode(const char *path, bool skip, bool json, sifr_error *error) {
    text_tokenizer *tokenizer = NULL;
    text_tokenizer_text text = {0}, out = {0};
    text_tokenizer_ids ids = {0};
    sifr_status status;
    BASE_TRY_GOTO(status, text_tokenizer_load(path, &tokenizer, error), done);
    BASE_TRY_GOTO(status, read_input(&text, error), done);
    BASE_TRY_GOTO(status, read_ids(&text, &ids, error), done);
    BASE_TRY_GOTO(status, text_tokenizer_decode(tokenizer, ids.ids, ids.count, skip, &out, error),
                  done);
    if (json)
        status = print_json(&out, error);
    else
        fwrite(out.bytes, 1, out.count, stdout);
done:
    text_tokenizer_ids_free(&ids);
    text_tokenizer_text_free(&text);
    text_tokenizer_text_free(&out);
    text_tokenizer_free(tokenizer);
    return status;
}

static int run_decode(int argc, char **argv) {
    static const cli_usage usage = {
        .name = "tokenizer decode",
        .summary = "Reads token ids from standard input, as encode prints them, and writes "
                   "their\ntext byte for byte, without adding a newline.",
        .example = "echo 15496 995 | sifr tokenizer decode --tokenizer gpt2",
    };
    const char *path = NULL;
    bool skip = false, json = false;
    const cli_option table[] = {
        {"tokenizer", CLI_TEXT, "DIR", "model folder, or a tokenizer.json", &path, NULL, true},
        {"skip-special-tokens", CLI_FLAG, NULL, "leave out special tokens", &skip, NULL, false},
        {"json", CLI_FLAG, NULL, "print one JSON object", &json, NULL, false},
    };
    int code;
    sifr_error error = {0};
    if (!cli_parse(&usage, table, sizeof table / sizeof *table, argc, argv, NULL, &code))
        return code;
    if (decode(path, skip, json, &error) != SIFR_OK) return cli_fail(usage.name, &error);
    return SIFR_OK;
}

int cli_tokenizer(int argc, char **argv) {
    static const cli_command commands[] = {
        {"train", "train a tokenizer on text", run_train},
        {"encode", "text to token ids", run_encode},
        {"decode", "token ids to text", run_decode},
    };
    return cli_run_command("tokenizer", commands, sizeof commands / sizeof *commands, argc, argv);
}
