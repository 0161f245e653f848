/* A trial in a process of its own, and what came of it. */
#include "device/look/look.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"

_Static_assert(sizeof(look_result) <= 4096, "written to a pipe whole, or not");

size_t look_count_rows(const look_trial *trial) {
    size_t count = 0;
    while (count < LOOK_ROWS && trial->rows[count].name) count++;
    return count;
}

void look_end_with_parent(int signal, int parent) {
    prctl(PR_SET_PDEATHSIG, signal);
    if (getppid() != parent) _exit(0); /* it ended before that */
}

/* In a row of a table. */
static void make_plain(char *text) {
    for (; *text; text++)
        if (*text == '|')
            *text = '/';
        else if ((unsigned char)*text < ' ')
            *text = ' ';
}

static void try_row(look *l, const look_row *row, look_result *out) {
    sifr_error error = {0};
    *out = (look_result){0};
    sifr_status status = row->run(l, out->figure, &error);
    out->good = status == SIFR_OK || row->optional;
    if (status == SIFR_OK)
        snprintf(out->result, sizeof out->result, "%s", row->optional ? "there" : "passed");
    else if (row->optional)
        snprintf(out->result, sizeof out->result, "not there");
    else
        snprintf(out->result, sizeof out->result, "failed: %.680s", error.message);
    if (status != SIFR_OK) snprintf(out->figure, sizeof out->figure, "%s", row->otherwise);
    make_plain(out->result);
    make_plain(out->figure);
}

/* Before either process has called a driver. */
static int start_other(const look_trial *trial, int rows) {
    int pair[2], parent = getpid();
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) != 0) _exit(1);
    int process = fork();
    if (process < 0) _exit(1);
    if (process > 0) {
        close(pair[1]);
        return pair[0];
    }
    look l = {.other = pair[1]};
    sifr_error error = {0};
    close(pair[0]);
    close(rows);
    look_end_with_parent(SIGKILL, parent);
    _exit(trial->other(&l, &error) == SIFR_OK ? 0 : 1); /* what failed, it answers */
}

/* The trial's process. Ends without closing the GPU, which the driver does then. */
static void work(const look_trial *trial, int out, int parent) {
    look l = {.other = -1};
    setpgid(0, 0);
    look_end_with_parent(SIGKILL, parent);
    if (trial->other) l.other = start_other(trial, out);
    for (size_t i = 0; i < look_count_rows(trial); i++) {
        look_result result;
        try_row(&l, &trial->rows[i], &result);
        if (write(out, &result, sizeof result) != sizeof result) _exit(1);
    }
    close(out);
    while (trial->stays) pause();
    _exit(0);
}

/* Results until the pipe is closed or the time is over, which sets *late. */
static size_t receive(int in, double until, look_result *out, size_t most, bool *late) {
    size_t used = 0, whole = most * sizeof *out;
    *late = false;
    while (used < whole) {
        double left = until - base_seconds();
        struct pollfd ready = {.fd = in, .events = POLLIN};
        int found = left > 0 ? poll(&ready, 1, (int)(1e3 * left) + 1) : 0;
        *late = found == 0;
        if (found < 0 && errno == EINTR) continue;
        if (found <= 0) break;
        ssize_t got = read(in, (char *)out + used, whole - used);
        if (got < 0 && errno == EINTR) continue;
        if (got <= 0) break;
        used += (size_t)got;
    }
    return used / sizeof *out;
}

/* Whether it ended by then. */
static bool wait_until(int process, double until, int *status) {
    const struct timespec nap = {.tv_nsec = 1000000};
    for (;;) {
        int ended = waitpid(process, status, WNOHANG);
        if (ended == process || (ended < 0 && errno != EINTR)) return true;
        if (base_seconds() >= until) return false;
        nanosleep(&nap, NULL);
    }
}

/* With the processes that it started. One that stands inside the driver may not end even then;
 * nobody waits for it longer. */
void look_end(int process) {
    int status;
    kill(-process, SIGKILL);
    wait_until(process, base_seconds() + 2, &status);
}

static void say_end(int status, char *out, size_t size) {
    if (WIFSIGNALED(status))
        snprintf(out, size, "failed: its process ended by signal %d (%s)", WTERMSIG(status),
                 strsignal(WTERMSIG(status)));
    else
        snprintf(out, size, "failed: its process ended with %d", WEXITSTATUS(status));
}

/* Of rows that did not come: why the first did not, and that the others were not tried. */
static void fill_missing(const look_trial *trial, size_t from, const char *why,
                         look_result *results) {
    for (size_t i = from; i < look_count_rows(trial); i++) {
        look_result *r = &results[i];
        *r = (look_result){0};
        if (i == from || strncmp(why, "not run", 7) == 0)
            snprintf(r->result, sizeof r->result, "%s", why);
        else
            snprintf(r->result, sizeof r->result, "not run: %s did not end well",
                     trial->rows[from].name);
        snprintf(r->figure, sizeof r->figure, "%s", trial->rows[i].otherwise);
    }
}

/* Fills results, and `why` if some did not come. Returns how many did. */
static size_t follow(int process, int in, const look_trial *trial, double until,
                     look_result *results, char why[LOOK_TEXT]) {
    double begun = base_seconds();
    size_t rows = look_count_rows(trial);
    bool late;
    int status = 0;
    setpgid(process, process); /* whichever of both does so first */
    size_t got = receive(in, until, results, rows, &late);
    if (got == rows && trial->stays) return got;
    if (!late) wait_until(process, until, &status);
    if (late)
        snprintf(why, LOOK_TEXT, "no end within %.0f s", until - begun);
    else
        say_end(status, why, LOOK_TEXT);
    look_end(process); /* or what it left behind */
    return got;
}

int look_run(const look_trial *trial, double seconds, look_result results[LOOK_ROWS]) {
    int ends[2], parent = getpid();
    size_t rows = look_count_rows(trial);
    char why[LOOK_TEXT];
    fflush(stdout);
    if (seconds <= 0 || pipe2(ends, O_CLOEXEC) != 0) {
        fill_missing(trial, 0, "not run: no time was left", results);
        return 0;
    }
    int process = fork();
    if (process == 0) {
        close(ends[0]);
        work(trial, ends[1], parent);
    }
    close(ends[1]);
    size_t got = 0;
    snprintf(why, sizeof why, "failed: no process: %s", strerror(errno));
    if (process > 0) got = follow(process, ends[0], trial, base_seconds() + seconds, results, why);
    close(ends[0]);
    if (got < rows) fill_missing(trial, got, why, results);
    return got == rows && trial->stays ? process : 0;
}
