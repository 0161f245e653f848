/* What ranks exchange through sifr beside MPI's own collectives of the same sizes, beside each rank
 * copying the same bytes for itself, and beside plain copies out of the other ranks' memory, in
 * turns in the same run, with checked results; and what goes on beside computing. Under mpirun:
 * bench_comm [BYTES]. Rank 0 prints one JSON object. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "comm/comm.h"
#include "device/device.h"

enum { ROUNDS = 7 };

static comm_group *group;
static int32_t rank, size;
static float *ours, *slice, *theirs;
static float *shared, **shared_of; /* NULL: not all ranks are on one host */
static MPI_Win shared_window;
static sifr_error error;

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void check(sifr_status status) {
    if (status == SIFR_OK) return;
    fprintf(stderr, "bench_comm: %s\n", error.message);
    exit((int)status);
}

static void take(int64_t bytes) {
    device *dev;
    int file;
    void *block;
    check(device_open_cpu(1, NULL, &dev, &error));
    if (comm_shares_memory(group)) {
        check(device_take_shared(dev, 2 * bytes, &block, &file, &error));
        check(comm_open_window(group, block, 2 * bytes, file, &error));
        close(file);
    } else {
        check(device_take(dev, 2 * bytes, &block, &error));
    }
    ours = block;
    slice = ours + bytes / 4;
    check(device_take(dev, bytes, &block, &error));
    theirs = block;
}

/* Memory that all ranks of a host map, by MPI's means: what plain copies between ranks are. */
static void take_plain(int64_t bytes) {
    MPI_Comm host;
    int on_host;
    MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &host);
    MPI_Comm_size(host, &on_host);
    if (on_host == size) {
        MPI_Win_allocate_shared(bytes, 4, MPI_INFO_NULL, host, (void *)&shared, &shared_window);
        shared_of = malloc((size_t)size * sizeof *shared_of);
        for (int32_t r = 0; r < size; r++) {
            MPI_Aint length;
            int unit;
            MPI_Win_shared_query(shared_window, r, &length, &unit, (void *)&shared_of[r]);
        }
    }
    MPI_Comm_free(&host);
}

static void give_plain(void) {
    if (!shared_of) return;
    MPI_Win_free(&shared_window);
    free(shared_of);
}

/* Small whole numbers: their sums are exact in any order. New ones before every call, as a step
 * makes new gradients. */
static void fill(float *to, int64_t elements, int round) {
    for (int64_t i = 0; i < elements; i++) to[i] = (float)((i + rank + round) % 64);
}

static void fill_both(int64_t elements, int round) {
    fill(ours, elements * size, round);
    fill(theirs, elements * size, round);
    if (shared_of) fill(shared, elements * size, round);
}

static void start_gather(int64_t elements, comm_handle *handle) {
    check(comm_start_all_gather(group, ours + rank * elements, elements * 4, ours, handle, &error));
}

static double time_ours(bool reduce, int64_t elements) {
    comm_handle handle;
    MPI_Barrier(MPI_COMM_WORLD);
    double begun = now();
    if (reduce)
        check(comm_start_reduce_scatter(group, ours, elements, slice, &handle, &error));
    else
        start_gather(elements, &handle);
    check(comm_wait(handle, &error));
    return now() - begun;
}

static double time_theirs(bool reduce, int64_t elements, float *to) {
    int counts[1024];
    for (int32_t r = 0; r < size; r++) counts[r] = (int)elements;
    MPI_Barrier(MPI_COMM_WORLD);
    double begun = now();
    if (reduce)
        MPI_Reduce_scatter(theirs, to, counts, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
    else
        MPI_Allgather(MPI_IN_PLACE, 0, MPI_FLOAT, theirs, (int)elements, MPI_FLOAT, MPI_COMM_WORLD);
    return now() - begun;
}

/* All ranks at once, each within its own window. */
static double time_copy(int64_t elements) {
    MPI_Barrier(MPI_COMM_WORLD);
    double begun = now();
    memcpy(slice, ours, (size_t)elements * 4);
    return now() - begun;
}

/* Each rank's part as it wrote it, copied by those who gather it. */
static double time_plain(int64_t elements) {
    MPI_Barrier(MPI_COMM_WORLD);
    double begun = now();
    for (int32_t d = 1; d < size; d++) {
        int32_t r = (rank + d) % size;
        memcpy(slice + r * elements, shared_of[r] + r * elements, (size_t)elements * 4);
    }
    return now() - begun;
}

static double slowest(double mine) {
    double all[1024], most = 0;
    check(comm_all_gather_control(group, &mine, sizeof mine, all, &error));
    for (int32_t r = 0; r < size; r++) most = all[r] > most ? all[r] : most;
    return most;
}

static int compare(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

static double median(double *values) {
    qsort(values, ROUNDS, sizeof *values, compare);
    return values[ROUNDS / 2];
}

static void compare_size(bool reduce, int64_t bytes) {
    double own[ROUNDS], mpi[ROUNDS], copy[ROUNDS], plain[ROUNDS] = {0};
    int64_t elements = bytes / 4 / size;
    /* What arrives at a rank, or what it reads. */
    int64_t moved = reduce ? elements * size : elements * (size - 1);
    float *sums = malloc((size_t)elements * 4 + 4);
    for (int i = -1; i < ROUNDS; i++) {
        fill_both(elements, i);
        double a = slowest(time_ours(reduce, elements));
        double b = slowest(time_theirs(reduce, elements, sums));
        const float *x = reduce ? slice : ours, *y = reduce ? sums : theirs;
        if (memcmp(x, y, (size_t)(reduce ? elements : elements * size) * 4) != 0) {
            fprintf(stderr, "bench_comm: rank %d: results differ\n", (int)rank);
            exit(1);
        }
        fill_both(elements, i); /* the caches as they were for the others */
        double c = slowest(time_copy(moved)), d = 0;
        if (shared_of && !reduce) {
            fill_both(elements, i);
            d = slowest(time_plain(elements));
        }
        if (i >= 0) own[i] = a, mpi[i] = b, copy[i] = c, plain[i] = d;
    }
    free(sums);
    double a = median(own), b = median(mpi), c = median(copy);
    if (rank == 0)
        printf(" {\"operation\": \"%s\", \"ranks\": %d, \"bytes\": %lld, \"seconds\": %.3g, "
               "\"mpi_seconds\": %.3g, \"copy_seconds\": %.3g, \"plain_seconds\": %.3g},\n",
               reduce ? "reduce_scatter" : "all_gather", (int)size, (long long)bytes, a, b, c,
               median(plain));
}

/* Counts in registers: it takes a core and no memory. */
static void compute(int64_t loops) {
    for (volatile int64_t i = 0; i < loops; i++) continue;
}

/* A gather beside as much computing as it takes alone: 1 where one hides the other whole. With all
 * cores busy the copying itself takes time from the computing, so there is less to hide. */
static void measure_overlap(int64_t bytes) {
    double alone[ROUNDS], work[ROUNDS], both[ROUNDS];
    int64_t elements = bytes / 4 / size, loops = 1000000;
    comm_handle handle;
    for (int i = -1; i < ROUNDS; i++) {
        double a = slowest(time_ours(false, elements));
        MPI_Barrier(MPI_COMM_WORLD);
        double begun = now();
        compute(loops);
        double w = slowest(now() - begun);
        MPI_Barrier(MPI_COMM_WORLD);
        begun = now();
        start_gather(elements, &handle);
        compute(loops);
        check(comm_wait(handle, &error));
        double t = slowest(now() - begun);
        if (i < 0) {
            loops = (int64_t)((double)loops * a / w) + 1;
        } else {
            alone[i] = a, work[i] = w, both[i] = t;
        }
    }
    double a = median(alone), w = median(work), t = median(both);
    if (rank == 0)
        printf(" {\"operation\": \"gather beside computing\", \"ranks\": %d, \"bytes\": %lld, "
               "\"gather_s\": %.3g, \"computing_s\": %.3g, \"both_s\": %.3g, \"hidden\": %.2f}]}\n",
               (int)size, (long long)bytes, a, w, t, (a + w - t) / (a < w ? a : w));
}

int main(int argc, char **argv) {
    int64_t most = argc > 1 ? atoll(argv[1]) : (int64_t)128 << 20;
    check(comm_open_mpi(&group, &error));
    rank = comm_rank(group), size = comm_size(group);
    if (size > 1024 || most < 1 << 20) return 2;
    take(most);
    take_plain(most);
    if (rank == 0) printf("{\"rows\": [\n");
    for (int reduce = 0; reduce < 2; reduce++)
        for (int64_t bytes = 1 << 20; bytes <= most; bytes *= 8) compare_size(reduce, bytes);
    measure_overlap(most);
    give_plain();
    comm_close(group);
    return 0;
}
