#include <limits.h>
#include <stdio.h>
#include <unistd.h>

#include <jansson.h>

#include "base/text.h"
#include "cli/commands.h"
#include "cli/options.h"
#include "sifr/tokenizer.h"

static const char name[] = "tokenize";

static double rate(uint64_t bytes, double seconds) {
    return seconds > 0 ? (double)bytes / seconds / 1e6 : 0;
}

/* `user`: whether a line of progress stands on the terminal. */
static void tell_progress(void *user, uint64_t bytes, uint64_t total, double seconds) {
    bool *shown = user;
    char done[32], all[32];
    fprintf(stderr, "\r%3.0f %%  %s of %s  %.1f MB/s\033[K",
            total ? 100.0 * (double)bytes / (double)total : 100.0, base_format_bytes(bytes, done),
            base_format_bytes(total, all), rate(bytes, seconds));
    *shown = true;
}

static void end_progress(bool *shown) {
    if (*shown) fprintf(stderr, "\r\033[K");
    *shown = false;
}

static void write_line(void *user, sifr_log_level level, const char *line) {
    sifr_log log = cli_log(name);
    end_progress(user);
    log.write(log.user, level, line);
}

static void print_text(const char *output, const sifr_tokenized *made) {
    char documents[80], tokens[80], bytes[32];
    printf("%s.bin, %s.idx: %s, %s, from %s in %.2f s (%.1f MB/s)\n", output, output,
           base_format_counted(made->documents, "document", documents),
           base_format_counted(made->tokens, "token", tokens),
           base_format_bytes(made->bytes, bytes), made->seconds, rate(made->bytes, made->seconds));
}

static void print_json(const char *output, const sifr_tokenized *made) {
    json_t *result = json_pack(
        "{s:o?, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:f}", "output", json_string(output),
        "documents", (json_int_t)made->documents, "tokens", (json_int_t)made->tokens, "bytes",
        (json_int_t)made->bytes, "invalid_sequences", (json_int_t)made->invalid_sequences,
        "invalid_documents", (json_int_t)made->invalid_documents, "empty_files",
        (json_int_t)made->empty_files, "documents_without_newline",
        (json_int_t)made->documents_without_newline, "seconds", made->seconds);
    json_dumpf(result, stdout, JSON_INDENT(2));
    putchar('\n');
    json_decref(result);
}

static sifr_status tokenize(sifr_tokenize_options *options, bool json, sifr_error *error) {
    bool shown = false;
    sifr_context_options log = {.size = sizeof log, .log = {write_line, &shown}};
    sifr_tokenized made = {.size = sizeof made};
    sifr_context *context;
    options->progress = isatty(STDERR_FILENO) ? tell_progress : NULL;
    options->user = &shown;
    BASE_TRY(sifr_context_create(&log, &context, error));
    sifr_status status = sifr_tokenize(context, options, &made, error);
    sifr_context_free(context);
    end_progress(&shown);
    if (status == SIFR_OK) (json ? print_json : print_text)(options->output, &made);
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
    sifr_tokenize_options o = {.size = sizeof o};
    cli_list data = {0};
    int64_t threads = 0;
    bool json = false;
    const cli_option options[] = {
        {"tokenizer", CLI_TEXT, "DIR", "model folder with a tokenizer.json, or the file itself",
         &o.tokenizer, NULL, true},
        {"data", CLI_LIST, "PATH", "text files, directories, or patterns in quotes", &data, NULL,
         true},
        {"output", CLI_TEXT, "PREFIX", "where the store is written; only a store is replaced",
         &o.output, NULL, true},
        {"no-special-tokens", CLI_FLAG, NULL,
         "leave out the special tokens that the tokenizer's post-processor adds to each text",
         &o.no_special_tokens, NULL, false},
        {"threads", CLI_COUNT, "N", "number of threads (default: one for each processor)", &threads,
         NULL, false},
        {"json", CLI_FLAG, NULL, "print one JSON object", &json, NULL, false},
    };
    int code;
    if (!cli_parse(&usage, options, sizeof options / sizeof *options, argc, argv, NULL, &code)) {
        return code;
    }
    sifr_error error = {0};
    o.paths = data.items;
    o.path_count = data.count;
    o.threads = threads > INT_MAX ? INT_MAX : (int)threads;
    sifr_status status = tokenize(&o, json, &error);
    cli_list_free(&data);
    return status == SIFR_OK ? SIFR_OK : cli_fail(name, &error);
}
