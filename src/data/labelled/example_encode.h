/* A row of labelled data as token ids and labels. */
#ifndef TRAIN_EXAMPLE_ENCODE_H
#define TRAIN_EXAMPLE_ENCODE_H

#include "data/labelled/examples.h"
#include "data/labelled/label_values.h"
#include "text/tokenizer/tokenizer.h"

/* One example; its memory is used again for the next. */
typedef struct train_encoded {
    formats_tokenizer_ids ids, types;
    formats_tokenizer_ids labels; /* one, or one for each token */
    float *targets;               /* one for each label of the model, where it has targets */
    bool truncated;
} train_encoded;

/* What a thread encodes with. */
typedef struct train_encoder {
    const formats_tokenizer *tokenizer;
    formats_tokenizer_scratch *scratch;
    const train_labelled *labelled;
    formats_tokenizer_ids word_labels; /* of a row's words */
    formats_tokenizer_text spaced;     /* a word behind a space */
    bool space;                        /* before each word: bytes of a word in a text follow one */
} train_encoder;

/* Whether examples of this kind have targets instead of labels. */
static inline bool train_has_targets(const train_labelled *labelled) {
    return labelled->task == MODEL_SEQUENCE_CLASSES && labelled->problem != MODEL_SINGLE_LABEL;
}

/* Of an example with targets, labels holds one 0. */
sifr_status train_encode(train_encoder *encoder, const json_t *row,
                         const train_label_columns *columns, const char *file, int64_t line,
                         train_encoded *out, sifr_error *error) SIFR_MUST_CHECK;

#endif
