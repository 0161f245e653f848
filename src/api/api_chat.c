#include <stdlib.h>
#include <string.h>

#include "api/api_callback.h"
#include "api/api_chat_template.h"
#include "api/api_context.h"
#include "api/api_generator.h"
#include "base/checked.h"
#include "base/heap.h"
#include "base/inside.h"

/* Tokens of a prompt processed at once, and of a conversation if nobody says. */
enum { CHUNK_TOKENS = 32, CONTEXT = 4096 };

struct sifr_chat {
    sifr_generator *generator;
    const infer_chat_prompt *prompt;
    infer_sequence sequence; /* the conversation, and the answer */
    json_t *messages;
    int64_t context;
    bool beyond;
    /* Of an answer. */
    sifr_take_piece *piece;
    void *user;
};

static sifr_status choose_context(sifr_chat *chat, int64_t given, sifr_error *error) {
    int64_t limit = chat->generator->g.model.folder.config.max_position_embeddings;
    chat->context = given ? given : base_min_i64(CONTEXT, limit);
    if (chat->context < 2 || chat->context > INT32_MAX)
        return base_fail(error, SIFR_USAGE, "--context %lld: must be in 2 … %d",
                         (long long)chat->context, INT32_MAX);
    chat->beyond = chat->context > limit;
    return SIFR_OK;
}

static sifr_status take_memory(const sifr_chat *chat, sifr_error *error) {
    return api_generator_take(chat->generator, 1, base_min_i64(CHUNK_TOKENS, chat->context - 1),
                              chat->context, chat->beyond, error);
}

static sifr_status prepare(sifr_chat *chat, const sifr_chat_options *options, sifr_error *error) {
    BASE_TRY(choose_context(chat, options->context, error));
    chat->messages = json_array();
    if (!chat->messages) return base_fail_alloc(error, 64);
    if (options->system)
        BASE_TRY(infer_chat_add(chat->messages, "system", options->system, strlen(options->system),
                                error));
    return take_memory(chat, error);
}

sifr_status sifr_chat_open(sifr_generator *generator, sifr_chat_template *chat_template,
                           const sifr_chat_options *options, sifr_chat **out, sifr_error *error) {
    BASE_ENTER(error, generator, chat_template, out);
    sifr_chat_options known;
    sifr_chat *chat;
    BASE_TRY(api_take_options("sifr_chat_options", options, sizeof known, &known, error));
    BASE_TRY(base_alloc(1, sizeof *chat, &chat, error));
    chat->generator = generator;
    chat->prompt = &chat_template->prompt;
    sifr_status status = prepare(chat, &known, error);
    if (status == SIFR_OK) *out = chat;
    if (status != SIFR_OK) sifr_chat_free(chat);
    return status;
}

void sifr_chat_free(sifr_chat *chat) {
    BASE_ENTER_VOID(chat);
    json_decref(chat->messages);
    infer_sequence_free(&chat->sequence);
    free(chat);
}

static sifr_status take_piece(void *user, const char *bytes, size_t size, sifr_error *error) {
    const sifr_chat *chat = user;
    return api_called(BASE_OUT(chat->piece(chat->user, 0, bytes, size, error)), error);
}

/* Tokens of the next answer. */
static sifr_status choose_count(const sifr_chat *chat, int64_t *out, sifr_error *error) {
    const infer_generation *g = &chat->generator->g;
    size_t prompt = chat->sequence.ids.count;
    int64_t capacity = chat->context - (int64_t)prompt, count = capacity;
    if (capacity < 1)
        return base_fail(error, SIFR_USAGE,
                         "the conversation has %zu tokens, but the context has room for %lld; "
                         "begin a new one, or give a larger --context",
                         prompt, (long long)chat->context);
    if (g->defaults.max_new_tokens > 0) count = g->defaults.max_new_tokens;
    if (g->max_new >= 0) count = g->max_new;
    *out = base_min_i64(count, capacity);
    return SIFR_OK;
}

static sifr_status answer(sifr_chat *chat, const char *message, size_t size, sifr_error *error) {
    infer_generation *g = &chat->generator->g;
    infer_sequence *q = &chat->sequence;
    BASE_TRY(infer_chat_add(chat->messages, "user", message, size, error));
    BASE_TRY(infer_chat_encode(g, chat->prompt, chat->messages, &q->ids, error));
    BASE_TRY(choose_count(chat, &q->left, error));
    BASE_TRY(take_memory(chat, error)); /* a run of the generator may have had its own */
    q->take = chat->piece ? take_piece : NULL;
    q->user = chat;
    BASE_TRY(infer_generation_run(g, &q, 1, NULL, error));
    return infer_chat_add(chat->messages, "assistant", q->text.count ? q->text.bytes : "",
                          q->text.count, error);
}

sifr_status sifr_chat_answer(sifr_chat *chat, const char *message, size_t size,
                             sifr_take_piece *piece, void *user, sifr_error *error) {
    BASE_ENTER(error, chat);
    BASE_TRY(BASE_GIVEN_FOR(error, size, message));
    size_t before = json_array_size(chat->messages);
    sifr_error own = {0};
    if (!error) error = &own; /* a callback has one */
    chat->piece = piece;
    chat->user = user;
    sifr_status status = answer(chat, message, size, error);
    while (status != SIFR_OK && json_array_size(chat->messages) > before)
        json_array_remove(chat->messages, json_array_size(chat->messages) - 1);
    if (status != SIFR_OK) chat->sequence.text.count = 0;
    return status;
}

const char *sifr_chat_last(const sifr_chat *chat, size_t *size) {
    BASE_ENTER_OR(NULL, chat, size);
    *size = chat->sequence.text.count;
    return *size ? chat->sequence.text.bytes : "";
}
