#include "comm/followed.h"

#include "base/assert.h"

_Static_assert(COMM_WORD_BYTES == COMM_LANES * COMM_LINE * sizeof(device_word), "as planned");

sifr_status comm_words_take(comm_words *words, device *dev, sifr_error *error) {
    void *block;
    if (!device_is_hidden(dev)) return SIFR_OK;
    BASE_TRY(device_take_host(dev, COMM_WORD_BYTES, &block, error));
    *words = (comm_words){.dev = dev, .of = block};
    words->work = device_can_await(dev, block);
    return SIFR_OK;
}

void comm_words_give(comm_words *words) {
    if (words->of) device_give(words->dev, words->of, COMM_WORD_BYTES);
    *words = (comm_words){0};
}

sifr_status comm_followed_start(const comm_words *words, comm_lane lane, comm_worker *worker,
                                int32_t id, sifr_error *error) {
    base_assert(words->work && (int)lane >= 0 && lane < COMM_LANES && id >= 0 && id < COMM_LINE);
    device_word *word = &words->of[lane][id];
    uint32_t value;
    comm_worker_follow(worker, id, word, &value);
    return device_await(words->dev, word, value, error);
}

static sifr_status end(comm_worker *worker, int32_t id, sifr_error *error) {
    comm_task task = {0};
    BASE_TRY(comm_worker_wait(worker, id, &task, error));
    task.followed = true;
    comm_worker_count(&task);
    return SIFR_OK;
}

sifr_status comm_followed_make_room(comm_worker *worker, sifr_error *error) {
    int32_t id;
    return comm_worker_followed(worker, true, &id) ? end(worker, id, error) : SIFR_OK;
}

sifr_status comm_followed_catch_up(comm_worker *worker, sifr_error *error) {
    int32_t id;
    while (worker->running && comm_worker_followed(worker, false, &id))
        BASE_TRY(end(worker, id, error));
    return SIFR_OK;
}
