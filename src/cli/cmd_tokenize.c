#include <libgen.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <jansson.h>

#include "base/file.h"
#include "base/text.h"
#include "cli/commands.h"
#include "cli/options.h"
#include "data/stream/tokenise.h"

static const char name[] = "tokenize";

typedef struct tokenize_options {
    const char *tokenizer, *output;
    cli_list data;
    int64_t threads;
    bool plain, json;
} tokenize_options;

static double rate(uint64_t bytes, double seconds) {
    return seconds > 0 ? (double)bytes / seconds / 1e6 : 0;
}

static void tell_progress(void *user, uint64_t bytes, uint64_t total, double seconds) {
    (void)user;
    char done[32], all[32];
    fprintf(stderr, "\r%3.0f %%  %s of %s  %.1f MB/s\033[K",
            total ? 100.0 * (double)bytes / (double)total : 100.0, base_format_bytes(bytes, done),
            base_format_bytes(total, all), rate(bytes, seconds));
}

static const char *plural(int64_t count) {
    return count == 1 ? "" : "s";
}

/* Reports irregularities of the text on standard error. */
static void say_oddities(const data_text_source *source, const data_tokenised *counts) {
    char number[32];
    sifr_log log = cli_log(name);
    const char *path, *kind = data_text_source_records(source, &path);
    if (kind) {
        base_log(
            &log, SIFR_LOG_WARNING,
            "%s: %s is tokenised as plain text, with its quotes and field names, not as records",
            path, kind);
    }
    if (counts->invalid) {
        base_log(&log, SIFR_LOG_WARNING,
                 "%s sequence%s in %lld document%s no valid UTF-8, and read as U+FFFD",
                 base_format_count((int64_t)counts->invalid, number),
                 plural((int64_t)counts->invalid), (long long)counts->invalid_documents,
                 counts->invalid_documents == 1 ? " is" : "s are");
    }
    if (source->empty_files) {
        base_log(&log, SIFR_LOG_INFO, "%zu empty file%s left out", source->empty_files,
                 plural((int64_t)source->empty_files));
    }
    if (source->links) {
        base_log(&log, SIFR_LOG_INFO, "%zu link%s to directories not followed", source->links,
                 plural((int64_t)source->links));
    }
    if (counts->unfinished) {
        base_log(&log, SIFR_LOG_INFO, "%lld document%s without a newline at the end; none added",
                 (long long)counts->unfinished, plural(counts->unfinished));
    }
}

static void print_result(const tokenize_options *o, const data_text_source *source,
                         const data_tokenised *counts) {
    char documents[80], tokens[80], bytes[32];
    if (!o->json) {
        printf("%s.bin, %s.idx: %s, %s, from %s in %.2f s (%.1f MB/s)\n", o->output, o->output,
               base_format_counted(counts->documents, "document", documents),
               base_format_counted(counts->tokens, "token", tokens),
               base_format_bytes(counts->bytes, bytes), counts->seconds,
               rate(counts->bytes, counts->seconds));
        return;
    }
    json_t *result = json_pack(
        "{s:o?, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:f}", "output", json_string(o->output),
        "documents", (json_int_t)counts->documents, "tokens", (json_int_t)counts->tokens, "bytes",
        (json_int_t)counts->bytes, "invalid_sequences", (json_int_t)counts->invalid,
        "invalid_documents", (json_int_t)counts->invalid_documents, "empty_files",
        (json_int_t)source->empty_files, "documents_without_newline",
        (json_int_t)counts->unfinished, "seconds", counts->seconds);
    json_dumpf(result, stdout, JSON_INDENT(2));
    putchar('\n');
    json_decref(result);
}

static sifr_status make_parent(const char *prefix, sifr_error *error) {
    char parent[BASE_PATH_LENGTH];
    if (strlen(prefix) >= sizeof parent - 8) {
        return base_fail(error, SIFR_USAGE, "--output: the path is too long");
    }
    strcpy(parent, prefix);
    return base_make_directories(dirname(parent), error);
}

static sifr_status tokenize(const tokenize_options *o, sifr_error *error) {
    text_tokenizer *tokenizer = NULL;
    data_text_source source = {0};
    data_tokenised counts;
    bool live = isatty(STDERR_FILENO);
    const base_progress progress = {live ? tell_progress : NULL, NULL};
    sifr_status status;
    BASE_TRY_GOTO(status, text_tokenizer_load(o->tokenizer, &tokenizer, error), done);
    int32_t eos = text_tokenizer_eos(tokenizer);
    if (eos < 0) {
        status = base_fail(error, SIFR_USAGE,
                           "%s: the tokenizer has no end-of-text token, so documents could not be "
                           "told apart; set \"eos_token\" in its tokenizer_config.json",
                           o->tokenizer);
        goto done;
    }
    BASE_TRY_GOTO(status, data_text_source_open(o->data.items, o->data.count, &source, error),
                  done);
    BASE_TRY_GOTO(status, make_parent(o->output, error), done);
    status = data_tokenise(&source, tokenizer,
                           &(data_tokenise_options){.special = !o->plain,
                                                    .separator = eos,
                                                    .threads = (int)o->threads,
                                                    .progress = &progress},
                           o->output, &counts, error);
    if (live) fprintf(stderr, "\r\033[K");
    if (status != SIFR_OK) goto done;
    sifr_log log = cli_log(name);
    data_tokenise_say(tokenizer, !o->plain, eos, &log);
    data_tokenise_say_doubled(tokenizer, counts.doubled, "document", &log);
    say_oddities(&source, &counts);
    print_result(o, &source, &counts);
done:
    data_text_source_close(&source);
    text_tokenizer_free(tokenizer);
    return status;
}

int cli_tokenize(int argc, char **argv) {
    static const cli_usage usage = {
        .name = name,
        .summary = "Makes a token store from text: PREFIX.bin and PREFIX.idx in Megatron's format. "
                   "Each file\nbecomes a document, with the special tokens that the tokenizer puts "
                   "around a text and\nits end-of-text token at the end. The store is the same for "
                   "any number of threads.",
        .example = "sifr tokenize --tokenizer models/gpt2 --data corpus/ 'more/*.txt' --output "
                   "data/english",
    };
    tokenize_options o = {0};
    const cli_option options[] = {
        {"tokenizer", CLI_TEXT, "DIR", "model folder with a tokenizer.json, or the file itself",
         &o.tokenizer, NULL, true},
        {"data", CLI_LIST, "PATH", "text files, directories, or patterns in quotes", &o.data, NULL,
         true},
        {"output", CLI_TEXT, "PREFIX", "where the store is written; an existing store is replaced",
         &o.output, NULL, true},
        {"no-special-tokens", CLI_FLAG, NULL,
         "leave out the special tokens that the tokenizer's post-processor adds to each text",
         &o.plain, NULL, false},
        {"threads", CLI_COUNT, "N", "number of threads (default: one for each processor)",
         &o.threads, NULL, false},
        {"json", CLI_FLAG, NULL, "print one JSON object", &o.json, NULL, false},
    };
    int code;
    if (!cli_parse(&usage, options, sizeof options / sizeof *options, argc, argv, NULL, &code)) {
        return code;
    }
    sifr_error error = {0};
    if (o.threads > INT_MAX) o.threads = INT_MAX;
    sifr_status status = tokenize(&o, &error);
    cli_list_free(&o.data);
    return status == SIFR_OK ? SIFR_OK : cli_fail(name, &error);
}
