/* SPDX-License-Identifier: MIT */
/* The command as a user meets it: exit codes, messages, interruption, kill -9. */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <time.h>
#include <tanso.h>
#include "cli/command_runner.h"
#include "support/folder.h"
#include "support/random.h"

static test_random chance;
static char folder[256];

static int set_up(void **state)
{
    (void)state;
    test_folder_make(folder);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    test_folder_remove(folder);
    return 0;
}

/* Every text of `parts` ("a|b") is in what it printed. */
static void expect(const char *words, int code, const char *out_parts, const char *err_parts)
{
    command_result got = command_run(folder, words);
    const char *parts[2] = {out_parts, err_parts}, *texts[2] = {got.out, got.err};
    for (int i = 0; i < 2; i++) {
        char copy[512], *rest;
        snprintf(copy, sizeof copy, "%s", parts[i]);
        for (char *part = strtok_r(copy, "|", &rest); part; part = strtok_r(NULL, "|", &rest))
            if (!strstr(texts[i], part))
                fail_msg("tanso %s: no '%s' in\n%s", words, part, texts[i]);
    }
    if (got.code != code)
        fail_msg("tanso %s: exit code %d, expected %d\n%s%s", words, got.code, code, got.out, got.err);
    if (code && !*got.err)
        fail_msg("tanso %s failed and said nothing", words);
    if (strstr(got.err, ".c:"))
        fail_msg("tanso %s names its own source: %s", words, got.err);
    command_free(&got);
}

static void test_help(void **state)
{
    (void)state;
    expect("--help", 0, "train|eval|predict|info|data fetch|--version", "");
    expect("--version", 0, "tanso 0|.", "");
    expect("train --help", 0,
           "--model WORDS|--optimizer|--epochs N|--batch N|--device|--seed|--out DIR|--resume|examples:|digits", "");
    expect("eval --help", 0, "--dataset|examples:", "");
    expect("predict -h", 0, "IMAGES|PNG|examples:", "");
    expect("info --help", 0, "examples:", "");
    expect("data fetch --help", 0, "mnist|TANSO_DATA", "");
    expect("data --help", 0, "mnist", "");
    expect("info", 0, "version|build|cpu|cuda|threads|kernels|mnist", "");
}

static void test_wrong_usage(void **state)
{
    (void)state;
    expect("", 2, "", "usage: tanso COMMAND");
    expect("trian digits", 2, "", "'trian'|did you mean 'train'");
    expect("--verson", 2, "", "did you mean|Try 'tanso --help'");
    expect("data", 2, "", "data fetch");
    expect("data fecth mnist", 2, "", "data fetch");
    expect("data fetch minst", 2, "", "minst");
    expect("train", 2, "", "DATASET|tanso train --help");
    expect("train digits mnist", 2, "", "too many");
    expect("train digits --epoch 3", 2, "", "--epoch:|--epochs");
    expect("train digits --epochs", 2, "", "--epochs N");
    expect("train digits --epochs 0", 2, "", "'0'");
    expect("train digits --epochs=3.5", 2, "", "'3.5'");
    expect("train digits --seed -1", 2, "", "'-1'");
    expect("train digits --seed 18446744073709551616", 2, "", "18446744073709551616");
    expect("train digits --resume=yes", 2, "", "--resume takes no value");
    expect("train digist", 2, "", "digits");
    expect("train digits --model 'linear:30 rleu linear:10'", 2, "", "--model|'rleu'|relu");
    expect("train digits --model ''", 2, "", "--model");
    expect("train digits --optimizer sdg", 2, "", "--optimizer|sgd");
    expect("train digits --optimizer sgd:lt=3", 2, "", "lr");
    expect("train digits --schedule linera", 2, "", "'linera'|linear");
    expect("eval", 2, "", "DIR");
    expect("predict x", 2, "", "IMAGES");
    expect("predict x y --invert maybe", 2, "", "maybe");
    expect("info everything", 2, "", "none");
}

static void test_failures(void **state)
{
    (void)state;
    expect("train digits --device cuda:63", 1, "", "cuda:63");
    expect("train digits --device gpu", 1, "", "gpu");
    expect("train ./nowhere", 1, "", "nowhere");
    expect("train digits --out /proc/no", 1, "", "/proc/no");
    expect("train digits --optimizer sgd:lr=1e30 --out nan", 1, "", "loss became|epoch 1|learning rate");
    expect("eval nowhere", 1, "", "nowhere");
    expect("predict nowhere x.png", 1, "", "nowhere");
    expect("train digits --epochs 1 > /dev/full", 1, "", "cannot write");
    test_write(test_path(folder, "model.safetensors"), "junk");
    expect("eval .", 1, "", "model.safetensors");
    /* A model that someone else saved does not say what it is. */
    tn_layer *net = tn_linear(2, .in = 2);
    assert_int_equal(tn_layer_save(net, test_path(folder, "model.safetensors")), TN_OK);
    tn_layer_free(net);
    expect("eval .", 1, "", "was not written by 'tanso train'");
}

static void test_train_and_eval(void **state)
{
    (void)state;
    expect("train digits --epochs 2 --seed 3", 0,
           "epoch 1/2|epoch 2/2|train loss|test loss|accuracy|samples/s|runs/digits", "");
    assert_true(test_exists(test_path(folder, "runs/digits/curve.svg")));
    command_result got = command_run(folder, "train digits --epochs 2 --seed 3 --quiet --out=again");
    assert_int_equal(got.code, 0);
    assert_null(strstr(got.out, "epoch 1"));
    float accuracy;
    assert_int_equal(sscanf(got.out, "test accuracy %f%%", &accuracy), 1);
    char text[64];
    snprintf(text, sizeof text, "accuracy %.2f%%", accuracy);
    command_free(&got);
    assert_true(test_same_files(test_path(folder, "again/model.safetensors"),
                                test_path(folder, "runs/digits/model.safetensors"))); /* the same seed, the same bits */
    expect("eval again", 0, text, "");
    expect("eval again/model.safetensors --batch 7 --device cpu", 0, text, "");
    expect("eval again --dataset spiral", 1, "", "64");
    expect("train digits --epochs 1 --out again --resume", 0, "resumed after epoch 2|done already", "");
    expect("train digits --batch 17 --out again --resume", 1, "", "'64'|'17'");
    expect("train spiral --epochs 1", 0, "accuracy", "");
    expect("train sine --epochs 1", 0, "test loss", "");
    expect("eval runs/sine", 0, "loss", "");
    expect("predict runs/sine x.png", 1, "", "no square picture");
}

static void nap(double seconds)
{
    struct timespec time = {(time_t)seconds, (long)(1e9 * (seconds - (double)(time_t)seconds))};
    nanosleep(&time, NULL);
}

/* Waits until the run has made a snapshot, then a little longer, so that it is in the middle of something. */
static void wait_for_snapshot(pid_t pid, const char *out)
{
    for (int i = 0; i < 4000 && !test_exists(test_path(out, "snapshot.safetensors")); i++)
        nap(0.05);
    if (!test_exists(test_path(out, "snapshot.safetensors"))) {
        kill(pid, SIGKILL);
        command_wait(pid);
        fail_msg("no snapshot came");
    }
    nap(0.3 * test_random_double(&chance));
}

/* Killed again and again, a run ends as one that was left in peace. */
static void test_kill_and_resume(void **state)
{
    (void)state;
    const char *flags =
        "train digits --model 'linear:40 relu dropout:0.2 linear:10' --optimizer adam:lr=0.001 --schedule cosine "
        "--batch 16 --seed 11";
    char words[512];
    const char *whole = test_path(folder, "whole"), *cut = test_path(folder, "cut");
    snprintf(words, sizeof words, "%s --epochs 120 --quiet --out whole", flags);
    expect(words, 0, "120 epochs", "");
    int kills = 0;
    for (; kills < 3; kills++) {
        snprintf(words, sizeof words, "%s --epochs 120 --out cut --resume", flags);
        pid_t pid = command_start(folder, words);
        wait_for_snapshot(pid, cut);
        kill(pid, SIGKILL);
        int code = command_wait(pid);
        if (code == 0)
            break;
        assert_int_equal(code, 128 + SIGKILL);
    }
    printf("killed %d times\n", kills);
    snprintf(words, sizeof words, "%s --epochs 120 --out cut --resume", flags);
    expect(words, 0, "resumed after epoch", "");
    assert_true(test_same_files(test_path(whole, "model.safetensors"), test_path(cut, "model.safetensors")));
    char *one = test_log_figures(test_path(whole, "log.jsonl")), *two = test_log_figures(test_path(cut, "log.jsonl"));
    assert_string_equal(one, two);
    free(one);
    free(two);
}

static void test_interrupt(void **state)
{
    (void)state;
    for (int i = 0; i < 5; i++) { /* at one moment or another of a step */
        pid_t pid = command_start(folder, "train digits --epochs 1000000 --out run");
        wait_for_snapshot(pid, test_path(folder, "run"));
        kill(pid, SIGINT);
        assert_int_equal(command_wait(pid), 130);
        if (i < 4)
            test_folder_remove(test_path(folder, "run"));
    }
    char *err = test_read(test_path(folder, "err.txt"), NULL);
    assert_non_null(strstr(err, "--resume"));
    free(err);
    expect("eval run", 0, "accuracy", "");
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(test_help),           CASE(test_wrong_usage),     CASE(test_failures),
        CASE(test_train_and_eval), CASE(test_kill_and_resume), CASE(test_interrupt),
    };
    chance = test_random_new();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
