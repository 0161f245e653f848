#include "support/cuda/mirror.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/heap.h"
#include "device/cuda/cuda_launch.h"

enum { SPANS = 80, GUARD = 256, ALIGN = 256, FILL = 0x5a };

/* Bytes of the host, and where they begin in the block. */
typedef struct mirror_span {
    char *data;
    int64_t bytes, at;
} mirror_span;

typedef struct mirror {
    cuda_base base;
    device *inner;
    mirror_span spans[SPANS];
    int count;
    bool full; /* there were more */
    char *block, *image;
    int64_t bytes; /* of both */
} mirror;

static const device_backend backend;

static mirror *mirror_of(device *dev) {
    return dev->backend == &backend ? (mirror *)dev : NULL;
}

static void add_span(mirror *m, const void *data, int64_t bytes) {
    if (!data || bytes <= 0) return;
    char *begin = (char *)(uintptr_t)data, *end = begin + bytes;
    for (int i = 0; i < m->count; i++) { /* what it overlaps becomes part of it */
        mirror_span *s = &m->spans[i];
        if (end <= s->data || s->data + s->bytes <= begin) continue;
        if (s->data < begin) begin = s->data;
        if (s->data + s->bytes > end) end = s->data + s->bytes;
        *s = m->spans[--m->count];
        i = -1;
    }
    if (m->count == SPANS)
        m->full = true;
    else
        m->spans[m->count++] = (mirror_span){begin, end - begin, 0};
}

static void add_matrix(mirror *m, const device_matrix *matrix) {
    if (matrix->dtype == BASE_NONE || matrix->rows <= 0 || matrix->columns <= 0) return;
    int64_t elements = (matrix->rows - 1) * matrix->stride + matrix->columns;
    add_span(m, matrix->data, elements * base_dtype_bytes(matrix->dtype));
}

/* Places the spans. Returns the bytes of all. */
static int64_t place(mirror *m) {
    int64_t end = 0;
    for (int i = 0; i < m->count; i++) {
        mirror_span *s = &m->spans[i];
        s->at = (end + GUARD + ALIGN - 1) / ALIGN * ALIGN + (int64_t)((uintptr_t)s->data % ALIGN);
        end = s->at + s->bytes;
    }
    return end + GUARD;
}

static void give_block(mirror *m) {
    if (m->block) device_give(m->inner, m->block, m->bytes);
    free(m->image);
    m->block = m->image = NULL;
}

static sifr_status reserve(mirror *m, int64_t bytes, sifr_error *error) {
    void *block;
    if (bytes <= m->bytes && m->block) return SIFR_OK;
    give_block(m);
    m->bytes = bytes * 2;
    BASE_TRY(base_alloc((size_t)m->bytes, 1, &m->image, error));
    BASE_TRY(device_take(m->inner, m->bytes, &block, error));
    m->block = block;
    return SIFR_OK;
}

static sifr_status copy_in(mirror *m, sifr_error *error) {
    int64_t bytes = place(m);
    if (m->full) return base_fail(error, SIFR_FAILED, "more than %d operands", SPANS);
    BASE_TRY(reserve(m, bytes, error));
    memset(m->image, FILL, (size_t)bytes);
    for (int i = 0; i < m->count; i++)
        memcpy(m->image + m->spans[i].at, m->spans[i].data, (size_t)m->spans[i].bytes);
    return device_copy(m->inner, m->block, m->image, bytes, error);
}

static sifr_status check_guard(const mirror *m, int64_t from, int64_t to, sifr_error *error) {
    for (int64_t i = from; i < to; i++)
        if (m->image[i] != FILL)
            return base_fail(error, SIFR_FAILED, "wrote beside its operands, in device memory");
    return SIFR_OK;
}

static sifr_status copy_out(mirror *m, sifr_error *error) {
    int64_t bytes = place(m), end = 0;
    BASE_TRY(device_copy(m->inner, m->image, m->block, bytes, error));
    for (int i = 0; i < m->count; i++) {
        const mirror_span *s = &m->spans[i];
        BASE_TRY(check_guard(m, end, s->at, error));
        if (memcmp(s->data, m->image + s->at, (size_t)s->bytes) != 0) /* it may be constant */
            memcpy(s->data, m->image + s->at, (size_t)s->bytes);
        end = s->at + s->bytes;
    }
    return check_guard(m, end, bytes, error);
}

/* Where the device has what the host has at `data`; NULL: nowhere. */
static void *there(const mirror *m, const void *data) {
    const char *at = data;
    for (int i = 0; i < m->count; i++) {
        const mirror_span *s = &m->spans[i];
        if (at >= s->data && at < s->data + s->bytes) return m->block + s->at + (at - s->data);
    }
    return NULL;
}

enum { MATRICES = 2 * (DEVICE_INPUTS + DEVICE_WEIGHTS) + DEVICE_SAVED + 2 };

static void list_matrices(device_call *call, device_matrix *out[MATRICES]) {
    int n = 0;
    for (int i = 0; i < DEVICE_INPUTS; i++) out[n++] = &call->x[i], out[n++] = &call->dx[i];
    for (int i = 0; i < DEVICE_WEIGHTS; i++) out[n++] = &call->w[i], out[n++] = &call->dw[i];
    for (int i = 0; i < DEVICE_SAVED; i++) out[n++] = &call->saved[i];
    out[n++] = &call->y;
    out[n++] = &call->dy;
}

static sifr_status run(device *dev, const device_call *call, sifr_error *error) {
    mirror *m = mirror_of(dev);
    device_call own = *call;
    device_matrix *all[MATRICES];
    list_matrices(&own, all);
    m->count = 0;
    for (int i = 0; i < MATRICES; i++) add_matrix(m, all[i]);
    add_span(m, call->scratch, call->scratch_bytes);
    add_span(m, call->step, sizeof *call->step);
    sifr_status status = copy_in(m, error);
    for (int i = 0; i < MATRICES; i++) all[i]->data = there(m, all[i]->data);
    own.scratch = there(m, call->scratch);
    own.step = there(m, call->step);
    if (status == SIFR_OK) status = device_run(m->inner, &own, error);
    if (status == SIFR_OK) status = copy_out(m, error);
    m->count = 0;
    return status;
}

/* Addresses lie on 8 bytes in the struct; no other number of it is one of the host's. */
static sifr_status launch(device *dev, const cuda_launch *launch, sifr_error *error) {
    mirror *m = mirror_of(dev);
    cuda_launch own = *launch;
    size_t bytes = cuda_argument_bytes(launch->kernel);
    char *arguments;
    BASE_TRY(base_alloc(bytes, 1, &arguments, error));
    memcpy(arguments, launch->arguments, bytes);
    sifr_status status = copy_in(m, error);
    for (size_t at = 0; at + sizeof(void *) <= bytes; at += sizeof(void *)) {
        void *word;
        memcpy(&word, arguments + at, sizeof word);
        word = there(m, word);
        if (word) memcpy(arguments + at, &word, sizeof word);
    }
    own.arguments = arguments;
    if (status == SIFR_OK) status = cuda_launch_kernel(m->inner, &own, error);
    if (status == SIFR_OK) status = copy_out(m, error);
    free(arguments);
    return status;
}

static sifr_status fold_losses(device *dev, const float *losses, int64_t rows, double *sum,
                               sifr_error *error) {
    mirror *m = mirror_of(dev);
    m->count = 0;
    add_span(m, losses, rows * (int64_t)sizeof *losses);
    add_span(m, sum, sizeof *sum);
    BASE_TRY(copy_in(m, error));
    BASE_TRY(device_fold_losses(m->inner, there(m, losses), rows, there(m, sum), error));
    return copy_out(m, error);
}

static sifr_status decide(device *dev, const device_decision *decision, sifr_error *error) {
    mirror *m = mirror_of(dev);
    device_decision own = *decision;
    m->count = 0;
    add_span(m, own.parts, own.ranks * device_part_bytes(own.micro_batches));
    add_span(m, own.step, sizeof *own.step);
    add_span(m, own.outcome, sizeof *own.outcome);
    BASE_TRY(copy_in(m, error));
    own.parts = there(m, own.parts);
    own.step = there(m, own.step), own.outcome = there(m, own.outcome);
    BASE_TRY(device_decide(m->inner, &own, error));
    return copy_out(m, error);
}

static sifr_status start_sum(device *dev, device_queue queue, const device_sum *sum,
                             sifr_error *error) {
    mirror *m = mirror_of(dev);
    device_sum own = *sum;
    device_mark mark;
    const void *slices[DEVICE_MOST_SLICES];
    if (sum->count > DEVICE_MOST_SLICES) return device_start_sum(m->inner, queue, sum, error);
    m->count = 0;
    for (int32_t i = 0; i < sum->count; i++)
        add_span(m, sum->slices[i], sum->elements * base_dtype_bytes(sum->type));
    add_span(m, sum->out, sum->elements * base_dtype_bytes(sum->sum));
    BASE_TRY(copy_in(m, error));
    for (int32_t i = 0; i < sum->count; i++) slices[i] = there(m, sum->slices[i]);
    own.slices = slices, own.out = there(m, sum->out);
    BASE_TRY(device_start_sum(m->inner, queue, &own, error));
    BASE_TRY(device_mark_here(m->inner, queue, &mark, error));
    BASE_TRY(device_finish(m->inner, mark, error));
    return copy_out(m, error);
}

/* Products that a test ran on the mirror were the device's. */
static void close_mirror(device *dev) {
    mirror *m = mirror_of(dev);
    ((cuda_base *)m->inner)->own_products += m->base.own_products;
    give_block(m);
    free(dev);
}

static const char *isa(const device *dev) {
    return device_isa(((const mirror *)dev)->inner);
}

static void describe(const device *dev, char *out, size_t size) {
    device_describe(((const mirror *)dev)->inner, out, size);
}

static sifr_status prepare(device *dev, device_call *call, sifr_error *error) {
    return device_prepare(mirror_of(dev)->inner, call, error);
}

static const device_backend backend = {.close = close_mirror,
                                       .isa = isa,
                                       .describe = describe,
                                       .prepare = prepare,
                                       .run = run,
                                       .fold_losses = fold_losses,
                                       .decide = decide,
                                       .start_sum = start_sum};

sifr_status device_open_mirror(device *inner, device **out, sifr_error *error) {
    mirror *m;
    BASE_TRY(base_alloc(1, sizeof *m, &m, error));
    m->inner = inner;
    m->base.launch = launch;
    m->base.device = (device){.backend = &backend, .team = inner->team};
    *out = &m->base.device;
    return SIFR_OK;
}

void mirror_show(device *dev, const void *data, int64_t bytes) {
    if (mirror_of(dev)) add_span(mirror_of(dev), data, bytes);
}

void mirror_show_matrix(device *dev, const device_matrix *matrix) {
    if (mirror_of(dev)) add_matrix(mirror_of(dev), matrix);
}

void mirror_forget(device *dev) {
    if (mirror_of(dev)) mirror_of(dev)->count = 0;
}
