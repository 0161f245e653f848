#include "checkpoint/layout.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/checked.h"
#include "base/heap.h"

/* The ranges that one rank writes, split where a file is full. */
static sifr_status add_rank(const sifr_engine *engine, int32_t rank, int64_t limit,
                            checkpoint_layout *layout, sifr_error *error) {
    int64_t filled = limit; /* bytes; the first range begins a file */
    for (int p = 0; p < engine_parts(engine); p++) {
        const char *name = engine_part_name(engine_optimizer(engine), (engine_part)p);
        for (size_t w = 0; w < engine_model(engine)->weight_count; w++) {
            if (!checkpoint_has_part(engine_model(engine), engine_optimizer(engine), w,
                                     (engine_part)p))
                continue;
            base_dtype dtype = engine_weight_type(engine, w, (engine_part)p);
            int64_t first, left, size = base_dtype_bytes(dtype);
            int64_t each = engine_part_each(engine, w, (engine_part)p);
            engine_share(engine, w, rank, &first, &left);
            while (left > 0) {
                if (limit - filled < size) layout->files++, filled = 0;
                int64_t most = (limit - filled) / size; /* values */
                int64_t count = most <= left / each ? most * each : left;
                int64_t values = (count + each - 1) / each;
                BASE_TRY(base_grow(&layout->ranges, &layout->room, layout->count + 1,
                                   sizeof *layout->ranges, error));
                layout->ranges[layout->count++] = (checkpoint_range){.weight = w,
                                                                     .part = (engine_part)p,
                                                                     .name = name,
                                                                     .first = first,
                                                                     .count = count,
                                                                     .each = each,
                                                                     .file = layout->files - 1,
                                                                     .dtype = dtype};
                filled += values * size, first += count, left -= count;
                layout->bytes += (uint64_t)(values * size);
            }
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
    out->first_file[ranks] = out->files;
    return SIFR_OK;
}

void checkpoint_layout_free(checkpoint_layout *layout) {
    free(layout->ranges);
    free(layout->first_file);
    *layout = (checkpoint_layout){0};
}

size_t checkpoint_layout_file(const checkpoint_layout *layout, size_t file, size_t *first) {
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
    snprintf(out, 64, "state-%05zu-of-%05zu.safetensors", file + 1, files);
}
