/* Adafactor: sums of squares of a matrix's rows and columns, of its update, then the weights. Sums
 * are made in double: element i of a row is added to sum i mod SUMS. */
#include "device/cpu/vector/adafactor.h"
#include "device/cpu/vector/update.h"

enum { SUMS = 16 };

static inline double fold(const double sums[SUMS]) {
    double eight[8], four[4];
    for (int l = 0; l < 8; l++) eight[l] = sums[l] + sums[l + 8];
    for (int l = 0; l < 4; l++) four[l] = eight[l] + eight[l + 4];
    return (four[0] + four[2]) + (four[1] + four[3]);
}

/* Squares of a piece of a row, to its sums and to those of its columns. */
static inline void add_squares(float scale, const float *restrict x, double *restrict sums,
                               double *restrict columns, int64_t n) {
    int64_t i = 0;
    for (; i + SUMS <= n; i += SUMS) {
        for (int l = 0; l < SUMS; l++) {
            double g = (double)(x[i + l] * scale), square = g * g;
            sums[l] += square;
            columns[i + l] += square;
        }
    }
    for (int l = 0; i + l < n; l++) {
        double g = (double)(x[i + l] * scale), square = g * g;
        sums[l] += square;
        columns[i + l] += square;
    }
}

/* Moves R of the part's rows, and leaves the sums of its columns. */
void KERNEL(adafactor_sums)(const cpu_part *part) {
    const device_call *c = part->call;
    const device_matrix *g = &c->x[2];
    float buffer[PIECE], scale = c->step->update_scale, *average = adafactor_averages(c)->data;
    double *columns = adafactor_scratch_of(c).columns + part->first / ADAFACTOR_BAND * g->columns;
    for (int64_t i = 0; i < g->columns; i++) columns[i] = 0;
    for (int64_t r = part->first; r < part->first + part->count; r++) {
        double sums[SUMS] = {0};
        for (int64_t at = 0; at < g->columns; at += PIECE) {
            int64_t left = g->columns - at, n = left < PIECE ? left : PIECE;
            add_squares(scale, lanes_read(buffer, g, r, at, n), sums, columns + at, n);
        }
        float mean = (float)(fold(sums) / (double)g->columns) + c->attributes.update.epsilon;
        average[r] = c->step->beta2 * average[r] + c->step->share * mean;
    }
}

static inline void add_update(float scale, float row, const float *restrict x,
                              const float *restrict column, double *restrict sums, int64_t n) {
    int64_t i = 0;
    for (; i + SUMS <= n; i += SUMS) {
        for (int l = 0; l < SUMS; l++) {
            double u = (double)(row * column[i + l] * (x[i + l] * scale));
            sums[l] += u * u;
        }
    }
    for (int l = 0; i + l < n; l++) {
        double u = (double)(row * column[i + l] * (x[i + l] * scale));
        sums[l] += u * u;
    }
}

void KERNEL(adafactor_squares)(const cpu_part *part) {
    const device_call *c = part->call;
    const device_matrix *g = &c->x[2];
    adafactor_scratch scratch = adafactor_scratch_of(c);
    float buffer[PIECE], scale = c->step->update_scale;
    double sums[SUMS] = {0};
    for (int64_t r = part->first; r < part->first + part->count; r++) {
        for (int64_t at = 0; at < g->columns; at += PIECE) {
            int64_t left = g->columns - at, n = left < PIECE ? left : PIECE;
            add_update(scale, scratch.row[r], lanes_read(buffer, g, r, at, n), scratch.column + at,
                       sums, n);
        }
    }
    scratch.bands[part->first / ADAFACTOR_BAND] = fold(sums);
}

typedef struct adafactor_numbers {
    adafactor_scratch scratch;
    int64_t first, columns, end; /* elements of the matrix */
    float scale, trust, rate, keep, beta1, rest1;
    bool moment;
} adafactor_numbers;

/* Elements of one row. */
static inline void adafactor_run(const adafactor_numbers *a, float row,
                                 const float *restrict column, const float *restrict gradient,
                                 float *restrict weights, float *restrict moment, int64_t n) {
    float scale = a->scale, trust = a->trust, rate = a->rate, keep = a->keep;
    float beta1 = a->beta1, rest1 = a->rest1;
    if (!a->moment) {
        for (int64_t i = 0; i < n; i++)
            weights[i] = weights[i] * keep - row * column[i] * (gradient[i] * scale) * trust * rate;
        return;
    }
    for (int64_t i = 0; i < n; i++) {
        float u = row * column[i] * (gradient[i] * scale) * trust * rate;
        float m = beta1 * moment[i] + rest1 * u;
        moment[i] = m;
        weights[i] = weights[i] * keep - m;
    }
}

static void adafactor_piece(const void *numbers, const update_piece *piece) {
    const adafactor_numbers *a = numbers;
    int64_t first = a->first + piece->first, end = first + piece->count;
    if (end > a->end) end = a->end;
    for (int64_t at = first, n; at < end; at += n) {
        int64_t column = at % a->columns, from = at - first;
        n = a->columns - column < end - at ? a->columns - column : end - at;
        adafactor_run(a, a->scratch.row[at / a->columns], a->scratch.column + column,
                      piece->gradient + from, piece->weights + from,
                      a->moment ? piece->states[0] + from : NULL, n);
    }
}

static void run_part(const cpu_part *part, bool moment) {
    const device_call *c = part->call;
    float rate = c->attributes.update.own_rate;
    adafactor_numbers numbers = {.scratch = adafactor_scratch_of(c),
                                 .first = c->attributes.update.first,
                                 .columns = c->x[2].columns,
                                 .end = c->x[2].rows * c->x[2].columns,
                                 .scale = c->step->update_scale,
                                 .trust = c->attributes.update.trust,
                                 .rate = rate,
                                 .keep = 1.0f - rate * c->attributes.update.weight_decay,
                                 .beta1 = c->step->beta1,
                                 .rest1 = (float)(1.0 - (double)c->step->beta1),
                                 .moment = moment};
    update_part(part, moment, UPDATE_PLAIN, adafactor_piece, &numbers);
}

void KERNEL(adafactor)(const cpu_part *part) {
    run_part(part, false);
}

void KERNEL(adafactor_moment)(const cpu_part *part) {
    run_part(part, true);
}
