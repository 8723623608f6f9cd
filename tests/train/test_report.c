/* SPDX-License-Identifier: MIT */
/* Progress on a terminal of any width: a bar that stays within its line, and no half of a number. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>
#include "support/random.h"
#include "train/report.h"

static test_random chance;

/* Both ends of a terminal. */
typedef struct terminal {
    int master;
    FILE *stream;
} terminal;

static bool terminal_open(terminal *t, int columns)
{
    t->master = posix_openpt(O_RDWR | O_NOCTTY);
    if (t->master < 0 || grantpt(t->master) != 0 || unlockpt(t->master) != 0)
        return false;
    int slave = open(ptsname(t->master), O_RDWR | O_NOCTTY);
    t->stream = slave < 0 ? NULL : fdopen(slave, "w");
    struct winsize size = {.ws_row = 24, .ws_col = (unsigned short)columns};
    return t->stream && ioctl(slave, TIOCSWINSZ, &size) == 0;
}

/* What has been written to it, "" if nothing: all before a mark, as the kernel hands a terminal's text over when it has
 * time. */
static const char *terminal_text(terminal *t)
{
    static char text[4096];
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

static void test_bar_fits(void **state)
{
    (void)state;
    for (int round = 0; round < 60; round++) {
        int columns = round < 30 ? round * 4 : (int)test_random_int(&chance, 1, 200);
        int epochs = (int)test_random_int(&chance, 1, 100000);
        terminal t = {0};
        if (!terminal_open(&t, columns))
            skip(); /* a place without terminals */
        tn__report report;
        tn__report_begin(&report, t.stream, epochs, 1000);
        assert_true(report.terminal);
        tn__report_epoch_begins(&report);
        report.epoch_began -= test_random_double(&chance) * 1000; /* any rate */
        report.next_draw = 0;
        tn__report_step(&report, epochs, test_random_int(&chance, 1, 1000));
        const char *text = terminal_text(&t), *bar = strstr(text, "\033[K");
        int room = columns ? columns : 80;
        assert_true(bar || room < 31);
        if (bar) {
            bar += 3;
            if ((int)strlen(bar) >= room)
                fail_msg("%d characters in %d columns: %s", (int)strlen(bar), room, bar);
            assert_non_null(strstr(bar, "%"));
            const char *figures = strstr(bar, "%  ") + 3;
            assert_true(*figures == '\0' || strstr(figures, " left"));
            assert_true(room < 80 || (*figures && strstr(bar, "[")));
        }
        tn__report_line(&report, "next");
        text = terminal_text(&t);
        assert_true(!bar || strncmp(text, "\r\033[Knext", 8) == 0);
        fclose(t.stream);
        close(t.master);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_bar_fits)};
    chance = test_random_new();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
