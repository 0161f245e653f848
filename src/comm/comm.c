#include "comm/comm.h"

#include "comm/transport.h"

const char *comm_operation_name(comm_operation operation) {
    static const char *const names[COMM_OPERATIONS] = {"all_gather", "reduce_scatter", "control"};
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

const comm_ledger *comm_get_ledger(const comm_group *group) {
    return &group->ledger;
}

sifr_status comm_start_all_gather(comm_group *group, const void *slice, int64_t bytes, void *whole,
                                  comm_handle *out, sifr_error *error) {
    return group->transport->all_gather(group, slice, bytes, whole, out, error);
}

sifr_status comm_start_reduce_scatter(comm_group *group, const float *whole, int64_t elements,
                                      float *slice, comm_handle *out, sifr_error *error) {
    return group->transport->reduce_scatter(group, whole, elements, slice, out, error);
}

sifr_status comm_wait(comm_handle handle, sifr_error *error) {
    return handle.group->transport->wait(handle.group, handle.id, error);
}

sifr_status comm_sum(comm_group *group, int64_t *values, int32_t count, sifr_error *error) {
    return group->transport->sum(group, values, count, error);
}

sifr_status comm_all_gather_control(comm_group *group, const void *mine, int64_t bytes, void *all,
                                    sifr_error *error) {
    return group->transport->all_gather_control(group, mine, bytes, all, error);
}
