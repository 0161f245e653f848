/* The connections between the first ranks of hosts: who has ended without a word is named on all
 * others, who said good-bye is not missed, and strangers are nobody. Hosts are processes here. */
#include <arpa/inet.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/clock.h"
#include "comm/host/lookout_private.h"

static void nap(void) {
    nanosleep(&(struct timespec){.tv_nsec = 10000000}, NULL);
}

static bool loses(comm_lookout *lookout, double seconds, comm_lost *lost) {
    double until = base_seconds() + seconds;
    while (!comm_lookout_lost(lookout, lost)) {
        if (base_seconds() > until) return false;
        nap();
    }
    return true;
}

/* The first rank of a host, which watches one other. */
static sifr_status join(int32_t rank, const comm_meeting *other, comm_lookout **out) {
    comm_meeting own;
    sifr_error error;
    assert_int_equal(comm_lookout_listen(rank, 1, &own, out, &error), SIFR_OK);
    sifr_status status = comm_lookout_join(*out, other, &error);
    if (status != SIFR_OK) {
        assert_non_null(strstr(error.message, "no address of another host could be reached"));
        comm_lookout_close(*out);
    } else {
        comm_lookout_seal(*out);
    }
    return status;
}

/* A rank of another host: gets the meeting, joins, and tells so; then each word that it is told is
 * done and answered: 'l': loses rank 9?, 'q': good-bye. It dies when its pipe is closed. */
typedef struct host {
    pid_t process;
    int to, from;
} host;

static void be_host(int32_t rank, int from, int to) {
    comm_meeting meeting;
    comm_lookout *lookout;
    comm_lost lost;
    char word, ok = 1;
    if (read(from, &meeting, sizeof meeting) != sizeof meeting) _exit(0);
    if (join(rank, &meeting, &lookout) != SIFR_OK) ok = 0;
    if (write(to, &ok, 1) != 1 || !ok) _exit(0);
    while (read(from, &word, 1) == 1) {
        if (word == 'q') comm_lookout_close(lookout);
        ok = word == 'q' || (loses(lookout, 5, &lost) && lost.rank == 9 && !lost.silent);
        if (write(to, &ok, 1) != 1 || word == 'q') _exit(0);
    }
    _exit(0);
}

static host start_host(int32_t rank) {
    int there[2], back[2];
    assert_int_equal(pipe(there), 0);
    assert_int_equal(pipe(back), 0);
    host out = {.process = fork(), .to = there[1], .from = back[0]};
    if (out.process == 0) {
        close(there[1]);
        be_host(rank, there[0], back[1]);
    }
    close(there[0]);
    close(back[1]);
    return out;
}

static bool answers(const host *h) {
    char ok = 0;
    return read(h->from, &ok, 1) == 1 && ok;
}

static void tell(const host *h, char word) {
    assert_int_equal(write(h->to, &word, 1), 1);
}

static void meet(const host *h, const comm_meeting *meeting) {
    assert_int_equal(write(h->to, meeting, sizeof *meeting), sizeof *meeting);
    assert_true(answers(h));
}

/* Its kernel closes the connection, as for any process that ends. */
static void die(host *h) {
    close(h->to);
    waitpid(h->process, NULL, 0);
    close(h->from);
}

/* Processes are made before this one has threads. */
static void test_lost(void **state) {
    (void)state;
    host leaves = start_host(4), stays = start_host(7), dies = start_host(9);
    comm_meeting meeting;
    comm_lookout *lookout;
    comm_lost lost;
    char name[COMM_HOST_NAME];
    sifr_error error;
    assert_int_equal(comm_lookout_listen(0, 3, &meeting, &lookout, &error), SIFR_OK);
    assert_true(comm_lookout_bytes(lookout) > 0);
    meet(&leaves, &meeting), meet(&stays, &meeting), meet(&dies, &meeting);
    comm_lookout_seal(lookout);
    assert_false(comm_lookout_lost(lookout, &lost));
    tell(&leaves, 'q');
    assert_true(answers(&leaves));
    die(&leaves);
    assert_false(loses(lookout, 0.2, &lost));
    die(&dies);
    assert_true(loses(lookout, 5, &lost));
    comm_host_name(name);
    assert_int_equal(lost.rank, 9);
    assert_int_equal(lost.silent, 0);
    assert_string_equal(lost.host, name);
    assert_string_equal(lost.finder, name);
    tell(&stays, 'l'); /* it is told by the first host */
    assert_true(answers(&stays));
    die(&stays);
    assert_true(comm_lookout_lost(lookout, &lost));
    assert_int_equal(lost.rank, 9); /* the first loss is the one that is named */
    comm_lookout_close(lookout);
}

/* A rank that is not its host's first: that host tells it, before it says good-bye itself; what the
 * other ranks of a host read is the same. */
static void test_told(void **state) {
    (void)state;
    comm_meeting meeting[2], own;
    comm_lookout *others[2], *teller;
    static comm_loss loss[2];
    comm_lost lost;
    char name[COMM_HOST_NAME];
    sifr_error error;
    comm_host_name(name);
    for (int i = 0; i < 2; i++)
        assert_int_equal(comm_lookout_listen(i, 1, &meeting[i], &others[i], &error), SIFR_OK);
    assert_int_equal(comm_lookout_listen(8, 2, &own, &teller, &error), SIFR_OK);
    for (int i = 0; i < 2; i++)
        assert_int_equal(comm_lookout_join(teller, &meeting[i], &error), SIFR_OK);
    comm_lookout_share(others[0], &loss[0]);
    assert_false(comm_loss_read(&loss[0], &lost));
    comm_lookout_tell(teller, 9);
    comm_lookout_tell(teller, 10); /* a further one */
    assert_true(comm_lookout_lost(teller, &lost));
    comm_lookout_close(teller);
    for (int i = 0; i < 2; i++) assert_true(loses(others[i], 5, &lost));
    comm_lookout_share(others[1], &loss[1]); /* after it was found */
    for (int i = 0; i < 2; i++) {
        comm_lookout_close(others[i]);
        assert_true(comm_loss_read(&loss[i], &lost));
        assert_int_equal(lost.rank, 9);
        assert_int_equal(lost.silent, 0);
        assert_string_equal(lost.host, name);
        assert_string_equal(lost.finder, name);
    }
}

/* The first host itself. */
static void test_first_is_lost(void **state) {
    (void)state;
    int pipes[2];
    comm_meeting meeting;
    comm_lookout *lookout;
    comm_lost lost;
    sifr_error error;
    assert_int_equal(pipe(pipes), 0);
    pid_t first = fork();
    if (first == 0) {
        if (comm_lookout_listen(0, 1, &meeting, &lookout, &error) != SIFR_OK) _exit(1);
        if (write(pipes[1], &meeting, sizeof meeting) != sizeof meeting) _exit(1);
        close(pipes[1]);
        for (;;) pause();
    }
    close(pipes[1]);
    assert_int_equal(read(pipes[0], &meeting, sizeof meeting), sizeof meeting);
    assert_int_equal(join(5, &meeting, &lookout), SIFR_OK);
    assert_false(comm_lookout_lost(lookout, &lost));
    kill(first, SIGKILL);
    waitpid(first, NULL, 0);
    assert_true(loses(lookout, 5, &lost));
    assert_int_equal(lost.rank, 0);
    comm_lookout_close(lookout);
    close(pipes[0]);
}

static int stranger(const comm_meeting *meeting) {
    const comm_address *at = &meeting->of[0];
    struct sockaddr_in four = {.sin_family = AF_INET, .sin_port = htons(meeting->port)};
    memcpy(&four.sin_addr, at->bytes, sizeof four.sin_addr);
    int file = socket(AF_INET, SOCK_STREAM, 0);
    if (at->family != AF_INET || connect(file, (struct sockaddr *)&four, sizeof four) != 0) skip();
    return file;
}

static void test_strangers(void **state) {
    (void)state;
    enum { BYTES = 4096 };
    static const char noise[BYTES];
    comm_meeting meeting, wrong;
    comm_lookout *lookout, *joined;
    comm_lost lost;
    sifr_error error;
    char answer;
    assert_int_equal(comm_lookout_listen(0, 1, &meeting, &lookout, &error), SIFR_OK);
    int silent = stranger(&meeting), loud = stranger(&meeting);
    assert_int_equal(send(loud, noise, BYTES, MSG_NOSIGNAL), BYTES);
    assert_true(recv(loud, &answer, 1, 0) <= 0); /* shown the door */
    close(loud);
    wrong = meeting;
    wrong.secret[0] ^= 1;
    assert_int_equal(join(3, &wrong, &joined), SIFR_FAILED);
    wrong = meeting;
    wrong.answer[COMM_SECRET - 1] ^= 1; /* another one answers at that address */
    assert_int_equal(join(3, &wrong, &joined), SIFR_FAILED);
    assert_int_equal(join(3, &meeting, &joined), SIFR_OK);
    comm_lookout_seal(lookout);
    assert_true(recv(silent, &answer, 1, 0) <= 0);
    close(silent);
    comm_lookout_close(joined);
    assert_false(loses(lookout, 0.1, &lost)); /* nor are attempts that led nowhere */
    comm_lookout_close(lookout);
}

/* A host joins several, and who is one too many is told so. */
static void test_several(void **state) {
    (void)state;
    comm_meeting meeting[3], own;
    comm_lookout *others[3], *lookout;
    comm_lost lost;
    sifr_error error;
    for (int i = 0; i < 3; i++)
        assert_int_equal(comm_lookout_listen(i, 1, &meeting[i], &others[i], &error), SIFR_OK);
    assert_int_equal(comm_lookout_listen(3, 3, &own, &lookout, &error), SIFR_OK);
    for (int i = 0; i < 3; i++)
        assert_int_equal(comm_lookout_join(lookout, &meeting[i], &error), SIFR_OK);
    comm_lookout_seal(lookout);
    for (int i = 0; i < 3; i++) {
        comm_lookout_seal(others[i]);
        assert_false(comm_lookout_lost(others[i], &lost));
        comm_lookout_close(others[i]);
    }
    assert_false(loses(lookout, 0.1, &lost)); /* all have said good-bye */
    comm_lookout_close(lookout);
}

/* A rank whose word that it stays is unread when this host ends, or loses another, hears of it. */
static void test_not_yet_known(void **state) {
    (void)state;
    for (int loses_one = 0; loses_one < 2; loses_one++) {
        comm_meeting meeting;
        comm_lookout *lookout;
        comm_note note;
        sifr_error error;
        const comm_lost self = {.rank = 3};
        assert_int_equal(comm_lookout_listen(0, 1, &meeting, &lookout, &error), SIFR_OK);
        int file = stranger(&meeting);
        assert_true(comm_note_send(file, COMM_HELLO, &self, meeting.secret));
        assert_int_equal(recv(file, &note, sizeof note, MSG_WAITALL), sizeof note);
        assert_int_equal(note.kind, COMM_WELCOME);
        if (loses_one) comm_lookout_tell(lookout, 7);
        comm_lookout_close(lookout);
        assert_int_equal(recv(file, &note, sizeof note, MSG_WAITALL), sizeof note);
        assert_int_equal(note.kind, loses_one ? COMM_LOST : COMM_GOODBYE);
        if (loses_one) assert_int_equal(note.about.rank, 7);
        close(file);
    }
}

static void test_watches(void **state) {
    (void)state;
    for (int32_t a = 0; a < COMM_ALL_HOSTS; a++)
        for (int32_t b = 0; b < COMM_ALL_HOSTS; b++)
            assert_int_equal(comm_lookout_watches(a, b, COMM_ALL_HOSTS), a != b);
    enum { MANY = 1000 };
    for (int32_t a = 0; a < MANY; a++) {
        int32_t count = 0;
        for (int32_t b = 0; b < MANY; b++) {
            assert_int_equal(comm_lookout_watches(a, b, MANY), comm_lookout_watches(b, a, MANY));
            count += comm_lookout_watches(a, b, MANY);
        }
        assert_true(comm_lookout_watches(a, 0, MANY) || a == 0);
        assert_true(comm_lookout_watches(a, (a + 1) % MANY, MANY));
        assert_true(a == 0 ? count == MANY - 1 : count <= 21);
    }
}

static void test_none(void **state) {
    (void)state;
    comm_lost lost;
    assert_false(comm_lookout_lost(NULL, &lost));
    assert_int_equal(comm_lookout_bytes(NULL), 0);
    comm_lookout_tell(NULL, 1);
    comm_lookout_close(NULL);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_lost),          cmocka_unit_test(test_told),
        cmocka_unit_test(test_first_is_lost), cmocka_unit_test(test_strangers),
        cmocka_unit_test(test_several),       cmocka_unit_test(test_not_yet_known),
        cmocka_unit_test(test_watches),       cmocka_unit_test(test_none),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
