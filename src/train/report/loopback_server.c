#include "train/report/loopback_server.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <math.h>
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

enum { CLIENTS = 16, REQUEST_BYTES = 4096, HEAD_BYTES = 256, LISTENS = 0, WAKES = 1, FIRST = 2 };
static const double patience = 2; /* seconds that a client has */
static const double breather =
    0.1; /* and the listener where the system lacks what a client takes */

typedef struct client {
    int socket; /* -1: none */
    double until;
    size_t used, sent, size; /* of the request; of the reply */
    char *reply;             /* NULL: the request is not whole */
    char request[REQUEST_BYTES];
} client;

struct train_server {
    const char *path;
    char *(*page)(void *user, size_t *size);
    void *user;
    int listens, wake[2]; /* -1: closed; closing wake[1] ends the thread */
    bool started;
    double rests; /* no client is accepted before */
    pthread_t thread;
    client clients[CLIENTS];
};

/* What it has sent beside its request is read first: else closing would take the reply back. */
static void drop(client *c) {
    char rest[4096];
    if (c->reply && recv(c->socket, rest, sizeof rest, MSG_DONTWAIT) < 0) errno = 0;
    close(c->socket);
    free(c->reply);
    c->socket = -1;
    c->reply = NULL;
}

/* --- answers --- */

static void answer(client *c, const char *status, const char *text, size_t size) {
    c->reply = malloc(HEAD_BYTES + size);
    if (!c->reply) return;
    int used = snprintf(c->reply, HEAD_BYTES,
                        "HTTP/1.1 %s\r\nContent-Type: text/plain; version=0.0.4; "
                        "charset=utf-8\r\nContent-Length: %zu\r\nConnection: close\r\n\r\n",
                        status, size);
    if (size) memcpy(c->reply + used, text, size);
    c->size = (size_t)used + size;
    c->sent = 0;
}

/* "GET PATH", with anything behind a question mark. */
static bool asks_for(const char *request, const char *path) {
    size_t size = strlen(path);
    return strncmp(request, "GET ", 4) == 0 && strncmp(request + 4, path, size) == 0 &&
           strchr(" ?\r\n", request[4 + size]) != NULL;
}

static void serve(const train_server *s, client *c) {
    size_t size = 0;
    bool asked = asks_for(c->request, s->path);
    char *text = asked ? s->page(s->user, &size) : NULL;
    if (text)
        answer(c, "200 OK", text, size);
    else if (asked)
        answer(c, "503 Service Unavailable", "", 0);
    else if (strncmp(c->request, "GET ", 4) == 0)
        answer(c, "404 Not Found", "only /metrics is here\n", 22);
    else
        answer(c, "405 Method Not Allowed", "", 0);
    free(text);
}

/* --- clients --- */

/* Reads up to the empty line behind the headers; false: the client goes. */
static bool read_some(const train_server *s, client *c) {
    ssize_t got =
        recv(c->socket, c->request + c->used, sizeof c->request - 1 - c->used, MSG_DONTWAIT);
    if (got == 0) return false;
    if (got < 0) return errno == EINTR || errno == EAGAIN;
    c->used += (size_t)got;
    c->request[c->used] = '\0';
    if (!strstr(c->request, "\r\n\r\n") && !strstr(c->request, "\n\n"))
        return c->used + 1 < sizeof c->request;
    serve(s, c);
    return c->reply != NULL;
}

static bool send_some(client *c) {
    ssize_t sent =
        send(c->socket, c->reply + c->sent, c->size - c->sent, MSG_DONTWAIT | MSG_NOSIGNAL);
    if (sent < 0) return errno == EINTR || errno == EAGAIN;
    c->sent += (size_t)sent;
    return c->sent < c->size;
}

/* A free place; where there is none, that of the client who has had the most time. */
static client *find_place(train_server *s) {
    client *oldest = s->clients;
    for (client *c = s->clients; c < s->clients + CLIENTS; c++) {
        if (c->socket < 0) return c;
        if (c->until < oldest->until) oldest = c;
    }
    drop(oldest);
    return oldest;
}

static void accept_all(train_server *s, double now) {
    int socket;
    while ((socket = accept4(s->listens, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK)) >= 0) {
        client *c = find_place(s);
        c->socket = socket;
        c->until = now + patience;
        c->used = 0;
    }
    bool left = errno == EAGAIN || errno == EINTR || errno == ECONNABORTED;
    s->rests = left ? 0 : now + breather;
}

/* --- the thread --- */

/* What it waits for, and for how long, in milliseconds; -1: without end. */
static int prepare(const train_server *s, double now, struct pollfd of[FIRST + CLIENTS]) {
    double next = s->rests > now ? s->rests : INFINITY;
    of[LISTENS] = (struct pollfd){.fd = s->rests > now ? -1 : s->listens, .events = POLLIN};
    of[WAKES] = (struct pollfd){.fd = s->wake[0]};
    for (int i = 0; i < CLIENTS; i++) {
        const client *c = &s->clients[i];
        of[FIRST + i] = (struct pollfd){.fd = c->socket, .events = c->reply ? POLLOUT : POLLIN};
        if (c->socket >= 0 && c->until < next) next = c->until;
    }
    if (isinf(next)) return -1;
    return next > now ? (int)(1e3 * (next - now)) + 1 : 0;
}

static void *run(void *server) {
    train_server *s = server;
    struct pollfd of[FIRST + CLIENTS];
    for (;;) {
        int wait = prepare(s, base_seconds(), of);
        int ready = poll(of, FIRST + CLIENTS, wait);
        if (ready < 0 && errno != EINTR) return NULL;
        if (ready > 0 && of[WAKES].revents) return NULL;
        double now = base_seconds();
        for (int i = 0; i < CLIENTS; i++) {
            client *c = &s->clients[i];
            bool stays = c->socket < 0 || now < c->until;
            if (ready > 0 && stays && c->socket >= 0 && of[FIRST + i].revents)
                stays = c->reply ? send_some(c) : read_some(s, c);
            if (!stays) drop(c);
        }
        if (ready > 0 && of[LISTENS].revents) accept_all(s, now);
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
        listen(s->listens, 128) != 0)
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
    for (int i = 0; i < CLIENTS; i++) s->clients[i].socket = -1;
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
    for (int i = 0; i < CLIENTS; i++)
        if (s->clients[i].socket >= 0) drop(&s->clients[i]);
    if (s->wake[0] >= 0) close(s->wake[0]);
    if (s->listens >= 0) close(s->listens);
    free(s);
}
