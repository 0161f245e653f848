#include "plan/schedule.h"

#include <stdlib.h>

#include "base/assert.h"
#include "base/checked.h"
#include "plan/queries.h"

int64_t plan_padded_elements(const plan_schedule *s, int32_t segment) {
    base_assert(segment >= 0 && (size_t)segment < s->model->segment_count);
    int64_t slices = plan_mesh_ranks(&s->settings.mesh, (plan_span)(PLAN_STATE | PLAN_DATA));
    int64_t tensors = plan_mesh_ranks(&s->settings.mesh, PLAN_TENSORS);
    const model_segment *of = &s->model->segments[segment];
    if (of->partial && model_piece(of->coding) % tensors) slices *= tensors; /* to be added up */
    return base_ceil_to(of->elements, slices * model_piece(of->coding));
}

const char *plan_class_name(plan_class class) {
    base_assert((int)class >= 0 && class < PLAN_CLASSES);
    static const char *const names[PLAN_CLASSES] = {
        "parameters", "gathered",       "secondary", "decoded",      "outgoing",
        "errors",     "master weights", "moments",   "gradients",    "activations",
        "cache",      "inputs",         "constants", "swap buffers", "scratch"};
    return names[class];
}

const char *plan_action_name(plan_action action) {
    base_assert((int)action >= 0 && action < PLAN_ACTIONS);
    static const char *const names[PLAN_ACTIONS] = {
        "forward",  "recompute", "backward", "decode", "encode",  "keep",   "add",    "compress",
        "count",    "loss",      "squares",  "norm",   "update",  "gather", "reduce", "sum",
        "exchange", "read",      "write",    "send",   "receive", "wait"};
    return names[action];
}

const char *plan_queue_name(plan_queue queue) {
    base_assert((int)queue >= 0 && queue < PLAN_QUEUES);
    static const char *const names[PLAN_QUEUES] = {"compute", "communication", "disk",
                                                   "copy",    "peer",          "near"};
    return names[queue];
}

plan_queue plan_queue_of_span(plan_span span) {
    bool near = span == PLAN_TENSORS || span == PLAN_CONTEXTS || span == PLAN_ALIKE;
    return near ? PLAN_NEAR : PLAN_COMMUNICATION;
}

const char *plan_role_name(plan_role role) {
    base_assert((int)role >= 0 && role < PLAN_ROLES);
    static const char *const names[PLAN_ROLES] = {
        "x0",     "x1",     "x2", "x3",  "x4",  "x5",  "w0",  "w1",  "y",   "saved0", "saved1",
        "saved2", "saved3", "dy", "dx0", "dx1", "dx2", "dx3", "dx4", "dx5", "dw0",    "dw1"};
    return names[role];
}

device_matrix *plan_role_matrix(device_call *call, plan_role role) {
    base_assert((int)role >= 0 && role < PLAN_ROLES);
    if (role <= PLAN_X5) return &call->x[role - PLAN_X0];
    if (role <= PLAN_W1) return &call->w[role - PLAN_W0];
    if (role == PLAN_Y) return &call->y;
    if (role <= PLAN_SAVED3) return &call->saved[role - PLAN_SAVED0];
    if (role == PLAN_DY) return &call->dy;
    if (role <= PLAN_DX5) return &call->dx[role - PLAN_DX0];
    return &call->dw[role - PLAN_DW0];
}

void plan_free(plan_schedule *schedule) {
    if (!schedule) return;
    void *const blocks[] = {schedule->instructions,
                            schedule->operands,
                            schedule->calls,
                            schedule->buffers,
                            schedule->parameters,
                            schedule->masters,
                            schedule->segment_elements,
                            schedule->weight_sums,
                            schedule->whole_values,
                            schedule->tables,
                            schedule->losses,
                            schedule->caches,
                            schedule->runs};
    for (size_t i = 0; i < sizeof blocks / sizeof *blocks; i++) free(blocks[i]);
    if (schedule->part) sifr_model_free(schedule->part);
    for (int i = 0; i < SIFR_INPUTS; i++) free(schedule->inputs[i]);
    for (int i = 0; i < OPTIM_STATES; i++) free(schedule->states[i]);
    free(schedule);
}
