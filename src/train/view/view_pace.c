#include "train/view/view_pace.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

void train_view_pace_add(train_view_pace *pace, double seconds) {
    if (!(seconds > 0) || !isfinite(seconds)) return;
    pace->seconds[pace->added++ % TRAIN_VIEW_PACES] = seconds;
}

static int by_size(const void *a, const void *b) {
    const double *x = a, *y = b;
    return (*x > *y) - (*x < *y);
}

double train_view_pace_seconds(const train_view_pace *pace) {
    double sorted[TRAIN_VIEW_PACES], sum = 0;
    size_t count = pace->added < TRAIN_VIEW_PACES ? pace->added : TRAIN_VIEW_PACES;
    size_t cut = count / 3;
    if (!count) return 0;
    memcpy(sorted, pace->seconds, count * sizeof *sorted);
    qsort(sorted, count, sizeof *sorted, by_size);
    for (size_t i = cut; i < count - cut; i++) sum += sorted[i];
    return sum / (double)(count - 2 * cut);
}
