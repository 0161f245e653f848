/* Checks that the plan fits before any memory is taken. */
#include <stdio.h>
#include <string.h>

#include "base/assert.h"
#include "base/system.h"
#include "base/text.h"
#include "engine/engine_private.h"
#include "plan/queries.h"

static const char *advice(plan_mode mode) {
    switch (mode) {
    case PLAN_TRAIN:
        return "try a smaller micro batch or seq-length, or recompute";
    case PLAN_GENERATE:
        return "ask for fewer tokens";
    default:
        return "try a smaller batch or seq-length";
    }
}

sifr_status engine_advise(plan_mode mode, engine_lack lack, sifr_status status, sifr_error *error) {
    if (status != SIFR_NO_MEMORY || !error || lack == ENGINE_LACK_DISK) return status;
    size_t used = strlen(error->message);
    snprintf(error->message + used, sizeof error->message - used, "; %s", advice(mode));
    return status;
}

/* A limit of unknown remainder refuses nothing. */
static bool is_known(uint64_t left) {
    return left != 0 && left != BASE_UNKNOWN;
}

static bool is_limited(const base_system *system) {
    return is_known(system->memory_left) &&
           (system->memory_available == 0 || system->memory_left < system->memory_available);
}

static uint64_t capacity_of(const base_system *system) {
    return is_limited(system) ? system->memory_left : system->memory_available;
}

uint64_t engine_memory_capacity(void) {
    base_system system;
    base_system_read(&system);
    return capacity_of(&system);
}

static bool is_limited_alone(const base_system *system, int32_t ranks) {
    uint64_t capacity = capacity_of(system);
    return is_known(system->process_left) &&
           (capacity == 0 || system->process_left < capacity / (uint64_t)ranks);
}

uint64_t engine_rank_capacity(int32_t ranks) {
    base_assert(ranks >= 1);
    base_system system;
    base_system_read(&system);
    return is_limited_alone(&system, ranks) ? system.process_left
                                            : capacity_of(&system) / (uint64_t)ranks;
}

/* Names the classes that make up most of `whole` bytes. */
static void describe_classes(const int64_t classes[PLAN_CLASSES], int64_t whole, char *out,
                             size_t size) {
    size_t used = 0;
    out[0] = '\0';
    for (int c = 0; c < PLAN_CLASSES; c++) {
        char bytes[32];
        if (classes[c] < whole / 20 || !classes[c]) continue;
        int put = snprintf(out + used, size - used, "%s%s %s", used ? ", " : "",
                           plan_class_name((plan_class)c),
                           base_format_bytes((uint64_t)classes[c], bytes));
        if (put < 0 || (size_t)put >= size - used) break;
        used += (size_t)put;
    }
}

/* A device with memory of its own. */
static sifr_status check_capacity(const plan_schedule *schedule, int64_t capacity,
                                  sifr_error *error) {
    char need[32], have[32], detail[256];
    if (schedule->total_bytes <= capacity) return SIFR_OK;
    describe_classes(schedule->peak_bytes, schedule->total_bytes, detail, sizeof detail);
    return base_fail(error, SIFR_NO_MEMORY,
                     "memory: a rank takes %s of the GPU (%s), and %s are free for it; nvidia-smi "
                     "lists the processes that hold the rest",
                     base_format_bytes((uint64_t)schedule->total_bytes, need), detail,
                     base_format_bytes((uint64_t)capacity, have));
}

sifr_status engine_check_memory(const plan_schedule *schedule, int32_t ranks, sifr_error *error) {
    base_system system;
    char need[32], all[32], have[32], detail[256], who[96];
    base_system_read(&system);
    bool alone = is_limited_alone(&system, ranks);
    bool hidden = device_is_hidden(schedule->dev);
    const char *where = hidden ? " of host memory" : "";
    int64_t offloaded[PLAN_CLASSES];
    uint64_t capacity = alone ? system.process_left : capacity_of(&system),
             bytes = (uint64_t)(plan_host_bytes(schedule) + (hidden ? 0 : schedule->total_bytes));
    if (hidden) BASE_TRY(check_capacity(schedule, device_capacity(schedule->dev), error));
    if (capacity == 0 || bytes <= capacity / (uint64_t)(alone ? 1 : ranks)) return SIFR_OK;
    if (hidden) plan_offloaded_classes(schedule, PLAN_HOST, offloaded);
    describe_classes(hidden ? offloaded : schedule->peak_bytes,
                     hidden ? (int64_t)bytes : schedule->total_bytes, detail, sizeof detail);
    base_format_bytes(bytes, need);
    if (alone || ranks == 1)
        snprintf(who, sizeof who, "%s takes %s%s", ranks == 1 ? "the run" : "a rank", need, where);
    else
        snprintf(who, sizeof who, "%d ranks of this host take %s%s each, %s together", (int)ranks,
                 need, where, base_format_bytes(bytes * (uint64_t)ranks, all));
    return base_fail(error, SIFR_NO_MEMORY, "memory: %s (%s), and %s %s%s", who, detail,
                     base_format_bytes(capacity, have),
                     alone                 ? "is what ulimit leaves a process (-d, -v)"
                     : is_limited(&system) ? "is what the control group leaves"
                                           : "are available",
                     hidden ? "; \"nvme\" in place of \"cpu\" takes a disk for it" : "");
}
