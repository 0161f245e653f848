#include "plan/price/price.h"

/* Master weights and states. */
static double written_by_update(const device_call *call) {
    double bytes = model_matrix_bytes(&call->w[0]);
    for (int i = 0; i < device_call_states(call); i++) bytes += model_matrix_bytes(&call->saved[i]);
    return bytes;
}

/* Bytes written in addition to each operand once: kernels of no op also overwrite some operands
 * that they read. */
static double written_too(const device_call *call) {
    if (device_is_update(call->kernel)) return written_by_update(call);
    switch (call->kernel) {
    case DEVICE_ADD_INTO:
    case DEVICE_ACCUMULATE:
    case DEVICE_FINISH_INTO:
    case DEVICE_ORTHOGONALISE:
        return model_matrix_bytes(&call->y);
    default:
        return 0;
    }
}

/* Of an optimizer on whole matrices, k x m with k <= m: two products of k x k by k x m and one of
 * two k x k in each of five steps; on the Gram matrix four of the former and 14 of the latter in
 * all. */
static double whole_operations(const device_call *call) {
    if (call->kernel != DEVICE_ORTHOGONALISE) return 0;
    double matrices = call->attributes.update.matrices;
    double rows = (double)call->y.rows / matrices, columns = (double)call->y.columns;
    double k = rows < columns ? rows : columns, m = rows < columns ? columns : rows;
    bool gram = call->attributes.update.gram && k < m;
    return matrices * 2 * k * k * (gram ? 4 * m + 14 * k : 10 * m + 5 * k);
}

void plan_cost(const plan_schedule *schedule, const device_call *call, double *operations,
               double *bytes) {
    model_cost cost = model_call_cost(schedule->model, call);
    *operations = cost.operations + whole_operations(call);
    *bytes = cost.bytes + written_too(call);
}

double plan_operations(const plan_schedule *schedule) {
    double sum = 0;
    for (size_t i = 0; i < schedule->instruction_count; i++) {
        double operations, bytes;
        if (schedule->instructions[i].call < 0) continue;
        plan_cost(schedule, &schedule->calls[schedule->instructions[i].call], &operations, &bytes);
        sum += operations;
    }
    return sum;
}
