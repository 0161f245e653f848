/* sifr data inspect: rows to fine-tune on, as a model reads them. */
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
#include "sifr/data.h"
#include "sifr/tokenizer.h"

static const char name[] = "data inspect";

enum { BUCKETS = 12, BAR = 40, SAMPLES = 3 };

typedef struct inspect_command {
    const char *model, *config_file, *dataset, *color;
    cli_list data;
    cli_rows rows;
    int64_t length, samples;
    bool tokens, plain, json;
} inspect_command;

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
static void print_token(const sifr_tokenizer *tokenizer, int32_t id, part_look look, bool color) {
    size_t size;
    bool whole;
    const char *bytes = sifr_tokenizer_bytes(tokenizer, id, &size, &whole);
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

static int64_t count_learned(const sifr_chat_row *row) {
    int64_t sum = 0;
    for (int64_t i = 1; i < row->count; i++) sum += row->learned[i];
    return sum;
}

static part_look look_of(const sifr_chat_row *row, int64_t i, int64_t length) {
    if (i >= length) return PART_CUT;
    return row->learned[i] && i > 0 ? PART_LEARNED : PART_READ;
}

static sifr_status print_row(const inspect_command *command, const sifr_tokenizer *tokenizer,
                             const sifr_chat_rows *rows, int64_t index, sifr_error *error) {
    bool color = wants_color(command);
    sifr_chat_rows_figures all = {.size = sizeof all};
    sifr_chat_row row = {.size = sizeof row};
    sifr_decoder *decoder = NULL;
    part_look look = PART_READ;
    char tokens[80];
    const char *text, *answer = index % 2 ? ", rejected" : ", chosen";
    size_t size;
    sifr_chat_rows_get(rows, &all);
    if (!sifr_chat_rows_at(rows, index, &row)) return SIFR_OK;
    sifr_status status = sifr_decoder_create(tokenizer, false, &decoder, error);
    printf("--- %s %lld", all.paired ? "pair" : "row", (long long)row.number);
    printf("%s%s%s", row.file ? " of " : "", row.file ? row.file : "", all.paired ? answer : "");
    printf(": %s, %lld learned%s\n", base_format_counted(row.count, "token", tokens),
           (long long)count_learned(&row), row.count > all.seq_length ? ", cut" : "");
    for (int64_t i = 0; status == SIFR_OK && i < row.count; i++) {
        part_look next = look_of(&row, i, all.seq_length);
        if (command->tokens) {
            print_token(tokenizer, row.ids[i], next, color);
            continue;
        }
        change_look(look, next, color);
        look = next;
        status = sifr_decoder_push(decoder, row.ids[i], &text, &size, error);
        if (status == SIFR_OK) print_text(text, size);
    }
    change_look(look, PART_READ, color);
    if (!command->tokens) putchar('\n');
    sifr_decoder_free(decoder);
    return status;
}

/* --- figures --- */

static void print_lengths(const sifr_chat_rows *rows, const sifr_chat_rows_figures *all) {
    int64_t width = (all->longest + BUCKETS - 1) / BUCKETS, counts[BUCKETS] = {0}, most = 1;
    int64_t length = all->seq_length;
    sifr_chat_row row = {.size = sizeof row};
    for (int64_t i = 0; sifr_chat_rows_at(rows, i, &row); i++) {
        int64_t *bucket = &counts[(row.count - 1) / width];
        most = base_max_i64(most, ++*bucket);
    }
    printf("tokens of a row      rows\n");
    for (int64_t b = 0; b < BUCKETS && b * width < all->longest; b++) {
        int64_t bar = (counts[b] * BAR + most - 1) / most;
        printf("%7lld to %-7lld %7lld%s", (long long)(b * width + 1), (long long)((b + 1) * width),
               (long long)counts[b], bar ? "  " : "");
        for (int64_t i = 0; i < bar; i++) putchar('#');
        bool edge = b * width < length && length <= (b + 1) * width && length < all->longest;
        printf("%s\n", edge ? "  <- seq_length" : "");
    }
}

static double share_filled(const sifr_chat_rows_figures *all, int64_t sequences) {
    double kept = (double)(all->tokens - all->cut_tokens);
    return 100 * kept / ((double)sequences * (double)all->seq_length);
}

static void print_figures(const sifr_chat_rows *list) {
    sifr_chat_rows_figures all = {.size = sizeof all};
    char rows[80], tokens[80], learned[32], lost[32];
    sifr_chat_rows_get(list, &all);
    printf("%s%s, %s, %s of them learned; %.1f tokens a row, the longest %lld\n",
           base_format_counted(all.paired ? all.rows / 2 : all.rows, all.paired ? "pair" : "row",
                               rows),
           all.paired ? " (a row is an answer with its prompt)" : "",
           base_format_counted(all.tokens, "token", tokens),
           base_format_count(all.learned, learned), (double)all.tokens / (double)all.rows,
           (long long)all.longest);
    print_lengths(list, &all);
    printf("at seq_length %lld: %s would be cut, by %s in all; %s of them would have "
           "nothing left to learn\n",
           (long long)all.seq_length, base_format_counted(all.cut_rows, "row", rows),
           base_format_counted(all.cut_tokens, "token", tokens),
           base_format_count(all.lost_rows, lost));
    if (all.paired) {
        printf("a row a sequence fills %.1f %% of them\n", share_filled(&all, all.rows));
        return;
    }
    printf("a row a sequence fills %.1f %% of them; packed, the rows take %s, %.1f %% "
           "filled\n",
           share_filled(&all, all.rows),
           base_format_counted(all.packed_sequences, "sequence", rows),
           share_filled(&all, all.packed_sequences));
}

static void print_json(const sifr_chat_rows *rows) {
    sifr_chat_rows_figures all = {.size = sizeof all};
    sifr_chat_rows_get(rows, &all);
    printf(
        "{\"pairs\": %lld, \"rows\": %lld, \"tokens\": %lld, \"learned\": %lld, \"longest\": %lld, "
        "\"without_learned\": %lld, \"bad\": %lld, \"seq_length\": %lld, \"cut_rows\": %lld, "
        "\"cut_tokens\": %lld, \"lost_rows\": %lld, \"packed_sequences\": %lld}\n",
        (long long)(all.paired ? all.rows / 2 : 0), (long long)all.rows, (long long)all.tokens,
        (long long)all.learned, (long long)all.longest, (long long)all.without_learned,
        (long long)all.bad, (long long)all.seq_length, (long long)all.cut_rows,
        (long long)all.cut_tokens, (long long)all.lost_rows, (long long)all.packed_sequences);
}

/* --- the command --- */

static sifr_status configure(const inspect_command *command, sifr_config *config,
                             sifr_error *error) {
    char length[32];
    if (command->config_file) BASE_TRY(sifr_config_load(config, command->config_file, error));
    for (size_t i = 0; i < command->data.count; i++)
        BASE_TRY(sifr_config_set(config, "data", command->data.items[i], error));
    if (command->dataset) BASE_TRY(sifr_config_set(config, "dataset", command->dataset, error));
    BASE_TRY(cli_rows_configure(&command->rows, config, error));
    if (command->plain) BASE_TRY(sifr_config_set(config, "no-special-tokens", NULL, error));
    if (command->model) BASE_TRY(sifr_config_set(config, "model", command->model, error));
    snprintf(length, sizeof length, "%lld", (long long)command->length);
    return command->length ? sifr_config_set(config, "seq-length", length, error) : SIFR_OK;
}

static sifr_status show(const inspect_command *command, sifr_context *context,
                        const sifr_chat_rows *rows, sifr_error *error) {
    sifr_chat_rows_figures all = {.size = sizeof all};
    sifr_tokenizer *tokenizer = NULL;
    sifr_chat_rows_get(rows, &all);
    sifr_status status = sifr_tokenizer_open(context, all.model, &tokenizer, error);
    if (status == SIFR_OK && command->json) {
        print_json(rows);
    } else if (status == SIFR_OK) {
        int64_t shown = base_min_i64(command->samples * (all.paired ? 2 : 1), all.rows);
        for (int64_t i = 0; status == SIFR_OK && i < shown; i++)
            status = print_row(command, tokenizer, rows, i, error);
        if (status == SIFR_OK) print_figures(rows);
    }
    sifr_tokenizer_free(tokenizer);
    return status;
}

static sifr_status inspect_with(const inspect_command *command, sifr_context *context,
                                cli_notes *notes, sifr_config *config, sifr_error *error) {
    sifr_chat_rows *rows;
    BASE_TRY(configure(command, config, error));
    BASE_TRY(sifr_chat_rows_open(context, config, &rows, error));
    cli_notes_show(notes);
    sifr_status status = show(command, context, rows, error);
    sifr_chat_rows_close(rows);
    return status;
}

static sifr_status inspect(const inspect_command *command, sifr_error *error) {
    cli_notes notes = {.name = name};
    const sifr_context_options options = {.size = sizeof options, .log = cli_notes_log(&notes)};
    sifr_context *context = NULL;
    sifr_config *config = NULL;
    if (command->color && strcmp(command->color, "always") != 0 &&
        strcmp(command->color, "never") != 0)
        return base_fail(error, SIFR_USAGE, "--color %s: give always or never", command->color);
    sifr_status status = sifr_context_create(&options, &context, error);
    if (status == SIFR_OK) status = sifr_config_create(&config, error);
    if (status == SIFR_OK) status = inspect_with(command, context, &notes, config, error);
    sifr_config_free(config);
    sifr_context_free(context);
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
        {"chat-template-date", CLI_TEXT, "DATE", "as of sifr train", &command.rows.date, NULL,
         false},
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
