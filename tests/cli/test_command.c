/* SPDX-License-Identifier: MIT */
/* The command as a user meets it: exit codes, messages, interruption, kill -9. */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <sys/resource.h>
#include <time.h>
#include <tanso.h>
#include "cli/command.h"
#include "cli/command_runner.h"
#include "core/memory.h"
#include "support/device.h"
#include "support/fresh_folder.h"
#include "support/random.h"

static test_random chance;

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
           "--model WORDS|--optimizer|--lr|--epochs N|--batch N|--device|--seed|--out DIR|--resume|examples:|digits",
           "");
    expect("train --help", 0, "--device NAMES|--shard N|mpirun", "");
    expect("train --help", 0, "--extend NAME|--log FILE|--plot KEYS|early-stopping|KEY,patience=3|one-cycle|step=10",
           "");
    expect("plot --help", 0, "--out FILE|--keys KEYS|--x KEY|examples:", "");
    expect("eval --help", 0, "--dataset|examples:", "");
    expect("predict -h", 0, "IMAGES|PNG|examples:", "");
    expect("info --help", 0, "examples:", "");
    expect("data fetch --help", 0, "mnist|TANSO_DATA", "");
    expect("data --help", 0, "mnist", "");
    expect("launch --help", 0, "PROGRAM|-n N|--restarts N|--prefix|mpirun|examples:", "");
    expect("warm --help", 0, "--device NAMES|tanso warm|examples:", "");
    expect("help train", 0, "--epochs N", "");
    expect("help data fetch", 0, "TANSO_DATA", "");
    expect("help trian", 2, "", "did you mean 'train'");
    expect("--help train", 0, "usage: tanso train DATASET|--epochs N", "");
    expect("-h data fetch", 0, "TANSO_DATA", "");
    expect("--help train --epochs 3", 0, "usage: tanso train DATASET", "");
    expect("--help trian", 2, "", "did you mean 'train'");
    expect("--help --version", 0, "usage: tanso COMMAND", "");
    expect("help help", 0, "usage: tanso COMMAND", "");
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
    expect("data fetch minst", 2, "", "minst|did you mean 'mnist'");
    expect("data fetch mnist digits", 2, "", "come with Tanso");
    expect("train", 2, "", "DATASET|tanso train --help");
    expect("train digits mnist", 2, "", "too many");
    expect("train digits --epoch 3", 2, "", "--epoch:|--epochs");
    expect("train digits --epochs", 2, "", "--epochs N");
    expect("train digits --epochs 0", 2, "", "'0'");
    expect("train digits --epochs=3.5", 2, "", "'3.5'");
    expect("train digits --seed -1", 2, "", "'-1'");
    expect("train digits --seed 18446744073709551616", 2, "", "18446744073709551616|to 18446744073709551615");
    expect("train digits --shard 4", 2, "", "--shard takes a whole number from 0 to 3, not '4'");
    expect("train digits --shard -1", 2, "", "--shard takes a whole number from 0 to 3, not '-1'");
    expect("launch -n 1025 true", 2, "", "-n takes a whole number from 1 to 1024, not '1025'");
    expect("launch --port 65536 true", 2, "", "--port takes a whole number from 1 to 65535");
    expect("launch --restarts 2147483647 true", 2, "", "--restarts takes a whole number from 0 to 2147483646");
    expect("train digits --device gpu", 2, "", "gpu|cuda|Try");
    expect("train digits --device null", 2, "", "null computes nothing");
    expect("train digits --device cpu,gpu", 2, "", "gpu|cuda|Try");
    expect("train digits --device cpu,cpu", 1, "", "cpu is named twice");
    expect("train digits --optimizer adam:lr=0.1,lr=0.2", 2, "", "lr is given twice");
    expect("train digits --out ''", 2, "", "--out");
    expect("train digits --resume=yes", 2, "", "--resume takes no value");
    expect("train minst --synthetic", 2, "", "minst|mnist");
    expect("train digist", 2, "", "did you mean 'digits'? There are");
    expect("train digits --model 'linear:30 rleu linear:10'", 2, "", "--model|'rleu'|relu");
    expect("train digits --model ''", 2, "", "--model");
    expect("train digits --model 'linear:* relu'", 2, "", "--model|'linear:*'");
    expect("train digits --optimizer sdg", 2, "", "--optimizer|sgd");
    expect("train digits --optimizer sgd:lt=3", 2, "", "lr");
    expect("train digits --schedule linera", 2, "", "'linera'|linear");
    expect("train digits --schedule step:gama=1", 2, "", "--schedule|did you mean 'gamma'");
    expect("train digits --schedule step:gamma=x", 2, "", "--schedule|'x'");
    expect("train digits --extend early-stoping", 2, "", "--extend|did you mean 'early-stopping'|plot, ");
    expect("train digits --extend 'log plot'", 2, "", "--extend takes words without blanks");
    expect("train digits --extend ''", 2, "", "--extend");
    expect("train digits --plot main/loss,fil=x.svg", 2, "", "--plot|did you mean 'file'");
    expect("train digits --plot main/loss,file=x.gif", 2, "", "--plot|gif");
    expect("train digits --log x,every=3", 2, "", "--log|500it");
    expect("plot", 2, "", "DIR...");
    expect("plot x --keys ,", 2, "", "--keys");
    expect("eval", 2, "", "DIR");
    expect("predict x", 2, "", "IMAGES");
    expect("predict x y --invert maybe", 2, "", "maybe");
    expect("info everything", 2, "", "none");
    expect("warm dgits", 2, "", "did you mean 'digits'");
    expect("warm digits --model liner:3", 2, "", "did you mean 'linear'");
    expect("warm digits --device null", 2, "", "--device");
}

static void test_failures(void **state)
{
    (void)state;
    expect("train digits --device cuda:63", 1, "", "cuda:63");
    expect("train digits --model relu", 1, "", "no parameters|linear:10");
    expect("train ./nowhere --model 'linear:3 relu linear:*'", 1, "", "no folder './nowhere'");
    expect("train ./nowhere", 1, "", "no folder './nowhere'");
    expect("train digits --out /proc/no", 1, "", "/proc/no");
    /* No folder of a part of the name is made. */
    char words[4300] = "train digits --out ", *end = words + strlen(words);
    memset(end, 'd', 4200);
    for (int i = 1; i < 4200; i += 2)
        end[i] = '/';
    expect(words, 1, "", "too long");
    assert_false(test_exists(test_path(folder, "d")));
    expect("train digits --optimizer sgd:lr=1e30 --out nan", 1, "", "loss became|epoch 1|learning rate");
    expect("eval nowhere", 1, "", "nowhere");
    expect("eval ''", 1, "", "tanso train");
    expect("predict nowhere x.png", 1, "", "nowhere");
    expect("train digits --epochs 1 > /dev/full", 1, "", "cannot write");
    /* A limit of files' sizes, as a full disk: no half of a file under its name. */
    struct rlimit before;
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &(struct rlimit){.rlim_cur = 20000, .rlim_max = before.rlim_max}), 0);
    expect("train digits --epochs 1 --quiet --out limited", 1, "", "limited/snapshot.safetensors");
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
    assert_false(test_exists(test_path(folder, "limited/snapshot.safetensors")));
    test_write(test_path(folder, "model.safetensors"), "junk");
    expect("eval .", 1, "", "model.safetensors");
    /* A model that someone else saved does not say what it is. */
    tn_layer *net = tn_linear(2, .in = 2);
    assert_int_equal(tn_layer_save(net, test_path(folder, "model.safetensors")), TN_OK);
    tn_layer_free(net);
    expect("eval .", 1, "", "tanso eval: |was not written by 'tanso train'");
    /* What a file says wrong is no wrong usage. */
    tn_archive *archive = tn_archive_new();
    tn_archive_set_text(archive, "tanso.dataset", "digits");
    tn_archive_set_text(archive, "tanso.model", "linaer:10");
    tn_archive_set_text(archive, "tanso.input", "64");
    assert_int_equal(tn_archive_save(archive, test_path(folder, "model.safetensors")), TN_OK);
    tn_archive_free(archive);
    expect("eval .", 1, "", "did you mean 'linear'");
    expect("eval . --dataset mnst", 1, "", "linear");
}

/* Gives a variable a value for now; what it had, for put_back. */
static char *put(const char *name, const char *value)
{
    const char *before = getenv(name);
    char *kept = before ? strdup(before) : NULL;
    setenv(name, value, 1);
    return kept;
}

static void put_back(const char *name, char *kept)
{
    if (kept)
        setenv(name, kept, 1);
    else
        unsetenv(name);
    free(kept);
}

/* A folder of kernels that cannot be one is not called empty. */
static void test_caches(void **state)
{
    (void)state;
    test_write(test_path(folder, "file"), "no folder");
    char *kept = put("TANSO_CACHE_DIR", test_path(folder, "file"));
    expect("info", 0, "file/kernels: Not a directory", "");
    setenv("TANSO_CACHE_DIR", test_path(folder, "new"), 1);
    expect("info", 0, "new/kernels: empty", "");
    put_back("TANSO_CACHE_DIR", kept);
}

/* What `warm` has compiled no later run compiles. */
static void test_warm(void **state)
{
    (void)state;
    char *cache = put("TANSO_CACHE_DIR", test_path(folder, "cold")), *log = put("TANSO_LOG", "info");
    expect("warm spiral", 0, "spiral: |kernels compiled|cold/kernels", "compiled");
    expect("warm spiral spiral", 0, "spiral: all kernels are there", "");
    command_result got = command_run(folder, "train spiral --epochs 3 --out run");
    if (got.code || strstr(got.err, "compiled"))
        fail_msg("tanso train after tanso warm: exit code %d, %s", got.code, got.err);
    command_free(&got);
    put_back("TANSO_LOG", log);
    put_back("TANSO_CACHE_DIR", cache);
}

/* Values of variables that mean nothing are said, not taken for something. */
static void test_environment(void **state)
{
    (void)state;
    static const char *const rows[][3] = {
        {"TANSO_THREADS", "many", "'many'"},        {"TANSO_THREADS", "-2", "'-2'"},
        {"TANSO_MEMORY_LIMIT", "gpu=4G", "'gpu'"},  {"TANSO_VIRTUAL_DEVICES", "two", "'two'"},
        {"TANSO_LOG", "loud", "'loud'"},            {"TANSO_DUMP", "graph,plans", "'plans'"},
    };
    for (int i = 0; i < TN__COUNT_OF(rows); i++) {
        char *kept = put(rows[i][0], rows[i][1]), parts[64];
        snprintf(parts, sizeof parts, "warn|%s: expected|%s", rows[i][0], rows[i][2]);
        /* The last two are read when there is something to say, which `info` has nothing of without the plug-in. */
        expect(i < 4 ? "info" : "train digits --epochs 1 --quiet", 0, "", parts);
        put_back(rows[i][0], kept);
    }
    if (test_elsewhere()) /* kernels of other devices may have another compiler */
        return;
#if defined(__x86_64__)
    char *kept = put("TANSO_SIMD", "wide");
    expect("train digits --epochs 1 --quiet --out slow", 0, "accuracy", "TANSO_SIMD: expected avx2 or off|'wide'");
    put_back("TANSO_SIMD", kept);
#endif
    setenv("TANSO_CC", "/nonexistent/cc", 1);
    expect("train digits --epochs 1 --quiet --out slow", 0, "accuracy", "/nonexistent/cc|slower reference evaluator");
    unsetenv("TANSO_CC");
}

/* With its standard streams closed it prints into no file of its own. */
static void test_closed_streams(void **state)
{
    (void)state;
    expect("train digits --epochs 2 --out run <&- >&-", 1, "", "cannot write the output");
    char *log = test_read(test_path(folder, "run/log.jsonl"), NULL);
    assert_non_null(log);
    assert_true(strncmp(log, "{\"epoch\": 1,", 12) == 0);
    free(log);
    expect("eval run", 0, "accuracy", "");
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
    expect("train spiral --epochs 1", 0, "accuracy", "runs/spiral holds an earlier run, whose files this one replaces");
    expect("train sine --epochs 1", 0, "test loss", "");
    expect("train spiral --synthetic --epochs 1 --out s", 0, "spiral: |accuracy", "");
    expect("train spiral --epochs 2 --device virtual:0,virtual:1,cpu --out several", 0, "epoch 2/2|accuracy", "");
    expect("eval several --device cpu", 0, "accuracy", "");
    expect("train spiral --epochs 1 --device all --out everywhere", 0, "accuracy", "");
    expect("train ptb --synthetic --epochs 0", 2, "", "'0'");
    expect("eval runs/sine", 0, "loss", "");
    expect("predict runs/sine x.png", 1, "", "no picture");
}

/* The model's bytes after a run with these words. */
static bool same_models(const char *words, const char *other_words)
{
    char line[512];
    snprintf(line, sizeof line, "train spiral --epochs 1 --quiet --out one %s", words);
    expect(line, 0, "accuracy", "");
    snprintf(line, sizeof line, "train spiral --epochs 1 --quiet --out two %s", other_words);
    expect(line, 0, "accuracy", "");
    return test_same_files(test_path(folder, "one/model.safetensors"), test_path(folder, "two/model.safetensors"));
}

static void test_rate(void **state)
{
    (void)state;
    assert_true(same_models("--optimizer momentum:lr=0.3,momentum=0.5 --lr 0.02",
                            "--optimizer momentum:lr=0.02,momentum=0.5"));
    assert_true(same_models("--optimizer sgd --lr 0.25", "--optimizer sgd:lr=0.25"));
    assert_false(same_models("--lr 0.5", "--lr 1e-9"));
    const tn_recipe *recipe = tn_train_recipe(0); /* --lr alone leaves the rest of the recipe as it is */
    for (int i = 0; strcmp(recipe->dataset, "spiral") != 0; recipe = tn_train_recipe(++i))
        ;
    char words[256];
    /* a schedule of one's own, which stands in the place of the recipe's, begins with it */
    static const char own[] = "--extend step:gamma=0.5,step=1,every=2it";
    char given[256];
    snprintf(given, sizeof given, "--lr 0.03 %s", own);
    snprintf(words, sizeof words, "--optimizer %.*s:lr=0.03 %s", (int)strcspn(recipe->optimizer, ":"),
             recipe->optimizer, own);
    if (!strchr(recipe->optimizer, ','))
        assert_true(same_models(given, words));
    snprintf(words, sizeof words, "--optimizer %.*s:lr=0.03 --schedule %s", (int)strcspn(recipe->optimizer, ":"),
             recipe->optimizer, recipe->schedule);
    if (!strchr(recipe->optimizer, ','))
        assert_true(same_models("--lr 0.03", words));
    expect("train spiral --epochs 1 --out one --lr 0.03 --resume", 0, "done already", "");
    expect("train spiral --epochs 2 --out one --lr 0.04 --resume", 1, "", "another optimizer");
    static const char *const bad[] = {"much", "-1", "nan", "inf", "0.1,momentum=3", "''", "0x10"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        snprintf(words, sizeof words, "train spiral --epochs 1 --lr=%s", bad[i]);
        expect(words, 2, "", "--lr");
    }
}

static void test_extended(void **state)
{
    (void)state;
    expect("train digits --epochs 3 --out a --extend print:epoch,main/accuracy --extend=best-model --log log.json "
           "--plot main/loss,validation/main/loss,file=both.svg --schedule one-cycle",
           0, "with print:|main/accuracy|one-cycle rate|epoch 3/3", "");
    static const char *const files[] = {"log.json", "both.svg", "best.safetensors", "log.jsonl", "curve.svg"};
    for (int i = 0; i < TN__COUNT_OF(files); i++)
        if (!test_exists(test_path(test_path(folder, "a"), files[i])))
            fail_msg("no %s", files[i]);
    expect("train digits --epochs 4 --out a --resume --quiet", 0, "after 4 epochs", "");
    expect("train digits --epochs 4 --out a --resume --extend plot", 1, "", "another list of extensions");
    expect("eval a/best.safetensors", 0, "accuracy", "");
    expect("train digits --epochs 9 --lr 0 --optimizer sgd --extend early-stopping:patience=1 --out b", 0,
           "stopped early, after epoch 2|after 2 epochs", "");
    expect("plot a b --out both.svg", 0, "2 runs in both.svg", "");
    expect("plot a --keys test_loss,nix --out some.svg", 0, "1 run in some.svg", "finite value of 'nix' over 'epoch'");
    char *svg = test_read(test_path(folder, "both.svg"), NULL);
    assert_non_null(strstr(svg, ">test_accuracy<"));
    free(svg);
    expect("train digits --epochs 4 --log log --out d --quiet", 0, "", "");
    expect("train digits --epochs 2 --out d --quiet", 0, "", "");
    expect("plot a d --keys main/loss --out none.svg", 1, "", "'d/log' does not agree with log.jsonl");
    expect("plot a d --keys train_loss,main/loss --out some.svg", 0, "2 runs in some.svg", "'d/log' does not agree");
    expect("plot a nowhere", 1, "", "tanso plot: 'nowhere' holds no log.jsonl");
    expect("plot a --keys accuracy", 1, "", "'accuracy'");
    expect("train digits --extend log --plot main/los --epochs 1 --out c", 0, "", "main/los|did you mean 'main/loss'");
    expect("train digits --extend profile:first=100000 --epochs 1 --out c", 0, "",
           "nothing was measured: the run has ended after|.first is 100000");
}

/* A second run into a folder: what the first one has left and this one does not write is named, the rest is not. And
 * both logs of a folder are drawn. */
static void test_used_folder(void **state)
{
    (void)state;
    static const char words[] = "train digits --epochs 1 --out a --log log --extend profile:first=2,count=2 "
                                "--extend dump-graph";
    char line[512];
    snprintf(line, sizeof line, "%s --plot main/loss,file=x.svg --extend best-model --extend tensorboard", words);
    command_result got = command_run(folder, line);
    assert_int_equal(got.code, 0);
    assert_null(strstr(got.err, "does not write"));
    command_free(&got);
    got = command_run(folder, words);
    assert_int_equal(got.code, 0);
    const char *others = strstr(got.err, "a has files that this run does not write, which stay as they are: best.saf");
    assert_true(others && strstr(others, "events.out.tfevents") && strstr(others, "x.svg"));
    static const char *const own[] = {"log", "cg.", "profile", "snapshot", "model.", "curve"};
    for (int i = 0; i < TN__COUNT_OF(own); i++)
        assert_null(strstr(others + sizeof "a has files that this run does not write", own[i]));
    command_free(&got);
    assert_true(test_exists(test_path(folder, "a/x.svg")));
    got = command_run(folder, "train digits --epochs 2 --out a --resume");
    assert_int_equal(got.code, 0);
    assert_null(strstr(got.err, "does not write"));
    command_free(&got);
    got = command_run(folder, "plot a --keys train_loss,main/loss --out both.svg");
    assert_int_equal(got.code, 0);
    assert_string_equal(got.err, "");
    command_free(&got);
    char *svg = test_read(test_path(folder, "both.svg"), NULL);
    assert_true(strstr(svg, ">train_loss<") && strstr(svg, ">main/loss<"));
    free(svg);
    expect("train digits --epochs 1 --out a --log /x", 2, "", "--log|absolute path '/x'");
    expect("train digits --epochs 1 --out a --plot main/loss,file=/x.svg", 2, "", "--plot|absolute path '/x.svg'");
}

/* Out of memory is a failure wherever it comes, not wrong usage. */
static void test_no_memory(void **state)
{
    (void)state;
    static const char *const models[] = {"linear:3", "linear:4 relu dropout:0.5 linear:3", "layer_norm linear:3"};
    for (int n = 0; n < 60; n++) {
        char *words[] = {"tanso", "train", "spiral", "--epochs", "1", "--quiet", "--model", (char *)models[n % 3],
                         "--optimizer", "adam:lr=0.1", "--out", (char *)test_path(folder, "starved"), NULL};
        tn__fail_allocation_after(n / 3);
        int code = tn__cli_main((int)(sizeof words / sizeof *words) - 1, words);
        tn__fail_allocation_after(-1);
        tn_clear_error();
        if (code != TN__EXIT_DONE && code != TN__EXIT_FAILED)
            fail_msg("without the allocation %d: exit code %d", n / 3, code);
    }
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
        "--batch 16 --seed 11 --extend snapshot:every=37it --extend early-stopping:patience=99 --extend best-model "
        "--extend plateau:attribute=weight_decay --plot main/loss,every=20it --log log,every=11it";
    char words[1024];
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
    expect(words, 0, "resumed after ", "");
    static const char *const files[] = {"model.safetensors", "best.safetensors", "plot.svg"};
    for (int i = 0; i < 3; i++)
        assert_true(test_same_files(test_path(whole, files[i]), test_path(cut, files[i])));
    char *one = test_log_figures(test_path(whole, "log.jsonl")), *two = test_log_figures(test_path(cut, "log.jsonl"));
    assert_string_equal(one, two);
    free(one);
    free(two);
}

/* The figures are of the last test, and a run that ends within an epoch says that its model is not: also when it is
 * asked to go on for fewer epochs than are done. */
static void test_within_an_epoch(void **state)
{
    (void)state;
    const char *further = "trained further, |into epoch |'tanso eval run' tests it";
    expect("train digits --epochs 9 --batch 300 --out run --extend early-stopping:main/loss,mode=greater,patience=1,"
           "every=8it", 0, further, "");
    expect("train digits --epochs 1 --out run --resume", 0, further, "");
    expect("train digits --epochs 9 --out one --extend early-stopping:main/loss,mode=greater,patience=1,every=1it", 0,
           "no epoch is done|trained further, |into epoch 1", "");
    expect("eval one", 0, "accuracy", "");
    expect("train digits --epochs 1 --out whole", 0, "after 1 epoch; model", "");
    char *out = test_read(test_path(folder, "out.txt"), NULL);
    assert_null(strstr(out, "further"));
    free(out);
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

/* In its first epoch a run has nothing to go on from, and does not say so. */
static void test_interrupt_early(void **state)
{
    (void)state;
    pid_t pid =
        command_start(folder,
                      "train digits --epochs 1000000 --model 'linear:2500 relu linear:2500 relu linear:10' --out run");
    for (int i = 0; i < 6000; i++) {
        char *out = test_read(test_path(folder, "out.txt"), NULL);
        bool begun = out && strstr(out, "parameters");
        free(out);
        if (begun)
            break;
        nap(0.01);
    }
    kill(pid, SIGINT);
    assert_int_equal(command_wait(pid), 130);
    char *err = test_read(test_path(folder, "err.txt"), NULL);
    bool made = test_exists(test_path(folder, "run/snapshot.safetensors"));
    assert_non_null(strstr(err, made ? "tanso train digits --out run --resume" : "no snapshot"));
    free(err);
}

static void others(int signal_number) { (void)signal_number; }

/* Behind a run signals do what they did before it: what hangs while the program ends needs one Ctrl-C. */
static void test_signals_afterwards(void **state)
{
    (void)state;
    struct sigaction action = {.sa_handler = others}, now;
    stack_t stack, stack_now;
    char out[300];
    snprintf(out, sizeof out, "--out=%s", test_path(folder, "run"));
    char *words[][7] = {{"tanso", "train", "spiral", "--epochs=1", "--quiet", out},
                        {"tanso", "train", "spiral", "--epochs=1", "--quiet", "--out=/proc/no"}};
    sigaltstack(NULL, &stack);
    assert_int_equal(sigaction(SIGINT, &action, NULL), 0);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(tn__cli_main(6, words[i]), i ? TN__EXIT_FAILED : TN__EXIT_DONE);
        tn_clear_error();
        assert_int_equal(sigaction(SIGINT, NULL, &now), 0);
        assert_ptr_equal(now.sa_handler, others);
        assert_int_equal(sigaction(SIGTERM, NULL, &now), 0);
        assert_ptr_equal(now.sa_handler, SIG_DFL);
        sigaltstack(NULL, &stack_now);
        assert_ptr_equal(stack_now.ss_sp, stack.ss_sp);
        assert_int_equal(stack_now.ss_flags, stack.ss_flags);
    }
    signal(SIGINT, SIG_DFL);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(test_help),           CASE(test_wrong_usage),     CASE(test_failures),
        CASE(test_train_and_eval), CASE(test_extended),        CASE(test_no_memory),       CASE(test_rate),
        CASE(test_used_folder),
        CASE(test_kill_and_resume), CASE(test_within_an_epoch), CASE(test_interrupt),
        CASE(test_environment),    CASE(test_closed_streams),  CASE(test_interrupt_early),
        CASE(test_signals_afterwards), CASE(test_caches), CASE(test_warm),
    };
    chance = test_random_new();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
