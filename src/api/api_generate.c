#include <stdlib.h>
#include <string.h>

#include "api/api_callback.h"
#include "api/api_chat_template.h"
#include "api/api_context.h"
#include "api/api_generator.h"
#include "base/checked.h"
#include "base/clock.h"
#include "base/heap.h"
#include "base/inside.h"

/* The most prompt tokens processed at once. */
enum { CHUNK_TOKENS = 128 };

/* ---- prompts ---- */

static sifr_status encode_chat(const sifr_generator *generator, const sifr_prompt *prompt,
                               text_tokenizer_ids *ids, sifr_error *error) {
    json_t *messages = NULL;
    sifr_status status;
    if (prompt->messages) {
        BASE_TRY(api_read_messages(prompt->text, prompt->text_size, &messages, error));
        status = SIFR_OK;
    } else {
        messages = json_array();
        status = infer_chat_add(messages, "user", prompt->text, prompt->text_size, error);
    }
    if (status == SIFR_OK)
        status = infer_chat_encode(&generator->g, &prompt->chat->prompt, messages, ids, error);
    json_decref(messages);
    return status;
}

static sifr_status copy_ids(const text_tokenizer_ids *from, text_tokenizer_ids *to,
                            sifr_error *error) {
    BASE_TRY(base_grow(&to->ids, &to->capacity, from->count, sizeof *to->ids, error));
    if (from->count) memcpy(to->ids, from->ids, from->count * sizeof *to->ids);
    to->count = from->count;
    return SIFR_OK;
}

/* The ids of a text: those of the one before it where that is a sample of the same prompt. */
static sifr_status encode(const sifr_generator *generator, const sifr_prompt *prompt, api_text *t,
                          sifr_error *error) {
    text_tokenizer_ids *ids = &t->sequence.ids;
    if (t->sample) return copy_ids(&t[-1].sequence.ids, ids, error);
    if (prompt->chat) return encode_chat(generator, prompt, ids, error);
    return infer_generation_encode(&generator->g, prompt->text, prompt->text_size,
                                   !prompt->no_special_tokens, ids, error);
}

static sifr_status add_text(sifr_generator *generator, const sifr_prompt *prompt, int64_t sample,
                            sifr_error *error) {
    size_t index = generator->count, number = generator->prompts;
    BASE_TRY(base_grow(&generator->texts, &generator->capacity, index + 1, sizeof *generator->texts,
                       error));
    api_text *t = &generator->texts[index];
    *t = (api_text){.of = generator,
                    .index = index,
                    .prompt = number,
                    .sample = sample,
                    .sequence = {.draw = (uint64_t)number << 32 | (uint64_t)sample,
                                 .continues = prompt->text_size > 0 && !prompt->chat}};
    generator->count++;
    BASE_TRY(encode(generator, prompt, t, error));
    int64_t size = (int64_t)t->sequence.ids.count;
    BASE_TRY(
        infer_generation_count(&generator->g, size, &t->sequence.left, &generator->beyond, error));
    generator->cache = base_max_i64(generator->cache, size + t->sequence.left);
    return SIFR_OK;
}

sifr_status sifr_generator_add(sifr_generator *generator, const sifr_prompt *prompt,
                               sifr_error *error) {
    BASE_ENTER(error, generator, prompt);
    sifr_prompt known;
    size_t before = generator->count;
    sifr_status status = SIFR_OK;
    BASE_TRY(api_take_options("sifr_prompt", prompt, sizeof known, &known, error));
    if (!known.text && known.text_size)
        return base_fail(error, SIFR_USAGE, "sifr_prompt.text: NULL; give one");
    if (!known.text) known.text = "";
    if (known.messages && !known.chat)
        return base_fail(error, SIFR_USAGE,
                         "sifr_prompt.messages: they are for a chat template; give `chat` too");
    for (int64_t i = 0; status == SIFR_OK && i < generator->samples; i++)
        status = add_text(generator, &known, i, error);
    if (status == SIFR_OK) generator->prompts++;
    while (status != SIFR_OK && generator->count > before)
        infer_sequence_free(&generator->texts[--generator->count].sequence);
    return status;
}

/* A prompt is processed in chunks of one length, and the rest token by token. Chooses the length
 * with the fewest calls. */
static int64_t choose_chunk(const sifr_generator *generator) {
    int64_t best = 1, least = INT64_MAX;
    for (int64_t chunk = 1; chunk <= CHUNK_TOKENS; chunk++) {
        int64_t calls = 0;
        bool used = chunk == 1;
        for (size_t i = 0; i < generator->count; i++) {
            int64_t prompt = (int64_t)generator->texts[i].sequence.ids.count;
            calls += prompt / chunk + prompt % chunk;
            used |= prompt >= chunk;
        }
        if (used && calls <= least) best = chunk, least = calls;
    }
    return best;
}

/* ---- a run ---- */

static sifr_status take_piece(void *user, const char *bytes, size_t size, sifr_error *error) {
    const api_text *t = user;
    const sifr_generate_calls *calls = &t->of->calls;
    return api_called(BASE_OUT(calls->piece(calls->user, t->index, bytes, size, error)), error);
}

static sifr_status begins(void *user, infer_sequence *text, sifr_error *error) {
    const sifr_generate_calls *calls = &((const sifr_generator *)user)->calls;
    api_text *t = text->user;
    t->begun = base_seconds();
    if (!calls->begins) return SIFR_OK;
    return api_called(BASE_OUT(calls->begins(calls->user, t->index, error)), error);
}

static sifr_status tell_end(const sifr_generator *generator, api_text *t, sifr_error *error) {
    static const sifr_generated_end ends[] = {[INFER_END_LENGTH] = SIFR_END_LENGTH,
                                              [INFER_END_EOS] = SIFR_END_EOS,
                                              [INFER_END_STOP] = SIFR_END_STOP};
    const sifr_generate_calls *calls = &generator->calls;
    const infer_sequence *q = &t->sequence;
    sifr_generated made = {.size = sizeof made,
                           .prompt = t->prompt,
                           .sample = t->sample,
                           .text = q->text.count ? q->text.bytes : "",
                           .text_size = q->text.count,
                           .ids = q->ids.ids,
                           .prompt_count = q->prompt_ids,
                           .id_count = q->ids.count - q->prompt_ids,
                           .end = ends[q->end],
                           .seconds = t->seconds};
    if (calls->ended)
        BASE_TRY(api_called(BASE_OUT(calls->ended(calls->user, &made, error)), error));
    infer_sequence_free(&t->sequence);
    t->sequence = (infer_sequence){0};
    return SIFR_OK;
}

/* Ends are told in the order of the texts. */
static sifr_status ended(void *user, infer_sequence *text, sifr_error *error) {
    sifr_generator *generator = user;
    api_text *t = text->user;
    t->seconds = base_seconds() - t->begun;
    t->ended = true;
    for (; generator->told < generator->count && generator->texts[generator->told].ended;
         generator->told++)
        BASE_TRY(tell_end(generator, &generator->texts[generator->told], error));
    return SIFR_OK;
}

static sifr_status run(sifr_generator *generator, sifr_error *error) {
    infer_sequence **texts;
    infer_watch watch = {.begins = begins, .ended = ended, .user = generator};
    int64_t slots = base_min_i64(generator->batch_size, (int64_t)generator->count);
    BASE_TRY(api_generator_take(generator, slots, choose_chunk(generator), generator->cache,
                                generator->beyond, error));
    BASE_TRY(base_alloc(generator->count, sizeof *texts, &texts, error));
    for (size_t i = 0; i < generator->count; i++) {
        texts[i] = &generator->texts[i].sequence;
        texts[i]->user = &generator->texts[i];
        texts[i]->take = generator->calls.piece ? take_piece : NULL;
    }
    generator->told = 0;
    sifr_status status =
        infer_generation_run(&generator->g, texts, generator->count, &watch, error);
    free(texts);
    return status;
}

sifr_status sifr_generator_run(sifr_generator *generator, const sifr_generate_calls *calls,
                               sifr_error *error) {
    BASE_ENTER(error, generator);
    sifr_error own = {0};
    if (!error) error = &own; /* a callback has one */
    BASE_TRY(api_take_options("sifr_generate_calls", calls, sizeof generator->calls,
                              &generator->calls, error));
    if (generator->count == 0)
        return base_fail(error, SIFR_USAGE, "no prompt was added; call sifr_generator_add first");
    sifr_status status = run(generator, error);
    api_generator_clear(generator);
    return status;
}
