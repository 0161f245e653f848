#include "infer/generation.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/heap.h"
#include "base/random.h"
#include "data/stream/tokenise.h"
#include "infer/shared_prompt.h"
#include "model/registry.h"

enum { NEW_TOKENS = 128 };

/* How the folder's generation_config.json draws: greedily unless it says do_sample. */
static infer_sampling folder_sampling(const formats_generation_config *file) {
    infer_sampling s = {.top_p = 1, .repetition_penalty = file->repetition_penalty};
    if (!file->do_sample) return s;
    s.temperature = file->temperature;
    s.top_k = file->top_k;
    s.top_p = file->top_p;
    s.min_p = file->min_p;
    return s;
}

sifr_status infer_generation_open(infer_generation *g, const infer_source *source,
                                  const sifr_log *log, sifr_error *error) {
    infer_options options = {.mode = PLAN_GENERATE};
    *g = (infer_generation){.name = source->model, .log = *log, .seed = 42, .max_new = -1};
    BASE_TRY(infer_open_model(source, &g->model, &options, log, error));
    BASE_TRY(formats_generation_config_load(g->model.files, &g->defaults, error));
    BASE_TRY(text_tokenizer_load(g->model.files, &g->tokenizer, error));
    g->sampling = folder_sampling(&g->defaults);
    g->precision = options.precision;
    g->threads = options.threads;
    if (*g->defaults.not_built)
        base_log(log, SIFR_LOG_WARNING, "generation_config.json: not supported yet and ignored: %s",
                 g->defaults.not_built);
    return SIFR_OK;
}

void infer_generation_stop(infer_generation *g) {
    for (int64_t i = 0; g->cached && i < g->slots; i++) text_tokenizer_ids_free(&g->cached[i]);
    free(g->cached);
    free(g->next);
    free(g->positions);
    free(g->running);
    free(g->logits);
    free(g->order);
    infer_shared_close(g);
    infer_free(g->inference);
    g->cached = NULL;
    g->next = g->positions = g->order = NULL;
    g->running = NULL;
    g->logits = NULL;
    g->inference = NULL;
    g->slots = 0;
}

void infer_generation_close(infer_generation *g) {
    infer_generation_stop(g);
    text_tokenizer_free(g->tokenizer);
    checkpoint_model_close(&g->model);
}

void infer_sequence_free(infer_sequence *sequence) {
    text_tokenizer_ids_free(&sequence->ids);
    text_tokenizer_text_free(&sequence->text);
}

static sifr_status push_id(text_tokenizer_ids *ids, int32_t id, sifr_error *error) {
    BASE_TRY(base_grow(&ids->ids, &ids->capacity, ids->count + 1, sizeof *ids->ids, error));
    ids->ids[ids->count++] = id;
    return SIFR_OK;
}

sifr_status infer_generation_encode(const infer_generation *g, const char *text, size_t size,
                                    bool special, text_tokenizer_ids *ids, sifr_error *error) {
    text_tokenizer_scratch *scratch = NULL;
    const model_config *config = &g->model.folder.config;
    BASE_TRY(text_tokenizer_scratch_new(g->tokenizer, &scratch, error));
    sifr_status status =
        text_tokenizer_encode(g->tokenizer, scratch, text, size, special, ids, error);
    uint64_t invalid = text_tokenizer_invalid(scratch);
    text_tokenizer_scratch_free(scratch);
    BASE_TRY(status);
    if (invalid)
        base_log(&g->log, SIFR_LOG_WARNING, "prompt: %llu invalid UTF-8 sequences read as U+FFFD",
                 (unsigned long long)invalid);
    size_t before = 0;
    if (special) text_tokenizer_around(g->tokenizer, false, &before);
    if (special && ids->count > before &&
        data_tokenise_doubles(g->tokenizer, ids->ids + before, ids->count - before))
        base_log(&g->log, SIFR_LOG_WARNING,
                 "prompt: it begins with the token that the tokenizer puts before it too; give "
                 "--no-special-tokens");
    if (ids->count) return SIFR_OK;
    int64_t first = g->defaults.bos_token_id; /* an empty prompt */
    if (first < 0) first = config->bos_token_id;
    if (first < 0 && config->eos_count) first = config->eos_token_ids[0];
    if (first < 0 || first > INT32_MAX)
        return base_fail(
            error, SIFR_USAGE,
            "the prompt is empty, and the model has no begin-of-text token; give a prompt");
    return push_id(ids, (int32_t)first, error);
}

/* The number of new tokens if the caller gives none; below 1 if the prompt already has the longest
 * length allowed. */
static int64_t default_count(const infer_generation *g, int64_t prompt) {
    if (g->defaults.max_new_tokens > 0) return g->defaults.max_new_tokens;
    if (g->defaults.max_length > 0) return g->defaults.max_length - prompt;
    return NEW_TOKENS;
}

sifr_status infer_generation_count(const infer_generation *g, int64_t prompt, int64_t *count,
                                   bool *beyond, sifr_error *error) {
    bool given = g->max_new >= 0;
    int64_t limit = g->model.folder.config.max_position_embeddings;
    bool learned = model_architecture_find(g->model.folder.config.model_type)->learned_positions;
    if (prompt >= limit && learned)
        return base_fail(error, SIFR_USAGE,
                         "the prompt has %lld tokens, but the model has only %lld positions; give "
                         "a shorter prompt",
                         (long long)prompt, (long long)limit);
    *count = given ? g->max_new : default_count(g, prompt);
    if (*count < 1 && !given)
        return base_fail(error, SIFR_USAGE,
                         "the prompt has %lld tokens, and \"max_length\" of generation_config.json "
                         "is %lld; give --max-new-tokens",
                         (long long)prompt, (long long)g->defaults.max_length);
    if (!given && prompt < limit) *count = base_min_i64(*count, limit - prompt);
    if (*count <= limit - prompt) return SIFR_OK;
    if (learned || *count > INT32_MAX / 2)
        return base_fail(error, SIFR_USAGE,
                         "--max-new-tokens %lld: after a prompt of %lld tokens the model has "
                         "positions for %lld more; give at most that",
                         (long long)*count, (long long)prompt, (long long)(limit - prompt));
    *beyond = true;
    return SIFR_OK;
}

static sifr_status take_slots(infer_generation *g, int64_t slots, sifr_error *error) {
    size_t count = (size_t)slots;
    g->words = infer_words(g->inference);
    BASE_TRY(base_alloc(count, sizeof *g->cached, &g->cached, error));
    g->slots = slots;
    BASE_TRY(base_alloc(count, sizeof *g->next, &g->next, error));
    BASE_TRY(base_alloc(count, sizeof *g->positions, &g->positions, error));
    BASE_TRY(base_alloc(count, sizeof *g->running, &g->running, error));
    BASE_TRY(base_alloc(count, (size_t)g->words * sizeof *g->logits, &g->logits, error));
    BASE_TRY(base_alloc((size_t)g->words, sizeof *g->order, &g->order, error));
    return infer_shared_open(g, error);
}

sifr_status infer_generation_start(infer_generation *g, int64_t slots, int64_t chunk, int64_t cache,
                                   bool beyond, sifr_error *error) {
    infer_options options = {.mode = PLAN_GENERATE,
                             .precision = g->precision,
                             .threads = g->threads,
                             .sequences = slots,
                             .length = chunk,
                             .cache_length = cache};
    BASE_TRY(infer_create(g->model.folder.model, &options, &g->inference, error));
    BASE_TRY(infer_fill(g->inference, checkpoint_model_values, &g->model, error));
    engine_folder_warn(&g->model.folder, &g->log);
    if (beyond)
        base_log(&g->log, SIFR_LOG_WARNING,
                 "%lld tokens are more than the %lld positions that %s was trained with",
                 (long long)cache, (long long)g->model.folder.config.max_position_embeddings,
                 g->name);
    g->chunk = chunk;
    return take_slots(g, slots, error);
}

/* ---- the loop over tokens ---- */

/* A number in [0, 1) that depends only on the seed, the text and the token's position. */
static double random_at(uint64_t seed, uint64_t text, size_t position) {
    base_random4 r = base_philox(seed, position, text);
    return (double)(((uint64_t)r.v[0] << 32 | r.v[1]) >> 11) * 0x1p-53;
}

static bool all_finite(const float *values, int64_t count) {
    bool finite = true;
    for (int64_t i = 0; i < count; i++) finite &= fabsf(values[i]) <= FLT_MAX;
    return finite;
}

static sifr_status choose(infer_generation *g, const infer_sequence *q, int32_t *id,
                          sifr_error *error) {
    int64_t tokens = text_tokenizer_vocab_size(g->tokenizer);
    float *logits = g->logits + q->slot * g->words;
    /* Rows that only pad the vocabulary are not tokens. */
    for (int64_t w = tokens; w < g->words; w++) logits[w] = -INFINITY;
    if (!all_finite(logits, base_min_i64(g->words, tokens)))
        return base_fail(error, SIFR_FAILED,
                         "%s: the model's output is not finite after %zu tokens; its weights are "
                         "damaged, or out of the range of 16 bits (try --precision fp32)",
                         g->name, q->ids.count);
    infer_penalize(logits, g->words, q->ids.ids, q->ids.count, g->sampling.repetition_penalty,
                   g->order);
    *id = infer_sample(logits, g->words, g->order, &g->sampling,
                       random_at(g->seed, q->draw, q->ids.count));
    return SIFR_OK;
}

static bool is_among(const int64_t *ids, int count, int32_t id) {
    for (int i = 0; i < count; i++) {
        if (ids[i] == id) return true;
    }
    return false;
}

/* End-of-text ids: from generation_config.json, else from config.json, else from the tokenizer. */
static bool ends_text(const infer_generation *g, int32_t id) {
    const model_config *config = &g->model.folder.config;
    if (g->defaults.eos_count)
        return is_among(g->defaults.eos_token_ids, g->defaults.eos_count, id);
    if (config->eos_count) return is_among(config->eos_token_ids, config->eos_count, id);
    return id == text_tokenizer_eos(g->tokenizer);
}

/* The stop string number i: the caller's, or else the file's; NULL past the last. */
static const char *stop_string(const infer_generation *g, size_t i) {
    if (g->stop_count) return i < g->stop_count ? g->stop[i] : NULL;
    return i < (size_t)g->defaults.stop_count ? g->defaults.stop_strings[i] : NULL;
}

/* Cuts the text at the first stop string, which ends at byte `from` or later. */
static bool cut_at_stop(const infer_generation *g, text_tokenizer_text *text, size_t from) {
    size_t least = text->count;
    bool found = false;
    const char *stop;
    for (size_t i = 0; (stop = stop_string(g, i)) != NULL; i++) {
        size_t size = strlen(stop), at = from > size ? from - size : 0;
        for (; at + size <= text->count && at <= least; at++) {
            if (memcmp(text->bytes + at, stop, size) != 0) continue;
            found = true;
            least = at;
            break;
        }
    }
    if (found) text->count = least;
    return found;
}

/* Bytes at the end of the text that may be the beginning of a stop string: they wait. */
static size_t waiting(const infer_generation *g, const text_tokenizer_text *text) {
    size_t most = 0;
    const char *stop;
    for (size_t i = 0; (stop = stop_string(g, i)) != NULL; i++) {
        size_t part = strlen(stop) - 1;
        if (part > text->count) part = text->count;
        for (; part > most; part--) {
            if (memcmp(text->bytes + text->count - part, stop, part) == 0) most = part;
        }
    }
    return most;
}

/* Hands on the text up to byte `end`. */
static sifr_status hand_on(infer_sequence *q, size_t end, sifr_error *error) {
    size_t from = q->told;
    if (!q->take || end <= from) return SIFR_OK;
    q->told = end;
    return q->take(q->user, q->text.bytes + from, end - from, error);
}

static sifr_status finish(infer_sequence *q, sifr_error *error) {
    q->done = true;
    if (q->end != INFER_END_STOP) BASE_TRY(text_tokenizer_stream_end(&q->stream, &q->text, error));
    return hand_on(q, q->text.count, error);
}

/* Chooses the next token by the logits of the sequence's slot. */
static sifr_status take_token(infer_generation *g, infer_sequence *q, sifr_error *error) {
    size_t before = q->text.count;
    int32_t id;
    BASE_TRY(choose(g, q, &id, error));
    BASE_TRY(push_id(&q->ids, id, error));
    q->left--;
    if (ends_text(g, id)) q->end = INFER_END_EOS;
    if (q->end == INFER_END_EOS) return finish(q, error);
    if (!text_tokenizer_is_special(g->tokenizer, id))
        BASE_TRY(text_tokenizer_stream_push(g->tokenizer, &q->stream, id, &q->text, error));
    if (cut_at_stop(g, &q->text, before)) q->end = INFER_END_STOP;
    if (q->end == INFER_END_STOP || q->left == 0) return finish(q, error);
    return hand_on(q, q->text.count - waiting(g, &q->text), error);
}

/* Puts the prompt into the cache and makes the first token. */
static sifr_status begin(infer_generation *g, infer_sequence *q, sifr_error *error) {
    q->stream = (text_tokenizer_stream){.started = q->continues};
    q->prompt_ids = q->ids.count;
    q->text.count = q->told = 0;
    q->end = INFER_END_LENGTH;
    q->done = false;
    if (q->left < 1) return finish(q, error);
    BASE_TRY(infer_shared_fill(g, q, error));
    return take_token(g, q, error);
}

static sifr_status advance_one(infer_generation *g, const infer_sequence *q, sifr_error *error) {
    text_tokenizer_ids *cached = &g->cached[q->slot];
    int32_t id = q->ids.ids[q->ids.count - 1];
    BASE_TRY(infer_append(g->inference, q->slot, &id, 1, (int64_t)cached->count,
                          g->logits + q->slot * g->words, error));
    return push_id(cached, id, error);
}

/* An empty slot, and one whose sequence is done, writes where its cache has nothing to keep. */
static sifr_status advance_all(infer_generation *g, sifr_error *error) {
    infer_sequence *const *of = g->running;
    for (int64_t i = 0; i < g->slots; i++) {
        bool active = of[i] && !of[i]->done;
        if (!active) g->cached[i].count = 0;
        g->positions[i] = (int32_t)g->cached[i].count;
        g->next[i] = active ? of[i]->ids.ids[of[i]->ids.count - 1] : 0;
        if (active) BASE_TRY(push_id(&g->cached[i], g->next[i], error));
    }
    return infer_advance(g->inference, g->next, g->positions, g->logits, error);
}

/* Makes a token of each sequence that is not done. */
static sifr_status advance(infer_generation *g, sifr_error *error) {
    infer_sequence *const *of = g->running;
    if (g->slots > 1)
        BASE_TRY(advance_all(g, error));
    else if (of[0] && !of[0]->done)
        BASE_TRY(advance_one(g, of[0], error));
    for (int64_t i = 0; i < g->slots; i++) {
        if (of[i] && !of[i]->done) BASE_TRY(take_token(g, of[i], error));
    }
    return SIFR_OK;
}

static sifr_status take_slot(infer_generation *g, infer_sequence *q, int64_t slot,
                             const infer_watch *watch, sifr_error *error) {
    g->running[slot] = q;
    q->slot = slot;
    if (watch) BASE_TRY(watch->begins(watch->user, q, error));
    return begin(g, q, error);
}

static sifr_status run_texts(infer_generation *g, infer_sequence *const *texts, size_t count,
                             const infer_watch *watch, sifr_error *error) {
    size_t begun = 0, ended = 0;
    while (ended < count) {
        for (int64_t i = 0; i < g->slots && begun < count; i++)
            if (!g->running[i]) BASE_TRY(take_slot(g, texts[begun++], i, watch, error));
        BASE_TRY(advance(g, error));
        for (int64_t i = 0; i < g->slots; i++) {
            infer_sequence *q = g->running[i];
            if (!q || !q->done) continue;
            g->running[i] = NULL;
            ended++;
            if (watch) BASE_TRY(watch->ended(watch->user, q, error));
        }
    }
    return SIFR_OK;
}

sifr_status infer_generation_run(infer_generation *g, infer_sequence *const *texts, size_t count,
                                 const infer_watch *watch, sifr_error *error) {
    sifr_status status = run_texts(g, texts, count, watch, error);
    for (int64_t i = 0; status != SIFR_OK && i < g->slots; i++) {
        g->running[i] = NULL;
        g->cached[i].count = 0; /* it may have less than it says */
    }
    return status;
}
