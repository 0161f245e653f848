/* Matrix products for one thread: c (+)= a b or a b^T, + bias. They are oneDNN's, except fp32
 * products with b packed on AVX2, where the library would pack b again in each call (panels.h).
 *
 * A product is fixed by its shape alone, and the library is told to use one thread, so the bits
 * depend neither on the number of threads nor on other work. Callers cut their work into tiles of
 * fixed size, and run these on the device's threads. */
#ifndef CPU_PRODUCT_H
#define CPU_PRODUCT_H

#include "device/cpu/cpu.h"
#include "device/cpu/product/kernels_matrix.h"

/* Whether products accept operands of this type; others are widened to fp32 first. */
static inline bool cpu_product_takes(const device *dev, base_dtype dtype) {
    return dtype == BASE_FP32 || (dtype == BASE_BF16 && cpu_of(dev)->set->bf16);
}

typedef struct cpu_product_shape {
    int64_t rows, columns, inner;         /* c is rows x columns */
    int64_t a_stride, b_stride, c_stride; /* elements between rows in memory */
    base_dtype input, output, bias;       /* FP32 or BF16; bias may be NONE */
    bool b_transposed;                    /* b is stored columns x inner */
    bool sum;                             /* adds to c */
    bool b_packed; /* b comes from cpu_product_pack; refused if that needs padding */
} cpu_product_shape;

typedef struct cpu_product cpu_product;

/* cpu_products caches all products of a device. */
sifr_status cpu_products_open(int threads, const cpu_matrix_kernels *kernels, cpu_products **out,
                              sifr_error *error) SIFR_MUST_CHECK;
void cpu_products_close(cpu_products *products); /* NULL is allowed */

/* From here on products are described alone: they have sizes, and cannot run. */
void cpu_products_only_describe(cpu_products *products);

/* Finds the product, or makes it. It belongs to `products`. */
sifr_status cpu_product_find(cpu_products *products, const cpu_product_shape *shape,
                             const cpu_product **out, sifr_error *error) SIFR_MUST_CHECK;

/* Whether it is made by our kernels: its bits do not depend on strides. */
bool cpu_product_is_own(const cpu_product *product);

int64_t cpu_product_scratch(const cpu_product *product);      /* bytes for a run */
int64_t cpu_product_packed_bytes(const cpu_product *product); /* 0 unless b_packed */

/* Runs on the calling thread, number `thread` of the device's team. `scratch` is aligned to 64
 * bytes and not shared with another thread. False if the library reports a fault. */
bool cpu_product_run(const cpu_product *product, int thread, const void *a, const void *b,
                     const void *bias, void *c, void *scratch);

/* Like cpu_product_run, for an fp32 product whose c_stride is its columns. The result is computed
 * in `made`, which has room for it, and then stored to c, rows c_stride elements apart, or added to
 * c. That is faster than letting the library add. */
bool cpu_product_put(const cpu_product *product, int thread, const void *a, const void *b,
                     const void *bias, float *made, float *c, int64_t c_stride, bool add,
                     void *scratch);

/* Whether a matrix b packed for one of the two can be used with the other. */
bool cpu_product_same_packing(const cpu_product *a, const cpu_product *b);

/* Packs a plain b into the layout of the product, at `packed` (64-byte aligned). */
bool cpu_product_pack(const cpu_product *product, int thread, const void *b, void *packed);

/* Finds an equal plan that refers to products, or keeps a copy, owned by `products`. */
sifr_status cpu_products_keep(cpu_products *products, const void *plan, size_t size,
                              const void **out, sifr_error *error) SIFR_MUST_CHECK;

#endif
