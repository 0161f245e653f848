/* A row of labelled data as token ids and labels. */
#ifndef DATA_EXAMPLE_ENCODE_H
#define DATA_EXAMPLE_ENCODE_H

#include "data/labelled/examples.h"
#include "data/labelled/label_values.h"
#include "text/tokenizer/tokenizer.h"

/* One example; its memory is used again for the next. */
typedef struct data_encoded {
    text_tokenizer_ids ids, types;
    text_tokenizer_ids labels; /* one, or one for each token */
    float *targets;            /* one for each label of the model, where it has targets */
    bool truncated;
} data_encoded;

/* What a thread encodes with. */
typedef struct data_encoder {
    const text_tokenizer *tokenizer;
    text_tokenizer_scratch *scratch;
    const data_labelled *labelled;
    text_tokenizer_ids word_labels; /* of a row's words */
    text_tokenizer_text spaced;     /* a word behind a space */
    bool space;                     /* before each word: bytes of a word in a text follow one */
} data_encoder;

/* Whether examples of this kind have targets instead of labels. */
static inline bool data_has_targets(const data_labelled *labelled) {
    return labelled->task == MODEL_SEQUENCE_CLASSES && labelled->problem != MODEL_SINGLE_LABEL;
}

/* Of an example with targets, labels holds one 0. */
sifr_status data_encode(data_encoder *encoder, const json_t *row, const data_label_columns *columns,
                        const char *file, int64_t line, data_encoded *out,
                        sifr_error *error) SIFR_MUST_CHECK;

#endif
