/* sifr generate: continues texts, token by token. */
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/heap.h"
#include "cli/chat_flags.h"
#include "cli/commands.h"
#include "cli/generation_flags.h"

/* The most prompt tokens processed at once, bytes of a file of prompts, texts of one prompt. */
enum { CHUNK_TOKENS = 128, FILE_LIMIT = 1 << 28, MOST_SAMPLES = 1 << 20 };

typedef struct generate_command {
    cli_generation_flags flags;
    const char *prompt, *prompts;
    cli_chat_flags with_chat;
    int64_t batch_size, samples;
    bool plain, json, chat;
} generate_command;

/* One text to make: the same prompt stands `samples` times, one behind the other. */
typedef struct generate_prompt {
    const char *text;
    size_t size;
    int64_t sample;
    infer_sequence sequence;
    double begun, seconds;
    bool ended;
} generate_prompt;

typedef struct generate_state {
    const generate_command *command;
    infer_generation g;
    infer_chat_prompt chat; /* with --chat */
    char *file;             /* that of --prompts */
    generate_prompt *prompts;
    size_t count, room, printed;
    bool beyond;   /* more positions than the model was trained with */
    int64_t slots; /* prompts that are continued at a time */
} generate_state;

static sifr_status add_prompt(generate_state *s, const char *text, size_t size, sifr_error *error) {
    uint64_t line = s->count / (uint64_t)s->command->samples;
    for (int64_t i = 0; i < s->command->samples; i++) {
        BASE_TRY(base_grow(&s->prompts, &s->room, s->count + 1, sizeof *s->prompts, error));
        s->prompts[s->count++] = (generate_prompt){
            .text = text, .size = size, .sample = i, .sequence.draw = line << 32 | (uint64_t)i};
    }
    return SIFR_OK;
}

/* The prompt of --prompt, or each line of the file of --prompts. */
static sifr_status find_prompts(generate_state *s, sifr_error *error) {
    const generate_command *c = s->command;
    size_t size;
    if (!c->prompt == !c->prompts)
        return base_fail(error, SIFR_USAGE, "give --prompt TEXT or --prompts FILE%s",
                         c->prompt ? ", not both" : "");
    if (c->prompt) return add_prompt(s, c->prompt, strlen(c->prompt), error);
    BASE_TRY(base_read_file(c->prompts, FILE_LIMIT, &s->file, &size, error));
    for (size_t at = 0; at < size;) {
        char *end = memchr(s->file + at, '\n', size - at);
        size_t next = end ? (size_t)(end - s->file) : size, length = next - at;
        if (length && s->file[at + length - 1] == '\r') length--;
        BASE_TRY(add_prompt(s, s->file + at, length, error));
        at = next + 1;
    }
    if (s->count) return SIFR_OK;
    return base_fail(error, SIFR_USAGE, "--prompts %s: the file is empty; write a prompt a line",
                     c->prompts);
}

static sifr_status copy_ids(const text_tokenizer_ids *from, text_tokenizer_ids *to,
                            sifr_error *error) {
    BASE_TRY(base_grow(&to->ids, &to->room, from->count, sizeof *to->ids, error));
    if (from->count) memcpy(to->ids, from->ids, from->count * sizeof *to->ids);
    to->count = from->count;
    return SIFR_OK;
}

/* The ids of a prompt: those of the text before it where that is a sample of the same prompt. */
static sifr_status encode(const generate_state *s, generate_prompt *p, sifr_error *error) {
    text_tokenizer_ids *ids = &p->sequence.ids;
    if (p->sample) return copy_ids(&p[-1].sequence.ids, ids, error);
    if (!s->command->chat)
        return infer_generation_encode(&s->g, p->text, p->size, !s->command->plain, ids, error);
    json_t *messages = json_array();
    sifr_status status = infer_chat_add(messages, "user", p->text, p->size, error);
    if (status == SIFR_OK) status = infer_chat_encode(&s->g, &s->chat, messages, ids, error);
    json_decref(messages);
    return status;
}

/* A prompt is processed in chunks of one length, and the rest token by token. Chooses the length
 * with the fewest calls. */
static int64_t choose_chunk(const generate_state *s) {
    int64_t best = 1, least = INT64_MAX;
    for (int64_t chunk = 1; chunk <= CHUNK_TOKENS; chunk++) {
        int64_t calls = 0;
        bool used = chunk == 1;
        for (size_t i = 0; i < s->count; i++) {
            int64_t prompt = (int64_t)s->prompts[i].sequence.ids.count;
            calls += prompt / chunk + prompt % chunk;
            used |= prompt >= chunk;
        }
        if (used && calls <= least) best = chunk, least = calls;
    }
    return best;
}

static sifr_status prepare(generate_state *s, sifr_error *error) {
    const generate_command *c = s->command;
    int64_t cache = 1;
    if (c->batch_size < 1 || c->batch_size > INT32_MAX)
        return base_fail(error, SIFR_USAGE, "--batch-size %lld: must be in 1 … %d",
                         (long long)c->batch_size, INT32_MAX);
    const char *given = cli_chat_given(&c->with_chat);
    if (c->samples < 1 || c->samples > MOST_SAMPLES)
        return base_fail(error, SIFR_USAGE, "--samples %lld: must be in 1 … %d",
                         (long long)c->samples, MOST_SAMPLES);
    if (given && !c->chat)
        return base_fail(error, SIFR_USAGE, "--%s: acts with --chat alone", given);
    BASE_TRY(find_prompts(s, error));
    BASE_TRY(cli_generation_open(&s->g, &c->flags, "generate", error));
    if (c->samples > 1 && s->g.sampling.temperature == 0)
        return base_fail(error, SIFR_USAGE,
                         "--samples %lld: at temperature 0 all texts of a prompt are the same; "
                         "give --temperature",
                         (long long)c->samples);
    if (c->chat) BASE_TRY(cli_chat_open(&s->g, &c->with_chat, &s->chat, error));
    for (size_t i = 0; i < s->count; i++) {
        generate_prompt *p = &s->prompts[i];
        BASE_TRY(encode(s, p, error));
        int64_t prompt = (int64_t)p->sequence.ids.count;
        BASE_TRY(infer_generation_count(&s->g, prompt, &p->sequence.left, &s->beyond, error));
        cache = base_max_i64(cache, prompt + p->sequence.left);
        p->sequence.continues = p->size > 0 && !c->chat;
    }
    s->slots = base_min_i64(c->batch_size, (int64_t)s->count);
    return infer_generation_start(&s->g, s->slots, choose_chunk(s), cache, s->beyond, error);
}

static json_t *json_ids(const int32_t *ids, size_t count) {
    json_t *array = json_array();
    for (size_t i = 0; array && i < count; i++) json_array_append_new(array, json_integer(ids[i]));
    return array;
}

/* One text is an indented object; of several, each is one line. */
static sifr_status print_json(const generate_state *s, const generate_prompt *p,
                              sifr_error *error) {
    static const char *const ends[] = {"length", "eos", "stop"};
    const infer_sequence *q = &p->sequence;
    size_t made = q->ids.count - q->prompt_ids;
    json_t *out = json_pack(
        "{s:o?, s:o, s:o, s:o, s:s, s:f, s:f}", "prompt", json_stringn(p->text, p->size), "text",
        json_stringn(q->text.count ? q->text.bytes : "", q->text.count), "prompt_ids",
        json_ids(q->ids.ids, q->prompt_ids), "ids", json_ids(q->ids.ids + q->prompt_ids, made),
        "stopped_by", ends[q->end], "seconds", p->seconds, "tokens_per_second",
        p->seconds > 0 ? (double)made / p->seconds : 0.0);
    if (!out) return base_fail(error, SIFR_NO_MEMORY, "out of memory");
    if (s->command->samples > 1) json_object_set_new(out, "sample", json_integer(p->sample));
    bool several = s->command->prompts || s->command->samples > 1;
    json_dumpf(out, stdout, several ? JSON_COMPACT : JSON_INDENT(2));
    putchar('\n');
    json_decref(out);
    return SIFR_OK;
}

/* What is to be seen of a prompt that is done. */
static sifr_status print(const generate_state *s, generate_prompt *p, sifr_error *error) {
    const generate_command *c = s->command;
    const infer_sequence *q = &p->sequence;
    if (c->json) {
        BASE_TRY(print_json(s, p, error));
    } else {
        if (!q->take && !c->chat) fwrite(p->text, 1, p->size, stdout);
        if (!q->take && q->text.count) fwrite(q->text.bytes, 1, q->text.count, stdout);
        putchar('\n');
    }
    infer_sequence_free(&p->sequence);
    return SIFR_OK;
}

/* Where there is one slot the text is shown as it is made. */
static sifr_status begins(void *user, infer_sequence *text, sifr_error *error) {
    const generate_state *s = user;
    generate_prompt *p = text->user;
    p->begun = base_seconds();
    if (s->slots > 1 || s->command->json) return SIFR_OK;
    text->take = cli_write_text;
    return s->command->chat ? SIFR_OK : cli_write_text(NULL, p->text, p->size, error);
}

/* Texts are printed in the order of their prompts. */
static sifr_status ended(void *user, infer_sequence *text, sifr_error *error) {
    generate_state *s = user;
    generate_prompt *p = text->user;
    p->seconds = base_seconds() - p->begun;
    p->ended = true;
    for (; s->printed < s->count && s->prompts[s->printed].ended; s->printed++)
        BASE_TRY(print(s, &s->prompts[s->printed], error));
    return SIFR_OK;
}

static sifr_status generate(generate_state *s, sifr_error *error) {
    infer_sequence **texts;
    infer_watch watch = {.begins = begins, .ended = ended, .user = s};
    BASE_TRY(base_alloc(s->count, sizeof *texts, &texts, error));
    for (size_t i = 0; i < s->count; i++) {
        texts[i] = &s->prompts[i].sequence;
        texts[i]->user = &s->prompts[i];
    }
    sifr_status status = infer_generation_run(&s->g, texts, s->count, &watch, error);
    free(texts);
    return status;
}

static int run(generate_command *command) {
    generate_state s = {.command = command};
    sifr_error error = {0};
    sifr_status status = prepare(&s, &error);
    if (status == SIFR_OK) status = generate(&s, &error);
    int code = status == SIFR_OK ? SIFR_OK : cli_fail("generate", &error);
    for (size_t i = 0; i < s.count; i++) infer_sequence_free(&s.prompts[i].sequence);
    free(s.prompts);
    free(s.file);
    infer_chat_close(&s.chat);
    infer_generation_close(&s.g);
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
