/* SHA-256 (FIPS 180-4), for names that other programs derive from it. Not tuned for speed. */
#ifndef BASE_SHA256_H
#define BASE_SHA256_H

#include <stddef.h>
#include <stdint.h>

void base_sha256(const void *data, size_t size, uint8_t out[32]);
void base_sha256_hex(const void *data, size_t size, char out[65]); /* lower case, with a NUL */

#endif
