/* Short convolutions of columns over tokens. Tap j of row r is row r - (size - 1 - j); its terms
 * are added in the order of j, so that a row's bits are the same in a packed sequence, alone, and
 * token by token. */
#include "device/convolution_order.h"
#include "device/cpu/kernels_sets.h"

enum { TAPS = DEVICE_MOST_TAPS };

/* Columns of the weights, a row for each tap, and the bias. */
typedef struct taps {
    float w[TAPS][PIECE], bias[PIECE];
    int64_t size;
} taps;

static void load_taps(taps *t, const device_call *c, int64_t first, int64_t n) {
    float row[TAPS];
    t->size = c->w[0].columns;
    for (int64_t i = 0; i < n; i++) {
        lanes_load(row, &c->w[0], first + i, 0, t->size);
        for (int64_t j = 0; j < t->size; j++) t->w[j][i] = row[j];
        t->bias[i] = 0.0f;
    }
    bool back = c->kernel == DEVICE_SHORT_CONV_BACKWARD;
    if (!back && c->w[1].dtype != BASE_NONE) lanes_load(t->bias, &c->w[1], 0, first, n);
}

/* Whether rows r and r + distance are of one sequence and segment. */
static bool are_together(const device_call *c, int64_t r, int64_t distance) {
    int64_t length = c->attributes.short_conv.length, at = r % length + distance;
    const int32_t *segments = c->x[1].data;
    if (at < 0 || at >= length) return false;
    return c->x[1].dtype == BASE_NONE ||
           segments[r * c->x[1].stride] == segments[(r + distance) * c->x[1].stride];
}

/* y += w x */
static void add_tap(float *restrict y, const float *restrict w, const float *restrict x,
                    int64_t n) {
    LANES_EACH(i, n) y[i] = LANES_FMA(w[i], x[i], y[i]);
}

static void convolve_row(const device_call *c, const taps *t, int64_t r, int64_t at, int64_t n) {
    float y[PIECE], buffer[PIECE];
    memcpy(y, t->bias, (size_t)n * sizeof *y);
    for (int64_t j = 0; j < t->size; j++) {
        int64_t distance = j - (t->size - 1);
        if (!are_together(c, r, distance)) continue;
        add_tap(y, t->w[j], lanes_read(buffer, &c->x[0], r + distance, at, n), n);
    }
    lanes_store(&c->y, r, at, n, y);
}

/* Row r is tap j of row r + size - 1 - j. */
static void sum_row(const device_call *c, const taps *t, int64_t r, int64_t at, int64_t n) {
    float dx[PIECE], buffer[PIECE];
    memcpy(dx, t->bias, (size_t)n * sizeof *dx);
    for (int64_t j = 0; j < t->size; j++) {
        int64_t distance = t->size - 1 - j;
        if (!are_together(c, r, distance)) continue;
        add_tap(dx, t->w[j], lanes_read(buffer, &c->dy, r + distance, at, n), n);
    }
    lanes_store_gradient(c, 0, r, at, n, dx);
}

void KERNEL(short_conv)(const cpu_part *part) {
    const device_call *c = part->call;
    bool back = c->kernel == DEVICE_SHORT_CONV_BACKWARD;
    int64_t columns = c->w[0].rows;
    taps t;
    for (int64_t at = 0; at < columns; at += PIECE) {
        int64_t n = columns - at < PIECE ? columns - at : PIECE;
        load_taps(&t, c, at, n);
        for (int64_t r = part->first; r < part->first + part->count; r++) {
            if (back)
                sum_row(c, &t, r, at, n);
            else
                convolve_row(c, &t, r, at, n);
        }
    }
}

/* --- gradients of the weights --- */

enum { SUMS = 64 }; /* columns at a time */

/* Sums over some tokens: of each tap, and behind them of the bias. */
typedef struct tap_sums {
    float of[TAPS + 1][SUMS];
} tap_sums;

static void add_row(const device_call *c, tap_sums *sums, int64_t r, int64_t at, int64_t n) {
    float dys[SUMS], buffer[SUMS];
    int64_t size = c->w[0].columns;
    const float *dy = lanes_read(dys, &c->dy, r, at, n);
    for (int64_t j = 0; j < size && c->dw[0].dtype != BASE_NONE; j++) {
        int64_t distance = j - (size - 1);
        if (!are_together(c, r, distance)) continue;
        add_tap(sums->of[j], dy, lanes_read(buffer, &c->x[0], r + distance, at, n), n);
    }
    float *bias = sums->of[TAPS];
    LANES_EACH(i, n) bias[i] += dy[i];
}

static void put_sums(const device_call *c, const tap_sums *sums, int64_t at, int64_t n) {
    int64_t size = c->w[0].columns;
    float *dw = c->dw[0].data, *db = c->dw[1].data;
    for (int64_t i = 0; i < n && c->dw[0].dtype != BASE_NONE; i++) {
        for (int64_t j = 0; j < size; j++) {
            float *to = dw + (at + i) * c->dw[0].stride + j;
            *to = c->accumulate_dw ? *to + sums->of[j][i] : sums->of[j][i];
        }
    }
    for (int64_t i = 0; i < n && c->dw[1].dtype != BASE_NONE; i++)
        db[at + i] = c->accumulate_dw ? db[at + i] + sums->of[TAPS][i] : sums->of[TAPS][i];
}

void KERNEL(short_conv_weights)(const cpu_part *part) {
    const device_call *c = part->call;
    int64_t end = part->first + part->count, rows = c->dy.rows;
    for (int64_t at = part->first; at < end; at += SUMS) {
        int64_t n = end - at < SUMS ? end - at : SUMS;
        tap_sums all = {0};
        for (int64_t first = 0; first < rows; first += CONVOLUTION_PART) {
            int64_t last = first + CONVOLUTION_PART < rows ? first + CONVOLUTION_PART : rows;
            tap_sums own = {0};
            for (int64_t r = first; r < last; r++) add_row(c, &own, r, at, n);
            for (int64_t j = 0; j <= TAPS; j++)
                for (int64_t i = 0; i < n; i++) all.of[j][i] += own.of[j][i];
        }
        put_sums(c, &all, at, n);
    }
}

/* --- in generation --- */

static bool is_together_cached(const device_call *c) {
    return c->attributes.short_conv.sequences == 1;
}

static int64_t position_of(const device_call *c, int64_t r) {
    const int32_t *positions = c->x[1].data;
    return positions[r * c->x[1].stride];
}

/* The row of the state that has position p of the sequence that row r is of. */
static int64_t state_row(const device_call *c, int64_t r, int64_t p) {
    int64_t kept = c->w[0].columns - 1;
    return (is_together_cached(c) ? 0 : r * kept) + p % kept;
}

/* The input so many tokens before row r; NULL: before the sequence's beginning. */
static const float *read_before(const device_call *c, int64_t r, int64_t back, int64_t at,
                                int64_t n, float *buffer) {
    int64_t p = position_of(c, r);
    if (back > p) return NULL;
    bool here = back == 0 || (is_together_cached(c) && back <= r);
    if (here) return lanes_read(buffer, &c->x[0], r - back, at, n);
    return lanes_read(buffer, &c->saved[0], state_row(c, r, p - back), at, n);
}

void KERNEL(short_conv_cached)(const cpu_part *part) {
    const device_call *c = part->call;
    int64_t columns = c->w[0].rows;
    float y[PIECE], buffer[PIECE];
    taps t;
    for (int64_t at = 0; at < columns; at += PIECE) {
        int64_t n = columns - at < PIECE ? columns - at : PIECE;
        load_taps(&t, c, at, n);
        for (int64_t r = part->first; r < part->first + part->count; r++) {
            memcpy(y, t.bias, (size_t)n * sizeof *y);
            for (int64_t j = 0; j < t.size; j++) {
                const float *x = read_before(c, r, t.size - 1 - j, at, n, buffer);
                if (x) add_tap(y, t.w[j], x, n);
            }
            lanes_store(&c->y, r, at, n, y);
        }
    }
}

/* Copies the last rows of each sequence into its state. */
void KERNEL(short_conv_state)(const cpu_part *part) {
    const device_call *c = part->call;
    int64_t kept = c->w[0].columns - 1, rows = c->x[0].rows;
    int64_t first = is_together_cached(c) && rows > kept ? rows - kept : 0;
    size_t size = (size_t)base_dtype_bytes(c->x[0].dtype);
    for (int64_t r = first; r < rows; r++) {
        int64_t to = state_row(c, r, position_of(c, r));
        memcpy((char *)c->saved[0].data + (size_t)(to * c->saved[0].stride + part->first) * size,
               (const char *)c->x[0].data + (size_t)(r * c->x[0].stride + part->first) * size,
               (size_t)part->count * size);
    }
}
