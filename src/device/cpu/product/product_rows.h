/* A product over many rows, as tiles of rows for the device's threads. */
#ifndef CPU_PRODUCT_ROWS_H
#define CPU_PRODUCT_ROWS_H

#include "base/checked.h"
#include "device/cpu/product/product.h"

typedef struct cpu_row_tiles {
    int64_t rows, tile;
    const cpu_product *whole, *rest; /* rest: the last, lower tile; NULL: none */
} cpu_row_tiles;

/* The height of tiles, a function of `rows` alone, so that bits depend on nothing else. */
int64_t cpu_row_tile(int64_t rows);

/* `shape.rows` is the number of all rows. */
sifr_status cpu_find_row_tiles(cpu_products *products, cpu_product_shape shape, int64_t tile,
                               cpu_row_tiles *out, sifr_error *error) SIFR_MUST_CHECK;

int64_t cpu_row_tiles_scratch(const cpu_row_tiles *tiles); /* bytes per thread */

static inline int64_t cpu_row_tiles_count(const cpu_row_tiles *tiles) {
    return (tiles->rows + tiles->tile - 1) / tiles->tile;
}

static inline const cpu_product *cpu_row_tile_product(const cpu_row_tiles *tiles, int64_t index) {
    return (index + 1) * tiles->tile <= tiles->rows ? tiles->whole : tiles->rest;
}

#endif
