#include "support/comm_threads.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "comm/transport.h"

struct comm_threads {
    int32_t ranks;
    pthread_barrier_t barrier;
    const void **posted; /* by rank */
};

typedef struct threads_group {
    comm_group group;
    comm_threads *world;
} threads_group;

/* Every rank's pointer is known to all between the two barriers. */
static comm_threads *meet(comm_group *group, const void *mine) {
    comm_threads *world = ((threads_group *)group)->world;
    world->posted[group->rank] = mine;
    pthread_barrier_wait(&world->barrier);
    return world;
}

static void part(comm_group *group, comm_operation operation, int64_t bytes, comm_handle *out) {
    pthread_barrier_wait(&((threads_group *)group)->world->barrier);
    group->ledger.operation[operation].calls++;
    group->ledger.operation[operation].bytes += (uint64_t)(bytes * (group->size - 1));
    if (out) *out = (comm_handle){.group = group};
}

static sifr_status all_gather(comm_group *group, const void *slice, int64_t bytes, void *whole,
                              comm_handle *out, sifr_error *error) {
    (void)error;
    comm_threads *world = meet(group, slice);
    for (int32_t r = 0; r < group->size; r++) {
        char *to = (char *)whole + r * bytes;
        if (to != world->posted[r]) memcpy(to, world->posted[r], (size_t)bytes);
    }
    part(group, COMM_ALL_GATHER, bytes, out);
    return SIFR_OK;
}

static float tree(const void *const *posted, int32_t first, int32_t count, int64_t element) {
    if (count == 1) return ((const float *)posted[first])[element];
    if (count % 2 == 0) {
        return tree(posted, first, count / 2, element) +
               tree(posted, first + count / 2, count / 2, element);
    }
    float sum = ((const float *)posted[first])[element];
    for (int32_t i = 1; i < count; i++) sum += ((const float *)posted[first + i])[element];
    return sum;
}

static sifr_status reduce_scatter(comm_group *group, const float *whole, int64_t elements,
                                  float *slice, comm_handle *out, sifr_error *error) {
    (void)error;
    comm_threads *world = meet(group, whole);
    float *sum = malloc((size_t)elements * sizeof *sum);
    for (int64_t i = 0; i < elements; i++) {
        sum[i] = tree(world->posted, 0, group->size, group->rank * elements + i);
    }
    pthread_barrier_wait(&world->barrier);
    memcpy(slice, sum, (size_t)elements * sizeof *sum);
    free(sum);
    part(group, COMM_REDUCE_SCATTER, elements * 4, out);
    return SIFR_OK;
}

static sifr_status wait(comm_group *group, int32_t id, sifr_error *error) {
    (void)group, (void)id, (void)error;
    return SIFR_OK;
}

static sifr_status sum(comm_group *group, int64_t *values, int32_t count, sifr_error *error) {
    (void)error;
    comm_threads *world = meet(group, values);
    int64_t sums[16] = {0};
    for (int32_t i = 0; i < count; i++) {
        for (int32_t r = 0; r < group->size; r++) sums[i] += ((const int64_t *)world->posted[r])[i];
    }
    pthread_barrier_wait(&world->barrier);
    memcpy(values, sums, (size_t)count * sizeof *sums);
    part(group, COMM_CONTROL, count * 8, NULL);
    return SIFR_OK;
}

static sifr_status all_gather_control(comm_group *group, const void *mine, int64_t bytes, void *all,
                                      sifr_error *error) {
    (void)error;
    comm_threads *world = meet(group, mine);
    for (int32_t r = 0; r < group->size; r++) {
        memcpy((char *)all + r * bytes, world->posted[r], (size_t)bytes);
    }
    part(group, COMM_CONTROL, bytes, NULL);
    return SIFR_OK;
}

static void close_group(comm_group *group) {
    free(group);
}

static const comm_transport transport = {.all_gather = all_gather,
                                         .reduce_scatter = reduce_scatter,
                                         .wait = wait,
                                         .sum = sum,
                                         .all_gather_control = all_gather_control,
                                         .close = close_group};

comm_threads *comm_threads_create(int32_t ranks) {
    comm_threads *world = calloc(1, sizeof *world);
    world->ranks = ranks;
    world->posted = calloc((size_t)ranks, sizeof *world->posted);
    pthread_barrier_init(&world->barrier, NULL, (unsigned)ranks);
    return world;
}

void comm_threads_free(comm_threads *world) {
    pthread_barrier_destroy(&world->barrier);
    free(world->posted);
    free(world);
}

comm_group *comm_threads_group(comm_threads *world, int32_t rank) {
    threads_group *group = calloc(1, sizeof *group);
    group->world = world;
    group->group.transport = &transport;
    group->group.rank = rank;
    group->group.size = world->ranks;
    return &group->group;
}
