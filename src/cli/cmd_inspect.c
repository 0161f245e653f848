#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/text.h"
#include "cli/commands.h"
#include "cli/inspect_describe.h"
#include "cli/options.h"

static const char *text_of(const json_t *object, const char *key) {
    const char *text = json_string_value(json_object_get(object, key));
    return text ? text : "none";
}

static int64_t number_of(const json_t *object, const char *key) {
    return (int64_t)json_integer_value(json_object_get(object, key));
}

/* "  key   12,345" */
static void print_count(const json_t *object, const char *key, const char *label) {
    char count[32];
    printf("  %-18s %s\n", label, base_format_count(number_of(object, key), count));
}

/* Prints an object's members, one a line; nested ones as JSON. */
static void print_members(const json_t *object) {
    const char *key;
    json_t *value;
    json_object_foreach((json_t *)(uintptr_t)object, key, value) {
        char *text = json_dumps(value, JSON_ENCODE_ANY | JSON_COMPACT | JSON_REAL_PRECISION(7));
        printf("  %-25s %s\n", key,
               json_is_string(value) ? json_string_value(value)
               : text                ? text
                                     : "");
        free(text);
    }
}

static void print_weights(const json_t *weights) {
    char count[32], bytes[32];
    const json_t *tensors = json_object_get(weights, "tensors");
    json_t *tensor, *size;
    size_t i, k, width = 0;
    int64_t files = number_of(weights, "files");
    json_array_foreach(tensors, i, tensor) {
        size_t length = strlen(text_of(tensor, "name"));
        if (length > width && length <= 80) width = length;
    }
    printf("weights: %zu tensors, %s elements, %s in %" PRId64 " file%s\n",
           json_array_size(tensors), base_format_count(number_of(weights, "parameters"), count),
           base_format_bytes((uint64_t)number_of(weights, "bytes"), bytes), files,
           files == 1 ? "" : "s");
    json_array_foreach(tensors, i, tensor) {
        printf("  %-*s  %-5s [", (int)width, text_of(tensor, "name"), text_of(tensor, "dtype"));
        json_array_foreach(json_object_get(tensor, "shape"), k, size) {
            printf("%s%" PRId64, k ? ", " : "", (int64_t)json_integer_value(size));
        }
        printf("]\n");
    }
}

static void print_tokenizer(const json_t *tokenizer) {
    printf("tokenizer: %s\n", text_of(tokenizer, "path"));
    printf("  %-18s %s\n", "model", text_of(tokenizer, "model"));
    print_count(tokenizer, "vocab", "vocabulary");
    print_count(tokenizer, "merges", "merges");
    print_count(tokenizer, "added_tokens", "added tokens");
    static const char *const parts[] = {"normalizer", "pre_tokenizer", "post_processor", "decoder"};
    for (int i = 0; i < 4; i++) printf("  %-18s %s\n", parts[i], text_of(tokenizer, parts[i]));
}

static void print_carried(const json_t *carried, const char *text) {
    char bytes[32];
    printf("trained: the text model alone, as %s; %" PRId64 " tensors beside it, %s, are carried "
           "along as they are\n",
           text, number_of(carried, "tensors"),
           base_format_bytes((uint64_t)number_of(carried, "bytes"), bytes));
}

static void print_folder(const json_t *folder) {
    const json_t *config = json_object_get(folder, "config");
    const json_t *weights = json_object_get(folder, "weights");
    const json_t *carried = json_object_get(folder, "carried");
    const json_t *tokenizer = json_object_get(folder, "tokenizer");
    bool adapter = strcmp(text_of(folder, "kind"), "adapter") == 0;
    printf("%s: %s folder\n", text_of(folder, "path"), adapter ? "an adapter" : "a model");
    if (json_is_null(config)) {
        printf("config: none\n");
    } else if (json_object_get(config, "error")) {
        printf("config: cannot be used for training: %s\n", text_of(config, "error"));
    } else {
        printf("config:\n");
        print_members(config);
    }
    if (carried) print_carried(carried, text_of(config, "text_model"));
    if (json_is_null(tokenizer)) {
        printf("tokenizer: none\n");
    } else if (json_object_get(tokenizer, "error")) {
        printf("tokenizer: %s\n", text_of(tokenizer, "error"));
    } else {
        print_tokenizer(tokenizer);
    }
    if (json_is_null(weights)) {
        printf("weights: none\n");
    } else {
        print_weights(weights);
    }
}

static void print_store(const json_t *store) {
    char bytes[32];
    printf("%s: a token store\n", text_of(store, "path"));
    print_count(store, "tokens", "tokens");
    print_count(store, "documents", "documents");
    print_count(store, "sequences", "sequences");
    print_count(store, "shortest_document", "shortest document");
    print_count(store, "longest_document", "longest document");
    printf("  %-18s %s, %s\n", "type", text_of(store, "type"),
           base_format_bytes((uint64_t)number_of(store, "bytes"), bytes));
}

static void print_checkpoint(const json_t *checkpoint) {
    const json_t *manifest = json_object_get(checkpoint, "manifest");
    const char *key;
    json_t *value, *file;
    size_t i;
    char bytes[32];
    printf("%s: a checkpoint\n", text_of(checkpoint, "path"));
    json_object_foreach((json_t *)(uintptr_t)manifest, key, value) {
        if (!strcmp(key, "files")) continue;
        if (json_is_array(value)) {
            printf("  %-18s %zu entries\n", key, json_array_size(value));
            continue;
        }
        char *text = base_json_text(value);
        printf("  %-18s %s\n", key, text ? text : "");
        free(text);
    }
    printf("files:\n");
    json_array_foreach(json_object_get(checkpoint, "files"), i, file) {
        printf("  %-40s %10s  %s\n", text_of(file, "name"),
               base_format_bytes((uint64_t)number_of(file, "bytes"), bytes),
               text_of(file, "found"));
    }
}

static void print_plain(const json_t *what) {
    const char *kind = text_of(what, "kind");
    if (!strcmp(kind, "model") || !strcmp(kind, "adapter")) {
        print_folder(what);
    } else if (!strcmp(kind, "safetensors")) {
        printf("%s: a safetensors file\n", text_of(what, "path"));
        print_weights(what);
    } else if (!strcmp(kind, "token store")) {
        print_store(what);
    } else if (!strcmp(kind, "checkpoint")) {
        print_checkpoint(what);
    } else if (!strcmp(kind, "tokenizer")) {
        print_tokenizer(what);
    } else {
        printf("%s: a model's config\n", text_of(what, "path"));
        print_members(json_object_get(what, "config"));
    }
}

int cli_inspect(int argc, char **argv) {
    static const cli_usage usage = {
        .name = "inspect",
        .operands = "PATH",
        .summary =
            "Shows the contents of a model folder, an adapter folder, a .safetensors file, a "
            "token store\n(its prefix, or either of its two files), a tokenizer.json or a "
            "checkpoint.",
        .example = "sifr inspect models/gpt2\nsifr inspect data/english.idx --json",
    };
    bool json = false;
    const cli_option options[] = {
        {"json", CLI_FLAG, NULL, "print one JSON object", &json, NULL, false},
    };
    cli_list paths = {0};
    int code;
    if (!cli_parse(&usage, options, 1, argc, argv, &paths, &code)) return code;
    if (paths.count != 1) {
        code = cli_fail_with(usage.name, SIFR_USAGE,
                             "one PATH is needed, but %zu are given; see `sifr %s --help`",
                             paths.count, usage.name);
        cli_list_free(&paths);
        return code;
    }
    sifr_error error = {0};
    json_t *what;
    json_t *text = json_string(paths.items[0]);
    json_decref(text);
    sifr_status status =
        text ? cli_describe(paths.items[0], &what, &error)
             : base_fail(&error, SIFR_USAGE, "%s: the path is not valid UTF-8; rename it",
                         paths.items[0]);
    cli_list_free(&paths);
    if (status != SIFR_OK) return cli_fail(usage.name, &error);
    if (json) {
        json_dumpf(what, stdout, JSON_INDENT(2));
        putchar('\n');
    } else {
        print_plain(what);
    }
    json_decref(what);
    return SIFR_OK;
}
