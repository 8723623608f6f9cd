/* SPDX-License-Identifier: MIT */
/* A program whose locale writes 0,5 for a half: texts that the library reads and writes keep their points. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <locale.h>
#include <tanso.h>
#include "core/number.h"
#include "support/device.h"
#include "support/folder.h"

static char folder[256];

/* A locale of no country, made here, since machines that test often have none but C. */
static int set_up(void **state)
{
    (void)state;
    char command[600];
    test_folder_make(folder);
    FILE *source = fopen(test_path(folder, "source"), "w");
    if (!source)
        return -1;
    fputs("LC_NUMERIC\ndecimal_point \",\"\nthousands_sep \"\"\ngrouping -1\nEND LC_NUMERIC\n", source);
    fclose(source);
    snprintf(command, sizeof command, "cd %s && localedef -c -i source ./comma >/dev/null 2>&1", folder);
    setenv("LOCPATH", folder, 1);
    if (system(command) < 0 || !setlocale(LC_ALL, "comma"))
        setlocale(LC_ALL, "C");
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    tn_clear_error();
    test_folder_remove(folder);
    return 0;
}

static void need_comma(void)
{
    char text[8];
    snprintf(text, sizeof text, "%.1f", 0.5);
    if (strcmp(text, "0,5") == 0)
        return;
    print_message("no localedef makes a locale here\n");
    skip();
}

static void assert_good(const char *what)
{
    if (!tn_ok())
        fail_msg("%s: %s", what, tn_error());
}

static void words(void **state)
{
    (void)state;
    need_comma();
    tn_layer *net = tn_layer_parse("linear:4 dropout:0.25 leaky_relu:0.125 linear:1");
    assert_good("layers");
    tn_optimizer *optimizer = tn_optimizer_parse("adam:lr=0.0625,weight_decay=0.5", net);
    assert_good("optimizer");
    assert_true(tn_optimizer_lr(optimizer) == 0.0625);
    tn_optimizer_free(optimizer);
    tn_layer_free(net);
    tn_reshape(tn_random_uniform(TN_SHAPE(3), .low = 0.5, .high = 0.25), TN_SHAPE(3));
    assert_non_null(strstr(tn_error(), "low 0.5, high 0.25"));
    tn_clear_error();
}

static void numbers(void **state)
{
    (void)state;
    need_comma();
    char *end, text[32];
    assert_true(tn__read_double("1.5x", &end) == 1.5 && *end == 'x');
    assert_int_equal(tn__print_into(text, sizeof text, "%.2f|%g", 1.25, 0.5), 8);
    assert_string_equal(text, "1.25|0.5");
    snprintf(text, sizeof text, "%.1f", 0.5);
    assert_string_equal(text, "0,5"); /* the program's own numbers stay its own */
}

static void csv(void **state)
{
    (void)state;
    need_comma();
    const char *path = test_path(folder, "x.csv");
    tn_array *x = tn_from_doubles((const double[]){0.1, -2.5e-300, 1e300, 3}, 4);
    assert_int_equal(tn_save_csv(x, path), TN_OK);
    tn_array *read = tn_to(tn_load_csv(path, .dtype = TN_FLOAT64), test_device());
    assert_true(tn_item(tn_all(tn_equal(tn_flatten(read), x))) == 1);
    assert_good("csv");
}

/* What is written in one locale goes on in another. */
static void training(void **state)
{
    (void)state;
    need_comma();
    const char *out = test_path(folder, "run"), *whole = test_path(folder, "whole");
    tn_epoch last, other;
#define run(dir, last, ...)                                                                                            \
    tn_train("sine", last, .device = test_device(), .out = dir,                                                        \
             .model = "linear:8 leaky_relu:0.125 dropout:0.25 linear:1", .optimizer = "momentum:lr=0.01,momentum=0.5", \
             __VA_ARGS__)
    assert_int_equal(run(out, &last, .epochs = 1), TN_OK);
    assert_non_null(setlocale(LC_ALL, "C"));
    assert_int_equal(run(out, &last, .epochs = 2, .resume = true), TN_OK);
    setlocale(LC_ALL, "comma");
    assert_int_equal(run(out, &last, .epochs = 3, .resume = true), TN_OK);
    assert_int_equal(run(whole, &other, .epochs = 3), TN_OK);
    assert_good("training");
    assert_true(last.test_loss == other.test_loss);

    char path[300];
    snprintf(path, sizeof path, "%s/log.jsonl", out);
    char *text = test_read(path, NULL);
    assert_non_null(strstr(text, "\"train_loss\": 0."));
    free(text);
    snprintf(path, sizeof path, "%s/curve.svg", out);
    text = test_read(path, NULL);
    assert_non_null(strstr(text, "cx=\""));
    for (const char *at = text; (at = strchr(at, ',')); at++)
        assert_false(at[-1] >= '0' && at[-1] <= '9' && at[1] >= '0' && at[1] <= '9');
    free(text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(words),
        cmocka_unit_test(numbers),
        cmocka_unit_test(csv),
        cmocka_unit_test(training),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
