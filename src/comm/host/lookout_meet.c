/* How the first ranks of hosts find each other: by a port and a secret that MPI carried. */
#include <arpa/inet.h>
#include <errno.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/assert.h"
#include "base/clock.h"
#include "comm/host/lookout_private.h"

enum {
    STRANGERS = 16, /* connections of others that may stand in line */
    PATIENCE = 5    /* seconds in which the other side must be reached */
};

/* --- the place --- */

typedef union place {
    struct sockaddr any;
    struct sockaddr_in four;
    struct sockaddr_in6 six;
} place;

static socklen_t place_bytes(int family) {
    return family == AF_INET6 ? sizeof(struct sockaddr_in6) : sizeof(struct sockaddr_in);
}

/* False: of another kind, or of the link alone, whose number differs between hosts. */
static bool take_address(const struct sockaddr *from, bool six, comm_address *out) {
    *out = (comm_address){.family = from->sa_family};
    if (from->sa_family == AF_INET) {
        const struct sockaddr_in *four = (const struct sockaddr_in *)(const void *)from;
        memcpy(out->bytes, &four->sin_addr, sizeof four->sin_addr);
        return true;
    }
    if (from->sa_family != AF_INET6 || !six) return false;
    const struct sockaddr_in6 *address = (const struct sockaddr_in6 *)(const void *)from;
    memcpy(out->bytes, &address->sin6_addr, sizeof address->sin6_addr);
    return !IN6_IS_ADDR_LINKLOCAL(&address->sin6_addr);
}

/* The loopback's only where there is nothing else. */
static void list_addresses(bool six, comm_meeting *out) {
    struct ifaddrs *list;
    if (getifaddrs(&list) != 0) return;
    for (int loopback = 0; loopback < 2 && !out->addresses; loopback++)
        for (struct ifaddrs *i = list; i && out->addresses < COMM_ADDRESSES; i = i->ifa_next) {
            bool up = i->ifa_flags & IFF_UP, own = i->ifa_flags & IFF_LOOPBACK;
            if (!i->ifa_addr || !up || own != (loopback == 1)) continue;
            if (take_address(i->ifa_addr, six, &out->of[out->addresses])) out->addresses++;
        }
    freeifaddrs(list);
}

static place place_of(const comm_address *address, uint16_t port) {
    place out;
    memset(&out, 0, sizeof out);
    if (address->family == AF_INET6) {
        out.six.sin6_family = AF_INET6;
        out.six.sin6_port = htons(port);
        memcpy(&out.six.sin6_addr, address->bytes, sizeof out.six.sin6_addr);
    } else {
        out.four.sin_family = AF_INET;
        out.four.sin_port = htons(port);
        memcpy(&out.four.sin_addr, address->bytes, sizeof out.four.sin_addr);
    }
    return out;
}

/* At any free port; a socket of IPv6 hears IPv4 too. */
static int listen_at(int family, int32_t peers, uint16_t *port) {
    const comm_address any = {.family = family};
    place at = place_of(&any, 0);
    socklen_t length = place_bytes(family);
    int off = 0, file = socket(family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (file < 0) return -1;
    if (family == AF_INET6) setsockopt(file, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof off);
    if (bind(file, &at.any, length) == 0 && listen(file, peers + STRANGERS) == 0 &&
        getsockname(file, &at.any, &length) == 0) {
        *port = ntohs(family == AF_INET6 ? at.six.sin6_port : at.four.sin_port);
        return file;
    }
    int number = errno;
    close(file);
    errno = number;
    return -1;
}

static sifr_status make_secrets(comm_meeting *out, sifr_error *error) {
    if (getrandom(out->secret, COMM_SECRET, 0) == COMM_SECRET &&
        getrandom(out->answer, COMM_SECRET, 0) == COMM_SECRET)
        return SIFR_OK;
    return base_fail_errno(error, errno, "the watch of other hosts: no random bytes");
}

static sifr_status listen_here(comm_lookout *l, int32_t peers, sifr_error *error) {
    BASE_TRY(make_secrets(&l->meeting, error));
    l->listener = listen_at(AF_INET6, peers, &l->meeting.port);
    bool six = l->listener >= 0;
    if (!six) l->listener = listen_at(AF_INET, peers, &l->meeting.port);
    if (l->listener < 0) return base_fail_errno(error, errno, "the watch of other hosts: a port");
    list_addresses(six, &l->meeting);
    if (!l->meeting.addresses)
        return base_fail(error, SIFR_FAILED, "the watch of other hosts: this host has no address");
    return comm_lookout_start(l, error);
}

sifr_status comm_lookout_listen(int32_t rank, int32_t peers, comm_meeting *out, comm_lookout **made,
                                sifr_error *error) {
    comm_lookout *l;
    BASE_TRY(comm_lookout_make(rank, peers + STRANGERS, &l, error));
    sifr_status status = listen_here(l, peers, error);
    if (status != SIFR_OK) {
        comm_lookout_free(l);
        return status;
    }
    *out = l->meeting;
    *made = l;
    return SIFR_OK;
}

/* --- the way there --- */

static int milliseconds_until(double until) {
    double rest = until - base_seconds();
    return rest > 0 ? (int)(1000 * rest) + 1 : 0;
}

static int begin(const comm_address *address, uint16_t port) {
    place at = place_of(address, port);
    int file = socket(address->family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (file < 0) return -1;
    if (connect(file, &at.any, place_bytes(address->family)) == 0 || errno == EINPROGRESS)
        return file;
    close(file);
    return -1;
}

/* Says who this is, and waits for the answer that only the right one can give. */
static bool greet(const comm_lookout *l, const comm_meeting *at, int file, comm_lost *peer,
                  double until) {
    comm_note note;
    size_t got = 0;
    if (!comm_note_send(file, COMM_HELLO, &l->self, at->secret)) return false;
    while (got < sizeof note) {
        struct pollfd polled = {.fd = file, .events = POLLIN};
        if (poll(&polled, 1, milliseconds_until(until)) == 0) return false;
        ssize_t count = recv(file, (char *)&note + got, sizeof note - got, MSG_DONTWAIT);
        if (count == 0 || (count < 0 && errno != EAGAIN && errno != EINTR)) return false;
        if (count > 0) got += (size_t)count;
    }
    *peer = note.about;
    peer->host[COMM_HOST_NAME - 1] = '\0';
    return note.kind == COMM_WELCOME && comm_secret_is(note.secret, at->answer) &&
           comm_note_send(file, COMM_STAYS, &l->self, at->secret);
}

static bool is_connected(int file) {
    int number = 0;
    socklen_t length = sizeof number;
    return getsockopt(file, SOL_SOCKET, SO_ERROR, &number, &length) == 0 && number == 0;
}

/* All addresses at once: some may lead nowhere, or to another machine. */
static bool reach(const comm_lookout *l, const comm_meeting *at, comm_tie *tie) {
    base_assert(at->addresses >= 0 && at->addresses <= COMM_ADDRESSES);
    struct pollfd polled[COMM_ADDRESSES];
    int32_t count = at->addresses, open = 0;
    double until = base_seconds() + PATIENCE;
    tie->file = -1;
    for (int32_t i = 0; i < count; i++) {
        polled[i] = (struct pollfd){.fd = begin(&at->of[i], at->port), POLLOUT, 0};
        open += polled[i].fd >= 0;
    }
    while (open > 0 && tie->file < 0 && base_seconds() < until) {
        if (poll(polled, (nfds_t)count, milliseconds_until(until)) <= 0) continue;
        for (int32_t i = 0; i < count && tie->file < 0; i++) {
            int file = polled[i].fd;
            if (file < 0 || !polled[i].revents) continue;
            polled[i].fd = -1;
            open--;
            if (is_connected(file) && greet(l, at, file, &tie->peer, base_seconds() + 1))
                tie->file = file;
            else
                close(file);
        }
    }
    for (int32_t i = 0; i < count; i++)
        if (polled[i].fd >= 0) close(polled[i].fd);
    return tie->file >= 0;
}

sifr_status comm_lookout_join(comm_lookout *lookout, const comm_meeting *meeting,
                              sifr_error *error) {
    comm_tie tie = {.welcome = true, .known = true};
    if (!reach(lookout, meeting, &tie))
        return base_fail(error, SIFR_FAILED,
                         "no address of another host could be reached at port %d within %d s",
                         (int)meeting->port, (int)PATIENCE);
    comm_tie_probe(tie.file);
    pthread_mutex_lock(&lookout->lock);
    comm_tie *free_tie = comm_lookout_free_tie(lookout);
    if (free_tie) *free_tie = tie;
    pthread_mutex_unlock(&lookout->lock);
    comm_lookout_wake(lookout);
    if (free_tie) return SIFR_OK;
    close(tie.file);
    return base_fail(error, SIFR_FAILED, "the watch of other hosts: more hosts than were said");
}
