#include "train/report/loopback_server.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/heap.h"
#include "base/thread.h"

struct train_server {
    const char *path;
    char *(*page)(void *user, size_t *size);
    void *user;
    int listens, wake[2]; /* -1: closed; closing wake[1] ends the thread */
    bool started;
    pthread_t thread;
};

static const double patience = 2; /* seconds */

/* Whether the socket is ready for `events` before `until`. */
static bool is_ready(int socket, short events, double until) {
    struct pollfd of = {.fd = socket, .events = events};
    double left = until - base_seconds();
    return left > 0 && poll(&of, 1, (int)(1e3 * left) + 1) > 0;
}

/* Reads up to the empty line behind the headers; false where there is none in time or size. */
static bool read_request(int client, double until, char *request, size_t size) {
    size_t used = 0;
    while (used + 1 < size && is_ready(client, POLLIN, until)) {
        ssize_t got = recv(client, request + used, size - 1 - used, MSG_DONTWAIT);
        if (got == 0 || (got < 0 && errno != EINTR && errno != EAGAIN)) return false;
        used += got > 0 ? (size_t)got : 0;
        request[used] = '\0';
        if (strstr(request, "\r\n\r\n") || strstr(request, "\n\n")) return true;
    }
    return false;
}

static void send_all(int client, double until, const char *text, size_t size) {
    while (size && is_ready(client, POLLOUT, until)) {
        ssize_t sent = send(client, text, size, MSG_DONTWAIT | MSG_NOSIGNAL);
        if (sent < 0 && errno != EINTR && errno != EAGAIN) return;
        text += sent > 0 ? sent : 0;
        size -= sent > 0 ? (size_t)sent : 0;
    }
}

static void answer(int client, double until, const char *status, const char *text, size_t size) {
    char head[256];
    int used = snprintf(head, sizeof head,
                        "HTTP/1.1 %s\r\nContent-Type: text/plain; version=0.0.4; "
                        "charset=utf-8\r\nContent-Length: %zu\r\nConnection: close\r\n\r\n",
                        status, size);
    send_all(client, until, head, (size_t)used);
    send_all(client, until, text, size);
}

/* "GET PATH", with anything behind a question mark. */
static bool asks_for(const char *request, const char *path) {
    size_t size = strlen(path);
    return strncmp(request, "GET ", 4) == 0 && strncmp(request + 4, path, size) == 0 &&
           strchr(" ?\r\n", request[4 + size]) != NULL;
}

static void serve(const train_server *s, int client) {
    char request[4096], *text = NULL;
    size_t size = 0;
    double until = base_seconds() + patience;
    if (!read_request(client, until, request, sizeof request)) return;
    bool asked = asks_for(request, s->path);
    if (asked) text = s->page(s->user, &size);
    if (text)
        answer(client, until, "200 OK", text, size);
    else if (asked)
        answer(client, until, "503 Service Unavailable", "", 0);
    else if (strncmp(request, "GET ", 4) == 0)
        answer(client, until, "404 Not Found", "only /metrics is here\n", 22);
    else
        answer(client, until, "405 Method Not Allowed", "", 0);
    free(text);
}

static void *run(void *server) {
    const train_server *s = server;
    struct pollfd of[2] = {{.fd = s->listens, .events = POLLIN}, {.fd = s->wake[0]}};
    for (;;) {
        if (poll(of, 2, -1) < 0 && errno != EINTR) return NULL;
        if (of[1].revents) return NULL;
        if (!(of[0].revents & POLLIN)) continue;
        int client = accept4(s->listens, NULL, NULL, SOCK_CLOEXEC);
        if (client < 0) continue;
        serve(s, client);
        close(client);
    }
}

/* Not blocking: a client may have left between poll and accept. */
static sifr_status listen_at(train_server *s, int port, sifr_error *error) {
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
    int yes = 1;
    at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    s->listens = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (s->listens >= 0) setsockopt(s->listens, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
    if (s->listens < 0 || bind(s->listens, (struct sockaddr *)&at, sizeof at) != 0 ||
        listen(s->listens, 16) != 0)
        return base_fail_errno(error, errno, "127.0.0.1:%d", port);
    return SIFR_OK;
}

static sifr_status start(train_server *s, int port, sifr_error *error) {
    BASE_TRY(listen_at(s, port, error));
    if (pipe2(s->wake, O_CLOEXEC) != 0) return base_fail_errno(error, errno, "127.0.0.1:%d", port);
    int failed = base_thread_start(&s->thread, run, s);
    if (failed) return base_fail_errno(error, failed, "127.0.0.1:%d: no thread", port);
    s->started = true;
    return SIFR_OK;
}

sifr_status train_server_open(int port, const char *path, char *(*page)(void *user, size_t *size),
                              void *user, train_server **out, sifr_error *error) {
    train_server *s;
    BASE_TRY(base_alloc(1, sizeof *s, &s, error));
    *s = (train_server){.path = path, .page = page, .user = user, .listens = -1, .wake = {-1, -1}};
    sifr_status status = start(s, port, error);
    if (status == SIFR_OK)
        *out = s;
    else
        train_server_close(s);
    return status;
}

void train_server_close(train_server *s) {
    if (!s) return;
    if (s->wake[1] >= 0) close(s->wake[1]);
    if (s->started) pthread_join(s->thread, NULL);
    if (s->wake[0] >= 0) close(s->wake[0]);
    if (s->listens >= 0) close(s->listens);
    free(s);
}
