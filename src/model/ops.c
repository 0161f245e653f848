/* What is counted over ops. */
#include "model/description.h"

double model_product_operations(const sifr_model *model, const model_node *node, int64_t tokens) {
    const model_weight *w = &model->weights[node->w[0]];
    return 2.0 * (double)tokens * (double)w->rows * (double)w->columns;
}

bool model_numbers_rows(const model_node *node, int32_t value) {
    for (int i = 0; value >= 0 && i < DEVICE_INPUTS; i++) {
        if ((node->op->row_numbers & (1 << i)) && node->x[i] == value) return true;
    }
    return false;
}

double model_training_flops(const sifr_model *model, int64_t length) {
    double products = 0, attention = 0;
    for (size_t i = 0; i < model->node_count; i++) {
        const model_node *node = &model->nodes[i];
        if (node->op == &model_op_linear || node->op == &model_op_head_loss) {
            products += model_product_operations(model, node, 1);
        } else if (node->op == &model_op_attention) {
            attention += 12.0 * (double)length * (double)model->values[node->y].columns;
        }
    }
    return 3 * products + attention;
}
