#include "cli/launch/launch_choice.h"

#include <stdlib.h>
#include <string.h>

#include "cli/launch/hostfile.h"
#include "cli/launch/launch_command.h"
#include "comm/launcher.h"

size_t cli_launch_options(cli_launch_request *request, cli_option *options) {
    options[0] = (cli_option){.name = "ranks",
                              .kind = CLI_COUNT,
                              .argument = "N",
                              .help = "start N ranks, on this machine or on the hostfile's first N "
                                      "slots",
                              .value = &request->ranks,
                              .given = &request->ranks_given};
    options[1] = (cli_option){.name = "hostfile",
                              .kind = CLI_TEXT,
                              .argument = "FILE",
                              .help = "start ranks on other hosts: lines `HOST slots=N`",
                              .value = &request->hostfile};
    options[2] = (cli_option){.name = "include",
                              .kind = CLI_TEXT,
                              .argument = "HOSTS",
                              .help = "of the hostfile only these: HOST@HOST:0,2 (slots by number)",
                              .value = &request->include};
    options[3] = (cli_option){.name = "exclude",
                              .kind = CLI_TEXT,
                              .argument = "HOSTS",
                              .help = "of the hostfile all but these, written likewise",
                              .value = &request->exclude};
    return CLI_LAUNCH_OPTIONS;
}

static bool names_hosts(const cli_launch_request *request) {
    return request->hostfile || request->include || request->exclude;
}

static sifr_status choose_hosts(const cli_launch_request *request, cli_launch_choice *out,
                                cli_hosts *hosts, sifr_error *error) {
    if (!request->hostfile)
        return base_fail(error, SIFR_USAGE,
                         "--include and --exclude choose from the hosts of a --hostfile: give one");
    BASE_TRY(cli_hosts_read(request->hostfile, hosts, error));
    BASE_TRY(cli_hosts_filter(hosts, request->include, request->exclude, error));
    int32_t slots = cli_hosts_slots(hosts);
    if (request->ranks_given && request->ranks > slots)
        return base_fail(error, SIFR_USAGE, "--ranks: %lld, but %s has %d slot%s%s",
                         (long long)request->ranks, request->hostfile, (int)slots,
                         slots == 1 ? "" : "s",
                         request->include || request->exclude ? " left" : "");
    if (!request->ranks_given) out->ranks = slots;
    cli_hosts_keep(hosts, out->ranks);
    return cli_hosts_are_here(hosts) ? SIFR_OK : cli_hosts_list(hosts, &out->hosts, error);
}

static sifr_status refuse_foreign(sifr_error *error) {
    int ranks;
    const char *foreign = comm_foreign_launcher(&ranks);
    if (!foreign || ranks < 2) return SIFR_OK;
    return base_fail(error, SIFR_USAGE,
                     "started by %s, which is not an MPI launcher, as one of %d ranks; start it as "
                     "`mpirun -n %d sifr train ...`, with `%s`, or once with --ranks %d%s",
                     foreign, ranks, ranks, comm_srun(), ranks,
                     strncmp(foreign, "srun", 4) == 0
                         ? "; unset SLURM_PROCID and SLURM_STEP_ID if nothing started ranks"
                         : "; unset RANK, LOCAL_RANK and WORLD_SIZE if nothing started ranks");
}

/* In a process that a launcher started; sifr's own gives the same options again. */
static sifr_status check_launched(const cli_launch_request *request, int ranks, sifr_error *error) {
    if (getenv(CLI_LAUNCHED)) return SIFR_OK;
    if (names_hosts(request))
        return base_fail(error, SIFR_USAGE,
                         "--hostfile, --include and --exclude start ranks, and this is one of %d "
                         "that a launcher started: give the hosts to the launcher",
                         ranks);
    if (request->ranks_given && request->ranks != ranks && ranks == 1)
        return base_fail(error, SIFR_USAGE,
                         "--ranks %lld: a launcher (mpirun, srun) started this process as its only "
                         "rank; have it start %lld, or run sifr without it",
                         (long long)request->ranks, (long long)request->ranks);
    if (request->ranks_given && request->ranks != ranks)
        return base_fail(
            error, SIFR_USAGE,
            "--ranks %lld: started as one of %d ranks already (%s says so; unset it if "
            "it is left over); leave --ranks out",
            (long long)request->ranks, ranks, comm_launcher_variable());
    return SIFR_OK;
}

sifr_status cli_launch_choose(const cli_launch_request *request, cli_launch_choice *out,
                              sifr_error *error) {
    cli_hosts hosts = {0};
    *out = (cli_launch_choice){.ranks = 1};
    if (comm_under_launcher(&out->ranks)) return check_launched(request, out->ranks, error);
    BASE_TRY(refuse_foreign(error));
    if (request->ranks_given && (request->ranks < 1 || request->ranks > CLI_RANK_LIMIT))
        return base_fail(error, SIFR_USAGE, "--ranks: %lld is not in 1 to %d",
                         (long long)request->ranks, (int)CLI_RANK_LIMIT);
    if (request->ranks_given) out->ranks = (int)request->ranks;
    sifr_status status = names_hosts(request) ? choose_hosts(request, out, &hosts, error) : SIFR_OK;
    cli_hosts_free(&hosts);
    out->launch = out->ranks > 1 || out->hosts;
    return status;
}

void cli_launch_choice_free(cli_launch_choice *choice) {
    free(choice->hosts);
    *choice = (cli_launch_choice){0};
}
