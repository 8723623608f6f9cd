/* SPDX-License-Identifier: MIT */
/* The learning curve: well-formed SVG with the panels that a run has, for any figures. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <math.h>
#include "support/folder.h"
#include "support/random.h"
#include "support/svg.h"
#include "train/run.h"

static test_random chance;

static char *draw(const tn__history *history, bool classifies, const char *title)
{
    char folder[256];
    test_folder_make(folder);
    const char *path = test_path(folder, "curve.svg");
    if (tn__curve_write(history, classifies, title, path) != TN_OK)
        fail_msg("%s", tn_error());
    char *svg = test_read(path, NULL);
    test_folder_remove(folder);
    assert_non_null(svg);
    return svg;
}

static void test_any_figures(void **state)
{
    (void)state;
    for (int round = 0; round < 200; round++) {
        tn__history history = {0};
        int rows = (int)test_random_int(&chance, 1, 60);
        double size = pow(10, (double)test_random_int(&chance, -12, 12)),
               base = test_random_bits(&chance) % 2 ? 0 : size;
        bool flat = round % 7 == 0;
        for (int i = 1; i <= rows; i++) {
            tn_epoch row = {.epoch = i,
                            .train_loss = flat ? size : base + size * test_random_double(&chance),
                            .test_loss = flat ? size : base + size * test_random_double(&chance),
                            .test_accuracy = flat ? 1 : test_random_double(&chance)};
            if (test_random_bits(&chance) % 9 == 0)
                row.test_loss = INFINITY;
            if (test_random_bits(&chance) % 9 == 0)
                row.train_loss = NAN;
            assert_int_equal(tn__history_add(&history, &row), TN_OK);
        }
        char *svg = draw(&history, round % 3, "a <b> & \"c\"");
        test_well_formed(svg);
        assert_non_null(strstr(svg, "a &lt;b&gt; &amp; \"c\""));
        assert_int_equal(test_count(svg, ">epoch<"), round % 3 ? 2 : 1);
        assert_int_equal(test_count(svg, ">train<"), 1);
        assert_int_equal(test_count(svg, ">test<"), round % 3 ? 2 : 1);
        assert_int_equal(test_count(svg, ">accuracy<"), round % 3 ? 1 : 0);
        int labels = test_count(svg, "text-anchor=\"end\"");
        assert_true(labels >= (round % 3 ? 6 : 3) && labels <= 22);
        free(svg);
        tn__history_free(&history);
    }
}

/* A title is cut where the picture ends, and not within a character. */
static void test_long_title(void **state)
{
    (void)state;
    tn__history history = {0};
    assert_int_equal(tn__history_add(&history, &(tn_epoch){.epoch = 1, .train_loss = 1, .test_loss = 1}), TN_OK);
    char title[1201] = "";
    for (int i = 0; i < 400; i++)
        strcat(title, "炭");
    char *svg = draw(&history, true, title);
    test_well_formed(svg);
    int shown = test_count(svg, "炭");
    assert_true(shown > 80 && shown < 120);
    assert_int_equal(test_count(svg, "炭...</text>"), 1);
    free(svg);
    tn__history_free(&history);
}

static void test_many_epochs(void **state)
{
    (void)state;
    tn__history history = {0};
    for (int i = 1; i <= 20000; i++)
        assert_int_equal(
            tn__history_add(&history,
                            &(tn_epoch){.epoch = i, .train_loss = 1.0 / i, .test_loss = 1, .test_accuracy = 0.5}),
            TN_OK);
    char *svg = draw(&history, true, "long");
    test_well_formed(svg);
    assert_true(strlen(svg) < 100000);
    assert_int_equal(test_count(svg, "<circle"), 0);
    free(svg);
    tn__history_free(&history);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_any_figures), cmocka_unit_test(test_long_title),
                                       cmocka_unit_test(test_many_epochs)};
    chance = test_random_new();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
