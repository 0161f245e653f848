#include "cli/watch/watch_terminal.h"

#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdio_ext.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/time.h>
#include <termios.h>
#include <unistd.h>

#include "cli/launch/ignored_signals.h"

/* Set by handlers, read between looks. */
static volatile sig_atomic_t asked, paused;

static struct termios before; /* of standard input, where it has keys */
static bool has_keys;

cli_window cli_watch_window(void) {
    struct winsize size = {0};
    if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0) size = (struct winsize){0};
    return (cli_window){size.ws_col ? size.ws_col : 80, size.ws_row ? size.ws_row : 24};
}

/* A terminal that nobody reads takes no more, and a write to it waits for ever: from now on alarms
 * end each write that waits. */
static void ask(int number) {
    static const struct itimerval often = {.it_interval = {.tv_usec = 200000},
                                           .it_value = {.tv_usec = 200000}};
    asked = number;
    setitimer(ITIMER_REAL, &often, NULL);
}

static void pause_it(int number) {
    (void)number;
    paused = 1;
}

/* That a wait ends is all that is to do. */
static void wake(int number) {
    (void)number;
}

static void catch_signals(void) {
    static const int stops[] = {SIGINT, SIGTERM, SIGQUIT, SIGHUP};
    struct sigaction action = {.sa_handler = ask};
    sigemptyset(&action.sa_mask);
    int count = cli_is_ignored(SIGHUP) ? 3 : 4;
    for (int i = 0; i < count; i++) sigaction(stops[i], &action, NULL);
    action.sa_handler = wake;
    sigaction(SIGALRM, &action, NULL);
    action.sa_handler = pause_it;
    sigaction(SIGTSTP, &action, NULL);
    action.sa_handler = wake;
    action.sa_flags = SA_RESTART; /* a write that it interrupts goes on */
    sigaction(SIGWINCH, &action, NULL);
}

static void put(const char *text) {
    fputs(text, stdout);
    fflush(stdout);
}

/* Keys come one by one and are not shown; Ctrl-C and Ctrl-Z stay signals. */
static void take_screen(void) {
    has_keys = tcgetattr(STDIN_FILENO, &before) == 0;
    if (has_keys) {
        struct termios keys = before;
        keys.c_lflag &= ~(tcflag_t)(ICANON | ECHO);
        keys.c_cc[VMIN] = 1;
        keys.c_cc[VTIME] = 0;
        tcsetattr(STDIN_FILENO, TCSANOW, &keys);
    }
    put("\x1b[?1049h\x1b[?25l\x1b[2J\x1b[H");
}

static void give_screen(void) {
    put("\x1b[0m\x1b[?25h\x1b[?1049l");
    if (has_keys) tcsetattr(STDIN_FILENO, TCSANOW, &before);
}

void cli_watch_begin(void) {
    catch_signals();
    take_screen();
}

/* Of a picture that was cut by a signal, the rest is dropped. */
int cli_watch_end(void) {
    if (asked && ferror(stdout)) {
        __fpurge(stdout);
        clearerr(stdout);
    }
    give_screen();
    return asked;
}

void cli_watch_show(const char *text, bool clear) {
    fputs(clear ? "\x1b[2J\x1b[H" : "\x1b[H", stdout);
    for (bool first = true; *text && !asked; first = false) {
        size_t length = strcspn(text, "\n");
        /* No line feed behind the last line, which would scroll a full screen. */
        printf("%s%.*s\x1b[K", first ? "" : "\r\n", (int)length, text);
        text += length + (text[length] == '\n');
    }
    fputs("\x1b[J", stdout);
    fflush(stdout);
}

/* As Ctrl-Z does elsewhere; goes on when the shell says so. */
static void stop_for_a_while(void) {
    paused = 0;
    give_screen();
    raise(SIGSTOP);
    take_screen();
}

/* -1: there is no key any more. */
static int read_key(void) {
    char key;
    return read(STDIN_FILENO, &key, 1) == 1 ? key : -1;
}

bool cli_watch_wait(int milliseconds, bool *again) {
    enum { CTRL_D = 4 };
    struct pollfd keys = {.fd = has_keys ? STDIN_FILENO : -1, .events = POLLIN};
    int count = poll(&keys, 1, milliseconds);
    *again = paused;
    if (paused) stop_for_a_while();
    if (asked) return true;
    if (count <= 0 || !keys.revents) return false;
    int key = read_key();
    if (key < 0 && !asked) has_keys = has_keys && !(keys.revents & (POLLHUP | POLLERR));
    return key == 'q' || key == 'Q' || key == CTRL_D;
}
