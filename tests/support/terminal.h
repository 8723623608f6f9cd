/* SPDX-License-Identifier: MIT */
/* A terminal of any width to write to, and what was written. */
#ifndef TN_TESTS_TERMINAL_H
#define TN_TESTS_TERMINAL_H

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>
#include <cmocka.h>

/* Both ends. */
typedef struct terminal {
    int master;
    FILE *stream;
} terminal;

static inline void terminal_resize(const terminal *t, int columns)
{
    struct winsize size = {.ws_row = 24, .ws_col = (unsigned short)columns};
    assert_int_equal(ioctl(fileno(t->stream), TIOCSWINSZ, &size), 0);
}

/* False in a place without terminals. */
static inline bool terminal_open(terminal *t, int columns)
{
    t->master = posix_openpt(O_RDWR | O_NOCTTY);
    if (t->master < 0 || grantpt(t->master) != 0 || unlockpt(t->master) != 0)
        return false;
    int slave = open(ptsname(t->master), O_RDWR | O_NOCTTY);
    t->stream = slave < 0 ? NULL : fdopen(slave, "w");
    if (t->stream)
        terminal_resize(t, columns);
    return t->stream;
}

static inline void terminal_close(terminal *t)
{
    fclose(t->stream);
    close(t->master);
}

/* What has been written to it since the last time, "" if nothing: all before a mark, as the kernel hands a terminal's
 * text over when it has time. */
static inline const char *terminal_text(terminal *t)
{
    static char text[1 << 16];
    size_t length = 0;
    fflush(t->stream);
    assert_int_equal(write(fileno(t->stream), "\1", 1), 1);
    while (length == 0 || text[length - 1] != '\1') {
        ssize_t more = read(t->master, text + length, sizeof text - length);
        assert_true(more > 0);
        length += (size_t)more;
    }
    text[length - 1] = 0;
    return text;
}

#endif
