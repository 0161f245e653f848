/* Groups: alone, the group of one process, who launched it, and the order of sums. Under mpirun
 * (test_mpi.sh) with a word: what ranks exchange, against values that each rank works out for
 * itself, and what happens when one of them differs, fails, stalls or dies.
 * each MPI */
#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/clock.h"
#include "base/half.h"
#include "base/random.h"
#include "comm/comm.h"
#include "comm/launcher.h"
#include "comm/worker.h"
#include "device/tree_sum.h"

/* Magnitudes from 2^-12 to 2^12, so that nearly every order of adding gives other bits. */
static float value(int32_t rank, int64_t i) {
    base_random4 r = base_philox(7, (uint64_t)i, (uint64_t)rank);
    return ldexpf(base_uniform(r.v[0]) - 0.5f, (int)(r.v[1] % 25) - 12);
}

/* The rule as it is written down, one element at a time. */
static float tree(int32_t first, int32_t count, int64_t i) {
    if (count % 2 == 0) return tree(first, count / 2, i) + tree(first + count / 2, count / 2, i);
    float sum = value(first, i);
    for (int32_t r = first + 1; r < first + count; r++) sum += value(r, i);
    return sum;
}

static float line(int32_t count, int64_t i) {
    float sum = value(0, i);
    for (int32_t r = 1; r < count; r++) sum += value(r, i);
    return sum;
}

static int same_bits(float a, float b) {
    return memcmp(&a, &b, sizeof a) == 0;
}

/* --- alone --- */

static void test_tree(void **state) {
    (void)state;
    enum { LENGTH = 1029 };
    static float data[16][LENGTH];
    const float *rows[16];
    static float out[LENGTH];
    for (int32_t count = 1; count <= 16; count++) {
        for (int32_t target = -1; target < count; target++) { /* -1: a place of its own */
            for (int32_t r = 0; r < count; r++) {
                for (int i = 0; i < LENGTH; i++) data[r][i] = value(r, i);
                rows[r] = data[r];
            }
            float *to = target < 0 ? out : data[target];
            device_tree_sum(rows, count, LENGTH, to);
            for (int i = 0; i < LENGTH; i++) assert_true(same_bits(to[i], tree(0, count, i)));
        }
    }
}

/* What a watcher heard of, by operation. */
typedef struct heard {
    int64_t calls[COMM_OPERATIONS];
    uint64_t bytes[COMM_OPERATIONS];
    int wrong; /* times out of order */
} heard;

static void hear(void *user, const comm_event *event) {
    heard *h = user;
    h->calls[event->operation]++;
    h->bytes[event->operation] += event->delivered;
    h->wrong += !(event->asked > 0 && event->begun >= event->asked &&
                  event->ended >= event->begun && base_seconds() >= event->ended);
}

static void test_self(void **state) {
    (void)state;
    heard all_heard = {0};
    comm_group *group;
    comm_handle handle;
    sifr_error error;
    float whole[3] = {1, 2, 3}, slice[3] = {0};
    int64_t sum = 5, all = 0;
    assert_int_equal(comm_open_self(&group, &error), SIFR_OK);
    comm_watch(group, hear, &all_heard);
    assert_int_equal(comm_size(group), 1);
    assert_int_equal(comm_local_size(group), 1);
    assert_int_equal(comm_start_reduce_scatter(group, whole, 3, slice, &handle, &error), SIFR_OK);
    assert_int_equal(comm_wait(handle, &error), SIFR_OK);
    assert_memory_equal(whole, slice, sizeof whole);
    assert_int_equal(comm_sum(group, &sum, 1, &error), SIFR_OK);
    assert_int_equal(sum, 5);
    assert_int_equal(comm_all_gather_control(group, &sum, sizeof sum, &all, &error), SIFR_OK);
    assert_int_equal(all, 5);
    assert_int_equal(comm_broadcast(group, 0, &sum, sizeof sum, &error), SIFR_OK);
    assert_int_equal(comm_broadcast(group, 1, &sum, sizeof sum, &error), SIFR_FAILED);
    assert_int_equal(comm_agree(group, "config", 1, &error), SIFR_OK);
    for (int i = 0; i < COMM_OPERATIONS; i++) {
        assert_int_equal(comm_get_ledger(group)->operation[i].bytes, 0);
        assert_int_equal(comm_get_ledger(group)->operation[i].calls, all_heard.calls[i]);
    }
    assert_int_equal(all_heard.calls[COMM_CONTROL], 4);
    assert_int_equal(all_heard.wrong, 0);
    comm_close(group);
    comm_close(NULL);
}

static void test_launchers(void **state) {
    (void)state;
    static const char *const names[] = {"OMPI_COMM_WORLD_SIZE",
                                        "PMI_SIZE",
                                        "MV2_COMM_WORLD_SIZE",
                                        "OMPI_COMM_WORLD_LOCAL_SIZE",
                                        "SLURM_NTASKS",
                                        "SLURM_PROCID",
                                        "SLURM_STEP_ID",
                                        "SLURM_STEP_NUM_TASKS",
                                        "PMIX_RANK",
                                        "PMI_RANK",
                                        "RANK",
                                        "LOCAL_RANK",
                                        "WORLD_SIZE",
                                        "TORCHELASTIC_RUN_ID"};
    int ranks = -1;
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) unsetenv(names[i]);
    assert_false(comm_under_launcher(&ranks));
    assert_int_equal(ranks, 1);
    assert_int_equal(comm_launcher_local_ranks(), 0);
    setenv("SLURM_NTASKS", "4", 1), setenv("SLURM_PROCID", "0", 1); /* a batch script */
    assert_false(comm_under_launcher(&ranks));
    setenv("SLURM_STEP_ID", "0", 1), setenv("SLURM_STEP_NUM_TASKS", "4", 1); /* srun */
    bool alone = comm_mpi_chosen() == COMM_OPEN_MPI;                         /* without PMIx */
    assert_int_equal(comm_under_launcher(&ranks), !alone);
    assert_int_equal(comm_foreign_launcher(&ranks) != NULL, alone);
    setenv("PMIX_RANK", "0", 1); /* srun --mpi=pmix */
    assert_true(comm_under_launcher(&ranks));
    assert_int_equal(ranks, 4);
    assert_null(comm_foreign_launcher(&ranks));
    unsetenv("SLURM_STEP_ID");
    setenv("RANK", "1", 1), setenv("LOCAL_RANK", "1", 1), setenv("WORLD_SIZE", "8", 1);
    assert_non_null(comm_foreign_launcher(&ranks));
    assert_int_equal(ranks, 8);
    setenv("TORCHELASTIC_RUN_ID", "none", 1);
    assert_string_equal(comm_foreign_launcher(&ranks), "torchrun");
    setenv("PMI_SIZE", "1", 1);
    assert_true(comm_under_launcher(&ranks));
    assert_int_equal(ranks, 1);
    assert_null(comm_foreign_launcher(&ranks));
    setenv("OMPI_COMM_WORLD_SIZE", "3", 1), setenv("OMPI_COMM_WORLD_LOCAL_SIZE", "2", 1);
    assert_true(comm_under_launcher(&ranks));
    assert_int_equal(ranks, 3);
    assert_int_equal(comm_launcher_local_ranks(), 2);
}

/* --- under mpirun --- */

static comm_group *group;
static int32_t rank, size;
static sifr_error error;
static uint64_t expected_bytes[COMM_OPERATIONS], expected_crossed[COMM_OPERATIONS];
static int64_t expected_calls[COMM_OPERATIONS];
static int64_t order_matters; /* elements whose sum from left to right has other bits */

static void fail_at(int at, const char *what) {
    fprintf(stderr, "rank %d of %d: line %d: %s: %s\n", (int)rank, (int)size, at, what,
            error.message);
    _exit(9);
}

#define CHECK(condition)                                                                           \
    do {                                                                                           \
        if (!(condition)) fail_at(__LINE__, #condition);                                           \
    } while (0)
#define TRY(call) CHECK((call) == SIFR_OK)

/* Operands lie in memory that the others can map, or in this rank's own. */
static char *window;
static int64_t window_used;

enum { WINDOW = 64 << 20 };

/* In place of the C library's: a system that forbids it. */
static int forbidden;

int memfd_create(const char *name, unsigned flags) {
    if (!forbidden) return (int)syscall(SYS_memfd_create, name, flags);
    errno = EPERM;
    return -1;
}

static void open_window(int used, int named) {
    int file = memfd_create("test", MFD_CLOEXEC);
    CHECK(file >= 0 && ftruncate(file, WINDOW) == 0);
    char *block = mmap(NULL, WINDOW, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    CHECK(block != MAP_FAILED);
    TRY(comm_open_window(group, block, WINDOW, named ? file : -1, &error));
    close(file);
    if (used) window = block;
}

static void *take(int64_t bytes) {
    void *block = window ? window + window_used : malloc((size_t)bytes + 1);
    CHECK(block);
    if (window) window_used += (bytes + 64) / 64 * 64;
    CHECK(window_used <= WINDOW);
    memset(block, 0xa5, (size_t)bytes);
    return block;
}

static void give(void *block) {
    if (!window) free(block);
}

/* What others sent: `theirs` bytes from each, of whose hosts this rank knows how many are its own.
 * Two levels: rank i of each other host sends once, for all of its host. */
static int32_t local_ranks, two_levels;

static void expect_far(comm_operation operation, uint64_t theirs, int32_t far) {
    expected_calls[operation]++;
    expected_bytes[operation] += (uint64_t)(size - 1) * theirs;
    expected_crossed[operation] += (uint64_t)far * theirs;
}

static void expect(comm_operation operation, uint64_t theirs) {
    bool whole = operation != COMM_CONTROL && two_levels;
    expect_far(operation, theirs, whole ? size / local_ranks - 1 : size - local_ranks);
}

static void expect_broadcast(int32_t root, uint64_t bytes) {
    expected_calls[COMM_CONTROL]++;
    expected_bytes[COMM_CONTROL] += rank == root ? 0 : bytes;
    expected_crossed[COMM_CONTROL] += root / local_ranks == rank / local_ranks ? 0 : bytes;
}

static unsigned char byte_of(int32_t r, int64_t i) {
    return (unsigned char)(base_philox(3, (uint64_t)i, (uint64_t)r).v[0]);
}

static void check_gather(int64_t bytes, int in_place) {
    unsigned char *whole = take(size * bytes), *apart = take(bytes);
    unsigned char *slice = in_place ? whole + rank * bytes : apart;
    comm_handle handle;
    for (int64_t i = 0; i < bytes; i++) slice[i] = byte_of(rank, i);
    TRY(comm_start_all_gather(group, slice, bytes, whole, &handle, &error));
    TRY(comm_wait(handle, &error));
    expect(COMM_ALL_GATHER, (uint64_t)bytes);
    for (int32_t r = 0; r < size; r++)
        for (int64_t i = 0; i < bytes; i++) CHECK(whole[r * bytes + i] == byte_of(r, i));
    give(whole);
    give(apart);
}

static float *make_whole(int64_t elements) {
    float *whole = take(size * elements * 4);
    for (int64_t i = 0; i < size * elements; i++) whole[i] = value(rank, i);
    return whole;
}

static void check_slice(const float *slice, int64_t elements) {
    for (int64_t i = 0; i < elements; i++) {
        int64_t at = rank * elements + i;
        CHECK(same_bits(slice[i], tree(0, size, at)));
        order_matters += !same_bits(slice[i], line(size, at));
    }
}

static void check_reduce(int64_t elements, int in_place) {
    float *whole = make_whole(elements), *apart = take(elements * 4);
    float *slice = in_place ? whole + rank * elements : apart;
    comm_handle handle;
    TRY(comm_start_reduce_scatter(group, whole, elements, slice, &handle, &error));
    TRY(comm_wait(handle, &error));
    expect(COMM_REDUCE_SCATTER, (uint64_t)elements * 4);
    check_slice(slice, elements);
    for (int64_t i = 0; i < size * elements; i++)
        if (slice == apart || i / elements != rank) CHECK(same_bits(whole[i], value(rank, i)));
    give(whole);
    give(apart);
}

/* Whole numbers that 16 bits hold: the sum is exact whatever its order. */
static void check_narrow(base_dtype type, int64_t elements) {
    uint16_t *whole = take(size * elements * 2);
    float *slice = take(elements * 4);
    comm_handle handle;
    for (int64_t i = 0; i < size * elements; i++) {
        float number = (float)((i * 7 + rank * 3) % 100);
        whole[i] = type == BASE_FP16 ? base_half_from_float(number)
                                     : (uint16_t)(base_float_to_bits(number) >> 16);
    }
    TRY(comm_start_reduce_typed(group, whole, type, BASE_FP32, elements, slice, &handle, &error));
    TRY(comm_wait(handle, &error));
    expect_far(COMM_REDUCE_SCATTER, (uint64_t)elements * 2, size - local_ranks);
    for (int64_t i = 0; i < elements; i++) {
        float sum = 0;
        for (int32_t r = 0; r < size; r++)
            sum += (float)(((rank * elements + i) * 7 + r * 3) % 100);
        CHECK(slice[i] == sum);
    }
    give(whole);
    give(slice);
}

static float narrow_value(base_dtype type, float number) {
    return type == BASE_FP16 ? base_half_to_float(base_half_from_float(number))
                             : base_bf16_to_float(base_bf16_from_float(number));
}

/* The rule with each sum rounded. */
static float narrow_tree(base_dtype type, int32_t first, int32_t count, int64_t i) {
    if (count % 2 == 0)
        return narrow_value(type, narrow_tree(type, first, count / 2, i) +
                                      narrow_tree(type, first + count / 2, count / 2, i));
    float sum = narrow_value(type, value(first, i));
    for (int32_t r = first + 1; r < first + count; r++)
        sum = narrow_value(type, sum + narrow_value(type, value(r, i)));
    return sum;
}

/* Sums in the 16 bits of what is added. */
static void check_rounded(base_dtype type, int64_t elements, bool in_place) {
    uint16_t *whole = take(size * elements * 2), *apart = take(elements * 2);
    uint16_t *slice = in_place ? whole + rank * elements : apart;
    comm_handle handle;
    for (int64_t i = 0; i < size * elements; i++)
        whole[i] = type == BASE_FP16 ? base_half_from_float(value(rank, i))
                                     : base_bf16_from_float(value(rank, i));
    TRY(comm_start_reduce_typed(group, whole, type, type, elements, slice, &handle, &error));
    TRY(comm_wait(handle, &error));
    expect_far(COMM_REDUCE_SCATTER, (uint64_t)elements * 2, size - local_ranks);
    for (int64_t i = 0; i < elements; i++) {
        float have =
            type == BASE_FP16 ? base_half_to_float(slice[i]) : base_bf16_to_float(slice[i]);
        CHECK(same_bits(have, narrow_tree(type, 0, size, rank * elements + i)));
    }
    give(whole);
    give(apart);
}

/* Several under way, waited for from the last to the first; one too many is refused. */
static void check_line(void) {
    enum { COUNT = COMM_LINE / 2, ELEMENTS = 1500 };
    comm_handle gathers[COUNT], reductions[COUNT], more;
    float *wholes[COUNT], *slices[COUNT], *gathered[COUNT];
    for (int i = 0; i < COUNT; i++) {
        wholes[i] = make_whole(ELEMENTS);
        slices[i] = take(ELEMENTS * 4);
        gathered[i] = take(size * ELEMENTS * 4);
        TRY(comm_start_reduce_scatter(group, wholes[i], ELEMENTS, slices[i], &reductions[i],
                                      &error));
        TRY(comm_start_all_gather(group, slices[i], ELEMENTS * 4, gathered[i], &gathers[i],
                                  &error));
        expect(COMM_REDUCE_SCATTER, ELEMENTS * 4);
        expect(COMM_ALL_GATHER, ELEMENTS * 4);
    }
    CHECK(comm_start_all_gather(group, slices[0], 4, gathered[0], &more, &error) == SIFR_FAILED);
    for (int i = COUNT - 1; i >= 0; i--) {
        TRY(comm_wait(gathers[i], &error));
        TRY(comm_wait(reductions[i], &error));
        for (int64_t k = 0; k < size * ELEMENTS; k++)
            CHECK(same_bits(gathered[i][k], tree(0, size, k)));
        give(wholes[i]);
        give(slices[i]);
        give(gathered[i]);
    }
    CHECK(comm_wait(gathers[0], &error) == SIFR_FAILED);
}

enum { SUMS = 64 }; /* values of a comm_sum that travel at a time */

static bool many; /* ranks exchange as large groups do */

/* Many ranks add on the way: each pair of them exchanges its sums. */
static void expect_sum(uint64_t bytes) {
    int32_t power = 1, received = 0;
    if (!many) {
        expect(COMM_CONTROL, bytes);
        return;
    }
    while (power * 2 <= size) power *= 2, received++;
    int32_t rest = size - power;
    if (rank < 2 * rest) received = rank % 2 ? 1 : received + 1;
    expected_calls[COMM_CONTROL]++;
    expected_bytes[COMM_CONTROL] += (uint64_t)received * bytes;
}

static void check_control(void) {
    enum { VALUES = 150 };
    int64_t values[VALUES], mine[3] = {rank, rank * 2, INT64_MIN + rank}, *all;
    char *text = take(5000);
    for (int i = 0; i < VALUES; i++) values[i] = (int64_t)1000000007 * i * (rank + 1);
    TRY(comm_sum(group, values, VALUES, &error));
    for (int i = 0; i < VALUES; i++)
        CHECK(values[i] == (int64_t)1000000007 * i * size * (size + 1) / 2);
    for (int i = 0; i < 3; i++) expect_sum(8 * (i < 2 ? SUMS : VALUES % SUMS));
    all = take(size * (int64_t)sizeof mine);
    TRY(comm_all_gather_control(group, mine, sizeof mine, all, &error));
    for (int32_t r = 0; r < size; r++)
        CHECK(all[3 * r] == r && all[3 * r + 1] == 2 * r && all[3 * r + 2] == INT64_MIN + r);
    expect(COMM_CONTROL, sizeof mine);
    give(all);
    for (int32_t root = 0; root < 2 * size; root++) {
        int64_t bytes = root < size ? 5000 : 50; /* too long for a seat, and short enough */
        memset(text, rank + 1, (size_t)bytes);
        TRY(comm_broadcast(group, root % size, text, bytes, &error));
        CHECK(text[0] == root % size + 1 && text[bytes - 1] == root % size + 1);
        expect_broadcast(root % size, (uint64_t)bytes);
    }
    give(text);
    TRY(comm_agree(group, "config", 42, &error));
    expect(COMM_CONTROL, 8);
}

static heard seen;

static void check_ledger(void) {
    const comm_ledger *ledger = comm_get_ledger(group);
    for (int i = 0; i < COMM_OPERATIONS; i++) {
        CHECK(ledger->operation[i].bytes == expected_bytes[i]);
        if (window || !two_levels) CHECK(ledger->operation[i].crossed == expected_crossed[i]);
        CHECK(ledger->operation[i].calls == expected_calls[i]);
        CHECK(ledger->operation[i].seconds >= 0);
        CHECK(seen.bytes[i] == expected_bytes[i]);
        CHECK(seen.calls[i] == expected_calls[i]);
    }
    CHECK(seen.wrong == 0);
    comm_watch(group, NULL, NULL);
}

/* A slow transport and other work at the same time take as long as the longer of the two. Other
 * work on the machine may disturb a measurement, but hardly each of five. */
static void check_overlap(void) {
    enum { COUNT = 4, TRIES = 5 };
    const double delay = 0.1;
    char whole[64 * 8];
    comm_handle handles[COUNT];
    int64_t longer = size; /* the ranks of which it took longer: all of them try as often */
    CHECK(size <= 64);
    for (int i = 0; i < TRIES && longer; i++) {
        comm_slow_down(group, delay, 0);
        double begun = base_seconds();
        for (int k = 0; k < COUNT; k++)
            TRY(comm_start_all_gather(group, whole + rank * 8, 8, whole, &handles[k], &error));
        usleep((useconds_t)(1e6 * delay * COUNT));
        for (int k = 0; k < COUNT; k++) TRY(comm_wait(handles[k], &error));
        double seconds = base_seconds() - begun;
        comm_slow_down(group, 0, 0);
        CHECK(seconds >= delay * COUNT);
        longer = seconds >= 1.6 * delay * COUNT;
        TRY(comm_sum(group, &longer, 1, &error));
    }
    CHECK(longer == 0);
}

static void exchange(void) {
    int64_t piece = size > 1 ? ((int64_t)1 << 16) / (size - 1) : 1000;
    const int64_t sizes[] = {0, 1, 7, 1024, 4099, 2 * piece + 5};
    comm_watch(group, hear, &seen);
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        for (int in_place = 0; in_place < 2; in_place++) {
            window_used = 0;
            check_gather(sizes[i], in_place);
            check_reduce(sizes[i], in_place);
            check_narrow(in_place ? BASE_FP16 : BASE_BF16, sizes[i]);
            check_rounded(BASE_FP16, sizes[i], in_place);
            check_rounded(BASE_BF16, sizes[i], in_place);
        }
    }
    check_line();
    check_control();
    check_ledger();
    CHECK(size < 4 || size % 2 || order_matters > 100);
    check_overlap();
    if (rank == 0)
        printf("%d ranks, %d on a host, memory %s: %llu bytes gathered, %llu reduced, %llu "
               "control\n",
               (int)size, (int)local_ranks, comm_shares_memory(group) ? "shared" : "apart",
               (unsigned long long)expected_bytes[COMM_ALL_GATHER],
               (unsigned long long)expected_bytes[COMM_REDUCE_SCATTER],
               (unsigned long long)expected_bytes[COMM_CONTROL]);
}

/* What the program does when the library fails. */
static int leave(sifr_status status) {
    if (status != SIFR_OK) fprintf(stderr, "rank %d: %s\n", (int)rank, error.message);
    comm_close(group);
    return status;
}

static void print_line(void *user, sifr_log_level level, const char *text) {
    (void)user, (void)level;
    fprintf(stderr, "log: %s\n", text);
}

/* `how`: a word of mpi, many, windows, mixed, unnamed, forbidden, and a digit for ranks a host, or
 * cyclic and a digit for hosts; NULL: as a program opens. */
static sifr_status open_group(const char *how) {
    static const sifr_log log = {.write = print_line};
    comm_options options = {.log = &log};
    if (!how) how = "";
    size_t digit = strcspn(how, "0123456789");
    bool cyclic = strncmp(how, "cyclic", 6) == 0;
    *(cyclic ? &options.cyclic_hosts : &options.ranks_a_host) = atoi(how + digit);
    many = strncmp(how, "many", 4) == 0;
    options.only_mpi = many || strncmp(how, "mpi", 3) == 0;
    options.direct = many ? 1 : 0;
    forbidden = strncmp(how, "forbidden", 9) == 0;
    sifr_status status = comm_open(COMM_MPI, &options, &group, &error);
    if (status != SIFR_OK) return status;
    rank = comm_rank(group), size = comm_size(group);
    local_ranks = comm_local_size(group);
    two_levels = comm_shares_memory(group) && local_ranks < size;
    if (cyclic || strncmp(how, "windows", 7) == 0) open_window(1, 1);
    if (strncmp(how, "mixed", 5) == 0) open_window(rank % 2, 1);
    if (strncmp(how, "unnamed", 7) == 0) open_window(1, rank != 1);
    return SIFR_OK;
}

static int run_ranks(const char *what, const char *how) {
    char whole[512] = {0};
    int64_t one = 1;
    comm_handle handle;
    sifr_status status = open_group(how);
    if (status != SIFR_OK) {
        fprintf(stderr, "%s\n", error.message);
        return status;
    }
    int last = rank == size - 1;
    if (strcmp(what, "exchange") == 0) {
        exchange();
        return leave(SIFR_OK);
    }
    if (strcmp(what, "differ") == 0)
        return leave(comm_agree(group, "config", last ? 43 : 42, &error));
    TRY(comm_sum(group, &one, 1, &error));
    if (last && strcmp(what, "fail") == 0) {
        snprintf(error.message, sizeof error.message, "its own reason");
        return leave(SIFR_NO_MEMORY);
    }
    if (last && strcmp(what, "exit") == 0) _exit(5);
    if (last && strcmp(what, "killed") == 0) raise(SIGKILL);
    if (last && strcmp(what, "stall") == 0) sleep(60);
    if (strcmp(what, "stall") == 0) comm_set_timeout(group, 1);
    comm_set_label(group, &(comm_label){.step = 7, .noun = "unit", .number = 3});
    TRY(comm_start_all_gather(group, whole + rank * 4, 4, whole, &handle, &error));
    return leave(comm_wait(handle, &error));
}

int main(int argc, char **argv) {
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_tree),
        cmocka_unit_test(test_self),
        cmocka_unit_test(test_launchers),
    };
    if (argc >= 2) return run_ranks(argv[1], argv[2]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
