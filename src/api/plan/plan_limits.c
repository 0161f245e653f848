#include "api/plan/plan_limits.h"

#include <stdio.h>

#include "base/checked.h"
#include "base/system.h"
#include "base/text.h"
#include "engine/handle.h"

/* A rank's share of a host, less the memory of the program itself. */
static int64_t share_of(const api_plan_limits *limits, int64_t host) {
    return host / limits->ranks_here - limits->baseline;
}

static void take_given(api_plan_limits *limits) {
    char each[32], host[32], baseline[32];
    int64_t capacity = INT64_MAX;
    base_format_bytes((uint64_t)limits->device_bytes, each);
    base_format_bytes((uint64_t)limits->host_bytes, host);
    if (limits->device_bytes > 0) capacity = limits->device_bytes - limits->baseline;
    bool by_host = limits->host_bytes > 0 && share_of(limits, limits->host_bytes) < capacity;
    if (by_host) capacity = share_of(limits, limits->host_bytes);
    limits->room_bytes = base_max_i64(capacity, 1);
    base_format_bytes((uint64_t)limits->baseline, baseline);
    if (by_host && limits->ranks_here > 1)
        snprintf(limits->text, sizeof limits->text,
                 "%lld ranks share the %s of a host, and the program itself takes %s in each",
                 (long long)limits->ranks_here, host, baseline);
    else
        snprintf(limits->text, sizeof limits->text, "%s, less %s that the program itself takes",
                 by_host ? host : each, baseline);
}

/* This machine's memory; this process has already taken its own share of it. */
static void take_here(api_plan_limits *limits) {
    limits->is_shared = true;
    int64_t left = (int64_t)engine_memory_capacity();
    base_system system;
    char text[32];
    base_system_read(&system);
    int64_t own = system.process_left == BASE_UNKNOWN ? 0 : (int64_t)system.process_left;
    limits->room_bytes = INT64_MAX;
    snprintf(limits->text, sizeof limits->text, "the memory available to a rank is not known");
    if (left > 0) limits->room_bytes = base_max_i64(share_of(limits, left + limits->taken), 1);
    base_format_bytes((uint64_t)left, text);
    if (own > 0 && own < limits->room_bytes) {
        limits->room_bytes = own;
        snprintf(limits->text, sizeof limits->text, "what ulimit leaves a process (-d, -v)");
        return;
    }
    if (left == 0) return;
    if (limits->ranks_here > 1)
        snprintf(limits->text, sizeof limits->text, "%lld ranks share the %s available here",
                 (long long)limits->ranks_here, text);
    else
        snprintf(limits->text, sizeof limits->text, "the memory available on this machine");
}

static void describe_capacity(char *out, size_t size, const char *name, int64_t bytes) {
    char text[32];
    if (bytes == 0 || bytes == INT64_MAX)
        snprintf(out, size, "of the %s's it is not known", name);
    else
        snprintf(out, size, "%s of the %s's", base_format_bytes((uint64_t)bytes, text), name);
}

/* Two memories. */
static void take_separate(api_plan_limits *limits, plan_machine *machine) {
    char own[64], host[64];
    if (limits->device_bytes > 0) machine->room_bytes = limits->device_bytes;
    if (limits->host_bytes > 0)
        machine->host_room_bytes = base_max_i64(share_of(limits, limits->host_bytes), 1);
    limits->room_bytes = machine->room_bytes > 0 ? machine->room_bytes : INT64_MAX;
    limits->host_room_bytes = machine->host_room_bytes;
    describe_capacity(own, sizeof own, "device", limits->room_bytes);
    describe_capacity(host, sizeof host, "host", limits->host_room_bytes);
    snprintf(limits->text, sizeof limits->text, "%s, %s", own, host);
}

void api_plan_limits_find(api_plan_limits *limits, int64_t world_size, plan_machine *machine) {
    int64_t most = machine->ranks_per_host;
    limits->ranks_here = most > 0 && world_size > most ? most : world_size;
    if (machine->separate) {
        take_separate(limits, machine);
        return;
    }
    if (limits->device_bytes > 0 || limits->host_bytes > 0) {
        take_given(limits);
    } else if (machine->room_bytes > 0) {
        limits->room_bytes = machine->room_bytes;
        snprintf(limits->text, sizeof limits->text, "from the machine's description");
    } else {
        take_here(limits);
        if (limits->ranks_here == 1) return; /* a real run's own check gives the best message */
    }
    machine->room_bytes = limits->room_bytes;
}
