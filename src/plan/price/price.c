#include "plan/price/price.h"

static double bytes_of(const device_matrix *m) {
    return (double)m->rows * (double)m->columns * (double)device_dtype_bytes(m->dtype);
}

/* Pairs of a query and a key that causal attention looks at. */
static double pairs(const device_call *call) {
    double length = (double)call->attributes.attention.length;
    double sequences = (double)call->attributes.attention.sequences;
    if (call->kernel == DEVICE_ATTENTION_CACHED) return (double)call->x[0].rows * length;
    return sequences * length * (length + 1) / 2;
}

void plan_cost(const device_call *call, double *operations, double *bytes) {
    *operations = 0;
    *bytes = 0;
    for (int i = 0; i < DEVICE_INPUTS; i++) {
        *bytes += bytes_of(&call->x[i]) + bytes_of(&call->dx[i]) * (call->accumulate[i] ? 2 : 1);
    }
    for (int i = 0; i < DEVICE_WEIGHTS; i++)
        *bytes += bytes_of(&call->w[i]) + bytes_of(&call->dw[i]);
    for (int i = 0; i < DEVICE_SAVED; i++) *bytes += bytes_of(&call->saved[i]);
    *bytes += bytes_of(&call->y) + bytes_of(&call->dy);

    double rows = (double)(call->x[0].rows ? call->x[0].rows : call->dy.rows);
    double weight = (double)call->w[0].rows * (double)call->w[0].columns;
    double head =
        (double)call->attributes.attention.heads * (double)call->attributes.attention.head_dim;
    switch (call->kernel) {
    case DEVICE_LINEAR:
    case DEVICE_HEAD_LOSS:
        *operations = 2 * rows * weight;
        break;
    case DEVICE_LINEAR_BACKWARD:
        *operations = 4 * rows * weight;
        break;
    case DEVICE_HEAD_LOSS_BACKWARD:
        *operations = 6 * rows * weight;
        break;
    case DEVICE_ATTENTION:
    case DEVICE_ATTENTION_CACHED:
        *operations = 4 * pairs(call) * head;
        break;
    case DEVICE_ATTENTION_BACKWARD:
        *operations = 10 * pairs(call) * head;
        break;
    case DEVICE_ADAM: /* moments, master weights and the copy are written as well */
        *bytes += bytes_of(&call->w[0]) + bytes_of(&call->saved[0]) + bytes_of(&call->saved[1]);
        break;
    case DEVICE_ADD_INTO:
    case DEVICE_ACCUMULATE:
        *bytes += bytes_of(&call->y);
        break;
    default:
        break;
    }
}

double plan_operations(const plan_schedule *schedule) {
    double sum = 0;
    for (size_t i = 0; i < schedule->instruction_count; i++) {
        double operations, bytes;
        if (schedule->instructions[i].call < 0) continue;
        plan_cost(&schedule->calls[schedule->instructions[i].call], &operations, &bytes);
        sum += operations;
    }
    return sum;
}
