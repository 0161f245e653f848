#include "train/prepare/share_cores.h"

#include "comm/cores.h"
#include "comm/launcher.h"

static void say_cores(const comm_cores *cores, const train_host *host) {
    if (cores->sharers == cores->here)
        train_say(host, "cores: %d rank%s of this host share%s %d", cores->here,
                  cores->here == 1 ? "" : "s", cores->here == 1 ? "s" : "", cores->cores);
    else if (cores->sharers == 1)
        train_say(host, "cores: the first of this host's %d ranks has %d of its own", cores->here,
                  cores->cores);
    else
        train_say(host, "cores: %d of this host's %d ranks share %d", cores->sharers, cores->here,
                  cores->cores);
    if (cores->idle > 0)
        train_say(host,
                  "cores: %d of this host stay idle because the launcher bound the ranks to "
                  "others; `%s` uses all",
                  cores->idle,
                  comm_started_by_srun() ? "srun --cpu-bind=none" : "mpirun --bind-to none");
}

sifr_status train_share_cores(comm_group *group, train_host *host, sifr_error *error) {
    comm_cores cores;
    BASE_TRY(comm_divide_cores(group, &cores, error));
    comm_settle(&cores);
    host->threads = cores.threads;
    host->ranks_per_node = cores.per_node;
    host->ranks_per_switch = cores.per_switch;
    if (comm_size(group) > 1 && comm_rank(group) == 0) say_cores(&cores, host);
    return SIFR_OK;
}
