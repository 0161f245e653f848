/* Compressed gradients (pass_compress.c): what goes into a factor is of this rank, and sums are
 * made of factors of all ranks. */
#include "base/assert.h"
#include "base/checked.h"
#include "plan/queries.h"
#include "plan/verify/content_state.h"

typedef struct compress_kernel {
    const content_state *c;
    size_t index;
    const plan_access *accesses;
    int count;
} compress_kernel;

static const plan_access *access_of(const compress_kernel *k, plan_role role) {
    for (int i = 0; i < k->count; i++)
        if (k->accesses[i].role == role) return &k->accesses[i];
    return NULL;
}

static bool is_gradient(const compress_kernel *k, const plan_access *a) {
    return k->c->s->buffers[a->buffer].class == PLAN_GRADIENTS;
}

/* The gradient that an access is of: a whole one has a slot, the other is this rank's slice. */
static plan_content gradient_of(const compress_kernel *k, const plan_access *a, plan_reach reach) {
    const content_state *c = k->c;
    const plan_buffer *b = &c->s->buffers[a->buffer];
    int64_t slice = c->s->segment_elements[b->segment] / c->ranks;
    return content_gradient(c, b->segment, reach, 4, 0, b->index >= 0 ? 0 : c->rank * slice);
}

static sifr_status expect_gradient(const compress_kernel *k, plan_role role, sifr_error *error) {
    const plan_access *a = access_of(k, role);
    plan_content wanted = gradient_of(k, a, PLAN_REACH_RANK);
    return content_expect(k->c, k->index, a, &wanted, error);
}

/* Sums of a weight; the padding behind it is zeros on each rank. */
static sifr_status leave_sums(const compress_kernel *k, const plan_access *a, sifr_error *error) {
    const content_state *c = k->c;
    const plan_buffer *b = &c->s->buffers[a->buffer];
    plan_content is = gradient_of(k, a, PLAN_REACH_ALL);
    plan_access padded = *a;
    if (b->index >= 0) {
        int64_t end = base_ceil_to((a->offset + a->bytes) / 4, DEVICE_BLOCK);
        if (end >= c->s->model->segments[b->segment].elements)
            end = c->s->segment_elements[b->segment];
        padded.bytes = end * 4 - a->offset;
    }
    return content_leave(c, &padded, &is, error);
}

static sifr_status expect_value(const compress_kernel *k, plan_role role, sifr_error *error) {
    plan_content wanted = content_value(PLAN_REACH_ALL);
    return content_expect(k->c, k->index, access_of(k, role), &wanted, error);
}

static sifr_status leave_value(const compress_kernel *k, plan_reach reach, sifr_error *error) {
    plan_content is = content_value(reach);
    return content_leave(k->c, access_of(k, PLAN_Y), &is, error);
}

static sifr_status run_copy(const compress_kernel *k, sifr_error *error) {
    const plan_access *x = access_of(k, PLAN_X0), *y = access_of(k, PLAN_Y);
    bool sums = is_gradient(k, y);
    if (is_gradient(k, x)) {
        plan_content wanted = gradient_of(k, x, sums ? PLAN_REACH_ALL : PLAN_REACH_RANK);
        BASE_TRY(content_expect(k->c, k->index, x, &wanted, error));
    } else if (sums) {
        BASE_TRY(expect_value(k, PLAN_X0, error));
    }
    return sums ? leave_sums(k, y, error) : leave_value(k, PLAN_REACH_RANK, error);
}

static sifr_status run_clear(const compress_kernel *k, sifr_error *error) {
    const plan_access *y = access_of(k, PLAN_Y);
    return is_gradient(k, y) ? leave_sums(k, y, error) : leave_value(k, PLAN_REACH_RANK, error);
}

/* That of a sum of all ranks, or of what this rank begins with. */
static sifr_status run_base(const compress_kernel *k, const device_call *call, sifr_error *error) {
    if (call->attributes.power.draws) return leave_value(k, PLAN_REACH_RANK, error);
    return expect_value(k, PLAN_Y, error);
}

static sifr_status run_product(const compress_kernel *k, bool keeps, sifr_error *error) {
    BASE_TRY(expect_value(k, PLAN_X0, error));
    BASE_TRY(expect_value(k, PLAN_X1, error));
    if (keeps) BASE_TRY(expect_gradient(k, PLAN_Y, error));
    return leave_sums(k, access_of(k, PLAN_Y), error);
}

sifr_status content_run_compress(const content_state *c, size_t index, const plan_access *accesses,
                                 int count, sifr_error *error) {
    const device_call *call = &c->s->calls[c->s->instructions[index].call];
    compress_kernel k = {c, index, accesses, count};
    switch (call->kernel) {
    case DEVICE_CONVERT:
        return run_copy(&k, error);
    case DEVICE_CLEAR:
        return run_clear(&k, error);
    case DEVICE_POWER_ADD:
        return expect_gradient(&k, PLAN_Y, error);
    case DEVICE_POWER_BASE:
        return run_base(&k, call, error);
    case DEVICE_POWER_LEFT:
        BASE_TRY(expect_gradient(&k, PLAN_X0, error));
        return leave_value(&k, PLAN_REACH_RANK, error);
    case DEVICE_POWER_RIGHT:
        BASE_TRY(expect_gradient(&k, PLAN_X0, error));
        BASE_TRY(expect_value(&k, PLAN_X1, error));
        return leave_value(&k, PLAN_REACH_RANK, error);
    default: /* DEVICE_POWER_BUILD, DEVICE_POWER_KEEP */
        return run_product(&k, call->kernel == DEVICE_POWER_KEEP, error);
    }
}
