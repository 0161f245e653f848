/* Checksums and hashes: XXH3. */
#ifndef BASE_HASH_H
#define BASE_HASH_H

#include <stddef.h>
#include <stdint.h>

uint64_t base_hash(const void *data, size_t size); /* XXH3, 64 bits, seed 0 */
uint64_t base_hash_seeded(const void *data, size_t size, uint64_t seed);

/* Returns base_hash(data, size). Calls `ahead` for each piece, one piece before reading it. */
uint64_t base_hash_pieces(const void *data, size_t size,
                          void (*ahead)(const void *piece, size_t size));

/* base_hash of what is added piece by piece. NULL: out of memory; `end` frees it, harmless on
 * NULL. */
typedef struct base_hash_stream base_hash_stream;
base_hash_stream *base_hash_begin(void);
void base_hash_add(base_hash_stream *stream, const void *data, size_t size);
uint64_t base_hash_end(base_hash_stream *stream);

void base_hash_hex(uint64_t hash, char out[17]); /* 16 lower-case digits and a NUL */

#endif
