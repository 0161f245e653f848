#include "data/labelled/label_columns.h"

#include <stdio.h>
#include <string.h>

/* The columns of published data sets; those with two texts come first, since a text of theirs may
 * be a text alone elsewhere. */
static const data_label_columns texts[] = {
    {"premise", "hypothesis", NULL},
    {"sentence1", "sentence2", NULL},
    {"question1", "question2", NULL},
    {"question", "sentence", NULL},
    {"question", "answer", NULL},
    {"text", "text_pair", NULL},
    {"text", NULL, NULL},
    {"sentence", NULL, NULL},
    {"sentence1", NULL, NULL},
    {"premise", NULL, NULL},
    {"question", NULL, NULL},
};
static const char *const words[] = {"tokens", "words", NULL};
static const char *const labels[] = {"label", "labels", NULL};
static const char *const tags[] = {"tags", "ner_tags", "labels", "label", NULL};

static bool has(const data_records *records, const char *name) {
    const json_t *columns = data_records_columns(records), *column;
    size_t i;
    json_array_foreach((json_t *)columns, i, column) {
        if (strcmp(json_string_value(column), name) == 0) return true;
    }
    return false;
}

/* "'text', 'label' and 'id'"; a few of many. Returns out. */
static const char *list_columns(const data_records *records, char *out, size_t size) {
    const json_t *columns = data_records_columns(records), *column;
    size_t used = 0, i, shown = 12;
    out[0] = '\0';
    json_array_foreach((json_t *)columns, i, column) {
        if (used + 1 >= size || i > shown) break;
        used += (size_t)snprintf(out + used, size - used, "%s'%.30s'", i ? ", " : "",
                                 i == shown ? "…" : json_string_value(column));
    }
    return out;
}

static sifr_status lacks(const data_records *records, const char *what, const char *name,
                         const char *key, sifr_error *error) {
    char columns[512];
    list_columns(records, columns, sizeof columns);
    if (name)
        return base_fail(error, SIFR_USAGE, "%s: no column is named '%.60s' (%s); it has %s",
                         data_records_name(records), name, key, *columns ? columns : "none");
    return base_fail(error, SIFR_USAGE,
                     "%s: no column of %s has a usual name; it has %s: name one with %s",
                     data_records_name(records), what, *columns ? columns : "none", key);
}

static const char *find_one(const data_records *records, const char *const *names,
                            const char *taken) {
    for (; *names; names++)
        if (has(records, *names) && (!taken || strcmp(*names, taken) != 0)) return *names;
    return NULL;
}

static void find_texts(const data_records *records, const data_label_columns *asked,
                       data_label_columns *out) {
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        bool pair = texts[i].pair && !asked->pair;
        if (!has(records, texts[i].text) || (pair && !has(records, texts[i].pair))) continue;
        if (asked->pair && strcmp(asked->pair, texts[i].text) == 0) continue;
        out->text = texts[i].text;
        if (pair) out->pair = texts[i].pair;
        return;
    }
}

sifr_status data_label_columns_find(const data_records *records, model_task task, bool labelled,
                                    const data_label_columns *asked, data_label_columns *out,
                                    sifr_error *error) {
    bool by_word = task == MODEL_TOKEN_CLASSES;
    const char *text = by_word ? "words" : "text", *label = by_word ? "tags" : "labels";
    *out = *asked;
    if (by_word && asked->pair)
        return base_fail(error, SIFR_USAGE,
                         "pair_column: token classification has one text; leave it out");
    if (!out->text && by_word) out->text = find_one(records, words, NULL);
    if (!out->text && !by_word) find_texts(records, asked, out);
    if (!out->label) out->label = find_one(records, by_word ? tags : labels, out->text);
    if (!out->text || !has(records, out->text))
        return lacks(records, text, out->text, "text_column", error);
    if (out->pair && !has(records, out->pair))
        return lacks(records, "second texts", out->pair, "pair_column", error);
    if (labelled && (!out->label || !has(records, out->label)))
        return lacks(records, label, out->label, "label_column", error);
    return SIFR_OK;
}
