#include "checkpoint/state_source.h"

#include <stdlib.h>

#include "base/assert.h"
#include "base/checked.h"
#include "base/heap.h"

static sifr_status make_index(checkpoint_state *s, sifr_error *error) {
    size_t weights = s->model->folder.model->weight_count, all = weights * (size_t)s->parts, at = 0;
    BASE_TRY(base_alloc(all + 1, sizeof *s->first, &s->first, error));
    BASE_TRY(base_alloc(s->count, sizeof *s->spans, &s->spans, error));
    for (size_t i = 0; i < s->count; i++) {
        const checkpoint_range *range = &s->ranges[i];
        s->spans[i] = (checkpoint_span){
            range->span, formats_safetensors_find(&s->files[range->file], range->tensor)};
    }
    for (size_t i = 0; i < all; i++) {
        s->first[i] = at;
        while (at < s->count &&
               s->ranges[at].weight * (size_t)s->parts + (size_t)s->ranges[at].part == i)
            at++;
    }
    base_assert(at == s->count); /* they are sorted by weight and part */
    s->first[all] = at;
    return SIFR_OK;
}

static sifr_status open_state(checkpoint_state *s, const optim_row *optimizer, sifr_error *error) {
    const checkpoint_model *m = s->model;
    s->parts = ENGINE_STATE1 + optim_most_states(optimizer);
    BASE_TRY(checkpoint_state_ranges(&m->opened, m->folder.model, optimizer, m->path, &s->ranges,
                                     &s->count, error));
    BASE_TRY(base_alloc(m->opened.file_count, sizeof *s->files, &s->files, error));
    for (size_t i = 0; i < m->opened.file_count; i++) {
        bool verified = m->state[i].count > 0; /* the model has read master weights of it */
        BASE_TRY(checkpoint_open_ranges(&m->opened, s->ranges, s->count, i, m->path, !verified,
                                        &s->files[i], error));
    }
    return make_index(s, error);
}

sifr_status checkpoint_state_open(const checkpoint_model *model, const optim_row *optimizer,
                                  checkpoint_state *out, sifr_error *error) {
    *out = (checkpoint_state){.model = model};
    if (model->step < 0)
        return base_fail(error, SIFR_USAGE,
                         "%s: a model folder has no state of an optimizer; name a checkpoint of a "
                         "run (RUN/checkpoint-N)",
                         model->path);
    sifr_status status = open_state(out, optimizer, error);
    if (status != SIFR_OK) checkpoint_state_close(out);
    return status;
}

void checkpoint_state_close(checkpoint_state *s) {
    for (size_t i = 0; s->files && i < s->model->opened.file_count; i++)
        formats_safetensors_close(&s->files[i]);
    free(s->files);
    free(s->ranges);
    free(s->spans);
    free(s->first);
    *s = (checkpoint_state){0};
}

bool checkpoint_state_trained(const checkpoint_state *s, size_t weight) {
    base_assert(weight < s->model->folder.model->weight_count);
    size_t i = weight * (size_t)s->parts + ENGINE_STATE1;
    return s->first[i] < s->first[i + 1];
}

void checkpoint_state_values(const checkpoint_state *s, size_t weight, engine_part part,
                             int64_t first, int64_t count, float *values) {
    base_assert((int)part >= 0 && (int)part < s->parts);
    if (part == ENGINE_MASTER && s->model->folder.model->weights[weight].based) {
        checkpoint_model_values(s->model, weight, first, count, values);
        return;
    }
    const size_t *begin = s->first + weight * (size_t)s->parts + (size_t)part;
    int64_t columns = model_whole(&s->model->folder.model->weights[weight]).columns[1];
    checkpoint_span_values(s->spans + *begin, begin[1] - *begin, columns, first, count, values);
}
