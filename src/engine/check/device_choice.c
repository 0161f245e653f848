#include "engine/check/device_choice.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "base/heap.h"
#include "base/text.h"
#include "device/kinds.h"
#include "engine/engine_private.h"

int32_t engine_count_sharers(const engine_gpu *gpus, int32_t ranks, int32_t rank) {
    base_assert(rank >= 0 && rank < ranks);
    int32_t count = 0;
    for (int32_t r = 0; r < ranks; r++) count += strcmp(gpus[r].uuid, gpus[rank].uuid) == 0;
    return count;
}

sifr_status engine_compare_gpus(const engine_gpu *gpus, int32_t ranks, sifr_error *error) {
    for (int32_t r = 1; r < ranks; r++) {
        const engine_gpu *first = &gpus[0], *other = &gpus[r];
        if (other->major == first->major && other->minor == first->minor) continue;
        return base_fail(error, SIFR_USAGE,
                         "rank %d has a GPU of compute capability %d.%d (%s), and rank 0 one of "
                         "%d.%d (%s), whose results have other bits; use GPUs of one kind "
                         "(CUDA_VISIBLE_DEVICES chooses among a host's)",
                         (int)r, (int)other->major, (int)other->minor, other->name,
                         (int)first->major, (int)first->minor, first->name);
    }
    return SIFR_OK;
}

static sifr_status look(sifr_device kind, int32_t local_rank, engine_gpu *out, sifr_error *error) {
    device_found found;
    BASE_TRY(device_choose(kind, local_rank, &found, error));
    snprintf(out->uuid, sizeof out->uuid, "%s", found.gpu.uuid);
    snprintf(out->name, sizeof out->name, "%.*s", (int)sizeof out->name - 1, found.gpu.name);
    out->major = found.gpu.capability_major;
    out->minor = found.gpu.capability_minor;
    return SIFR_OK;
}

/* Every rank has a GPU. */
static sifr_status compare(comm_group *group, const engine_gpu *mine, engine_device_choice *out,
                           sifr_error *error) {
    int32_t ranks = comm_size(group);
    engine_gpu *all;
    sifr_status status = base_alloc((size_t)ranks, sizeof *all, &all, error);
    BASE_TRY(comm_agree_status(group, status, error));
    status = comm_all_gather_control(group, mine, sizeof *mine, all, error);
    if (status == SIFR_OK) status = engine_compare_gpus(all, ranks, error);
    for (int32_t r = 0; status == SIFR_OK && r < ranks; r++) {
        int32_t sharers = engine_count_sharers(all, ranks, r);
        if (sharers > out->most_sharers) out->most_sharers = sharers;
        if (r == comm_rank(group)) out->place.sharers = sharers;
    }
    free(all);
    return status;
}

/* Whether the ranks can all use GPUs. Only SIFR_LOST_RANK and SIFR_NO_MEMORY are no answer. */
static sifr_status find_gpus(sifr_device kind, comm_group *group, engine_device_choice *out,
                             sifr_error *why) {
    engine_gpu mine = {.uuid = ""};
    sifr_status status = look(kind, comm_local_rank(group), &mine, why);
    int64_t found = status == SIFR_OK;
    sifr_error lost;
    if (comm_sum(group, &found, 1, &lost) != SIFR_OK)
        return base_fail(why, lost.status, "%s", lost.message);
    out->idle = found > 0;
    BASE_TRY(comm_agree_status(group, status, why));
    return compare(group, &mine, out, why);
}

/* A program that is built for CPUs says nothing, unless there is a GPU. */
static void keep_why(sifr_device kind, const sifr_error *why, engine_device_choice *out) {
    bool built = device_build_of(kind).version != 0;
    if (!built) out->idle = device_is_there(kind);
    if (built || out->idle) snprintf(out->why, sizeof out->why, "%s", why->message);
}

sifr_status engine_choose_device(const sifr_settings *settings, comm_group *group,
                                 engine_device_choice *out, sifr_error *error) {
    const bool automatic = settings->device == SIFR_DEVICE_AUTO;
    const sifr_device kind = automatic ? SIFR_DEVICE_CUDA : settings->device;
    sifr_error why = {.message = ""};
    *out = (engine_device_choice){.kind = SIFR_DEVICE_CPU, .place.rank = comm_local_rank(group)};
    if (settings->device == SIFR_DEVICE_CPU) return SIFR_OK;
    sifr_status status = find_gpus(kind, group, out, &why);
    if (status == SIFR_OK) {
        out->kind = kind;
        out->idle = false;
        return SIFR_OK;
    }
    bool answer = status == SIFR_FAILED || status == SIFR_USAGE;
    if (!answer) return base_fail(error, status, "%s", why.message);
    if (!automatic)
        return base_fail(error, status, "device %s: %s", device_kind_name(kind), why.message);
    keep_why(kind, &why, out);
    return SIFR_OK;
}

sifr_status engine_choose_device_alone(sifr_device wish, engine_device_choice *out,
                                       sifr_error *error) {
    const sifr_settings settings = {.device = wish};
    comm_group *self;
    BASE_TRY(comm_open_self(&self, error));
    sifr_status status = engine_choose_device(&settings, self, out, error);
    comm_close(self);
    return status;
}

void engine_say_choice(const engine_device_choice *choice, const sifr_log *log) {
    if (choice->why[0])
        base_log(log, choice->idle ? SIFR_LOG_WARNING : SIFR_LOG_INFO,
                 "device auto: the CPU, which is many times slower than a GPU: %s", choice->why);
}

void engine_say_unpinned(int64_t bytes, const sifr_log *log) {
    char text[32];
    if (bytes > 0)
        base_log(log, SIFR_LOG_WARNING,
                 "the system refused to pin %s of host memory: copies between it and the GPU take "
                 "about twice as long, and computing waits for them; raise the limit of locked "
                 "memory (ulimit -l), or free some memory",
                 base_format_bytes((uint64_t)bytes, text));
}

sifr_status engine_open_device(const sifr_settings *settings, comm_group *group, device **out,
                               sifr_error *error) {
    engine_device_choice choice;
    device *dev = NULL;
    BASE_TRY(engine_choose_device(settings, group, &choice, error));
    sifr_status status =
        device_open(choice.kind, &choice.place, settings->threads, settings->isa, &dev, error);
    sifr_status agreed = comm_agree_status(group, status, error);
    if (agreed == SIFR_OK)
        *out = dev;
    else
        device_close(dev);
    return agreed;
}
