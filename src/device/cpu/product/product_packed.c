#include "device/cpu/product/product_packed.h"

#include <stdatomic.h>

enum {
    LEAST_ROWS = 256, /* with fewer, packing b does not pay, unless b is widened anyway */
    MANY_ROWS = 1024,
    HIGH_TILE = 256, /* a tile of a stays in a second-level cache; high: b is read once a tile */
    LOW_TILE = 128,
    LEAST_TASKS = 8,
    FEW_ROWS = 32, /* with so few, packing b does not pay even if it is widened */
    FEW_TASKS = 32,
    FEW_BYTES = 1 << 19 /* of a widened piece of b, to fit into a second-level cache */
};

typedef struct packed_run {
    const cpu_packed *packed;
    const cpu_packed_operands *operands;
    const cpu_matrix_kernels *kernels;
    atomic_bool failed;
} packed_run;

static int64_t made_bytes(const cpu_packed *packed) {
    return base_ceil_to(packed->pieces.tiles.tile * packed->pieces.columns * 4, 64);
}

static int64_t bias_bytes(const cpu_packed *packed) {
    return base_ceil_to(packed->pieces.columns * 4, 64);
}

static int64_t wide_bytes(const cpu_packed *packed) {
    if (!packed->widen) return 0;
    int64_t longer = base_max_i64(packed->pieces.tiles.tile, packed->pieces.columns);
    if (packed->plain) longer = packed->pieces.tiles.tile + packed->pieces.columns;
    return base_ceil_to(longer * packed->inner * 4, 64);
}

/* At least `least` groups of nearly equal size: threads would wait for the last one if groups take
 * long. */
static int64_t even_groups(int64_t count, int64_t least) {
    int64_t groups = base_min_i64(count, least);
    while (groups < count && (count + groups - 1) / groups * groups * 8 > count * 9) groups++;
    return groups;
}

static void place_scratch(cpu_packed *packed) {
    int64_t tiles = cpu_row_tiles_count(&packed->pieces.tiles);
    int64_t tasks = packed->plain ? FEW_TASKS : LEAST_TASKS;
    packed->groups = even_groups(packed->pieces.count, (tasks + tiles - 1) / tiles);
    packed->thread_bytes = made_bytes(packed) + bias_bytes(packed) + wide_bytes(packed) +
                           base_ceil_to(cpu_row_tiles_scratch(&packed->pieces.tiles), 64);
}

/* Plans pieces of b that are widened and used without packing. */
static sifr_status find_plain(device *dev, cpu_product_shape shape, cpu_packed *out,
                              sifr_error *error) {
    int64_t columns = shape.columns, width = 64;
    while (columns % (2 * width) == 0 && 2 * width * shape.inner * 4 <= FEW_BYTES) width *= 2;
    shape.columns = shape.c_stride = width;
    shape.b_stride = shape.b_transposed ? shape.inner : width;
    shape.sum = false;
    out->pieces = (cpu_pieces){.count = columns / width, .columns = width};
    return cpu_find_row_tiles(cpu_of(dev)->products, shape, FEW_ROWS, &out->pieces.tiles, error);
}

sifr_status cpu_packed_find(device *dev, cpu_product_shape shape, int64_t whole, bool widen,
                            cpu_packed *out, sifr_error *error) {
    *out = (cpu_packed){.inner = shape.inner, .widen = widen, .b_transposed = shape.b_transposed};
    if ((whole < LEAST_ROWS && !widen) || shape.input != BASE_FP32) return SIFR_OK;
    if (widen) shape.a_stride = shape.inner, shape.b_stride = 0;
    int64_t tile = whole < MANY_ROWS ? LOW_TILE : HIGH_TILE;
    out->plain = widen && whole <= FEW_ROWS && shape.columns % 64 == 0;
    if (out->plain) {
        BASE_TRY(find_plain(dev, shape, out, error));
        place_scratch(out);
        return SIFR_OK;
    }
    if (whole != shape.rows) { /* packed only if the whole is */
        cpu_product_shape all = shape;
        all.rows = whole;
        BASE_TRY(cpu_find_pieces(cpu_of(dev)->products, all, tile, &out->pieces, error));
        if (out->pieces.count == 0) return SIFR_OK;
    }
    BASE_TRY(cpu_find_pieces(cpu_of(dev)->products, shape, tile, &out->pieces, error));
    if (out->pieces.count == 0) return SIFR_OK;
    place_scratch(out);
    return SIFR_OK;
}

static char *thread_scratch(const packed_run *run, int thread) {
    return run->operands->threads + thread * run->packed->thread_bytes;
}

static void note(packed_run *run, bool ok) {
    if (!ok) atomic_store_explicit(&run->failed, true, memory_order_relaxed);
}

/* Makes a dense copy in fp32 of rows x columns of `m`. */
static void widen(const packed_run *run, const device_matrix *m, int64_t row, int64_t rows,
                  int64_t column, int64_t columns, float *to) {
    const uint16_t *from = (const uint16_t *)m->data + row * m->stride + column;
    for (int64_t r = 0; r < rows; r++)
        run->kernels->widen(m->dtype, from + r * m->stride, to + r * columns, columns);
}

static const float *widen_piece(const packed_run *run, int64_t piece, void *buffer) {
    const cpu_packed *packed = run->packed;
    const device_matrix *b = &run->operands->b;
    int64_t columns = packed->pieces.columns, first = piece * columns;
    if (packed->b_transposed)
        widen(run, b, first, columns, 0, packed->inner, buffer);
    else
        widen(run, b, 0, packed->inner, first, columns, buffer);
    return buffer;
}

static void pack_task(void *context, int64_t piece, int thread) {
    packed_run *run = context;
    const cpu_packed *packed = run->packed;
    const void *from = run->operands->b.data;
    if (packed->widen) from = widen_piece(run, piece, thread_scratch(run, thread));
    note(run, cpu_pieces_pack(&packed->pieces, thread, piece, from, run->operands->packed));
}

/* Multiplies a tile of rows by one group of pieces. */
static void product_task(void *context, int64_t task, int thread) {
    packed_run *run = context;
    const cpu_packed *packed = run->packed;
    const cpu_packed_operands *o = run->operands;
    const cpu_pieces *pieces = &packed->pieces;
    int64_t tile = task / packed->groups, group = task % packed->groups;
    int64_t row = tile * pieces->tiles.tile;
    int64_t rows = base_min_i64(pieces->tiles.tile, pieces->tiles.rows - row);
    char *made = thread_scratch(run, thread), *bias = made + made_bytes(packed);
    char *wide = bias + bias_bytes(packed), *scratch = wide + wide_bytes(packed);
    const void *a = (const float *)o->a.data + row * o->a.stride;
    if (packed->widen) {
        widen(run, &o->a, row, rows, 0, packed->inner, (float *)(void *)wide);
        a = wide;
    }
    int64_t last = (group + 1) * pieces->count / packed->groups;
    for (int64_t i = group * pieces->count / packed->groups; i < last; i++) {
        int64_t column = i * pieces->columns, at = row * o->c.stride + column;
        const void *added = o->bias.dtype == BASE_NONE ? NULL : (float *)o->bias.data + column;
        if (packed->widen && added != NULL) {
            widen(run, &o->bias, 0, 1, column, pieces->columns, (float *)(void *)bias);
            added = bias;
        }
        const void *b = o->packed + i * pieces->bytes;
        if (packed->plain) b = widen_piece(run, i, wide + pieces->tiles.tile * packed->inner * 4);
        const cpu_product *product = cpu_row_tile_product(&pieces->tiles, tile);
        if (!packed->widen) {
            note(run, cpu_product_put(product, thread, a, b, added, (float *)(void *)made,
                                      (float *)o->c.data + at, o->c.stride, o->add, scratch));
            continue;
        }
        note(run, cpu_product_run(product, thread, a, b, added, made, scratch));
        for (int64_t r = 0; r < rows; r++)
            run->kernels->narrow(o->c.dtype, (float *)(void *)made + r * pieces->columns,
                                 (uint16_t *)o->c.data + at + r * o->c.stride, pieces->columns,
                                 o->add);
    }
}

bool cpu_packed_run(device *dev, const cpu_packed *packed, const cpu_packed_operands *operands) {
    packed_run run = {.packed = packed, .operands = operands, .kernels = cpu_of(dev)->set->matrix};
    const cpu_pieces *pieces = &packed->pieces;
    if (!packed->plain) host_parallel(dev->team, pieces->count, pack_task, &run);
    host_parallel(dev->team, cpu_row_tiles_count(&pieces->tiles) * packed->groups, product_task,
                  &run);
    return !atomic_load(&run.failed);
}
