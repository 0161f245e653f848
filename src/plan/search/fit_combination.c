/* The combinations of settings that plan_fit tries, and the micro batches of a global batch. */
#include "base/heap.h"
#include "plan/queries.h"
#include "plan/search/fit_private.h"

static bool has(const plan_choice *row, plan_trait trait) {
    return (row->traits & trait) != 0;
}

fit_combination fit_begin_combinations(const plan_search *search, const plan_settings *from) {
    fit_combination c = {0};
    plan_settings any = *from; /* the widest case that other rows and sizes allow */
    if (from->step.micro_batch_size > 1) any.step.gradient_accumulation_steps = 2;
    any.step.recompute = SIFR_RECOMPUTE_UNIT;
    if (search->disk_bytes) any.step.offload.optimizer.device = SIFR_TIER_NVME;
    any.step.zero.stage = 3;
    for (size_t i = 0; i < plan_choice_count() && c.rows < FIT_MOST_ROWS; i++) {
        const plan_choice *row = plan_choice_at(i);
        bool order = search->any_order && has(row, PLAN_IS_ORDER);
        bool disk = has(row, PLAN_ON_DISK) && search->disk_bytes == 0;
        if (plan_is_searched(row) && !order && !disk && row->matters(&any)) c.row[c.rows++] = i;
    }
    return c;
}

bool fit_next_combination(fit_combination *c) {
    for (size_t i = 0; i < c->rows; i++) {
        if (++c->value[i] < plan_choice_at(c->row[i])->count) return true;
        c->value[i] = 0;
    }
    return false;
}

/* Whether what is given of ZeRO++ has a stage in which it acts. Of a single rank there is none. */
static bool codes_act(const plan_search *search, const plan_settings *s) {
    int64_t size = s->step.zero.hpz_partition_size;
    int32_t ranks = plan_mesh_ranks(&s->mesh, PLAN_STATE);
    bool weights = s->step.zero.quantized_weights, near = size > 1 && size != ranks;
    if (ranks == 1 || (!weights && !near)) return true;
    if (!plan_cuts(s, PLAN_CUT_WEIGHTS)) return false;
    return !near ||
           (s->mesh.near > 0 &&
            plan_mesh_check_near(&s->mesh, search->machine->ranks_per_host, NULL) == SIFR_OK);
}

bool fit_combine(const plan_search *search, const fit_combination *c, const plan_settings *from,
                 plan_settings *out) {
    *out = *from;
    for (size_t i = 0; i < c->rows; i++) plan_choose(search, out, c->row[i], c->value[i]);
    for (size_t i = 0; i < c->rows; i++) {
        const plan_choice *row = plan_choice_at(c->row[i]);
        if (plan_choice_get(row, out) != c->value[i]) return false;
    }
    return !search->keeps_codes || codes_act(search, out);
}

sifr_status fit_find_sizes(const plan_search *search, int64_t share, fit_sizes *out,
                           sifr_error *error) {
    size_t capacity = 0;
    int64_t joined = plan_joined_sequences(search->model), groups = share / joined;
    *out = (fit_sizes){.share = share};
    if (share % joined != 0) return SIFR_OK;
    for (int64_t n = 1; n <= groups / n; n++) { /* up to the root, then the rest */
        if (groups % n) continue;
        BASE_TRY(base_grow(&out->size, &capacity, out->count + 1, sizeof *out->size, error));
        out->size[out->count++] = n * joined;
    }
    for (size_t i = out->count; i-- > 0;) {
        int64_t other = groups / (out->size[i] / joined) * joined;
        if (other == out->size[i]) continue;
        BASE_TRY(base_grow(&out->size, &capacity, out->count + 1, sizeof *out->size, error));
        out->size[out->count++] = other;
    }
    return SIFR_OK;
}

int64_t fit_least_sequences(const plan_search *search, const plan_settings *settings) {
    int64_t joined = plan_joined_sequences(search->model), least = joined;
    int64_t run = plan_mesh_ranks(&settings->mesh, PLAN_TENSORS) * (int64_t)DEVICE_NORM_ROWS;
    if (!settings->step.mesh.sequence_parallel) return joined;
    while (least * settings->step.seq_length % run) least += joined;
    return least;
}

void fit_set_size(const fit_sizes *sizes, plan_settings *settings, size_t index) {
    settings->step.micro_batch_size = sizes->size[index];
    settings->step.gradient_accumulation_steps = (int32_t)(sizes->share / sizes->size[index]);
}

static int64_t parameter_bytes(const sifr_model *model, int64_t element) {
    int64_t bytes = 0;
    for (size_t w = 0; w < model->weight_count; w++) {
        int64_t elements = model->weights[w].rows * model->weights[w].columns;
        model_coding coding = model->weights[w].coding;
        bytes +=
            coding ? elements * model_record_bytes(coding) / BASE_NF4_RECORD : elements * element;
    }
    return bytes;
}

int64_t fit_state_bytes(const plan_search *search, const plan_settings *s) {
    int64_t all = parameter_bytes(search->model, base_dtype_bytes(plan_dtype(s)));
    int64_t trained = sifr_model_trained(search->model);
    int64_t held = trained / plan_slices(s, PLAN_CUT_OPTIMIZER), bytes = 0;
    const optim_row *row = optim_row_of(&s->step.optimizer); /* of the rest: not fewer */
    if (s->step.offload.param.device == SIFR_TIER_NONE)
        bytes += all / plan_slices(s, PLAN_CUT_WEIGHTS);
    if (s->step.offload.optimizer.device == SIFR_TIER_NONE)
        for (int i = 0; i < optim_states(row); i++)
            if (!row->states[i].axis) /* those of rows and columns are few */
                bytes += optim_values(row, i, held) * base_dtype_bytes(plan_state_type(s, row, i));
    if (s->step.offload.optimizer.device == SIFR_TIER_NONE && plan_has_masters(s))
        bytes += held * 4;
    return bytes / plan_mesh_ranks(&s->mesh, PLAN_STAGES) / plan_mesh_ranks(&s->mesh, PLAN_TENSORS);
}

bool fit_is_better(const plan_outcome *a, const plan_outcome *b) {
    if (a->fits != b->fits) return a->fits;
    if (!a->fits) return plan_needed_bytes(a) < plan_needed_bytes(b);
    return a->predicted.step_seconds < b->predicted.step_seconds;
}

sifr_status fit_add(fit_list *list, const plan_outcome *outcome, sifr_error *error) {
    BASE_TRY(base_grow(&list->all, &list->capacity, list->count + 1, sizeof *list->all, error));
    list->all[list->count++] = *outcome;
    return SIFR_OK;
}
