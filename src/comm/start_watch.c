#include "comm/start_watch.h"

#include <errno.h>
#include <stdio.h>
#include <time.h>

#include "base/inside.h"
#include "base/thread.h"
#include "comm/launcher.h"
#include "comm/siblings.h"

static void say(const comm_start *start, double seconds, bool last) {
    char who[512], line[1024];
    bool speaks = comm_siblings_describe(who, sizeof who);
    snprintf(line, sizeof line, "start: rank %d has waited %.0f s for the other ranks%s: %s",
             comm_launcher_rank(), seconds, last ? " (sifr.collective_timeout)" : "", who);
    BASE_OUT(start->late(start->user, last, speaks ? line : ""));
}

/* Until `seconds` have passed since `begun`; false: the start is over. Under the lock. */
static bool wait_until(comm_start_watch *watch, struct timespec begun, double seconds) {
    int result = 0;
    begun.tv_sec += (time_t)seconds;
    while (!watch->over && result != ETIMEDOUT)
        result = pthread_cond_timedwait(&watch->changed, &watch->lock, &begun);
    return !watch->over;
}

static void *work(void *argument) {
    comm_start_watch *watch = argument;
    const comm_start *start = &watch->start;
    struct timespec begun;
    double notice = start->notice > 0 ? start->notice : COMM_START_NOTICE;
    clock_gettime(CLOCK_REALTIME, &begun);
    pthread_mutex_lock(&watch->lock);
    bool late = start->limit <= 0 || notice < start->limit;
    if (late) {
        late = wait_until(watch, begun, notice);
        if (late) say(start, notice, false);
    }
    if (start->limit > 0 && wait_until(watch, begun, start->limit)) say(start, start->limit, true);
    pthread_mutex_unlock(&watch->lock);
    return NULL;
}

sifr_status comm_start_watch_open(comm_start_watch *watch, const comm_start *start,
                                  sifr_error *error) {
    *watch = (comm_start_watch){.start = *start};
    if (!start->late) return SIFR_OK;
    pthread_mutex_init(&watch->lock, NULL);
    pthread_cond_init(&watch->changed, NULL);
    int result = base_thread_start(&watch->thread, work, watch);
    watch->running = result == 0;
    if (watch->running) return SIFR_OK;
    pthread_cond_destroy(&watch->changed);
    pthread_mutex_destroy(&watch->lock);
    return base_fail_errno(error, result, "ranks: the thread that watches the start");
}

void comm_start_watch_close(comm_start_watch *watch) {
    if (!watch->running) return;
    pthread_mutex_lock(&watch->lock);
    watch->over = true;
    pthread_cond_broadcast(&watch->changed);
    pthread_mutex_unlock(&watch->lock);
    pthread_join(watch->thread, NULL);
    pthread_cond_destroy(&watch->changed);
    pthread_mutex_destroy(&watch->lock);
    watch->running = false;
}
