#include "device/cpu/product/product_pieces.h"

#include <string.h>

sifr_status cpu_find_pieces(cpu_products *products, cpu_product_shape shape, int64_t tile,
                            cpu_pieces *out, sifr_error *error) {
    static const int64_t widths[] = {256, 192, 128, 64};
    *out = (cpu_pieces){0};
    int64_t width = 0;
    for (int i = 0; i < 4 && width == 0; i++)
        if (shape.columns % widths[i] == 0) width = widths[i];
    if (width == 0) return SIFR_OK;
    int64_t columns = shape.columns;
    if (shape.b_stride == 0)
        shape.b_stride = shape.b_transposed ? shape.inner : width;
    else
        out->apart =
            width * (shape.b_transposed ? shape.b_stride : 1) * base_dtype_bytes(shape.input);
    shape.columns = shape.c_stride = width;
    shape.b_packed = true, shape.sum = false;
    sifr_error refused = {0}; /* ignored: plain products are used, and report real errors */
    (void)error;
    if (cpu_find_row_tiles(products, shape, tile, &out->tiles, &refused) != SIFR_OK) return SIFR_OK;
    const cpu_product *whole = out->tiles.whole, *rest = out->tiles.rest;
    if (whole != NULL && rest != NULL && !cpu_product_same_packing(whole, rest)) return SIFR_OK;
    out->bytes = cpu_product_packed_bytes(whole != NULL ? whole : rest);
    if (out->bytes % 64 != 0) return SIFR_OK;
    out->columns = width;
    out->count = columns / width;
    return SIFR_OK;
}

static int64_t made_bytes(const cpu_pieces *pieces) {
    return base_ceil_to(pieces->tiles.tile * pieces->columns * 4, 64);
}

int64_t cpu_pieces_scratch(const cpu_pieces *pieces) {
    return pieces->count == 0 ? 0 : made_bytes(pieces) + cpu_row_tiles_scratch(&pieces->tiles);
}

static const cpu_product *any_product(const cpu_pieces *pieces) {
    return pieces->tiles.whole != NULL ? pieces->tiles.whole : pieces->tiles.rest;
}

bool cpu_pieces_same_packing(const cpu_pieces *a, const cpu_pieces *b) {
    return cpu_product_same_packing(any_product(a), any_product(b));
}

bool cpu_pieces_pack(const cpu_pieces *pieces, int thread, int64_t piece, const void *b,
                     void *packed) {
    const cpu_product *product = any_product(pieces);
    return cpu_product_pack(product, thread, (const char *)b + piece * pieces->apart,
                            (char *)packed + piece * pieces->bytes);
}

bool cpu_pieces_run(const cpu_pieces *pieces, int thread, int64_t tile, int64_t piece,
                    const void *a, const void *packed, float *c, int64_t c_stride, bool add,
                    char *scratch) {
    return cpu_product_put(cpu_row_tile_product(&pieces->tiles, tile), thread, a,
                           (const char *)packed + piece * pieces->bytes, NULL,
                           (float *)(void *)scratch, c + piece * pieces->columns, c_stride, add,
                           scratch + made_bytes(pieces));
}
