#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/checked.h"
#include "base/heap.h"
#include "base/text.h"
#include "cli/commands.h"
#include "cli/options.h"
#include "sifr/tokenizer.h"

/* Standard input. */
typedef struct input {
    char *bytes;
    size_t count, capacity;
} input;

static sifr_status read_input(input *text, sifr_error *error) {
    for (;;) {
        size_t needed;
        if (!base_add_size(text->count, 65536, &needed)) return base_fail_alloc(error, SIZE_MAX);
        BASE_TRY(base_grow(&text->bytes, &text->capacity, needed, 1, error));
        ssize_t got = read(STDIN_FILENO, text->bytes + text->count, text->capacity - text->count);
        if (got == 0) return SIFR_OK;
        if (got < 0 && errno == EINTR) continue;
        if (got < 0) return base_fail_errno(error, errno, "standard input: cannot read");
        text->count += (size_t)got;
    }
}

static void print_trained(const sifr_tokenizer_trained *made, const char *output, bool json) {
    char count[32], bytes[32];
    if (json)
        printf(
            "{\"vocab_size\": %lld, \"documents\": %lld, \"bytes\": %llu, \"empty_files\": %lld, "
            "\"invalid_utf8\": %llu}\n",
            (long long)made->vocab_size, (long long)made->documents,
            (unsigned long long)made->bytes, (long long)made->empty_files,
            (unsigned long long)made->invalid_sequences);
    else
        printf("%s tokens from %s of text in %lld document%s: %s/tokenizer.json\n",
               base_format_count(made->vocab_size, count), base_format_bytes(made->bytes, bytes),
               (long long)made->documents, made->documents == 1 ? "" : "s", output);
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
    sifr_tokenizer_train_options options = {.size = sizeof options};
    sifr_tokenizer_trained made = {.size = sizeof made};
    sifr_context *context = NULL;
    bool json = false;
    const cli_option table[] = {
        {"vocab-size", CLI_COUNT, "N", "tokens in all, with bytes or characters and special tokens",
         &options.vocab_size, NULL, true},
        {"type", CLI_TEXT, "TYPE", "kind of model: bpe (default), unigram or wordpiece",
         &options.type, NULL, false},
        {"data", CLI_LIST, "PATH", "text files, directories, or patterns in quotes", &data, NULL,
         true},
        {"output", CLI_TEXT, "DIR", "folder to write to", &options.output, NULL, true},
        {"split", CLI_TEXT, "KIND", "how bpe cuts text into words: gpt2 (default), llama3 or qwen2",
         &options.split, NULL, false},
        {"lowercase", CLI_FLAG, NULL, "wordpiece: make letters small, without accents",
         &options.lowercase, NULL, false},
        {"min-frequency", CLI_COUNT, "N", "do not merge pairs that occur less often (default: 0)",
         &options.min_frequency, NULL, false},
        {"model-max-length", CLI_COUNT, "N", "model_max_length to write to tokenizer_config.json",
         &options.model_max_length, NULL, false},
        {"overwrite", CLI_FLAG, NULL, "replace existing files", &options.overwrite, NULL, false},
        {"json", CLI_FLAG, NULL, "print one JSON object", &json, NULL, false},
    };
    int code;
    sifr_error error = {0};
    if (!cli_parse(&usage, table, sizeof table / sizeof *table, argc, argv, NULL, &code))
        return code;
    options.paths = data.items;
    options.path_count = data.count;
    sifr_status status = cli_context(usage.name, &context, &error);
    if (status == SIFR_OK) status = sifr_tokenizer_train(context, &options, &made, &error);
    if (status == SIFR_OK) print_trained(&made, options.output, json);
    sifr_context_free(context);
    cli_list_free(&data);
    return status == SIFR_OK ? SIFR_OK : cli_fail(usage.name, &error);
}

static sifr_status encode(sifr_tokenizer *tokenizer, const input *text, bool special, bool json,
                          sifr_error *error) {
    const int32_t *ids;
    size_t count;
    BASE_TRY(
        sifr_tokenizer_encode(tokenizer, text->bytes, text->count, special, &ids, &count, error));
    if (json) printf("{\"ids\": [");
    for (size_t i = 0; i < count; i++) printf("%s%d", i == 0 ? "" : json ? ", " : " ", ids[i]);
    printf(json ? "]}\n" : "\n");
    return SIFR_OK;
}

static sifr_status encode_input(const char *path, bool special, bool json, sifr_error *error) {
    sifr_context *context = NULL;
    sifr_tokenizer *tokenizer = NULL;
    input text = {0};
    sifr_status status = cli_context("tokenizer encode", &context, error);
    if (status == SIFR_OK) status = sifr_tokenizer_open(context, path, &tokenizer, error);
    if (status == SIFR_OK) status = read_input(&text, error);
    if (status == SIFR_OK) status = encode(tokenizer, &text, special, json, error);
    free(text.bytes);
    sifr_tokenizer_free(tokenizer);
    sifr_context_free(context);
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
    if (encode_input(path, special, json, &error) != SIFR_OK) return cli_fail(usage.name, &error);
    return SIFR_OK;
}

typedef struct id_list {
    int32_t *ids;
    size_t count, capacity;
} id_list;

/* Reads ids in either form that encode prints: whole numbers, with [ ] { } , "ids": between them.
 */
static sifr_status read_ids(const input *text, id_list *ids, sifr_error *error) {
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
            BASE_TRY(base_grow(&ids->ids, &ids->capacity, ids->count + 1, sizeof *ids->ids, error));
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
static sifr_status print_json(const char *text, size_t size, sifr_error *error) {
    json_t *string = json_stringn(text, size);
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

static sifr_status decode(sifr_tokenizer *tokenizer, const id_list *ids, bool skip, bool json,
                          sifr_error *error) {
    const char *text;
    size_t size;
    BASE_TRY(sifr_tokenizer_decode(tokenizer, ids->ids, ids->count, skip, &text, &size, error));
    if (json) return print_json(text, size, error);
    fwrite(text, 1, size, stdout);
    return SIFR_OK;
}

static sifr_status decode_input(const char *path, bool skip, bool json, sifr_error *error) {
    sifr_context *context = NULL;
    sifr_tokenizer *tokenizer = NULL;
    input text = {0};
    id_list ids = {0};
    sifr_status status = cli_context("tokenizer decode", &context, error);
    if (status == SIFR_OK) status = sifr_tokenizer_open(context, path, &tokenizer, error);
    if (status == SIFR_OK) status = read_input(&text, error);
    if (status == SIFR_OK) status = read_ids(&text, &ids, error);
    if (status == SIFR_OK) status = decode(tokenizer, &ids, skip, json, error);
    free(ids.ids);
    free(text.bytes);
    sifr_tokenizer_free(tokenizer);
    sifr_context_free(context);
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
    if (decode_input(path, skip, json, &error) != SIFR_OK) return cli_fail(usage.name, &error);
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
