/* c (+)= a b, with b packed once in pieces of columns and used by many tiles of rows. */
#ifndef CPU_PRODUCT_PIECES_H
#define CPU_PRODUCT_PIECES_H

#include "device/cpu/product/product_rows.h"

typedef struct cpu_pieces {
    int64_t count, columns; /* count == 0: the library packs no such b without padding */
    int64_t bytes;          /* of a packed piece */
    int64_t apart;          /* bytes between pieces of the plain b; 0 where each comes alone */
    cpu_row_tiles tiles;
} cpu_pieces;

/* `shape` as of the whole product; c_stride, sum and b_packed are not looked at. b_stride == 0:
 * each piece of b will be handed over alone, and dense. */
sifr_status cpu_find_pieces(cpu_products *products, cpu_product_shape shape, int64_t tile,
                            cpu_pieces *out, sifr_error *error) SIFR_MUST_CHECK;

int64_t cpu_pieces_scratch(const cpu_pieces *pieces); /* bytes each thread needs */

static inline int64_t cpu_pieces_bytes(const cpu_pieces *pieces) {
    return pieces->count * pieces->bytes;
}

bool cpu_pieces_same_packing(const cpu_pieces *a, const cpu_pieces *b);

/* b: the whole of it, plain, or the one piece; packed: cpu_pieces_bytes of room. */
bool cpu_pieces_pack(const cpu_pieces *pieces, int thread, int64_t piece, const void *b,
                     void *packed);

/* One piece of one tile of rows; a and c point at the tile's first row, c at column 0. */
bool cpu_pieces_run(const cpu_pieces *pieces, int thread, int64_t tile, int64_t piece,
                    const void *a, const void *packed, float *c, int64_t c_stride, bool add,
                    char *scratch);

#endif
