#include "comm/siblings.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "comm/launcher.h"

enum { RANKS = 4096, NAMED = 8, BYTES = 1 << 17 };

/* The value in a process's environment; "" where there is none. */
static const char *value_in(const char *environment, size_t length, const char *name) {
    size_t size = strlen(name);
    for (const char *at = environment; at < environment + length; at += strlen(at) + 1)
        if (strncmp(at, name, size) == 0 && at[size] == '=') return at + size + 1;
    return "";
}

static bool same_value(const char *environment, size_t length, const char *name) {
    const char *own = getenv(name);
    return own && *own && strcmp(own, value_in(environment, length, name)) == 0;
}

/* The process's file, cut at `capacity`; the bytes read, 0 where this user may not. */
static size_t read_file(pid_t process, const char *name, char *out, size_t capacity) {
    char path[64];
    size_t used = 0;
    ssize_t count = 0;
    snprintf(path, sizeof path, "/proc/%d/%s", (int)process, name);
    int file = open(path, O_RDONLY | O_CLOEXEC);
    if (file < 0) return 0;
    while (used + 1 < capacity && (count = read(file, out + used, capacity - 1 - used)) > 0)
        used += (size_t)count;
    close(file);
    out[used] = '\0';
    return used;
}

/* Behind the name, which may hold any: "17 (a) b) T 1 …". */
static const char *state_of(pid_t process, char *text, size_t capacity) {
    const char *end = read_file(process, "stat", text, capacity) ? strrchr(text, ')') : NULL;
    return end && end[1] == ' ' ? end + 2 : NULL;
}

/* What started the session of a process; 0: it cannot be seen. */
static long launcher_of(pid_t process) {
    char text[512];
    pid_t leader = getsid(process);
    const char *state = leader > 0 ? state_of(leader, text, sizeof text) : NULL;
    return state && state[1] == ' ' ? strtol(state + 2, NULL, 10) : 0;
}

/* PMIx numbers its jobs, Slurm its steps; MPICH's launcher is the parent of its ranks' sessions. */
static bool is_sibling(const char *environment, size_t length, pid_t process) {
    if (getenv("PMIX_NAMESPACE")) return same_value(environment, length, "PMIX_NAMESPACE");
    if (getenv("SLURM_STEP_ID") && getenv("SLURM_PROCID"))
        return same_value(environment, length, "SLURM_JOB_ID") &&
               same_value(environment, length, "SLURM_STEP_ID");
    long launcher = launcher_of(process);
    return launcher > 0 && launcher == launcher_of(0);
}

static int rank_in(const char *environment, size_t length) {
    static const char *const names[] = {"OMPI_COMM_WORLD_RANK", "PMI_RANK", "MV2_COMM_WORLD_RANK",
                                        "PMIX_RANK", "SLURM_PROCID"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        const char *text = value_in(environment, length, names[i]);
        if (isdigit((unsigned char)*text)) return atoi(text);
    }
    return -1;
}

static bool is_stopped(pid_t process) {
    char text[512];
    const char *state = state_of(process, text, sizeof text);
    return state && (*state == 'T' || *state == 't');
}

typedef struct siblings {
    char environment[BYTES];
    uint64_t there[RANKS / 64], stopped[RANKS / 64];
    int named;
    int ranks[NAMED];
    pid_t processes[NAMED];
} siblings;

static void see(siblings *s, pid_t process) {
    size_t length = read_file(process, "environ", s->environment, sizeof s->environment);
    if (!length || !is_sibling(s->environment, length, process)) return;
    int rank = rank_in(s->environment, length);
    if (rank < 0 || rank >= RANKS) return;
    uint64_t bit = (uint64_t)1 << rank % 64;
    s->there[rank / 64] |= bit;
    if (!is_stopped(process) || s->stopped[rank / 64] & bit) return;
    s->stopped[rank / 64] |= bit;
    if (s->named == NAMED) return;
    s->ranks[s->named] = rank;
    s->processes[s->named++] = process;
}

static int count_of(const uint64_t *set) {
    int count = 0;
    for (int i = 0; i < RANKS / 64; i++) count += __builtin_popcountll(set[i]);
    return count;
}

/* The lowest rank that is there and runs; -1: none. */
static int lowest(const siblings *s) {
    for (int i = 0; i < RANKS; i++)
        if (s->there[i / 64] >> i % 64 & 1 && !(s->stopped[i / 64] >> i % 64 & 1)) return i;
    return -1;
}

static void describe(const siblings *s, char *out, size_t capacity) {
    int here = count_of(s->there), stopped = count_of(s->stopped), ranks = 1;
    int local = comm_launcher_local_ranks();
    size_t used = 0;
    comm_under_launcher(&ranks);
    if (!local && ranks <= here) local = ranks;
    out[0] = '\0';
    for (int i = 0; i < s->named && used < capacity; i++)
        used += (size_t)snprintf(out + used, capacity - used, "%srank %d (process %d) is stopped",
                                 i ? ", " : "", s->ranks[i], (int)s->processes[i]);
    if (stopped > s->named && used < capacity)
        used += (size_t)snprintf(out + used, capacity - used, " and %d more", stopped - s->named);
    if (local > here && used < capacity)
        used += (size_t)snprintf(out + used, capacity - used,
                                 "%s%d of this host's %d ranks have not begun or have ended",
                                 used ? "; " : "", local - here, local);
    if (used) return;
    if (ranks > here)
        snprintf(out, capacity,
                 "all %d of this host run, so the others have not begun, are stopped or cannot "
                 "be reached",
                 here);
    else
        snprintf(out, capacity, "all of them run, so MPI's own start hangs");
}

/* --- by any launcher --- */

/* In clock ticks after the machine's start; 0: it cannot be seen. */
static long long start_of(pid_t process) {
    enum { FIELDS = 19 }; /* between the state and it */
    char text[1024];
    const char *at = state_of(process, text, sizeof text);
    for (int i = 0; at && i < FIELDS; i++) {
        at = strchr(at, ' ');
        if (at) at++;
    }
    return at ? strtoll(at, NULL, 10) : 0;
}

/* What a link in /proc leads to is the same as for this process. */
static bool same_link(pid_t process, const char *name) {
    char path[64], self[64], own[PATH_MAX], other[PATH_MAX];
    snprintf(path, sizeof path, "/proc/%d/%s", (int)process, name);
    snprintf(self, sizeof self, "/proc/self/%s", name);
    ssize_t a = readlink(self, own, sizeof own), b = readlink(path, other, sizeof other);
    return a > 0 && a == b && memcmp(own, other, (size_t)a) == 0;
}

/* Another job may start on this host at the same time, and its ranks speak for themselves alone. */
static bool is_of_own_job(const char *environment, size_t length) {
    static const char *const names[] = {"PMIX_NAMESPACE",       "SLURM_JOB_ID", "SLURM_STEP_ID",
                                        "OMPI_COMM_WORLD_SIZE", "PMI_SIZE",     "WORLD_SIZE",
                                        "MASTER_ADDR",          "MASTER_PORT"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        const char *own = getenv(names[i]);
        if (strcmp(own ? own : "", value_in(environment, length, names[i])) != 0) return false;
    }
    return true;
}

static bool is_lower(pid_t process, char *environment, size_t capacity) {
    long long apart = start_of(process) - start_of(getpid()), most = 2 * sysconf(_SC_CLK_TCK);
    if (apart < -most || apart > most) return false;
    if (!same_link(process, "exe") || !same_link(process, "cwd")) return false;
    size_t length = read_file(process, "environ", environment, capacity);
    if (!length || !is_of_own_job(environment, length)) return false;
    int rank = rank_in(environment, length);
    const char *other = value_in(environment, length, "RANK");
    if (rank < 0 && isdigit((unsigned char)*other)) rank = atoi(other);
    return rank >= 0 && rank < comm_launcher_rank();
}

bool comm_siblings_lower(void) {
    char *environment = malloc(BYTES);
    DIR *folder = environment ? opendir("/proc") : NULL;
    struct dirent *entry;
    bool found = false;
    while (folder && !found && (entry = readdir(folder)))
        found = isdigit((unsigned char)entry->d_name[0]) &&
                is_lower((pid_t)atoi(entry->d_name), environment, BYTES);
    if (folder) closedir(folder);
    free(environment);
    return found;
}

bool comm_siblings_describe(char *out, size_t capacity) {
    siblings *s = calloc(1, sizeof *s);
    DIR *folder = s ? opendir("/proc") : NULL;
    struct dirent *entry;
    snprintf(out, capacity, "which ranks are missing cannot be seen here");
    bool speaks = true;
    if (folder) {
        while ((entry = readdir(folder)))
            if (isdigit((unsigned char)entry->d_name[0])) see(s, (pid_t)atoi(entry->d_name));
        closedir(folder);
        if (count_of(s->there)) describe(s, out, capacity);
        int first = lowest(s);
        speaks = first < 0 || first == comm_launcher_rank();
    }
    free(s);
    return speaks;
}
