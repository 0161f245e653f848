#include "plan/checkpoint_size.h"

#include "base/assert.h"
#include "base/checked.h"
#include "plan/queries.h"

static int64_t add(int64_t a, int64_t b) {
    int64_t sum;
    return base_add_i64(a, b, &sum) ? sum : INT64_MAX;
}

static int64_t multiply(int64_t a, int64_t b) {
    int64_t product;
    return base_mul_i64(a, b, &product) ? product : INT64_MAX;
}

static int64_t state_bytes(const model_weight *weight, const plan_settings *settings,
                           int64_t elements) {
    const optim_row *row = optim_row_for(optim_row_of(&settings->step.optimizer), weight->rest);
    int64_t all = 0;
    for (int i = 0; i < optim_states(row); i++) {
        int64_t values = row->states[i].axis ? optim_weight_values(row, i, weight)
                                             : optim_values(row, i, elements);
        all = add(all, multiply(values, base_dtype_bytes(plan_state_type(settings, row, i))));
    }
    return all;
}

/* Errors and factors of compressed gradients, which each rank of the batch has for itself. */
static int64_t compressed_bytes(const model_weight *weight, const plan_settings *settings) {
    const sifr_compression *c = &settings->step.compression;
    int64_t rank = plan_compresses(settings) ? plan_compressed_rank(settings, weight) : 0, all = 0;
    if (rank && c->error_feedback) all = multiply(weight->rows, weight->columns);
    if (rank && c->warm_start) all = add(all, multiply(weight->columns, rank));
    return multiply(all, 4 * (int64_t)plan_mesh_ranks(&settings->mesh, PLAN_BATCH));
}

int64_t plan_checkpoint_bytes(const sifr_model *model, const plan_settings *settings) {
    base_dtype masters = plan_has_masters(settings) ? BASE_FP32 : plan_dtype(settings);
    int64_t all = 0;
    for (size_t w = 0; w < model->weight_count; w++) {
        const model_weight *weight = &model->weights[w];
        int64_t elements = multiply(weight->rows, weight->columns);
        int64_t element = base_dtype_bytes(masters);
        if (weight->frozen) element = weight->based ? 0 : base_dtype_bytes(plan_dtype(settings));
        all = add(all, multiply(elements, element));
        if (!weight->frozen) all = add(all, state_bytes(weight, settings, elements));
        if (!weight->frozen) all = add(all, compressed_bytes(weight, settings));
    }
    return all;
}

int64_t plan_checkpoint_space(int64_t bytes, int64_t count) {
    base_assert(bytes >= 0 && count >= 0);
    return add(multiply(bytes, count), add(bytes / 64, 1 << 20));
}

int64_t plan_output_bytes(const plan_output *output, const sifr_model *model,
                          const plan_settings *settings, int64_t nvme_bytes) {
    int64_t each = plan_checkpoint_bytes(model, settings);
    int64_t saved = add(plan_checkpoint_space(each, output->checkpoints), output->model_bytes);
    return add(saved, multiply(nvme_bytes, output->swaps));
}

bool plan_fits_output(const plan_output *output, const sifr_model *model,
                      const plan_settings *settings, int64_t nvme_bytes) {
    return !output->known ||
           plan_output_bytes(output, model, settings, nvme_bytes) <= output->room_bytes;
}
