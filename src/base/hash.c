#include "base/hash.h"

#include <stdio.h>
#include <xxhash.h>

uint64_t base_hash(const void *data, size_t size) {
    return XXH3_64bits(data, size);
}

uint64_t base_hash_seeded(const void *data, size_t size, uint64_t seed) {
    return XXH3_64bits_withSeed(data, size, seed);
}

void base_hash_hex(uint64_t hash, char out[17]) {
    snprintf(out, 17, "%016llx", (unsigned long long)hash);
}
