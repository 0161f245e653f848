#include "checkpoint/layout.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/assert.h"
#include "base/checked.h"
#include "base/heap.h"
#include "checkpoint/cover.h"

/* A layout that is being made. */
typedef struct layout_run {
    const sifr_engine *engine;
    int64_t limit, filled; /* bytes of a file */
    checkpoint_layout *layout;
} layout_run;

/* The ranges of a span, split where a file is full. */
static sifr_status add_span(layout_run *run, size_t weight, engine_part part, model_span span,
                            sifr_error *error) {
    base_assert(span.count >= 0 && span.first >= 0);
    checkpoint_layout *layout = run->layout;
    const sifr_model *model = engine_model(run->engine);
    base_dtype dtype = engine_weight_type(run->engine, weight, part);
    int64_t left = span.count, size = base_dtype_bytes(dtype);
    int64_t each = engine_part_each(run->engine, weight, part);
    while (left > 0) {
        if (run->limit - run->filled < size) layout->files++, run->filled = 0;
        base_assert(layout->files > 0 && run->filled <= run->limit);
        int64_t most = (run->limit - run->filled) / size; /* values */
        span.count = most <= left / each ? most * each : left;
        base_assert(span.count > 0); /* or a file has no room for a value */
        int64_t values = (span.count + each - 1) / each;
        BASE_TRY(base_grow(&layout->ranges, &layout->capacity, layout->count + 1,
                           sizeof *layout->ranges, error));
        layout->ranges[layout->count] =
            (checkpoint_range){.weight = weight,
                               .part = part,
                               .name = engine_weight_part(run->engine, weight, part),
                               .span = span,
                               .each = each,
                               .file = layout->files - 1,
                               .dtype = dtype};
        layout->cut |= !checkpoint_is_whole(model, &layout->ranges[layout->count++]);
        run->filled += values * size, span.first += span.count, left -= span.count;
        layout->bytes += (uint64_t)(values * size);
    }
    return SIFR_OK;
}

/* What a rank has of a weight: of each block, what its slice has. */
static sifr_status add_weight(layout_run *run, int32_t rank, size_t weight, engine_part part,
                              sifr_error *error) {
    model_weight there = engine_weight_at(run->engine, weight, rank);
    const model_weight *w = &there;
    int64_t first, count;
    model_span spans[MODEL_BLOCKS];
    if (w->cut.count && engine_part_each(run->engine, weight, part) > 1)
        return base_fail(error, SIFR_USAGE,
                         "checkpoint: %s of '%.80s', which is cut into blocks, has values for "
                         "several elements each, which is not supported yet",
                         engine_weight_part(run->engine, weight, part), w->name);
    engine_share(run->engine, weight, part, rank, &first, &count);
    int32_t blocks = model_local_spans(w, first, count, spans);
    base_assert(blocks <= MODEL_BLOCKS);
    for (int32_t b = 0; b < blocks; b++) BASE_TRY(add_span(run, weight, part, spans[b], error));
    return SIFR_OK;
}

/* The ranges that one rank writes. */
static sifr_status add_rank(const sifr_engine *engine, int32_t rank, int64_t limit,
                            checkpoint_layout *layout, sifr_error *error) {
    layout_run run = {engine, limit, limit, layout}; /* the first range begins a file */
    for (int p = 0; p < engine_parts(engine); p++) {
        for (size_t w = 0; w < engine_model(engine)->weight_count; w++) {
            if (!checkpoint_has_part(engine_model(engine), engine_optimizer(engine), w,
                                     (engine_part)p))
                continue;
            BASE_TRY(add_weight(&run, rank, w, (engine_part)p, error));
        }
    }
    return SIFR_OK;
}

sifr_status checkpoint_layout_make(const sifr_engine *engine, uint64_t file_bytes,
                                   checkpoint_layout *out, sifr_error *error) {
    int64_t most = file_bytes < INT64_MAX ? (int64_t)file_bytes : INT64_MAX;
    int64_t limit = base_max_i64(most, sizeof(float)); /* one value at least */
    int32_t ranks = comm_size(engine_group(engine));
    *out = (checkpoint_layout){0};
    BASE_TRY(base_alloc((size_t)ranks + 1, sizeof *out->first_file, &out->first_file, error));
    for (int32_t r = 0; r < ranks; r++) {
        out->first_file[r] = out->files;
        BASE_TRY(add_rank(engine, r, limit, out, error));
        size_t files = out->files - out->first_file[r];
        if (files > out->most_files) out->most_files = files;
    }
    base_assert(out->count == 0 || out->ranges[out->count - 1].file + 1 == out->files);
    out->first_file[ranks] = out->files;
    return SIFR_OK;
}

void checkpoint_layout_free(checkpoint_layout *layout) {
    free(layout->ranges);
    free(layout->first_file);
    *layout = (checkpoint_layout){0};
}

size_t checkpoint_layout_file(const checkpoint_layout *layout, size_t file, size_t *first) {
    base_assert(file < layout->files);
    size_t low = 0, high = layout->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (layout->ranges[middle].file < file)
            low = middle + 1;
        else
            high = middle;
    }
    *first = low;
    while (low < layout->count && layout->ranges[low].file == file) low++;
    return low - *first;
}

void checkpoint_file_name(char out[64], size_t file, size_t files) {
    base_assert(file < files);
    snprintf(out, 64, "state-%05zu-of-%05zu.safetensors", file + 1, files);
}
