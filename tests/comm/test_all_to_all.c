/* All-to-alls with equal, unequal and no parts: alone, of ranks that are threads, and under mpirun
 * (test_all_to_all_mpi.sh) with a word, in windows, by messages and both. What arrives and what is
 * counted, against what each rank works out for itself; and what happens when ranks name other
 * sizes, die or stall.
 * each MPI */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>
#include <pthread.h>

#include "support/comm_threads.h"

enum { MOST = 64, WINDOW = 16 << 20 }; /* ranks; bytes of a window */

/* A rank: what it does is checked without cmocka, since it may be a thread or a process. */
typedef struct member {
    comm_threads *world;
    comm_group *group;
    int32_t rank, size;
    char *window; /* where its operands lie; NULL: anywhere */
    int64_t used;
    uint64_t calls, bytes, crossed; /* expected ones */
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

static unsigned char byte_of(int32_t from, int32_t to, int64_t i) {
    uint32_t mixed = ((uint32_t)i + 1) * 2654435761U;
    return (unsigned char)((mixed >> 13) + (uint32_t)(37 * from + 101 * to));
}

/* How the parts of a call are cut. */
typedef struct cut {
    int64_t (*bytes)(int32_t from, int32_t to); /* of a part */
    bool gaps; /* runs lie apart, from the last rank to the first */
    bool same; /* each rank sends all others the same run */
} cut;

static int64_t nothing(int32_t from, int32_t to) {
    return 0 * (from + to);
}

static int64_t one_byte(int32_t from, int32_t to) {
    return 1 + 0 * (from + to);
}

static int64_t equal(int32_t from, int32_t to) {
    return 4096 + 0 * (from + to);
}

static int64_t unequal(int32_t from, int32_t to) {
    return (from * 7 + to * 3) % 5 * 1013;
}

static int64_t long_ones(int32_t from, int32_t to) {
    return from == to ? 5 : 100003 * (1 + (from + 2 * to) % 3);
}

static int64_t by_sender(int32_t from, int32_t to) {
    return 600 * from + 0 * to;
}

static int64_t to_first(int32_t from, int32_t to) {
    return to == 0 ? 3000 + from : 0;
}

static const cut cuts[] = {
    {nothing, false, false},  {one_byte, false, false}, {equal, false, false},
    {equal, true, false},     {unequal, false, false},  {unequal, true, false},
    {long_ones, true, false}, {by_sender, false, true}, {to_first, true, false}};
enum { CUTS = sizeof cuts / sizeof *cuts };

/* The runs that a rank sends, or those that it gets; returns the bytes of their buffer. */
static int64_t make_runs(const member *m, const cut *c, bool sent, comm_run *runs) {
    int64_t at = 0;
    for (int32_t i = 0; i < m->size; i++) {
        int32_t r = c->gaps ? m->size - 1 - i : i;
        runs[r].at = sent && c->same ? 0 : at;
        runs[r].bytes = sent ? c->bytes(m->rank, r) : c->bytes(r, m->rank);
        at += runs[r].bytes + (c->gaps ? 37 : 0);
    }
    return at;
}

static unsigned char *take(member *m, int64_t bytes) {
    unsigned char *block =
        m->window ? (unsigned char *)m->window + m->used : malloc((size_t)bytes + 1);
    if (m->window) m->used += (bytes + 64) / 64 * 64;
    CHECK(block && m->used <= WINDOW);
    memset(block, 0xa5, (size_t)bytes);
    return block;
}

static void give(const member *m, void *block) {
    if (!m->window) free(block);
}

/* A call in progress. */
typedef struct call {
    const cut *c;
    comm_run sent[MOST], received[MOST];
    int64_t out_bytes, in_bytes;
    unsigned char *from, *to;
    comm_handle handle;
} call;

static void start(member *m, const cut *c, call *k) {
    k->c = c;
    k->out_bytes = make_runs(m, c, true, k->sent);
    k->in_bytes = make_runs(m, c, false, k->received);
    k->from = take(m, k->out_bytes);
    k->to = take(m, k->in_bytes);
    for (int32_t r = 0; r < m->size; r++)
        for (int64_t i = 0; i < k->sent[r].bytes; i++)
            k->from[k->sent[r].at + i] = byte_of(m->rank, c->same ? 0 : r, i);
    TRY(comm_start_all_to_all(m->group, k->from, k->sent, k->to, k->received, &k->handle,
                              &m->error));
}

/* `local`: ranks a host, of consecutive ranks. */
static void finish(member *m, call *k, int32_t local) {
    int64_t whole = 0, kept = 0;
    TRY(comm_wait(k->handle, &m->error));
    m->calls++;
    for (int32_t r = 0; r < m->size; r++) {
        const comm_run *run = &k->received[r];
        for (int64_t i = 0; i < run->bytes; i++) {
            CHECK(k->to[run->at + i] == byte_of(r, k->c->same ? 0 : m->rank, i));
            k->to[run->at + i] = 0xa5;
        }
        whole += run->bytes;
        if (r == m->rank) kept = run->bytes;
        if (r / local != m->rank / local) m->crossed += (uint64_t)run->bytes;
    }
    m->bytes += (uint64_t)(whole - kept);
    bool last = m->size > 1; /* alone it was over, and counted, when it was started */
    if (last) CHECK(comm_last(m->group)->bytes == whole);
    if (last) CHECK(comm_last(m->group)->delivered == (uint64_t)(whole - kept));
    if (last && k->c->bytes == equal) /* (N - 1) / N of all */
        CHECK(comm_last(m->group)->delivered * (uint64_t)m->size ==
              (uint64_t)whole * (uint64_t)(m->size - 1));
    for (int64_t i = 0; i < k->in_bytes; i++) CHECK(k->to[i] == 0xa5); /* no byte beside the runs */
    give(m, k->from);
    give(m, k->to);
}

/* One by one, then all in progress beside other collectives, and waited for from the last one on.
 */
static void check_cuts(member *m) {
    int32_t local = comm_local_size(m->group);
    static _Thread_local call all[CUTS];
    comm_handle others[CUTS];
    unsigned char *wholes[CUTS];
    for (int i = 0; i < CUTS; i++) {
        m->used = 0;
        start(m, &cuts[i], &all[0]);
        finish(m, &all[0], local);
    }
    m->used = 0;
    for (int i = 0; i < CUTS; i++) {
        start(m, &cuts[i], &all[i]);
        wholes[i] = take(m, m->size * 1000);
        memset(wholes[i] + m->rank * 1000, m->rank + i, 1000);
        TRY(comm_start_control(m->group, wholes[i] + m->rank * 1000, 1000, wholes[i], &others[i],
                               &m->error));
    }
    for (int i = CUTS - 1; i >= 0; i--) {
        TRY(comm_wait(others[i], &m->error));
        for (int32_t r = 0; r < m->size; r++) CHECK(wholes[i][r * 1000 + 999] == r + i);
        give(m, wholes[i]);
        finish(m, &all[i], local);
    }
    const comm_ledger *ledger = comm_get_ledger(m->group);
    CHECK(ledger->operation[COMM_ALL_TO_ALL].calls == (int64_t)m->calls);
    CHECK(ledger->operation[COMM_ALL_TO_ALL].bytes == m->bytes);
    CHECK(ledger->operation[COMM_ALL_TO_ALL].crossed == m->crossed);
}

/* --- threads --- */

static void *take_part(void *argument) {
    member *m = argument;
    m->group = comm_threads_group(m->world, m->rank);
    check_cuts(m);
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
    comm_run two[2] = {{0, 4}, {0, 3}};
    char from[4] = "abc", to[4] = "---";
    comm_handle handle;
    TRY(comm_open_self(&m->group, &m->error));
    check_cuts(m);
    assert_int_equal(
        comm_start_all_to_all(m->group, from, &two[0], to, &two[1], &handle, &m->error),
        SIFR_FAILED);
    assert_string_equal(m->error.message,
                        "all_to_all: 3 bytes are expected from rank 0, but it sends 4");
    assert_string_equal(to, "---");
    comm_close(m->group);
}

/* --- under mpirun --- */

static void open_window(member *m) {
    int file = memfd_create("test", MFD_CLOEXEC);
    CHECK(file >= 0 && ftruncate(file, WINDOW) == 0);
    void *block = mmap(NULL, WINDOW, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    CHECK(block != MAP_FAILED);
    TRY(comm_open_window(m->group, block, WINDOW, file, &m->error));
    close(file);
    m->window = block;
}

/* `how`: own (memory), windows, mixed (the operands of some ranks lie in windows) or mpi, and a
 * digit for ranks a host. */
static void open_group(member *m, const char *how) {
    comm_options options = {.ranks_a_host = atoi(how + strcspn(how, "0123456789")),
                            .only_mpi = strncmp(how, "mpi", 3) == 0};
    TRY(comm_open(COMM_MPI, &options, &m->group, &m->error));
    m->rank = comm_rank(m->group), m->size = comm_size(m->group);
    CHECK(m->size <= MOST);
    bool opens = strncmp(how, "windows", 7) == 0 || strncmp(how, "mixed", 5) == 0;
    if (opens) open_window(m);
    if (strncmp(how, "mixed", 5) == 0 && m->rank % 3 == 1) m->window = NULL;
}

/* Also by halves of the ranks, in lanes of their own. */
static void exchange(member *m, const char *how) {
    check_cuts(m);
    member half = {.window = m->window};
    comm_part part = {"half", m->rank / 2, m->rank, COMM_NEAR, .peers = false};
    TRY(comm_split(m->group, &part, &half.group, &m->error));
    half.rank = comm_rank(half.group), half.size = comm_size(half.group);
    check_cuts(&half);
    comm_close(half.group);
    if (m->rank == 0)
        printf("%d ranks, %d on a host, %s: %llu bytes, %llu from other hosts\n", (int)m->size,
               (int)comm_local_size(m->group), how, (unsigned long long)m->bytes,
               (unsigned long long)m->crossed);
    comm_close(m->group);
}

/* One part that takes several messages, from rank 0 to the last one. */
static void send_long(member *m, int64_t bytes) {
    comm_run sent[MOST] = {{0}}, received[MOST] = {{0}};
    bool first = m->rank == 0, last = m->rank == m->size - 1;
    comm_handle handle;
    char *data =
        mmap(NULL, (size_t)bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(data != MAP_FAILED && m->size > 1);
    if (first) sent[m->size - 1].bytes = bytes;
    if (last) received[0].bytes = bytes;
    for (int64_t i = 0; i < bytes && first; i += 4093) data[i] = (char)(i % 251 + 1);
    TRY(comm_start_all_to_all(m->group, data, sent, data, received, &handle, &m->error));
    TRY(comm_wait(handle, &m->error));
    for (int64_t i = 0; i < bytes && last; i += 4093) CHECK(data[i] == (char)(i % 251 + 1));
    CHECK(comm_last(m->group)->delivered == (last ? (uint64_t)bytes : 0));
    if (last) printf("%lld bytes came\n", (long long)bytes);
    comm_close(m->group);
}

/* The last rank does something else; what the others say and how they end. */
static int part_badly(member *m, const char *what) {
    bool last = m->rank == m->size - 1;
    static call k;
    int64_t one = 1;
    TRY(comm_sum(m->group, &one, 1, &m->error));
    if (last && strcmp(what, "killed") == 0) raise(SIGKILL);
    if (last && strcmp(what, "stall") == 0) sleep(60);
    if (strcmp(what, "stall") == 0) comm_set_timeout(m->group, 1);
    comm_set_label(m->group, &(comm_label){.step = 7, .noun = "unit", .number = 3});
    make_runs(m, &cuts[3], true, k.sent);
    make_runs(m, &cuts[3], false, k.received);
    k.from = take(m, 4 << 20), k.to = take(m, 4 << 20);
    if (last && strcmp(what, "shorter") == 0) k.sent[0].bytes--;
    if (last && strcmp(what, "longer") == 0) k.sent[0].bytes++;
    TRY(comm_start_all_to_all(m->group, k.from, k.sent, k.to, k.received, &k.handle, &m->error));
    sifr_status status = comm_wait(k.handle, &m->error);
    if (status != SIFR_OK) fprintf(stderr, "rank %d: %s\n", (int)m->rank, m->error.message);
    comm_close(m->group);
    return status;
}

int main(int argc, char **argv) {
    static const struct CMUnitTest tests[] = {cmocka_unit_test(test_alone),
                                              cmocka_unit_test(test_threads)};
    static member m;
    if (argc < 3) return cmocka_run_group_tests(tests, NULL, NULL);
    open_group(&m, argv[2]);
    if (strcmp(argv[1], "long") == 0) return send_long(&m, atoll(argv[3])), 0;
    if (strcmp(argv[1], "exchange") != 0) return part_badly(&m, argv[1]);
    exchange(&m, argv[2]);
    return 0;
}
