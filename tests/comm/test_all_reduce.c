/* All-reduces of FP32, BF16 and FP16: alone, of ranks that are threads, and under mpirun
 * (test_all_to_all_mpi.sh) with a word, in windows, by messages and both, in the lane of bulk and
 * in the near one: the sums of the tree, to the bit, rounded once; what is counted.
 * each MPI */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>
#include <math.h>
#include <pthread.h>

#include "base/half.h"
#include "base/random.h"
#include "support/comm_threads.h"

enum { WINDOW = 16 << 20 };

typedef struct member {
    comm_threads *world;
    comm_group *group;
    int32_t rank, size;
    char *window; /* where its operands lie; NULL: anywhere */
    int64_t order_matters, once_matters;
    sifr_error error;
} member;

static void fail_at(const member *m, int at, const char *what) {
    fprintf(stderr, "rank %d of %d: line %d: %s: %s\n", (int)m->rank, (int)m->size, at, what,
            m->error.message);
    _exit(9);
}

#define CHECK(condition)                                                                           \
    do {                                                                                           \
        if (!(condition)) fail_at(m, __LINE__, #condition);                                        \
    } while (0)
#define TRY(call) CHECK((call) == SIFR_OK)

static float round_to(base_dtype type, float value) {
    if (type == BASE_FP16) return base_half_to_float(base_half_from_float(value));
    return type == BASE_BF16 ? base_bf16_to_float(base_bf16_from_float(value)) : value;
}

/* Magnitudes from 2^-6 to 2^6: nearly every order of adding gives other bits in FP32. */
static float value(base_dtype type, int32_t rank, int64_t i) {
    base_random4 r = base_philox(7, (uint64_t)i, (uint64_t)rank);
    return round_to(type, ldexpf(base_uniform(r.v[0]) - 0.5f, (int)(r.v[1] % 13) - 6));
}

/* The rule; `each`: the type to which every sum is rounded. */
static float tree(base_dtype type, base_dtype each, int32_t first, int32_t count, int64_t i) {
    if (count % 2 == 0)
        return round_to(each, tree(type, each, first, count / 2, i) +
                                  tree(type, each, first + count / 2, count / 2, i));
    float sum = value(type, first, i);
    for (int32_t r = first + 1; r < first + count; r++)
        sum = round_to(each, sum + value(type, r, i));
    return sum;
}

static float line(base_dtype type, int32_t count, int64_t i) {
    float sum = value(type, 0, i);
    for (int32_t r = 1; r < count; r++) sum += value(type, r, i);
    return sum;
}

static float get(base_dtype type, const void *values, int64_t i) {
    if (type == BASE_FP32) return ((const float *)values)[i];
    uint16_t half = ((const uint16_t *)values)[i];
    return type == BASE_FP16 ? base_half_to_float(half) : base_bf16_to_float(half);
}

static void put(base_dtype type, void *values, int64_t i, float number) {
    if (type == BASE_FP32)
        ((float *)values)[i] = number;
    else
        ((uint16_t *)values)[i] =
            type == BASE_FP16 ? base_half_from_float(number) : base_bf16_from_float(number);
}

static void check_sum(member *m, const void *values, base_dtype type, int64_t elements) {
    for (int64_t i = 0; i < elements; i++) {
        float have = get(type, values, i), exact = tree(type, BASE_FP32, 0, m->size, i);
        float want = round_to(type, exact);
        CHECK(memcmp(&have, &want, sizeof want) == 0);
        m->order_matters += line(type, m->size, i) != exact;
        m->once_matters += tree(type, type, 0, m->size, i) != want;
    }
}

/* Two in progress at a time; in parts that fit into a slot, and that need several pieces. */
static void check_type(member *m, base_dtype type) {
    const int64_t lengths[] = {0, 1, 3, 40, 1000, m->world ? 900 : 140000 / m->size};
    enum { LENGTHS = sizeof lengths / sizeof *lengths };
    uint64_t before = comm_get_ledger(m->group)->operation[COMM_ALL_REDUCE].bytes, bytes = 0;
    for (int i = 0; i + 1 < LENGTHS; i += 2) {
        void *values[2];
        comm_handle handles[2];
        for (int k = 0; k < 2; k++) {
            int64_t elements = lengths[i + k] * m->size;
            values[k] = m->window ? m->window + k * (WINDOW / 2) : malloc((size_t)elements * 4 + 1);
            for (int64_t j = 0; j < elements; j++) put(type, values[k], j, value(type, m->rank, j));
            TRY(comm_start_all_reduce(m->group, values[k], type, elements, &handles[k], &m->error));
            bytes += 2 * (uint64_t)lengths[i + k] * (uint64_t)base_dtype_bytes(type);
        }
        for (int k = 1; k >= 0; k--) {
            TRY(comm_wait(handles[k], &m->error));
            check_sum(m, values[k], type, lengths[i + k] * m->size);
            if (!m->window) free(values[k]);
        }
    }
    CHECK(comm_get_ledger(m->group)->operation[COMM_ALL_REDUCE].bytes ==
          before + bytes * (uint64_t)(m->size - 1));
}

static void check_all(member *m) {
    comm_handle handle;
    check_type(m, BASE_FP32);
    check_type(m, BASE_BF16);
    check_type(m, BASE_FP16);
    CHECK(comm_get_ledger(m->group)->operation[COMM_ALL_REDUCE].calls == 3 * 6);
    CHECK(m->size < 4 || m->size % 2 || m->order_matters > 200);
    CHECK(m->size < 3 || m->once_matters > 200);
    if (m->size == 1) return;
    CHECK(comm_start_all_reduce(m->group, NULL, BASE_FP32, m->size + 1, &handle, &m->error) ==
          SIFR_FAILED);
    CHECK(strstr(m->error.message, "elements cannot be cut among"));
}

/* --- threads --- */

static void *take_part(void *argument) {
    member *m = argument;
    m->group = comm_threads_group(m->world, m->rank);
    check_all(m);
    comm_close(m->group);
    return NULL;
}

static void test_threads(void **state) {
    (void)state;
    for (int32_t size = 1; size <= 8; size++) {
        member all[8] = {0};
        pthread_t threads[8];
        comm_threads *world = comm_threads_create(size);
        for (int32_t r = 0; r < size; r++) {
            all[r] = (member){.world = world, .rank = r, .size = size};
            assert_int_equal(pthread_create(&threads[r], NULL, take_part, &all[r]), 0);
        }
        for (int32_t r = 0; r < size; r++) pthread_join(threads[r], NULL);
        comm_threads_free(world);
    }
}

static void test_alone(void **state) {
    (void)state;
    member one = {.size = 1}, *m = &one;
    TRY(comm_open_self(&m->group, &m->error));
    check_all(m);
    comm_close(m->group);
}

/* --- under mpirun --- */

static void open_window(member *m, bool used) {
    int file = memfd_create("test", MFD_CLOEXEC);
    CHECK(file >= 0 && ftruncate(file, WINDOW) == 0);
    void *block = mmap(NULL, WINDOW, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    CHECK(block != MAP_FAILED);
    TRY(comm_open_window(m->group, block, WINDOW, file, &m->error));
    close(file);
    if (used) m->window = block;
}

/* `how`: own, windows, mixed, mpi, or many (ranks exchange as large groups do), and a digit for
 * ranks a host. */
static void run(member *m, const char *how) {
    bool many = strncmp(how, "many", 4) == 0, mixed = strncmp(how, "mixed", 5) == 0;
    comm_options options = {.ranks_a_host = atoi(how + strcspn(how, "0123456789")),
                            .only_mpi = many || strncmp(how, "mpi", 3) == 0,
                            .direct = many};
    TRY(comm_open(COMM_MPI, &options, &m->group, &m->error));
    m->rank = comm_rank(m->group), m->size = comm_size(m->group);
    if (mixed || strncmp(how, "windows", 7) == 0) open_window(m, !mixed || m->rank != 1);
    check_all(m);
    uint64_t crossed = comm_get_ledger(m->group)->operation[COMM_ALL_REDUCE].crossed;
    CHECK((crossed > 0) == (comm_local_size(m->group) < m->size));
    member half = {.window = m->window};
    comm_part part = {"half", m->rank / 2, m->rank, COMM_NEAR, .peers = false};
    TRY(comm_split(m->group, &part, &half.group, &m->error));
    half.rank = comm_rank(half.group), half.size = comm_size(half.group);
    check_all(&half);
    comm_close(half.group);
    if (m->rank == 0) printf("%d ranks, %s: equal\n", (int)m->size, how);
    comm_close(m->group);
}

int main(int argc, char **argv) {
    static const struct CMUnitTest tests[] = {cmocka_unit_test(test_alone),
                                              cmocka_unit_test(test_threads)};
    static member m;
    if (argc < 2) return cmocka_run_group_tests(tests, NULL, NULL);
    run(&m, argv[1]);
    return 0;
}
