/* Calls are the same by their fields: padding and parts of a union that the kernel does not have
 * count for nothing, each field counts. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "device/same_call.h"

static void set_matrix(device_matrix *m, int64_t rows) {
    m->data = NULL;
    m->rows = rows;
    m->columns = m->stride = 8;
    m->dtype = BASE_FP32;
}

/* In memory that holds `garbage`. */
static void make(device_call *call, int garbage) {
    memset(call, garbage, sizeof *call);
    call->kernel = DEVICE_GELU;
    call->attributes.op = 3;
    call->attributes.micro_batch = 0;
    call->attributes.element = 5;
    call->attributes.gelu.exact = true;
    for (int i = 0; i < DEVICE_INPUTS; i++) {
        set_matrix(&call->x[i], i);
        set_matrix(&call->dx[i], i);
        call->accumulate[i] = false;
    }
    for (int i = 0; i < DEVICE_WEIGHTS; i++) {
        set_matrix(&call->w[i], i);
        set_matrix(&call->dw[i], i);
    }
    for (int i = 0; i < DEVICE_SAVED; i++) set_matrix(&call->saved[i], i);
    set_matrix(&call->y, 1);
    set_matrix(&call->dy, 1);
    call->accumulate_dw = false;
}

static void padding(void **state) {
    (void)state;
    device_call a, b;
    make(&a, 0x55);
    make(&b, 0xaa);
    assert_true(memcmp(&a, &b, offsetof(device_call, scratch_bytes)) != 0);
    assert_true(device_same_call(&a, &b));
    assert_true(device_same_attributes(&a, &b) && device_same_matrix(&a.x[5], &b.x[5]));
}

#define DIFFERS(field, value)                                                                      \
    do {                                                                                           \
        device_call a, b;                                                                          \
        make(&a, 0);                                                                               \
        make(&b, 0);                                                                               \
        b.field = value;                                                                           \
        assert_false(device_same_call(&a, &b));                                                    \
    } while (0)

static void fields(void **state) {
    (void)state;
    DIFFERS(kernel, DEVICE_TANH);
    DIFFERS(attributes.op, 4);
    DIFFERS(attributes.micro_batch, 1);
    DIFFERS(attributes.element, 6);
    DIFFERS(attributes.gelu.exact, false);
    DIFFERS(x[5].rows, 9);
    DIFFERS(w[1].columns, 9);
    DIFFERS(y.stride, 9);
    DIFFERS(saved[3].dtype, BASE_BF16);
    DIFFERS(dy.rows, 9);
    DIFFERS(dx[0].rows, 9);
    DIFFERS(dw[1].rows, 9);
    DIFFERS(accumulate[5], true);
    DIFFERS(accumulate_dw, true);
}

static bool changes(device_kernel kernel, size_t at) {
    device_call a, b;
    make(&a, 0);
    make(&b, 0);
    memset((char *)&a.attributes + offsetof(device_attributes, linear), 0, 8);
    a.kernel = b.kernel = kernel;
    b.attributes = a.attributes;
    ((unsigned char *)&b.attributes)[at] = 1;
    return !device_same_call(&a, &b);
}

/* The first field of each kernel's attributes, by a kernel of each kind; none of some. */
static void attributes(void **state) {
    (void)state;
    static const device_kernel have[] = {
        DEVICE_LINEAR,    DEVICE_EMBEDDING,    DEVICE_RMS_NORM,   DEVICE_ROPE,
        DEVICE_SPLIT_QKV, DEVICE_UNFOLD,       DEVICE_SHORT_CONV, DEVICE_SHORT_CONV_CACHED,
        DEVICE_DELTA,     DEVICE_DELTA_CACHED, DEVICE_ATTENTION,  DEVICE_HEAD_LOSS,
        DEVICE_RELU,      DEVICE_SWISH,        DEVICE_SCALE,      DEVICE_DROPOUT,
        DEVICE_MAGNITUDE, DEVICE_ADAM,         DEVICE_LION,       DEVICE_ADAFACTOR,
        DEVICE_MUON,      DEVICE_LAMB,         DEVICE_GELU_GATE,  DEVICE_ADAM_8BIT,
        DEVICE_CLIP,      DEVICE_XIELU,        DEVICE_JOIN};
    size_t at = offsetof(device_attributes, linear);
    for (size_t i = 0; i < sizeof have / sizeof *have; i++)
        if (!changes(have[i], at)) fail_msg("%s", device_kernel_name(have[i]));
    assert_false(changes(DEVICE_ADD, at));
    assert_false(changes(DEVICE_CONVERT, at));
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(padding), cmocka_unit_test(fields),
                                       cmocka_unit_test(attributes)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
