#include "device/cpu/product/product_exact.h"

#include <stdatomic.h>
#include <string.h>

#include "base/assert.h"

enum {
    MOST_COLUMNS = 256, /* of a piece of b */
    LEAST_COLUMNS = 64,
    WIDEST_COLUMNS = 1024, /* where no divisor of a part lies between the two */
    LEAST_TASKS = 8,
    LEVELS = 4,    /* most sums of a tree of DEVICE_LINEAR_PIECES pieces at a time */
    FINISHED = 256 /* elements of a row finished at a time */
};

typedef struct exact_run {
    const cpu_exact *exact;
    const cpu_exact_operands *operands;
    const cpu_matrix_kernels *kernels;
    atomic_bool failed;
} exact_run;

/* A piece of b: number `index` in part `panel` of the columns, and part `part` of the inner
 * dimension. */
typedef struct exact_piece {
    int32_t run;
    int64_t panel, part, index;
} exact_piece;

static int32_t run_in(const cpu_parts *parts, int32_t run) {
    return parts->runs > 1 ? run : 0;
}

static int32_t run_count(const cpu_exact_shape *s) {
    return s->rows.runs > 1 ? s->rows.runs : s->columns.runs > 1 ? s->columns.runs : s->inner.runs;
}

static int64_t width_in(const cpu_parts *parts, int32_t run) {
    return parts->width[run_in(parts, run)];
}

/* --- planning --- */

static cpu_product_shape product_shape(const cpu_exact *exact, int32_t run, int64_t columns,
                                       bool packed) {
    const cpu_exact_shape *s = &exact->shape;
    int64_t inner = width_in(&s->inner, run);
    bool as_stored = packed && !s->widen_b;
    return (cpu_product_shape){.rows = width_in(&s->rows, run),
                               .columns = columns,
                               .inner = inner,
                               .a_stride = s->widen_a || exact->dense ? inner : s->a_stride,
                               .b_stride = as_stored         ? s->b_stride
                                           : s->b_transposed ? inner
                                                             : columns,
                               .c_stride = columns,
                               .input = s->type,
                               .output = BASE_FP32,
                               .b_transposed = s->b_transposed,
                               .b_packed = packed};
}

static const cpu_product *any_of(const cpu_row_tiles *tiles) {
    return tiles->whole ? tiles->whole : tiles->rest;
}

/* Whether pieces of b so wide can be packed: for all rows that there may be, so that a call for
 * some of them has the products of the whole. */
static bool find_packed(cpu_products *products, const cpu_exact *exact, int32_t run,
                        int64_t columns, cpu_row_tiles *tiles) {
    sifr_error refused = {0}; /* ignored: plain products are used, and report real errors */
    cpu_product_shape shape = product_shape(exact, run, columns, true);
    int64_t rows = shape.rows, tile = exact->shape.tile;
    if (exact->shape.whole) shape.rows = exact->shape.whole;
    if (cpu_find_row_tiles(products, shape, tile, tiles, &refused) != SIFR_OK) return false;
    if (tiles->whole && tiles->rest && !cpu_product_same_packing(tiles->whole, tiles->rest))
        return false;
    if (cpu_product_packed_bytes(any_of(tiles)) % 64 != 0) return false;
    bool same = rows == shape.rows;
    shape.rows = rows;
    return same || cpu_find_row_tiles(products, shape, tile, tiles, &refused) == SIFR_OK;
}

/* Runs first … last - 1 have pieces of the same width. */
static bool find_all_packed(cpu_products *products, cpu_exact *exact, int32_t first, int32_t last,
                            int64_t columns) {
    for (int32_t run = first; run < last; run++) {
        cpu_exact_products *p = &exact->run[run];
        if (!find_packed(products, exact, run, columns, &p->tiles)) return false;
        p->packed = true;
        p->columns = columns;
        p->bytes = cpu_product_packed_bytes(any_of(&p->tiles));
    }
    return true;
}

static sifr_status find_plain(cpu_products *products, cpu_exact *exact, int32_t first, int32_t last,
                              int64_t columns, sifr_error *error) {
    const cpu_exact_shape *s = &exact->shape;
    for (int32_t run = first; run < last; run++) {
        cpu_exact_products *p = &exact->run[run];
        cpu_product_shape shape = product_shape(exact, run, columns, false);
        BASE_TRY(cpu_find_row_tiles(products, shape, s->tile, &p->tiles, error));
        p->packed = false;
        p->columns = columns;
        p->bytes = base_ceil_to(shape.inner * columns * base_dtype_bytes(s->type), 64);
    }
    return SIFR_OK;
}

/* Packed pieces as wide as they may be; else plain ones. */
static sifr_status find_runs(cpu_products *products, cpu_exact *exact, int32_t first, int32_t last,
                             sifr_error *error) {
    int64_t panel = width_in(&exact->shape.columns, first), widest = 0;
    bool packed = false;
    for (int64_t columns = MOST_COLUMNS; columns >= LEAST_COLUMNS && !packed;
         columns -= CPU_PANEL) {
        if (panel % columns != 0) continue;
        if (widest == 0) widest = columns;
        packed = find_all_packed(products, exact, first, last, columns);
    }
    if (!packed && panel <= WIDEST_COLUMNS)
        packed = find_all_packed(products, exact, first, last, panel);
    if (packed) return SIFR_OK;
    return find_plain(products, exact, first, last, widest ? widest : panel, error);
}

static sifr_status find_products(cpu_products *products, cpu_exact *exact, sifr_error *error) {
    const cpu_exact_shape *s = &exact->shape;
    int32_t runs = run_count(s), step = s->inner.runs > 1 ? runs : 1;
    for (int32_t run = 0; run < runs; run += step)
        BASE_TRY(find_runs(products, exact, run, run + step, error));
    return SIFR_OK;
}

static bool all_are_own(const cpu_exact *exact) {
    for (int32_t run = 0; run < run_count(&exact->shape); run++)
        if (!cpu_product_is_own(any_of(&exact->run[run].tiles))) return false;
    return true;
}

static void place_pieces(cpu_exact *exact) {
    const cpu_exact_shape *s = &exact->shape;
    exact->b_bytes = exact->pieces = 0;
    for (int32_t run = 0; run < run_count(s); run++) {
        cpu_exact_products *p = &exact->run[run];
        p->inner = width_in(&s->inner, run);
        p->count = width_in(&s->columns, run) / p->columns;
        p->at = exact->b_bytes;
        int64_t pieces = (int64_t)s->columns.pieces * s->inner.pieces * p->count;
        exact->b_bytes += pieces * p->bytes;
        exact->pieces += pieces;
    }
}

static int64_t tile_count(const cpu_exact *exact) {
    const cpu_parts *rows = &exact->shape.rows;
    int64_t tiles = 0;
    for (int32_t run = 0; run < rows->runs; run++)
        tiles += cpu_row_tiles_count(&exact->run[run].tiles) * rows->pieces;
    return tiles;
}

/* Pieces of columns that a tile of rows is multiplied by. */
static int64_t column_count(const cpu_exact *exact, int32_t row_run) {
    const cpu_parts *columns = &exact->shape.columns;
    if (columns->runs == 1) return exact->run[row_run].count * columns->pieces;
    int64_t count = 0;
    for (int32_t run = 0; run < columns->runs; run++) count += exact->run[run].count;
    return count * columns->pieces;
}

/* Behind the sums that wait and the newest one in a thread's scratch: what is widened or copied. */
static int64_t wide_at(const cpu_exact *exact) {
    return (exact->levels + 1) * exact->made_bytes;
}

static void place_scratch(cpu_exact *exact) {
    const cpu_exact_shape *s = &exact->shape;
    int64_t columns = 0, scratch = 0, piece = 0;
    for (int32_t run = 0; run < run_count(s); run++) {
        const cpu_exact_products *p = &exact->run[run];
        columns = base_max_i64(columns, p->columns);
        scratch = base_max_i64(scratch, cpu_row_tiles_scratch(&p->tiles));
        piece = base_max_i64(piece, p->inner * p->columns);
    }
    int64_t wide_a = s->widen_a || exact->dense ? s->tile * s->inner.size : 0;
    int64_t wide_b = s->widen_b ? piece : 0;
    exact->made_bytes = base_ceil_to(s->tile * columns * 4, 64);
    exact->wide_bytes = base_ceil_to(base_max_i64(wide_a, wide_b) * 4, 64);
    exact->levels = 1;
    for (int32_t pieces = s->inner.pieces; pieces > 1; pieces /= 2) exact->levels++;
    base_assert(exact->levels <= LEVELS);
    exact->thread_bytes = wide_at(exact) + exact->wide_bytes + base_ceil_to(scratch, 64);
    int64_t tiles = tile_count(exact), count = column_count(exact, 0);
    exact->groups = base_min_i64(count, (LEAST_TASKS + tiles - 1) / tiles);
    while (exact->groups < count &&
           (count + exact->groups - 1) / exact->groups * exact->groups * 8 > count * 9)
        exact->groups++;
}

sifr_status cpu_exact_find(device *dev, const cpu_exact_shape *shape, cpu_exact *out,
                           sifr_error *error) {
    cpu_products *products = cpu_of(dev)->products;
    memset(out, 0, sizeof *out); /* plans are compared bytewise */
    out->shape = *shape;
    base_assert(shape->inner.pieces <= DEVICE_LINEAR_PIECES);
    BASE_TRY(find_products(products, out, error));
    out->dense = shape->divided && !shape->widen_a && !all_are_own(out);
    if (out->dense) BASE_TRY(find_products(products, out, error));
    place_pieces(out);
    place_scratch(out);
    return SIFR_OK;
}

/* --- pieces of b --- */

static void note(exact_run *run, bool ok) {
    if (!ok) atomic_store_explicit(&run->failed, true, memory_order_relaxed);
}

/* A dense copy of rows x columns of `m`: in fp32 if it is widened. */
static void copy_block(const exact_run *run, const device_matrix *m, bool widen, int64_t row,
                       int64_t rows, int64_t column, int64_t columns, void *to) {
    int64_t bytes = base_dtype_bytes(m->dtype);
    const char *from = (const char *)m->data + (row * m->stride + column) * bytes;
    for (int64_t r = 0; r < rows; r++, from += m->stride * bytes) {
        if (widen)
            run->kernels->widen(m->dtype, (const uint16_t *)(const void *)from,
                                (float *)to + r * columns, columns);
        else
            memcpy((char *)to + r * columns * bytes, from, (size_t)(columns * bytes));
    }
}

static char *thread_scratch(const exact_run *run, int thread) {
    return run->operands->threads + thread * run->exact->thread_bytes;
}

static char *place_of(const exact_run *run, const exact_piece *piece) {
    const cpu_exact_products *p = &run->exact->run[piece->run];
    int64_t part = piece->panel * run->exact->shape.inner.pieces + piece->part;
    return run->operands->pieces + p->at + (part * p->count + piece->index) * p->bytes;
}

static exact_piece piece_number(const cpu_exact *exact, int64_t number) {
    const cpu_exact_shape *s = &exact->shape;
    exact_piece piece = {0};
    for (;; piece.run++) {
        const cpu_exact_products *p = &exact->run[piece.run];
        int64_t pieces = (int64_t)s->columns.pieces * s->inner.pieces * p->count;
        if (number >= pieces) {
            number -= pieces;
            continue;
        }
        piece.index = number % p->count;
        piece.part = number / p->count % s->inner.pieces;
        piece.panel = number / p->count / s->inner.pieces;
        return piece;
    }
}

static int64_t first_of(const cpu_parts *parts, int32_t run, int64_t part) {
    int32_t at = run_in(parts, run);
    return parts->first[at] + part * parts->width[at];
}

static void arrange_task(void *context, int64_t task, int thread) {
    exact_run *run = context;
    const cpu_exact_shape *s = &run->exact->shape;
    const device_matrix *b = &run->operands->b;
    exact_piece piece = piece_number(run->exact, task);
    const cpu_exact_products *p = &run->exact->run[piece.run];
    int64_t column = first_of(&s->columns, piece.run, piece.panel) + piece.index * p->columns;
    int64_t k = first_of(&s->inner, piece.run, piece.part);
    int64_t row = s->b_transposed ? column : k, at = s->b_transposed ? k : column;
    int64_t rows = s->b_transposed ? p->columns : p->inner;
    int64_t columns = s->b_transposed ? p->inner : p->columns;
    char *to = place_of(run, &piece);
    if (!p->packed) {
        copy_block(run, b, s->widen_b, row, rows, at, columns, to);
        return;
    }
    const void *from = (const char *)b->data + (row * b->stride + at) * base_dtype_bytes(b->dtype);
    if (s->widen_b) {
        void *wide = thread_scratch(run, thread) + wide_at(run->exact);
        copy_block(run, b, true, row, rows, at, columns, wide);
        from = wide;
    }
    note(run, cpu_product_pack(any_of(&p->tiles), thread, from, to));
}

/* --- products --- */

static void add_block(float *to, const float *from, int64_t count) {
    for (int64_t i = 0; i < count; i++) to[i] += from[i];
}

/* c (+)= a row's elements, rounded. */
static void put_row(const cpu_matrix_kernels *kernels, const float *row, const device_matrix *c,
                    int64_t at, int64_t count, bool add) {
    float *wide = (float *)c->data + at;
    if (c->dtype != BASE_FP32)
        kernels->narrow(c->dtype, row, (uint16_t *)c->data + at, count, add);
    else if (add)
        add_block(wide, row, count);
    else if (wide != row)
        memcpy(wide, row, (size_t)count * sizeof *row);
}

void cpu_exact_finish(const cpu_matrix_kernels *kernels, const float *made, int64_t made_stride,
                      const device_matrix *bias, const device_matrix *c, bool add) {
    float wide[FINISHED], sum[FINISHED];
    for (int64_t first = 0; first < c->columns; first += FINISHED) {
        int64_t n = base_min_i64(FINISHED, c->columns - first);
        const float *added = bias->dtype == BASE_FP32 ? (float *)bias->data + first : NULL;
        if (bias->dtype != BASE_NONE && !added) {
            kernels->widen(bias->dtype, (const uint16_t *)bias->data + first, wide, n);
            added = wide;
        }
        for (int64_t r = 0; r < c->rows; r++) {
            const float *row = made + r * made_stride + first;
            for (int64_t i = 0; i < n && added; i++) sum[i] = row[i] + added[i];
            put_row(kernels, added ? sum : row, c, r * c->stride + first, n, add);
        }
    }
}

/* A tile of rows by one piece of columns. */
typedef struct exact_tile {
    int32_t row_run, column_run;
    int64_t panel, index; /* of columns */
    int64_t tile, rows;
    const char *a[DEVICE_LINEAR_RUNS][DEVICE_LINEAR_PIECES]; /* by run and part of inner */
    float *level[LEVELS], *made;
    void *scratch;
    int thread;
} exact_tile;

/* to (+)= the product of a part of a run of the inner dimension. */
static void multiply(exact_run *run, const exact_tile *t, int32_t inner_run, int64_t part,
                     float *to, int64_t stride, bool add) {
    const cpu_exact_shape *s = &run->exact->shape;
    int32_t of = s->inner.runs > 1 ? inner_run : s->columns.runs > 1 ? t->column_run : t->row_run;
    const cpu_exact_products *p = &run->exact->run[of];
    exact_piece piece = {of, t->panel, part, t->index};
    const cpu_product *product = cpu_row_tile_product(&p->tiles, t->tile);
    const void *a = t->a[inner_run][part], *b = place_of(run, &piece);
    if (cpu_product_is_own(product) || p->columns % 64 == 0) {
        note(run,
             cpu_product_put(product, t->thread, a, b, NULL, t->made, to, stride, add, t->scratch));
        return;
    }
    note(run, cpu_product_run(product, t->thread, a, b, NULL, t->made, t->scratch));
    for (int64_t r = 0; r < t->rows; r++) {
        const float *made = t->made + r * p->columns;
        if (add)
            add_block(to + r * stride, made, p->columns);
        else
            memcpy(to + r * stride, made, (size_t)p->columns * sizeof *made);
    }
}

/* level[0]: the sum over the inner dimension, dense, in tree order. */
static void add_parts(exact_run *run, exact_tile *t, int64_t columns) {
    const cpu_parts *inner = &run->exact->shape.inner;
    int top = 0; /* sums that wait */
    for (int64_t part = 0; part < inner->pieces; part++) {
        int64_t odd = part; /* as many sums end here as its last bits are set */
        if (inner->runs == 1 && (odd & 1)) {
            multiply(run, t, 0, part, t->level[top - 1], columns, true);
            odd >>= 1;
        } else {
            for (int32_t r = 0; r < inner->runs; r++)
                multiply(run, t, r, part, t->level[top], columns, r > 0);
            top++;
        }
        for (; odd & 1; odd >>= 1, top--)
            add_block(t->level[top - 2], t->level[top - 1], t->rows * columns);
    }
    base_assert(top == 1);
}

/* c (+)= a tile by a piece of the columns. */
static void make_block(exact_run *run, exact_tile *t, int64_t row) {
    const cpu_exact_shape *s = &run->exact->shape;
    const cpu_exact_operands *o = run->operands;
    int32_t of = s->columns.runs > 1 ? t->column_run : t->row_run;
    int64_t columns = run->exact->run[of].columns;
    int64_t column = first_of(&s->columns, of, t->panel) + t->index * columns;
    device_matrix c = o->c, bias = o->bias;
    c.rows = t->rows, c.columns = bias.columns = columns;
    c.data = (char *)c.data + (row * c.stride + column) * base_dtype_bytes(c.dtype);
    if (bias.dtype != BASE_NONE)
        bias.data = (char *)bias.data + column * base_dtype_bytes(bias.dtype);
    bool one = s->inner.pieces == 1 && s->inner.runs == 1;
    if (one && c.dtype == BASE_FP32 && bias.dtype == BASE_NONE) {
        multiply(run, t, 0, 0, c.data, c.stride, o->add);
        return;
    }
    add_parts(run, t, columns);
    cpu_exact_finish(run->kernels, t->level[0], columns, &bias, &c, o->add);
}

/* a's rows from `row` on, by parts of the inner dimension. */
static void take_rows(const exact_run *run, exact_tile *t, int64_t row, char *wide) {
    const cpu_exact_shape *s = &run->exact->shape;
    const device_matrix *a = &run->operands->a;
    int64_t bytes = base_dtype_bytes(s->widen_a ? BASE_FP32 : a->dtype);
    for (int32_t r = 0; r < s->inner.runs; r++)
        for (int64_t part = 0; part < s->inner.pieces; part++) {
            int64_t k = first_of(&s->inner, r, part), width = s->inner.width[r];
            if (!s->widen_a && !run->exact->dense) {
                t->a[r][part] = (const char *)a->data + (row * a->stride + k) * bytes;
                continue;
            }
            copy_block(run, a, s->widen_a, row, t->rows, k, width, wide);
            t->a[r][part] = wide;
            wide += t->rows * width * bytes;
        }
}

/* The tile's run of rows, its number in its part, and its first row. */
static int64_t find_tile(const cpu_exact *exact, int64_t number, exact_tile *t) {
    const cpu_parts *rows = &exact->shape.rows;
    for (;; t->row_run++) {
        const cpu_row_tiles *tiles = &exact->run[t->row_run].tiles;
        int64_t each = cpu_row_tiles_count(tiles), all = each * rows->pieces;
        if (number >= all) {
            number -= all;
            continue;
        }
        int64_t first = first_of(rows, t->row_run, number / each);
        t->tile = number % each;
        t->rows = base_min_i64(tiles->tile, tiles->rows - t->tile * tiles->tile);
        return first + t->tile * tiles->tile;
    }
}

/* Piece `number` of the columns for a tile. */
static void find_columns(const cpu_exact *exact, int64_t number, exact_tile *t) {
    const cpu_parts *columns = &exact->shape.columns;
    for (t->column_run = 0;; t->column_run++) {
        int32_t run = columns->runs > 1 ? t->column_run : t->row_run;
        int64_t count = exact->run[run].count, all = count * columns->pieces;
        if (number >= all) {
            number -= all;
            continue;
        }
        t->panel = number / count;
        t->index = number % count;
        return;
    }
}

/* A tile of rows by one group of pieces of the columns. */
static void product_task(void *context, int64_t task, int thread) {
    exact_run *run = context;
    const cpu_exact *exact = run->exact;
    exact_tile t = {.thread = thread};
    int64_t row = find_tile(exact, task / exact->groups, &t), group = task % exact->groups;
    int64_t count = column_count(exact, t.row_run), last = (group + 1) * count / exact->groups;
    char *at = thread_scratch(run, thread);
    for (int i = 0; i < exact->levels; i++, at += exact->made_bytes)
        t.level[i] = (float *)(void *)at;
    t.made = (float *)(void *)at;
    char *wide = at + exact->made_bytes;
    t.scratch = wide + exact->wide_bytes;
    take_rows(run, &t, row, wide);
    for (int64_t i = group * count / exact->groups; i < last; i++) {
        find_columns(exact, i, &t);
        make_block(run, &t, row);
    }
}

bool cpu_exact_run(device *dev, const cpu_exact *exact, const cpu_exact_operands *operands) {
    exact_run run = {.exact = exact, .operands = operands, .kernels = cpu_of(dev)->set->matrix};
    host_parallel(dev->team, exact->pieces, arrange_task, &run);
    host_parallel(dev->team, tile_count(exact) * exact->groups, product_task, &run);
    return !atomic_load(&run.failed);
}
