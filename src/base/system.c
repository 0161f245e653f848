#include "base/system.h"

#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

bool base_read_line(const char *path, char *out, size_t size) {
    out[0] = '\0';
    FILE *file = fopen(path, "re");
    if (!file) return false;
    bool read = fgets(out, (int)size, file) != NULL;
    fclose(file);
    out[strcspn(out, "\n")] = '\0';
    return read;
}

/* The value behind "KEY :" in a file of such lines; false where there is none. */
static bool read_field(const char *path, const char *key, char *out, size_t size) {
    char line[1024];
    bool found = false;
    FILE *file = fopen(path, "re");
    if (!file) return false;
    while (!found && fgets(line, sizeof line, file)) {
        if (strncmp(line, key, strlen(key)) != 0) continue;
        char *value = strchr(line, ':');
        if (!value) continue;
        value += 1 + strspn(value + 1, " \t");
        value[strcspn(value, "\n")] = '\0';
        snprintf(out, size, "%s", value);
        found = true;
    }
    fclose(file);
    return found;
}

/* A figure that the file has in kilobytes; 0 where it is not there. */
static uint64_t read_kilobytes(const char *path, const char *key) {
    char value[64];
    if (!read_field(path, key, value, sizeof value)) return 0;
    return strtoull(value, NULL, 10) * 1024;
}

/* Calls `visit` for the control group and each one above it, from `mount`/`group` up to `mount`. */
static void walk_groups(const char *mount, const char *group,
                        void (*visit)(const char *directory, base_system *out), base_system *out) {
    char directory[1024];
    int length = snprintf(directory, sizeof directory, "%s%s", mount, group);
    if (length < 0 || (size_t)length >= sizeof directory) return;
    for (;;) {
        visit(directory, out);
        char *slash = strrchr(directory, '/');
        if (!slash || (size_t)(slash - directory) < strlen(mount)) return;
        *slash = '\0';
    }
}

/* What a control group's processes hold for good: the sum of two of its statistics, as the page
 * cache gives way. */
static uint64_t held_memory(const char *directory, const char *private, const char *shared) {
    char path[1100], line[128], name[64];
    unsigned long long bytes, sum = 0;
    snprintf(path, sizeof path, "%s/memory.stat", directory);
    FILE *file = fopen(path, "re");
    if (!file) return 0;
    while (fgets(line, sizeof line, file)) {
        if (sscanf(line, "%63s %llu", name, &bytes) != 2) continue;
        if (strcmp(name, private) == 0 || strcmp(name, shared) == 0) sum += bytes;
    }
    fclose(file);
    return sum;
}

static void limit_memory(const char *directory, const char *name, const char *private,
                         const char *shared, base_system *out) {
    char path[1100], line[64];
    snprintf(path, sizeof path, "%s/%s", directory, name);
    if (!base_read_line(path, line, sizeof line) || line[0] < '0' || line[0] > '9') return;
    uint64_t limit = strtoull(line, NULL, 10);
    if (limit == 0 || (out->memory && limit >= out->memory)) return; /* "no limit", in version 1 */
    if (out->memory_limit == 0 || limit < out->memory_limit) out->memory_limit = limit;
    uint64_t held = held_memory(directory, private, shared), left = limit > held ? limit - held : 1;
    if (out->memory_left == 0 || left < out->memory_left) out->memory_left = left;
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
    char line[1024];
    FILE *file = fopen("/proc/self/cgroup", "re");
    if (!file) return;
    while (fgets(line, sizeof line, file)) {
        line[strcspn(line, "\n")] = '\0';
        char *controllers = strchr(line, ':');
        char *group = controllers ? strchr(controllers + 1, ':') : NULL;
        if (!group) continue;
        *group++ = '\0';
        controllers++;
        if (strcmp(group, "/") == 0) group = ""; /* also what a container sees of its own */
        if (controllers[0] == '\0')
            walk_groups("/sys/fs/cgroup", group, visit_unified, out);
        else if (strstr(controllers, "memory"))
            walk_groups("/sys/fs/cgroup/memory", group, visit_memory, out);
        else if (strcmp(controllers, "cpu") == 0 || strstr(controllers, "cpu,"))
            walk_groups("/sys/fs/cgroup/cpu", group, visit_cpu, out);
    }
    fclose(file);
}

static void limit_process(int resource, const char *held_key, base_system *out) {
    struct rlimit limit;
    if (getrlimit(resource, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return;
    uint64_t held = read_kilobytes("/proc/self/status", held_key);
    uint64_t left = limit.rlim_cur > held ? limit.rlim_cur - held : 1;
    if (out->process_left == 0 || left < out->process_left) out->process_left = left;
}

void base_system_read(base_system *out) {
    cpu_set_t set;
    *out = (base_system){.cpus = 1};
    read_field("/proc/cpuinfo", "model name", out->cpu, sizeof out->cpu);
    if (sched_getaffinity(0, sizeof set, &set) == 0) {
        out->cpus = CPU_COUNT(&set);
    } else {
        long online = sysconf(_SC_NPROCESSORS_ONLN); /* more processors than cpu_set_t holds */
        if (online > 1) out->cpus = (int)online;
    }
    out->memory = read_kilobytes("/proc/meminfo", "MemTotal");
    out->memory_available = read_kilobytes("/proc/meminfo", "MemAvailable");
    read_groups(out);
    limit_process(RLIMIT_DATA, "VmData", out);
    limit_process(RLIMIT_AS, "VmSize", out);
}
