/* Host memory of a device that hides its memory: between it and files, and between steps. */
#include "base/assert.h"
#include "base/checked.h"
#include "plan/queries.h"

void plan_staging(const plan_schedule *s, int64_t bytes[2]) {
    int64_t now[2] = {0};
    bytes[0] = bytes[1] = 0;
    if (!device_is_hidden(s->dev)) return;
    for (size_t i = 0; i < s->instruction_count; i++) {
        const plan_instruction *in = &s->instructions[i];
        bool ends = in->wait >= 0;
        if (ends) in = &s->instructions[in->wait];
        int way = in->action == PLAN_WRITE;
        if (in->queue != PLAN_DISK) continue;
        now[way] += ends ? -in->bytes : in->bytes;
        base_assert(now[way] >= 0);
        bytes[way] = base_max_i64(bytes[way], now[way]);
    }
}

int64_t plan_piece_bytes(const plan_schedule *s) {
    int64_t largest = 0;
    if (!device_is_hidden(s->dev) || s->settings.external_parameters) return 0;
    for (size_t g = 0; g < s->model->segment_count; g++)
        largest = base_max_i64(largest, s->segment_elements[g] * (int64_t)sizeof(float));
    return base_min_i64(PLAN_MOST_PIECE, base_ceil_to(largest, PLAN_DISK_ALIGNMENT));
}

int64_t plan_host_bytes(const plan_schedule *s) {
    int64_t staging[2];
    plan_staging(s, staging);
    return s->host_bytes + staging[0] + staging[1] + 2 * plan_piece_bytes(s);
}
