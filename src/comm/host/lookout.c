#include <errno.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/assert.h"
#include "base/heap.h"
#include "base/thread.h"
#include "comm/host/lookout_private.h"

void comm_host_name(char out[COMM_HOST_NAME]) {
    char name[256] = "";
    if (gethostname(name, sizeof name - 1) != 0) name[0] = '\0';
    snprintf(out, COMM_HOST_NAME, "%.*s", COMM_HOST_NAME - 1, name);
}

bool comm_note_send(int file, comm_note_kind kind, const comm_lost *about,
                    const unsigned char secret[COMM_SECRET]) {
    comm_note note;
    memset(&note, 0, sizeof note);
    note.kind = kind;
    note.about = *about;
    memcpy(note.secret, secret, COMM_SECRET);
    return send(file, &note, sizeof note, MSG_NOSIGNAL | MSG_DONTWAIT) == sizeof note;
}

/* In the same time wherever they differ. */
bool comm_secret_is(const unsigned char *a, const unsigned char *b) {
    unsigned char differ = 0;
    for (int i = 0; i < COMM_SECRET; i++) differ |= a[i] ^ b[i];
    return !differ;
}

void comm_tie_probe(int file) {
    int on = 1, idle = 2, each = 1, count = COMM_SILENT - idle, limit = 1000 * COMM_SILENT;
    setsockopt(file, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
    setsockopt(file, IPPROTO_TCP, TCP_KEEPIDLE, &idle, sizeof idle);
    setsockopt(file, IPPROTO_TCP, TCP_KEEPINTVL, &each, sizeof each);
    setsockopt(file, IPPROTO_TCP, TCP_KEEPCNT, &count, sizeof count);
    setsockopt(file, IPPROTO_TCP, TCP_USER_TIMEOUT, &limit,
               sizeof limit); /* with bytes under way */
}

static void keep_loss(comm_loss *loss, const comm_lost *lost) {
    if (!loss) return;
    loss->lost = *lost;
    atomic_store(&loss->found, true);
}

/* The first loss is the cause of further ones. All that are connected here hear of it, those whose
 * word that they stay is still unread among them. */
static void lose(comm_lookout *l, const comm_lost *lost) {
    if (atomic_load(&l->own.found)) return;
    keep_loss(&l->own, lost);
    keep_loss(l->shared, lost);
    for (int32_t i = 0; i < l->capacity; i++)
        if (l->ties[i].file >= 0 && l->ties[i].welcome)
            (void)comm_note_send(l->ties[i].file, COMM_LOST, lost, l->meeting.answer);
}

static void end_tie(comm_lookout *l, comm_tie *tie, int number) {
    base_assert(tie->file >= 0);
    close(tie->file);
    tie->file = -1;
    if (!tie->known || tie->left) return;
    bool ended = number == 0 || number == ECONNRESET; /* its kernel says so; else nobody does */
    tie->peer.silent = ended ? 0 : COMM_SILENT;
    memcpy(tie->peer.finder, l->self.host, COMM_HOST_NAME);
    lose(l, &tie->peer);
}

static bool welcome(comm_lookout *l, comm_tie *tie) {
    const comm_note *note = &tie->note;
    if (note->kind != COMM_HELLO || !comm_secret_is(note->secret, l->meeting.secret)) return false;
    tie->peer = note->about;
    tie->welcome = comm_note_send(tie->file, COMM_WELCOME, &l->self, l->meeting.answer);
    return tie->welcome;
}

/* False: a stranger. */
static bool read_note(comm_lookout *l, comm_tie *tie) {
    const comm_note *note = &tie->note;
    if (!tie->welcome) return welcome(l, tie);
    if (note->kind == COMM_STAYS) {
        tie->known = true;
        comm_tie_probe(tie->file);
    }
    if (note->kind == COMM_GOODBYE) tie->left = true;
    if (note->kind == COMM_LOST) lose(l, &note->about);
    return true;
}

static void read_tie(comm_lookout *l, comm_tie *tie) {
    base_assert(tie->file >= 0 && tie->got < sizeof tie->note);
    ssize_t count =
        recv(tie->file, (char *)&tie->note + tie->got, sizeof tie->note - tie->got, MSG_DONTWAIT);
    if (count < 0 && (errno == EAGAIN || errno == EINTR)) return;
    if (count <= 0) {
        end_tie(l, tie, count < 0 ? errno : 0);
        return;
    }
    tie->got += (size_t)count;
    if (tie->got < sizeof tie->note) return;
    tie->got = 0;
    tie->note.about.host[COMM_HOST_NAME - 1] = '\0';
    tie->note.about.finder[COMM_HOST_NAME - 1] = '\0';
    if (!read_note(l, tie)) end_tie(l, tie, 0);
}

comm_tie *comm_lookout_free_tie(comm_lookout *l) {
    comm_tie *found = NULL;
    for (int32_t i = 0; i < l->capacity; i++)
        if (l->ties[i].file < 0 || (!found && !l->ties[i].welcome)) found = &l->ties[i];
    if (found && found->file >= 0) close(found->file);
    if (found) *found = (comm_tie){.file = -1};
    return found;
}

static void accept_tie(comm_lookout *l) {
    int file = accept4(l->listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
    comm_tie *tie = file < 0 ? NULL : comm_lookout_free_tie(l);
    if (tie)
        tie->file = file;
    else if (file >= 0)
        close(file);
}

static void seal(comm_lookout *l) {
    if (l->listener < 0) return;
    close(l->listener);
    l->listener = -1;
    for (int32_t i = 0; i < l->capacity; i++)
        if (l->ties[i].file >= 0 && !l->ties[i].welcome) end_tie(l, &l->ties[i], 0);
}

/* Until something is said, or this thread is woken. */
static int sleep_on(comm_lookout *l) {
    l->polled[0] = (struct pollfd){.fd = l->wake, .events = POLLIN};
    l->polled[1] = (struct pollfd){.fd = l->listener, .events = POLLIN};
    for (int32_t i = 0; i < l->capacity; i++)
        l->polled[2 + i] = (struct pollfd){.fd = l->ties[i].file, .events = POLLIN};
    pthread_mutex_unlock(&l->lock);
    int count = poll(l->polled, (nfds_t)l->capacity + 2, -1);
    pthread_mutex_lock(&l->lock);
    return count;
}

static void *look_out(void *argument) {
    comm_lookout *l = argument;
    pthread_mutex_lock(&l->lock);
    while (!atomic_load(&l->stop)) {
        uint64_t woken;
        if (sleep_on(l) < 0) continue;
        if (l->polled[0].revents) (void)!read(l->wake, &woken, sizeof woken);
        for (int32_t i = 0; i < l->capacity; i++)
            if (l->polled[2 + i].revents) read_tie(l, &l->ties[i]);
        if (l->polled[1].revents) accept_tie(l);
        if (atomic_load(&l->sealed)) seal(l);
    }
    for (int32_t i = 0; i < l->capacity; i++)
        if (l->ties[i].file >= 0 && l->ties[i].welcome)
            (void)comm_note_send(l->ties[i].file, COMM_GOODBYE, &l->self, l->meeting.answer);
    pthread_mutex_unlock(&l->lock);
    return NULL;
}

sifr_status comm_lookout_make(int32_t rank, int32_t capacity, comm_lookout **out,
                              sifr_error *error) {
    base_assert(capacity >= 1);
    comm_lookout *l;
    sifr_status status;
    BASE_TRY(base_alloc(1, sizeof *l, &l, error));
    pthread_mutex_init(&l->lock, NULL);
    l->listener = -1;
    l->wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    BASE_TRY_GOTO(status, base_alloc((size_t)capacity, sizeof *l->ties, &l->ties, error), fail);
    BASE_TRY_GOTO(status, base_alloc((size_t)capacity + 2, sizeof *l->polled, &l->polled, error),
                  fail);
    l->capacity = capacity;
    for (int32_t i = 0; i < capacity; i++) l->ties[i].file = -1;
    l->self.rank = rank;
    comm_host_name(l->self.host);
    if (l->wake >= 0) {
        *out = l;
        return SIFR_OK;
    }
    status = base_fail_errno(error, errno, "the watch of other hosts");
fail:
    comm_lookout_free(l);
    return status;
}

sifr_status comm_lookout_start(comm_lookout *lookout, sifr_error *error) {
    int result = base_thread_start(&lookout->thread, look_out, lookout);
    if (result == 0) return SIFR_OK;
    return base_fail_errno(error, result, "the watch of other hosts: its thread");
}

void comm_lookout_free(comm_lookout *lookout) {
    for (int32_t i = 0; i < lookout->capacity; i++)
        if (lookout->ties[i].file >= 0) close(lookout->ties[i].file);
    if (lookout->listener >= 0) close(lookout->listener);
    if (lookout->wake >= 0) close(lookout->wake);
    pthread_mutex_destroy(&lookout->lock);
    free(lookout->ties);
    free(lookout->polled);
    free(lookout);
}

void comm_lookout_wake(comm_lookout *lookout) {
    const uint64_t one = 1;
    (void)!write(lookout->wake, &one, sizeof one);
}

void comm_lookout_seal(comm_lookout *lookout) {
    atomic_store(&lookout->sealed, true);
    comm_lookout_wake(lookout);
}

bool comm_lookout_watches(int32_t a, int32_t b, int32_t hosts) {
    base_assert(a >= 0 && a < hosts && b >= 0 && b < hosts);
    int32_t way = a < b ? b - a : a - b, back = hosts - way;
    bool power = (way & (way - 1)) == 0 || (back & (back - 1)) == 0;
    return a != b && (hosts <= COMM_ALL_HOSTS || a == 0 || b == 0 || power);
}

void comm_lookout_tell(comm_lookout *lookout, int32_t rank) {
    if (!lookout) return;
    pthread_mutex_lock(&lookout->lock);
    comm_lost lost = lookout->self;
    lost.rank = rank;
    memcpy(lost.finder, lost.host, COMM_HOST_NAME);
    lose(lookout, &lost);
    pthread_mutex_unlock(&lookout->lock);
}

void comm_lookout_share(comm_lookout *lookout, comm_loss *loss) {
    pthread_mutex_lock(&lookout->lock);
    lookout->shared = loss;
    if (atomic_load(&lookout->own.found)) keep_loss(loss, &lookout->own.lost);
    pthread_mutex_unlock(&lookout->lock);
}

bool comm_loss_read(comm_loss *loss, comm_lost *out) {
    if (!atomic_load(&loss->found)) return false;
    *out = loss->lost;
    return true;
}

bool comm_lookout_lost(comm_lookout *lookout, comm_lost *out) {
    return lookout && comm_loss_read(&lookout->own, out);
}

void comm_lookout_close(comm_lookout *lookout) {
    if (!lookout) return;
    atomic_store(&lookout->stop, true);
    comm_lookout_wake(lookout);
    pthread_join(lookout->thread, NULL);
    comm_lookout_free(lookout);
}

int64_t comm_lookout_bytes(const comm_lookout *lookout) {
    if (!lookout) return 0;
    return (int64_t)sizeof *lookout +
           lookout->capacity * (int64_t)(sizeof *lookout->ties + sizeof *lookout->polled);
}
