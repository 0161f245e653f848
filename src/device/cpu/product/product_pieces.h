/* c (+)= a b, with b packed once in pieces of columns and used by many tiles of rows. */
#ifndef CPU_PRODUCT_PIECES_H
#define CPU_PRODUCT_PIECES_H

#include "device/cpu/product/product_rows.h"

typedef struct cpu_pieces {
    int64_t count, columns; /* count == 0: the library cannot pack such a b without padding */
    int64_t bytes;          /* per packed piece */
    int64_t apart;          /* bytes between pieces of the plain b; 0: pieces come one at a time */
    cpu_row_tiles tiles;
} cpu_pieces;

/* `shape` is that of the whole product; c_stride, sum and b_packed are ignored. b_stride == 0:
 * pieces of b come one at a time, dense. */
sifr_status cpu_find_pieces(cpu_products *products, cpu_product_shape shape, int64_t tile,
                            cpu_pieces *out, sifr_error *error) SIFR_MUST_CHECK;

int64_t cpu_pieces_scratch(const cpu_pieces *pieces); /* bytes per thread */

static inline int64_t cpu_pieces_bytes(const cpu_pieces *pieces) {
    return pieces->count * pieces->bytes;
}

bool cpu_pieces_same_packing(const cpu_pieces *a, const cpu_pieces *b);

/* Packs a piece. b: the whole plain matrix, or the one piece (b_stride == 0); packed: room for
 * cpu_pieces_bytes. */
bool cpu_pieces_pack(const cpu_pieces *pieces, int thread, int64_t piece, const void *b,
                     void *packed);

/* Multiplies a tile of rows by a piece; a and c point at the tile's first row, c at column 0. */
bool cpu_pieces_run(const cpu_pieces *pieces, int thread, int64_t tile, int64_t piece,
                    const void *a, const void *packed, float *c, int64_t c_stride, bool add,
                    char *scratch);

#endif
