/* Under mpirun (test_device_exchange_mpi.sh): collectives of memory that the host does not reach,
 * in windows, through host memory, and between hosts by NCCL, which a fake plays, like the GPU; by
 * all ranks, and by rows and columns of a mesh; sends within a row. Words: how ranks see each
 * other, and for NCCL what is wrong with it.
 * each MPI */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/half.h"
#include "base/random.h"
#include "comm/comm.h"
#include "comm/launcher.h"
#include "device/tree_sum.h"
#include "support/cuda/fake_driver.h"
#include "support/cuda/fake_gpu.h"
#include "support/cuda/fake_nccl.h"
#include "support/cuda/shim_run.h"

enum { MOST = 5000, RANKS = 8 }; /* elements of a slice */

static sifr_error error;
static comm_group *group;
static device *dev;
static int32_t rank, size;
static char *block, *host; /* of the device; what the host sees of it */
static int said;
static nccl_library nccl;
static comm_operands operands;

static comm_operands operands_of_all(void) {
    return (comm_operands){.largest = (int64_t)size * MOST * 4,
                           .parts = 2 * (int64_t)size * MOST * 4,
                           .sent = MOST * 4,
                           .sends = 2};
}

static void fail_at(int at, const char *what) {
    fprintf(stderr, "rank %d of %d: line %d: %s: %s\n", (int)rank, (int)size, at, what,
            error.message);
    exit(9);
}

#define CHECK(condition)                                                                           \
    do {                                                                                           \
        if (!(condition)) fail_at(__LINE__, #condition);                                           \
    } while (0)
#define TRY(call) CHECK((call) == SIFR_OK)

static void hear(void *user, sifr_log_level level, const char *message) {
    (void)user, (void)level;
    said += strstr(message, "goes through host memory") != NULL;
}

/* Whole r is what rank r gives. */
static void fill(void *to, base_dtype type, int64_t count, int32_t r) {
    for (int64_t i = 0; i < count; i++) {
        float value = (float)base_normal((uint64_t)r + 1, (uint64_t)i);
        if (type == BASE_FP32) ((float *)to)[i] = value;
        if (type == BASE_BF16) ((uint16_t *)to)[i] = base_bf16_from_float(value);
    }
}

/* In place or not; `far` is where the result lies. */
static void check_gather(int64_t bytes, bool in_place) {
    char *whole = block, *slice = in_place ? block + rank * bytes : block + RANKS * MOST * 4;
    comm_handle handle;
    fill(host, BASE_FP32, bytes / 4, rank);
    TRY(device_copy(dev, slice, host, bytes, &error));
    TRY(comm_start_all_gather(group, slice, bytes, whole, &handle, &error));
    TRY(comm_wait(handle, &error));
    TRY(device_copy(dev, host, whole, size * bytes, &error));
    for (int32_t r = 0; r < size; r++) {
        char want[MOST * 4];
        fill(want, BASE_FP32, bytes / 4, r);
        CHECK(memcmp(want, host + r * bytes, (size_t)bytes) == 0);
    }
}

/* A kernel that is only begun comes before: the sum is of what it leaves. */
static void check_reduce(base_dtype type, base_dtype sum, int64_t elements) {
    int64_t part = elements * base_dtype_bytes(type), out = elements * base_dtype_bytes(sum);
    char *slice = block + RANKS * MOST * 4, *wholes[RANKS], *want = malloc((size_t)out);
    const void *rows[RANKS];
    device_matrix from = {block + (RANKS + 1) * MOST * 4, 1, size * elements, size * elements,
                          type};
    device_matrix to = from;
    device_call call = {.kernel = DEVICE_CONVERT};
    comm_handle handle;
    to.data = block;
    call.x[0] = from, call.y = to;
    fill(host, type, size * elements, rank);
    TRY(device_copy(dev, from.data, host, size * part, &error));
    TRY(device_prepare(dev, &call, &error));
    TRY(device_run(dev, &call, &error));
    TRY(comm_start_reduce_typed(group, block, type, sum, elements, slice, &handle, &error));
    TRY(comm_wait(handle, &error));
    TRY(device_copy(dev, host, slice, out, &error));
    for (int32_t r = 0; r < size; r++) {
        wholes[r] = malloc((size_t)(size * part));
        fill(wholes[r], type, size * elements, r);
        rows[r] = wholes[r] + rank * part;
    }
    device_tree_sum_typed(type, sum, rows, size, elements, want);
    CHECK(memcmp(want, host, (size_t)out) == 0);
    for (int32_t r = 0; r < size; r++) free(wholes[r]);
    free(want);
}

/* Of what rank `from` sends to rank `to`; some get nothing. */
static int64_t part_length(int32_t from, int32_t to, int64_t most) {
    return (from + 2 * to) % 4 * most / 3;
}

/* Parts lie apart, those that are sent from the last rank to the first; before them a kernel that
 * is only begun. */
static void check_all_to_all(int64_t most) {
    comm_run sent[RANKS], received[RANKS];
    char *from = block + (RANKS + 1) * MOST * 4, *to = block;
    uint64_t bytes = 0, before = comm_get_ledger(group)->operation[COMM_ALL_TO_ALL].bytes;
    comm_handle handle;
    for (int32_t r = 0; r < size; r++) {
        sent[r] = (comm_run){(size - 1 - r) * MOST * 4, 4 * part_length(rank, r, most)};
        received[r] = (comm_run){r * MOST * 4, 4 * part_length(r, rank, most)};
        fill(host + sent[r].at, BASE_FP32, sent[r].bytes / 4, 100 * rank + r);
        if (r != rank) bytes += (uint64_t)received[r].bytes;
    }
    TRY(device_copy(dev, to, host, size * MOST * 4, &error));
    device_call call = {.kernel = DEVICE_CONVERT};
    call.x[0] = call.y = (device_matrix){to, 1, size * MOST, size * MOST, BASE_FP32};
    call.y.data = from;
    TRY(device_prepare(dev, &call, &error));
    TRY(device_run(dev, &call, &error));
    TRY(comm_start_all_to_all(group, from, sent, to, received, &handle, &error));
    TRY(comm_wait(handle, &error));
    TRY(device_copy(dev, host, to, size * MOST * 4, &error));
    for (int32_t r = 0; r < size; r++) {
        char want[MOST * 4];
        fill(want, BASE_FP32, received[r].bytes / 4, 100 * r + rank);
        CHECK(memcmp(want, host + received[r].at, (size_t)received[r].bytes) == 0);
    }
    CHECK(comm_get_ledger(group)->operation[COMM_ALL_TO_ALL].bytes == before + bytes);
}

/* In place, what a kernel that is only begun leaves. */
static void check_all_reduce(base_dtype type, int64_t elements) {
    int64_t bytes = elements * size * base_dtype_bytes(type);
    char *values[RANKS], *want = malloc((size_t)bytes), *from = block + (RANKS + 1) * MOST * 4;
    const void *rows[RANKS];
    device_call call = {.kernel = DEVICE_CONVERT};
    comm_handle handle;
    call.x[0] = call.y = (device_matrix){from, 1, size * elements, size * elements, type};
    call.y.data = block;
    fill(host, type, size * elements, rank);
    TRY(device_copy(dev, from, host, bytes, &error));
    TRY(device_prepare(dev, &call, &error));
    TRY(device_run(dev, &call, &error));
    sifr_status status =
        comm_start_all_reduce(group, block, type, size * elements, &handle, &error);
    bool refused = type != BASE_FP32 && size > 2;
    CHECK((status == SIFR_OK) == !refused);
    if (refused) CHECK(strstr(error.message, "supported: 2 ranks, or FP32"));
    if (!refused) TRY(comm_wait(handle, &error));
    TRY(device_copy(dev, host, block, bytes, &error));
    for (int32_t r = 0; r < size; r++) {
        rows[r] = values[r] = malloc((size_t)bytes);
        fill(values[r], type, size * elements, r);
    }
    device_tree_sum_once(type, rows, size, size * elements, want);
    CHECK(refused || memcmp(want, host, (size_t)bytes) == 0);
    for (int32_t r = 0; r < size; r++) free(values[r]);
    free(want);
}

static void check_group(void) {
    static const int64_t lengths[] = {1, 3, 100, 512, 513, MOST};
    for (int round = 0; round < 2 && size > 1; round++) {
        for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++) {
            check_gather(4 * lengths[i], i % 2);
            check_reduce(BASE_FP32, BASE_FP32, lengths[i]);
            check_reduce(BASE_BF16, BASE_BF16, lengths[i]);
            check_reduce(BASE_BF16, BASE_FP32, lengths[i]);
            check_all_to_all(lengths[i]);
            check_all_reduce(BASE_FP32, lengths[i]);
            check_all_reduce(BASE_BF16, lengths[i]);
        }
    }
}

/* --- rows and columns --- */

/* Both at once, each in its own part of the block: what ranks of both give is the same. */
static void check_both(comm_group *const groups[2]) {
    int64_t bytes = MOST * 4;
    comm_handle handles[2];
    char *parts[2] = {block, block + RANKS * bytes};
    fill(host, BASE_FP32, MOST, rank);
    TRY(device_copy(dev, block + 2 * RANKS * bytes, host, bytes, &error));
    for (int i = 0; i < 2; i++)
        TRY(comm_start_all_gather(groups[i], block + 2 * RANKS * bytes, bytes, parts[i],
                                  &handles[i], &error));
    for (int i = 1; i >= 0; i--) TRY(comm_wait(handles[i], &error));
    for (int i = 0; i < 2; i++) {
        TRY(device_copy(dev, host, parts[i], comm_size(groups[i]) * bytes, &error));
        for (int32_t r = 0; r < comm_size(groups[i]); r++) {
            char want[MOST * 4];
            fill(want, BASE_FP32, MOST, comm_world_rank(groups[i], r));
            CHECK(memcmp(want, host + r * bytes, (size_t)bytes) == 0);
        }
    }
}

/* To the other rank of the row, which sends as much. */
static void check_sends(comm_group *row) {
    int64_t bytes = MOST * 4;
    int32_t other = !comm_rank(row);
    char want[MOST * 4];
    comm_handle sent, received;
    for (int32_t round = 0; round < 3; round++) {
        fill(host, BASE_FP32, MOST, 10 * round + comm_rank(row));
        TRY(device_copy(dev, block, host, bytes, &error));
        TRY(comm_receive(row, other, block + bytes, bytes, &received, &error));
        TRY(comm_send(row, other, block, bytes, &sent, &error));
        TRY(comm_wait(received, &error));
        TRY(comm_wait(sent, &error));
        TRY(device_copy(dev, host, block + bytes, bytes, &error));
        fill(want, BASE_FP32, MOST, 10 * round + other);
        CHECK(memcmp(want, host, (size_t)bytes) == 0);
    }
}

/* Rows of two ranks, which are a host where hosts of two are tested. */
static void check_mesh(comm_lane lane) {
    comm_group *world = group, *groups[2];
    int32_t place = rank;
    comm_part row = {"row", place / 2, place, COMM_BULK, .peers = true};
    comm_part column = {"column", place % 2, place, lane, .peers = false};
    TRY(comm_split(world, &row, &groups[0], &error));
    TRY(comm_split(world, &column, &groups[1], &error));
    for (int i = 0; i < 2; i++) {
        group = groups[i];
        rank = comm_rank(group), size = comm_size(group);
        operands = operands_of_all();
        TRY(comm_use_device(group, dev, &operands, &error));
        check_group();
        CHECK(comm_get_ledger(group)->operation[COMM_ALL_GATHER].bytes > 0);
    }
    group = world;
    rank = place, size = comm_size(world);
    check_both(groups);
    check_sends(groups[0]);
    for (int i = 0; i < 2; i++) {
        TRY(comm_use_device(groups[i], NULL, NULL, &error));
        comm_close(groups[i]);
    }
}

static void rest(int milliseconds) {
    const struct timespec nap = {milliseconds / 1000, milliseconds % 1000 * 1000000L};
    nanosleep(&nap, NULL);
}

/* A rank that failed alone closes its window though the others wait for it, and ends. */
static int fail_alone(void) {
    if (rank > 0) check_gather(4, false);
    double begun = base_seconds();
    comm_close_window(group, block);
    printf("closed after %.0f s\n", base_seconds() - begun);
    fflush(stdout);
    _exit(3);
}

/* How the group of all exchanges, as it says by itself. */
static void check_exchange(const char *how, bool staged) {
    static const char *const reasons[][2] = {
        {"hosts", "GPUs of several hosts"},
        {"apart", "ranks that share no memory"},
        {"unshared",
         "rank 0 cannot share memory with its neighbours (this is no block of hidden memory)"},
        {"nccl", "GPUs of several hosts, without NCCL ("}};
    const char *why, *want = "";
    comm_exchange way = size == 1                      ? COMM_EXCHANGE_NONE
                        : staged                       ? COMM_EXCHANGE_HOST
                        : strncmp(how, "nccl", 4) == 0 ? COMM_EXCHANGE_NCCL
                                                       : COMM_EXCHANGE_IPC;
    CHECK(comm_exchange_of(group, &why) == way);
    for (size_t i = 0; i < sizeof reasons / sizeof *reasons && way == COMM_EXCHANGE_HOST; i++)
        if (strncmp(how, reasons[i][0], strlen(reasons[i][0])) == 0) want = reasons[i][1];
    snprintf(error.message, sizeof error.message, "%.500s", why);
    CHECK(way == COMM_EXCHANGE_HOST ? want[0] && strncmp(why, want, strlen(want)) == 0 : !why[0]);
}

int main(int count, char **words) {
    const char *how = count > 1 ? words[1] : "windows";
    sifr_log log = {.write = hear};
    comm_options options = {.log = &log};
    bool linked = strncmp(how, "nccl", 4) == 0; /* with so many ranks a host */
    if (linked && shim_skipped()) return 77;
    options.ranks_a_host = strcmp(how, "hosts") == 0 ? 2 : linked ? atoi(how + 4) : 0;
    options.only_mpi = strcmp(how, "apart") == 0;
    fake_nccl_trouble trouble = {0};
    if (count > 2 && strcmp(words[2], "init") == 0) trouble.init = 2;
    if (count > 2 && strcmp(words[2], "fails") == 0) trouble.fail_after = 3;
    if (count > 2 && strcmp(words[2], "versions") == 0)
        trouble.version = 22000 + 100 * comm_launcher_rank();
    if (linked) fake_nccl_open(&trouble, &nccl);
    options.nccl = linked ? &nccl : NULL;
    bool staged = strcmp(how, "windows") != 0 && !(linked && count < 4);
    int64_t bytes = 2 * (RANKS + 1) * MOST * 4;
    if (count == 1) { /* not under mpirun: a rank by itself */
        TRY(comm_open_self(&group, &error));
    } else {
        TRY(comm_open(COMM_MPI, &options, &group, &error));
    }
    rank = comm_rank(group), size = comm_size(group);
    CHECK(size <= RANKS);
    if (linked)
        CHECK(fake_gpu_start(NULL) == 0 && fake_gpu_open(&dev, &error) == SIFR_OK);
    else
        TRY(device_open_queued(1, NULL, 50, (uint64_t)rank, &dev, &error));
    operands = operands_of_all();
    TRY(comm_use_device(group, dev, &operands, &error));
    TRY(device_take(dev, bytes, (void **)&block, &error));
    host = malloc((size_t)bytes);
    bool shared = strcmp(how, "unshared") != 0; /* the device has no such memory to share */
    TRY(comm_open_window(group, shared ? block : host, bytes, -1, &error));
    check_group();
    check_exchange(how, staged);
    const comm_ledger *ledger = comm_get_ledger(group);
    CHECK((ledger->operation[COMM_ALL_GATHER].bytes > 0) == (size > 1));
    CHECK(said == (staged && rank == 0));
    bool mesh = size % 2 == 0 && size > 2;
    if (mesh) check_mesh(linked ? COMM_BULK : COMM_NEAR);
    bool sent = linked && options.ranks_a_host == 1 && mesh; /* between hosts */
    CHECK(said == ((staged || sent) && rank == 0));          /* once, however many groups */
    if (rank == 0) printf("%d ranks, %s: equal\n", (int)size, how);
    if (count > 2 && strcmp(words[2], "alone") == 0 && size > 1) return fail_alone();
    if (linked && !staged) {
        int32_t hosts = size / options.ranks_a_host;
        CHECK(fake_nccl_count().communicators == (hosts > 1) && fake_nccl_count().groups > 0);
        CHECK((int64_t)ledger->operation[COMM_ALL_GATHER].crossed * (size - 1) ==
              (int64_t)ledger->operation[COMM_ALL_GATHER].bytes * (hosts - 1));
    }
    if (linked) rest(rank % 2 * 100); /* the others must wait before they give their blocks back */
    comm_close_window(group, shared ? block : host);
    device_give(dev, block, bytes);
    TRY(comm_use_device(group, NULL, NULL, &error));
    comm_close(group);
    CHECK(fake_nccl_count().communicators == 0);
    device_close(dev);
    if (linked) fake_gpu_check_returned();
    free(host);
    return 0;
}
