#include "device/host_team.h"

#include <errno.h>
#include <linux/futex.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/assert.h"
#include "base/float_mode.h"
#include "base/heap.h"
#include "base/thread.h"

/* Kernels follow each other within microseconds, so a waiting thread spins that long before it
 * sleeps. Spinning longer would hold up others if there are more threads than cores. */
enum { SPINS = 4000 };

struct host_team {
    int threads, started;
    pthread_t *workers; /* threads - 1 */
    host_tile run;
    void *argument;
    int64_t tiles;
    _Atomic int64_t next;
    _Atomic uint32_t job;     /* number of the current job; workers wait for it to change */
    _Atomic uint32_t working; /* workers that have not finished the current job */
    atomic_bool stop;
};

typedef struct worker_start {
    host_team *team;
    int thread;
} worker_start;

static void pause_cpu(void) {
#if defined(__x86_64__)
    __builtin_ia32_pause();
#endif
}

/* Returns when *word is no longer `value`. */
static void wait_while(_Atomic uint32_t *word, uint32_t value) {
    for (int i = 0; i < SPINS; i++) {
        if (atomic_load_explicit(word, memory_order_acquire) != value) return;
        pause_cpu();
    }
    while (atomic_load_explicit(word, memory_order_acquire) == value) {
        syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, value, NULL, NULL, 0);
    }
}

static void wake(_Atomic uint32_t *word) {
    syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, INT32_MAX, NULL, NULL, 0);
}

static void work(host_team *team, int thread) {
    for (;;) {
        int64_t tile = atomic_fetch_add_explicit(&team->next, 1, memory_order_relaxed);
        if (tile >= team->tiles) return;
        team->run(team->argument, tile, thread);
    }
}

static void *worker(void *argument) {
    worker_start start = *(worker_start *)argument;
    free(argument);
    host_team *team = start.team;
    base_flush_floats();
    for (uint32_t seen = 0;;) {
        wait_while(&team->job, seen);
        seen++;
        if (atomic_load_explicit(&team->stop, memory_order_acquire)) return NULL;
        work(team, start.thread);
        if (atomic_fetch_sub_explicit(&team->working, 1, memory_order_acq_rel) == 1) {
            wake(&team->working);
        }
    }
}

sifr_status host_team_create(int threads, host_team **out, sifr_error *error) {
    base_assert(threads >= 1);
    host_team *team;
    BASE_TRY(base_alloc(1, sizeof *team, &team, error));
    team->threads = threads;
    sifr_status status;
    BASE_TRY_GOTO(status,
                  base_alloc((size_t)threads - 1, sizeof *team->workers, &team->workers, error),
                  fail);
    for (int i = 0; i < threads - 1; i++) {
        worker_start *start;
        BASE_TRY_GOTO(status, base_alloc(1, sizeof *start, &start, error), fail);
        *start = (worker_start){team, i + 1};
        int number = base_thread_start(&team->workers[i], worker, start);
        if (number) {
            free(start);
            status = base_fail_errno(error, number, "threads: cannot start %d", threads);
            goto fail;
        }
        team->started++;
    }
    *out = team;
    return SIFR_OK;
fail:
    host_team_free(team);
    return status;
}

void host_team_free(host_team *team) {
    if (!team) return;
    atomic_store_explicit(&team->stop, true, memory_order_release);
    atomic_fetch_add_explicit(&team->job, 1, memory_order_release);
    wake(&team->job);
    for (int i = 0; i < team->started; i++) pthread_join(team->workers[i], NULL);
    free(team->workers);
    free(team);
}

int host_team_threads(const host_team *team) {
    return team->threads;
}

static void run_all(host_team *team, int64_t tiles, host_tile run, void *argument) {
    if (tiles <= 1 || team->threads == 1) {
        for (int64_t tile = 0; tile < tiles; tile++) run(argument, tile, 0);
        return;
    }
    base_assert(atomic_load(&team->working) == 0); /* one job at a time */
    team->run = run;
    team->argument = argument;
    team->tiles = tiles;
    atomic_store_explicit(&team->next, 0, memory_order_relaxed);
    atomic_store_explicit(&team->working, (uint32_t)team->threads - 1, memory_order_relaxed);
    atomic_fetch_add_explicit(&team->job, 1, memory_order_release);
    wake(&team->job);
    work(team, 0);
    for (uint32_t left; (left = atomic_load_explicit(&team->working, memory_order_acquire)) != 0;) {
        wait_while(&team->working, left);
    }
}

void host_parallel(host_team *team, int64_t tiles, host_tile run, void *argument) {
    unsigned before = base_flush_floats(); /* the calling thread works too */
    run_all(team, tiles, run, argument);
    base_restore_floats(before);
}
