/* `sifr doctor`: gathers facts into one JSON object and prints it as JSON or as lines. Its "advice"
 * says what is missing.
 */
#include <hwloc.h>
#include <jansson.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "base/file.h"
#include "base/lines.h"
#include "base/system.h"
#include "base/text.h"
#include "base/topology.h"
#include "cli/commands.h"
#include "cli/doctor_gpu.h"
#include "cli/launch/launch_command.h"
#include "cli/options.h"
#include "cli/system_facts.h"
#include "comm/mpi_library/mpi_library.h"
#include "sifr/version.h"
#include "train/send/curl_library.h"

#define GIB ((uint64_t)1 << 30)

static void put_text(json_t *object, const char *key, const char *text) {
    json_object_set_new(object, key, text ? json_string(text) : json_null());
}

static void put_bytes(json_t *object, const char *key, uint64_t bytes) {
    json_object_set_new(object, key, json_integer((json_int_t)bytes));
}

static void put_bool(json_t *object, const char *key, bool value) {
    json_object_set_new(object, key, json_boolean(value));
}

static void advise(json_t *report, const char *text) {
    json_array_append_new(json_object_get(report, "advice"), json_string(text));
}

/* The bracketed choice in a line such as "always [madvise] never". */
static void read_choice(const char *path, char *out, size_t size) {
    char line[128];
    out[0] = '\0';
    if (!base_read_line(path, line, sizeof line)) return;
    char *begin = strchr(line, '['), *end = begin ? strchr(begin, ']') : NULL;
    if (end) snprintf(out, size, "%.*s", (int)(end - begin - 1), begin + 1);
}

static void examine_machine(json_t *report) {
    base_system system;
    char pages[32];
    json_t *machine = json_object();
    base_system_read(&system);
    put_text(machine, "cpu", system.cpu[0] ? system.cpu : NULL);
    json_object_set_new(machine, "cpus", json_integer(system.cpus));
    hwloc_topology_t topology;
    if (base_topology_load(&topology, NULL) == SIFR_OK) {
        int cores = hwloc_get_nbobjs_by_type(topology, HWLOC_OBJ_CORE);
        int nodes = hwloc_get_nbobjs_by_type(topology, HWLOC_OBJ_NUMANODE);
        json_object_set_new(machine, "cores", json_integer(cores));
        json_object_set_new(machine, "numa_nodes", json_integer(nodes));
        hwloc_topology_destroy(topology);
    }
    if (system.cpu_quota > 0)
        json_object_set_new(machine, "cpu_quota", json_real(system.cpu_quota));
    put_bytes(machine, "memory_bytes", system.memory);
    put_bytes(machine, "memory_available_bytes", system.memory_available);
    if (system.memory_limit) put_bytes(machine, "memory_limit_bytes", system.memory_limit);
    read_choice("/sys/kernel/mm/transparent_hugepage/enabled", pages, sizeof pages);
    put_text(machine, "huge_pages", pages[0] ? pages : NULL);
    if (strcmp(pages, "never") == 0)
        advise(report, "huge pages are off, so page faults will cost time; turn them on: `echo "
                       "madvise | sudo tee /sys/kernel/mm/transparent_hugepage/enabled`");
    if (system.cpu_quota > 0 && system.cpu_quota < system.cpus)
        advise(report, "the control group allows less processor time than there are processors; "
                       "raise its quota, or give sifr fewer threads");
    json_object_set_new(report, "machine", machine);
}

static void examine_instructions(json_t *report) {
    json_t *set = cli_instruction_sets();
    json_object_set_new(report, "instruction_set", set);
    if (!json_is_true(json_object_get(set, "avx2")))
        advise(report, "no AVX2: sifr runs its plain kernels, which are many times slower; use "
                       "another machine for real work");
    else if (!json_is_true(json_object_get(set, "avx512_bf16")))
        advise(report, "no bf16 instructions: bf16 weights are stored in bf16 but computed in "
                       "fp32, which is correct but no faster than fp32");
}

/* The absolute path of a program of $PATH, as the shell would find it. */
static bool find_program(const char *name, char out[PATH_MAX]) {
    const char *path = getenv("PATH");
    for (const char *at = path ? path : ""; *at;) {
        int length = (int)strcspn(at, ":");
        int used = snprintf(out, PATH_MAX, "%.*s/%s", length, at, name);
        if (length > 0 && used < PATH_MAX && base_is_file(out) && access(out, X_OK) == 0)
            return true;
        at += length + (at[length] == ':');
    }
    return false;
}

/* The first line that a program prints within ten seconds, "" for none. */
static void first_line_of(const char *command, char *out, size_t size) {
    char line[PATH_MAX + 128];
    out[0] = '\0';
    snprintf(line, sizeof line, "timeout 10 %s 2>/dev/null", command);
    FILE *pipe = popen(line, "re");
    if (!pipe) return;
    if (fgets(out, (int)size, pipe)) out[strcspn(out, "\n")] = '\0';
    pclose(pipe);
}

/* The MPI that is opened, its launcher, and the program that starts ranks on other hosts. */
static void examine_mpi(json_t *report) {
    json_t *mpi = json_object();
    char text[PATH_MAX + 32], version[160];
    cli_launcher launcher;
    sifr_error error;
    mpi_library library;
    bool opened = mpi_library_open(&library, &error) == SIFR_OK;
    bool found = cli_launcher_find(&launcher, &error) == SIFR_OK;
    put_text(mpi, "opened", opened ? comm_mpi_name(library.kind) : NULL);
    put_text(mpi, "library_path", opened ? library.path : NULL);
    put_text(mpi, "library", opened && library.version[0] ? library.version : NULL);
    put_bool(mpi, "found", found);
    if (found) {
        put_text(mpi, "launcher", launcher.path);
        setenv("SIFR_DOCTOR_LAUNCHER", launcher.path,
               1); /* inside single quotes no character is special */
        first_line_of("\"$SIFR_DOCTOR_LAUNCHER\" --version", version, sizeof version);
        unsetenv("SIFR_DOCTOR_LAUNCHER");
        put_text(mpi, "version", version);
    } else {
        advise(report, error.message);
    }
    put_text(mpi, "ssh", find_program("ssh", text) ? text : NULL);
    json_object_set_new(report, "mpi", mpi);
}

/* What sends runs to MLflow's server; the other sinks need no library. */
static void examine_sending(json_t *report) {
    json_t *sending = json_object();
    char version[160];
    sifr_error error = {0};
    bool found = train_curl_version(version, sizeof version, &error) == SIFR_OK;
    put_text(sending, "libcurl", found ? version : NULL);
    put_text(sending, "why", found ? NULL : error.message);
    json_object_set_new(report, "sending", sending);
}

static void examine_storage(json_t *report) {
    json_t *storage = json_object();
    struct statvfs shm;
    struct rlimit locked;
    uint64_t free_bytes = 0;
    sifr_error error;
    uint64_t shm_bytes = 0;
    if (statvfs("/dev/shm", &shm) == 0) shm_bytes = (uint64_t)shm.f_blocks * shm.f_frsize;
    put_bytes(storage, "shared_memory_bytes", shm_bytes);
    if (base_free_space(".", &free_bytes, &error) == SIFR_OK) {
        put_bytes(storage, "disk_free_bytes", free_bytes);
        if (free_bytes < 10 * GIB)
            advise(report, "less than 10 GiB free on this folder's disk, and a checkpoint takes 14 "
                           "bytes a parameter; free some space, or write elsewhere with --output");
    }
    if (getrlimit(RLIMIT_MEMLOCK, &locked) == 0) {
        if (locked.rlim_cur == RLIM_INFINITY)
            put_text(storage, "locked_memory_bytes", NULL);
        else
            put_bytes(storage, "locked_memory_bytes", (uint64_t)locked.rlim_cur);
    }
    json_object_set_new(report, "storage", storage);
}

static const char *text_of(const json_t *object, const char *key, const char *absent) {
    const char *text = json_string_value(json_object_get(object, key));
    return text && text[0] ? text : absent;
}

static const char *bytes_of(const json_t *object, const char *key, char out[32]) {
    const json_t *value = json_object_get(object, key);
    if (!json_is_integer(value)) return "no limit";
    return base_format_bytes((uint64_t)json_integer_value(value), out);
}

static long long count_of(const json_t *object, const char *key) {
    return (long long)json_integer_value(json_object_get(object, key));
}

static void print_sending(const json_t *sending) {
    const char *version = text_of(sending, "libcurl", NULL);
    if (version)
        printf("MLflow         %s\n", version);
    else
        printf("MLflow         none; needed only for sifr.mlflow: %s\n",
               text_of(sending, "why", ""));
}

static void print_report(const json_t *report) {
    char a[32], b[32], c[32];
    const json_t *machine = json_object_get(report, "machine");
    const json_t *storage = json_object_get(report, "storage");
    const json_t *set = json_object_get(report, "instruction_set");
    const json_t *mpi = json_object_get(report, "mpi");
    const char *key;
    json_t *value;
    size_t i;
    printf("sifr           %s\n", text_of(report, "sifr", ""));
    printf("processor      %s: %lld logical, %lld cores, %lld NUMA node(s)\n",
           text_of(machine, "cpu", "unknown"), count_of(machine, "cpus"),
           count_of(machine, "cores"), count_of(machine, "numa_nodes"));
    if (json_object_get(machine, "cpu_quota"))
        printf("               a control group allows the time of %.1f\n",
               json_real_value(json_object_get(machine, "cpu_quota")));
    printf("instructions  ");
    json_object_foreach((json_t *)(uintptr_t)set, key, value)
        printf(" %s %s%s", key, json_is_true(value) ? "yes" : "no",
               strcmp(key, "avx512_bf16") ? "," : "\n");
    printf("memory         %s, %s available, control group's limit: %s\n",
           bytes_of(machine, "memory_bytes", a), bytes_of(machine, "memory_available_bytes", b),
           json_object_get(machine, "memory_limit_bytes")
               ? bytes_of(machine, "memory_limit_bytes", c)
               : "none");
    printf("huge pages     %s\n", text_of(machine, "huge_pages", "unknown"));
    printf("shared memory  %s in /dev/shm\n", bytes_of(storage, "shared_memory_bytes", a));
    printf("locked memory  %s\n", bytes_of(storage, "locked_memory_bytes", a));
    printf("disk           %s free here\n", bytes_of(storage, "disk_free_bytes", a));
    printf("libraries     ");
    json_object_foreach(json_object_get(report, "libraries"), key, value)
        printf(" %s %s", key, json_string_value(value));
    printf("\nMPI            %s\n",
           text_of(mpi, "library", text_of(mpi, "opened", "none; needed for more than one rank")));
    if (text_of(mpi, "library_path", NULL))
        printf("               opened: %s\n", text_of(mpi, "library_path", ""));
    if (json_is_true(json_object_get(mpi, "found")))
        printf("launcher       %s, %s\n", text_of(mpi, "launcher", ""),
               text_of(mpi, "version", "version unknown"));
    else
        printf("launcher       none; needed for more than one rank\n");
    printf("ssh            %s\n",
           text_of(mpi, "ssh", "none; needed only for ranks on other hosts"));
    print_sending(json_object_get(report, "sending"));
    doctor_print_gpus(json_object_get(report, "gpu"));
    const json_t *advice = json_object_get(report, "advice");
    printf("\n%s\n", json_array_size(advice) ? "What to do:" : "Nothing is missing.");
    json_array_foreach(advice, i, value) printf("- %s\n", json_string_value(value));
}

int cli_doctor(int argc, char **argv) {
    static const cli_usage usage = {
        .name = "doctor",
        .summary = "Reports what this machine has for training, what is missing, and what to do.",
        .example = "sifr doctor --json",
    };
    bool json = false;
    const cli_option options[] = {
        {"json", CLI_FLAG, NULL, "print one JSON object", &json, NULL, false},
    };
    int code;
    if (!cli_parse(&usage, options, 1, argc, argv, NULL, &code)) return code;

    json_t *report = json_object();
    if (!report) return cli_fail_with("doctor", SIFR_NO_MEMORY, "out of memory");
    put_text(report, "sifr", sifr_version());
    json_object_set_new(report, "advice", json_array());
    examine_machine(report);
    examine_instructions(report);
    json_object_set_new(report, "libraries", cli_library_versions());
    examine_mpi(report);
    doctor_examine_gpus(report);
    examine_sending(report);
    examine_storage(report);
    if (json) {
        json_dumpf(report, stdout, JSON_INDENT(2));
        putchar('\n');
    } else {
        print_report(report);
    }
    json_decref(report);
    return SIFR_OK;
}
