/* A record: the metrics that have a new value, after a step, every logging_steps, or after an
 * evaluation. */
#ifndef TRAIN_RECORD_H
#define TRAIN_RECORD_H

#include <jansson.h>
#include <stdint.h>

#include "train/objective/objectives.h"
#include "train/report/metric_list.h"

typedef struct train_record {
    train_when when;
    int64_t step;
    double now;       /* base_seconds */
    double time;      /* seconds since 1970 */
    int64_t samples;  /* of all steps so far, as DeepSpeed counts them: whole batches */
    double next_rate; /* learning rate and loss scale of the next step; of each step alone */
    double next_scale;
    double left;        /* seconds to the end of the run, of steps */
    const json_t *json; /* train_record_json of it, borrowed; NULL at each step */
    unsigned has;       /* bit 1 << train_metric_id: it has this metric */
    double value[TRAIN_METRICS];
    /* What the objective measures, or the scores of an evaluation; the names outlive the run. */
    int more;
    struct {
        const char *name;
        double value;
    } of[TRAIN_MEASURES];
} train_record;

void train_record_put(train_record *record, train_metric_id id, double value);
void train_record_put_more(train_record *record, const char *name, double value);

/* The key of entry number `index` of `of`: the name, or "eval_NAME". Returns out. */
const char *train_record_key(const train_record *record, int index, char out[64]);

/* A new object with "step" first, or NULL if memory ran out. */
json_t *train_record_json(const train_record *record);

#endif
