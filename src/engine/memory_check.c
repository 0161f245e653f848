/* Whether the plan fits, said before any of it is taken. */
#include <stdio.h>

#include "base/system.h"
#include "base/text.h"
#include "engine/engine.h"

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

static uint64_t room_of(const base_system *system) {
    bool limited = system->memory_limit && (system->memory_available == 0 ||
                                            system->memory_limit < system->memory_available);
    return limited ? system->memory_limit : system->memory_available;
}

uint64_t engine_memory_room(void) {
    base_system system;
    base_system_read(&system);
    return room_of(&system);
}

sifr_status engine_check_memory(const plan_schedule *schedule, sifr_error *error) {
    base_system system;
    char need[32], have[32], detail[256] = "";
    base_system_read(&system);
    uint64_t room = room_of(&system);
    if (room == 0 || (uint64_t)schedule->total_bytes <= room) return SIFR_OK;
    size_t used = 0;
    for (int c = 0; c < PLAN_CLASSES; c++) {
        char bytes[32];
        if (schedule->peak_bytes[c] < schedule->total_bytes / 20) continue;
        int put = snprintf(detail + used, sizeof detail - used, "%s%s %s", used ? ", " : "",
                           plan_class_name((plan_class)c),
                           base_format_bytes((uint64_t)schedule->peak_bytes[c], bytes));
        if (put < 0 || (size_t)put >= sizeof detail - used) break;
        used += (size_t)put;
    }
    return base_fail(error, SIFR_NO_MEMORY, "memory: the run takes %s (%s), and %s %s; %s",
                     base_format_bytes((uint64_t)schedule->total_bytes, need), detail,
                     base_format_bytes(room, have),
                     room == system.memory_limit ? "is what the control group allows"
                                                 : "are available",
                     advice(schedule->settings.mode));
}
