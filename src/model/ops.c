/* The op table: each op once. Kernels are in device/; shapes are checked in builder.c. */
#include "model/description.h"

static void saved_norm(const model_node *node, int64_t tokens, int64_t *rows, int64_t *columns) {
    *rows = tokens;
    *columns = node->op == MODEL_LAYER_NORM ? 2 : 1;
}

static void saved_attention(const model_node *node, int64_t tokens, int64_t *rows,
                            int64_t *columns) {
    *rows = node->attributes.attention.heads;
    *columns = tokens;
}

static double product_operations(const sifr_model *model, const model_node *node, int64_t tokens) {
    const model_weight *w = &model->weights[node->w[0]];
    return 2.0 * (double)tokens * (double)w->rows * (double)w->columns;
}

/* Scores and weighted sum, half of the square for each token on average. */
static double attention_operations(const sifr_model *model, const model_node *node,
                                   int64_t tokens) {
    const device_attributes *a = &node->attributes;
    (void)model;
    return 2.0 * (double)tokens * (double)a->attention.length * a->attention.heads *
           a->attention.head_dim;
}

static const model_op_row rows[MODEL_OPS] = {
    [MODEL_EMBEDDING] = {.name = "embedding",
                         .forward = DEVICE_EMBEDDING,
                         .backward = DEVICE_EMBEDDING_BACKWARD,
                         .keep = MODEL_KEEP_X0},
    [MODEL_LINEAR] = {.name = "linear",
                      .forward = DEVICE_LINEAR,
                      .backward = DEVICE_LINEAR_BACKWARD,
                      .keep = MODEL_KEEP_X0 | MODEL_KEEP_W0,
                      .gradients = 1,
                      .accumulates = true,
                      .operations = product_operations,
                      .backward_factor = 2},
    [MODEL_LAYER_NORM] = {.name = "layer_norm",
                          .forward = DEVICE_LAYER_NORM,
                          .backward = DEVICE_LAYER_NORM_BACKWARD,
                          .keep = MODEL_KEEP_X0 | MODEL_KEEP_W0 | MODEL_KEEP_SAVED,
                          .gradients = 1,
                          .accumulates = true,
                          .saved = saved_norm},
    [MODEL_RMS_NORM] = {.name = "rms_norm",
                        .forward = DEVICE_RMS_NORM,
                        .backward = DEVICE_RMS_NORM_BACKWARD,
                        .keep = MODEL_KEEP_X0 | MODEL_KEEP_W0 | MODEL_KEEP_SAVED,
                        .gradients = 1,
                        .accumulates = true,
                        .saved = saved_norm},
    [MODEL_ROPE] = {.name = "rope",
                    .forward = DEVICE_ROPE,
                    .backward = DEVICE_ROPE_BACKWARD,
                    .keep = MODEL_KEEP_X1 | MODEL_KEEP_X2,
                    .gradients = 1,
                    .in_place = true,
                    .backward_in_place = true},
    [MODEL_ATTENTION] = {.name = "attention",
                         .forward = DEVICE_ATTENTION,
                         .backward = DEVICE_ATTENTION_BACKWARD,
                         .keep = MODEL_KEEP_X0 | MODEL_KEEP_X1 | MODEL_KEEP_X2 | MODEL_KEEP_Y |
                                 MODEL_KEEP_SAVED,
                         .gradients = 7,
                         .saved = saved_attention,
                         .operations = attention_operations,
                         .backward_factor = 2.5},
    [MODEL_GELU] = {.name = "gelu",
                    .forward = DEVICE_GELU,
                    .backward = DEVICE_GELU_BACKWARD,
                    .keep = MODEL_KEEP_X0,
                    .gradients = 1},
    [MODEL_SILU_GATE] = {.name = "silu_gate",
                         .forward = DEVICE_SILU_GATE,
                         .backward = DEVICE_SILU_GATE_BACKWARD,
                         .keep = MODEL_KEEP_X0 | MODEL_KEEP_X1,
                         .gradients = 3},
    [MODEL_ADD] = {.name = "add",
                   .forward = DEVICE_ADD,
                   .backward = DEVICE_KERNELS,
                   .gradients = 3,
                   .in_place = true},
    [MODEL_MULTIPLY] = {.name = "multiply",
                        .forward = DEVICE_MULTIPLY,
                        .backward = DEVICE_MULTIPLY_BACKWARD,
                        .keep = MODEL_KEEP_X0 | MODEL_KEEP_X1,
                        .gradients = 3},
    [MODEL_DROPOUT] = {.name = "dropout",
                       .forward = DEVICE_DROPOUT,
                       .backward = DEVICE_DROPOUT_BACKWARD,
                       .gradients = 1,
                       .in_place = true,
                       .backward_in_place = true},
    [MODEL_HEAD_LOSS] = {.name = "head_loss",
                         .forward = DEVICE_HEAD_LOSS,
                         .backward = DEVICE_HEAD_LOSS_BACKWARD,
                         .keep = MODEL_KEEP_X0 | MODEL_KEEP_X1 | MODEL_KEEP_W0,
                         .gradients = 1,
                         .operations = product_operations,
                         .backward_factor = 3},
};

const model_op_row *model_op_get(model_op op) {
    return &rows[op];
}

double model_training_flops(const sifr_model *model, int64_t length) {
    double products = 0, attention = 0;
    for (size_t i = 0; i < model->node_count; i++) {
        const model_node *node = &model->nodes[i];
        if (node->op == MODEL_LINEAR || node->op == MODEL_HEAD_LOSS) {
            products += product_operations(model, node, 1);
        } else if (node->op == MODEL_ATTENTION) {
            attention += 12.0 * (double)length * (double)model->values[node->y].columns;
        }
    }
    return 3 * products + attention;
}
