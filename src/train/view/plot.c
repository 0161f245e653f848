#include "train/view/plot.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"

enum { ACROSS = 2, DOWN = 4 }; /* dots of a character */

/* The bits of U+2800 by row and column. */
static const uint8_t dots[DOWN][ACROSS] = {{0x01, 0x08}, {0x02, 0x10}, {0x04, 0x20}, {0x40, 0x80}};

void train_plot_begin(train_plot *plot, int columns, int rows) {
    memset(plot->cells, 0, sizeof plot->cells);
    plot->columns = columns < 1 ? 1 : columns > TRAIN_PLOT_COLUMNS ? TRAIN_PLOT_COLUMNS : columns;
    plot->rows = rows < 1 ? 1 : rows > TRAIN_PLOT_ROWS ? TRAIN_PLOT_ROWS : rows;
}

static void dot(train_plot *plot, int x, int y) {
    base_assert(x >= 0 && x < ACROSS * plot->columns && y >= 0 && y < DOWN * plot->rows);
    plot->cells[y / DOWN][x / ACROSS] |= dots[y % DOWN][x % ACROSS];
}

/* Bresenham's. */
static void line(train_plot *plot, int x, int y, int to_x, int to_y) {
    int dx = abs(to_x - x), dy = -abs(to_y - y), sum = dx + dy;
    int right = x < to_x ? 1 : -1, down = y < to_y ? 1 : -1;
    for (;;) {
        dot(plot, x, y);
        if (x == to_x && y == to_y) return;
        int twice = 2 * sum;
        if (twice >= dy) {
            sum += dy;
            x += right;
        }
        if (twice <= dx) {
            sum += dx;
            y += down;
        }
    }
}

/* Where `at` lies from `first` to `last`, of `count` places; the middle where both are the same.
 * Halves, since a difference may overflow. */
static int place(double at, double first, double last, int count) {
    double length = last / 2 - first / 2;
    double share = length > 0 ? (at / 2 - first / 2) / length : 0.5;
    int out = (int)lround(share * (count - 1));
    return out < 0 ? 0 : out >= count ? count - 1 : out;
}

typedef struct pen {
    train_plot *plot;
    const train_plot_range *range;
    bool down;
    int x, y;
} pen;

static void go(pen *p, int64_t step, double value) {
    const train_plot_range *r = p->range;
    int x =
        place((double)step, (double)r->first_step, (double)r->last_step, ACROSS * p->plot->columns);
    int y = DOWN * p->plot->rows - 1 - place(value, r->low, r->high, DOWN * p->plot->rows);
    if (p->down)
        line(p->plot, p->x, p->y, x, y);
    else
        dot(p->plot, x, y);
    p->down = true;
    p->x = x;
    p->y = y;
}

void train_plot_series(train_plot *plot, const train_view_series *series,
                       const train_plot_range *range) {
    pen p = {.plot = plot, .range = range};
    for (size_t i = 0; i < series->used; i++) {
        const train_view_bin *bin = &series->bins[i];
        bool low_first = bin->low_step <= bin->high_step;
        go(&p, low_first ? bin->low_step : bin->high_step, low_first ? bin->low : bin->high);
        go(&p, low_first ? bin->high_step : bin->low_step, low_first ? bin->high : bin->low);
        go(&p, bin->last_step, bin->last);
    }
}

static char plain(uint8_t cell) {
    bool above = cell & 0x1b, below = cell & 0xe4; /* rows 0 and 1; 2 and 3 */
    return above && below ? ':' : above ? '\'' : below ? '.' : ' ';
}

size_t train_plot_row(const train_plot *plot, int row, bool utf8, char *out) {
    size_t used = 0;
    for (int c = 0; c < plot->columns; c++) {
        uint8_t cell = plot->cells[row][c];
        if (!utf8 || !cell) {
            out[used++] = plain(cell);
            continue;
        }
        out[used++] = (char)0xe2;
        out[used++] = (char)(0xa0 | cell >> 6);
        out[used++] = (char)(0x80 | (cell & 0x3f));
    }
    out[used] = '\0';
    return used;
}
