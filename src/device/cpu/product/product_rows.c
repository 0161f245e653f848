#include "device/cpu/product/product_rows.h"

int64_t cpu_row_tile(int64_t rows) {
    if (rows >= 2048) return 256;
    if (rows >= 1024) return 128;
    if (rows >= 256) return 64;
    return 32;
}

sifr_status cpu_find_row_tiles(cpu_products *products, cpu_product_shape shape, int64_t tile,
                               cpu_row_tiles *out, sifr_error *error) {
    *out = (cpu_row_tiles){.rows = shape.rows, .tile = tile};
    int64_t rest = shape.rows % tile;
    if (shape.rows >= tile) {
        shape.rows = tile;
        BASE_TRY(cpu_product_find(products, &shape, &out->whole, error));
    }
    if (rest != 0) {
        shape.rows = rest;
        BASE_TRY(cpu_product_find(products, &shape, &out->rest, error));
    }
    return SIFR_OK;
}

int64_t cpu_row_tiles_scratch(const cpu_row_tiles *tiles) {
    int64_t bytes = tiles->whole == NULL ? 0 : cpu_product_scratch(tiles->whole);
    if (tiles->rest == NULL) return bytes;
    return base_max_i64(bytes, cpu_product_scratch(tiles->rest));
}
