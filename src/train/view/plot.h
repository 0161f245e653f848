/* Curves in characters: in braille, whose eight dots a character are two columns by four rows, or
 * in ASCII for a terminal that has no UTF-8. */
#ifndef TRAIN_VIEW_PLOT_H
#define TRAIN_VIEW_PLOT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "train/view/view_series.h"

enum { TRAIN_PLOT_COLUMNS = 256, TRAIN_PLOT_ROWS = 64 };

typedef struct train_plot {
    int columns, rows; /* characters */
    uint8_t cells[TRAIN_PLOT_ROWS][TRAIN_PLOT_COLUMNS];
} train_plot;

/* The axes: what lies at the edges. */
typedef struct train_plot_range {
    int64_t first_step, last_step;
    double low, high;
} train_plot_range;

/* Empty; sizes are cut to the most there is, and are at least 1. */
void train_plot_begin(train_plot *plot, int columns, int rows);

/* A line through the lowest and the highest value of each bin, in the order of their steps. */
void train_plot_series(train_plot *plot, const train_view_series *series,
                       const train_plot_range *range);

/* Writes a row of characters, 0 the highest, to `out`: up to three bytes each and a NUL. Returns
 * its bytes. */
size_t train_plot_row(const train_plot *plot, int row, bool utf8, char *out);

#endif
