/* The generator, for the files that make the C interface. */
#ifndef API_GENERATOR_H
#define API_GENERATOR_H

#include "infer/generation.h"
#include "sifr/generate.h"

/* A text of the next run. */
typedef struct api_text {
    sifr_generator *of;
    size_t index, prompt;
    int64_t sample;
    infer_sequence sequence;
    double begun, seconds;
    bool ended;
} api_text;

struct sifr_generator {
    infer_generation g;
    char *model, **stop; /* of its options */
    size_t stop_count;
    int64_t samples, batch_size;
    int64_t cache_taken; /* positions that its memory has for a text; 0: none is taken */
    /* The next run. */
    api_text *texts;
    size_t count, capacity, prompts;
    int64_t cache; /* most positions of a text */
    bool beyond;   /* more than the model was trained with */
    /* The run that goes on. */
    sifr_generate_calls calls;
    size_t told; /* texts whose end was told */
};

/* Memory for `slots` texts of `cache` positions: what there is, if it fits, else anew. */
sifr_status api_generator_take(sifr_generator *generator, int64_t slots, int64_t chunk,
                               int64_t cache, bool beyond, sifr_error *error) SIFR_MUST_CHECK;

/* Removes the texts of the next run. */
void api_generator_clear(sifr_generator *generator);

#endif
