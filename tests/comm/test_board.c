/* The status board: what a report of trouble says of each rank, and the seats through which ranks
 * of a host see each other: counts that are waited for, and a process that dies. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/clock.h"
#include "comm/host/seats.h"

static comm_sighting at(uint32_t number, bool busy, int unit, double since) {
    comm_label label = {.step = 7, .noun = "unit", .number = unit};
    comm_state state = comm_board_begin("", number, COMM_ALL_GATHER, &label);
    state.busy = busy;
    state.since = since;
    return (comm_sighting){.known = true, .state = state};
}

static void test_names(void **state) {
    (void)state;
    char name[96];
    comm_label labels[] = {{7, "unit", 3}, {2, "loss", -1}, {0, NULL, 0}, {0, "unit", 3}};
    const char *expected[] = {"reduce_scatter of unit 3, step 7",
                              "reduce_scatter of the loss, step 2", "reduce_scatter",
                              "reduce_scatter of unit 3"};
    for (int i = 0; i < 4; i++) {
        comm_state s = comm_board_begin("", 1, COMM_REDUCE_SCATTER, &labels[i]);
        comm_board_name(&s, name, sizeof name);
        assert_string_equal(name, expected[i]);
    }
}

/* Numbers the ranks from `first` on. */
static void number(comm_sighting *ranks, int32_t count, int32_t first) {
    for (int32_t r = 0; r < count; r++) ranks[r].rank = first + r;
}

static void test_report(void **state) {
    (void)state;
    char text[512];
    comm_state mine = at(12, true, 3, 90).state;
    comm_sighting ranks[8] = {at(12, true, 3, 95),  at(12, true, 3, 95), at(11, true, 2, 80),
                              at(11, false, 2, 69), {.known = false},    {.known = false},
                              at(12, true, 3, 99),  {.known = false}};
    number(ranks, 8, 0);
    comm_board_describe(ranks, 8, &mine, 100, text, sizeof text);
    assert_string_equal(
        text, "rank 2 has been in all_gather of unit 2, step 7 for 20 s; rank 3 has "
              "not been in a collective for 31 s, last all_gather of unit 2, step 7; ranks "
              "0, 1, 6 wait in it; nothing is known about ranks 4, 5, 7 (other hosts)");
    ranks[3].dead = true;
    ranks[2] = (comm_sighting){.rank = 2, .known = true};
    comm_board_describe(ranks, 4, &mine, 100, text, sizeof text);
    assert_string_equal(text, "rank 2 has not begun any collective; rank 3 has died; last "
                              "all_gather of unit 2, step 7; ranks 0, 1 wait in it");
    ranks[1].silent = 0.3;
    ranks[0].silent = 31;
    comm_board_describe(ranks, 2, &mine, 100, text, sizeof text);
    assert_string_equal(text,
                        "rank 0 is in all_gather of unit 3, step 7, but has not run for 31 s; "
                        "rank 1 waits in it");
    ranks[0].silent = 0;
    comm_board_describe(ranks, 1, &mine, 100, text, sizeof text);
    assert_string_equal(text, "rank 0 waits in it");
    comm_board_describe(ranks, 2, &mine, 100, text, sizeof text);
    assert_string_equal(text, "ranks 0, 1 wait in it");
}

/* Ranks of a group that was split off have the numbers that they have among all; one that is
 * missing may be in a collective of another group. */
static void test_report_of_group(void **state) {
    (void)state;
    char text[512];
    comm_label label = {.step = 7, .noun = "unit", .number = 2};
    comm_sighting ranks[4] = {at(12, true, 3, 95), at(12, true, 3, 95), at(12, true, 3, 95),
                              at(12, true, 3, 95)};
    comm_state mine = ranks[0].state;
    number(ranks, 4, 8);
    ranks[1].rank = 17;
    ranks[2].rank = 18;
    ranks[3].rank = 30;
    comm_board_describe(ranks, 4, &mine, 100, text, sizeof text);
    assert_string_equal(text, "ranks 8, 17, 18, 30 wait in it");
    ranks[2].state = comm_board_begin("replica", 11, COMM_REDUCE_SCATTER, &label);
    ranks[2].state.since = 60;
    comm_board_describe(ranks, 4, &mine, 100, text, sizeof text);
    assert_string_equal(text, "rank 18 has been in reduce_scatter (group replica) of unit 2, step "
                              "7 for 40 s; ranks 8, 17, 30 wait in it");
}

/* However many are missing, and however little room there is, the text ends. */
static void test_report_is_cut(void **state) {
    (void)state;
    enum { RANKS = 300 };
    static comm_sighting ranks[RANKS];
    char text[400];
    comm_state mine = at(12, true, 3, 90).state;
    for (int r = 0; r < RANKS; r++) ranks[r] = at(11, true, r, 80);
    number(ranks, RANKS, 0);
    comm_board_describe(ranks, RANKS, &mine, 100, text, sizeof text);
    assert_non_null(strstr(text, "; all that are missing: ranks 0 to 299"));
    for (size_t capacity = 1; capacity < sizeof text; capacity++) {
        memset(text, 'x', sizeof text);
        comm_board_describe(ranks, RANKS, &mine, 100, text, capacity);
        assert_true(strnlen(text, sizeof text) < capacity);
    }
}

static void test_entry(void **state) {
    (void)state;
    comm_entry entry = {0};
    comm_state wrote = at(5, true, 4, 1.5).state;
    comm_board_write(&entry, &wrote);
    comm_state read = comm_board_read(&entry);
    assert_int_equal(read.number, 5);
    assert_int_equal(read.of, 4);
    assert_string_equal(read.noun, "unit");
    atomic_fetch_add(&entry.version, 1); /* its writer died while writing: no endless wait */
    assert_int_equal(comm_board_read(&entry).number, 5);
}

/* In the child: sits down, answers one count, and dies without a word. */
static void be_neighbour(const comm_file *file) {
    comm_host host;
    sifr_error error;
    if (comm_host_join(&host, 2, 1, file, &error) != SIFR_OK) _exit(9);
    comm_slot *own = comm_host_slot(&host, 0, 1), *other = comm_host_slot(&host, 0, 0);
    comm_host_advance(own, &own->posted, 1);
    if (!comm_host_await(other, &other->posted, 7, 20)) _exit(8);
    comm_host_advance(own, &own->done, 7);
    if (!comm_host_await(other, &other->done, 7, 20)) _exit(7);
    _exit(3);
}

static void test_neighbours(void **state) {
    (void)state;
    comm_host host;
    sifr_error error;
    assert_int_equal(comm_host_create(&host, 2, &error), SIFR_OK);
    comm_file file = comm_host_name_file(host.file);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) be_neighbour(&file);
    comm_slot *own = comm_host_slot(&host, 0, 0), *other = comm_host_slot(&host, 0, 1);
    double begun = base_seconds();
    assert_true(comm_host_await(other, &other->posted, 1, 20));
    assert_false(comm_host_is_dead(&host, 1));
    assert_false(comm_host_await(other, &other->done, 7, 0.02)); /* asleep, in vain */
    comm_host_advance(own, &own->posted, 7);
    assert_true(comm_host_await(other, &other->done, 7, 20));
    comm_host_advance(own, &own->done, 7);
    assert_true(base_seconds() - begun < 15); /* woken, not found out when the time was over */
    siginfo_t info;                           /* a zombie is dead already */
    assert_int_equal(waitid(P_PID, (id_t)child, &info, WEXITED | WNOWAIT), 0);
    assert_true(comm_host_is_dead(&host, 1));
    assert_int_equal(waitpid(child, &(int){0}, 0), child);
    comm_host_close(&host);
    comm_host_close(&host);
}

/* Each group's slot counts by itself, and lies at one place for all ranks. */
static void test_slots(void **state) {
    (void)state;
    comm_host first, second;
    sifr_error error;
    assert_int_equal(comm_host_create(&first, 2, &error), SIFR_OK);
    comm_file file = comm_host_name_file(first.file);
    assert_int_equal(comm_host_join(&second, 2, 1, &file, &error), SIFR_OK);
    for (int32_t slot = 1; slot < COMM_SLOTS; slot += 10) {
        assert_int_equal(comm_host_take_slot(&first, slot, &error), SIFR_OK);
        assert_int_equal(comm_host_take_slot(&second, slot, &error), SIFR_OK);
    }
    for (int32_t slot = 0; slot < COMM_SLOTS; slot += 10 - 9 * !slot) {
        comm_slot *own = comm_host_slot(&first, slot, 0), *other = comm_host_slot(&first, slot, 1);
        comm_slot *seen = comm_host_slot(&second, slot, 0),
                  *theirs = comm_host_slot(&second, slot, 1);
        comm_host_advance(own, &own->posted, 5 + (uint32_t)slot);
        comm_host_advance(theirs, &theirs->done, 6 + (uint32_t)slot);
        own->posts[COMM_LINE - 1].offset = slot;
        assert_true(comm_host_await(seen, &seen->posted, 5 + (uint32_t)slot, 0));
        assert_false(comm_host_await(seen, &seen->posted, 6 + (uint32_t)slot, 0));
        assert_true(comm_host_await(other, &other->done, 6 + (uint32_t)slot, 0));
        assert_int_equal(seen->posts[COMM_LINE - 1].offset, slot);
    }
    comm_host_close(&second);
    comm_host_close(&first);
}

/* Another file under that number is not taken for the host's memory. */
static void test_wrong_file(void **state) {
    (void)state;
    comm_host host, other;
    sifr_error error;
    assert_int_equal(comm_host_create(&host, 1, &error), SIFR_OK);
    comm_file file = comm_host_name_file(host.file);
    file.inode++;
    assert_int_equal(comm_host_join(&other, 1, 0, &file, &error), SIFR_FAILED);
    assert_non_null(strstr(error.message, "not the memory of a rank"));
    file = comm_host_name_file(-1);
    assert_int_equal(comm_host_join(&other, 1, 0, &file, &error), SIFR_FAILED);
    comm_host_close(&host);
}

/* Counts go round: the one after 2^32 - 1 is reached after it. */
static void test_counts_wrap(void **state) {
    (void)state;
    comm_host host;
    sifr_error error;
    assert_int_equal(comm_host_create(&host, 1, &error), SIFR_OK);
    comm_slot *own = comm_host_slot(&host, 0, 0);
    const uint32_t steps[] = {INT32_MAX, UINT32_MAX - 1, UINT32_MAX}; /* each less than half */
    for (int i = 0; i < 3; i++) comm_host_advance(own, &own->done, steps[i]);
    assert_true(comm_host_await(own, &own->done, UINT32_MAX - 1, 0));
    assert_false(comm_host_await(own, &own->done, 1, 0));
    comm_host_advance(own, &own->done, 1);
    assert_true(comm_host_await(own, &own->done, UINT32_MAX, 0));
    comm_host_close(&host);
}

int main(void) {
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_names),           cmocka_unit_test(test_report),
        cmocka_unit_test(test_report_of_group), cmocka_unit_test(test_report_is_cut),
        cmocka_unit_test(test_entry),           cmocka_unit_test(test_neighbours),
        cmocka_unit_test(test_slots),           cmocka_unit_test(test_wrong_file),
        cmocka_unit_test(test_counts_wrap),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
