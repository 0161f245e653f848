#include "comm/comm.h"

#include <stdio.h>

#include "base/assert.h"
#include "base/checked.h"
#include "base/clock.h"
#include "comm/transport.h"

const char *comm_operation_name(comm_operation operation) {
    base_assert((int)operation >= 0 && operation < COMM_OPERATIONS);
    static const char *const names[COMM_OPERATIONS] = {
        "all_gather", "reduce_scatter", "control", "send", "receive", "all_to_all", "all_reduce"};
    return names[operation];
}

void comm_close(comm_group *group) {
    if (group) group->transport->close(group);
}

int32_t comm_rank(const comm_group *group) {
    return group->rank;
}

int32_t comm_size(const comm_group *group) {
    return group->size;
}

const char *comm_name(const comm_group *group) {
    return group->name;
}

int32_t comm_world_rank(const comm_group *group, int32_t rank) {
    base_assert(rank >= 0 && rank < group->size);
    return group->world_of ? group->world_of[rank] : rank;
}

int32_t comm_local_size(const comm_group *group) {
    return group->local_size;
}

int32_t comm_ranks_per_host(const comm_group *group) {
    return group->per_host;
}

int32_t comm_local_rank(const comm_group *group) {
    return group->local_rank;
}

int64_t comm_buffer_bytes(const comm_group *group) {
    return group->buffer_bytes;
}

void comm_set_label(comm_group *group, const comm_label *label) {
    group->label = *label;
}

void comm_set_timeout(comm_group *group, double seconds) {
    group->timeout = seconds;
}

void comm_slow_down(comm_group *group, double seconds_a_call, double seconds_a_byte) {
    group->call_seconds = seconds_a_call;
    group->byte_seconds = seconds_a_byte;
}

const comm_ledger *comm_get_ledger(const comm_group *group) {
    return &group->ledger;
}

bool comm_shares_memory(const comm_group *group) {
    return group->shares_memory;
}

static comm_operands larger_of(comm_operands a, const comm_operands *b) {
    a.largest = base_max_i64(a.largest, b->largest);
    a.parts = base_max_i64(a.parts, b->parts);
    a.sent = base_max_i64(a.sent, b->sent);
    a.sends = a.sends > b->sends ? a.sends : b->sends;
    return a;
}

/* By NCCL, or else through host memory. `hosts`: the ranks of each read in place. */
static sifr_status reach_hosts(comm_group *group, bool hosts, sifr_error *error) {
    const comm_transport *transport = group->transport;
    char what[600], why[512] = "";
    bool linked = false;
    if (transport->open_link)
        BASE_TRY(transport->open_link(group, &linked, why, sizeof why, error));
    if (linked) return SIFR_OK;
    snprintf(what, sizeof what, "%s%s%s%s",
             hosts ? "GPUs of several hosts" : "ranks that share no memory",
             why[0] ? ", without NCCL (" : "", why, why[0] ? ")" : "");
    return transport->take_stage(group, what, error);
}

sifr_status comm_use_device(comm_group *group, device *dev, const comm_operands *operands,
                            sifr_error *error) {
    base_assert(!dev || operands);
    const comm_transport *transport = group->transport;
    comm_operands before = {0};
    if (group->dev && group->dev == dev) before = group->operands;
    if (group->dev && transport->give_stage) transport->give_stage(group);
    group->dev = NULL;
    if (!dev || group->size == 1) return SIFR_OK; /* nothing moves */
    group->dev = dev;
    group->operands = larger_of(before, operands);
    if (transport->take_words) BASE_TRY(transport->take_words(group, error));
    bool apart = transport->is_apart && transport->is_apart(group);
    if (!apart && group->shares_memory && group->local_size == group->size) return SIFR_OK;
    bool hosts = (group->shares_memory && !apart) || group->local_size == 1;
    if (group->peers && group->operands.sends)
        BASE_TRY(transport->take_sends(
            group, hosts ? "stages on GPUs of several hosts" : "ranks that share no memory",
            error));
    bool moves = group->operands.largest || group->operands.parts;
    return moves ? reach_hosts(group, hosts, error) : SIFR_OK;
}

const char *comm_exchange_name(comm_exchange exchange) {
    base_assert((int)exchange >= 0 && exchange <= COMM_EXCHANGE_HOST);
    static const char *const names[] = {"none", "shared memory", "MPI",
                                        "IPC",  "NCCL",          "host memory"};
    return names[exchange];
}

comm_exchange comm_exchange_of(const comm_group *group, const char **why) {
    bool near = group->shares_memory && group->local_size == group->size;
    *why = "";
    if (group->size == 1) return COMM_EXCHANGE_NONE;
    if (group->transport->exchange) return group->transport->exchange(group, why);
    return near ? COMM_EXCHANGE_SHARED : COMM_EXCHANGE_MPI;
}

sifr_status comm_open_window(comm_group *group, void *block, int64_t bytes, int file,
                             sifr_error *error) {
    base_assert(bytes > 0);
    if (!group->shares_memory && !group->dev) return SIFR_OK;
    return group->transport->open_window(group, block, bytes, file, error);
}

void comm_close_window(comm_group *group, void *block) {
    if (group->shares_memory || group->dev) group->transport->close_window(group, block);
}

void comm_watch(comm_group *group, comm_watcher *watcher, void *user) {
    group->watcher = watcher;
    group->watcher_user = user;
}

const comm_event *comm_last(const comm_group *group) {
    return &group->last;
}

void comm_count(comm_group *group, const comm_event *event) {
    base_assert((int)event->operation >= 0 && event->operation < COMM_OPERATIONS);
    base_assert(event->crossed <= event->delivered && event->begun <= event->ended);
    comm_ledger *ledger = &group->ledger;
    ledger->operation[event->operation].calls++;
    ledger->operation[event->operation].bytes += event->delivered;
    ledger->operation[event->operation].crossed += event->crossed;
    double over = event->followed ? event->ended : base_seconds();
    ledger->operation[event->operation].seconds += over - event->asked;
    group->last = *event;
    if (group->watcher) group->watcher(group->watcher_user, event);
}

sifr_status comm_start_all_gather(comm_group *group, const void *slice, int64_t bytes, void *whole,
                                  comm_handle *out, sifr_error *error) {
    return group->transport->all_gather(group, slice, bytes, whole, out, error);
}

sifr_status comm_start_reduce_scatter(comm_group *group, const float *whole, int64_t elements,
                                      float *slice, comm_handle *out, sifr_error *error) {
    return comm_start_reduce_typed(group, whole, BASE_FP32, BASE_FP32, elements, slice, out, error);
}

sifr_status comm_start_reduce_typed(comm_group *group, const void *whole, base_dtype type,
                                    base_dtype sum, int64_t elements, void *slice, comm_handle *out,
                                    sifr_error *error) {
    base_assert(elements >= 0 && (sum == BASE_FP32 || sum == type));
    return group->transport->reduce_scatter(group, whole, type, sum, elements, slice, out, error);
}

sifr_status comm_start_all_reduce(comm_group *group, void *values, base_dtype type,
                                  int64_t elements, comm_handle *out, sifr_error *error) {
    if (elements % group->size)
        return base_fail(error, SIFR_FAILED,
                         "all_reduce: %lld elements cannot be cut among %d ranks evenly",
                         (long long)elements, (int)group->size);
    if (group->dev && type != BASE_FP32 && group->size > 2)
        return base_fail(error, SIFR_FAILED,
                         "all_reduce: 16-bit values of %d ranks in a device's memory are not "
                         "supported yet (supported: 2 ranks, or FP32)",
                         (int)group->size);
    return group->transport->all_reduce(group, values, type, elements / group->size, out, error);
}

int64_t comm_runs_bytes(const comm_run *runs, int32_t size) {
    int64_t bytes = 0;
    for (int32_t r = 0; r < size; r++) bytes += runs[r].bytes;
    return bytes;
}

int64_t comm_runs_end(const comm_run *runs, int32_t size) {
    int64_t end = 0;
    for (int32_t r = 0; r < size; r++)
        if (runs[r].bytes) end = base_max_i64(end, runs[r].at + runs[r].bytes);
    return end;
}

sifr_status comm_check_part(const comm_group *group, int32_t rank, int64_t sent, int64_t received,
                            sifr_error *error) {
    if (sent == received) return SIFR_OK;
    return base_fail(error, SIFR_FAILED,
                     "all_to_all: %lld bytes are expected from rank %d, but it sends %lld",
                     (long long)received, (int)comm_world_rank(group, rank), (long long)sent);
}

sifr_status comm_start_all_to_all(comm_group *group, const void *from, const comm_run *sent,
                                  void *to, const comm_run *received, comm_handle *out,
                                  sifr_error *error) {
    for (int32_t r = 0; r < group->size; r++)
        base_assert(sent[r].at >= 0 && sent[r].bytes >= 0 && received[r].at >= 0 &&
                    received[r].bytes >= 0);
    BASE_TRY(comm_check_part(group, group->rank, sent[group->rank].bytes,
                             received[group->rank].bytes, error));
    return group->transport->all_to_all(group, from, sent, to, received, out, error);
}

static sifr_status check_peer(const comm_group *group, const char *what, int32_t peer,
                              sifr_error *error) {
    if (peer < 0 || peer >= group->size || peer == group->rank)
        return base_fail(error, SIFR_FAILED, "%s: rank %d among %d is no other rank", what,
                         (int)peer, (int)group->size);
    if (!group->peers)
        return base_fail(error, SIFR_FAILED,
                         "%s: group \"%s\" has no sends and receives; split it off with peers",
                         what, group->name);
    return SIFR_OK;
}

sifr_status comm_send(comm_group *group, int32_t to, const void *data, int64_t bytes,
                      comm_handle *out, sifr_error *error) {
    BASE_TRY(check_peer(group, "send", to, error));
    return group->transport->send(group, to, data, bytes, out, error);
}

sifr_status comm_receive(comm_group *group, int32_t from, void *data, int64_t bytes,
                         comm_handle *out, sifr_error *error) {
    BASE_TRY(check_peer(group, "receive", from, error));
    return group->transport->receive(group, from, data, bytes, out, error);
}

/* No group: what was started ended at once. */
sifr_status comm_wait(comm_handle handle, sifr_error *error) {
    if (!handle.group) return SIFR_OK;
    return handle.group->transport->wait(handle.group, handle.id, error);
}

sifr_status comm_follow(comm_handle handle, sifr_error *error) {
    if (!handle.group || !handle.group->transport->follow) return comm_wait(handle, error);
    return handle.group->transport->follow(handle.group, handle.id, error);
}

sifr_status comm_catch_up(comm_group *group, sifr_error *error) {
    return group->transport->catch_up ? group->transport->catch_up(group, error) : SIFR_OK;
}

sifr_status comm_start_control(comm_group *group, const void *mine, int64_t bytes, void *all,
                               comm_handle *out, sifr_error *error) {
    const comm_transport *transport = group->transport;
    *out = (comm_handle){0};
    if (transport->start_control)
        return transport->start_control(group, mine, bytes, all, out, error);
    if (group->dev) BASE_TRY(device_finish_queue(group->dev, DEVICE_COMPUTE, error));
    return transport->all_gather_control(group, mine, bytes, all, error);
}

sifr_status comm_sum(comm_group *group, int64_t *values, int32_t count, sifr_error *error) {
    base_assert(count >= 1);
    return group->transport->sum(group, values, count, error);
}

sifr_status comm_all_gather_control(comm_group *group, const void *mine, int64_t bytes, void *all,
                                    sifr_error *error) {
    return group->transport->all_gather_control(group, mine, bytes, all, error);
}

sifr_status comm_broadcast(comm_group *group, int32_t root, void *data, int64_t bytes,
                           sifr_error *error) {
    if (root < 0 || root >= group->size)
        return base_fail(error, SIFR_FAILED, "broadcast: there is no rank %d among %d", (int)root,
                         (int)group->size);
    return group->transport->broadcast(group, root, data, bytes, error);
}
