/* Groups of some of a group's ranks: rows and columns of a mesh of ranks, whose collectives are in
 * progress side by side. Alone and with ranks as threads (in test_tsan); under mpirun
 * (test_split_mpi.sh) with words: the mesh's columns, how ranks see each other, what goes wrong.
 * each MPI */
#include <pthread.h>
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

#include "base/random.h"
#include "comm/comm.h"
#include "device/tree_sum.h"
#include "support/comm_threads.h"

enum { MOST = 16, ELEMENTS = 1500, ROUNDS = 6 };

/* A rank's test: its groups, and memory for their operands. */
typedef struct mesh {
    comm_group *world, *row, *column;
    int32_t columns;
    float *memory; /* of operands: a place for each round of each group */
    sifr_error error;
} mesh;

static void fail_at(const mesh *m, int line, const char *what) {
    fprintf(stderr, "rank %d of %d: line %d: %s: %s\n", (int)comm_rank(m->world),
            (int)comm_size(m->world), line, what, m->error.message);
    _exit(9);
}

#define CHECK(condition)                                                                           \
    do {                                                                                           \
        if (!(condition)) fail_at(m, __LINE__, #condition);                                        \
    } while (0)
#define TRY(call) CHECK((call) == SIFR_OK)

/* What a rank of all gives in a round of a group: nearly every order of adding has other bits. */
static float value(int32_t world, int round, int64_t i) {
    base_random4 r = base_philox(7 + (uint64_t)round, (uint64_t)i, (uint64_t)world);
    return ldexpf(base_uniform(r.v[0]) - 0.5f, (int)(r.v[1] % 25) - 12);
}

static float *place_of(const mesh *m, int group, int round) {
    return m->memory + (group * ROUNDS + round) * (int64_t)(MOST + 2) * ELEMENTS;
}

static sifr_status split(mesh *m, const char *name, int32_t color, int32_t key, comm_group **out) {
    comm_part part = {.name = name, .color = color, .key = key};
    return comm_split(m->world, &part, out, &m->error);
}

static void make_mesh(mesh *m) {
    int32_t rank = comm_rank(m->world);
    TRY(split(m, "row", rank / m->columns, 0, &m->row));
    TRY(split(m, "column", rank % m->columns, rank, &m->column));
    CHECK(comm_size(m->row) == m->columns && comm_rank(m->row) == rank % m->columns);
    CHECK(comm_size(m->column) == comm_size(m->world) / m->columns);
    CHECK(comm_rank(m->column) == rank / m->columns);
    CHECK(strcmp(comm_name(m->row), "row") == 0 && strcmp(comm_name(m->world), "") == 0);
    for (int32_t r = 0; r < m->columns; r++)
        CHECK(comm_world_rank(m->row, r) == rank / m->columns * m->columns + r);
    CHECK(comm_world_rank(m->world, rank) == rank);
}

/* --- collectives of all groups, in progress side by side --- */

static void start_reduce(mesh *m, comm_group *group, float *place, int round, int64_t elements,
                         comm_handle *handle) {
    int32_t size = comm_size(group), me = comm_world_rank(group, comm_rank(group));
    for (int64_t i = 0; i < size * elements; i++) place[i] = value(me, round, i);
    TRY(comm_start_reduce_scatter(group, place, elements, place + MOST * ELEMENTS, handle,
                                  &m->error));
}

static void check_reduce(mesh *m, const comm_group *group, const float *place, int round,
                         int64_t elements) {
    static _Thread_local float rows[MOST][ELEMENTS], sum[ELEMENTS];
    const float *all[MOST];
    for (int32_t r = 0; r < comm_size(group); r++) {
        for (int64_t i = 0; i < elements; i++)
            rows[r][i] = value(comm_world_rank(group, r), round, comm_rank(group) * elements + i);
        all[r] = rows[r];
    }
    device_tree_sum(all, comm_size(group), elements, sum);
    CHECK(memcmp(sum, place + MOST * ELEMENTS, (size_t)elements * 4) == 0);
}

static void start_gather(mesh *m, comm_group *group, float *place, int round, int64_t elements,
                         comm_handle *handle) {
    int32_t me = comm_world_rank(group, comm_rank(group));
    float *own = place + comm_rank(group) * elements;
    for (int64_t i = 0; i < elements; i++) own[i] = value(me, round, i);
    TRY(comm_start_all_gather(group, own, elements * 4, place, handle, &m->error));
}

static void check_gather(mesh *m, const comm_group *group, const float *place, int round,
                         int64_t elements) {
    for (int32_t r = 0; r < comm_size(group); r++)
        for (int64_t i = 0; i < elements; i++)
            CHECK(place[r * elements + i] == value(comm_world_rank(group, r), round, i));
}

/* Each round starts one of each group, a reduction or a gather; all are waited for at the end, from
 * the last to the first. */
static void exchange(mesh *m) {
    comm_group *groups[] = {m->row, m->world, m->column};
    comm_handle handles[3][ROUNDS];
    for (int round = 0; round < ROUNDS; round++) {
        int64_t elements = round < 2 ? 20 : ELEMENTS; /* in the slot, in a window or by messages */
        for (int g = 0; g < 3; g++) {
            float *place = place_of(m, g, round);
            if ((round + g) % 2)
                start_reduce(m, groups[g], place, round, elements, &handles[g][round]);
            else
                start_gather(m, groups[g], place, round, elements, &handles[g][round]);
        }
    }
    for (int round = ROUNDS - 1; round >= 0; round--) {
        int64_t elements = round < 2 ? 20 : ELEMENTS;
        for (int g = 2; g >= 0; g--) {
            TRY(comm_wait(handles[g][round], &m->error));
            if ((round + g) % 2)
                check_reduce(m, groups[g], place_of(m, g, round), round, elements);
            else
                check_gather(m, groups[g], place_of(m, g, round), round, elements);
        }
    }
    for (int g = 0; g < 3; g++) { /* half of the rounds are gathers, half reductions */
        const comm_ledger *ledger = comm_get_ledger(groups[g]);
        uint64_t bytes = (uint64_t)(comm_size(groups[g]) - 1) * (20 + 2 * ELEMENTS) * 4;
        CHECK(ledger->operation[COMM_ALL_GATHER].calls == ROUNDS / 2);
        CHECK(ledger->operation[COMM_ALL_GATHER].bytes == bytes);
        CHECK(ledger->operation[COMM_REDUCE_SCATTER].bytes == bytes);
    }
}

static void control(mesh *m) {
    comm_group *groups[] = {m->column, m->row, m->world};
    for (int g = 0; g < 3; g++) {
        comm_group *group = groups[g];
        int32_t size = comm_size(group), me = comm_world_rank(group, comm_rank(group));
        int64_t sum = me, wanted = 0;
        char text[3000];
        for (int32_t r = 0; r < size; r++) wanted += comm_world_rank(group, r);
        TRY(comm_sum(group, &sum, 1, &m->error));
        CHECK(sum == wanted);
        for (int32_t root = 0; root < size; root++) {
            for (size_t bytes = 10; bytes <= sizeof text; bytes += sizeof text - 10) {
                memset(text, me + 1, bytes);
                TRY(comm_broadcast(group, root, text, (int64_t)bytes, &m->error));
                CHECK(text[0] == comm_world_rank(group, root) + 1 && text[bytes - 1] == text[0]);
            }
        }
        TRY(comm_agree(group, "config", 42, &m->error));
    }
}

/* What fails on one rank is told to the ranks of its group alone, by its number among all. */
static void disagree(mesh *m) {
    int32_t rank = comm_rank(m->world), last = comm_size(m->world) - 1;
    bool mine = rank / m->columns == last / m->columns;
    char wanted[64];
    sifr_status status = SIFR_OK;
    if (rank == last) status = base_fail(&m->error, SIFR_NO_MEMORY, "no room");
    status = comm_agree_status(m->row, status, &m->error);
    CHECK(status == (mine ? SIFR_NO_MEMORY : SIFR_OK));
    snprintf(wanted, sizeof wanted, "rank %d: no room", (int)last);
    if (mine && m->columns > 1) CHECK(strcmp(m->error.message, wanted) == 0);
    status = comm_agree(m->row, "seed", rank == last && m->columns > 2, &m->error);
    CHECK(status == (mine && m->columns > 2 ? SIFR_USAGE : SIFR_OK));
    snprintf(wanted, sizeof wanted, "seed: differs on rank %d from", (int)last);
    if (status != SIFR_OK) CHECK(strstr(m->error.message, wanted));
}

/* Ranks in reverse, some in no group, a split of a split, and groups that come and go. */
static void reshape(mesh *m) {
    int32_t rank = comm_rank(m->world), size = comm_size(m->world), all[MOST];
    comm_group *reverse, *even, *half;
    TRY(split(m, "reverse", 3, -rank, &reverse));
    CHECK(comm_rank(reverse) == size - 1 - rank && comm_world_rank(reverse, 0) == size - 1);
    TRY(comm_all_gather_control(reverse, &rank, sizeof rank, all, &m->error));
    for (int32_t r = 0; r < size; r++) CHECK(all[r] == size - 1 - r);
    TRY(split(m, "even", rank % 2 ? -1 : 0, 0, &even));
    CHECK((even != NULL) == (rank % 2 == 0));
    if (even) {
        CHECK(comm_size(even) == (size + 1) / 2);
        TRY(comm_all_gather_control(even, &rank, sizeof rank, all, &m->error));
        for (int32_t r = 0; r < comm_size(even); r++) CHECK(all[r] == 2 * r);
        comm_part part = {.name = "half", .color = comm_rank(even) % 2};
        TRY(comm_split(even, &part, &half, &m->error));
        CHECK(comm_world_rank(half, comm_rank(half)) == rank);
        CHECK(comm_size(half) == (comm_size(even) + 1 - comm_rank(even) % 2) / 2);
        TRY(comm_all_gather_control(half, &rank, sizeof rank, all, &m->error));
        for (int32_t r = 0; r < comm_size(half); r++) CHECK(all[r] == rank % 4 + 4 * r);
        comm_close(even); /* before the group that was split off */
        TRY(comm_agree(half, "rest", 1, &m->error));
        comm_close(half);
    }
    comm_close(reverse);
    for (int i = 0; i < 40; i++) { /* more than there may be at a time; unequal progress */
        comm_group *group;
        int64_t sum = 1;
        TRY(split(m, "again", (rank + i) % 2, i % 3 ? rank : -rank, &group));
        for (int k = 0; k < 1 + (rank + i) % 2 * 3; k++) {
            sum = 1;
            TRY(comm_sum(group, &sum, 1, &m->error));
        }
        CHECK(sum == comm_size(group));
        comm_close(group);
    }
}

/* Rank 0 starts the two in another order than the others. In one lane none would end. */
static void lanes(mesh *m) {
    comm_part part = {.name = "near", .key = comm_rank(m->world), .lane = COMM_NEAR};
    comm_group *near;
    comm_handle handle;
    int32_t rank = comm_rank(m->world), size = comm_size(m->world), all[MOST];
    float *place = place_of(m, 0, 0), *other = place_of(m, 0, 1);
    TRY(comm_split(m->world, &part, &near, &m->error));
    for (int round = 0; round < 20; round++) {
        if (rank > 0) start_gather(m, m->world, place, round, ELEMENTS, &handle);
        TRY(comm_all_gather_control(near, &rank, sizeof rank, all, &m->error));
        for (int32_t r = 0; r < size; r++) CHECK(all[r] == r);
        if (rank == 0) start_gather(m, m->world, place, round, ELEMENTS, &handle);
        comm_handle reduce;
        start_reduce(m, near, other, round, ELEMENTS, &reduce);
        TRY(comm_wait(reduce, &m->error));
        check_reduce(m, near, other, round, ELEMENTS);
        TRY(comm_wait(handle, &m->error));
        check_gather(m, m->world, place, round, ELEMENTS);
    }
    comm_close(near);
}

/* --- sends and receives --- */

enum { SENDS = 12 };

static const int64_t send_sizes[] = {0, 4, 512, 516, 4 * ELEMENTS};

/* The n-th from one to the other; `i` counts elements. */
static float sent_value(int32_t from, int32_t to, int n, int64_t i) {
    return (float)(from * 1000 + to * 100 + n) + (float)i / 4096;
}

static int64_t sent_bytes(int32_t from, int n) {
    return send_sizes[(size_t)(from + n) % (sizeof send_sizes / sizeof *send_sizes)];
}

static void start_send(mesh *m, comm_group *group, int32_t to, int n, float *place,
                       comm_handle *handle) {
    int64_t bytes = sent_bytes(comm_rank(group), n);
    for (int64_t i = 0; i < bytes / 4; i++) place[i] = sent_value(comm_rank(group), to, n, i);
    TRY(comm_send(group, to, place, bytes, handle, &m->error));
}

static void check_received(mesh *m, const comm_group *group, int32_t from, int n,
                           const float *place) {
    for (int64_t i = 0; i < sent_bytes(from, n) / 4; i++)
        CHECK(place[i] == sent_value(from, comm_rank(group), n, i));
}

/* To both neighbours of a ring, many at a time; receives that nobody answers yet hold back neither
 * sends nor collectives. */
static void ring(mesh *m) {
    comm_part part = {.name = "ring", .peers = true};
    comm_group *group;
    comm_handle sends[2][SENDS], receives[2][SENDS];
    int32_t rank = comm_rank(m->world), size = comm_size(m->world);
    int32_t peer[2] = {(rank + 1) % size, (rank + size - 1) % size};
    uint64_t bytes = 0;
    TRY(comm_split(m->world, &part, &group, &m->error));
    CHECK(comm_send(group, rank, peer, 4, &sends[0][0], &m->error) == SIFR_FAILED);
    CHECK(comm_send(group, size, peer, 4, &sends[0][0], &m->error) == SIFR_FAILED);
    for (int round = 0; round < 5 && size > 1; round++) {
        float *in[2] = {place_of(m, 0, 0), place_of(m, 1, 0)}, *out[2] = {place_of(m, 2, 0)};
        out[1] = out[0] + SENDS * ELEMENTS;
        for (int n = 0; n < SENDS; n++)
            for (int d = 0; d < 2; d++)
                TRY(comm_receive(group, peer[d], in[d] + n * ELEMENTS, sent_bytes(peer[d], n),
                                 &receives[d][n], &m->error));
        TRY(comm_agree(m->world, "meanwhile", 1, &m->error));
        for (int n = 0; n < SENDS; n++)
            for (int d = 1; d >= 0; d--)
                start_send(m, group, peer[d], n, out[d] + n * ELEMENTS, &sends[d][n]);
        for (int k = 0; k < 2 * SENDS; k++) {
            int d = k % 2, n = round % 2 ? SENDS - 1 - k / 2 : k / 2;
            TRY(comm_wait(receives[d][n], &m->error));
            CHECK(comm_last(group)->operation == COMM_RECEIVE);
            if (size > 2) check_received(m, group, peer[d], n, in[d] + n * ELEMENTS);
            bytes += (uint64_t)sent_bytes(peer[d], n);
        }
        for (int n = SENDS - 1; n >= 0; n--)
            for (int d = 0; d < 2; d++) TRY(comm_wait(sends[d][n], &m->error));
    }
    const comm_ledger *ledger = comm_get_ledger(group);
    CHECK(ledger->operation[COMM_RECEIVE].bytes == bytes);
    CHECK(ledger->operation[COMM_RECEIVE].calls == (size > 1 ? 5 * 2 * SENDS : 0));
    CHECK(ledger->operation[COMM_SEND].calls == ledger->operation[COMM_RECEIVE].calls);
    CHECK(ledger->operation[COMM_SEND].bytes == 0);
    CHECK(comm_send(m->world, peer[0], peer, 4, &sends[0][0], &m->error) == SIFR_FAILED);
    comm_close(group);
}

/* Down a line of ranks and back up, one after the other, as stages do. */
static void line(mesh *m) {
    comm_part part = {.name = "stages", .peers = true};
    comm_group *group;
    comm_handle handle;
    int64_t value = 7;
    TRY(comm_split(m->column, &part, &group, &m->error));
    int32_t rank = comm_rank(group), last = comm_size(group) - 1;
    for (int round = 0; round < 10; round++) {
        for (int back = 0; back < 2; back++) {
            int32_t from = back ? rank + 1 : rank - 1, to = back ? rank - 1 : rank + 1;
            if (from >= 0 && from <= last) {
                TRY(comm_receive(group, from, &value, sizeof value, &handle, &m->error));
                TRY(comm_wait(handle, &m->error));
            }
            value += back ? 1 : 100;
            if (to < 0 || to > last) continue;
            TRY(comm_send(group, to, &value, sizeof value, &handle, &m->error));
            TRY(comm_wait(handle, &m->error));
        }
    }
    if (rank == 0) CHECK(value == 7 + 10 * (last + 1) * 101);
    comm_close(group);
}

/* From each rank to the next, a few under way at a time, so that places of earlier sends are taken
 * again while later ones still wait. */
static void stream(mesh *m) {
    enum { COUNT = 300, AHEAD = 5 };
    comm_part part = {.name = "stream", .peers = true};
    comm_group *group;
    comm_handle out[AHEAD], in[AHEAD];
    int64_t sent[AHEAD], received[AHEAD];
    TRY(comm_split(m->world, &part, &group, &m->error));
    int32_t rank = comm_rank(group), last = comm_size(group) - 1;
    for (int n = 0; n < COUNT + AHEAD; n++) {
        int k = n % AHEAD;
        if (n >= AHEAD && rank > 0) {
            TRY(comm_wait(in[k], &m->error));
            CHECK(received[k] == rank - 1 + 1000 * (n - AHEAD));
        }
        if (n >= AHEAD && rank < last) TRY(comm_wait(out[k], &m->error));
        if (n >= COUNT) continue;
        sent[k] = rank + 1000 * n;
        if (rank < last) TRY(comm_send(group, rank + 1, &sent[k], 8, &out[k], &m->error));
        if (rank > 0) TRY(comm_receive(group, rank - 1, &received[k], 8, &in[k], &m->error));
    }
    comm_close(group);
}

static void run_mesh(mesh *m) {
    make_mesh(m);
    exchange(m);
    lanes(m);
    ring(m);
    line(m);
    stream(m);
    control(m);
    disagree(m);
    reshape(m);
    TRY(comm_agree(m->world, "end", 1, &m->error));
}

/* --- alone, and as threads --- */

enum { MEMORY = 3 * ROUNDS * (MOST + 2) * ELEMENTS };

static void test_alone(void **state) {
    (void)state;
    mesh m = {.columns = 1, .memory = calloc(MEMORY, sizeof(float))};
    assert_int_equal(comm_open_self(&m.world, &m.error), SIFR_OK);
    run_mesh(&m);
    comm_close(m.world);
    comm_close(m.column);
    comm_close(m.row);
    free(m.memory);
}

typedef struct member {
    comm_threads *world;
    int32_t rank, columns;
} member;

static void *take_part(void *argument) {
    const member *me = argument;
    mesh m = {.world = comm_threads_group(me->world, me->rank), .columns = me->columns};
    m.memory = calloc(MEMORY, sizeof(float));
    run_mesh(&m);
    comm_close(m.world);
    comm_close(m.column);
    comm_close(m.row);
    free(m.memory);
    return NULL;
}

static void run_threads(int32_t ranks, int32_t columns) {
    member all[MOST];
    pthread_t threads[MOST];
    comm_threads *world = comm_threads_create(ranks);
    for (int32_t r = 0; r < ranks; r++) {
        all[r] = (member){world, r, columns};
        assert_int_equal(pthread_create(&threads[r], NULL, take_part, &all[r]), 0);
    }
    for (int32_t r = 0; r < ranks; r++) pthread_join(threads[r], NULL);
    comm_threads_free(world);
}

static void test_meshes(void **state) {
    (void)state;
    run_threads(2, 1);
    run_threads(2, 2);
    run_threads(4, 2);
    run_threads(6, 3);
    run_threads(8, 4);
}

/* --- under mpirun --- */

static void print_line(void *user, sifr_log_level level, const char *text) {
    (void)user, (void)level;
    fprintf(stderr, "log: %s\n", text);
}

static void take_window(mesh *m, bool shared) {
    int64_t bytes = MEMORY * (int64_t)sizeof(float);
    int file = memfd_create("test", MFD_CLOEXEC);
    CHECK(file >= 0 && ftruncate(file, bytes) == 0);
    m->memory = mmap(NULL, (size_t)bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    CHECK(m->memory != MAP_FAILED);
    if (shared) TRY(comm_open_window(m->world, m->memory, bytes, file, &m->error));
    close(file);
}

/* Groups until there is no slot: refused on all ranks alike, and all goes on. */
static void fill_slots(mesh *m) {
    comm_group *groups[64];
    int count = 0;
    sifr_status status;
    do {
        status = split(m, "more", 0, 0, &groups[count]);
        count += status == SIFR_OK;
    } while (status == SIFR_OK && count < 64);
    CHECK(status == SIFR_FAILED && count == 29 && groups[count] == NULL);
    CHECK(strstr(m->error.message, "more than 32 groups of ranks (those with peers count twice)"));
    while (count > 0) comm_close(groups[--count]);
    TRY(comm_agree(m->row, "after it", 1, &m->error));
}

/* The program's exit code after an error. */
static int leave(mesh *m, sifr_status status) {
    if (status != SIFR_OK)
        fprintf(stderr, "rank %d: %s\n", (int)comm_rank(m->world), m->error.message);
    comm_close(m->row);
    comm_close(m->column);
    comm_close(m->world);
    return status;
}

/* What a rank receives is not as long as what is sent; or its neighbour dies before it sends. */
static int fail_peer(mesh *m, const char *what) {
    comm_part part = {.name = "stages", .peers = true};
    int32_t rank = comm_rank(m->world), last = comm_size(m->world) - 1;
    char data[3000] = {0};
    comm_handle handle = {0};
    make_mesh(m);
    TRY(comm_split(m->world, &part, &m->column, &m->error));
    bool longer = strcmp(what, "longer") == 0;
    if (rank == last && !longer) raise(SIGKILL);
    comm_set_label(m->column, &(comm_label){.step = 7, .noun = "unit", .number = 3});
    if (rank == last) TRY(comm_send(m->column, 0, data, sizeof data, &handle, &m->error));
    if (rank == 0) TRY(comm_receive(m->column, last, data, 2000, &handle, &m->error));
    if (!handle.group) sleep(5); /* rank 0 is the first to find out */
    sifr_status status = handle.group ? comm_wait(handle, &m->error) : SIFR_OK;
    if (status == SIFR_OK) status = comm_agree(m->world, "end", 1, &m->error);
    return leave(m, status);
}

/* The last rank dies or stalls where its row gathers; other rows wait for it in the next
 * collective of all. */
static int fail_in_row(mesh *m, const char *what) {
    int32_t rank = comm_rank(m->world), last = comm_size(m->world) - 1;
    char all[4 * MOST] = {0};
    comm_handle handle;
    make_mesh(m);
    TRY(comm_agree(m->column, "begin", 1, &m->error));
    if (rank == last && strcmp(what, "killed") == 0) raise(SIGKILL);
    if (rank == last && strcmp(what, "stall") == 0) sleep(60);
    if (strcmp(what, "stall") == 0) {
        comm_set_timeout(m->row, rank / m->columns == last / m->columns ? 1 : 30);
        comm_set_timeout(m->world, 30);
    }
    comm_set_label(m->row, &(comm_label){.step = 7, .noun = "unit", .number = 3});
    TRY(comm_start_all_gather(m->row, all + 4 * comm_rank(m->row), 4, all, &handle, &m->error));
    sifr_status status = comm_wait(handle, &m->error);
    if (status == SIFR_OK) status = comm_agree(m->world, "end", 1, &m->error);
    return leave(m, status);
}

int main(int count, char **words) {
    static const struct CMUnitTest tests[] = {cmocka_unit_test(test_alone),
                                              cmocka_unit_test(test_meshes)};
    static const sifr_log log = {.write = print_line};
    if (count < 3) return cmocka_run_group_tests(tests, NULL, NULL);
    mesh own = {.columns = atoi(words[1])}, *m = &own;
    const char *how = words[2];
    comm_options options = {.log = &log, .only_mpi = strncmp(how, "mpi", 3) == 0};
    if (strstr(how, "many")) options.direct = 1;
    options.ranks_a_host = atoi(how + strcspn(how, "0123456789"));
    TRY(comm_open(COMM_MPI, &options, &m->world, &m->error));
    if (count > 3 && (strcmp(words[3], "longer") == 0 || strcmp(words[3], "gone") == 0))
        return fail_peer(m, words[3]);
    if (count > 3) return fail_in_row(m, words[3]);
    take_window(m, strncmp(how, "windows", 7) == 0);
    run_mesh(m);
    fill_slots(m);
    if (comm_rank(m->world) == 0)
        printf("%d ranks in %d columns, %s: equal; rows %s, columns %s\n", (int)comm_size(m->world),
               (int)m->columns, how, comm_shares_memory(m->row) ? "shared" : "apart",
               comm_shares_memory(m->column) ? "shared" : "apart");
    comm_close_window(m->world, m->memory);
    return leave(m, SIFR_OK);
}
