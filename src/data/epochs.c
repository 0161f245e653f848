#include "data/epochs.h"

#include <math.h>

#include "base/assert.h"
#include "base/checked.h"

static int64_t parts_of(int64_t count, int64_t size) {
    return count / size + (count % size != 0);
}

data_epochs data_epochs_make(data_last_batch last, int64_t windows, int64_t batch, int64_t micro) {
    base_assert(windows >= 0 && batch > 0 && micro > 0 && batch % micro == 0);
    data_epochs e = {
        .last = last, .windows = windows, .used = windows, .batch = batch, .micro = micro};
    if (last == DATA_LAST_DROPPED) e.used -= windows % micro;
    if (last != DATA_LAST_JOINED) e.steps = parts_of(e.used, batch);
    return e;
}

double data_epochs_steps(const data_epochs *e, double passes) {
    if (e->last != DATA_LAST_JOINED) return ceil(passes * (double)e->steps);
    return floor(floor(passes * (double)e->windows) / (double)e->batch);
}

int64_t data_epochs_samples(const data_epochs *e, int64_t step, int64_t *first) {
    base_assert(step >= 0 && (e->last == DATA_LAST_JOINED || e->steps > 0));
    *first = step * e->batch;
    if (e->last == DATA_LAST_JOINED) return e->batch;
    int64_t place = step % e->steps * e->batch;
    *first = step / e->steps * e->windows + place;
    return base_min_i64(e->batch, e->used - place);
}

/* An epoch that is under way counts by micro batches, as the Trainer's log has it. */
double data_epochs_passed(const data_epochs *e, int64_t steps) {
    base_assert(steps >= 0 && (e->last == DATA_LAST_JOINED || e->steps > 0));
    if (e->last == DATA_LAST_JOINED) return (double)steps * ((double)e->batch / (double)e->windows);
    int64_t all = parts_of(e->used, e->micro);
    int64_t done = base_min_i64(steps % e->steps * (e->batch / e->micro), all);
    return (double)(steps / e->steps) + (double)done / (double)all;
}

int64_t data_epochs_trained(const data_epochs *e, int64_t steps) {
    base_assert(steps >= 0 && (e->last == DATA_LAST_JOINED || e->steps > 0));
    if (e->last == DATA_LAST_JOINED) return steps * e->batch;
    return steps / e->steps * e->used + base_min_i64(steps % e->steps * e->batch, e->used);
}
