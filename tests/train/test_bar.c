/* SPDX-License-Identifier: MIT */
/* The progress bar: Chainer's lines, a speed over the last hundred drawings, any width of a terminal, none at all. */
#include <math.h>
#include "support/terminal.h"
#include "support/random.h"
#include "train/bar.h"

static test_random chance;

static char *lines(tn__bar *bar, tn__standing where, double now, int columns)
{
    tn__text out = {0};
    tn__bar_text(bar, &where, now, columns, &out);
    return tn__text_take(&out);
}

static void assert_lines(tn__bar *bar, tn__standing where, double now, const char *expected)
{
    char *text = lines(bar, where, now, 80);
    assert_string_equal(text, expected);
    tn__free(text);
}

static void test_layout(void **state)
{
    (void)state;
    tn__bar bar = {.length = 50};
    assert_lines(&bar, (tn__standing){3, 0.9, 2, true}, 7,
                 "     total [######################............................] 45.00%\n"
                 "this epoch [#############################################.....] 90.00%\n"
                 "         3 iter, 0 epoch / 2 epochs\n"
                 "\n"); /* the speed is not known yet */
    /* 7 iterations in 2 s: 3.5 a second; 7 are 70% of the run */
    assert_lines(&bar, (tn__standing){10, 1.5, 2, true}, 9,
                 "     total [#####################################.............] 75.00%\n"
                 "this epoch [#########################.........................] 50.00%\n"
                 "        10 iter, 1 epoch / 2 epochs\n"
                 "       3.5 iters/sec. Estimated time to finish: 0:00:00.\n");
    assert_lines(&bar, (tn__standing){10, 1.5, 1e6, false}, 10,
                 "     total [..................................................]  0.00%\n"
                 "this epoch [#########################.........................] 50.00%\n"
                 "        10 iter, 1 epoch / 1e+06 iterations\n"
                 "    2.3333 iters/sec. Estimated time to finish: 4 days, 23:02:47.\n");
    assert_lines(&bar, (tn__standing){10, 1.5, 0, false}, 11, "        10 iter, 1 epoch\n      1.75 iters/sec.\n");
}

/* Only the last hundred count. */
static void test_speed(void **state)
{
    (void)state;
    tn__bar bar = {.length = 50};
    for (int i = 0; i < 1000; i++) {
        /* 10 a second for 600 drawings, then 20 */
        double now = i < 600 ? i / 10.0 : 60 + (i - 600) / 20.0;
        char *text = lines(&bar, (tn__standing){i, i / 100.0, 20, true}, now, 80), *rate = strrchr(text, '\n');
        while (rate > text && rate[-1] != '\n')
            rate--;
        double speed = strtod(rate, NULL);
        assert_true(i == 0 ? !strstr(text, "iters/sec")
                           : i <= 600 ? fabs(speed - 10) < 1e-3 : i < 701 || fabs(speed - 20) < 1e-3);
        tn__free(text);
    }
}

static void test_widths(void **state)
{
    (void)state;
    terminal t = {0};
    if (!terminal_open(&t, 80))
        skip(); /* a place without terminals */
    tn__bar bar;
    tn__bar_begin(&bar, t.stream, 0);
    assert_ptr_equal(bar.stream, t.stream);
    for (int round = 0; round < 200; round++) {
        int columns = round < 40 ? round : (int)test_random_int(&chance, 1, 300);
        int room = columns ? columns : 80;
        terminal_resize(&t, columns);
        double total = 1 + 99 * test_random_double(&chance), done = total * test_random_double(&chance);
        tn__bar_draw(&bar, &(tn__standing){(int64_t)(done * 600), done, total, round % 3}, round * 0.1);
        const char *text = terminal_text(&t);
        assert_true(strncmp(text, TN__WIPE, 3) == 0);
        int count = 0, widest = 0;
        const char *line = text + 3;
        for (const char *end; (end = strchr(line, '\n')); line = end + 1, count++) {
            int length = (int)(end - line) - (end > line && end[-1] == '\r');
            widest = length > widest ? length : widest;
        }
        char up[16];
        snprintf(up, sizeof up, "\033[%dA", count);
        assert_string_equal(line, up);
        assert_int_equal(count, room > 22 ? 4 : 2);
        assert_true(widest < room || room == 1);
        assert_true(room < 73 || strstr(text, "this epoch ["));
    }
    tn__bar_wipe(&bar);
    assert_string_equal(terminal_text(&t), TN__WIPE);
    terminal_close(&t);
}

static void test_silent(void **state)
{
    (void)state;
    FILE *file = tmpfile();
    tn__bar bar;
    tn__bar_begin(&bar, file, 0);
    tn__bar_draw(&bar, &(tn__standing){3, 0.9, 2, true}, 1);
    tn__bar_wipe(&bar);
    assert_int_equal(ftell(file), 0);
    fclose(file);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_layout), cmocka_unit_test(test_speed),
                                       cmocka_unit_test(test_widths), cmocka_unit_test(test_silent)};
    chance = test_random_new();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
