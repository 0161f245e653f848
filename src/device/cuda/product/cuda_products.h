/* Products of 16-bit matrices by cuBLASLt on a GPU: which ones, and with which algorithm.
 *
 * The algorithm of a product is the first that cuBLASLt proposes for its shape, types and
 * alignment, among those that cut no sum. It is asked for once, at the first run, and then kept, so
 * runs of one shape have the same bits. A part of a matrix (cuda_gemm.whole) takes the algorithm of
 * the whole: a row does not depend on other rows.
 *
 * cuBLASLt's matrices are column-major, so it computes c^T = op(b)^T op(a)^T of the same memory. */
#ifndef CUDA_PRODUCTS_H
#define CUDA_PRODUCTS_H

#include "device/cuda/cuda_lt.h"
#include "device/cuda/product/cuda_gemm.h"

/* Device memory that cuBLASLt may use in a product, one after the other. */
#define CUDA_PRODUCTS_WORKSPACE ((int64_t)32 << 20)

typedef struct cuda_products cuda_products;

/* For the GPU of the current context, which must be current in all calls below. `lt` is copied. */
sifr_status cuda_products_open(const cuda_lt *lt, cuda_products **out,
                               sifr_error *error) SIFR_MUST_CHECK;
void cuda_products_close(cuda_products *products); /* NULL is allowed */

/* Whether a product can go to cuBLASLt, by its shape and types alone. */
bool cuda_products_fit(const cuda_gemm *gemm);

/* Makes what the product needs, but for the algorithm, unless it is there. Addresses may be
 * missing. From any thread. */
sifr_status cuda_products_reserve(cuda_products *products, const cuda_gemm *gemm,
                                  sifr_error *error) SIFR_MUST_CHECK;

/* Enqueues a reserved product on the stream, with gemm->workspace. *done is false, and nothing
 * happened, if the product is none for cuBLASLt: it was not reserved, an operand is not aligned, or
 * cuBLASLt has no algorithm. */
sifr_status cuda_products_run(cuda_products *products, const cuda_gemm *gemm, cuda_stream stream,
                              bool *done, sifr_error *error) SIFR_MUST_CHECK;

/* The calls of cuBLASLt that cuda_products_run makes, if cuBLASLt has an algorithm: one for each
 * chunk; 0 where the product is none for it. */
int64_t cuda_products_calls(const cuda_gemm *gemm);

/* The first product that cuBLASLt had no algorithm for; "" if there was none. */
const char *cuda_products_lack(const cuda_products *products);

/* Writes a line for each product that ran: its shape and its algorithm, as cuBLASLt numbers them.
 * Returns the bytes of all lines, which may exceed `size`. */
size_t cuda_products_describe(const cuda_products *products, char *out, size_t size);

#endif
