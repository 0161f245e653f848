#include "model/weight_blocks.h"

#include "base/assert.h"
#include "model/description.h"

static int64_t height(const model_block *block) {
    return block->rows[1] - block->rows[0];
}

static int64_t width(const model_block *block) {
    return block->columns[1] - block->columns[0];
}

/* The logical element that is element `index` of a block. */
static int64_t logical_of(const model_block *block, int64_t columns, int64_t index) {
    int64_t wide = width(block);
    return (block->rows[0] + index / wide) * columns + block->columns[0] + index % wide;
}

/* The first elements of `at` … end - 1 in a block; their place is that in the block. */
static bool block_next(const model_block *block, int64_t columns, int64_t at, int64_t end,
                       model_stretch *out) {
    if (model_block_elements(block) == 0) return false;
    int64_t row = at / columns, column = at % columns, wide = width(block);
    if (row < block->rows[0]) {
        row = block->rows[0];
        column = block->columns[0];
    } else if (column >= block->columns[1]) {
        row++;
        column = block->columns[0];
    }
    if (column < block->columns[0]) column = block->columns[0];
    int64_t start = row * columns + column;
    if (row >= block->rows[1] || start >= end) return false;
    /* Rows of all columns follow each other. */
    int64_t last = wide == columns ? block->rows[1] - 1 : row;
    int64_t stop = base_min_i64(end, last * columns + block->columns[1]);
    *out = (model_stretch){start, (row - block->rows[0]) * wide + column - block->columns[0],
                           stop - start};
    return true;
}

bool model_span_next(const model_span *span, int64_t columns, int64_t at, int64_t end,
                     model_stretch *out) {
    if (span->count <= 0) return false;
    int64_t first = logical_of(&span->block, columns, span->first);
    int64_t last = logical_of(&span->block, columns, span->first + span->count - 1);
    if (!block_next(&span->block, columns, base_max_i64(at, first), base_min_i64(end, last + 1),
                    out))
        return false;
    out->place -= span->first;
    return true;
}

/* --- local weights --- */

model_block model_whole(const model_weight *w) {
    if (w->cut.count) return (model_block){{0, w->cut.rows}, {0, w->cut.columns}};
    return (model_block){{0, w->rows}, {0, w->columns}};
}

/* Blocks as high as the local weight lie side by side. */
void model_block_corner(const model_weight *w, int32_t index, int64_t *row, int64_t *column) {
    base_assert(index < w->cut.count);
    *row = *column = 0;
    for (int32_t b = 0; b < index; b++) {
        const model_block *block = &w->cut.blocks[b];
        if (height(block) == w->rows)
            *column += w->cut.room[b] ? w->cut.room[b] : width(block);
        else
            *row += w->cut.room[b] ? w->cut.room[b] : height(block);
    }
}

bool model_local_next(const model_weight *w, int64_t at, int64_t end, model_stretch *out) {
    base_assert(at >= 0);
    bool found = false;
    if (!w->cut.count) {
        *out = (model_stretch){at, at, end - at};
        return at < end;
    }
    for (int32_t b = 0; b < w->cut.count; b++) {
        const model_block *block = &w->cut.blocks[b];
        int64_t row, column, wide = width(block);
        model_stretch next;
        if (!block_next(block, w->cut.columns, at, end, &next)) continue;
        if (found && next.at > out->at) continue;
        model_block_corner(w, b, &row, &column);
        *out = next;
        out->place = (row + next.place / wide) * w->columns + column + next.place % wide;
        found = true;
    }
    return found;
}

/* How many of the first `local` elements of the local weight are in a block. */
static int64_t count_before(const model_weight *w, int32_t index, int64_t local) {
    const model_block *block = &w->cut.blocks[index];
    int64_t row, column, wide = width(block);
    model_block_corner(w, index, &row, &column);
    row = local / w->columns - row;
    column = local % w->columns - column;
    if (row < 0) return 0;
    if (row >= height(block)) return model_block_elements(block);
    return row * wide + base_min_i64(base_max_i64(column, 0), wide);
}

/* The first local element from `place` on that stands for one of the logical weight; or `end`. */
static int64_t next_element(const model_weight *w, int64_t place, int64_t end) {
    for (int32_t b = 0; b < w->cut.count; b++) {
        int64_t before = count_before(w, b, place), wide = width(&w->cut.blocks[b]), row, column;
        if (before == model_block_elements(&w->cut.blocks[b])) continue;
        model_block_corner(w, b, &row, &column);
        end = base_min_i64(end, (row + before / wide) * w->columns + column + before % wide);
    }
    return end;
}

model_stretch model_logical_at(const model_weight *w, int64_t place, int64_t end) {
    base_assert(place >= 0 && end <= w->rows * w->columns);
    model_stretch out = {place, place, end - place};
    for (int32_t b = 0; b < w->cut.count; b++) {
        const model_block *block = &w->cut.blocks[b];
        int64_t before = count_before(w, b, place), wide = width(block);
        if (count_before(w, b, place + 1) == before) continue;
        /* To the end of the row, or of the block if its rows are whole in both weights. */
        bool whole = wide == w->columns && wide == w->cut.columns;
        int64_t left = whole ? model_block_elements(block) - before : wide - before % wide;
        out.at = logical_of(block, w->cut.columns, before);
        out.count = base_min_i64(out.count, left);
        return out;
    }
    if (!w->cut.count) return out;
    return (model_stretch){-1, place, next_element(w, place, end) - place};
}

int32_t model_local_spans(const model_weight *w, int64_t first, int64_t count,
                          model_span out[MODEL_BLOCKS]) {
    base_assert(first >= 0 && count >= 0 && first + count <= w->rows * w->columns);
    if (!w->cut.count) {
        out[0] = (model_span){model_whole(w), first, count};
        return 1;
    }
    for (int32_t b = 0; b < w->cut.count; b++) {
        int64_t from = count_before(w, b, first);
        out[b] = (model_span){w->cut.blocks[b], from, count_before(w, b, first + count) - from};
    }
    return w->cut.count;
}
