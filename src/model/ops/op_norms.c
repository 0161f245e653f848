/* Layer norm and root-mean-square norm of each row: one shape rule. */
#include "model/builder.h"

#include "base/inside.h"
#include "model/shard.h"

static void saved_norm(const model_node *node, int64_t tokens, int64_t *rows, int64_t *columns) {
    int64_t groups = node->attributes.norm.groups;
    *rows = tokens;
    *columns = groups * (node->op == &model_op_layer_norm ? 2 : 1);
}

/* Norms of heads; that of a whole row needs all its columns. */
static int64_t blocks_of(const sifr_model *model, const model_node *node, bool common) {
    int64_t groups = node->attributes.norm.groups;
    (void)common;
    return model_is_sliced(model, node->y) || groups == 1 ? 0 : groups;
}

static void divide_norms(const sifr_model *model, model_node *node, const model_share *share) {
    (void)model;
    node->attributes.norm.groups =
        (int32_t)(node->attributes.norm.groups / share->blocks * share->room);
}

static model_shared shared_weights(const sifr_model *model, const model_node *node) {
    if (node->w[0] < 0) return MODEL_SHARED_NONE;
    return model->weights[node->w[0]].rows > 1 ? MODEL_SHARED_ROWS : MODEL_SHARED_WHOLE;
}

const model_op model_op_layer_norm = {
    .name = "layer_norm",
    .forward = DEVICE_LAYER_NORM,
    .backward = DEVICE_LAYER_NORM_BACKWARD,
    .run_sums = DEVICE_LAYER_NORM_SUMS,
    .keep = MODEL_KEEP_X0 | MODEL_KEEP_W0 | MODEL_KEEP_SAVED,
    .gradients = 1,
    .accumulates = true,
    .splits = true,
    .saved = saved_norm,
    .by_row = true,
    .undecayed = true,
    .layout = MODEL_LAYOUT_PARTS,
    .blocks = blocks_of,
    .divide = divide_norms,
    .shares = shared_weights,
};

const model_op model_op_rms_norm = {
    .name = "rms_norm",
    .forward = DEVICE_RMS_NORM,
    .backward = DEVICE_RMS_NORM_BACKWARD,
    .run_sums = DEVICE_RMS_NORM_SUMS,
    .keep = MODEL_KEEP_X0 | MODEL_KEEP_W0 | MODEL_KEEP_SAVED,
    .gradients = 1,
    .accumulates = true,
    .splits = true,
    .saved = saved_norm,
    .by_row = true,
    .layout = MODEL_LAYOUT_PARTS,
    .blocks = blocks_of,
    .divide = divide_norms,
    .shares = shared_weights,
};

/* Vectors that serve all heads, or matrices with a row for each. */
static bool weights_fit(sifr_model *model, const sifr_norm_args *args, int64_t columns,
                        const char *name) {
    const model_weight *scale = args->scale.id ? model_weight_of(model, args->scale, name) : NULL;
    const model_weight *bias = args->bias.id ? model_weight_of(model, args->bias, name) : NULL;
    if ((args->scale.id && !scale) || (args->bias.id && !bias)) return false;
    bool own = scale && args->heads > 1 && scale->rows == args->heads &&
               scale->columns == columns &&
               (!bias || (bias->rows == args->heads && bias->columns == columns));
    return own || (model_vector_fits(model, args->scale, columns, name) &&
                   model_vector_fits(model, args->bias, columns, name));
}

static sifr_value add_norm(sifr_model *model, const model_op *op, sifr_norm_args args) {
    const char *name = op->name;
    const model_value *in = model_activation(model, args.x, name);
    if (!in) return SIFR_NO_VALUE;
    if (!args.scale.id && args.bias.id) {
        MODEL_WRONG(model, "unit %s: %s: it has a bias, so it needs a scale",
                    model_unit_name(model), name);
        return SIFR_NO_VALUE;
    }
    int64_t heads = args.heads ? args.heads : 1;
    if (heads < 1 || in->columns % heads) {
        MODEL_WRONG(model, "unit %s: %s: %lld heads do not divide %lld columns",
                    model_unit_name(model), name, (long long)heads, (long long)in->columns);
        return SIFR_NO_VALUE;
    }
    if (!weights_fit(model, &args, in->columns / heads, name)) return SIFR_NO_VALUE;
    if (!(args.epsilon >= 0 && args.epsilon < 1)) {
        MODEL_WRONG(model, "unit %s: %s: epsilon %g", model_unit_name(model), name, args.epsilon);
        return SIFR_NO_VALUE;
    }
    model_node node = model_make_node(op);
    node.x[0] = model_index(args.x);
    node.w[0] = model_weight_index(args.scale);
    node.w[1] = model_weight_index(args.bias);
    node.attributes.norm.epsilon = (float)args.epsilon;
    node.attributes.norm.groups = (int32_t)heads;
    node.attributes.norm.plus_one = args.plus_one && args.scale.id;
    return model_add_node(model, node, MODEL_VALUE_ACTIVATION, in->columns);
}

sifr_value sifr_layer_norm(sifr_model *model, sifr_norm_args args) {
    BASE_ENTER_OR((sifr_value){0}, model);
    return add_norm(model, &model_op_layer_norm, args);
}

sifr_value sifr_rms_norm(sifr_model *model, sifr_norm_args args) {
    BASE_ENTER_OR((sifr_value){0}, model);
    if (args.bias.id) {
        MODEL_WRONG(model, "unit %s: rms_norm: it takes no bias", model_unit_name(model));
        return SIFR_NO_VALUE;
    }
    return add_norm(model, &model_op_rms_norm, args);
}
