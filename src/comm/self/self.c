/* The transport of a single rank: its slice is the whole, and no bytes move. */
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/heap.h"
#include "comm/reduce.h"
#include "comm/transports.h"

static void self_count(comm_group *group, comm_operation operation, int64_t bytes, double asked) {
    comm_event event = {.operation = operation,
                        .bytes = bytes,
                        .asked = asked,
                        .begun = asked,
                        .ended = base_seconds()};
    comm_count(group, &event);
}

static sifr_status self_copy(comm_group *group, comm_operation operation, const void *from,
                             int64_t bytes, void *to, comm_handle *out) {
    double asked = base_seconds();
    if (from != to && bytes) memmove(to, from, (size_t)bytes);
    self_count(group, operation, bytes, asked);
    *out = (comm_handle){.group = group};
    return SIFR_OK;
}

static sifr_status self_all_gather(comm_group *group, const void *slice, int64_t bytes, void *whole,
                                   comm_handle *out, sifr_error *error) {
    (void)error;
    return self_copy(group, COMM_ALL_GATHER, slice, bytes, whole, out);
}

static sifr_status self_reduce_scatter(comm_group *group, const void *whole, base_dtype type,
                                       base_dtype sum, int64_t elements, void *slice,
                                       comm_handle *out, sifr_error *error) {
    int64_t bytes = elements * base_dtype_bytes(type); /* what would travel */
    (void)error;
    if (type == sum) return self_copy(group, COMM_REDUCE_SCATTER, whole, bytes, slice, out);
    comm_reduce(&(device_sum){type, sum, &whole, 1, elements, slice});
    return self_copy(group, COMM_REDUCE_SCATTER, slice, bytes, slice, out);
}

static sifr_status self_all_reduce(comm_group *group, void *values, base_dtype type,
                                   int64_t elements, comm_handle *out, sifr_error *error) {
    (void)error;
    return self_copy(group, COMM_ALL_REDUCE, values, elements * base_dtype_bytes(type), values,
                     out);
}

static sifr_status self_all_to_all(comm_group *group, const void *from, const comm_run *sent,
                                   void *to, const comm_run *received, comm_handle *out,
                                   sifr_error *error) {
    (void)error;
    return self_copy(group, COMM_ALL_TO_ALL, (const char *)from + sent->at, sent->bytes,
                     (char *)to + received->at, out);
}

static sifr_status self_wait(comm_group *group, int32_t id, sifr_error *error) {
    (void)group, (void)id, (void)error;
    return SIFR_OK;
}

static sifr_status self_sum(comm_group *group, int64_t *values, int32_t count, sifr_error *error) {
    (void)values, (void)error;
    self_count(group, COMM_CONTROL, count * (int64_t)sizeof *values, base_seconds());
    return SIFR_OK;
}

static sifr_status self_all_gather_control(comm_group *group, const void *mine, int64_t bytes,
                                           void *all, sifr_error *error) {
    comm_handle done;
    (void)error;
    return self_copy(group, COMM_CONTROL, mine, bytes, all, &done);
}

static sifr_status self_broadcast(comm_group *group, int32_t root, void *data, int64_t bytes,
                                  sifr_error *error) {
    (void)root, (void)data, (void)error;
    self_count(group, COMM_CONTROL, bytes, base_seconds());
    return SIFR_OK;
}

static sifr_status self_open(const comm_options *options, comm_group **out, sifr_error *error) {
    (void)options;
    BASE_TRY(base_alloc(1, sizeof **out, out, error));
    **out =
        (comm_group){.transport = &comm_transport_self, .size = 1, .local_size = 1, .per_host = 1};
    return SIFR_OK;
}

static sifr_status self_split(comm_group *parent, const comm_part *part, comm_group **out,
                              sifr_error *error) {
    if (part->color < 0) return SIFR_OK;
    BASE_TRY(self_open(NULL, out, error));
    comm_inherit(*out, parent, part);
    return SIFR_OK;
}

static void self_close(comm_group *group) {
    free(group);
}

const comm_transport comm_transport_self = {.open = self_open,
                                            .all_gather = self_all_gather,
                                            .reduce_scatter = self_reduce_scatter,
                                            .all_to_all = self_all_to_all,
                                            .all_reduce = self_all_reduce,
                                            .wait = self_wait,
                                            .sum = self_sum,
                                            .all_gather_control = self_all_gather_control,
                                            .broadcast = self_broadcast,
                                            .split = self_split,
                                            .close = self_close};
