#include "device/cpu/head/head_logits.h"

#include "base/checked.h"
#include "device/cpu/product/kernels_matrix.h"
#include "device/cpu/product/linear.h"

enum { TILE_WORDS = 2048 }; /* words of a row per tile */

cpu_logits_shape cpu_head_shape(const device_call *call) {
    float scale = call->attributes.head.scale;
    bool scaled = scale < 0 || scale > 0;
    return (cpu_logits_shape){.scale = scaled ? scale : 1.0f,
                              .softcap = call->attributes.head.softcap};
}

/* The call for DEVICE_LINEAR. Its attributes are reset, since kernels share a union of
 * attributes. */
static device_call as_linear(const device_call *call) {
    device_call linear = *call;
    linear.attributes.linear = (device_linear_attributes){0};
    return linear;
}

sifr_status cpu_prepare_head_logits(device *dev, device_call *call, sifr_error *error) {
    device_call linear = as_linear(call);
    BASE_TRY(cpu_prepare_linear(dev, &linear, error));
    call->scratch_bytes = linear.scratch_bytes;
    call->prepared = linear.prepared;
    return SIFR_OK;
}

typedef struct shape_run {
    const device_matrix *y;
    const cpu_set *set;
    cpu_logits_shape shape;
    int64_t tiles; /* per row */
} shape_run;

static void shape_task(void *context, int64_t task, int thread) {
    (void)thread;
    const shape_run *run = context;
    const device_matrix *y = run->y;
    int64_t first = task % run->tiles * TILE_WORDS, at = task / run->tiles * y->stride + first;
    int64_t words = base_min_i64(TILE_WORDS, y->columns - first);
    float values[TILE_WORDS];
    if (y->dtype == BASE_FP32) {
        run->set->loss->shape((float *)y->data + at, words, NULL, &run->shape);
        return;
    }
    run->set->matrix->widen(y->dtype, (const uint16_t *)y->data + at, values, words);
    run->set->loss->shape(values, words, NULL, &run->shape);
    run->set->matrix->narrow(y->dtype, values, (uint16_t *)y->data + at, words, false);
}

sifr_status cpu_run_head_logits(device *dev, const device_call *call, sifr_error *error) {
    device_call linear = as_linear(call);
    shape_run run = {.y = &call->y, .set = cpu_of(dev)->set, .shape = cpu_head_shape(call)};
    BASE_TRY(cpu_run_linear(dev, &linear, error));
    if (!cpu_shapes_logits(&run.shape)) return SIFR_OK;
    run.tiles = (call->y.columns + TILE_WORDS - 1) / TILE_WORDS;
    host_parallel(dev->team, call->y.rows * run.tiles, shape_task, &run);
    return SIFR_OK;
}
