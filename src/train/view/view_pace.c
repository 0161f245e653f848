#include "train/view/view_pace.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { OUTLIERS = 2 };

void train_view_pace_add(train_view_pace *pace, double seconds) {
    if (!(seconds > 0) || !isfinite(seconds)) return;
    pace->seconds[pace->added++ % TRAIN_VIEW_PACES] = seconds;
}

static int by_size(const void *a, const void *b) {
    const double *x = a, *y = b;
    return (*x > *y) - (*x < *y);
}

/* How many of the largest have nothing like them. One that has is no accident: a step that is slow
 * every third time counts. */
static size_t count_outliers(const double *sorted, size_t count) {
    size_t most = count / 3 < OUTLIERS ? count / 3 : OUTLIERS, outliers = 0;
    while (outliers < most && sorted[count - 1 - outliers] > 2 * sorted[count - 1 - most])
        outliers++;
    return outliers;
}

double train_view_pace_seconds(const train_view_pace *pace) {
    double sorted[TRAIN_VIEW_PACES], sum = 0;
    size_t count = pace->added < TRAIN_VIEW_PACES ? pace->added : TRAIN_VIEW_PACES;
    if (!count) return 0;
    memcpy(sorted, pace->seconds, count * sizeof *sorted);
    qsort(sorted, count, sizeof *sorted, by_size);
    count -= count_outliers(sorted, count);
    for (size_t i = 0; i < count; i++) sum += sorted[i];
    return sum / (double)count;
}
