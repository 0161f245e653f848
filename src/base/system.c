#include "base/system.h"

#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/lines.h"

/* What of a group's path is above the folder that shows it: a container may see its own group and
 * those below it alone, and is still told the whole path. mountinfo: "36 35 98:0 ROOT MOUNT …"; of
 * several mounts in one place the last counts. */
static size_t above_mount(const char *mount, const char *group) {
    base_lines lines;
    char line[4096], root[1024], place[1024];
    size_t above = 0;
    if (!base_lines_open(&lines, "/proc/self/mountinfo")) return 0;
    while (base_lines_next(&lines, line, sizeof line)) {
        if (sscanf(line, "%*s %*s %*s %1023s %1023s", root, place) != 2) continue;
        if (strcmp(place, mount) != 0) continue;
        size_t length = strlen(root);
        bool within = strncmp(group, root, length) == 0 && strchr("/", group[length]);
        above = within ? length : 0;
    }
    base_lines_close(&lines);
    return above;
}

/* Calls `visit` for the control group and each one above it, from `mount`/`group` up to `mount`. */
static void walk_groups(const char *mount, const char *group,
                        void (*visit)(const char *directory, base_system *out), base_system *out) {
    char directory[1024];
    group += above_mount(mount, group);
    int length = snprintf(directory, sizeof directory, "%s%s", mount, group);
    if (length < 0 || (size_t)length >= sizeof directory) return;
    for (;;) {
        visit(directory, out);
        char *slash = strrchr(directory, '/');
        if (!slash || (size_t)(slash - directory) < strlen(mount)) return;
        *slash = '\0';
    }
}

/* Memory that a control group's processes hold and the kernel cannot reclaim, unlike the page
 * cache: the sum of two of the group's statistics. False if the group does not report them. */
static bool read_held(const char *directory, const char *private, const char *shared,
                      uint64_t *out) {
    base_lines lines;
    char path[1100], line[128], name[64];
    unsigned long long bytes;
    int found = 0;
    snprintf(path, sizeof path, "%s/memory.stat", directory);
    if (!base_lines_open(&lines, path)) return false;
    *out = 0;
    while (found < 2 && base_lines_next(&lines, line, sizeof line)) {
        if (sscanf(line, "%63s %llu", name, &bytes) != 2) continue;
        if (strcmp(name, private) != 0 && strcmp(name, shared) != 0) continue;
        *out += bytes;
        found++;
    }
    base_lines_close(&lines);
    return found == 2;
}

/* Keeps in `left` the least of several figures; 0: no limit so far. Any figure replaces
 * BASE_UNKNOWN. */
static void take_least(uint64_t limit, bool known, uint64_t held, uint64_t *left) {
    uint64_t here = limit > held ? limit - held : 1;
    if (!known) here = BASE_UNKNOWN;
    if (*left == 0 || here < *left) *left = here;
}

static void limit_memory(const char *directory, const char *name, const char *private,
                         const char *shared, base_system *out) {
    char path[1100], line[64];
    snprintf(path, sizeof path, "%s/%s", directory, name);
    if (!base_read_line(path, line, sizeof line) || line[0] < '0' || line[0] > '9') return;
    uint64_t limit = strtoull(line, NULL, 10), held = 0;
    if (limit == 0 || (out->memory && limit >= out->memory)) return; /* "no limit", in version 1 */
    if (out->memory_limit == 0 || limit < out->memory_limit) out->memory_limit = limit;
    bool known = read_held(directory, private, shared, &held);
    take_least(limit, known, held, &out->memory_left);
}

static void limit_cpus(double quota, double period, base_system *out) {
    if (quota <= 0 || period <= 0) return;
    if (out->cpu_quota == 0 || quota / period < out->cpu_quota) out->cpu_quota = quota / period;
}

static void visit_unified(const char *directory, base_system *out) {
    char path[1100], line[64];
    double quota, period;
    limit_memory(directory, "memory.max", "anon", "shmem", out);
    snprintf(path, sizeof path, "%s/cpu.max", directory);
    if (base_read_line(path, line, sizeof line) && sscanf(line, "%lf %lf", &quota, &period) == 2)
        limit_cpus(quota, period, out);
}

static void visit_memory(const char *directory, base_system *out) {
    limit_memory(directory, "memory.limit_in_bytes", "total_rss", "total_shmem", out);
}

static void visit_cpu(const char *directory, base_system *out) {
    char path[1100], quota[64], period[64];
    snprintf(path, sizeof path, "%s/cpu.cfs_quota_us", directory);
    if (!base_read_line(path, quota, sizeof quota)) return;
    snprintf(path, sizeof path, "%s/cpu.cfs_period_us", directory);
    if (base_read_line(path, period, sizeof period))
        limit_cpus(strtod(quota, NULL), strtod(period, NULL), out);
}

/* /proc/self/cgroup: lines "NUMBER:CONTROLLERS:PATH"; no controllers means version 2. */
static void read_groups(base_system *out) {
    base_lines lines;
    char line[1024];
    if (!base_lines_open(&lines, "/proc/self/cgroup")) return;
    while (base_lines_next(&lines, line, sizeof line)) {
        if (!lines.whole) continue;
        char *controllers = strchr(line, ':');
        char *group = controllers ? strchr(controllers + 1, ':') : NULL;
        if (!group) continue;
        *group++ = '\0';
        controllers++;
        if (strcmp(group, "/") == 0) group = ""; /* a container's own group too */
        if (controllers[0] == '\0')
            walk_groups("/sys/fs/cgroup", group, visit_unified, out);
        else if (strstr(controllers, "memory"))
            walk_groups("/sys/fs/cgroup/memory", group, visit_memory, out);
        else if (strcmp(controllers, "cpu") == 0 || strstr(controllers, "cpu,"))
            walk_groups("/sys/fs/cgroup/cpu", group, visit_cpu, out);
    }
    base_lines_close(&lines);
}

static void limit_process(int resource, const char *held_key, base_system *out) {
    struct rlimit limit;
    if (getrlimit(resource, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return;
    uint64_t held = 0;
    bool known = base_read_kilobytes("/proc/self/status", held_key, &held);
    take_least(limit.rlim_cur, known, held, &out->process_left);
}

void base_system_read(base_system *out) {
    cpu_set_t set;
    *out = (base_system){.cpus = 1};
    base_read_field("/proc/cpuinfo", "model name", out->cpu, sizeof out->cpu);
    if (sched_getaffinity(0, sizeof set, &set) == 0) {
        out->cpus = CPU_COUNT(&set);
    } else {
        long online = sysconf(_SC_NPROCESSORS_ONLN); /* more processors than cpu_set_t holds */
        if (online > 1) out->cpus = (int)online;
    }
    base_read_kilobytes("/proc/meminfo", "MemTotal", &out->memory);
    base_read_kilobytes("/proc/meminfo", "MemAvailable", &out->memory_available);
    read_groups(out);
    limit_process(RLIMIT_DATA, "VmData", out);
    limit_process(RLIMIT_AS, "VmSize", out);
}
