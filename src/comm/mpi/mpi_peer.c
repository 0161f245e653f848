/* Sends and receives between two ranks. Within a host a send is posted in the sender's slot, where
 * the receiver finds it, reads the operand in its window, and answers; what lies in no window, and
 * what goes to another host, are MPI's messages. All transfers are in progress side by side.
 */
#include <limits.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/assert.h"
#include "base/clock.h"
#include "comm/mpi/mpi_group.h"

static const double nap = 0.05; /* seconds of sleep between two checks of which ranks are alive */
static const double brisk =
    1e-3; /* seconds of waiting for messages after which polls become rare */

/* The seat of a rank of this host; NULL: of another host, or without shared memory. */
static comm_seat *seat_of(const mpi_group *g, int32_t rank) {
    const mpi_process *p = g->process;
    int32_t seat = p->seat_of[comm_mpi_world(g, rank)];
    return p->host.seats && seat >= 0 ? &p->host.seats[seat] : NULL;
}

static comm_slot *slot_of(const mpi_group *g, int32_t rank) {
    base_assert(g->peer_slot > 0);
    const mpi_process *p = g->process;
    return comm_host_slot(&p->host, g->peer_slot, p->seat_of[comm_mpi_world(g, rank)]);
}

/* --- messages --- */

static mpi_request *request_of(mpi_lane *lane, const comm_task *task) {
    base_assert(task >= lane->worker.line && task < lane->worker.line + COMM_LINE);
    return &lane->requests[task - lane->worker.line];
}

/* To or from `at`. */
static sifr_status start_message(mpi_lane *lane, const mpi_group *g, const comm_task *task,
                                 void *at, sifr_error *error) {
    base_assert(!request_of(lane, task)->handle);
    mpi_process *p = lane->process;
    const mpi_library *mpi = &p->mpi;
    int tag = g->peer_slot * COMM_TAGS + COMM_TAG_PEER;
    int32_t other = comm_mpi_world(g, task->root);
    pthread_mutex_lock(&p->calls);
    int code = task->kind == COMM_TASK_SEND
                   ? mpi->calls.send(mpi, at, (int)task->bytes, other, tag, p->world,
                                     request_of(lane, task))
                   : mpi->calls.receive(mpi, at, (int)task->bytes, other, tag, p->world,
                                        request_of(lane, task));
    pthread_mutex_unlock(&p->calls);
    return comm_mpi_check_task(lane, task, code, error);
}

static sifr_status fail_size(const comm_task *task, int64_t sent, sifr_error *error) {
    return base_fail(
        error, SIFR_FAILED, "receive: %lld bytes are expected from rank %d, but it sends %lld",
        (long long)task->bytes, (int)comm_world_rank(task->group, task->root), (long long)sent);
}

/* *over is true without a message. */
static sifr_status test_message(mpi_lane *lane, const comm_task *task, bool *over,
                                sifr_error *error) {
    mpi_request *request = request_of(lane, task);
    const mpi_library *mpi = &lane->process->mpi;
    bool receives = task->kind == COMM_TASK_RECEIVE;
    mpi_status status = {.bytes = (int)task->bytes};
    int done;
    *over = true;
    if (!request->handle) return SIFR_OK;
    pthread_mutex_lock(&lane->process->calls);
    int code = mpi->calls.test(mpi, request, &done, receives ? &status : NULL);
    pthread_mutex_unlock(&lane->process->calls);
    *over = done;
    BASE_TRY(comm_mpi_check_task(lane, task, code, error));
    return status.bytes == task->bytes ? SIFR_OK : fail_size(task, status.bytes, error);
}

/* --- through host memory, where ranks do not reach each other's GPU --- */

static bool is_staged(const mpi_group *g, const comm_task *task) {
    return g->base.dev && (g->process->apart || !seat_of(g, task->root));
}

static char *place_at(const mpi_group *g, int32_t place) {
    base_assert(place >= 0 && place < g->place_count);
    return g->places + place * g->place_bytes;
}

static sifr_status copy(mpi_group *g, void *to, const void *from, int64_t bytes,
                        sifr_error *error) {
    device *dev = g->base.dev;
    if (!bytes) return SIFR_OK;
    if (!dev) {
        memcpy(to, from, (size_t)bytes);
        return SIFR_OK;
    }
    /* Not behind a collective: that may wait for a rank which waits for this. There is one thread
     * of sends in a process. */
    BASE_TRY(device_start_copy(dev, DEVICE_SEND, to, from, bytes, error));
    return device_finish_queue(dev, DEVICE_SEND, error);
}

/* There is one for each transfer in progress. */
static sifr_status take_place(mpi_group *g, comm_task *task, sifr_error *error) {
    int32_t place = 0;
    while (place < g->place_count && g->place_taken[place]) place++;
    if (place == g->place_count || task->bytes > g->place_bytes)
        return base_fail(error, SIFR_FAILED,
                         "%s: %lld bytes beside %d others exceed what was staged",
                         comm_mpi_task_name(task), (long long)task->bytes, (int)g->place_count);
    g->place_taken[place] = true;
    task->entry = place;
    return SIFR_OK;
}

static sifr_status send_staged(mpi_lane *lane, mpi_group *g, comm_task *task, bool *over,
                               sifr_error *error) {
    if (!task->engaged) {
        BASE_TRY(take_place(g, task, error));
        task->engaged = true;
        BASE_TRY(device_finish(g->base.dev, task->after, error));
        BASE_TRY(copy(g, place_at(g, task->entry), task->from, task->bytes, error));
        BASE_TRY(start_message(lane, g, task, place_at(g, task->entry), error));
    }
    BASE_TRY(test_message(lane, task, over, error));
    g->place_taken[task->entry] = !*over;
    return SIFR_OK;
}

/* Takes a place when there is a message, so that each that is taken will be free again. */
static sifr_status begin_staged_receive(mpi_lane *lane, mpi_group *g, comm_task *task,
                                        sifr_error *error) {
    base_assert((int32_t)(task->number - g->engaged[task->root]) > 0);
    mpi_process *p = lane->process;
    int there = 0, tag = g->peer_slot * COMM_TAGS + COMM_TAG_PEER;
    lane->probes = true;
    if (g->engaged[task->root] != task->number - 1) return SIFR_OK;
    pthread_mutex_lock(&p->calls);
    int code =
        p->mpi.calls.probe(&p->mpi, comm_mpi_world(g, task->root), tag, p->world, &there, NULL);
    pthread_mutex_unlock(&p->calls);
    BASE_TRY(comm_mpi_check_task(lane, task, code, error));
    if (!there) return SIFR_OK;
    BASE_TRY(take_place(g, task, error));
    task->engaged = true;
    g->engaged[task->root]++;
    return start_message(lane, g, task, place_at(g, task->entry), error);
}

static sifr_status receive_staged(mpi_lane *lane, mpi_group *g, comm_task *task, bool *over,
                                  sifr_error *error) {
    if (!task->engaged) BASE_TRY(begin_staged_receive(lane, g, task, error));
    if (!task->engaged) return SIFR_OK;
    BASE_TRY(test_message(lane, task, over, error));
    if (!*over) return SIFR_OK;
    BASE_TRY(device_finish(g->base.dev, task->after, error));
    BASE_TRY(copy(g, task->to, place_at(g, task->entry), task->bytes, error));
    g->place_taken[task->entry] = false;
    return SIFR_OK;
}

/* --- sends --- */

static sifr_status post_mail(mpi_lane *lane, mpi_group *g, comm_task *task, sifr_error *error) {
    comm_slot *own = slot_of(g, g->base.rank);
    int32_t entry = 0; /* there is one for each task in line */
    while (atomic_load(&own->mail[entry].state) != COMM_MAIL_FREE) entry++;
    base_assert(entry < COMM_LINE);
    comm_mail *mail = &own->mail[entry];
    mail->to = task->root;
    mail->number = task->number;
    mail->size = task->bytes;
    mail->window = COMM_IN_SLOT;
    if (task->bytes <= COMM_INLINE && !g->base.dev) {
        if (task->bytes) memcpy(mail->bytes, task->from, (size_t)task->bytes);
    } else {
        mail->window = comm_mpi_find_window(g, task->from, task->bytes, &mail->offset);
    }
    if (mail->window == COMM_NOWHERE && g->base.dev)
        return base_fail(error, SIFR_FAILED,
                         "send: the operand lies outside of what the ranks' GPUs share");
    if (mail->window == COMM_NOWHERE)
        BASE_TRY(start_message(lane, g, task, (void *)(uintptr_t)task->from, error));
    task->entry = entry;
    atomic_store(&mail->state, COMM_MAIL_POSTED);
    comm_host_knock(seat_of(g, task->root));
    return SIFR_OK;
}

static sifr_status send_on(mpi_lane *lane, mpi_group *g, comm_task *task, bool *over,
                           sifr_error *error) {
    if (is_staged(g, task)) return send_staged(lane, g, task, over, error);
    const comm_seat *seat = seat_of(g, task->root);
    if (!task->engaged) {
        task->engaged = true;
        if (g->base.dev) BASE_TRY(device_finish(g->base.dev, task->after, error));
        BASE_TRY(seat ? post_mail(lane, g, task, error)
                      : start_message(lane, g, task, (void *)(uintptr_t)task->from, error));
    }
    BASE_TRY(test_message(lane, task, over, error));
    if (!*over || task->entry < 0) return SIFR_OK;
    _Atomic uint32_t *state = &slot_of(g, g->base.rank)->mail[task->entry].state;
    *over = atomic_load(state) == COMM_MAIL_TAKEN;
    if (!*over && atomic_load(&seat->leaving) && atomic_load(state) != COMM_MAIL_TAKEN)
        return comm_mpi_fail_left(g, &g->peer_state, comm_mpi_world(g, task->root), error);
    if (*over) atomic_store(state, COMM_MAIL_FREE);
    return SIFR_OK;
}

/* --- receives --- */

static comm_mail *find_mail(const mpi_group *g, const comm_task *task) {
    comm_slot *theirs = slot_of(g, task->root);
    for (int i = 0; i < COMM_LINE; i++) {
        comm_mail *mail = &theirs->mail[i];
        if (atomic_load(&mail->state) == COMM_MAIL_POSTED && mail->to == g->base.rank &&
            mail->number == task->number)
            return mail;
    }
    return NULL;
}

static sifr_status take_mail(mpi_lane *lane, mpi_group *g, comm_task *task, comm_mail *mail,
                             sifr_error *error) {
    base_assert(mail->window >= COMM_IN_SLOT && mail->window < COMM_WINDOWS);
    const mpi_process *p = g->process;
    comm_seat *seat = seat_of(g, task->root);
    if (mail->size != task->bytes) return fail_size(task, mail->size, error);
    if (mail->window == COMM_NOWHERE)
        BASE_TRY(start_message(lane, g, task, task->to, error));
    else if (mail->window == COMM_IN_SLOT)
        BASE_TRY(copy(g, task->to, mail->bytes, task->bytes, error));
    else
        BASE_TRY(copy(g, task->to,
                      p->windows[mail->window].seen[seat - p->host.seats] + mail->offset,
                      task->bytes, error));
    atomic_store(&mail->state, COMM_MAIL_TAKEN);
    comm_host_knock(seat);
    return SIFR_OK;
}

/* A receive is begun after the earlier ones from the same rank: then messages of one rank arrive in
 * the order in which they are sent. */
static sifr_status begin_receive(mpi_lane *lane, mpi_group *g, comm_task *task, sifr_error *error) {
    base_assert((int32_t)(task->number - g->engaged[task->root]) > 0);
    const comm_seat *seat = seat_of(g, task->root);
    if (g->engaged[task->root] != task->number - 1) return SIFR_OK;
    if (seat) {
        bool leaving = atomic_load(&seat->leaving); /* before it is looked for what it sent */
        comm_mail *mail = find_mail(g, task);
        if (!mail && leaving)
            return comm_mpi_fail_left(g, &g->peer_state, comm_mpi_world(g, task->root), error);
        if (!mail) return SIFR_OK;
        if (g->base.dev) BASE_TRY(device_finish(g->base.dev, task->after, error));
        BASE_TRY(take_mail(lane, g, task, mail, error));
    } else {
        BASE_TRY(start_message(lane, g, task, task->to, error));
    }
    task->engaged = true;
    g->engaged[task->root]++;
    return SIFR_OK;
}

static sifr_status receive_direct(mpi_lane *lane, mpi_group *g, comm_task *task, bool *over,
                                  sifr_error *error) {
    if (!task->engaged) BASE_TRY(begin_receive(lane, g, task, error));
    return task->engaged ? test_message(lane, task, over, error) : SIFR_OK;
}

static sifr_status receive_on(mpi_lane *lane, mpi_group *g, comm_task *task, bool *over,
                              sifr_error *error) {
    bool staged = is_staged(g, task);
    if (staged) BASE_TRY(receive_staged(lane, g, task, over, error));
    if (!staged) BASE_TRY(receive_direct(lane, g, task, over, error));
    if (!*over) return SIFR_OK;
    task->delivered = (uint64_t)task->bytes;
    if (comm_mpi_is_far(g, task->root)) task->crossed = task->delivered;
    return SIFR_OK;
}

/* --- the lane --- */

static void publish(mpi_group *g, const comm_task *task, bool busy) {
    const comm_host *host = &g->process->host;
    const comm_state *old = &g->peer_state;
    if (busy && old->busy && old->number == task->number &&
        old->operation == (int32_t)comm_task_operation(task->kind))
        return; /* `since` then */
    g->peer_state =
        comm_board_begin(g->base.name, task->number, comm_task_operation(task->kind), &task->label);
    g->peer_state.busy = busy;
    g->peer_state.since = base_seconds();
    if (host->seats) comm_board_write(&comm_host_own(host)->entries[g->peer_slot], &g->peer_state);
}

sifr_status comm_mpi_turn(void *user, comm_task *task, bool *over, sifr_error *error) {
    mpi_lane *lane = user;
    mpi_group *g = (mpi_group *)task->group;
    if (atomic_load(&lane->process->broken)) return comm_mpi_fail_again(lane->process, error);
    if (!task->engaged) publish(g, task, true);
    sifr_status status = task->kind == COMM_TASK_SEND ? send_on(lane, g, task, over, error)
                                                      : receive_on(lane, g, task, over, error);
    if (status != SIFR_OK) comm_mpi_break(lane->process, error);
    if (status == SIFR_OK && *over) {
        publish(g, task, false);
        lane->left = 0;
    }
    return status;
}

static bool waits_for_messages(const mpi_lane *lane) {
    for (int i = 0; i < COMM_LINE; i++)
        if (lane->requests[i].handle) return true;
    return false;
}

void comm_mpi_rest(void *user) {
    mpi_lane *lane = user;
    mpi_process *p = lane->process;
    sifr_error error = {.message = ""};
    const comm_task *task = comm_worker_oldest(&lane->worker);
    if (!task) return;
    if (comm_mpi_look_for_peer(lane, task, &error) != SIFR_OK) {
        comm_mpi_break(p, &error);
        return;
    }
    bool probes = lane->probes;
    lane->probes = false;
    if (p->host.seats && !probes && !waits_for_messages(lane)) {
        lane->knocks = comm_host_listen(comm_host_own(&p->host), lane->knocks, nap);
        return;
    }
    sched_yield();
    if (base_seconds() - task->begun > brisk)
        nanosleep(&(struct timespec){.tv_nsec = 100000}, NULL);
    if (p->host.seats) lane->knocks = atomic_load(&comm_host_own(&p->host)->knocks);
}

/* --- on the caller's thread --- */

static sifr_status start(comm_group *group, comm_task *task, uint32_t *count, comm_handle *out,
                         sifr_error *error) {
    mpi_group *g = (mpi_group *)group;
    mpi_process *p = g->process;
    if (!seat_of(g, task->root) && task->bytes > INT_MAX)
        return base_fail(error, SIFR_FAILED,
                         "%s: %lld bytes between hosts in one message are not supported yet "
                         "(supported: 2147483647)",
                         comm_mpi_task_name(task), (long long)task->bytes);
    if (group->dev) BASE_TRY(device_mark_here(group->dev, DEVICE_COMPUTE, &task->after, error));
    task->group = out->group = group;
    task->label = group->label;
    task->number = *count + 1;
    BASE_TRY(comm_worker_start(&p->peers.worker, task, &out->id, error));
    out->id |= COMM_PEER_HANDLE;
    ++*count;
    if (p->host.seats) comm_host_knock(comm_host_own(&p->host));
    return SIFR_OK;
}

sifr_status comm_mpi_send(comm_group *group, int32_t to, const void *data, int64_t bytes,
                          comm_handle *out, sifr_error *error) {
    comm_task task = {.kind = COMM_TASK_SEND, .from = data, .bytes = bytes, .root = to};
    return start(group, &task, &((mpi_group *)group)->sent[to], out, error);
}

sifr_status comm_mpi_receive(comm_group *group, int32_t from, void *data, int64_t bytes,
                             comm_handle *out, sifr_error *error) {
    comm_task task = {.kind = COMM_TASK_RECEIVE, .to = data, .bytes = bytes, .root = from};
    return start(group, &task, &((mpi_group *)group)->asked[from], out, error);
}
