/* sifr data inspect: rows to fine-tune on, as a model reads them. */
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/text.h"
#include "cli/commands.h"
#include "cli/launch/launch.h"
#include "cli/notes.h"
#include "cli/options.h"
#include "cli/row_options.h"
#include "text/tokenizer/tokenizer.h"
#include "text/tokenizer/tokenizer_unicode.h"
#include "train/prepare/run_settings.h"
#include "train/prepare/run_task.h"

static const char name[] = "data inspect";

enum { BUCKETS = 12, BAR = 40, SAMPLES = 3 };

typedef struct inspect_command {
    const char *model, *config_file, *dataset, *color;
    cli_list data;
    cli_rows rows;
    int64_t length, samples;
    bool tokens, plain, json;
    sifr_config config;
} inspect_command;

/* What a length would do to rows that were read whole. */
typedef struct inspect_cut {
    int64_t rows, tokens, lost; /* lost: nothing is left to learn */
} inspect_cut;

static int64_t count_learned(const bool *learned, int64_t count) {
    int64_t sum = 0;
    for (int64_t i = 1; i < count; i++) sum += learned[i];
    return sum;
}

static inspect_cut find_cut(const data_chat *chat, int64_t length) {
    inspect_cut cut = {0};
    for (int64_t i = 0; i < data_chat_count(chat)->rows; i++) {
        const int32_t *ids;
        const bool *learned;
        int64_t whole, count = data_chat_row_at(chat, i, &ids, &learned, &whole);
        if (count <= length) continue;
        cut.lost += count_learned(learned, length) == 0;
        cut.rows++;
        cut.tokens += count - length;
    }
    return cut;
}

/* --- samples --- */

static bool wants_color(const inspect_command *command) {
    const char *never = getenv("NO_COLOR");
    if (command->color) return strcmp(command->color, "always") == 0;
    return cli_is_terminal(stdout) && !(never && *never);
}

/* How a part of a text looks: by colours or, without them, between signs. */
typedef enum part_look { PART_READ, PART_LEARNED, PART_CUT, PART_LOOKS } part_look;

static void change_look(part_look from, part_look to, bool color) {
    static const char *const colors[PART_LOOKS] = {"\033[0m", "\033[0;1;32m", "\033[0;9;31m"};
    static const char *const begins[PART_LOOKS] = {"", "⟦", "⟪"};
    static const char *const ends[PART_LOOKS] = {"", "⟧", "⟫"};
    if (from == to) return;
    if (color)
        fputs(colors[to], stdout);
    else
        printf("%s%s", ends[from], begins[to]);
}

/* Whether a byte belongs to a control character, U+0080 to U+009F among them: those of the text
 * must not reach the terminal. */
static bool is_control(const char *text, size_t size, size_t i) {
    const unsigned char *c = (const unsigned char *)text + i;
    if (*c < 32 || *c == 127) return true;
    if (*c == 0xc2) return i + 1 < size && c[1] < 0xa0;
    return *c >= 0x80 && *c < 0xa0 && i > 0 && c[-1] == 0xc2;
}

static void print_text(const char *text, size_t size) {
    for (size_t i = 0; i < size; i++) {
        unsigned char c = (unsigned char)text[i];
        if (is_control(text, size, i) && c != '\n' && c != '\t')
            printf("\\x%02x", c);
        else
            putchar(c);
    }
}

/* A token on a line of its own: its id, and what it reads as, for which bytes that are no whole
 * character are written by their numbers. */
static void print_token(const text_tokenizer *tokenizer, int32_t id, part_look look, bool color) {
    size_t size;
    const char *bytes = text_tokenizer_bytes(tokenizer, id, &size);
    bool whole = bytes && text_utf8_valid((const uint8_t *)bytes, size) == size;
    printf("%8d  ", id);
    change_look(PART_READ, look, color);
    for (size_t i = 0; bytes && i < size; i++) {
        unsigned char c = (unsigned char)bytes[i];
        if (c == '\n')
            fputs("\\n", stdout);
        else if (c == '\t')
            fputs("\\t", stdout);
        else if (is_control(bytes, size, i) || (c > 127 && !whole))
            printf("\\x%02x", c);
        else
            putchar(c);
    }
    change_look(look, PART_READ, color);
    putchar('\n');
}

static sifr_status print_row(const inspect_command *command, const text_tokenizer *tokenizer,
                             const data_chat *chat, int64_t index, int64_t length,
                             sifr_error *error) {
    bool color = wants_color(command);
    const int32_t *ids;
    const bool *learned;
    int64_t whole, count = data_chat_row_at(chat, index, &ids, &learned, &whole);
    text_tokenizer_stream stream = {0};
    text_tokenizer_text text = {0};
    part_look look = PART_READ;
    char tokens[80];
    sifr_status status = SIFR_OK;
    const char *file, *answer = index % 2 ? ", rejected" : ", chosen";
    bool paired = data_chat_is_paired(chat);
    printf("--- %s %lld", paired ? "pair" : "row", (long long)data_chat_place(chat, index, &file));
    printf("%s%s%s", file ? " of " : "", file ? file : "", paired ? answer : "");
    printf(": %s, %lld learned%s\n", base_format_counted(count, "token", tokens),
           (long long)count_learned(learned, count), count > length ? ", cut" : "");
    for (int64_t i = 0; status == SIFR_OK && i < count; i++) {
        part_look next = i >= length ? PART_CUT : learned[i] && i > 0 ? PART_LEARNED : PART_READ;
        if (command->tokens) {
            print_token(tokenizer, ids[i], next, color);
            continue;
        }
        change_look(look, next, color);
        look = next;
        text.count = 0;
        status = text_tokenizer_stream_push(tokenizer, &stream, ids[i], &text, error);
        print_text(text.bytes, text.count);
    }
    change_look(look, PART_READ, color);
    if (!command->tokens) putchar('\n');
    text_tokenizer_text_free(&text);
    return status;
}

/* --- figures --- */

static void print_lengths(const data_chat *chat, int64_t length) {
    const data_chat_counts *c = data_chat_count(chat);
    int64_t width = (c->longest + BUCKETS - 1) / BUCKETS, counts[BUCKETS] = {0}, most = 1;
    for (int64_t i = 0; i < c->rows; i++) {
        const int32_t *ids;
        const bool *learned;
        int64_t whole, count = data_chat_row_at(chat, i, &ids, &learned, &whole);
        int64_t *bucket = &counts[(count - 1) / width];
        most = base_max_i64(most, ++*bucket);
    }
    printf("tokens of a row      rows\n");
    for (int64_t b = 0; b < BUCKETS && b * width < c->longest; b++) {
        int64_t bar = (counts[b] * BAR + most - 1) / most;
        printf("%7lld to %-7lld %7lld%s", (long long)(b * width + 1), (long long)((b + 1) * width),
               (long long)counts[b], bar ? "  " : "");
        for (int64_t i = 0; i < bar; i++) putchar('#');
        bool edge = b * width < length && length <= (b + 1) * width && length < c->longest;
        printf("%s\n", edge ? "  <- seq_length" : "");
    }
}

static double share_filled(const data_chat *chat, int64_t length, int64_t sequences) {
    double kept = (double)(data_chat_count(chat)->tokens - find_cut(chat, length).tokens);
    return 100 * kept / ((double)sequences * (double)length);
}

static void print_figures(const data_chat *chat, int64_t length) {
    int64_t packs = data_chat_sequences(chat);
    const data_chat_counts *c = data_chat_count(chat);
    inspect_cut cut = find_cut(chat, length);
    char rows[80], tokens[80], learned[32], lost[32];
    bool pairs = data_chat_is_paired(chat);
    printf("%s%s, %s, %s of them learned; %.1f tokens a row, the longest %lld\n",
           base_format_counted(pairs ? c->rows / 2 : c->rows, pairs ? "pair" : "row", rows),
           pairs ? " (a row is an answer with its prompt)" : "",
           base_format_counted(c->tokens, "token", tokens), base_format_count(c->learned, learned),
           (double)c->tokens / (double)c->rows, (long long)c->longest);
    print_lengths(chat, length);
    printf("at seq_length %lld: %s would be cut, by %s in all; %s of them would have "
           "nothing left to learn\n",
           (long long)length, base_format_counted(cut.rows, "row", rows),
           base_format_counted(cut.tokens, "token", tokens), base_format_count(cut.lost, lost));
    if (pairs) {
        printf("a row a sequence fills %.1f %% of them\n", share_filled(chat, length, c->rows));
        return;
    }
    printf("a row a sequence fills %.1f %% of them; packed, the rows take %s, %.1f %% "
           "filled\n",
           share_filled(chat, length, c->rows), base_format_counted(packs, "sequence", rows),
           share_filled(chat, length, packs));
}

static int print_json(const data_chat *chat, int64_t length) {
    const data_chat_counts *c = data_chat_count(chat);
    inspect_cut cut = find_cut(chat, length);
    printf(
        "{\"pairs\": %lld, \"rows\": %lld, \"tokens\": %lld, \"learned\": %lld, \"longest\": %lld, "
        "\"without_learned\": %lld, \"bad\": %lld, \"seq_length\": %lld, \"cut_rows\": %lld, "
        "\"cut_tokens\": %lld, \"lost_rows\": %lld, \"packed_sequences\": %lld}\n",
        (long long)(data_chat_is_paired(chat) ? c->rows / 2 : 0), (long long)c->rows,
        (long long)c->tokens, (long long)c->learned, (long long)c->longest, (long long)c->dropped,
        (long long)c->bad, (long long)length, (long long)cut.rows, (long long)cut.tokens,
        (long long)cut.lost, (long long)data_chat_sequences(chat));
    return SIFR_OK;
}

/* --- the command --- */

static sifr_status open_rows(inspect_command *command, int64_t *length, data_chat **out,
                             sifr_error *error) {
    const sifr_config *config = &command->config;
    model_config model;
    data_chat_source *sources;
    cli_notes notes = {.name = name};
    sifr_log log = cli_notes_log(&notes);
    char template[BASE_PATH_LENGTH];
    int64_t separator;
    BASE_TRY(model_config_load(command->model, &model, error));
    BASE_TRY(train_sequence_length(config, &model, &log, length, error));
    BASE_TRY(train_separator(command->model, &model, &log, &separator, error));
    BASE_TRY(train_chat_sources_make(config, config->data, config->data_count, &sources, error));
    data_chat_options options = {.sources = sources,
                                 .count = config->data_count,
                                 .tokenizer = command->model,
                                 .vocab_size = model.vocab_size,
                                 .length = *length,
                                 .separator = separator,
                                 .eot_tokens = config->eot_tokens,
                                 .template = train_chat_template(config, template),
                                 .asked = train_chat_template_key(config),
                                 .variables = config->chat_template_kwargs,
                                 .special = !config->no_special_tokens,
                                 .whole = true,
                                 .skip_bad_rows = config->skip_bad_rows,
                                 .max_rows = config->max_samples,
                                 .drop_long = config->drop_long,
                                 .log = &log};
    sifr_status status = train_chat_choices(config, &options, error);
    if (status == SIFR_OK) status = data_chat_open(&options, out, error);
    free(sources);
    if (status == SIFR_OK && config->joint) status = data_chat_join(*out, error);
    if (status == SIFR_OK) cli_notes_show(&notes);
    return status;
}

static sifr_status configure(inspect_command *command, sifr_error *error) {
    sifr_config *config = &command->config;
    char length[32];
    BASE_TRY(config_create(config, error));
    if (command->config_file) BASE_TRY(config_load(config, command->config_file, error));
    for (size_t i = 0; i < command->data.count; i++)
        BASE_TRY(config_set(config, "data", command->data.items[i], error));
    if (command->dataset) BASE_TRY(config_set(config, "dataset", command->dataset, error));
    BASE_TRY(cli_rows_configure(&command->rows, config, error));
    if (command->plain) BASE_TRY(config_set(config, "no-special-tokens", NULL, error));
    if (command->model) BASE_TRY(config_set(config, "model", command->model, error));
    snprintf(length, sizeof length, "%lld", (long long)command->length);
    if (command->length) BASE_TRY(config_set(config, "seq-length", length, error));
    BASE_TRY(config_resolve(config, 1, error));
    BASE_TRY(train_take_base(config, 1, error));
    command->model = config->model;
    if (!config->model) return base_fail(error, SIFR_USAGE, "--model DIR is needed: the folder");
    if (config->data_count) return SIFR_OK;
    return base_fail(error, SIFR_USAGE, "--data PATH is needed: files of rows");
}

static sifr_status inspect(inspect_command *command, sifr_error *error) {
    data_chat *chat = NULL;
    text_tokenizer *tokenizer = NULL;
    int64_t length;
    if (command->color && strcmp(command->color, "always") != 0 &&
        strcmp(command->color, "never") != 0)
        return base_fail(error, SIFR_USAGE, "--color %s: give always or never", command->color);
    sifr_status status = configure(command, error);
    if (status == SIFR_OK) status = open_rows(command, &length, &chat, error);
    if (status == SIFR_OK) status = text_tokenizer_load(command->model, &tokenizer, error);
    if (status == SIFR_OK && !data_chat_is_paired(chat))
        status = data_chat_pack(chat, error); /* counted alone */
    if (status == SIFR_OK && command->json) {
        print_json(chat, length);
    } else if (status == SIFR_OK) {
        int64_t shown = command->samples * (data_chat_is_paired(chat) ? 2 : 1);
        int64_t rows = base_min_i64(shown, data_chat_count(chat)->rows);
        for (int64_t i = 0; status == SIFR_OK && i < rows; i++)
            status = print_row(command, tokenizer, chat, i, length, error);
        if (status == SIFR_OK) print_figures(chat, length);
    }
    text_tokenizer_free(tokenizer);
    data_chat_close(chat);
    config_free(&command->config);
    return status;
}

static int run_inspect(int argc, char **argv) {
    static const cli_usage usage = {
        .name = name,
        .summary =
            "Shows rows to fine-tune on as a model reads them: the first ones as text, what is "
            "learned\nin colour (or between \xE2\x9F\xA6 and \xE2\x9F\xA7), what is cut "
            "struck out (or between \xE2\x9F\xAA and \xE2\x9F\xAB); lengths, and what\n"
            "seq_length would cut.",
        .example = "sifr data inspect --model model --data chats.jsonl --seq-length 1024",
    };
    inspect_command command = {.samples = SAMPLES};
    const cli_option table[] = {
        {"model", CLI_TEXT, "DIR", "model folder, for its tokenizer and chat template",
         &command.model, NULL, false},
        {"data", CLI_LIST, "PATH", "files of rows (.jsonl, .json, .csv, each also .gz or .zst)",
         &command.data, NULL, false},
        {"dataset", CLI_TEXT, "JSON", "as of sifr train", &command.dataset, NULL, false},
        {"config", CLI_TEXT, "FILE", "config of a run, for what is not given here",
         &command.config_file, NULL, false},
        {"data-type", CLI_TEXT, "TYPE",
         "auto, messages, sharegpt, alpaca, prompt_completion, text or preference",
         &command.rows.type, NULL, false},
        {"data-fields", CLI_LIST, "NAME=FIELD", "as of sifr train", &command.rows.fields, NULL,
         false},
        {"ignore-fields", CLI_LIST, "NAME", "as of sifr train", &command.rows.ignored, NULL, false},
        {"train-on", CLI_TEXT, "PART",
         "assistant, last, all, completion, assistant_only or assistant_turns",
         &command.rows.train_on, NULL, false},
        {"roles-to-train", CLI_LIST, "ROLE", "as of sifr train", &command.rows.roles, NULL, false},
        {"train-on-eos", CLI_TEXT, "WHICH", "turn, all, last or none", &command.rows.eos, NULL,
         false},
        {"train-on-eot", CLI_TEXT, "WHICH", "turn, all, last or none", &command.rows.eot, NULL,
         false},
        {"eot-tokens", CLI_LIST, "TOKEN", "as of sifr train", &command.rows.eot_tokens, NULL,
         false},
        {"chat-template", CLI_TEXT, "FILE", "as of sifr train", &command.rows.template, NULL,
         false},
        {"chat-template-kwargs", CLI_TEXT, "JSON", "as of sifr train", &command.rows.variables,
         NULL, false},
        {"seq-length", CLI_COUNT, "N", "tokens of a sequence; default: the model's own maximum",
         &command.length, NULL, false},
        {"samples", CLI_COUNT, "N", "rows to show (default: 3)", &command.samples, NULL, false},
        {"tokens", CLI_FLAG, NULL, "show them token by token, each with its id", &command.tokens,
         NULL, false},
        {"skip-bad-rows", CLI_FLAG, NULL, "count rows that cannot be used, and go on",
         &command.rows.skip_bad_rows, NULL, false},
        {"no-special-tokens", CLI_FLAG, NULL, "as of sifr train", &command.plain, NULL, false},
        {"color", CLI_TEXT, "WHEN", "always or never; default: on a terminal", &command.color, NULL,
         false},
        {"json", CLI_FLAG, NULL, "print the figures as one JSON object", &command.json, NULL,
         false},
    };
    int code;
    sifr_error error = {0};
    if (!cli_parse(&usage, table, sizeof table / sizeof *table, argc, argv, NULL, &code))
        return code;
    sifr_status status = inspect(&command, &error);
    cli_list_free(&command.data);
    cli_rows_free(&command.rows);
    return status == SIFR_OK ? SIFR_OK : cli_fail(name, &error);
}

int cli_data(int argc, char **argv) {
    static const cli_command commands[] = {
        {"inspect", "show rows with their mask, lengths and what would be cut", run_inspect},
    };
    return cli_run_command("data", commands, sizeof commands / sizeof *commands, argc, argv);
}
