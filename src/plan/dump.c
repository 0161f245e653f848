/* The schedule as text, one instruction a line. */
#include <stdarg.h>
#include <stdio.h>

#include "base/assert.h"
#include "plan/peers.h"
#include "plan/queries.h"
#include "plan/schedule.h"

static size_t put(char *text, size_t size, size_t used, const char *format, ...) SIFR_PRINTF(4, 5);

static size_t put(char *text, size_t size, size_t used, const char *format, ...) {
    base_assert(used < size);
    va_list arguments;
    va_start(arguments, format);
    int more = vsnprintf(text + used, size - used, format, arguments);
    va_end(arguments);
    if (more < 0) return used;
    return used + (size_t)more < size ? used + (size_t)more : size - 1;
}

/* "4096 bytes file@8192 into @65536", "4096 bytes @65536 into host@8192" */
static size_t dump_transfer(const plan_schedule *s, const plan_instruction *i, char *text,
                            size_t size, size_t used) {
    used = put(text, size, used, " %lld bytes", (long long)i->bytes);
    for (int o = 0; o < 2; o++) {
        const plan_operand *operand = &s->operands[i->first_operand + o];
        const plan_buffer *buffer = &s->buffers[operand->buffer];
        base_assert(operand->buffer >= 0 && i->operands == 2);
        used = put(text, size, used, "%s%s@%lld", o ? " into " : " ",
                   !plan_is_offloaded(s, operand->buffer) ? ""
                   : buffer->tier == PLAN_NVME            ? "file"
                                                          : "host",
                   (long long)(buffer->offset + operand->offset));
    }
    return used;
}

/* "4096 bytes fp32 @0 into @65536 tensors": a slice of a sum, all that an exchange brings */
static size_t dump_values(const plan_schedule *s, const plan_instruction *i, char *text,
                          size_t size, size_t used) {
    used = put(text, size, used, " %lld bytes %s", (long long)i->bytes,
               plan_encoding_of((plan_code)i->encoding)->name);
    for (int o = 0; o < i->operands; o++) {
        const plan_operand *operand = &s->operands[i->first_operand + o];
        used = put(text, size, used, "%s@%lld", o ? " into " : " ",
                   (long long)(s->buffers[operand->buffer].offset + operand->offset));
    }
    return put(text, size, used, " %s", plan_span_name((plan_span)i->span));
}

static void dump_instruction(const plan_schedule *s, size_t index, char *text, size_t size) {
    const plan_instruction *i = &s->instructions[index];
    size_t used = put(text, size, 0, "%5zu %s %-8s", index, plan_queue_name((plan_queue)i->queue),
                      plan_action_name((plan_action)i->action));
    used = put(text, size, used, " %-10s", i->unit >= 0 ? s->model->units[i->unit].name : "");
    if (i->micro_batch >= 0) used = put(text, size, used, " #%d", i->micro_batch);
    if (i->call >= 0) {
        device_call call = s->calls[i->call];
        used = put(text, size, used, " %s", device_kernel_name(call.kernel));
        for (int32_t o = i->first_operand; o < i->first_operand + i->operands; o++) {
            const plan_operand *operand = &s->operands[o];
            const device_matrix *m = plan_role_matrix(&call, (plan_role)operand->role);
            const plan_buffer *buffer = &s->buffers[operand->buffer];
            used = put(text, size, used, " %s=%lldx%lld %s@%lld",
                       plan_role_name((plan_role)operand->role), (long long)m->rows,
                       (long long)m->columns, base_dtype_name(m->dtype),
                       (long long)(buffer->offset + operand->offset));
        }
        if (i->accumulate_dw) used = put(text, size, used, " (adds)");
    }
    if (i->queue == PLAN_DISK || i->queue == PLAN_COPY)
        used = dump_transfer(s, i, text, size, used);
    if (plan_is_peer(i))
        used = put(text, size, used, " %lld bytes %s stage %d", (long long)i->bytes,
                   i->action == PLAN_SEND ? "to" : "from", i->peer);
    if (plan_is_collective(i) && i->segment < 0)
        used = dump_values(s, i, text, size, used);
    else if (i->queue == PLAN_COMMUNICATION && i->span != PLAN_STATE)
        used = put(text, size, used, " %s", plan_span_name((plan_span)i->span));
    if (i->wait >= 0) used = put(text, size, used, " after %d", i->wait);
    if (i->deferred) put(text, size, used, " (of the step before)");
}

void plan_dump(const plan_schedule *s, void (*line)(void *user, const char *text), void *user) {
    for (size_t i = 0; i < s->instruction_count; i++) {
        char text[1024];
        dump_instruction(s, i, text, sizeof text);
        line(user, text);
    }
}
