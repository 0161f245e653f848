/* sifr chat: a conversation with a model, line by line. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/checked.h"
#include "cli/chat_flags.h"
#include "cli/commands.h"
#include "cli/generation_flags.h"

/* Tokens of a prompt processed at once, and of a conversation if nobody says. */
enum { CHUNK_TOKENS = 32, CONTEXT = 4096 };

typedef struct chat_command {
    cli_generation_flags flags;
    cli_chat_flags chat;
    const char *system;
    int64_t context;
} chat_command;

typedef struct chat_state {
    const chat_command *command;
    infer_generation g;
    infer_sequence sequence; /* the conversation, and the answer */
    infer_chat_prompt chat;
    json_t *messages;
    int64_t context;
    bool terminal;
    char *line;
} chat_state;

static sifr_status choose_context(chat_state *s, bool *beyond, sifr_error *error) {
    int64_t limit = s->g.model.folder.config.max_position_embeddings;
    s->context = s->command->context ? s->command->context : base_min_i64(CONTEXT, limit);
    if (s->context < 2 || s->context > INT32_MAX)
        return base_fail(error, SIFR_USAGE, "--context %lld: must be in 2 … %d",
                         (long long)s->context, INT32_MAX);
    *beyond = s->context > limit;
    return SIFR_OK;
}

static sifr_status prepare(chat_state *s, sifr_error *error) {
    const chat_command *c = s->command;
    bool beyond;
    BASE_TRY(cli_generation_open(&s->g, &c->flags, "chat", error));
    BASE_TRY(cli_chat_open(&s->g, &c->chat, &s->chat, error));
    BASE_TRY(choose_context(s, &beyond, error));
    s->messages = json_array();
    s->terminal = isatty(STDIN_FILENO) && isatty(STDOUT_FILENO);
    if (c->system)
        BASE_TRY(infer_chat_add(s->messages, "system", c->system, strlen(c->system), error));
    return infer_generation_start(&s->g, 1, base_min_i64(CHUNK_TOKENS, s->context - 1), s->context,
                                  beyond, error);
}

/* One message of the user, and the answer. */
static sifr_status answer(chat_state *s, const char *line, size_t size, sifr_error *error) {
    infer_generation *g = &s->g;
    infer_sequence *q = &s->sequence;
    BASE_TRY(infer_chat_add(s->messages, "user", line, size, error));
    BASE_TRY(infer_chat_encode(g, &s->chat, s->messages, &q->ids, error));
    int64_t room = s->context - (int64_t)q->ids.count, count = room;
    if (room < 1)
        return base_fail(error, SIFR_USAGE,
                         "the conversation has %zu tokens, but the context has room for %lld; "
                         "begin a new one, or give a larger --context",
                         q->ids.count, (long long)s->context);
    if (g->defaults.max_new_tokens > 0) count = g->defaults.max_new_tokens;
    if (s->command->flags.max_new_given) count = s->command->flags.max_new;
    q->left = base_min_i64(count, room);
    q->take = cli_write_text;
    BASE_TRY(infer_generation_run(g, &q, 1, NULL, error));
    putchar('\n');
    if (fflush(stdout) != 0)
        return base_fail(error, SIFR_FAILED, "standard output: writing failed");
    return infer_chat_add(s->messages, "assistant", q->text.count ? q->text.bytes : "",
                          q->text.count, error);
}

/* The next line without its end; -1 at the end of the input. */
static ssize_t read_line(chat_state *s, size_t *room) {
    if (s->terminal) {
        fputs("> ", stdout);
        fflush(stdout);
    }
    ssize_t size = getline(&s->line, room, stdin);
    while (size > 0 && (s->line[size - 1] == '\n' || s->line[size - 1] == '\r')) size--;
    return size;
}

static sifr_status talk(chat_state *s, sifr_error *error) {
    size_t room = 0;
    for (ssize_t size; (size = read_line(s, &room)) >= 0;) {
        if (size > 0) BASE_TRY(answer(s, s->line, (size_t)size, error));
    }
    if (s->terminal) putchar('\n');
    return SIFR_OK;
}

static int run(chat_command *command) {
    chat_state s = {.command = command};
    sifr_error error = {0};
    sifr_status status = prepare(&s, &error);
    if (status == SIFR_OK) status = talk(&s, &error);
    int code = status == SIFR_OK ? SIFR_OK : cli_fail("chat", &error);
    free(s.line);
    json_decref(s.messages);
    infer_chat_close(&s.chat);
    infer_sequence_free(&s.sequence);
    infer_generation_close(&s.g);
    cli_list_free(&command->flags.stop);
    return code;
}

/* The model is an operand, or the value of --model as elsewhere. */
static int take_model(chat_command *command, cli_list *operands) {
    const char **model = &command->flags.read.model;
    if (operands->count + (*model != NULL) != 1)
        return cli_fail_with("chat", SIFR_USAGE, "give one model: `sifr chat DIR`");
    if (!*model) *model = operands->items[0];
    return SIFR_OK;
}

int cli_chat(int argc, char **argv) {
    static const cli_usage usage = {
        .name = "chat",
        .operands = "DIR",
        .summary = "Talks with a chat model. Each line of the terminal, or of a pipe, is a "
                   "message; the\nanswer appears as it is made. Ctrl-D ends. The conversation is "
                   "kept, and goes through\nthe model's chat template.",
        .example = "sifr chat SmolLM2-135M-Instruct --system 'You are terse.' --temperature 0.7"};
    chat_command command = {0};
    cli_option options[2 + CLI_CHAT_OPTIONS + CLI_GENERATION_OPTIONS] = {
        {"system", CLI_TEXT, "TEXT", "system message at the beginning", &command.system, NULL,
         false},
        {"context", CLI_COUNT, "N",
         "room for N tokens of conversation (default: the model's positions, at most 4096)",
         &command.context, NULL, false},
    };
    cli_list operands = {0};
    int code;
    cli_chat_options(&command.chat, options + 2);
    cli_generation_options(&command.flags, options + 2 + CLI_CHAT_OPTIONS);
    for (size_t i = 0; i < sizeof options / sizeof *options; i++) {
        if (options[i].value == &command.flags.read.model) options[i].required = false;
    }
    if (!cli_parse(&usage, options, sizeof options / sizeof *options, argc, argv, &operands, &code))
        return code;
    code = take_model(&command, &operands);
    cli_list_free(&operands);
    if (code == SIFR_OK) return run(&command);
    cli_list_free(&command.flags.stop);
    return code;
}
