/* sifr generate: continues texts, token by token. */
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/heap.h"
#include "cli/chat_flags.h"
#include "cli/commands.h"
#include "cli/generation_flags.h"

/* Bytes of a file of prompts. */
enum { FILE_LIMIT = 1 << 28 };

typedef struct generate_command {
    cli_generation_flags flags;
    const char *prompt, *prompts;
    cli_chat_flags with_chat;
    int64_t batch_size, samples;
    bool plain, json, chat;
} generate_command;

typedef struct generate_prompt {
    const char *text;
    size_t size;
} generate_prompt;

typedef struct generate_state {
    const generate_command *command;
    sifr_context *context;
    sifr_generator *generator;
    sifr_chat_template *chat; /* with --chat */
    char *file;               /* that of --prompts */
    generate_prompt *prompts;
    size_t count, capacity;
    bool streams; /* the text is shown as it is made */
} generate_state;

static sifr_status keep_prompt(generate_state *s, const char *text, size_t size,
                               sifr_error *error) {
    BASE_TRY(base_grow(&s->prompts, &s->capacity, s->count + 1, sizeof *s->prompts, error));
    s->prompts[s->count++] = (generate_prompt){text, size};
    return SIFR_OK;
}

/* The prompt of --prompt, or each line of the file of --prompts. */
static sifr_status find_prompts(generate_state *s, sifr_error *error) {
    const generate_command *c = s->command;
    size_t size;
    if (!c->prompt == !c->prompts)
        return base_fail(error, SIFR_USAGE, "give --prompt TEXT or --prompts FILE%s",
                         c->prompt ? ", not both" : "");
    if (c->prompt) return keep_prompt(s, c->prompt, strlen(c->prompt), error);
    BASE_TRY(base_read_file(c->prompts, FILE_LIMIT, &s->file, &size, error));
    for (size_t at = 0; at < size;) {
        char *end = memchr(s->file + at, '\n', size - at);
        size_t next = end ? (size_t)(end - s->file) : size, length = next - at;
        if (length && s->file[at + length - 1] == '\r') length--;
        BASE_TRY(keep_prompt(s, s->file + at, length, error));
        at = next + 1;
    }
    if (s->count) return SIFR_OK;
    return base_fail(error, SIFR_USAGE, "--prompts %s: the file is empty; write a prompt a line",
                     c->prompts);
}

static sifr_status check(const generate_command *c, sifr_error *error) {
    if (c->batch_size == 0)
        return base_fail(error, SIFR_USAGE, "--batch-size 0: must be in 1 … %d", INT32_MAX);
    if (c->samples == 0)
        return base_fail(error, SIFR_USAGE, "--samples 0: must be in 1 … %d", SIFR_MOST_SAMPLES);
    const char *given = cli_chat_given(&c->with_chat);
    if (given && !c->chat)
        return base_fail(error, SIFR_USAGE, "--%s: acts with --chat alone", given);
    return SIFR_OK;
}

static sifr_status prepare(generate_state *s, sifr_error *error) {
    const generate_command *c = s->command;
    sifr_generator_options options = cli_generation_given(&c->flags);
    sifr_chat_template_options chat = cli_chat_options_given(&c->with_chat);
    options.batch_size = c->batch_size;
    options.samples = c->samples;
    BASE_TRY(check(c, error));
    BASE_TRY(find_prompts(s, error));
    BASE_TRY(cli_context("generate", &s->context, error));
    BASE_TRY(sifr_generator_open(s->context, &options, &s->generator, error));
    if (c->chat) BASE_TRY(sifr_generator_template(s->generator, &chat, &s->chat, error));
    for (size_t i = 0; i < s->count; i++) {
        sifr_prompt prompt = {.size = sizeof prompt,
                              .text = s->prompts[i].text,
                              .text_size = s->prompts[i].size,
                              .no_special_tokens = c->plain,
                              .chat = s->chat};
        BASE_TRY(sifr_generator_add(s->generator, &prompt, error));
    }
    bool alone = c->batch_size == 1 || (s->count == 1 && c->samples == 1);
    s->streams = alone && !c->json;
    return SIFR_OK;
}

static json_t *json_ids(const int32_t *ids, size_t count) {
    json_t *array = json_array();
    for (size_t i = 0; array && i < count; i++) json_array_append_new(array, json_integer(ids[i]));
    return array;
}

/* One text is an indented object; of several, each is one line. */
static sifr_status print_json(const generate_state *s, const sifr_generated *made,
                              sifr_error *error) {
    static const char *const ends[] = {
        [SIFR_END_LENGTH] = "length", [SIFR_END_EOS] = "eos", [SIFR_END_STOP] = "stop"};
    const generate_prompt *p = &s->prompts[made->prompt];
    json_t *out =
        json_pack("{s:o?, s:o, s:o, s:o, s:s, s:f, s:f}", "prompt", json_stringn(p->text, p->size),
                  "text", json_stringn(made->text, made->text_size), "prompt_ids",
                  json_ids(made->ids, made->prompt_count), "ids",
                  json_ids(made->ids + made->prompt_count, made->id_count), "stopped_by",
                  ends[made->end], "seconds", made->seconds, "tokens_per_second",
                  made->seconds > 0 ? (double)made->id_count / made->seconds : 0.0);
    if (!out) return base_fail(error, SIFR_NO_MEMORY, "out of memory");
    bool sampled = s->command->samples > 1;
    if (sampled) json_object_set_new(out, "sample", json_integer(made->sample));
    json_dumpf(out, stdout, s->command->prompts || sampled ? JSON_COMPACT : JSON_INDENT(2));
    putchar('\n');
    json_decref(out);
    return SIFR_OK;
}

/* What is to be seen of a text that is done. */
static sifr_status print(void *user, const sifr_generated *made, sifr_error *error) {
    const generate_state *s = user;
    const generate_prompt *p = &s->prompts[made->prompt];
    if (s->command->json) return print_json(s, made, error);
    if (!s->streams && !s->chat) fwrite(p->text, 1, p->size, stdout);
    if (!s->streams) fwrite(made->text, 1, made->text_size, stdout);
    putchar('\n');
    return SIFR_OK;
}

static sifr_status show_prompt(void *user, size_t text, sifr_error *error) {
    const generate_state *s = user;
    const generate_prompt *p = &s->prompts[text / (size_t)s->command->samples];
    return s->chat ? SIFR_OK : cli_write_text(NULL, text, p->text, p->size, error);
}

static sifr_status generate(generate_state *s, sifr_error *error) {
    sifr_generate_calls calls = {.size = sizeof calls,
                                 .user = s,
                                 .begins = s->streams ? show_prompt : NULL,
                                 .piece = s->streams ? cli_write_text : NULL,
                                 .ended = print};
    return sifr_generator_run(s->generator, &calls, error);
}

static int run(generate_command *command) {
    generate_state s = {.command = command};
    sifr_error error = {0};
    sifr_status status = prepare(&s, &error);
    if (status == SIFR_OK) status = generate(&s, &error);
    int code = status == SIFR_OK ? SIFR_OK : cli_fail("generate", &error);
    sifr_generator_free(s.generator);
    sifr_chat_template_free(s.chat);
    sifr_context_free(s.context);
    free(s.prompts);
    free(s.file);
    cli_list_free(&command->flags.stop);
    return code;
}

int cli_generate(int argc, char **argv) {
    static const cli_usage usage = {
        .name = "generate",
        .summary =
            "Continues a text token by token, up to N tokens or one of the model's "
            "end-of-text\ntokens. Options that are not given are taken from "
            "generation_config.json. The same\nseed gives the same texts; those of equal lines "
            "and of one line's samples differ.",
        .example = "sifr generate --model gpt2 --prompt 'In the beginning' --temperature 0.8 "
                   "--top-p 0.95"};
    generate_command command = {.batch_size = 1, .samples = 1};
    generate_command *c = &command;
    cli_option options[7 + CLI_CHAT_OPTIONS + CLI_GENERATION_OPTIONS] = {
        {"prompt", CLI_TEXT, "TEXT", "text to continue", &c->prompt, NULL, false},
        {"prompts", CLI_TEXT, "FILE", "continue each line of this file instead of --prompt",
         &c->prompts, NULL, false},
        {"samples", CLI_COUNT, "N",
         "make N texts of each prompt, each drawn by itself (default: 1); with --json, \"sample\" "
         "counts them from 0",
         &c->samples, NULL, false},
        {"batch-size", CLI_COUNT, "N",
         "make N texts at a time, for more tokens a second (default: 1)", &c->batch_size, NULL,
         false},
        {"chat", CLI_FLAG, NULL,
         "the prompt is a user's message: put it through the model's chat template, and print the "
         "answer alone",
         &c->chat, NULL, false},
        {"no-special-tokens", CLI_FLAG, NULL,
         "leave out the special tokens that the tokenizer's post-processor puts before the text",
         &c->plain, NULL, false},
        {"json", CLI_FLAG, NULL,
         "print one JSON object at the end; with --prompts, one a line for each prompt", &c->json,
         NULL, false},
    };
    int code;
    cli_chat_options(&command.with_chat, options + 7);
    cli_generation_options(&command.flags, options + 7 + CLI_CHAT_OPTIONS);
    if (!cli_parse(&usage, options, sizeof options / sizeof *options, argc, argv, NULL, &code))
        return code;
    return run(&command);
}
