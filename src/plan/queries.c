/* What the settings of a plan say of its types, its sums and its micro batches. */
#include "plan/queries.h"

#include "base/assert.h"
#include "base/checked.h"

base_dtype plan_dtype(const plan_settings *settings) {
    return device_dtype_of(settings->step.precision);
}

int64_t plan_run_length(const plan_settings *settings) {
    return settings->step.seq_length / plan_mesh_ranks(&settings->mesh, PLAN_CONTEXTS);
}

plan_token_runs plan_runs_of_tokens(const plan_settings *settings) {
    int32_t ranks = plan_mesh_ranks(&settings->mesh, PLAN_CONTEXTS);
    int32_t place = plan_mesh_place(&settings->mesh, PLAN_CONTEXTS);
    int64_t length = plan_run_length(settings);
    bool two = ranks > 1 && settings->step.mesh.context_kind != SIFR_CONTEXT_ULYSSES;
    if (!two) return (plan_token_runs){.count = 1, .length = length, .first = {place * length}};
    device_attention_attributes a = {
        .length = settings->step.seq_length, .contexts = ranks, .context = place};
    return (plan_token_runs){.count = 2,
                             .length = length / 2,
                             .first = {device_attention_run(&a, 0), device_attention_run(&a, 1)}};
}

int64_t plan_tokens(const plan_settings *settings) {
    return settings->step.micro_batch_size * plan_run_length(settings);
}

int64_t plan_cache_rows(const plan_settings *settings) {
    return settings->step.micro_batch_size * settings->cache_length;
}

void plan_cache_shape(const sifr_model *model, const plan_settings *settings, int32_t n,
                      int64_t *rows, int64_t *columns, base_dtype *dtype) {
    const model_node *node = &model->nodes[n];
    base_assert(model_is_cached(node->op));
    *dtype = node->op->fp32_state ? BASE_FP32 : plan_dtype(settings);
    if (node->op->state) {
        node->op->state(model, node, rows, columns);
        *rows *= settings->step.micro_batch_size;
        return;
    }
    base_assert(node->x[1] >= 0);
    *rows = plan_cache_rows(settings);
    *columns = model->values[node->x[1]].columns;
}

bool plan_narrow_gradients(const plan_settings *settings) {
    return settings->step.grad_accum_dtype != SIFR_FP32;
}

bool plan_converts_gradients(const plan_settings *settings) {
    return !plan_narrow_gradients(settings) && settings->step.communication_data_type != SIFR_FP32;
}

bool plan_quantises_sums(const plan_settings *settings) {
    bool several = plan_mesh_ranks(&settings->mesh, PLAN_STATE) > 1;
    return settings->step.zero.quantized_gradients && plan_cuts(settings, PLAN_CUT_SUMS) && several;
}

base_dtype plan_sum_type(const plan_settings *settings) {
    return device_dtype_of(settings->step.grad_accum_dtype);
}

plan_code plan_sent_sums(const plan_settings *settings) {
    bool converts = plan_converts_gradients(settings);
    return plan_code_of(converts ? device_dtype_of(settings->step.communication_data_type)
                                 : plan_sum_type(settings));
}

bool plan_has_masters(const plan_settings *settings) {
    if (optim_row_of(&settings->step.optimizer)->averages) return true;
    return settings->step.precision != SIFR_FP32 && !settings->step.bf16_master_weights;
}

base_dtype plan_moment_type(const plan_settings *settings) {
    return settings->step.bf16_optimizer_states ? BASE_BF16 : BASE_FP32;
}

/* Errors of compressed gradients are of whole ones, which then have to be there at the norm. */
bool plan_cuts(const plan_settings *settings, plan_cut what) {
    static const int32_t first[] = {
        [PLAN_CUT_OPTIMIZER] = 1, [PLAN_CUT_SUMS] = 2, [PLAN_CUT_WEIGHTS] = 3};
    if (what == PLAN_CUT_SUMS && plan_compresses(settings)) return false;
    return settings->step.zero.stage >= first[what];
}

int32_t plan_slices(const plan_settings *settings, plan_cut what) {
    return plan_cuts(settings, what) ? plan_mesh_ranks(&settings->mesh, PLAN_STATE) : 1;
}

bool plan_sums_are_whole(const plan_settings *settings) {
    return plan_slices(settings, PLAN_CUT_SUMS) < plan_mesh_ranks(&settings->mesh, PLAN_STATE);
}

int32_t plan_batch_neighbours(const plan_settings *settings) {
    bool across =
        plan_cuts(settings, PLAN_CUT_SUMS) && settings->step.step_order == SIFR_STEP_BATCH;
    return across ? settings->mesh.ranks[PLAN_AXIS_SHARD] : 1;
}

base_dtype plan_state_type(const plan_settings *settings, const optim_row *row, int state) {
    return row->states[state].type ? row->states[state].type : plan_moment_type(settings);
}

const optim_row *plan_row(const plan_schedule *s, int32_t segment) {
    return optim_row_for(optim_row_of(&s->settings.step.optimizer),
                         s->model->segments[segment].rest);
}

int32_t plan_sum_parts(const plan_settings *settings) {
    return plan_slices(settings, PLAN_CUT_OPTIMIZER);
}

int32_t plan_sum_tensors(const plan_schedule *s, int32_t segment) {
    base_assert(segment >= 0 && (size_t)segment < s->model->segment_count);
    bool cut = !s->model->segments[segment].replicated;
    return cut ? plan_mesh_ranks(&s->settings.mesh, PLAN_TENSORS) : 1;
}

int64_t plan_sum_bytes(const plan_schedule *s, int32_t segment) {
    int64_t weights = 0;
    for (size_t w = 0; w < s->model->weight_count; w++)
        weights += s->model->weights[w].segment == segment;
    return base_ceil_to(weights * 2 * (int64_t)sizeof(base_exact_sum), PLAN_ALIGNMENT);
}

int32_t plan_global_micro_batch(const plan_settings *settings, int32_t place, int32_t micro_batch) {
    int32_t neighbours = plan_batch_neighbours(settings);
    int32_t group = place / neighbours * settings->step.gradient_accumulation_steps;
    return (group + micro_batch) * neighbours + place % neighbours;
}

int64_t plan_joined_sequences(const sifr_model *model) {
    const model_objective_row *row = model->objective.row;
    return row && row->pairs ? 2 : 1;
}

plan_span plan_parts_span(const plan_schedule *s, int32_t segment) {
    base_assert(segment >= 0 && (size_t)segment < s->model->segment_count);
    return s->model->segments[segment].copies > 1 ? PLAN_ALIKE : PLAN_TENSORS;
}

bool plan_counts_segment(const plan_schedule *s, int32_t segment) {
    base_assert(segment >= 0 && (size_t)segment < s->model->segment_count);
    const model_segment *of = &s->model->segments[segment];
    if (of->copies > 1) return plan_mesh_place(&s->settings.mesh, PLAN_ALIKE) == 0;
    return !of->replicated || plan_mesh_place(&s->settings.mesh, PLAN_TENSORS) == 0;
}

bool plan_compresses(const plan_settings *settings) {
    return settings->mode == PLAN_TRAIN &&
           settings->step.compression.type != SIFR_COMPRESSION_NONE &&
           plan_mesh_ranks(&settings->mesh, PLAN_BATCH) > 1;
}

bool plan_runs(const plan_schedule *s, const plan_instruction *in) {
    return in->kind == PLAN_ALL_STEPS || (in->kind == PLAN_COMPRESSED_STEPS) == s->compressed;
}
