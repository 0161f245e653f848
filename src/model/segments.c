/* Where weights lie: the segments of units. */
#include "base/checked.h"
#include "base/heap.h"
#include "model/description.h"

/* The unit's segment for weights like this one; a new one if there is none yet. */
static sifr_status find_segment(sifr_model *model, model_unit *unit, const model_weight *weight,
                                int32_t *out, sifr_error *error) {
    for (*out = unit->first_segment; *out < (int32_t)model->segment_count; ++*out) {
        const model_segment *s = &model->segments[*out];
        if (s->frozen == weight->frozen && s->group == weight->group && s->rest == weight->rest &&
            s->coding == weight->coding && s->replicated == weight->replicated &&
            s->partial == weight->partial && s->copies == weight->copies)
            return SIFR_OK;
    }
    BASE_TRY(base_grow(&model->segments, &model->segment_capacity, model->segment_count + 1,
                       sizeof *model->segments, error));
    model->segments[model->segment_count++] = (model_segment){.unit = weight->unit,
                                                              .group = weight->group,
                                                              .frozen = weight->frozen,
                                                              .rest = weight->rest,
                                                              .replicated = weight->replicated,
                                                              .partial = weight->partial,
                                                              .copies = weight->copies,
                                                              .coding = weight->coding};
    unit->segments++;
    return SIFR_OK;
}

sifr_status model_arrange(sifr_model *model, sifr_error *error) {
    model->segment_count = 0;
    for (size_t u = 0; u < model->unit_count; u++) {
        model_unit *unit = &model->units[u];
        unit->first_segment = (int32_t)model->segment_count;
        unit->segments = 0;
        for (int32_t w = unit->first_weight; w < unit->first_weight + unit->weights; w++) {
            model_weight *weight = &model->weights[w];
            BASE_TRY(find_segment(model, unit, weight, &weight->segment, error));
            model_segment *segment = &model->segments[weight->segment];
            weight->offset = segment->elements;
            segment->elements +=
                base_ceil_to(weight->rows * weight->columns, model_piece(weight->coding));
        }
    }
    return SIFR_OK;
}
