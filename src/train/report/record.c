#include "train/report/record.h"

#include <stdio.h>

#include "base/assert.h"
#include "base/json.h"

void train_record_put(train_record *record, train_metric_id id, double value) {
    record->has |= 1u << id;
    record->value[id] = value;
}

void train_record_put_more(train_record *record, const char *name, double value) {
    base_assert(record->more < TRAIN_MEASURES);
    record->of[record->more].name = name;
    record->of[record->more++].value = value;
}

const char *train_record_key(const train_record *record, int index, char out[64]) {
    snprintf(out, 64, "%s%s", record->when == TRAIN_EACH_EVALUATION ? "eval_" : "",
             record->of[index].name);
    return out;
}

static bool put_metric(json_t *out, train_metric_id id, double value) {
    const train_metric *metric = train_metric_at(id);
    json_t *number = metric->whole ? json_integer((json_int_t)value) : base_json_finite(value);
    return json_object_set_new(out, metric->key, number) == 0;
}

json_t *train_record_json(const train_record *record) {
    json_t *out = json_pack("{s:I}", "step", (json_int_t)record->step);
    char key[64];
    bool whole = out;
    for (int id = 0; whole && id < TRAIN_METRICS; id++)
        if (record->has >> id & 1) whole = put_metric(out, (train_metric_id)id, record->value[id]);
    for (int i = 0; whole && i < record->more; i++)
        whole = json_object_set_new(out, train_record_key(record, i, key),
                                    base_json_finite(record->of[i].value)) == 0;
    if (whole) return out;
    json_decref(out);
    return NULL;
}
