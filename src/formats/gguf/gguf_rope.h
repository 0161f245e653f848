/* Factors of rotation that llama.cpp's converter writes as a tensor. */
#ifndef FORMATS_GGUF_ROPE_H
#define FORMATS_GGUF_ROPE_H

#include <jansson.h>
#include <stdint.h>

/* "rope_freqs" of llama3's scaling: `dimensions` / 2 factors with the converter's bits, on a
 * processor with AVX-512 (others differ in the last bit of some of the last elements that fill no
 * block of 32). `rope`: rope_parameters. */
void formats_gguf_llama3_factors(const json_t *rope, int64_t dimensions, float *out);

#endif
