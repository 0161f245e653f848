#include "data/epochs.h"

#include <math.h>

#include "base/checked.h"

static int64_t parts_of(int64_t count, int64_t size) {
    return count / size + (count % size != 0);
}

train_epochs train_epochs_make(train_last_batch last, int64_t windows, int64_t batch,
                               int64_t micro) {
    train_epochs e = {
        .last = last, .windows = windows, .used = windows, .batch = batch, .micro = micro};
    if (last == TRAIN_LAST_DROPPED) e.used -= windows % micro;
    if (last != TRAIN_LAST_JOINED) e.steps = parts_of(e.used, batch);
    return e;
}

double train_epochs_steps(const train_epochs *e, double passes) {
    if (e->last != TRAIN_LAST_JOINED) return ceil(passes * (double)e->steps);
    return floor(floor(passes * (double)e->windows) / (double)e->batch);
}

int64_t train_epochs_samples(const train_epochs *e, int64_t step, int64_t *first) {
    *first = step * e->batch;
    if (e->last == TRAIN_LAST_JOINED) return e->batch;
    int64_t place = step % e->steps * e->batch;
    *first = step / e->steps * e->windows + place;
    return base_min_i64(e->batch, e->used - place);
}

/* An epoch that is under way counts by micro batches, as the Trainer's log has it. */
double train_epochs_passed(const train_epochs *e, int64_t steps) {
    if (e->last == TRAIN_LAST_JOINED)
        return (double)steps * ((double)e->batch / (double)e->windows);
    int64_t all = parts_of(e->used, e->micro);
    int64_t done = base_min_i64(steps % e->steps * (e->batch / e->micro), all);
    return (double)(steps / e->steps) + (double)done / (double)all;
}

int64_t train_epochs_trained(const train_epochs *e, int64_t steps) {
    if (e->last == TRAIN_LAST_JOINED) return steps * e->batch;
    return steps / e->steps * e->used + base_min_i64(steps % e->steps * e->batch, e->used);
}
