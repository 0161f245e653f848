/* The status board at its edges: words too long, numbers that go round, operations that nobody
 * knows, and entries that are read while they are written. */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

#include "comm/host/board.h"

static void test_begin(void **state) {
    (void)state;
    comm_label label = {.step = 9, .noun = "fifteen letters and more", .number = 2};
    comm_state s = comm_board_begin("", UINT32_MAX, COMM_CONTROL, &label);
    assert_true(s.number == UINT32_MAX);
    assert_int_equal(s.operation, COMM_CONTROL);
    assert_true(s.busy);
    assert_int_equal(s.of, 2);
    assert_int_equal(s.step, 9);
    assert_true(s.since == 0);
    assert_string_equal(s.noun, "fifteen letters");
    s = comm_board_begin("", 1, COMM_ALL_GATHER, &(comm_label){.number = 3});
    assert_string_equal(s.noun, "");
}

static void test_name_edges(void **state) {
    (void)state;
    char name[96];
    comm_label label = {.step = INT64_MAX, .noun = "0123456789abcdef", .number = INT32_MAX};
    comm_state s = comm_board_begin("", 1, COMM_REDUCE_SCATTER, &label);
    comm_board_name(&s, name, sizeof name);
    assert_string_equal(name,
                        "reduce_scatter of 0123456789abcde 2147483647, step 9223372036854775807");
    static const int32_t unknown[] = {-1, COMM_OPERATIONS, INT32_MAX, INT32_MIN};
    s.step = -1; /* of no step */
    s.of = 0;
    for (int i = 0; i < 4; i++) {
        s.operation = unknown[i];
        comm_board_name(&s, name, sizeof name);
        assert_string_equal(name, "a collective of 0123456789abcde 0");
    }
    comm_board_name(&s, name, 13);
    assert_string_equal(name, "a collective");
}

/* Another process's memory may hold anything: a noun without an end gets one. */
static void test_noun_ends(void **state) {
    (void)state;
    comm_entry entry = {0};
    memset(entry.state.noun, 'x', sizeof entry.state.noun);
    memset(entry.state.group, 'x', sizeof entry.state.group);
    assert_int_equal(strlen(comm_board_read(&entry).noun), COMM_NOUN - 1);
    assert_int_equal(strlen(comm_board_read(&entry).group), COMM_NAME - 1);
}

/* The version is even after each write, whatever came before; it may go round. */
static void test_versions(void **state) {
    (void)state;
    comm_entry entry = {0};
    comm_state s = {.number = 1};
    comm_board_write(&entry, &s);
    assert_int_equal(atomic_load(&entry.version), 2);
    atomic_store(&entry.version, UINT32_MAX - 1);
    s.number = 2;
    comm_board_write(&entry, &s);
    assert_int_equal(atomic_load(&entry.version), 0);
    assert_int_equal(comm_board_read(&entry).number, 2);
}

/* --- torn reads --- */

/* Every field says the same number, so that a state of two halves shows. */
static comm_state state_of(uint32_t number) {
    comm_state s = {.number = number,
                    .operation = (int32_t)number,
                    .of = (int32_t)number,
                    .step = number,
                    .since = number};
    snprintf(s.noun, sizeof s.noun, "%u", (unsigned)number);
    return s;
}

static bool is_whole(const comm_state *s) {
    comm_state wanted = state_of(s->number);
    return s->operation == wanted.operation && s->of == wanted.of && s->step == wanted.step &&
           s->since == wanted.since && strcmp(s->noun, wanted.noun) == 0;
}

/* The entry lies across two pages, its noun on the second. A page that may not be touched stops the
 * reader where a writer is to come in between. */
static struct torn {
    char *pages;
    long page;
    comm_entry *entry;
    comm_state next;
    int faults, write_at; /* at which fault the write comes */
} torn;

static void protect(int which, int how) {
    mprotect(torn.pages + which * torn.page, (size_t)torn.page, how);
}

/* As a writer does it, or what is left to do of a write that is under way. */
static void write_next(void) {
    if (atomic_load(&torn.entry->version) % 2 == 0) {
        comm_board_write(torn.entry, &torn.next);
        return;
    }
    torn.entry->state = torn.next;
    atomic_fetch_add(&torn.entry->version, 1);
}

/* Up to `write_at` one page is opened and the other closed, so that the reader stops once more. */
static void come_between(int number) {
    (void)number;
    int closed = torn.faults % 2 == 0; /* the second page first */
    torn.faults++;
    protect(0, PROT_READ | PROT_WRITE);
    protect(1, PROT_READ | PROT_WRITE);
    if (torn.faults == torn.write_at)
        write_next();
    else if (torn.faults < torn.write_at)
        protect(!closed, PROT_NONE);
    else
        _exit(9);
}

static comm_state read_torn(uint32_t version, int write_at) {
    struct sigaction action = {.sa_handler = come_between, .sa_flags = SA_NODEFER}, old;
    torn.page = sysconf(_SC_PAGESIZE);
    torn.pages = mmap(NULL, 2 * (size_t)torn.page, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_ptr_not_equal(torn.pages, MAP_FAILED);
    torn.entry = (comm_entry *)(torn.pages + torn.page - offsetof(comm_entry, state.noun));
    torn.entry->state = state_of(1);
    torn.next = state_of(2);
    atomic_store(&torn.entry->version, version);
    torn.faults = 0, torn.write_at = write_at;
    assert_int_equal(sigaction(SIGSEGV, &action, &old), 0);
    protect(1, PROT_NONE);
    comm_state s = comm_board_read(torn.entry);
    sigaction(SIGSEGV, &old, NULL);
    munmap(torn.pages, 2 * (size_t)torn.page);
    assert_int_equal(torn.faults, write_at);
    return s;
}

/* A whole write while half was read: the reader begins again. */
static void test_written_between(void **state) {
    (void)state;
    comm_state s = read_torn(4, 1);
    assert_int_equal(s.number, 2);
    assert_true(is_whole(&s));
}

/* A write that was under way from before the read until after it has the same version at both ends,
 * an odd one: the reader waits for its end, which comes in its second try. */
static void test_writing_all_along(void **state) {
    (void)state;
    comm_state s = read_torn(5, 3);
    assert_int_equal(s.number, 2);
    assert_true(is_whole(&s));
}

/* --- who is missing --- */

static comm_sighting at(uint32_t number, bool busy) {
    comm_state s = comm_board_begin("", number, COMM_CONTROL, &(comm_label){0});
    s.busy = busy;
    s.since = 5;
    return (comm_sighting){.known = true, .state = s};
}

static void assert_says(const comm_sighting *ranks, int32_t size, uint32_t mine,
                        const char *wanted) {
    char text[512];
    comm_state s = at(mine, true).state;
    comm_board_describe(ranks, size, &s, 15, text, sizeof text);
    assert_string_equal(text, wanted);
}

/* A rank is behind or ahead by the shorter way round. */
static void test_numbers_wrap(void **state) {
    (void)state;
    comm_sighting ranks[2] = {at(UINT32_MAX, true), at(1, true)};
    ranks[1].rank = 1;
    assert_says(ranks, 2, 1, "rank 0 has been in control for 10 s; rank 1 waits in it");
    assert_says(ranks, 2, UINT32_MAX, "ranks 0, 1 wait in it");
}

/* At exactly COMM_SILENCE a rank is still taken to run; a dead one is missing wherever it was. */
static void test_silence_and_death(void **state) {
    (void)state;
    comm_sighting ranks[3] = {at(4, true), at(4, true), at(9, false)};
    ranks[1].rank = 1, ranks[2].rank = 2;
    ranks[0].silent = COMM_SILENCE;
    assert_says(ranks, 3, 4, "ranks 0 to 2 wait in it");
    ranks[0].silent = COMM_SILENCE + 0.5;
    assert_says(ranks, 2, 4, "rank 0 is in control, but has not run for 2 s; rank 1 waits in it");
    ranks[0].silent = 0;
    ranks[2].dead = true;
    assert_says(ranks, 3, 4, "rank 2 has died; last control; ranks 0, 1 wait in it");
    ranks[2].known = false; /* of another host nothing is known, not even that */
    assert_says(ranks, 3, 4, "ranks 0, 1 wait in it; nothing is known about rank 2 (other hosts)");
    assert_says(ranks + 2, 1, 4, "nothing is known about rank 2 (other hosts)");
    assert_says(ranks, 0, 4, "");
}

/* Four are described, more are listed. */
static void test_four_described(void **state) {
    (void)state;
    comm_sighting ranks[5];
    for (int r = 0; r < 5; r++) ranks[r] = (comm_sighting){.rank = r, .known = true};
    const char *four = "rank 0 has not begun any collective; rank 1 has not begun any collective; "
                       "rank 2 has not begun any collective; rank 3 has not begun any collective";
    char five[512];
    assert_says(ranks, 4, 1, four);
    snprintf(five, sizeof five, "%s; all that are missing: ranks 0 to 4", four);
    assert_says(ranks, 5, 1, five);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_begin),           cmocka_unit_test(test_name_edges),
        cmocka_unit_test(test_noun_ends),       cmocka_unit_test(test_versions),
        cmocka_unit_test(test_written_between), cmocka_unit_test(test_writing_all_along),
        cmocka_unit_test(test_numbers_wrap),    cmocka_unit_test(test_silence_and_death),
        cmocka_unit_test(test_four_described)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
