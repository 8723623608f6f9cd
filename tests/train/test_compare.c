/* SPDX-License-Identifier: MIT */
/* Runs beside one another in a picture, by whichever log they have left. */
#include <sys/stat.h>
#include "support/random.h"
#include "support/svg.h"
#include "trainer_setup.h"

static test_random chance;

/* A run's folder with a log in it. */
static const char *run_folder(const char *name, const char *log, const char *text)
{
    const char *path = test_path(folder, name);
    assert_int_equal(mkdir(path, 0777), 0);
    test_write(test_path(path, log), text);
    return path;
}

static char *drawn(void)
{
    if (!tn_ok())
        fail_msg("%s", tn_error());
    char *svg = test_read(test_path(folder, "x.svg"), NULL);
    assert_non_null(svg);
    test_well_formed(svg);
    return svg;
}

static void test_both_logs(void **state)
{
    (void)state;
    const char *lines = run_folder("lines", "log.jsonl",
                                   "{\"epoch\": 1, \"train_loss\": 0.5, \"test_loss\": 0.6, \"test_accuracy\": null}\n"
                                   "{\"epoch\": 2, \"train_loss\": 0.4, \"test_loss\": 0.5, \"test_accuracy\": null}\n"
                                   "{\"epoch\": 3, \"train_l"), /* killed */
               *list = run_folder("list", "log",
                                  "[\n    {\n        \"main/loss\": 0.3,\n        \"an \\\"odd\\\" key\": \"{text}\",\n"
                                  "        \"validation/main/loss\": NaN,\n        \"epoch\": 1,\n"
                                  "        \"iteration\": 7\n    },\n    {\n        \"main/loss\": 0.2,\n"
                                  "        \"validation/main/loss\": 0.7,\n        \"epoch\": 2,\n"
                                  "        \"iteration\": 14\n    }\n]\n");
    const char *const folders[] = {lines, list};
    const char *path = test_path(folder, "x.svg");
    assert_int_equal(tn_plot_runs(2, folders, path), TN_OK);
    char *svg = drawn();
    assert_int_equal(test_count(svg, ">train_loss<"), 1);
    assert_int_equal(test_count(svg, ">test_loss<"), 1);
    assert_int_equal(test_count(svg, ">test_accuracy<"), 0); /* which no run has */
    assert_int_equal(test_count(svg, ">epoch<"), 2);
    assert_int_equal(test_count(svg, "/lines<") + test_count(svg, "/list<"), 4);
    free(svg);
    const char *const keys[] = {"main/loss", NULL};
    assert_int_equal(tn_plot_runs(1, &list, path, .keys = keys, .x_key = "iteration"), TN_OK);
    svg = drawn();
    assert_int_equal(test_count(svg, ">main/loss<"), 1);
    assert_int_equal(test_count(svg, ">iteration<"), 1);
    free(svg);
}

/* A folder with both: each figure from log.jsonl, and from the other what that does not have, of which nothing is
 * warned. */
static void test_folder_of_both(void **state)
{
    (void)state;
    const char *run = run_folder("run", "log.jsonl",
                                 "{\"epoch\": 1, \"train_loss\": 0.5, \"test_loss\": null}\n"
                                 "{\"epoch\": 2, \"train_loss\": 0.4, \"test_loss\": null}\n");
    test_write(test_path(run, "log"), "[\n    {\"main/loss\": 100, \"validation/main/loss\": 30, \"epoch\": 1},\n"
                                      "    {\"main/loss\": 200, \"validation/main/loss\": 20, \"epoch\": 2}\n]\n");
    const char *path = test_path(folder, "x.svg");
    assert_int_equal(tn_plot_runs(1, &run, path), TN_OK);
    char *svg = drawn();
    assert_int_equal(test_count(svg, ">train_loss<"), 1);
    assert_int_equal(test_count(svg, ">200<"), 0); /* not of the other log, */
    assert_int_equal(test_count(svg, ">test_loss<"), 1);
    assert_int_equal(test_count(svg, ">30<"), 1); /* but where this one has none */
    free(svg);
    const char *const keys[] = {"main/loss", "train_loss", NULL};
    assert_int_equal(tn_plot_runs(1, &run, path, .keys = keys), TN_OK);
    svg = drawn();
    assert_int_equal(test_count(svg, ">main/loss<"), 1);
    assert_int_equal(test_count(svg, ">train_loss<"), 1);
    assert_int_equal(test_count(svg, ">200<"), 1);
    free(svg);
}

/* Another run's log beside log.jsonl: more epochs, or another loss of the test samples. That of a run that was killed
 * may have fewer, and one entry may be of several epochs. */
static void test_other_run(void **state)
{
    (void)state;
    static const struct {
        const char *list;
        bool same;
    } cases[] = {{"[{\"main/loss\": 7, \"validation/main/loss\": 0.6, \"epoch\": 1}]", true},
                 {"[{\"main/loss\": 7, \"epoch\": 0}, {\"main/loss\": 7, \"epoch\": 2}]", true},
                 {"[{\"main/loss\": 7, \"validation/main/loss\": 0.55, \"epoch\": 2}]", true},
                 {"[{\"main/loss\": 7, \"epoch\": 2}, {\"main/loss\": 7, \"epoch\": 3}]", false},
                 {"[{\"main/loss\": 7, \"validation/main/loss\": 0.6001, \"epoch\": 1}]", false}};
    char *run = strdup(run_folder("run", "log.jsonl", "{\"epoch\": 1, \"train_loss\": 0.5, \"test_loss\": 0.6}\n"
                                                     "{\"epoch\": 2, \"train_loss\": 0.4, \"test_loss\": 0.5}\n"));
    const char *const keys[] = {"main/loss", "train_loss", NULL};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        test_write(test_path(run, "log"), cases[i].list);
        assert_int_equal(tn_plot_runs(1, &(const char *){run}, test_path(folder, "x.svg"), .keys = keys), TN_OK);
        char *svg = drawn();
        assert_int_equal(test_count(svg, ">main/loss<"), cases[i].same);
        assert_int_equal(test_count(svg, ">train_loss<"), 1);
        free(svg);
    }
    free(run);
}

/* Of runs without a curve no more is said than that. */
static void test_without_curve(void **state)
{
    (void)state;
    const char *const folders[] = {run_folder("a", "log.jsonl", "{\"epoch\": 1, \"train_loss\": 0.5}\n"),
                                   run_folder("b", "log.jsonl", "{\"epoch\": 1, \"test_loss\": 0.5}\n")};
    const char *const keys[] = {"train_loss", NULL};
    int count = -1;
    assert_int_equal(tn_plot_runs(2, folders, test_path(folder, "x.svg"), .keys = keys, .drawn = &count), TN_OK);
    assert_int_equal(count, 1);
    free(drawn());
}

static void test_bad(void **state)
{
    (void)state;
    const char *out = test_path(folder, "x.svg"), *none = NULL;
    const char *good = run_folder("good", "log.jsonl", "{\"epoch\": 1, \"train_loss\": 0.5}\n");
    const char *odd = run_folder("odd", "log", "no list at all \"}\" {\"a");
    const char *const no_keys[] = {NULL}, *const far[] = {"train_los", NULL};
    const char *empty = test_path(folder, "nowhere");
    assert_int_equal(tn_plot_runs(1, &empty, out), TN_ERR_IO);
    check_latched(TN_ERR_IO, "holds no log.jsonl");
    assert_int_equal(tn_plot_runs(1, &odd, out), TN_ERR_FORMAT);
    check_latched(TN_ERR_FORMAT, "no whole entry: it is no JSON");
    test_write(test_path(odd, "log"), "{rubbish} {\"more\"}");
    assert_int_equal(tn_plot_runs(1, &odd, out), TN_ERR_FORMAT);
    check_latched(TN_ERR_FORMAT, "no whole entry: it is no JSON");
    assert_int_equal(tn_plot_runs(1, &good, test_path(folder, "x.gif")), TN_ERR_VALUE);
    check_latched(TN_ERR_VALUE, "gif");
    assert_int_equal(tn_plot_runs(1, &good, out, .keys = far), TN_ERR_VALUE);
    check_latched(TN_ERR_VALUE, "no run has a finite value of 'train_los'");
    assert_int_equal(tn_plot_runs(1, &good, out, .keys = no_keys), TN_ERR_VALUE);
    check_latched(TN_ERR_VALUE, "1 to 8 keys, got 0");
    assert_int_equal(tn_plot_runs(0, &good, out), TN_ERR_VALUE);
    check_latched(TN_ERR_VALUE, "no folder");
    assert_int_equal(tn_plot_runs(1, &none, out), TN_ERR_VALUE);
    check_latched(TN_ERR_VALUE, "number 1 is NULL");
    assert_false(test_exists(out));
}

/* Whatever a file holds, reading it ends, with a picture or an error. */
static void test_any_text(void **state)
{
    (void)state;
    static const char pieces[] = "{}[]\":,\\ epochtrain_loss0123456789.-NaN\n";
    for (int round = 0; round < 300; round++) {
        char text[200];
        int length = (int)test_random_int(&chance, 0, sizeof text - 1);
        for (int i = 0; i < length; i++)
            text[i] = pieces[test_random_int(&chance, 0, sizeof pieces - 1)];
        text[length] = '\0';
        test_write(test_path(folder, "log"), text);
        const char *path = folder;
        tn_status status = tn_plot_runs(1, &path, test_path(folder, "x.svg"));
        assert_true(status == TN_OK || status == TN_ERR_FORMAT || status == TN_ERR_VALUE);
        tn_clear_error();
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_both_logs, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_folder_of_both, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_other_run, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_without_curve, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_bad, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_any_text, set_up, tear_down),
    };
    chance = test_random_new();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
