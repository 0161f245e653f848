/* What of an executor's block is in memory, by class.
 *
 * Classes share addresses: one has those of another at other times of a step. At a single
 * instruction each byte of the block belongs to one buffer at most, so what is counted is what the
 * plan adds up: the buffers that live at the instruction with the largest sum.
 */
#include "base/assert.h"
#include "base/process.h"
#include "engine/executor/executor_private.h"
#include "plan/queries.h"

sifr_status engine_count_resident(const engine_executor *e, engine_resident *out,
                                  sifr_error *error) {
    const plan_schedule *s = e->schedule;
    base_assert(e->block_bytes > 0);
    *out = (engine_resident){0};
    if (device_is_separate(s->dev))
        return base_fail(error, SIFR_FAILED,
                         "the classes are in the device's own memory, whose pages the system does "
                         "not count");
    BASE_TRY(base_process_tells_pages(error));
    out->shared = comm_shares_memory(e->world);
    for (int32_t b = 0; b < (int32_t)s->buffer_count; b++) {
        const plan_buffer *buffer = &s->buffers[b];
        if (!plan_lives_at(s, b, s->peak_instruction)) continue;
        BASE_TRY(base_process_count_resident((char *)e->block + buffer->offset,
                                             plan_capacity(buffer->bytes),
                                             &out->classes[buffer->class], error));
    }
    return base_process_count_resident(e->block, e->block_bytes, &out->block, error);
}
