#include "checkpoint/cover.h"

#include <stdlib.h>

#include "base/assert.h"
#include "base/checked.h"
#include "base/heap.h"

typedef struct cover_run {
    const checkpoint_range *ranges;
    size_t count, at; /* at: the next range */
    const sifr_model *model;
    const optim_row *optimizer;
    const char *where;
} cover_run;

static bool is_of(const cover_run *run, size_t index, size_t weight, int part) {
    return index < run->count && run->ranges[index].weight == weight &&
           (int)run->ranges[index].part == part;
}

static const char *part_name(const cover_run *run, size_t weight, int part) {
    base_assert(part == ENGINE_MASTER || run->optimizer);
    const optim_row *row = run->optimizer;
    if (row) row = optim_row_for(row, run->model->weights[weight].rest);
    return engine_part_name(row, (engine_part)part);
}

static sifr_status missing(const cover_run *run, size_t weight, int part, int64_t from,
                           sifr_error *error) {
    return base_fail(error, SIFR_FAILED,
                     "%s: %s of '%s' is missing or stored twice from element %lld on", run->where,
                     part_name(run, weight, part), run->model->weights[weight].name,
                     (long long)from);
}

/* --- blocks --- */

typedef struct corner {
    int64_t row, column;
} corner;

static int compare_corners(const void *a, const void *b) {
    const corner *x = a, *y = b;
    if (x->row != y->row) return x->row < y->row ? -1 : 1;
    return x->column < y->column ? -1 : x->column > y->column;
}

static void add_corners(const model_block *block, corner *out) {
    for (int i = 0; i < 4; i++) out[i] = (corner){block->rows[i / 2], block->columns[i % 2]};
}

/* Blocks of the same total size as the whole are a partition of it if each point is a corner of an
 * even number of them and the whole: then each element is in an odd number of blocks, so in one at
 * least, and the sizes leave room for no more. */
static sifr_status corners_meet(const checkpoint_range *ranges, size_t count,
                                const model_block *whole, bool *meet, sifr_error *error) {
    corner *corners;
    size_t used = 4, same = 1, size;
    *meet = true;
    if (!base_mul_size(count + 1, 4, &size)) return base_fail_alloc(error, count);
    BASE_TRY(base_alloc(size, sizeof *corners, &corners, error));
    add_corners(whole, corners);
    for (size_t i = 0; i < count; i++) {
        const model_block *block = &ranges[i].span.block;
        if (i && model_same_block(block, &ranges[i - 1].span.block)) continue;
        add_corners(block, corners + used);
        used += 4;
        base_assert(used <= size);
    }
    qsort(corners, used, sizeof *corners, compare_corners);
    for (size_t i = 1; i <= used; i++, same++) {
        if (i < used && compare_corners(&corners[i - 1], &corners[i]) == 0) continue;
        *meet &= same % 2 == 0;
        same = 0;
    }
    free(corners);
    return SIFR_OK;
}

/* The ranges of one block, which follow each other. */
static sifr_status cover_block(cover_run *run, size_t weight, int part, int64_t elements,
                               sifr_error *error) {
    base_assert(is_of(run, run->at, weight, part));
    const model_block *block = &run->ranges[run->at].span.block;
    int64_t covered = 0;
    for (; is_of(run, run->at, weight, part); run->at++) {
        const model_span *span = &run->ranges[run->at].span;
        if (!model_same_block(&span->block, block)) break;
        if (span->first != covered || span->count > elements - covered) break;
        covered += span->count;
    }
    return covered == elements ? SIFR_OK : missing(run, weight, part, covered, error);
}

/* How many elements the ranges of a part cover. A part of rows or columns counts as the first
 * elements of the whole weight. */
static int64_t part_elements(const cover_run *run, size_t weight, int part) {
    base_assert(part == ENGINE_MASTER || run->optimizer);
    const model_weight *w = &run->model->weights[weight];
    const optim_row *row = run->optimizer ? optim_row_for(run->optimizer, w->rest) : NULL;
    if (part == ENGINE_MASTER || !row->states[part - ENGINE_STATE1].axis)
        return model_logical_elements(w);
    return optim_weight_values(row, part - ENGINE_STATE1, w);
}

static sifr_status cover_weight(cover_run *run, size_t weight, int part, sifr_error *error) {
    model_block whole = model_whole(&run->model->weights[weight]);
    int64_t left = part_elements(run, weight, part), all = left;
    bool whole_part = all == model_block_elements(&whole);
    bool meet = true;
    size_t begin = run->at, blocks = 0;
    if (!is_of(run, run->at, weight, part) && left) return missing(run, weight, part, 0, error);
    for (; left > 0 && is_of(run, run->at, weight, part); blocks++) {
        const model_block *block = &run->ranges[run->at].span.block;
        int64_t elements = whole_part ? model_block_elements(block) : all;
        if (!whole_part && !model_same_block(block, &whole)) break;
        BASE_TRY(cover_block(run, weight, part, elements, error));
        base_assert(elements > 0);
        left -= elements; /* no more than the whole has */
    }
    if (left == 0 && blocks > 1)
        BASE_TRY(corners_meet(run->ranges + begin, run->at - begin, &whole, &meet, error));
    if (left == 0 && meet) return SIFR_OK;
    return base_fail(error, SIFR_FAILED,
                     "%s: the blocks of %s of '%s' leave gaps or lie over each other", run->where,
                     part_name(run, weight, part), run->model->weights[weight].name);
}

/* --- all --- */

bool checkpoint_has_part(const sifr_model *model, const optim_row *optimizer, size_t weight,
                         engine_part part) {
    base_assert(weight < model->weight_count);
    const model_weight *w = &model->weights[weight];
    if (part == ENGINE_MASTER) return !w->based;
    if (w->frozen || !optimizer) return !w->frozen;
    return (int)part - ENGINE_STATE1 < optim_states(optim_row_for(optimizer, w->rest));
}

/* How many states a weight has, at least: of this row or of its rest. */
static int fewest_states(const optim_row *row) {
    int own = optim_states(row), rest = optim_states(row->rest);
    return own < rest ? own : rest;
}

sifr_status checkpoint_check_cover(const checkpoint_range *ranges, size_t count,
                                   const sifr_model *model, const optim_row *optimizer, bool any,
                                   const char *where, sifr_error *error) {
    int parts = ENGINE_STATE1 + (optimizer ? optim_most_states(optimizer) : 0);
    int fewest = optimizer && optimizer->rest ? fewest_states(optimizer) : -1;
    cover_run run = {ranges, count, 0, model, optimizer, where};
    for (size_t w = 0; w < model->weight_count; w++) {
        bool trained = true;
        for (int p = 0; p < parts; p++) {
            bool last = fewest >= 0 && p == ENGINE_STATE1 + fewest;
            if (any && (p == ENGINE_STATE1 || last)) trained = is_of(&run, run.at, w, p);
            bool by_model = !any || p == ENGINE_MASTER;
            bool has = checkpoint_has_part(model, optimizer, w, (engine_part)p);
            if (by_model ? !has : !trained) continue;
            BASE_TRY(cover_weight(&run, w, p, error));
        }
    }
    if (run.at == count) return SIFR_OK;
    return base_fail(error, SIFR_FAILED, "%s: ranges overlap", where);
}
