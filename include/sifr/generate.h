/* Texts that a model makes: prompts continued, one or several at a time, and conversations.
 *
 *     sifr_generator_options options = {.size = sizeof options, .model = "models/gpt2"};
 *     sifr_generator_open(context, &options, &generator, &error);
 *     sifr_prompt prompt = {.size = sizeof prompt, .text = text, .text_size = strlen(text)};
 *     sifr_generator_add(generator, &prompt, &error);
 *     sifr_generator_run(generator, &(sifr_generate_calls){sizeof(sifr_generate_calls),
 *                                                          .piece = write_piece}, &error);
 *
 * A text comes piece by piece, as it is made. Generation is on the CPU. A generator, and what is
 * made from it, is used by one thread at a time; callbacks are called on that thread, and must not
 * call the generator. Messages name an option by the program's flag: --top-p is top_p.
 */
#ifndef SIFR_GENERATE_H
#define SIFR_GENERATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "sifr/context.h"
#include "sifr/tokenizer.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct sifr_generator sifr_generator;

/* A number behind a pointer wins over the folder's generation_config.json, which counts where the
 * pointer is NULL. All is copied. */
typedef struct sifr_generator_options {
    size_t size;           /* sizeof(sifr_generator_options) */
    const char *model;     /* a model folder, a checkpoint, or the output folder of a run */
    const char *adapter;   /* folder of an adapter; NULL: none */
    const char *precision; /* "fp32", "bf16" or "fp16"; NULL: that of the stored weights */
    int64_t threads;       /* 0: one for each core */

    const double *temperature; /* 0: always the most likely token. Where neither this nor the
                                  folder says: 1 if top_k, top_p, min_p or seed is given, else 0 */
    const int64_t *top_k;      /* the most likely tokens that are drawn among; 0: all */
    const double *top_p;       /* the fewest most likely that have this probability; 1: all */
    const double *min_p;       /* at least this share of the likeliest one's; 0: all */
    const double *repetition_penalty; /* above 1: ids that occurred become less likely */
    const int64_t *seed;              /* of the draws; without: 42 */
    const int64_t *max_new_tokens; /* of a text; where nobody says: 128, in a chat what has room */
    const char *const *stop;       /* [stop_count] texts to end before, in place of the folder's */
    size_t stop_count;
    int64_t samples;    /* texts of each prompt, each drawn by itself; 0: 1 */
    int64_t batch_size; /* texts that are made at a time, for more tokens a second; 0: 1 */
} sifr_generator_options;

enum { SIFR_MOST_SAMPLES = 1 << 20 };

/* Opens a model's files; its weights are read by the first run or chat. The context is borrowed.
 * SIFR_USAGE for an option out of range, and for a model that does not continue texts. */
SIFR_API sifr_status sifr_generator_open(sifr_context *context,
                                         const sifr_generator_options *options,
                                         sifr_generator **out, sifr_error *error) SIFR_MUST_CHECK;
SIFR_API void sifr_generator_free(sifr_generator *generator); /* NULL is harmless */

/* The chat template of its model: an adapter's own comes before the folder's. Free it with
 * sifr_chat_template_free. The options may be NULL. */
SIFR_API sifr_status sifr_generator_template(sifr_generator *generator,
                                             const sifr_chat_template_options *options,
                                             sifr_chat_template **out,
                                             sifr_error *error) SIFR_MUST_CHECK;

typedef struct sifr_prompt {
    size_t size;      /* sizeof(sifr_prompt) */
    const char *text; /* [text_size] UTF-8 */
    size_t text_size;
    bool no_special_tokens; /* leaves out what the tokenizer's post-processor puts around a text */
    /* The text is a user's message, and goes through this template; what is made is the answer. */
    sifr_chat_template *chat;
    /* With `chat`: the text is a JSON array of messages instead, as sifr_chat_template_render reads
     * it. */
    bool messages;
} sifr_prompt;

/* Adds a prompt to those of the next run, behind the others. It is encoded at once, and nothing of
 * it is borrowed. SIFR_USAGE for one that leaves the model no room. */
SIFR_API sifr_status sifr_generator_add(sifr_generator *generator, const sifr_prompt *prompt,
                                        sifr_error *error) SIFR_MUST_CHECK;

/* Removes the prompts that were added: where one of several was refused. */
SIFR_API void sifr_generator_clear(sifr_generator *generator);

typedef enum sifr_generated_end {
    SIFR_END_LENGTH, /* as many tokens as it may have */
    SIFR_END_EOS,    /* the model ended it */
    SIFR_END_STOP    /* a stop text came, which is not part of it */
} sifr_generated_end;

/* A text that is done; there during the callback alone. */
typedef struct sifr_generated {
    size_t size;      /* the library's sizeof(sifr_generated) */
    size_t prompt;    /* number of its prompt, from 0 */
    int64_t sample;   /* of that prompt, from 0 */
    const char *text; /* [text_size], without the prompt */
    size_t text_size;
    const int32_t *ids; /* [prompt_count + id_count]: the prompt's, then the new ones */
    size_t prompt_count, id_count;
    sifr_generated_end end;
    double seconds;
} sifr_generated;

/* The next bytes of a text, whole characters, as soon as they are known. `text` is the number of
 * the text: prompt times samples plus sample; in a chat 0. `error` is never NULL. A status that is
 * not SIFR_OK ends the run, which returns it with the message that was written into `error`. */
typedef sifr_status sifr_take_piece(void *user, size_t text, const char *bytes, size_t size,
                                    sifr_error *error);

/* What a run calls; each may be NULL. What their statuses do, sifr_take_piece says. */
typedef struct sifr_generate_calls {
    size_t size; /* sizeof(sifr_generate_calls) */
    void *user;
    sifr_status (*begins)(void *user, size_t text, sifr_error *error);
    sifr_take_piece *piece; /* several texts take turns where batch_size is above 1 */
    /* In the order of the texts' numbers. */
    sifr_status (*ended)(void *user, const sifr_generated *text, sifr_error *error);
} sifr_generate_calls;

/* Continues all prompts that were added; then there are none, also after an error. Equal prompts,
 * options and numbers of texts give equal texts. The first run takes the memory; a later one takes
 * it anew if it needs more, or makes another number of texts at a time. SIFR_USAGE where no prompt
 * was added. */
SIFR_API sifr_status sifr_generator_run(sifr_generator *generator, const sifr_generate_calls *calls,
                                        sifr_error *error) SIFR_MUST_CHECK;

/* ---- conversations ---- */

typedef struct sifr_chat sifr_chat;

typedef struct sifr_chat_options {
    size_t size;        /* sizeof(sifr_chat_options) */
    const char *system; /* message at the beginning; NULL: none */
    int64_t context;    /* tokens that have room; 0: the model's positions, at most 4096 */
} sifr_chat_options;

/* The generator and the template are borrowed; the generator's samples and batch_size do not act.
 * The options may be NULL. */
SIFR_API sifr_status sifr_chat_open(sifr_generator *generator, sifr_chat_template *chat_template,
                                    const sifr_chat_options *options, sifr_chat **out,
                                    sifr_error *error) SIFR_MUST_CHECK;
SIFR_API void sifr_chat_free(sifr_chat *chat); /* NULL is harmless */

/* Adds a user's message and the model's answer to it, whose pieces `piece` gets; it may be NULL.
 * After an error the conversation is as before. SIFR_USAGE where it has no more room. */
SIFR_API sifr_status sifr_chat_answer(sifr_chat *chat, const char *message, size_t size,
                                      sifr_take_piece *piece, void *user,
                                      sifr_error *error) SIFR_MUST_CHECK;

/* The last answer: it belongs to the chat, until the next call of sifr_chat_answer. */
SIFR_API const char *sifr_chat_last(const sifr_chat *chat, size_t *size);

#ifdef __cplusplus
}
#endif
#endif
