/* sifr generate: continues a text, token by token. */
#include <float.h>
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/clock.h"
#include "base/heap.h"
#include "base/random.h"
#include "cli/commands.h"
#include "cli/read_model.h"
#include "formats/generation_config.h"
#include "formats/tokenizer/tokenizer.h"
#include "model/registry.h"
#include "train/monitor.h"

/* The default number of new tokens, and the most prompt tokens processed at once. */
enum { NEW_TOKENS = 128, CHUNK_TOKENS = 128 };

typedef struct generate_command {
    cli_read_model read;
    const char *prompt;
    int64_t max_new, top_k, seed;
    double temperature, top_p;
    bool max_new_given, temperature_given, top_k_given, top_p_given, seed_given, plain, json;
} generate_command;

typedef struct generate_state {
    const generate_command *command;
    checkpoint_model model;
    formats_generation_config defaults; /* the folder's; flags win */
    engine_inference *inference;
    formats_tokenizer *tokenizer;
    formats_tokenizer_stream stream;
    formats_tokenizer_text text;
    formats_tokenizer_ids ids; /* ids of the prompt, followed by new ones */
    size_t prompt_ids;
    float *logits;
    int32_t *order;
    int64_t words, max_new, top_k;
    double temperature, top_p, seconds;
    bool beyond; /* more positions than the model was trained with */
    bool ended;  /* by an end-of-text token */
} generate_state;

static sifr_status check(const generate_command *c, sifr_error *error) {
    if (c->temperature_given && !(c->temperature >= 0 && c->temperature <= 1e6))
        return base_fail(error, SIFR_USAGE,
                         "--temperature %g: must be 0 (always the most likely token) or more",
                         c->temperature);
    if (!(c->top_p > 0 && c->top_p <= 1))
        return base_fail(error, SIFR_USAGE,
                         "--top-p %g: must be a probability above 0 and at most 1", c->top_p);
    if (c->temperature_given && c->temperature == 0 && (c->top_k_given || c->top_p_given))
        return base_fail(error, SIFR_USAGE,
                         "--temperature 0 always takes the most likely token, so --top-k and "
                         "--top-p have no meaning; give a higher temperature, or leave them out");
    return SIFR_OK;
}

static sifr_status encode_prompt(generate_state *g, sifr_error *error) {
    formats_tokenizer_scratch *scratch = NULL;
    const generate_command *c = g->command;
    const model_config *config = &g->model.folder.config;
    BASE_TRY(formats_tokenizer_load(g->model.files, &g->tokenizer, error));
    BASE_TRY(formats_tokenizer_scratch_new(g->tokenizer, &scratch, error));
    sifr_status status = formats_tokenizer_encode(g->tokenizer, scratch, c->prompt,
                                                  strlen(c->prompt), !c->plain, &g->ids, error);
    uint64_t invalid = formats_tokenizer_invalid(scratch);
    formats_tokenizer_scratch_free(scratch);
    BASE_TRY(status);
    g->stream.started = g->ids.count > 0; /* what comes goes on with the prompt's text */
    sifr_log log = cli_log("generate");
    if (invalid)
        base_log(&log, SIFR_LOG_WARNING, "prompt: %llu invalid UTF-8 sequences read as U+FFFD",
                 (unsigned long long)invalid);
    if (g->ids.count == 0) { /* an empty prompt: begin with the begin-of-text token */
        int64_t first = g->defaults.bos_token_id;
        if (first < 0) first = config->bos_token_id;
        if (first < 0 && config->eos_count) first = config->eos_token_ids[0];
        if (first < 0 || first > INT32_MAX)
            return base_fail(
                error, SIFR_USAGE,
                "the prompt is empty, and the model has no begin-of-text token; give a prompt");
        BASE_TRY(base_grow(&g->ids.ids, &g->ids.room, 1, sizeof *g->ids.ids, error));
        g->ids.ids[g->ids.count++] = (int32_t)first;
    }
    g->prompt_ids = g->ids.count;
    return SIFR_OK;
}

/* The number of new tokens if no flag gives it; below 1 if the prompt already has the longest
 * length allowed. */
static int64_t default_count(const generate_state *g) {
    if (g->defaults.max_new_tokens > 0) return g->defaults.max_new_tokens;
    if (g->defaults.max_length > 0) return g->defaults.max_length - (int64_t)g->prompt_ids;
    return NEW_TOKENS;
}

/* Sampling settings: from a flag, else from generation_config.json, else greedy. */
static void choose_sampling(generate_state *g) {
    const generate_command *c = g->command;
    const formats_generation_config *file = &g->defaults;
    bool asked = c->top_k_given || c->top_p_given || c->seed_given;
    g->temperature = file->do_sample ? file->temperature : asked ? 1 : 0;
    if (c->temperature_given) g->temperature = c->temperature;
    g->top_k = c->top_k_given ? c->top_k : file->do_sample ? file->top_k : 0;
    g->top_p = c->top_p_given ? c->top_p : file->do_sample ? file->top_p : 1;
}

static sifr_status choose_count(generate_state *g, sifr_error *error) {
    const generate_command *c = g->command;
    int64_t limit = g->model.folder.config.max_position_embeddings, prompt = (int64_t)g->prompt_ids;
    bool learned = model_architecture_find(g->model.folder.config.model_type)->learned_positions;
    if (prompt >= limit && learned)
        return base_fail(error, SIFR_USAGE,
                         "the prompt has %lld tokens, but the model has only %lld positions; give "
                         "a shorter prompt",
                         (long long)prompt, (long long)limit);
    g->max_new = c->max_new_given ? c->max_new : default_count(g);
    if (g->max_new < 1 && !c->max_new_given)
        return base_fail(error, SIFR_USAGE,
                         "the prompt has %lld tokens, and \"max_length\" of generation_config.json "
                         "is %lld; give --max-new-tokens",
                         (long long)prompt, (long long)g->defaults.max_length);
    if (!c->max_new_given && prompt < limit) g->max_new = base_min_i64(g->max_new, limit - prompt);
    if (g->max_new <= limit - prompt) return SIFR_OK;
    if (learned || g->max_new > INT32_MAX / 2)
        return base_fail(error, SIFR_USAGE,
                         "--max-new-tokens %lld: after a prompt of %lld tokens the model has "
                         "positions for %lld more; give at most that",
                         (long long)g->max_new, (long long)prompt, (long long)(limit - prompt));
    g->beyond = true;
    return SIFR_OK;
}

/* A prompt is processed in chunks of one length, and the rest token by token. Chooses the length
 * with the fewest calls. */
static int64_t choose_chunk(int64_t prompt) {
    int64_t best = 1, rounds = prompt;
    for (int64_t chunk = 2; chunk <= CHUNK_TOKENS && chunk <= prompt; chunk++) {
        int64_t now = prompt / chunk + prompt % chunk;
        if (now <= rounds) best = chunk, rounds = now;
    }
    return best;
}

static sifr_status prepare(generate_state *g, sifr_error *error) {
    const generate_command *c = g->command;
    engine_inference_options options = {.mode = PLAN_GENERATE, .sequences = 1};
    sifr_log log = cli_log("generate");
    BASE_TRY(check(c, error));
    BASE_TRY(cli_read_model_open(&c->read, &g->model, &options, &log, error));
    BASE_TRY(formats_generation_config_load(g->model.files, &g->defaults, error));
    BASE_TRY(encode_prompt(g, error));
    BASE_TRY(choose_count(g, error));
    options.length = choose_chunk((int64_t)g->prompt_ids);
    options.cache_length = (int64_t)g->prompt_ids + g->max_new;
    BASE_TRY(engine_inference_create(g->model.folder.model, &options, &g->inference, error));
    engine_inference_fill(g->inference, checkpoint_model_values, &g->model);
    engine_folder_warn(&g->model.folder, &log);
    if (g->beyond)
        base_log(&log, SIFR_LOG_WARNING,
                 "%lld tokens are more than the %lld positions that %s was trained with",
                 (long long)options.cache_length,
                 (long long)g->model.folder.config.max_position_embeddings, c->read.model);
    g->words = engine_inference_words(g->inference);
    choose_sampling(g);
    if (*g->defaults.not_built)
        base_log(&log, SIFR_LOG_WARNING,
                 "generation_config.json: not supported yet and ignored: %s",
                 g->defaults.not_built);
    BASE_TRY(base_alloc((size_t)g->words, sizeof *g->logits, &g->logits, error));
    return base_alloc((size_t)g->words, sizeof *g->order, &g->order, error);
}

/* A number in [0, 1) that depends only on the seed and the token's position. */
static double random_at(uint64_t seed, size_t position) {
    base_random4 r = base_philox(seed, position, 0);
    return (double)(((uint64_t)r.v[0] << 32 | r.v[1]) >> 11) * 0x1p-53;
}

static bool all_finite(const float *values, int64_t count) {
    bool finite = true;
    for (int64_t i = 0; i < count; i++) finite &= fabsf(values[i]) <= FLT_MAX;
    return finite;
}

static sifr_status choose(generate_state *g, int32_t *id, sifr_error *error) {
    const generate_command *c = g->command;
    int64_t tokens = formats_tokenizer_vocab_size(g->tokenizer);
    /* Rows that only pad the vocabulary are not tokens. */
    for (int64_t w = tokens; w < g->words; w++) g->logits[w] = -INFINITY;
    if (!all_finite(g->logits, base_min_i64(g->words, tokens)))
        return base_fail(error, SIFR_FAILED,
                         "%s: the model's output is not finite after %zu tokens; its weights are "
                         "damaged, or out of the range of 16 bits (try --precision fp32)",
                         c->read.model, g->ids.count);
    *id = engine_sample(g->logits, g->words, g->order, g->temperature, g->top_k, g->top_p,
                        random_at((uint64_t)c->seed, g->ids.count));
    return SIFR_OK;
}

static bool is_among(const int64_t *ids, int count, int32_t id) {
    for (int i = 0; i < count; i++) {
        if (ids[i] == id) return true;
    }
    return false;
}

/* End-of-text ids: from generation_config.json, else from config.json, else from the tokenizer. */
static bool ends_text(const generate_state *g, int32_t id) {
    const model_config *config = &g->model.folder.config;
    if (g->defaults.eos_count)
        return is_among(g->defaults.eos_token_ids, g->defaults.eos_count, id);
    if (config->eos_count) return is_among(config->eos_token_ids, config->eos_count, id);
    return id == formats_tokenizer_eos(g->tokenizer);
}

/* Writes the new part of the text. */
static sifr_status show(generate_state *g, size_t *shown, sifr_error *error) {
    if (g->command->json) return SIFR_OK;
    fwrite(g->text.bytes + *shown, 1, g->text.count - *shown, stdout);
    *shown = g->text.count;
    if (fflush(stdout) == 0) return SIFR_OK;
    return base_fail(error, SIFR_FAILED, "standard output: writing failed");
}

static sifr_status generate(generate_state *g, sifr_error *error) {
    size_t shown = 0;
    double start = base_seconds();
    if (!g->command->json) printf("%s", g->command->prompt);
    if (g->max_new > 0)
        BASE_TRY(engine_inference_append(g->inference, g->ids.ids, (int64_t)g->prompt_ids, 0,
                                         g->logits, error));
    for (int64_t n = 0; n < g->max_new; n++) {
        int32_t id;
        BASE_TRY(choose(g, &id, error));
        BASE_TRY(base_grow(&g->ids.ids, &g->ids.room, g->ids.count + 1, sizeof *g->ids.ids, error));
        g->ids.ids[g->ids.count++] = id;
        g->ended = ends_text(g, id);
        if (g->ended) break;
        if (!formats_tokenizer_is_special(g->tokenizer, id))
            BASE_TRY(formats_tokenizer_stream_push(g->tokenizer, &g->stream, id, &g->text, error));
        BASE_TRY(show(g, &shown, error));
        if (n + 1 < g->max_new)
            BASE_TRY(engine_inference_append(g->inference, &id, 1, (int64_t)g->ids.count - 1,
                                             g->logits, error));
    }
    BASE_TRY(formats_tokenizer_stream_end(&g->stream, &g->text, error));
    BASE_TRY(show(g, &shown, error));
    g->seconds = base_seconds() - start;
    return SIFR_OK;
}

static json_t *json_ids(const int32_t *ids, size_t count) {
    json_t *array = json_array();
    for (size_t i = 0; array && i < count; i++) json_array_append_new(array, json_integer(ids[i]));
    return array;
}

static int print_json(const generate_state *g) {
    size_t made = g->ids.count - g->prompt_ids;
    json_t *out = json_pack(
        "{s:o?, s:o, s:o, s:o, s:s, s:f, s:f}", "prompt", json_string(g->command->prompt), "text",
        json_stringn(g->text.count ? g->text.bytes : "", g->text.count), "prompt_ids",
        json_ids(g->ids.ids, g->prompt_ids), "ids", json_ids(g->ids.ids + g->prompt_ids, made),
        "stopped_by", g->ended ? "eos" : "length", "seconds", g->seconds, "tokens_per_second",
        g->seconds > 0 ? (double)made / g->seconds : 0.0);
    if (!out) return cli_fail_with("generate", SIFR_NO_MEMORY, "out of memory");
    json_dumpf(out, stdout, JSON_INDENT(2));
    putchar('\n');
    json_decref(out);
    return SIFR_OK;
}

static int run(const generate_command *command) {
    generate_state g = {.command = command};
    sifr_error error = {0};
    int code = SIFR_OK;
    sifr_status status = prepare(&g, &error);
    if (status == SIFR_OK) status = generate(&g, &error);
    if (status != SIFR_OK)
        code = cli_fail("generate", &error);
    else if (command->json)
        code = print_json(&g);
    else
        putchar('\n');
    free(g.logits);
    free(g.order);
    formats_tokenizer_ids_free(&g.ids);
    formats_tokenizer_text_free(&g.text);
    formats_tokenizer_free(g.tokenizer);
    engine_inference_free(g.inference);
    checkpoint_model_close(&g.model);
    return code;
}

int cli_generate(int argc, char **argv) {
    static const cli_usage usage = {
        .name = "generate",
        .summary = "Continues a text token by token, up to N tokens or one of the model's "
                   "end-of-text\ntokens. Options that are not given are taken from "
                   "generation_config.json. The same\nseed gives the same text.",
        .example = "sifr generate --model gpt2 --prompt 'In the beginning' --temperature 0.8 "
                   "--top-p 0.95"};
    generate_command command = {.top_p = 1, .seed = 42};
    generate_command *c = &command;
    cli_option options[CLI_READ_MODEL_OPTIONS + 8] = {
        {"prompt", CLI_TEXT, "TEXT", "text to continue", &c->prompt, NULL, true},
        {"max-new-tokens", CLI_COUNT, "N",
         "most tokens to generate (default: max_new_tokens or max_length of "
         "generation_config.json, otherwise 128)",
         &c->max_new, &c->max_new_given, false},
        {"temperature", CLI_NUMBER, "X",
         "0: always the most likely token; higher: more random (default: that of "
         "generation_config.json if it sets do_sample; otherwise 0, or 1 if --top-k, --top-p or "
         "--seed is given)",
         &c->temperature, &c->temperature_given, false},
        {"top-k", CLI_COUNT, "N",
         "choose among the N most likely tokens; 0: all (default: that of generation_config.json, "
         "otherwise all)",
         &c->top_k, &c->top_k_given, false},
        {"top-p", CLI_NUMBER, "X",
         "choose among the fewest most likely tokens with total probability X; 1: all (default: "
         "that of generation_config.json, otherwise all)",
         &c->top_p, &c->top_p_given, false},
        {"seed", CLI_COUNT, "N", "seed of the random numbers (default: 42)", &c->seed,
         &c->seed_given, false},
        {"no-special-tokens", CLI_FLAG, NULL,
         "leave out the special tokens that the tokenizer's post-processor puts before the text",
         &c->plain, NULL, false},
        {"json", CLI_FLAG, NULL, "print one JSON object at the end", &c->json, NULL, false},
    };
    int code;
    cli_read_model_options(&command.read, options + 8);
    if (!cli_parse(&usage, options, sizeof options / sizeof *options, argc, argv, NULL, &code))
        return code;
    return run(&command);
}
