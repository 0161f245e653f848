#include "comm/followed.h"

#include "base/assert.h"

_Static_assert(COMM_WORD_BYTES == COMM_LANES * COMM_LINE * sizeof(device_flag), "as planned");

sifr_status comm_flags_take(comm_flags *flags, device *dev, sifr_error *error) {
    void *block;
    if (!device_is_hidden(dev)) return SIFR_OK;
    BASE_TRY(device_take_host(dev, COMM_WORD_BYTES, &block, error));
    *flags = (comm_flags){.dev = dev, .of = block};
    flags->work = device_can_wait_flags(dev, block);
    return SIFR_OK;
}

void comm_flags_give(comm_flags *flags) {
    if (flags->of) device_give(flags->dev, flags->of, COMM_WORD_BYTES);
    *flags = (comm_flags){0};
}

sifr_status comm_followed_start(const comm_flags *flags, comm_lane lane, comm_worker *worker,
                                int32_t id, sifr_error *error) {
    base_assert(flags->work && (int)lane >= 0 && lane < COMM_LANES && id >= 0 && id < COMM_LINE);
    device_flag *flag = &flags->of[lane][id];
    uint32_t value;
    comm_worker_follow(worker, id, flag, &value);
    return device_wait_flag(flags->dev, flag, value, error);
}

static sifr_status end(comm_worker *worker, int32_t id, sifr_error *error) {
    comm_task task = {0};
    BASE_TRY(comm_worker_wait(worker, id, &task, error));
    task.followed = true;
    comm_worker_count(&task);
    return SIFR_OK;
}

sifr_status comm_followed_reserve(comm_worker *worker, sifr_error *error) {
    int32_t id;
    return comm_worker_followed(worker, true, &id) ? end(worker, id, error) : SIFR_OK;
}

sifr_status comm_followed_catch_up(comm_worker *worker, sifr_error *error) {
    int32_t id;
    while (worker->running && comm_worker_followed(worker, false, &id))
        BASE_TRY(end(worker, id, error));
    return SIFR_OK;
}
