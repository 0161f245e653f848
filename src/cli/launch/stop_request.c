#include "cli/launch/stop_request.h"

#include <signal.h>
#include <stdio.h>
#include <unistd.h>

#include "cli/launch/stop_signals.h"

static const int64_t never = INT64_MAX, millisecond = 1000000;
enum { FIRST_PAUSE = 250, LONGEST_PAUSE = 4000, HELD = 5000, UNTIL_KILLED = 3000 };

/* Kills a process and its descendants; the parents first, so that they start no more. */
static void kill_family(pid_t process) {
    char path[64];
    int child;
    snprintf(path, sizeof path, "/proc/%d/task/%d/children", (int)process, (int)process);
    FILE *children = fopen(path, "re");
    kill(process, SIGSTOP);
    while (children && fscanf(children, "%d", &child) == 1) kill_family((pid_t)child);
    if (children) fclose(children);
    kill(process, SIGKILL);
}

bool cli_stop_request_take(cli_stop_request *r, int number) {
    int64_t now = cli_stop_clock();
    uint64_t bit = (uint64_t)1 << number;
    bool ends = cli_stop_ends(&r->seen, number, now);
    if (!(r->seen.kinds & bit)) r->seen.since = now;
    r->seen.kinds |= bit;
    if (r->asked && !ends) return false;
    r->again = r->asked != 0;
    r->asked = number;
    r->sent = false;
    r->pause = FIRST_PAUSE * millisecond;
    r->next = r->mpich && !r->begun && !r->again ? now + HELD * millisecond : now;
    return true;
}

void cli_stop_request_begin(cli_stop_request *r) {
    r->begun = true;
    if (r->asked && !r->sent) r->next = cli_stop_clock();
}

static void end(cli_stop_request *r, int64_t now) {
    if (r->sent)
        kill_family(r->launcher);
    else
        kill(r->launcher, r->mpich ? SIGTERM : SIGINT); /* Open MPI's has SIGTERM blocked */
    r->next = r->sent ? never : now + UNTIL_KILLED * millisecond;
}

static void pass(cli_stop_request *r, int64_t now) {
    int number = r->asked == SIGINT ? SIGUSR1 : SIGUSR2;
    kill(r->launcher, r->mpich ? SIGTERM : number);
    r->next = r->mpich ? never : now + r->pause;
    if (r->pause < LONGEST_PAUSE * millisecond) r->pause *= 2;
}

void cli_stop_request_act(cli_stop_request *r) {
    int64_t now = cli_stop_clock();
    if (!r->asked || now < r->next) return;
    if (r->again)
        end(r, now);
    else
        pass(r, now);
    r->sent = true;
}

int cli_stop_request_wait(const cli_stop_request *r) {
    int64_t now = cli_stop_clock();
    if (!r->asked || r->next == never) return -1;
    return r->next <= now ? 0 : (int)((r->next - now) / millisecond) + 1;
}
