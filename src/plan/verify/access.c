#include "plan/verify/access.h"

#include "base/checked.h"
#include "plan/peers.h"
#include "plan/queries.h"
#include "plan/verify/byte_ranges.h"

bool plan_is_transfer(const plan_instruction *in) {
    return plan_is_collective(in) || in->action == PLAN_READ || in->action == PLAN_WRITE ||
           plan_is_peer(in);
}

int64_t plan_access_end(const plan_access *a) {
    return a->offset + (a->rows - 1) * a->pitch + a->bytes;
}

const char *plan_access_name(const plan_access *a) {
    return a->role == PLAN_ROLES ? "scratch" : plan_role_name(a->role);
}

/* From the row of the call's op. Copies, sums and updates belong to no op. */
static bool is_backward(const plan_schedule *s, const plan_instruction *in, device_kernel kernel) {
    return in->node >= 0 && s->model->nodes[in->node].op->backward == kernel;
}

/* Whether the op makes losses, which its backward pass writes. */
static bool makes_loss(const plan_schedule *s, const plan_instruction *in) {
    return in->node >= 0 && s->model->nodes[in->node].op->makes_loss;
}

/* Whether a gradient is added to, rather than overwritten. */
static bool adds_to(const plan_instruction *in, const device_call *call, plan_role role) {
    if (role >= PLAN_DW0) return in->accumulate_dw;
    return call->accumulate[role - PLAN_DX0];
}

/* Of the operands that all updates have. */
static void set_use_of_update(const device_call *call, plan_access *a) {
    unsigned uses = device_update_uses(call->kernel);
    int state = (int)a->role - (int)PLAN_SAVED0;
    if (a->role == PLAN_X0) {
        a->reads = uses & DEVICE_READS_GRADIENT;
    } else if (a->role == PLAN_W0) {
        a->reads = uses & DEVICE_READS_WEIGHTS;
        a->writes = uses & DEVICE_CHANGES_WEIGHTS;
    } else if (a->role == PLAN_W1) {
        a->writes = uses & DEVICE_CHANGES_WEIGHTS;
    } else if (state < device_update_states(call->kernel)) {
        a->reads = true;
        a->writes = uses & DEVICE_CHANGES_STATES;
    } else { /* the average of the weights */
        a->reads = a->writes = true;
    }
}

static void set_use(const plan_schedule *s, const plan_instruction *in, const device_call *call,
                    plan_access *a) {
    device_access access = device_kernel_access(call->kernel);
    bool backward = is_backward(s, in, call->kernel), update = device_is_update(call->kernel);
    bool common = a->role == PLAN_X0 || a->role == PLAN_W0 || a->role == PLAN_W1 ||
                  (a->role >= PLAN_SAVED0 && a->role <= PLAN_SAVED3);
    if (update && common) {
        set_use_of_update(call, a);
        return;
    }
    a->reads = a->writes = true;
    if (a->role <= PLAN_X5 || a->role == PLAN_DY) {
        a->writes = false;
    } else if (a->role <= PLAN_W1) {
        a->writes = access == DEVICE_ACCESS_CACHES;
    } else if (a->role == PLAN_Y) {
        a->writes = !backward || makes_loss(s, in);
        a->reads = !a->writes || access == DEVICE_ACCESS_ADDS;
    } else if (a->role <= PLAN_SAVED3) {
        a->writes = !backward;
        a->reads = backward || access == DEVICE_ACCESS_STATE;
    } else {
        a->reads = adds_to(in, call, a->role);
    }
}

static void set_place(const device_matrix *m, plan_access *a) {
    int64_t element = base_dtype_bytes(m->dtype);
    bool whole = m->stride == m->columns;
    a->rows = whole ? m->rows > 0 : m->rows;
    a->bytes = (whole ? m->rows * m->columns : m->columns) * element;
    a->pitch = m->stride * element;
}

static int of_kernel(const plan_schedule *s, const plan_instruction *in, plan_access *out) {
    device_call *call = &s->calls[in->call];
    int count = 0;
    for (; count < in->operands; count++) {
        const plan_operand *operand = &s->operands[in->first_operand + count];
        plan_access *a = &out[count];
        *a = (plan_access){
            .buffer = operand->buffer, .role = (plan_role)operand->role, .offset = operand->offset};
        set_place(plan_role_matrix(call, a->role), a);
        set_use(s, in, call, a);
    }
    if (call->scratch_bytes == 0) return count;
    out[count] = (plan_access){.buffer = s->scratch,
                               .role = PLAN_ROLES,
                               .writes = true,
                               .bytes = call->scratch_bytes,
                               .rows = 1};
    return count + 1;
}

/* From the first byte to the last of what an exchange sends or gets. */
static plan_range extent_of(const comm_run *runs, int64_t ranks) {
    plan_range all = {INT64_MAX, 0};
    for (int64_t r = 0; r < ranks; r++) {
        if (runs[r].bytes == 0) continue;
        all.from = base_min_i64(all.from, runs[r].at);
        all.to = base_max_i64(all.to, runs[r].at + runs[r].bytes);
    }
    return all.to ? all : (plan_range){0};
}

static int of_exchange(const plan_schedule *s, const plan_instruction *in, plan_access *out) {
    int64_t ranks = plan_mesh_ranks(&s->settings.mesh, (plan_span)in->span);
    int count = 0;
    for (int o = 0; o < in->operands; o++) {
        const plan_operand *operand = &s->operands[in->first_operand + o];
        plan_range all = extent_of(s->runs + in->runs + o * ranks, ranks);
        if (all.to == all.from) continue;
        out[count++] = (plan_access){.buffer = operand->buffer,
                                     .role = (plan_role)operand->role,
                                     .reads = o == 0,
                                     .writes = o == 1,
                                     .offset = operand->offset + all.from,
                                     .bytes = all.to - all.from,
                                     .rows = 1};
    }
    return count;
}

static int of_transfer(const plan_schedule *s, const plan_instruction *in, plan_access *out) {
    int64_t ranks = plan_mesh_ranks(&s->settings.mesh, (plan_span)in->span),
            bytes[2] = {in->bytes, in->bytes};
    if (in->action == PLAN_GATHER) bytes[1] *= ranks;
    bool sums = in->action == PLAN_SUM;
    if (sums || in->action == PLAN_REDUCE) {
        bytes[0] *= ranks;
        bytes[1] = plan_summed_bytes(in) * (sums ? ranks : 1);
    }
    bool receives = in->action == PLAN_RECEIVE;
    for (int o = 0; o < in->operands; o++) {
        const plan_operand *operand = &s->operands[in->first_operand + o];
        bool writes = o == 1 || receives;
        out[o] = (plan_access){.buffer = operand->buffer,
                               .role = (plan_role)operand->role,
                               .reads = !writes,
                               .writes = writes,
                               .offset = operand->offset,
                               .bytes = bytes[o],
                               .rows = 1};
    }
    return in->operands;
}

/* Actions of the executor itself access whole buffers. The fold of losses reads its operand. */
static int of_action(const plan_schedule *s, const plan_instruction *in, plan_access *out) {
    for (int32_t o = 0; o < in->operands; o++) {
        const plan_operand *operand = &s->operands[in->first_operand + o];
        bool writes = in->action != PLAN_LOSS && operand->role == PLAN_Y;
        out[o] = (plan_access){.buffer = operand->buffer,
                               .role = (plan_role)operand->role,
                               .reads = !writes,
                               .writes = writes,
                               .bytes = s->buffers[operand->buffer].bytes,
                               .rows = 1};
    }
    return in->operands;
}

int plan_accesses(const plan_schedule *s, const plan_instruction *in,
                  plan_access out[PLAN_ACCESSES]) {
    if (in->action == PLAN_WAIT) return 0;
    if (in->call >= 0) return of_kernel(s, in, out);
    if (in->action == PLAN_EXCHANGE) return of_exchange(s, in, out);
    return plan_is_transfer(in) ? of_transfer(s, in, out) : of_action(s, in, out);
}
