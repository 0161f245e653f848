/* Charts and their tables: a key of all runs. */
#ifndef TRAIN_VIEW_PAGE_CHART_H
#define TRAIN_VIEW_PAGE_CHART_H

#include "train/view/html.h"
#include "train/view/view_run.h"

/* How the values of a key are written. */
typedef enum train_unit { TRAIN_PLAIN, TRAIN_SHARE, TRAIN_BYTES } train_unit;

typedef struct train_chart {
    const char *key, *title;
    train_unit unit;
} train_chart;

/* "0.533", "15.2 %", "8.48 MiB"; returns out. "not known" of NaN. */
const char *train_chart_number(train_unit unit, double value, char out[32]);

/* A figure, of runs[0, count) those that have the key; false, with nothing written, if none has. */
bool train_page_chart(train_html *html, const train_chart *chart, const train_view_run *runs,
                      size_t count);

/* The list of runs with their strokes, whose boxes show and hide lines. */
void train_page_key(train_html *html, const train_view_run *runs, size_t count);

#endif
