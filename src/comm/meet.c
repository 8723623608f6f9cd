/* SPDX-License-Identifier: MIT */
/*
 * The meeting: all ranks come to rank 0, which listens at MASTER_ADDR and MASTER_PORT, and say where they listen
 * themselves; it tells everybody, and each then comes to those of a lower rank. So every two have a connection, and
 * nobody listens any more. What comes from elsewhere does not have the right words, and is sent away.
 */
#include "comm/meet.h"

#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "core/clock.h"
#include "core/memory.h"
#include "tn_build_config.h"

#define WORDS "tanso " TN_BUILD_VERSION

/* What a rank says of itself. */
typedef struct card {
    char words[32], host[TN__HOST_NAME];
    int32_t rank, size;
    struct sockaddr_storage address; /* where it listens */
    socklen_t length;
} card;

typedef struct meeting {
    tn__meeting *m;
    card *cards; /* by rank */
    int listener;
    double until;
    tn__why *why;
} meeting;

static bool fails(const meeting *at, const char *format, ...) TN_PRINTF(2, 3);
static bool fails(const meeting *at, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    vsnprintf(at->why->text, sizeof at->why->text, format, args);
    va_end(args);
    return false;
}

/* ---- bytes, until the time is over ---- */

static bool wait_for(int fd, short events, double until)
{
    for (double left; (left = until - tn__seconds()) > 0;) {
        struct pollfd p = {.fd = fd, .events = events};
        int ready = poll(&p, 1, left > 1 ? 1000 : (int)(left * 1000) + 1);
        if (ready > 0 || (ready < 0 && errno != EINTR))
            return ready > 0;
    }
    return false;
}

static bool move(int fd, void *data, size_t bytes, bool out, double until)
{
    char *at = data;
    while (bytes) {
        if (!wait_for(fd, out ? POLLOUT : POLLIN, until))
            return false;
        ssize_t moved = out ? send(fd, at, bytes, MSG_NOSIGNAL) : recv(fd, at, bytes, 0);
        if (moved < 0 && (errno == EINTR || errno == EAGAIN))
            continue;
        if (moved <= 0)
            return false;
        at += moved;
        bytes -= (size_t)moved;
    }
    return true;
}

static bool put(int fd, const void *data, size_t bytes, double until)
{
    return move(fd, (void *)data, bytes, true, until);
}

static bool get(int fd, void *data, size_t bytes, double until) { return move(fd, data, bytes, false, until); }

/* ---- sockets ---- */

static int new_socket(int family)
{
    int fd = socket(family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0), on = 1;
    if (fd >= 0 && family != AF_UNIX)
        (void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    return fd;
}

static int listen_at(const struct sockaddr *address, socklen_t length, int most)
{
    int fd = new_socket(address->sa_family), on = 1;
    if (fd >= 0 && setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on) == 0 && bind(fd, address, length) == 0 &&
        listen(fd, most) == 0)
        return fd;
    int error = errno;
    if (fd >= 0)
        close(fd);
    errno = error;
    return -1;
}

/* -1: there is nobody yet. */
static int connect_to(const struct sockaddr *address, socklen_t length, double until)
{
    int fd = new_socket(address->sa_family), error = 0;
    socklen_t size = sizeof error;
    if (fd < 0)
        return -1;
    if (connect(fd, address, length) == 0 ||
        (errno == EINPROGRESS && wait_for(fd, POLLOUT, until) &&
         getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &size) == 0 && error == 0))
        return fd;
    close(fd);
    return -1;
}

static int accept_one(int listener, double until)
{
    int on = 1;
    int fd = wait_for(listener, POLLIN, until) ? accept4(listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK) : -1;
    if (fd >= 0)
        (void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    return fd;
}

/* ---- who comes ---- */

static card own_card(const meeting *at)
{
    card own = {.words = WORDS, .rank = at->m->rank, .size = at->m->size};
    gethostname(own.host, sizeof own.host - 1);
    return own;
}

/* A card that may come in, or false: from elsewhere, or, with why, of ranks that do not fit. */
static bool fits(const meeting *at, const card *c)
{
    *at->why->text = 0;
    if (strncmp(c->words, "tanso ", 6) != 0)
        return false;
    if (strncmp(c->words, WORDS, sizeof c->words) != 0)
        return fails(at, "rank %d is of %.31s, rank 0 of " WORDS, (int)c->rank, c->words);
    if (c->size != at->m->size)
        return fails(at, "rank %d has WORLD_SIZE=%d, rank 0 %d", (int)c->rank, (int)c->size, at->m->size);
    if (c->rank < 1 || c->rank >= at->m->size || at->m->socket[c->rank] >= 0)
        return fails(at, "there is another process of RANK=%d", (int)c->rank);
    return true;
}

static bool some_missing(const meeting *at, const char *place)
{
    tn__text text = {0};
    for (int r = 1; r < at->m->size; r++)
        if (at->m->socket[r] < 0)
            tn__text_addf(&text, " %d", r);
    char *who = tn__text_take(&text);
    fails(at, "these ranks have not come to %s in time:%.300s", place, who ? who : " (out of memory)");
    tn__free(who);
    return false;
}

static bool receive_all(const meeting *at, const char *place)
{
    for (int here = 1; here < at->m->size;) {
        card c;
        int fd = accept_one(at->listener, at->until);
        if (fd < 0 && tn__seconds() >= at->until)
            return some_missing(at, place);
        if (fd < 0)
            continue;
        double soon = tn__seconds() + 5;
        if (!get(fd, &c, sizeof c, soon < at->until ? soon : at->until) || !fits(at, &c)) {
            close(fd);
            if (*at->why->text)
                return false;
            continue;
        }
        at->m->socket[c.rank] = fd;
        at->cards[c.rank] = c;
        here++;
    }
    for (int r = 1; r < at->m->size; r++)
        if (!put(at->m->socket[r], at->cards, (size_t)at->m->size * sizeof *at->cards, at->until))
            return fails(at, "rank %d went away while the ranks met", r);
    return true;
}

static bool lead(meeting *at, const struct addrinfo *to, const char *place)
{
    at->listener = listen_at(to->ai_addr, to->ai_addrlen, at->m->size);
    if (at->listener < 0)
        return fails(at, "rank 0 cannot listen at %s (MASTER_ADDR, MASTER_PORT): %s", place, strerror(errno));
    at->cards[0] = own_card(at);
    return receive_all(at, place);
}

/* ---- who comes to others ---- */

static bool come(meeting *at, const struct addrinfo *to, const char *place)
{
    int fd;
    while ((fd = connect_to(to->ai_addr, to->ai_addrlen, at->until)) < 0) {
        if (tn__seconds() >= at->until)
            return fails(at, "rank 0 is not at %s (MASTER_ADDR, MASTER_PORT)", place);
        nanosleep(&(struct timespec){.tv_nsec = 20000000}, NULL);
    }
    at->m->socket[0] = fd;
    card own = own_card(at);
    own.length = sizeof own.address;
    struct sockaddr *address = (struct sockaddr *)&own.address;
    if (getsockname(fd, address, &own.length) != 0)
        return fails(at, "no address: %s", strerror(errno));
    memset(address->sa_data, 0, 2); /* any port */
    at->listener = listen_at(address, own.length, at->m->size);
    if (at->listener < 0 || getsockname(at->listener, address, &own.length) != 0)
        return fails(at, "rank %d cannot listen: %s", at->m->rank, strerror(errno));
    if (!put(fd, &own, sizeof own, at->until) ||
        !get(fd, at->cards, (size_t)at->m->size * sizeof *at->cards, at->until))
        return fails(at, "rank 0 at %s has sent this one away, or not all ranks have come", place);
    return true;
}

static bool meet_lower(const meeting *at)
{
    int32_t own = at->m->rank;
    for (int r = 1; r < own; r++) {
        const card *c = &at->cards[r];
        at->m->socket[r] = connect_to((const struct sockaddr *)&c->address, c->length, at->until);
        if (at->m->socket[r] < 0 || !put(at->m->socket[r], &own, sizeof own, at->until))
            return fails(at, "rank %d cannot be reached from rank %d", r, (int)own);
    }
    return true;
}

static bool meet_higher(const meeting *at)
{
    for (int left = at->m->size - 1 - at->m->rank; left > 0;) {
        int32_t rank = -1;
        int fd = accept_one(at->listener, at->until);
        if (fd < 0 && tn__seconds() >= at->until)
            return fails(at, "%d ranks behind rank %d have not come", left, at->m->rank);
        if (fd < 0)
            continue;
        if (!get(fd, &rank, sizeof rank, at->until) || rank <= at->m->rank || rank >= at->m->size ||
            at->m->socket[rank] >= 0) {
            close(fd);
            continue;
        }
        at->m->socket[rank] = fd;
        left--;
    }
    return true;
}

/* ---- the meeting ---- */

static bool prepare(meeting *at)
{
    size_t size = (size_t)at->m->size;
    at->m->socket = tn__alloc(size * sizeof *at->m->socket);
    at->m->host = tn__calloc(size, sizeof *at->m->host);
    at->cards = tn__calloc(size, sizeof *at->cards);
    for (size_t r = 0; r < size && at->m->socket; r++)
        at->m->socket[r] = -1;
    return (at->m->socket && at->m->host && at->cards) || fails(at, "out of memory");
}

static bool hold(meeting *at)
{
    const char *name = getenv("MASTER_ADDR"), *port = getenv("MASTER_PORT");
    struct addrinfo *to = NULL, hints = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_NUMERICSERV};
    char place[200];
    snprintf(place, sizeof place, "%.150s:%.20s", name, port);
    int error = getaddrinfo(name, port, &hints, &to);
    if (error)
        return fails(at, "%s (MASTER_ADDR, MASTER_PORT) is nowhere: %s", place, gai_strerror(error));
    bool done = at->m->rank == 0 ? lead(at, to, place)
                                 : come(at, to, place) && meet_lower(at) && meet_higher(at);
    freeaddrinfo(to);
    return done;
}

bool tn__meet(tn__meeting *m, double seconds, tn__why *why)
{
    meeting at = {.m = m, .listener = -1, .until = tn__seconds() + seconds, .why = why};
    bool done = prepare(&at) && hold(&at);
    for (int r = 0; r < m->size && done; r++)
        memcpy(m->host[r], at.cards[r].host, TN__HOST_NAME);
    if (at.listener >= 0)
        close(at.listener);
    tn__free(at.cards);
    if (!done)
        tn__meeting_end(m);
    return done;
}

void tn__meeting_end(tn__meeting *m)
{
    for (int r = 0; r < m->size && m->socket; r++)
        if (m->socket[r] >= 0)
            close(m->socket[r]);
    tn__free(m->socket);
    tn__free(m->host);
    m->socket = NULL;
    m->host = NULL;
}
