#include "train/prepare/data_keys.h"

#include "base/errors.h"

/* What reads a key. */
typedef enum reader {
    OF_ROWS = 1,      /* rows to fine-tune on */
    OF_LABELS = 2,    /* labelled rows of sequence_classification and token_classification */
    OF_SEQUENCES = 4, /* labelled rows of sequence_classification alone */
    OF_MASKED = 8     /* text of masked_lm */
} reader;

static const struct {
    const char *path;
    reader of;
    const char *where; /* "KEY is of …" */
} keys[] = {
    {"sifr.data_type", OF_ROWS, "rows to fine-tune on"},
    {"sifr.train_on", OF_ROWS, "rows to fine-tune on"},
    {"sifr.skip_bad_rows", OF_ROWS, "rows to fine-tune on"},
    {"sifr.text_column", OF_LABELS, "labelled rows of a classifier"},
    {"sifr.label_column", OF_LABELS, "labelled rows of a classifier"},
    {"sifr.pair_column", OF_SEQUENCES, "labelled rows of sequence_classification"},
    {"sifr.mlm_probability", OF_MASKED, "text for masked_lm"},
};

static unsigned reader_of(model_task task, bool rows) {
    if (task == MODEL_SEQUENCE_CLASSES) return OF_LABELS | OF_SEQUENCES;
    if (task == MODEL_TOKEN_CLASSES) return OF_LABELS;
    if (task == MODEL_MASKED_TOKEN) return OF_MASKED;
    return rows ? OF_ROWS : 0;
}

sifr_status train_check_data_keys(const sifr_config *config, model_task task, bool rows,
                                  const char *path, sifr_error *error) {
    const size_t own = sizeof "sifr." - 1; /* which all names of messages leave out */
    unsigned of = reader_of(task, rows);
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
        if (keys[i].of & of || !config_changes(config, keys[i].path)) continue;
        if (task == MODEL_NEXT_TOKEN && keys[i].of == OF_ROWS)
            return base_fail(error, SIFR_USAGE,
                             "%s: %s is text or a token store, which has no rows; leave it out",
                             keys[i].path + own, path);
        return base_fail(error, SIFR_USAGE, "%s is of %s, not for %s; leave it out",
                         keys[i].path + own, keys[i].where, model_task_name(task));
    }
    return SIFR_OK;
}
