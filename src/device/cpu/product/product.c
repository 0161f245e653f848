#include "device/cpu/product/product.h"

#include <dnnl.h>
#include <pthread.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "base/heap.h"

/* From libgomp, which runs oneDNN's threads: a property of the calling thread. */
extern int omp_get_max_threads(void);
extern void omp_set_num_threads(int count);

enum {
    PRODUCT_A,
    PRODUCT_B,
    PRODUCT_BIAS,
    PRODUCT_C,
    PRODUCT_SCRATCH,
    PRODUCT_PLAIN_B,

    PRODUCT_OPERANDS
};

struct cpu_product {
    cpu_product_shape shape;
    const cpu_matrix_kernels *kernels;
    bool own; /* made by `kernels`; else by the library, with the fields below */
    dnnl_primitive_t primitive, reorder;
    dnnl_memory_t *memory; /* threads x PRODUCT_OPERANDS: each thread sets its own handles */
    dnnl_stream_t *streams;
    dnnl_memory_desc_t packed; /* layout of b when it is packed */
    int64_t scratch_bytes, packed_bytes;
    int threads;
    cpu_product *next;
};

typedef struct kept_plan {
    struct kept_plan *next;
    size_t size;
    max_align_t bytes[];
} kept_plan;

struct cpu_products {
    pthread_mutex_t lock; /* for the lists: several threads may plan at once */
    kept_plan *plans;
    const cpu_matrix_kernels *kernels;
    dnnl_engine_t engine;
    dnnl_stream_t *streams;
    int threads;
    bool only_describes;
    cpu_product *first;
};

static void product_destroy(cpu_product *product) {
    if (product == NULL) return;
    for (int i = 0; product->memory != NULL && i < product->threads * PRODUCT_OPERANDS; i++)
        if (product->memory[i] != NULL) dnnl_memory_destroy(product->memory[i]);
    free(product->memory);
    if (product->primitive != NULL) dnnl_primitive_destroy(product->primitive);
    if (product->reorder != NULL) dnnl_primitive_destroy(product->reorder);
    free(product);
}

void cpu_products_close(cpu_products *products) {
    if (products == NULL) return;
    for (cpu_product *p = products->first; p != NULL;) {
        cpu_product *next = p->next;
        product_destroy(p);
        p = next;
    }
    for (kept_plan *p = products->plans; p != NULL;) {
        kept_plan *next = p->next;
        free(p);
        p = next;
    }
    for (int i = 0; products->streams != NULL && i < products->threads; i++)
        if (products->streams[i] != NULL) dnnl_stream_destroy(products->streams[i]);
    free(products->streams);
    if (products->engine != NULL) dnnl_engine_destroy(products->engine);
    pthread_mutex_destroy(&products->lock);
    free(products);
}

sifr_status cpu_products_open(int threads, const cpu_matrix_kernels *kernels, cpu_products **out,
                              sifr_error *error) {
    *out = NULL;
    cpu_products *products = NULL;
    BASE_TRY(base_alloc(1, sizeof *products, &products, error));
    products->threads = threads;
    products->kernels = kernels;
    pthread_mutex_init(&products->lock, NULL);
    sifr_status status;
    BASE_TRY_GOTO(status,
                  base_alloc((size_t)threads, sizeof *products->streams, &products->streams, error),
                  fail);
    bool ok = dnnl_engine_create(&products->engine, dnnl_cpu, 0) == dnnl_success;
    for (int i = 0; ok && i < threads; i++)
        ok = dnnl_stream_create(&products->streams[i], products->engine,
                                dnnl_stream_default_flags) == dnnl_success;
    if (!ok) {
        status = base_fail(error, SIFR_FAILED, "oneDNN: cannot open the CPU: the library refused");
        goto fail;
    }
    *out = products;
    return SIFR_OK;
fail:
    cpu_products_close(products);
    return status;
}

void cpu_products_only_describe(cpu_products *products) {
    products->only_describes = true;
}

static dnnl_data_type_t product_type(base_dtype dtype) {
    return dtype == BASE_BF16 ? dnnl_bf16 : dnnl_f32;
}

static bool describe_matrix(dnnl_memory_desc_t *out, int64_t rows, int64_t columns,
                            int64_t row_stride, int64_t column_stride, base_dtype dtype) {
    dnnl_dims_t dims = {rows, columns}, strides = {row_stride, column_stride};
    return dnnl_memory_desc_init_by_strides(out, 2, dims, product_type(dtype), strides) ==
           dnnl_success;
}

/* oneDNN's descriptors of a product. */
typedef struct product_forms {
    dnnl_memory_desc_t a, b, plain_b, bias, c;
} product_forms;

static bool describe_product(const cpu_product_shape *s, product_forms *f) {
    bool ok = describe_matrix(&f->a, s->rows, s->inner, s->a_stride, 1, s->input) &&
              describe_matrix(&f->plain_b, s->inner, s->columns, s->b_transposed ? 1 : s->b_stride,
                              s->b_transposed ? s->b_stride : 1, s->input) &&
              describe_matrix(&f->c, s->rows, s->columns, s->c_stride, 1, s->output) &&
              describe_matrix(&f->bias, 1, s->columns, s->columns, 1,
                              s->bias == BASE_NONE ? BASE_FP32 : s->bias);
    f->b = f->plain_b;
    if (ok && s->b_packed) {
        dnnl_dims_t dims = {s->inner, s->columns};
        ok = dnnl_memory_desc_init_by_tag(&f->b, 2, dims, product_type(s->input),
                                          dnnl_format_tag_any) == dnnl_success;
    }
    return ok;
}

static dnnl_status_t make_descriptor(dnnl_engine_t engine, const cpu_product_shape *s,
                                     const product_forms *f, dnnl_primitive_desc_t *out) {
    dnnl_primitive_attr_t attributes = NULL;
    dnnl_post_ops_t post_ops = NULL;
    dnnl_matmul_desc_t matmul;
    dnnl_status_t status = dnnl_primitive_attr_create(&attributes);
    if (status == dnnl_success)
        status = dnnl_primitive_attr_set_scratchpad_mode(attributes, dnnl_scratchpad_mode_user);
    if (status == dnnl_success && s->sum) {
        status = dnnl_post_ops_create(&post_ops);
        if (status == dnnl_success) status = dnnl_post_ops_append_sum(post_ops, 1.0f);
        if (status == dnnl_success) status = dnnl_primitive_attr_set_post_ops(attributes, post_ops);
    }
    if (status == dnnl_success)
        status = dnnl_matmul_desc_init(&matmul, &f->a, &f->b,
                                       s->bias == BASE_NONE ? NULL : &f->bias, &f->c);
    if (status == dnnl_success)
        status = dnnl_primitive_desc_create(out, &matmul, attributes, engine, NULL);
    if (post_ops != NULL) dnnl_post_ops_destroy(post_ops);
    if (attributes != NULL) dnnl_primitive_attr_destroy(attributes);
    return status;
}

static dnnl_status_t make_reorder(dnnl_engine_t engine, const dnnl_memory_desc_t *plain,
                                  const dnnl_memory_desc_t *packed, dnnl_primitive_t *out) {
    dnnl_primitive_attr_t attributes = NULL;
    dnnl_primitive_desc_t descriptor = NULL;
    dnnl_status_t status = dnnl_primitive_attr_create(&attributes);
    if (status == dnnl_success)
        status = dnnl_reorder_primitive_desc_create(&descriptor, plain, engine, packed, engine,
                                                    attributes);
    if (status == dnnl_success) status = dnnl_primitive_create(out, descriptor);
    if (descriptor != NULL) dnnl_primitive_desc_destroy(descriptor);
    if (attributes != NULL) dnnl_primitive_attr_destroy(attributes);
    return status;
}

static void take_sizes(cpu_product *product, const dnnl_memory_desc_t *b,
                       const dnnl_memory_desc_t *scratch) {
    product->scratch_bytes = (int64_t)dnnl_memory_desc_get_size(scratch);
    if (!product->shape.b_packed) return;
    product->packed = *b;
    product->packed_bytes = (int64_t)dnnl_memory_desc_get_size(b);
}

/* Each thread that gets a packed matrix would clear its padding again. */
static bool is_padded(const cpu_product_shape *s, const dnnl_memory_desc_t *b) {
    return s->b_packed && (b->padded_dims[0] != s->inner || b->padded_dims[1] != s->columns);
}

/* What makes a product run. */
static dnnl_status_t make_primitives(cpu_products *products, cpu_product *product,
                                     const product_forms *forms, const dnnl_memory_desc_t *b,
                                     const dnnl_memory_desc_t *scratch,
                                     const_dnnl_primitive_desc_t descriptor) {
    const dnnl_memory_desc_t *operands[PRODUCT_OPERANDS] = {&forms->a, b,       &forms->bias,
                                                            &forms->c, scratch, &forms->plain_b};
    dnnl_status_t status = dnnl_primitive_create(&product->primitive, descriptor);
    if (status == dnnl_success && product->shape.b_packed)
        status = make_reorder(products->engine, &forms->plain_b, b, &product->reorder);
    for (int i = 0; status == dnnl_success && i < products->threads * PRODUCT_OPERANDS; i++)
        status = dnnl_memory_create(&product->memory[i], operands[i % PRODUCT_OPERANDS],
                                    products->engine, DNNL_MEMORY_NONE);
    return status;
}

static dnnl_status_t make_product(cpu_products *products, cpu_product *product) {
    const cpu_product_shape *s = &product->shape;
    product_forms forms;
    if (!describe_product(s, &forms)) return dnnl_invalid_arguments;
    dnnl_primitive_desc_t descriptor = NULL;
    dnnl_status_t status = make_descriptor(products->engine, s, &forms, &descriptor);
    if (status != dnnl_success) return status;
    const dnnl_memory_desc_t *b =
        dnnl_primitive_desc_query_md(descriptor, dnnl_query_weights_md, 0);
    const dnnl_memory_desc_t *scratch =
        dnnl_primitive_desc_query_md(descriptor, dnnl_query_scratchpad_md, 0);
    take_sizes(product, b, scratch);
    if (is_padded(s, b))
        status = dnnl_unimplemented;
    else if (!products->only_describes)
        status = make_primitives(products, product, &forms, b, scratch, descriptor);
    dnnl_primitive_desc_destroy(descriptor);
    return status;
}

static bool same_shape(const cpu_product_shape *a, const cpu_product_shape *b) {
    return a->rows == b->rows && a->columns == b->columns && a->inner == b->inner &&
           a->a_stride == b->a_stride && a->b_stride == b->b_stride && a->c_stride == b->c_stride &&
           a->input == b->input && a->output == b->output && a->bias == b->bias &&
           a->b_transposed == b->b_transposed && a->sum == b->sum && a->b_packed == b->b_packed;
}

static sifr_status make_library_product(cpu_products *products, cpu_product *product,
                                        sifr_error *error) {
    const cpu_product_shape *shape = &product->shape;
    if (!products->only_describes)
        BASE_TRY(base_alloc((size_t)products->threads * PRODUCT_OPERANDS, sizeof *product->memory,
                            &product->memory, error));
    int threads = omp_get_max_threads();
    omp_set_num_threads(1);
    dnnl_status_t made = make_product(products, product);
    omp_set_num_threads(threads);
    if (made == dnnl_success) return SIFR_OK;
    return base_fail(error, SIFR_FAILED,
                     "oneDNN: no product of %lld x %lld by %lld x %lld: status %d",
                     (long long)shape->rows, (long long)shape->inner, (long long)shape->inner,
                     (long long)shape->columns, (int)made);
}

static bool takes_panels(const cpu_products *products, const cpu_product_shape *s) {
    bool bias = s->bias == BASE_NONE || s->bias == BASE_FP32;
    return products->kernels->panel_product && s->b_packed && s->input == BASE_FP32 &&
           s->output == BASE_FP32 && bias && !s->sum && s->c_stride == s->columns &&
           s->columns % CPU_PANEL == 0;
}

static sifr_status find_product(cpu_products *products, const cpu_product_shape *shape,
                                const cpu_product **out, sifr_error *error) {
    for (cpu_product **at = &products->first; *at != NULL; at = &(*at)->next) {
        cpu_product *found = *at;
        if (!same_shape(&found->shape, shape)) continue;
        *at = found->next; /* recently used products move to the front */
        found->next = products->first;
        products->first = found;
        return *out = found, SIFR_OK;
    }
    cpu_product *product = NULL;
    BASE_TRY(base_alloc(1, sizeof *product, &product, error));
    product->shape = *shape;
    product->threads = products->threads;
    product->streams = products->streams;
    product->kernels = products->kernels;
    sifr_status status = SIFR_OK;
    if (takes_panels(products, shape)) {
        product->own = true;
        product->packed_bytes = shape->inner * shape->columns * (int64_t)sizeof(float);
    } else {
        BASE_TRY_GOTO(status, make_library_product(products, product, error), fail);
    }
    product->next = products->first;
    products->first = product;
    *out = product;
    return SIFR_OK;
fail:
    product_destroy(product);
    return status;
}

sifr_status cpu_product_find(cpu_products *products, const cpu_product_shape *shape,
                             const cpu_product **out, sifr_error *error) {
    *out = NULL;
    pthread_mutex_lock(&products->lock);
    sifr_status status = find_product(products, shape, out, error);
    pthread_mutex_unlock(&products->lock);
    return status;
}

static sifr_status keep_plan(cpu_products *products, const void *plan, size_t size,
                             const void **out, sifr_error *error) {
    kept_plan *kept = NULL;
    for (kept_plan **at = &products->plans; *at != NULL; at = &(*at)->next) {
        kept = *at;
        if (kept->size != size || memcmp(kept->bytes, plan, size) != 0) continue;
        *at = kept->next; /* moves to the front, like products */
        kept->next = products->plans;
        products->plans = kept;
        return *out = kept->bytes, SIFR_OK;
    }
    BASE_TRY(base_alloc(1, sizeof *kept + size, &kept, error));
    kept->size = size;
    memcpy(kept->bytes, plan, size);
    kept->next = products->plans;
    products->plans = kept;
    *out = kept->bytes;
    return SIFR_OK;
}

sifr_status cpu_products_keep(cpu_products *products, const void *plan, size_t size,
                              const void **out, sifr_error *error) {
    *out = NULL;
    pthread_mutex_lock(&products->lock);
    sifr_status status = keep_plan(products, plan, size, out, error);
    pthread_mutex_unlock(&products->lock);
    return status;
}

bool cpu_product_is_own(const cpu_product *product) {
    return product->own;
}

int64_t cpu_product_scratch(const cpu_product *product) {
    return product->scratch_bytes;
}

int64_t cpu_product_packed_bytes(const cpu_product *product) {
    return product->packed_bytes;
}

/* A new handle makes the library clear the padding of a packed layout, so only real changes are
 * passed on. The library takes non-const pointers, but does not write to its inputs. */
static bool set_address(dnnl_memory_t memory, const void *address, dnnl_stream_t stream) {
    void *now = NULL;
    if (dnnl_memory_get_data_handle(memory, &now) != dnnl_success) return false;
    if (now == address) return true;
    return dnnl_memory_set_data_handle_v2(memory, (void *)(uintptr_t)address, stream) ==
           dnnl_success;
}

static bool execute_alone(dnnl_primitive_t primitive, dnnl_stream_t stream, int count,
                          const dnnl_exec_arg_t *arguments) {
    int threads = omp_get_max_threads();
    if (threads != 1) omp_set_num_threads(1);
    dnnl_status_t status = dnnl_primitive_execute(primitive, stream, count, arguments);
    if (threads != 1) omp_set_num_threads(threads);
    return status == dnnl_success;
}

static void run_own(const cpu_product *product, const float *a, const float *b, const float *bias,
                    float *made, float *c, int64_t c_stride, bool add) {
    const cpu_product_shape *s = &product->shape;
    product->kernels->panel_product(&(cpu_panel_operands){.a = a,
                                                          .panels = b,
                                                          .bias = bias,
                                                          .made = made,
                                                          .c = c,
                                                          .rows = s->rows,
                                                          .inner = s->inner,
                                                          .columns = s->columns,
                                                          .a_stride = s->a_stride,
                                                          .c_stride = c_stride,
                                                          .add = add});
}

bool cpu_product_run(const cpu_product *product, int thread, const void *a, const void *b,
                     const void *bias, void *c, void *scratch) {
    const cpu_product_shape *s = &product->shape;
    if (product->own) {
        run_own(product, a, b, bias, c, c, s->c_stride, false);
        return true;
    }
    dnnl_memory_t *memory = product->memory + (ptrdiff_t)thread * PRODUCT_OPERANDS;
    dnnl_stream_t stream = product->streams[thread];
    bool biased = s->bias != BASE_NONE;
    if (!set_address(memory[PRODUCT_A], a, stream) || !set_address(memory[PRODUCT_B], b, stream) ||
        !set_address(memory[PRODUCT_C], c, stream) ||
        !set_address(memory[PRODUCT_SCRATCH], scratch, stream) ||
        (biased && !set_address(memory[PRODUCT_BIAS], bias, stream)))
        return false;
    dnnl_exec_arg_t arguments[5] = {{DNNL_ARG_SRC, memory[PRODUCT_A]},
                                    {DNNL_ARG_WEIGHTS, memory[PRODUCT_B]},
                                    {DNNL_ARG_DST, memory[PRODUCT_C]},
                                    {DNNL_ARG_SCRATCHPAD, memory[PRODUCT_SCRATCH]},
                                    {DNNL_ARG_BIAS, memory[PRODUCT_BIAS]}};
    return execute_alone(product->primitive, stream, biased ? 5 : 4, arguments);
}

bool cpu_product_put(const cpu_product *product, int thread, const void *a, const void *b,
                     const void *bias, float *made, float *c, int64_t c_stride, bool add,
                     void *scratch) {
    const cpu_product_shape *s = &product->shape;
    if (product->own) {
        run_own(product, a, b, bias, made, c, c_stride, add);
        return true;
    }
    if (!cpu_product_run(product, thread, a, b, bias, made, scratch)) return false;
    product->kernels->put_block(made, s->rows, s->columns, c, c_stride, add);
    return true;
}

bool cpu_product_same_packing(const cpu_product *a, const cpu_product *b) {
    if (!a->shape.b_packed || !b->shape.b_packed || a->own != b->own) return false;
    if (a->own) return a->shape.inner == b->shape.inner && a->shape.columns == b->shape.columns;
    return dnnl_memory_desc_equal(&a->packed, &b->packed);
}

bool cpu_product_pack(const cpu_product *product, int thread, const void *b, void *packed) {
    const cpu_product_shape *s = &product->shape;
    if (product->own) {
        product->kernels->pack_panels(b, s->b_stride, s->b_transposed, s->inner, s->columns,
                                      packed);
        return true;
    }
    dnnl_memory_t *memory = product->memory + (ptrdiff_t)thread * PRODUCT_OPERANDS;
    dnnl_stream_t stream = product->streams[thread];
    if (!set_address(memory[PRODUCT_PLAIN_B], b, stream) ||
        !set_address(memory[PRODUCT_B], packed, stream))
        return false;
    dnnl_exec_arg_t arguments[2] = {{DNNL_ARG_FROM, memory[PRODUCT_PLAIN_B]},
                                    {DNNL_ARG_TO, memory[PRODUCT_B]}};
    return execute_alone(product->reorder, stream, 2, arguments);
}
