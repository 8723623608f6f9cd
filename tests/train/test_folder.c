/* SPDX-License-Identifier: MIT */
/* A run's folder: one run at a time, which snapshot is gone on from, what is told of files that were lost or could not
 * be written, and of which iteration. */
#include <fcntl.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include "support/svg.h"
#include "trainer_setup.h"

static char told[65536];

/* What `act` writes to stderr, in `told`. */
static void listen_to(void (*act)(void *user), void *user)
{
    FILE *file = tmpfile();
    int before = dup(STDERR_FILENO);
    assert_true(file && before >= 0);
    fflush(stderr);
    dup2(fileno(file), STDERR_FILENO);
    act(user);
    fflush(stderr);
    dup2(before, STDERR_FILENO);
    close(before);
    rewind(file);
    told[fread(told, 1, sizeof told - 1, file)] = '\0';
    fclose(file);
}

static void assert_told(const char *what)
{
    if (!strstr(told, what))
        fail_msg("expected '%s' to be told, got '%s'", what, told);
}

static tn_trainer *idle_trainer(tn_trigger *stop)
{
    return tn_trainer_new(tn_updater_of(idle, NULL, NULL), .stop = stop, .out = folder);
}

/* ---- what cannot be written ---- */

/* Told before the first iteration by whatever writes at the end of some: here a folder is where the file is to be, or
 * a file where the folder is to be. */
static void test_told_at_once(void **state)
{
    (void)state;
    static const char *const names[] = {"last.npz", "part.npz", "profile.txt", "profile.json"};
    tn_layer *layer = tn_linear(1, .in = 1);
    char path[600];
    for (int i = 0; i <= 4; i++) {
        snprintf(path, sizeof path, "%s/%s", folder, i < 4 ? names[i] : "file");
        if (i < 4)
            assert_int_equal(mkdir(path, 0777), 0);
        else
            fclose(fopen(path, "w"));
        tn_trainer *trainer = tn_trainer_new(tn_updater_of(idle, NULL, NULL), .stop = TN_EVERY(3, TN_ITERATION),
                                             .out = i < 4 ? folder : path, .quiet = true);
        tn_trigger *each = TN_EVERY(1, TN_ITERATION);
        if (i == 0 || i == 4)
            tn_extend(trainer, tn_snapshot(.file = names[0]), .trigger = each);
        else if (i == 1)
            tn_extend(trainer, tn_snapshot_layer(layer, names[i]), .trigger = each);
        else
            tn_extend(trainer, tn_profile(.first = 1, .count = 2)), tn_trigger_free(each);
        assert_int_equal(tn_trainer_run(trainer), TN_ERR_IO);
        assert_non_null(strstr(tn_error(), path));
        assert_int_equal(tn_trainer_iteration(trainer), 0);
        tn_clear_error();
        tn_trainer_free(trainer);
        if (i < 4)
            assert_int_equal(rmdir(path), 0);
    }
    tn_layer_free(layer);
    check_fine();
}

typedef struct drawing {
    int calls, failing;
    const char *path;
    char *bytes; /* of the last snapshot, before the update that fails */
    size_t size;
} drawing;

static tn_status draw_and_fail(tn_updater *updater, void *user)
{
    (void)updater;
    drawing *f = user;
    TN_SCOPE tn_item(tn_random_uniform(TN_SHAPE(1)));
    if (++f->calls < f->failing)
        return TN_OK;
    f->bytes = test_read(f->path, &f->size);
    return tn_eval(tn_zeros(TN_SHAPE(-1)));
}

/* The snapshot of the iteration before the failure is not written once more, when the failing update has drawn from
 * the generator: neither in the run that made it nor in one that has just gone on from it. */
static void test_good_file_stays(void **state)
{
    (void)state;
    char path[600];
    snprintf(path, sizeof path, "%s/s_3.safetensors", folder);
    for (int resumed = 0; resumed < 2; resumed++) {
        drawing f = {.failing = resumed ? 1 : 4, .path = path};
        tn_trainer *trainer = tn_trainer_new(tn_updater_of(draw_and_fail, NULL, NULL, .user = &f), .out = folder,
                                             .stop = TN_EVERY(6, TN_ITERATION), .quiet = true);
        tn_extend(trainer, tn_snapshot(.file = "s_{iteration}", .on_error = true, .autoload = true, .wait = true),
                  .trigger = TN_EVERY(1, TN_ITERATION));
        assert_int_equal(tn_trainer_run(trainer), TN_ERR_SHAPE);
        tn_clear_error();
        assert_int_equal(tn_trainer_iteration(trainer), 3);
        tn_trainer_free(trainer);
        size_t size;
        char *now = test_read(path, &size);
        assert_true(f.bytes && now && size == f.size);
        assert_memory_equal(now, f.bytes, size);
        free(now);
        free(f.bytes);
    }
    check_fine();
}

static tn_status fail_at_once(tn_updater *updater, void *user)
{
    (void)updater, (void)user;
    return tn_eval(tn_zeros(TN_SHAPE(-1)));
}

/* A run whose first update fails has nothing to save. */
static void test_nothing_trained(void **state)
{
    (void)state;
    char path[600];
    snprintf(path, sizeof path, "%s/s_0.safetensors", folder);
    tn_trainer *trainer = tn_trainer_new(tn_updater_of(fail_at_once, NULL, NULL), .out = folder,
                                         .stop = TN_EVERY(2, TN_ITERATION), .quiet = true);
    tn_extend(trainer, tn_snapshot(.file = "s_{iteration}", .on_error = true), .trigger = TN_EVERY(1, TN_ITERATION));
    assert_int_equal(tn_trainer_run(trainer), TN_ERR_SHAPE);
    tn_clear_error();
    tn_trainer_free(trainer);
    assert_int_not_equal(access(path, F_OK), 0);
    check_fine();
}

/* ---- one at a time ---- */

typedef struct nested {
    const char *out;
    tn_status status;
} nested;

/* A run within another one's iteration. */
static tn_status run_another(tn_trainer *trainer, void *user)
{
    (void)trainer;
    nested *n = user;
    tn_trainer *other = tn_trainer_new(tn_updater_of(idle, NULL, NULL), .stop = TN_EVERY(1, TN_ITERATION),
                                       .out = n->out, .quiet = true);
    tn_extend(other, tn_log_report());
    n->status = tn_trainer_run(other);
    tn_trainer_free(other);
    if (n->status == TN_ERR_STATE)
        assert_non_null(strstr(tn_error(), "another run"));
    tn_clear_error();
    return TN_OK;
}

static void test_one_at_a_time(void **state)
{
    (void)state;
    char elsewhere[600];
    snprintf(elsewhere, sizeof elsewhere, "%s/elsewhere", folder);
    for (int writes = 0; writes < 2; writes++)
        for (int same = 0; same < 2; same++) {
            nested inner = {.out = same ? folder : elsewhere};
            tn_trainer *trainer = idle_trainer(TN_EVERY(1, TN_ITERATION));
            if (writes)
                tn_extend(trainer, tn_log_report());
            tn_extend_function(trainer, run_another, &inner);
            assert_int_equal(tn_trainer_run(trainer), TN_OK);
            assert_int_equal(inner.status, writes && same ? TN_ERR_STATE : TN_OK);
            tn_trainer_free(trainer);
        }
    check_fine();
}

static tn_status tell_and_wait(tn_trainer *trainer, void *user)
{
    (void)trainer;
    char byte = 1;
    if (write(*(int *)user, &byte, 1) == 1)
        pause();
    return TN_OK;
}

/* Another process's lock goes with it, however it ends. */
static void test_killed_lets_go(void **state)
{
    (void)state;
    int ends[2];
    assert_int_equal(pipe(ends), 0);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        tn_trainer *trainer = idle_trainer(NULL);
        tn_extend(trainer, tn_log_report());
        tn_extend_function(trainer, tell_and_wait, &ends[1]);
        tn_trainer_run(trainer);
        _exit(1);
    }
    char byte;
    assert_int_equal(read(ends[0], &byte, 1), 1);
    nested mine = {.out = folder};
    run_another(NULL, &mine);
    assert_int_equal(mine.status, TN_ERR_STATE);
    kill(child, SIGKILL);
    waitpid(child, NULL, 0);
    run_another(NULL, &mine);
    assert_int_equal(mine.status, TN_OK);
    close(ends[0]);
    close(ends[1]);
}

/* A process that was killed while it began another program: the lock stays a moment longer. */
static void test_lock_that_goes(void **state)
{
    (void)state;
    int ends[2];
    assert_int_equal(pipe(ends), 0);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        int held = open(folder, O_RDONLY | O_DIRECTORY);
        char byte = 1;
        bool told = flock(held, LOCK_EX) == 0 && write(ends[1], &byte, 1) == 1;
        usleep(30000); /* of the second that is waited for it */
        _exit(!told);
    }
    char byte;
    assert_int_equal(read(ends[0], &byte, 1), 1);
    nested mine = {.out = folder};
    run_another(NULL, &mine);
    assert_int_equal(mine.status, TN_OK);
    waitpid(child, NULL, 0);
    close(ends[0]);
    close(ends[1]);
}

/* ---- which one is gone on from ---- */

static void run_it(void *trainer)
{
    if (tn_trainer_run(trainer) != TN_OK)
        fail_msg("%s", tn_error());
}

/* A copy of a folder has other times: the number decides. */
static void test_number_decides(void **state)
{
    (void)state;
    tn_trainer *trainer = idle_trainer(TN_EVERY(12, TN_ITERATION));
    tn_extend(trainer, tn_snapshot(.wait = true), .trigger = TN_EVERY(4, TN_ITERATION));
    run_it(trainer);
    tn_trainer_free(trainer);
    static const int numbers[] = {12, 4, 8};
    for (int i = 0; i < 3; i++) {
        char path[600];
        snprintf(path, sizeof path, "%s/snapshot_iter_%d.safetensors", folder, numbers[i]);
        const struct timespec times[2] = {{.tv_sec = 1000000 + i}, {.tv_sec = 1000000 + i}};
        assert_int_equal(utimensat(AT_FDCWD, path, times, 0), 0);
    }
    tn_trainer *other = idle_trainer(TN_EVERY(12, TN_ITERATION));
    tn_extend(other, tn_snapshot(.autoload = true));
    listen_to(run_it, other);
    assert_int_equal(tn_trainer_iteration(other), 12);
    assert_told("snapshot_iter_12");
    assert_told("snapshot_iter_8.safetensors' was written later");
    tn_trainer_free(other);
    check_fine();
}

/* One that was trained for longer than this run is to be: it ends at once, by iterations and by epochs. */
static void test_longer_than_wanted(void **state)
{
    (void)state;
    for (int by_epoch = 0; by_epoch < 2; by_epoch++) {
        setup s = setup_new(10, 4, "linear:3", "sgd");
        tn_trainer *trainer = tn_trainer_new(tn_updater_of(take_one, s.loader, s.optimizer),
                                             .stop = TN_EVERY(7, TN_ITERATION), .out = folder);
        setup_make_params(&s);
        tn_extend(trainer, tn_snapshot(.wait = true, .file = by_epoch ? "a_{iteration}" : "b_{iteration}"),
                  .trigger = TN_EVERY(7, TN_ITERATION));
        run_it(trainer);
        tn_trainer_free(trainer);
        trainer = tn_trainer_new(tn_updater_of(take_one, s.loader, s.optimizer),
                                 .stop = by_epoch ? TN_EVERY(1.5, TN_EPOCH) : TN_EVERY(5, TN_ITERATION),
                                 .out = folder);
        tn_extend(trainer, tn_snapshot(.autoload = true, .file = by_epoch ? "a_{iteration}" : "b_{iteration}"));
        run_it(trainer);
        assert_int_equal(tn_trainer_iteration(trainer), 7);
        tn_trainer_free(trainer);
        setup_free(&s);
    }
    check_fine();
}

/* ---- what is told ---- */

static tn_status fail_in(tn_trainer *trainer, void *user)
{
    (void)user;
    return tn_trainer_iteration(trainer) == 3 ? TN_ERR_VALUE : TN_OK;
}

static tn_status failing_update(tn_updater *updater, void *user)
{
    (void)user;
    return tn_updater_progress(updater).iteration == 2 ? TN_ERR_VALUE : TN_OK;
}

static void run_any(void *trainer) { tn_trainer_run(trainer); }

/* Of an extension that is called after the third update, and of the third update itself. */
static void test_iteration_of_a_failure(void **state)
{
    (void)state;
    for (int updating = 0; updating < 2; updating++) {
        tn_trainer *trainer = tn_trainer_new(tn_updater_of(updating ? failing_update : idle, NULL, NULL),
                                             .stop = TN_EVERY(9, TN_ITERATION), .out = folder);
        if (!updating)
            tn_extend_function(trainer, fail_in, NULL);
        listen_to(run_any, trainer);
        assert_told("iteration 3: ");
        assert_false(tn_ok());
        tn_clear_error();
        tn_trainer_free(trainer);
    }
}

/* Weights that have never been finite are saved, as infinite ones may be meant, and told of once: by the array's name,
 * with the trainer and alone, in a thread and without. */
static void test_never_finite(void **state)
{
    (void)state;
    for (int kind = 0; kind < 8; kind++) {
        bool alone = kind & 1, wait = kind & 2;
        setup s = setup_new(10, 3, "linear:3 linear:2", "sgd");
        setup_make_params(&s);
        TN_SCOPE tn_assign(tn_param(s.model, 2), tn_full(TN_SHAPE(3, 2), kind & 4 ? NAN : -INFINITY));
        tn_trainer *trainer = tn_trainer_new(tn_updater_of(take_one, s.loader, s.optimizer),
                                             .stop = TN_EVERY(3, TN_ITERATION), .out = folder);
        tn_extend(trainer, alone ? tn_snapshot_layer(s.model, "model_{iteration}", .wait = wait)
                                 : tn_snapshot(.file = "model_{iteration}", .wait = wait),
                  .trigger = TN_EVERY(1, TN_ITERATION));
        listen_to(run_it, trainer);
        assert_told(alone ? "'1.W' is not" : "'updater/model:main/1/W' is not");
        assert_told("finite in iteration 1,");
        assert_int_equal(test_count(told, "not finite"), 1);
        for (int i = 1; i <= 3; i++) {
            char name[64];
            snprintf(name, sizeof name, "model_%d.safetensors", i);
            assert_int_equal(access(test_path(folder, name), F_OK), 0);
        }
        tn_trainer_free(trainer);
        setup_free(&s);
        tear_down(NULL);
        set_up(NULL);
    }
    check_fine();
}

/* A run whose table goes on: one line an iteration, in the file "table". */
static tn_trainer *table_trainer(setup *s, int64_t stop)
{
    *s = setup_new(30, 3, "linear:3", "sgd");
    tn_trainer *trainer = setup_trainer(s, TN_EVERY(stop, TN_ITERATION));
    tn_extend(trainer, tn_snapshot(.file = "snapshot", .autoload = true, .keep = 1, .wait = true),
              .trigger = TN_EVERY(1, TN_ITERATION));
    tn_extend(trainer, tn_log_report(.every = TN_EVERY(1, TN_ITERATION)));
    tn_extend(trainer, tn_print_report_of(TN_KEYS_OF("iteration"), .file = "table"),
              .trigger = TN_EVERY(2, TN_ITERATION));
    return trainer;
}

/* A table that is not that of the run which is gone on from is told of, and begins anew with its header. */
static void test_other_table(void **state)
{
    (void)state;
    static const struct {
        const char *found, *table; /* NULL: none */
    } cases[] = {{"iteration\n1\n2\n", "iteration\n1\n2\n3\n4\n5\n"},
                 {"iteration\n1\n2\nof a killed run", "iteration\n1\n2\n3\n4\n5\n"},
                 {NULL, "iteration\n3\n4\n5\n"},
                 {"iteration\n1\n", "iteration\n3\n4\n5\n"},
                 {"epoch       loss\n1           2\n2           1\n", "iteration\n3\n4\n5\n"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        setup s;
        char *table = strdup(test_path(folder, "table"));
        tn_trainer *trainer = table_trainer(&s, 2);
        assert_int_equal(tn_trainer_run(trainer), TN_OK);
        tn_trainer_free(trainer);
        setup_free(&s);
        assert_int_equal(unlink(table), 0);
        if (cases[i].found)
            test_write(table, cases[i].found);
        trainer = table_trainer(&s, 5);
        listen_to(run_it, trainer);
        if (i < 2)
            assert_string_equal(told, "");
        else
            assert_told("does not hold: that begins anew");
        char *text = test_read(table, NULL);
        assert_string_equal(text, cases[i].table);
        free(text);
        free(table);
        tn_trainer_free(trainer);
        setup_free(&s);
        tear_down(NULL);
        set_up(NULL);
    }
    check_fine();
}

static void test_profile_too_late(void **state)
{
    (void)state;
    for (int late = 0; late < 2; late++) {
        tn_trainer *trainer = idle_trainer(TN_EVERY(4, TN_ITERATION));
        tn_extend(trainer, tn_profile(.first = late ? 5 : 4, .count = 3));
        listen_to(run_it, trainer);
        if (late)
            assert_told(".first is 5");
        else
            assert_string_equal(told, "");
        tn_trainer_free(trainer);
    }
    check_fine();
}

/* ---- what cannot be written ---- */

static tn_status note_last(tn_trainer *trainer, void *user)
{
    *(int64_t *)user = tn_trainer_iteration(trainer);
    usleep(2000);
    return TN_OK;
}

/* A disk that is full, by the greatest size of a file: the run ends soon after, not with the next snapshot. */
static void test_full_disk(void **state)
{
    (void)state;
    int64_t last = 0;
    tn_trainer *trainer = tn_trainer_new(tn_updater_of(idle, NULL, NULL), .stop = TN_EVERY(100000, TN_ITERATION),
                                         .out = folder, .quiet = true);
    tn_extend(trainer, tn_snapshot(.file = "once"), .trigger = tn_at_points(TN_ITERATION, 3));
    tn_extend_function(trainer, note_last, &last);
    struct rlimit before, none;
    getrlimit(RLIMIT_FSIZE, &before);
    none = (struct rlimit){16, before.rlim_max};
    void (*handler)(int) = signal(SIGXFSZ, SIG_IGN);
    setrlimit(RLIMIT_FSIZE, &none);
    tn_status status = tn_trainer_run(trainer);
    setrlimit(RLIMIT_FSIZE, &before);
    signal(SIGXFSZ, handler);
    assert_int_equal(status, TN_ERR_IO);
    assert_non_null(strstr(tn_error(), "once"));
    assert_true(last >= 3 && last < 100000);
    tn_clear_error();
    tn_trainer_free(trainer);
}

/* A long log that is gone: it begins anew, and that is told. */
static void test_lost_log(void **state)
{
    (void)state;
    char path[600], kept[600];
    snprintf(path, sizeof path, "%s/log", folder);
    snprintf(kept, sizeof kept, "%s/kept.safetensors", folder);
    tn_trainer *trainer = idle_trainer(TN_EVERY(1500, TN_ITERATION));
    tn_extend(trainer, tn_log_report(.every = TN_EVERY(1, TN_ITERATION)));
    run_it(trainer);
    assert_int_equal(tn_trainer_save(trainer, kept), TN_OK);
    tn_trainer_free(trainer);
    struct stat file;
    assert_true(stat(path, &file) == 0 && file.st_size > 65536);
    assert_int_equal(unlink(path), 0);
    tn_trainer *other = idle_trainer(TN_EVERY(1502, TN_ITERATION));
    tn_extend(other, tn_log_report(.every = TN_EVERY(1, TN_ITERATION)));
    assert_int_equal(tn_trainer_load(other, kept), TN_OK);
    listen_to(run_it, other);
    assert_told("1500 entries");
    char *text = test_read(path, NULL);
    assert_non_null(strstr(text, "\"iteration\": 1501"));
    assert_null(strstr(text, "\"iteration\": 1500"));
    assert_int_equal(strncmp(text, "[\n", 2), 0);
    free(text);
    tn_trainer_free(other);
    check_fine();
}

/* A long log that another run's lies in place of, or that was written into, is not gone on with. */
static void test_other_log(void **state)
{
    (void)state;
    char path[600], kept[600];
    snprintf(path, sizeof path, "%s/log", folder);
    snprintf(kept, sizeof kept, "%s/kept.safetensors", folder);
    for (int kind = 0; kind < 3; kind++) {
        tn_trainer *trainer = idle_trainer(TN_EVERY(1500, TN_ITERATION));
        tn_extend(trainer, tn_log_report(.every = TN_EVERY(1, TN_ITERATION)));
        run_it(trainer);
        assert_int_equal(tn_trainer_save(trainer, kept), TN_OK);
        tn_trainer_free(trainer);
        size_t length = 0;
        char *text = test_read(path, &length);
        assert_true(length > 65536);
        if (kind == 1)
            text[length / 2] ^= 1;
        else if (kind == 2) /* its brackets stay where they are */
            memset(text + 1, ' ', length - 5);
        FILE *file = fopen(path, "w");
        assert_true(file && fwrite(text, 1, length, file) == length && fclose(file) == 0);
        free(text);
        tn_trainer *other = idle_trainer(TN_EVERY(1502, TN_ITERATION));
        tn_extend(other, tn_log_report(.every = TN_EVERY(1, TN_ITERATION)));
        assert_int_equal(tn_trainer_load(other, kept), TN_OK);
        if (kind == 0) {
            run_it(other);
            text = test_read(path, NULL);
            assert_non_null(strstr(text, "\"iteration\": 1502"));
            assert_non_null(strstr(text, "\"iteration\": 1,"));
            free(text);
        } else {
            assert_int_equal(tn_trainer_run(other), TN_ERR_FORMAT);
            assert_non_null(strstr(tn_error(), "does not hold them"));
            tn_clear_error();
        }
        tn_trainer_free(other);
        assert_int_equal(unlink(path), 0);
    }
    check_fine();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_told_at_once, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_good_file_stays, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_nothing_trained, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_one_at_a_time, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_killed_lets_go, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_lock_that_goes, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_number_decides, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_longer_than_wanted, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_iteration_of_a_failure, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_never_finite, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_other_table, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_profile_too_late, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_full_disk, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_lost_log, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_other_log, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
