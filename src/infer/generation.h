/* Texts that a model continues: a model that is open for generation, and the loop over tokens.
 * Texts are handed to the caller piece by piece, as they are made. */
#ifndef INFER_GENERATION_H
#define INFER_GENERATION_H

#include "formats/generation_config.h"
#include "infer/open_model.h"
#include "text/tokenizer/tokenizer.h"

typedef enum infer_generation_end {
    INFER_END_LENGTH,
    INFER_END_EOS,
    INFER_END_STOP
} infer_generation_end;

/* Takes the next bytes of a text. An error ends the generation. */
typedef sifr_status infer_take_text(void *user, const char *bytes, size_t size, sifr_error *error);

/* A text that grows by the model's tokens. Free with infer_sequence_free. */
typedef struct infer_sequence {
    text_tokenizer_ids ids; /* the prompt's, followed by new ones */
    size_t prompt_ids;
    text_tokenizer_text text; /* of the new ids, up to a stop string */
    text_tokenizer_stream stream;
    infer_take_text *take; /* gets the text as it is made; NULL: nobody does */
    void *user;            /* the caller's */
    size_t told;           /* bytes of the text that `take` got */
    bool continues; /* the new text goes on with the prompt's, so it keeps its leading blank */
    int64_t slot;   /* of the cache */
    int64_t left;   /* tokens still to make */
    bool done;
    uint64_t draw; /* the text's own random numbers: texts of one run have different ones */
    infer_generation_end end;
} infer_sequence;

void infer_sequence_free(infer_sequence *sequence);

/* A state behind some ids (shared_prompt.h). */
typedef struct infer_kept {
    text_tokenizer_ids ids; /* none: it holds nothing */
    char *state;
} infer_kept;
enum { INFER_KEPT = 2 };

typedef struct infer_generation {
    const char *name; /* of the model, in messages */
    sifr_log log;
    checkpoint_model model;
    text_tokenizer *tokenizer;
    formats_generation_config defaults; /* the folder's */
    sifr_precision precision;
    int threads;
    /* The caller may set these until infer_generation_start. */
    infer_sampling sampling; /* as the folder says, else greedy */
    const char *const *stop; /* texts to end before, in place of the folder's */
    size_t stop_count;       /* 0: the folder's */
    int64_t max_new;         /* most tokens of a text; -1: as the folder says, else 128 */
    uint64_t seed;           /* 42 */
    infer_inference *inference;
    int32_t *order;
    int64_t words, slots;       /* slots: sequences that grow at a time */
    float *logits;              /* [slots x words] */
    text_tokenizer_ids *cached; /* [slots]: those whose keys and values the cache has */
    int32_t *next, *positions;  /* [slots]: of a token of each */
    infer_sequence **running;   /* [slots]: NULL where a slot is empty */
    int64_t chunk, computed;    /* tokens of a chunk of a prompt; those of prompts so far */
    int64_t state_bytes;        /* of a sequence; 0: the model has no state */
    infer_kept kept[INFER_KEPT];
    float *kept_logits; /* [words] */
} infer_generation;

/* Opens the model's files and settings. Close with infer_generation_close also after an error. */
sifr_status infer_generation_open(infer_generation *g, const infer_source *source,
                                  const sifr_log *log, sifr_error *error) SIFR_MUST_CHECK;
void infer_generation_close(infer_generation *g); /* harmless on a zeroed one */

/* Appends the ids of `text`; an empty row of ids gets the begin-of-text token. */
sifr_status infer_generation_encode(const infer_generation *g, const char *text, size_t size,
                                    bool special, text_tokenizer_ids *ids,
                                    sifr_error *error) SIFR_MUST_CHECK;

/* How many tokens to make after a prompt of so many; *beyond is set if the model was not trained
 * with as many positions. */
sifr_status infer_generation_count(const infer_generation *g, int64_t prompt, int64_t *count,
                                   bool *beyond, sifr_error *error) SIFR_MUST_CHECK;

/* Takes the memory: for `slots` sequences of `cache` positions each, and prompts processed in
 * chunks of `chunk` tokens. */
sifr_status infer_generation_start(infer_generation *g, int64_t slots, int64_t chunk, int64_t cache,
                                   bool beyond, sifr_error *error) SIFR_MUST_CHECK;

/* Gives the memory back, so that it can be taken once more; harmless where none is taken. */
void infer_generation_stop(infer_generation *g);

/* Watches texts that are made. */
typedef struct infer_watch {
    sifr_status (*begins)(void *user, infer_sequence *text, sifr_error *error);
    sifr_status (*ended)(void *user, infer_sequence *text, sifr_error *error);
    void *user;
} infer_watch;

/* Continues `count` texts by at most `left` tokens each: they begin in order, each in the first
 * slot that is free. What is cached of a prompt is not computed again. `watch` may be NULL. */
sifr_status infer_generation_run(infer_generation *g, infer_sequence *const *texts, size_t count,
                                 const infer_watch *watch, sifr_error *error) SIFR_MUST_CHECK;

#endif
