/* SPDX-License-Identifier: MIT */
/* Progress on a terminal of any width: a bar that stays within its line, and no half of a number. */
#include "support/random.h"
#include "support/terminal.h"
#include "train/report.h"

static test_random chance;

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
        terminal_close(&t);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_bar_fits)};
    chance = test_random_new();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
