/* sifr chat: a conversation with a model, line by line. */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "cli/chat_flags.h"
#include "cli/commands.h"
#include "cli/generation_flags.h"

typedef struct chat_command {
    cli_generation_flags flags;
    cli_chat_flags chat;
    const char *system;
    int64_t context;
} chat_command;

typedef struct chat_state {
    const chat_command *command;
    sifr_context *context;
    sifr_generator *generator;
    sifr_chat_template *chat_template;
    sifr_chat *chat;
    bool terminal;
    char *line;
} chat_state;

static sifr_status prepare(chat_state *s, sifr_error *error) {
    const chat_command *c = s->command;
    sifr_generator_options model = cli_generation_given(&c->flags);
    sifr_chat_template_options given = cli_chat_options_given(&c->chat);
    sifr_chat_options options = {
        .size = sizeof options, .system = c->system, .context = c->context};
    BASE_TRY(cli_context("chat", &s->context, error));
    BASE_TRY(sifr_generator_open(s->context, &model, &s->generator, error));
    BASE_TRY(sifr_generator_template(s->generator, &given, &s->chat_template, error));
    s->terminal = isatty(STDIN_FILENO) && isatty(STDOUT_FILENO);
    return sifr_chat_open(s->generator, s->chat_template, &options, &s->chat, error);
}

/* One message of the user, and the answer. */
static sifr_status answer(chat_state *s, const char *line, size_t size, sifr_error *error) {
    BASE_TRY(sifr_chat_answer(s->chat, line, size, cli_write_text, NULL, error));
    putchar('\n');
    if (fflush(stdout) == 0) return SIFR_OK;
    return base_fail(error, SIFR_FAILED, "standard output: writing failed");
}

/* The next line without its end; -1 at the end of the input. */
static ssize_t read_line(chat_state *s, size_t *capacity) {
    if (s->terminal) {
        fputs("> ", stdout);
        fflush(stdout);
    }
    ssize_t size = getline(&s->line, capacity, stdin);
    while (size > 0 && (s->line[size - 1] == '\n' || s->line[size - 1] == '\r')) size--;
    return size;
}

static sifr_status talk(chat_state *s, sifr_error *error) {
    size_t capacity = 0;
    for (ssize_t size; (size = read_line(s, &capacity)) >= 0;) {
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
    sifr_chat_free(s.chat);
    sifr_chat_template_free(s.chat_template);
    sifr_generator_free(s.generator);
    sifr_context_free(s.context);
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
