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
    char *reply;             /* NULL: the request is not whole, or all is sent: */
    bool answered;           /* what it sends from now on is read, and dropped */
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

static void drop(client *c) {
    close(c->socket);
    free(c->reply);
    c->socket = -1;
    c->reply = NULL;
}

/* --- answers --- */

static void answer(client *c, const char *status, const char *text, size_t size, bool with_text) {
    bool allows = strncmp(status, "405", 3) == 0;
    c->reply = malloc(HEAD_BYTES + size);
    if (!c->reply) return;
    int used = snprintf(c->reply, HEAD_BYTES,
                        "HTTP/1.1 %s\r\n%sContent-Type: text/plain; version=0.0.4; "
                        "charset=utf-8\r\nContent-Length: %zu\r\nConnection: close\r\n\r\n",
                        status, allows ? "Allow: GET, HEAD\r\n" : "", size);
    if (size && with_text) memcpy(c->reply + used, text, size);
    c->size = (size_t)used + (with_text ? size : 0);
    c->sent = 0;
}

/* "PATH", with anything behind a question mark. */
static bool is_path(const char *target, const char *path) {
    size_t size = strlen(path);
    return strncmp(target, path, size) == 0 && target[size] && strchr(" ?\r\n", target[size]);
}

/* HEAD is answered as GET, without the text. */
static void serve(const train_server *s, client *c) {
    static const char nowhere[] = "only /metrics is here\n";
    bool get = strncmp(c->request, "GET ", 4) == 0, head = strncmp(c->request, "HEAD ", 5) == 0;
    size_t size = 0;
    char *text = NULL;
    if (!get && !head) {
        answer(c, "405 Method Not Allowed", "", 0, true);
    } else if (!is_path(c->request + (get ? 4 : 5), s->path)) {
        answer(c, "404 Not Found", nowhere, sizeof nowhere - 1, get);
    } else if ((text = s->page(s->user, &size)) != NULL) {
        answer(c, "200 OK", text, size, get);
    } else {
        answer(c, "503 Service Unavailable", "", 0, true);
    }
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
    if (strstr(c->request, "\r\n\r\n") || strstr(c->request, "\n\n"))
        serve(s, c);
    else if (c->used + 1 == sizeof c->request)
        answer(c, "431 Request Header Fields Too Large", "", 0, true);
    else
        return true;
    return c->reply != NULL;
}

/* The reply ends with the connection's. What the client has sent beside its request, or still
 * sends, is read until it closes: to close before would take the reply back. */
static bool send_some(client *c) {
    ssize_t sent =
        send(c->socket, c->reply + c->sent, c->size - c->sent, MSG_DONTWAIT | MSG_NOSIGNAL);
    if (sent < 0) return errno == EINTR || errno == EAGAIN;
    c->sent += (size_t)sent;
    if (c->sent < c->size) return true;
    free(c->reply);
    c->reply = NULL;
    c->answered = true;
    return shutdown(c->socket, SHUT_WR) == 0;
}

static bool read_rest(client *c) {
    ssize_t got = recv(c->socket, c->request, sizeof c->request, MSG_DONTWAIT);
    return got > 0 || (got < 0 && (errno == EINTR || errno == EAGAIN));
}

static bool go_on(const train_server *s, client *c) {
    if (c->reply) return send_some(c);
    return c->answered ? read_rest(c) : read_some(s, c);
}

/* Whether it has more claim to its place: it waits for an answer, or has had less time. */
static bool goes_later(const client *c, const client *other) {
    if (c->answered != other->answered) return !c->answered;
    return c->until > other->until;
}

/* A free place; where there is none, that of the client with the least claim to it. */
static client *find_place(train_server *s) {
    client *first = s->clients;
    for (client *c = s->clients; c < s->clients + CLIENTS; c++) {
        if (c->socket < 0) return c;
        if (goes_later(first, c)) first = c;
    }
    drop(first);
    return first;
}

static void accept_all(train_server *s, double now) {
    int socket;
    while ((socket = accept4(s->listens, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK)) >= 0) {
        client *c = find_place(s);
        c->socket = socket;
        c->until = now + patience;
        c->used = 0;
        c->answered = false;
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
            if (ready > 0 && stays && c->socket >= 0 && of[FIRST + i].revents) stays = go_on(s, c);
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
