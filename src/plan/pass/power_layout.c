#include "plan/pass/power_layout.h"

#include <stdlib.h>

#include "base/checked.h"
#include "base/heap.h"
#include "plan/queries.h"

/* torch's rule (_should_compress of its PowerSGD hook). The rank of a small matrix is its own. */
int64_t plan_compressed_rank(const plan_settings *settings, const model_weight *w) {
    const sifr_compression *c = &settings->step.compression;
    int64_t rank = base_min_i64(base_min_i64(w->rows, w->columns), c->rank);
    double factors = (double)(w->rows + w->columns) * (double)rank;
    bool pays = factors * c->min_compression_rate < (double)w->rows * (double)w->columns;
    return w->vector || !pays ? 0 : rank;
}

void plan_count_compressed(const sifr_model *model, const plan_settings *settings,
                           int64_t *compressed, int64_t *matrices) {
    *compressed = *matrices = 0;
    for (size_t w = 0; w < model->weight_count; w++) {
        const model_weight *weight = &model->weights[w];
        if (weight->segment < 0 || weight->frozen || weight->vector) continue;
        *matrices += 1;
        *compressed += plan_compressed_rank(settings, weight) > 0;
    }
}

static void add_matrix(power_layout *l, const model_weight *w, int32_t weight, int64_t rank) {
    l->matrices[l->matrix_count++] = (power_matrix){.weight = weight,
                                                    .segment = w->segment,
                                                    .rows = w->rows,
                                                    .columns = w->columns,
                                                    .rank = rank,
                                                    .first = w->offset,
                                                    .error = l->errors,
                                                    .left = l->left,
                                                    .right = l->right};
    l->errors += w->rows * w->columns;
    l->left += rank * w->rows;
    l->right += rank * w->columns;
}

static void add_piece(power_layout *l, const model_weight *w) {
    int64_t count = w->rows * w->columns;
    l->pieces[l->piece_count++] = (power_piece){w->segment, w->offset, count, l->dense};
    l->dense += count;
}

sifr_status power_layout_make(const plan_schedule *s, const bool *owned, power_layout *out,
                              sifr_error *error) {
    const sifr_model *model = s->model;
    *out = (power_layout){0};
    BASE_TRY(base_alloc(model->weight_count, sizeof *out->matrices, &out->matrices, error));
    BASE_TRY(base_alloc(model->weight_count, sizeof *out->pieces, &out->pieces, error));
    for (size_t w = 0; w < model->weight_count; w++) {
        const model_weight *weight = &model->weights[w];
        if (weight->segment < 0 || !owned[weight->segment]) continue;
        int64_t rank = plan_compressed_rank(&s->settings, weight);
        if (rank)
            add_matrix(out, weight, (int32_t)w, rank);
        else
            add_piece(out, weight);
    }
    return SIFR_OK;
}

int64_t power_sent(const plan_schedule *s, int64_t elements) {
    return base_ceil_to(elements, plan_mesh_ranks(&s->settings.mesh, PLAN_BATCH));
}

void power_layout_free(power_layout *l) {
    free(l->matrices);
    free(l->pieces);
    *l = (power_layout){0};
}
