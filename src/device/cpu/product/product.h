/* Matrix products, each made for one thread: c (+)= a b or a b^T, + bias. oneDNN's, but for those
 * of fp32 numbers with b packed on AVX2, where the library would pack b again in each call
 * (panels.h).
 *
 * The call form of a product is fixed by its shape alone, and the library is told to use one
 * thread, so its bits depend on neither the number of threads nor on what else runs. Callers cut
 * their work into tiles of fixed size and hand those to the device's own threads. */
#ifndef CPU_PRODUCT_H
#define CPU_PRODUCT_H

#include "device/cpu/cpu.h"
#include "device/cpu/product/kernels_matrix.h"

/* Whether products take operands of this type as they are; else they are widened to fp32 first. */
static inline bool cpu_product_takes(const device *dev, base_dtype dtype) {
    return dtype == BASE_FP32 || (dtype == BASE_BF16 && dev->set->bf16);
}

typedef struct cpu_product_shape {
    int64_t rows, columns, inner;         /* c is rows x columns */
    int64_t a_stride, b_stride, c_stride; /* elements between rows as they are stored */
    base_dtype input, output, bias;       /* FP32 or BF16; bias may be NONE */
    bool b_transposed;                    /* b is stored columns x inner */
    bool sum;                             /* c is added to */
    bool b_packed; /* b comes from cpu_product_pack, not plain; refused where that needs padding */
} cpu_product_shape;

typedef struct cpu_product cpu_product;

/* cpu_products is all that a device has made, found again. */
sifr_status cpu_products_open(int threads, const cpu_matrix_kernels *kernels, cpu_products **out,
                              sifr_error *error) SIFR_MUST_CHECK;
void cpu_products_close(cpu_products *products); /* NULL is harmless */

/* Makes the product or finds it; it belongs to `products`. */
sifr_status cpu_product_find(cpu_products *products, const cpu_product_shape *shape,
                             const cpu_product **out, sifr_error *error) SIFR_MUST_CHECK;

int64_t cpu_product_scratch(const cpu_product *product);      /* bytes a run needs */
int64_t cpu_product_packed_bytes(const cpu_product *product); /* 0 unless b_packed */

/* Runs on the calling thread, which is number `thread` of the device's team. `scratch` is aligned
 * to 64 bytes and not shared with another thread. False if the library reports a fault. */
bool cpu_product_run(const cpu_product *product, int thread, const void *a, const void *b,
                     const void *bias, void *c, void *scratch);

/* The same for a product of fp32 numbers whose c_stride is its columns: made in `made`, which has
 * room for that, and then stored to c, rows c_stride elements apart, or added to it, which is
 * faster than letting the library add. */
bool cpu_product_put(const cpu_product *product, int thread, const void *a, const void *b,
                     const void *bias, float *made, float *c, int64_t c_stride, bool add,
                     void *scratch);

/* Whether a b packed for one of the two serves the other. */
bool cpu_product_same_packing(const cpu_product *a, const cpu_product *b);

/* Brings a plain b into the layout that the product wants, at `packed` (64-byte aligned). */
bool cpu_product_pack(const cpu_product *product, int thread, const void *b, void *packed);

/* A plan that refers to products: finds the same bytes or keeps a copy, owned by `products`. */
sifr_status cpu_products_keep(cpu_products *products, const void *plan, size_t size,
                              const void **out, sifr_error *error) SIFR_MUST_CHECK;

#endif
