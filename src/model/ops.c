/* What is counted over ops, by their rows. */
#include "model/description.h"

bool model_numbers_rows(const model_node *node, int32_t value) {
    for (int i = 0; value >= 0 && i < DEVICE_INPUTS; i++) {
        if ((node->op->row_numbers & (1 << i)) && node->x[i] == value) return true;
    }
    return false;
}

int64_t model_numbered_rows(const sifr_model *model, const model_node *node) {
    int64_t first = node->op->first_row ? node->op->first_row(&node->attributes) : 0;
    return model_whole(&model->weights[node->w[0]]).rows[1] - first;
}

bool model_keeps_state(const sifr_model *model) {
    for (size_t n = 0; n < model->node_count; n++)
        if (model->nodes[n].op->state) return true;
    return false;
}

int model_target_rules(const sifr_model *model, int64_t columns,
                       model_target_rule rules[MODEL_TARGET_RULES]) {
    const model_node *head = &model->nodes[model->node_count - 1];
    if (!head->op->targets) return 0;
    return head->op->targets(head, columns, model->weights[head->w[0]].rows, rules);
}

double model_product_operations(const device_call *call, bool full) {
    (void)full;
    int64_t rows = call->x[0].rows ? call->x[0].rows : call->dx[0].rows;
    return 2.0 * (double)rows * ((double)call->w[0].rows * (double)call->w[0].columns);
}

double model_head_operations(const device_call *call, bool full) {
    bool forward = call->kernel == DEVICE_HEAD_LOSS || call->kernel == DEVICE_HEAD_PREFERENCE;
    return forward && call->x[3].dtype != BASE_NONE ? 0 : model_product_operations(call, full);
}

/* The op that a call runs; NULL: none. */
static const model_op *op_of(const sifr_model *model, const device_call *call) {
    int32_t at = call->attributes.op;
    const model_op *op = model->nodes[model->node_at ? model->node_at[at] : at].op;
    device_kernel kernel = call->kernel;
    bool runs = kernel == op->forward || kernel == op->backward ||
                (model_is_cached(op) && kernel == op->cached) ||
                (op->makes_loss && kernel == op->logits) ||
                (op->makes_loss && op->layout == MODEL_LAYOUT_WORDS && kernel == op->statistics);
    return runs ? op : NULL;
}

double model_matrix_bytes(const device_matrix *m) {
    return (double)m->rows * (double)m->columns * (double)base_dtype_bytes(m->dtype);
}

/* Each operand once; what is added to is read and written. */
static double operand_bytes(const device_call *call) {
    double bytes = model_matrix_bytes(&call->y) + model_matrix_bytes(&call->dy);
    for (int i = 0; i < DEVICE_INPUTS; i++)
        bytes += model_matrix_bytes(&call->x[i]) +
                 model_matrix_bytes(&call->dx[i]) * (call->accumulate[i] ? 2 : 1);
    for (int i = 0; i < DEVICE_WEIGHTS; i++)
        bytes += model_matrix_bytes(&call->w[i]) + model_matrix_bytes(&call->dw[i]);
    for (int i = 0; i < DEVICE_SAVED; i++) bytes += model_matrix_bytes(&call->saved[i]);
    return bytes;
}

model_cost model_call_cost(const sifr_model *model, const device_call *call) {
    const model_op *op = op_of(model, call);
    model_cost cost = {.bytes = operand_bytes(call)};
    if (op && op->untouched) cost.bytes -= op->untouched(call);
    if (!op || !op->operations) return cost;
    cost.operations = op->operations(call, false);
    if (call->kernel != op->backward) return cost;
    if (op->x_for_weights) /* a product each */
        cost.operations *= (call->dx[0].dtype != BASE_NONE) + (call->dw[0].dtype != BASE_NONE);
    else
        cost.operations *= op->backward_factor;
    return cost;
}

/* What does not depend on the tokens is done once for all sequences of a micro batch, whose number
 * is not known here: it is left out. */
static bool is_by_token(const sifr_model *model, const model_node *node) {
    return model->values[node->y].rows == 0;
}

/* The shapes of a node's forward call on one sequence. */
static device_call forward_shapes(const sifr_model *model, const model_node *node, int64_t length) {
    device_call call = {.kernel = node->op->forward, .attributes = node->attributes};
    model_extent extent = {
        .sequences = 1, .length = length, .contexts = model->contexts, .training = true};
    if (node->op->complete) node->op->complete(&call.attributes, &extent);
    for (int i = 0; i < DEVICE_INPUTS; i++) {
        if (node->x[i] < 0) continue;
        int64_t rows = model->values[node->x[i]].rows;
        call.x[i].rows = rows ? rows : length;
        call.x[i].columns = model->values[node->x[i]].columns;
    }
    for (int i = 0; i < DEVICE_WEIGHTS && node->w[i] >= 0; i++) {
        call.w[i].rows = model->weights[node->w[i]].rows;
        call.w[i].columns = model->weights[node->w[i]].columns;
    }
    call.y.rows = length;
    call.y.columns = model->values[node->y].columns;
    return call;
}

double model_training_flops(const sifr_model *model, int64_t length) {
    double forward = 0;
    for (size_t i = 0; i < model->node_count; i++) {
        const model_node *node = &model->nodes[i];
        if (!is_by_token(model, node)) continue;
        device_call call = forward_shapes(model, node, length);
        if (node->op->operations) forward += node->op->operations(&call, true);
    }
    return 3 * forward / (double)length;
}
