/* What `sifr generate` and `sifr chat` share: options, a model that is open for generation, and the
 * loop over tokens. */
#ifndef CLI_GENERATION_H
#define CLI_GENERATION_H

#include "cli/options.h"
#include "cli/read_model.h"
#include "formats/generation_config.h"
#include "text/tokenizer/tokenizer.h"

typedef struct cli_generation_flags {
    cli_read_model read;
    int64_t max_new, top_k, seed;
    double temperature, top_p, min_p, repetition_penalty;
    cli_list stop;
    bool max_new_given, temperature_given, top_k_given, top_p_given, min_p_given, penalty_given;
    bool seed_given;
} cli_generation_flags;

enum { CLI_GENERATION_OPTIONS = CLI_READ_MODEL_OPTIONS + 8 };

/* Defaults, and options[CLI_GENERATION_OPTIONS], which point into *flags. */
void cli_generation_options(cli_generation_flags *flags, cli_option *options);

typedef enum cli_generation_end { CLI_END_LENGTH, CLI_END_EOS, CLI_END_STOP } cli_generation_end;

/* A text that grows by the model's tokens. Free with cli_sequence_free. */
typedef struct cli_sequence {
    text_tokenizer_ids ids; /* the prompt's, followed by new ones */
    size_t prompt_ids;
    text_tokenizer_text text; /* of the new ids, up to a stop string */
    text_tokenizer_stream stream;
    size_t shown;    /* bytes of the text that are on standard output */
    bool continues;  /* the new text goes on with the prompt's, so it keeps its leading blank */
    int64_t slot;    /* of the cache */
    int64_t left;    /* tokens still to make */
    bool show, done; /* show: on standard output as it is made */
    uint64_t draw;   /* the text's own random numbers: texts of one run have different ones */
    cli_generation_end end;
} cli_sequence;

void cli_sequence_free(cli_sequence *sequence);

typedef struct cli_generation {
    const char *name; /* of the command */
    const cli_generation_flags *flags;
    checkpoint_model model;
    formats_generation_config defaults; /* the folder's; flags win */
    infer_sampling sampling;
    sifr_precision precision;
    int threads;
    infer_inference *inference;
    text_tokenizer *tokenizer;
    int32_t *order;
    int64_t words, slots;       /* slots: sequences that grow at a time */
    float *logits;              /* [slots x words] */
    text_tokenizer_ids *cached; /* [slots]: those whose keys and values the cache has */
    int32_t *next, *positions;  /* [slots]: of cli_generation_advance */
} cli_generation;

/* Opens the model's files and settings. Close with cli_generation_close also after an error. */
sifr_status cli_generation_open(cli_generation *g, const cli_generation_flags *flags,
                                const char *name, sifr_error *error) SIFR_MUST_CHECK;
void cli_generation_close(cli_generation *g);

/* Appends the ids of `text`; an empty row of ids gets the begin-of-text token. */
sifr_status cli_generation_encode(const cli_generation *g, const char *text, size_t size,
                                  bool special, text_tokenizer_ids *ids,
                                  sifr_error *error) SIFR_MUST_CHECK;

/* How many tokens to make after a prompt of so many; *beyond is set if the model was not trained
 * with as many positions. */
sifr_status cli_generation_count(const cli_generation *g, int64_t prompt, int64_t *count,
                                 bool *beyond, sifr_error *error) SIFR_MUST_CHECK;

/* Takes the memory: for `slots` sequences of `cache` positions each, and prompts processed in
 * chunks of `chunk` tokens. */
sifr_status cli_generation_start(cli_generation *g, int64_t slots, int64_t chunk, int64_t cache,
                                 bool beyond, sifr_error *error) SIFR_MUST_CHECK;

/* Puts the prompt of `sequence` into the cache of its slot and makes the first of `left` tokens.
 * What the cache already has of the prompt is not computed again. */
sifr_status cli_generation_begin(cli_generation *g, cli_sequence *sequence,
                                 sifr_error *error) SIFR_MUST_CHECK;

/* Makes a token of each sequence that is not done: of[slots], NULL where a slot is empty. */
sifr_status cli_generation_advance(cli_generation *g, cli_sequence *const *of,
                                   sifr_error *error) SIFR_MUST_CHECK;

#endif
