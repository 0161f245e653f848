#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/json.h"
#include "base/text.h"
#include "cli/commands.h"
#include "cli/launch/launch.h"
#include "cli/measure_comm.h"
#include "cli/options.h"
#include "comm/launcher.h"
#include "plan/price/price.h"

enum { START_LIMIT = 300, DEFAULT_MOST = 1 << 28, MACHINE_LIMIT = 1 << 20 };

typedef struct bench_command {
    cli_launch_request request;
    const char *output;
    int64_t most;
    bool json;
} bench_command;

/* The results, on rank 0. */
typedef struct bench_result {
    cli_comm_measure measures[CLI_COMM_MEASURES];
    int count;
    int32_t ranks, ranks_a_host;
    double latency, bandwidth;
    plan_link assumed;
} bench_result;

/* Makes the directories above `path`, like mkdir -p. */
static sifr_status make_parents(const char *path, sifr_error *error) {
    char part[BASE_PATH_LENGTH];
    snprintf(part, sizeof part, "%s", path);
    for (char *c = strchr(part + 1, '/'); c; c = strchr(c + 1, '/')) {
        *c = '\0';
        if (mkdir(part, 0777) != 0 && errno != EEXIST)
            return base_fail_errno(error, errno, "%s: cannot make the directory", part);
        *c = '/';
    }
    return SIFR_OK;
}

static double assumed_seconds(const bench_result *r, const cli_comm_measure *m) {
    return r->assumed.latency_seconds + (double)m->delivered / r->assumed.bytes_per_second;
}

static json_t *measure_json(const bench_result *r, const cli_comm_measure *m) {
    return json_pack(
        "{s:s, s:I, s:I, s:i, s:I, s:f, s:f}", "operation", cli_comm_kind_name(m->kind), "bytes",
        (json_int_t)m->bytes, "delivered_bytes", (json_int_t)m->delivered, "ranks", (int)r->ranks,
        "calls", (json_int_t)m->calls, "seconds", m->seconds, "assumed_s", assumed_seconds(r, m));
}

/* Merges this run's keys into the file, so that one file holds the figures for one host and for
 * several. */
static sifr_status add_results(json_t *machine, const bench_result *r, sifr_error *error) {
    bool several = r->ranks_a_host < r->ranks;
    json_t *measures = json_array();
    for (int i = 0; measures && i < r->count; i++)
        json_array_append_new(measures, measure_json(r, &r->measures[i]));
    int failed = json_object_set_new(machine, "version", json_integer(1)) |
                 json_object_set_new(machine, several ? "network_latency_s" : "host_latency_s",
                                     json_real(r->latency)) |
                 json_object_set_new(machine, several ? "network_bytes_per_s" : "host_bytes_per_s",
                                     json_real(r->bandwidth)) |
                 json_object_set_new(machine, "measurements", measures);
    if (several)
        failed |= json_object_set_new(machine, "ranks_per_host", json_integer(r->ranks_a_host));
    return failed ? base_fail(error, SIFR_NO_MEMORY, "out of memory") : SIFR_OK;
}

static sifr_status store(const char *path, const bench_result *r, json_t **out, sifr_error *error) {
    plan_machine check = {0};
    bool there = access(path, F_OK) == 0;
    if (there) { /* not ours: leave the file as it is */
        BASE_TRY(plan_machine_load(path, &check, error));
        BASE_TRY(base_json_load(path, MACHINE_LIMIT, out, error));
    } else {
        *out = json_object();
        if (!*out) return base_fail(error, SIFR_NO_MEMORY, "out of memory");
        BASE_TRY(make_parents(path, error));
    }
    BASE_TRY(add_results(*out, r, error));
    return base_json_save(*out, path, error);
}

static void print_table(const bench_result *r, const char *path) {
    char bytes[32];
    printf("%d ranks, %d on a host\n", (int)r->ranks, (int)r->ranks_a_host);
    printf("%-8s %10s %12s %10s %12s %9s\n", "", "whole", "time", "GB/s", "assumed", "of it");
    for (int i = 0; i < r->count; i++) {
        const cli_comm_measure *m = &r->measures[i];
        double assumed = assumed_seconds(r, m);
        printf("%-8s %10s %9.1f us %10.2f %9.1f us %8.2fx\n", cli_comm_kind_name(m->kind),
               base_format_bytes((uint64_t)m->bytes, bytes), 1e6 * m->seconds,
               (double)m->bytes / m->seconds / 1e9, 1e6 * assumed, m->seconds / assumed);
    }
    printf("a call takes %.1f us, and a rank gets %.2f GB/s (assumed: %.1f us, %.2f GB/s)\n",
           1e6 * r->latency, r->bandwidth / 1e9, 1e6 * r->assumed.latency_seconds,
           r->assumed.bytes_per_second / 1e9);
    printf("stored: %s\n", path);
}

static sifr_status report(const bench_command *command, bench_result *r, sifr_error *error) {
    char path[BASE_PATH_LENGTH];
    json_t *machine = NULL;
    plan_machine nothing = {0};
    r->assumed = plan_link_of(&nothing, r->ranks > r->ranks_a_host);
    cli_fit_link(r->measures, r->count, &r->latency, &r->bandwidth);
    if (command->output)
        snprintf(path, sizeof path, "%s", command->output);
    else
        BASE_TRY(plan_machine_path(path, error));
    sifr_status status = store(path, r, &machine, error);
    if (status == SIFR_OK && command->json) {
        json_dumpf(machine, stdout, JSON_INDENT(2));
        putchar('\n');
    } else if (status == SIFR_OK) {
        print_table(r, path);
    }
    json_decref(machine);
    return status;
}

static void start_late(void *user, bool last, const char *line) {
    (void)user;
    cli_start_late("bench comm", last, line);
}

static sifr_status measure(const bench_command *command, sifr_error *error) {
    comm_group *group;
    bench_result *result = calloc(1, sizeof *result);
    sifr_log log = cli_log("bench comm");
    if (!result) return base_fail(error, SIFR_NO_MEMORY, "out of memory");
    sifr_status status = comm_open(
        COMM_MPI, &(comm_options){.log = &log, .start = {.limit = START_LIMIT, .late = start_late}},
        &group, error);
    if (status != SIFR_OK) {
        free(result);
        return status;
    }
    result->ranks = comm_size(group);
    result->ranks_a_host = comm_local_size(group);
    status = cli_measure_comm(group, command->most, result->measures, &result->count, error);
    if (status == SIFR_OK && comm_rank(group) == 0) status = report(command, result, error);
    comm_close(group);
    free(result);
    return status;
}

static int run_comm(int argc, char **argv) {
    static const cli_usage usage = {
        .name = "bench comm",
        .summary =
            "Measures collectives between ranks on these machines: gathers, ordered reductions "
            "and\nbroadcasts of 1 KB to 256 MB, beside the times that `sifr plan` assumes. Latency "
            "and\nbandwidth are written to --output, by default sifr/comm.json in the user's "
            "cache, where\n`sifr plan` and `sifr train` look for them.",
        .example = "sifr bench comm --ranks 4\n"
                   "mpirun -n 8 --hostfile hosts sifr bench comm --output cluster.json",
    };
    bench_command command = {.most = DEFAULT_MOST};
    cli_launch_request *request = &command.request;
    const cli_option table[] = {
        {"ranks", CLI_COUNT, "N", "start N ranks under mpirun", &request->ranks,
         &request->ranks_given, false},
        {"hostfile", CLI_TEXT, "FILE",
         "file with the hosts of the ranks: a line HOST slots=N for each", &request->hostfile, NULL,
         false},
        {"include", CLI_TEXT, "HOSTS", "use only these hosts and slots of the file",
         &request->include, NULL, false},
        {"exclude", CLI_TEXT, "HOSTS", "do not use these hosts and slots of the file",
         &request->exclude, NULL, false},
        {"max-bytes", CLI_BYTES, "N", "largest buffer to measure (default: 256MiB)", &command.most,
         NULL, false},
        {"output", CLI_TEXT, "FILE", "file to write the results to", &command.output, NULL, false},
        {"json", CLI_FLAG, NULL, "print the results as JSON", &command.json, NULL, false},
    };
    cli_launch_choice choice;
    int code, ranks;
    sifr_error error = {0};
    if (!cli_parse(&usage, table, sizeof table / sizeof *table, argc, argv, NULL, &code))
        return code;
    if (command.most < 1024 || command.most > (int64_t)DEFAULT_MOST)
        return cli_fail_with(usage.name, SIFR_USAGE, "--max-bytes: must be 1KiB to 256MiB");
    if (cli_launch_choose(request, &choice, &error) != SIFR_OK)
        return cli_fail_once(usage.name, &error);
    ranks = choice.ranks;
    /* argv[-1] is "bench": ranks are started with both words. */
    if (choice.launch) code = cli_launch(argc + 1, argv - 1, &choice);
    bool launched = choice.launch;
    cli_launch_choice_free(&choice);
    if (launched) return code;
    if (ranks < 2)
        return cli_fail_with(usage.name, SIFR_USAGE,
                             "one rank has nobody to exchange with; give --ranks 2 or more, or "
                             "start it under mpirun");
    return measure(&command, &error) == SIFR_OK ? SIFR_OK : cli_fail(usage.name, &error);
}

int cli_bench(int argc, char **argv) {
    static const cli_command commands[] = {
        {"comm", "measure collectives between ranks, for the plan", run_comm},
    };
    return cli_run_command("bench", commands, sizeof commands / sizeof *commands, argc, argv);
}
