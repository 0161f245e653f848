/* Magnitudes of a product's columns, and the rows of weights that it reads without training them.
 */
#include "model/builder.h"
#include "model/lora.h"

static void saved_norms(const model_node *node, int64_t tokens, int64_t *rows, int64_t *columns) {
    (void)tokens;
    *rows = node->attributes.magnitude.columns;
    *columns = 1;
}

/* Of w0 + scale x2 x1, where this call makes the norms. */
static double norm_operations(const device_call *call, bool full) {
    (void)full;
    if (call->x[4].dtype != BASE_NONE) return 0;
    return 2.0 * (double)call->x[1].rows * ((double)call->w[0].rows * (double)call->w[0].columns);
}

const model_op model_op_magnitude = {
    .name = "magnitude",
    .forward = DEVICE_MAGNITUDE,
    .backward = DEVICE_MAGNITUDE_BACKWARD,
    .keep = MODEL_KEEP_X0 | MODEL_KEEP_W1 | MODEL_KEEP_SAVED,
    .gradients = 1,
    .saved = saved_norms,
    .any_rows = true,
    .constant_rows = 1 << 1 | 1 << 2 | 1 << 3,
    .operations = norm_operations,
    .layout = MODEL_LAYOUT_FOLLOWS,
    .joins = true,
};

/* Norms are constants to a gradient (DoRA, section 4.3). */
const model_op model_op_constant_rows = {
    .name = "constant_rows",
    .forward = DEVICE_ROWS,
    .backward = DEVICE_KERNELS,
    .makes_rows = true,
    .detached = true,
    .layout = MODEL_LAYOUT_FOLLOWS,
};

static int32_t constant_rows(sifr_model *model, sifr_weight table) {
    const model_weight *w = model_weight_of(model, table, "constant_rows");
    if (!w) return -1;
    model_node node = model_make_node(&model_op_constant_rows);
    node.w[0] = model_weight_index(table);
    return model_index(model_add_node(model, node, MODEL_VALUE_ACTIVATION, w->columns));
}

sifr_value model_magnitude(sifr_model *model, sifr_value z, const model_magnitude_args *args) {
    const model_value *in = model_activation(model, z, "magnitude");
    if (!in) return SIFR_NO_VALUE;
    int64_t columns = in->columns; /* adding values moves them */
    model_node node = model_make_node(&model_op_magnitude);
    node.x[0] = model_index(z);
    node.x[1] = constant_rows(model, args->a);
    node.x[2] = constant_rows(model, args->b);
    if (args->bias.id) node.x[3] = constant_rows(model, args->bias);
    node.w[0] = model_weight_index(args->weight);
    node.w[1] = model_weight_index(args->magnitude);
    node.attributes.magnitude.transposed = args->transposed;
    node.attributes.magnitude.columns = (int32_t)columns;
    node.attributes.magnitude.scale = (float)args->scale;
    return model_add_node(model, node, MODEL_VALUE_ACTIVATION, columns);
}
