/* SPDX-License-Identifier: MIT */
/* Output of several processes in one stream: whole lines, so that nothing of two ranks is on one. */
#include "cli/launch_output.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

bool tn__line_reader_open(tn__line_reader *reader, int rank, int to, int *end)
{
    int fd[2];
    if (pipe2(fd, O_CLOEXEC) != 0)
        return false;
    fcntl(fd[0], F_SETFL, O_NONBLOCK);
    *reader = (tn__line_reader){.fd = fd[0], .to = to, .rank = rank};
    *end = fd[1];
    return true;
}

bool tn__line_reader_is_open(const tn__line_reader *reader) { return reader->fd > 0; }

static void pass_on(tn__line_reader *reader, const char *text, size_t length)
{
    char line[sizeof reader->line + 16];
    int size = snprintf(line, sizeof line, "[%d] %.*s\n", reader->rank, (int)length, text);
    for (int at = 0; at < size;) { /* who reads may be slow: it is waited for, as the process would */
        ssize_t wrote = write(reader->to, line + at, (size_t)(size - at));
        if (wrote < 0 && errno != EINTR)
            return;
        at += wrote > 0 ? (int)wrote : 0;
    }
}

/* Whole lines go, what is left moves to the front. */
static void pass_lines(tn__line_reader *reader)
{
    char *at = reader->line, *end = reader->line + reader->used;
    for (char *newline; (newline = memchr(at, '\n', (size_t)(end - at))); at = newline + 1)
        pass_on(reader, at, (size_t)(newline - at));
    reader->used = (size_t)(end - at);
    memmove(reader->line, at, reader->used);
    if (reader->used == sizeof reader->line) {
        pass_on(reader, reader->line, reader->used);
        reader->used = 0;
    }
}

void tn__line_reader_take(tn__line_reader *reader)
{
    while (tn__line_reader_is_open(reader)) {
        ssize_t got = read(reader->fd, reader->line + reader->used, sizeof reader->line - reader->used);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0 && errno == EAGAIN)
            return;
        if (got <= 0) {
            if (reader->used)
                pass_on(reader, reader->line, reader->used);
            close(reader->fd);
            *reader = (tn__line_reader){.fd = 0};
            return;
        }
        reader->used += (size_t)got;
        pass_lines(reader);
    }
}

void tn__line_reader_close(tn__line_reader *reader)
{
    tn__line_reader_take(reader);
    if (!tn__line_reader_is_open(reader))
        return;
    if (reader->used) /* a process that has outlived its rank has the other end */
        pass_on(reader, reader->line, reader->used);
    close(reader->fd);
    *reader = (tn__line_reader){.fd = 0};
}
