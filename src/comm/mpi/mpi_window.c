/* Windows: memory of a rank that the other ranks of its host have mapped. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/heap.h"
#include "comm/mpi/mpi_group.h"
#include "comm/mpi/mpi_ways.h"

enum { HUGE = 1 << 21 }; /* a mapping with this alignment can use its owner's huge pages */

/* What a rank tells the others about its window. */
typedef struct window_notice {
    comm_file file;
    device_share share; /* of hidden memory */
    bool shared;
    int64_t bytes;
} window_notice;

/* What came of it on a rank. */
typedef struct window_verdict {
    bool good;
    char why[250]; /* it is not */
} window_verdict;

static sifr_status map_file(int file, void **out, int64_t *bytes, sifr_error *error) {
    struct stat status;
    if (fstat(file, &status) != 0) return base_fail_errno(error, errno, "shared memory");
    size_t size = (size_t)status.st_size;
    char *reserved =
        mmap(NULL, size + HUGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (reserved == MAP_FAILED) return base_fail_errno(error, errno, "room for shared memory");
    size_t before = (HUGE - (uintptr_t)reserved % HUGE) % HUGE;
    if (before) munmap(reserved, before);
    munmap(reserved + before + size, HUGE - before);
    void *block = mmap(reserved + before, size, PROT_READ, MAP_SHARED | MAP_FIXED, file, 0);
    if (block == MAP_FAILED) {
        munmap(reserved + before, size);
        return base_fail_errno(error, errno, "mapping shared memory");
    }
    *out = block;
    *bytes = (int64_t)size;
    return SIFR_OK;
}

static void unmap(mpi_group *g, comm_window *window) {
    const comm_host *host = &g->process->host;
    for (int32_t s = 0; s < host->size; s++) {
        if (s != host->mine && window->seen[s]) {
            if (g->base.dev)
                device_close_shared(g->base.dev, window->seen[s], window->mapped[s]);
            else
                munmap(window->seen[s], (size_t)window->mapped[s]);
        }
        window->seen[s] = NULL;
    }
    window->block = NULL;
}

static sifr_status map_window(mpi_group *g, comm_window *window, const window_notice *notices,
                              sifr_error *error) {
    const mpi_process *p = g->process;
    for (int32_t s = 0; s < p->host.size; s++) {
        const window_notice *notice = &notices[p->rank_of[s]];
        int file;
        void *block;
        if (s == p->host.mine) continue;
        if (g->base.dev && notice->shared) {
            window->mapped[s] = notice->bytes;
            BASE_TRY(device_open_shared(g->base.dev, &notice->share, notice->bytes, &block, error));
            window->seen[s] = block;
            continue;
        }
        if (notice->file.file < 0)
            return base_fail(error, SIFR_FAILED, "rank %d has none", (int)p->rank_of[s]);
        BASE_TRY(comm_host_open_file(&notice->file, O_RDONLY, &file, error));
        sifr_status status = map_file(file, &block, &window->mapped[s], error);
        close(file);
        BASE_TRY(status);
        window->seen[s] = block;
    }
    return SIFR_OK;
}

static comm_window *find_free(mpi_process *p) {
    for (int i = 0; i < COMM_WINDOWS; i++)
        if (!p->windows[i].block) return &p->windows[i];
    return NULL;
}

/* Other groups read in windows that the group of all ranks opens, also where this one does not. */
static bool may_open(const mpi_group *g) {
    return g->base.dev ? g->process->host.seats != NULL : g->shares;
}

bool comm_mpi_is_apart(const comm_group *group) {
    return ((const mpi_group *)group)->process->apart;
}

static window_verdict judge(const mpi_group *g, const window_notice *mine, bool mapped,
                            const sifr_error *why) {
    bool given = mine->shared || !g->base.dev || g->process->host.size == 1;
    window_verdict verdict = {.good = mapped && given};
    if (!verdict.good) snprintf(verdict.why, sizeof verdict.why, "%.249s", why->message);
    return verdict;
}

/* All ranks find the same one. A rank that could not share its own block says why; those that
 * missed it do not know. -1: all are good. */
static int32_t find_failed(const mpi_group *g, const window_notice *notices,
                           const window_verdict *verdicts) {
    int32_t found = -1;
    for (int32_t r = g->base.size - 1; r >= 0; r--)
        if (!verdicts[r].good && (found < 0 || !notices[r].shared || notices[found].shared))
            found = r;
    return found;
}

/* What GPUs of this host cannot share goes through host memory, what CPUs cannot by messages. */
static sifr_status go_around(mpi_group *g, int32_t failed, const char *why, sifr_error *error) {
    char what[320];
    snprintf(what, sizeof what, "rank %d cannot share memory with its neighbours (%s)", (int)failed,
             why[0] ? why : "no reason is known");
    if (g->base.dev) {
        g->process->apart = true;
        return comm_mpi_take_stage(&g->base, what, error);
    }
    if (failed == g->base.rank) /* it logs it */
        base_log(g->process->log, SIFR_LOG_WARNING,
                 "rank %d cannot read the memory of its neighbours (%s); bytes go through MPI, "
                 "which is slower",
                 (int)failed, why);
    return SIFR_OK;
}

sifr_status comm_mpi_open_window(comm_group *group, void *block, int64_t bytes, int file,
                                 sifr_error *error) {
    mpi_group *g = (mpi_group *)group;
    comm_window *window = find_free(g->process);
    window_notice mine = {.file = comm_host_name_file(file), .bytes = bytes}, *notices = NULL;
    window_verdict *verdicts = NULL, verdict;
    sifr_error own = {.message = ""}, theirs = {.message = ""}; /* whose memory cannot be used */
    sifr_status status;
    if (!may_open(g) || !window || (group->dev && g->process->apart)) return SIFR_OK;
    if (g->slot > 0)
        return base_fail(error, SIFR_FAILED,
                         "communication: a window of group %s; windows belong to the group of all "
                         "ranks",
                         g->base.name);
    if (group->dev)
        mine.shared = device_share_block(group->dev, block, &mine.share, &own) == SIFR_OK;
    size_t size = (size_t)group->size;
    BASE_TRY_GOTO(status, base_alloc(size, sizeof *notices, &notices, error), done);
    BASE_TRY_GOTO(status, base_alloc(size, sizeof *verdicts, &verdicts, error), done);
    BASE_TRY_GOTO(status, comm_mpi_tell(g, &mine, sizeof mine, notices, error), done);
    bool mapped = map_window(g, window, notices, &theirs) == SIFR_OK;
    verdict = judge(g, &mine, mapped, own.message[0] ? &own : &theirs);
    BASE_TRY_GOTO(status, comm_mpi_tell(g, &verdict, sizeof verdict, verdicts, error), done);
    int32_t failed = find_failed(g, notices, verdicts);
    if (failed >= 0) {
        status = go_around(g, failed, verdicts[failed].why, error);
        unmap(g, window);
    } else {
        window->block = window->seen[g->process->host.mine] = block;
        window->bytes = bytes;
    }
done:
    free(notices);
    free(verdicts);
    return status;
}

/* Until that rank has closed as many windows as this one, which began to wait for all at `begun`.
 * Not for long if it waits for this rank in a collective: then this one has failed alone, and the
 * others do not close theirs. */
static void await_closed(const mpi_process *p, int32_t seat, double begun) {
    const double patience = 30, patience_if_busy = 5; /* seconds */
    const struct timespec nap = {.tv_nsec = 100000};
    const uint32_t number = atomic_load(&comm_host_own(&p->host)->closed);
    while ((int32_t)(atomic_load(&p->host.seats[seat].closed) - number) < 0) {
        double waited = base_seconds() - begun;
        if (atomic_load(&p->broken) || comm_mpi_is_gone(p, seat) || waited > patience) return;
        if (waited > patience_if_busy && comm_mpi_is_busy(p, seat)) return;
        nanosleep(&nap, NULL);
    }
}

/* Device memory must not be freed while another process has it open. */
static void close_hidden(mpi_process *p) {
    const double begun = base_seconds();
    atomic_fetch_add(&comm_host_own(&p->host)->closed, 1);
    for (int32_t s = 0; s < p->host.size; s++)
        if (s != p->host.mine) await_closed(p, s, begun);
}

void comm_mpi_close_window(comm_group *group, void *block) {
    mpi_group *g = (mpi_group *)group;
    for (int i = 0; i < COMM_WINDOWS; i++) {
        if (g->process->windows[i].block != block || !block) continue;
        unmap(g, &g->process->windows[i]);
        if (g->base.dev) close_hidden(g->process);
    }
}
