#include "base/hash.h"

#include <stdio.h>
#include <xxhash.h>

#include "base/assert.h"

uint64_t base_hash(const void *data, size_t size) {
    return XXH3_64bits(data, size);
}

uint64_t base_hash_seeded(const void *data, size_t size, uint64_t seed) {
    return XXH3_64bits_withSeed(data, size, seed);
}

enum { PIECE = 1 << 20 };

static size_t piece_at(size_t at, size_t size) {
    base_assert(at < size);
    return size - at < PIECE ? size - at : PIECE;
}

uint64_t base_hash_pieces(const void *data, size_t size,
                          void (*ahead)(const void *piece, size_t size)) {
    const char *bytes = data;
    XXH3_state_t *state = XXH3_createState();
    if (!state || XXH3_64bits_reset(state) != XXH_OK) {
        XXH3_freeState(state);
        return base_hash(data, size);
    }
    for (size_t at = 0, here; at < size; at += here) {
        here = piece_at(at, size);
        if (at == 0) ahead(bytes, here);
        if (at + here < size) ahead(bytes + at + here, piece_at(at + here, size));
        (void)XXH3_64bits_update(state, bytes + at, here);
    }
    uint64_t hash = XXH3_64bits_digest(state);
    XXH3_freeState(state);
    return hash;
}

base_hash_stream *base_hash_begin(void) {
    XXH3_state_t *state = XXH3_createState();
    if (state) (void)XXH3_64bits_reset(state);
    return (base_hash_stream *)state;
}

void base_hash_add(base_hash_stream *stream, const void *data, size_t size) {
    (void)XXH3_64bits_update((XXH3_state_t *)stream, data, size);
}

uint64_t base_hash_end(base_hash_stream *stream) {
    XXH3_state_t *state = (XXH3_state_t *)stream;
    uint64_t hash = state ? XXH3_64bits_digest(state) : 0;
    XXH3_freeState(state);
    return hash;
}

void base_hash_hex(uint64_t hash, char out[17]) {
    snprintf(out, 17, "%016llx", (unsigned long long)hash);
}
