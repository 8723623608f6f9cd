/* SPDX-License-Identifier: MIT */
/*
 * Evaluated arrays are read by any number of threads (base.h): eight of them ask the same ones at the same time by
 * every function that reads an array, while one goes backward through what the others read. Each reader gives a number,
 * which the main thread has computed of arrays of its own. The shared ones are new in each round, as what a reader
 * keeps in an array is kept by the first one. Built with -fsanitize=thread, it also tells of races that did no harm.
 */
#include <math.h>
#include <pthread.h>
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include <tanso.h>

#include "support/device.h"
#include "support/folder.h"

enum { THREADS = 8, ROUNDS = 5, ROWS = 5, COLUMNS = 7 };

/* libzip asks the C library for the time zone, which has a lock of its own that the sanitizer does not see. */
__attribute__((visibility("default"))) const char *__tsan_default_suppressions(void);
const char *__tsan_default_suppressions(void) { return "race:tzset_internal\n"; }

/* ---- what is shared ---- */

static tn_array *whole(void)
{
    return tn_reshape(tn_arange(0, ROWS * COLUMNS, 1, .dtype = TN_FLOAT32), TN_SHAPE(ROWS, COLUMNS));
}

static tn_array *computed(const tn_array *x)
{
    tn_array *value = tn_add(x, tn_weak_int(0));
    assert_int_equal(test_eval(value), TN_OK);
    return value;
}

static tn_array *contiguous(void) { return computed(whole()); }
static tn_array *transposed(void) { return tn_transpose(computed(whole()), (tn_axes){0}); }
static tn_array *backwards(void) { return tn_flip(computed(whole()), (tn_axes){0}); }
static tn_array *every_second(void) { return tn_slice_axis(computed(whole()), 1, 1, COLUMNS, 2); }
static tn_array *broadcast(void)
{
    return tn_broadcast_to(computed(tn_arange(0, COLUMNS, 1, .dtype = TN_FLOAT32)), TN_SHAPE(ROWS, COLUMNS));
}

static tn_array *(*const views[])(void) = {contiguous, transposed, backwards, every_second, broadcast};
enum { VIEWS = sizeof views / sizeof views[0] };

typedef struct scene {
    tn_array *view[VIEWS], *number, *weight, *history, *loss, *positions;
    char folder[256];
} scene;

static void make_scene(scene *s)
{
    for (int i = 0; i < VIEWS; i++) {
        s->view[i] = views[i]();
        assert_int_equal(test_eval(s->view[i]), TN_OK);
    }
    s->number = computed(tn_scalar(3));
    s->positions = computed(tn_arange(0, 3, 1, .dtype = TN_INT64));
    s->weight = tn_requires_grad(computed(tn_full(TN_SHAPE(4), 2)));
    /* One that keeps what it was computed from, and one that thread 0 goes backward through. */
    s->history = tn_square(s->weight);
    s->loss = tn_sum(tn_multiply(tn_requires_grad(computed(tn_scalar(2))), s->number));
    const tn_array *both[] = {s->history, s->loss};
    assert_int_equal(tn_eval_all(2, both), TN_OK);
}

/* ---- the readers: of a view, or of the scene's other arrays ---- */

static double weigh(const float *element, int64_t count)
{
    double sum = 0;
    for (int64_t i = 0; i < count; i++)
        sum += (double)(i + 1) * (double)element[i];
    return sum;
}

static double facts(const scene *s, const tn_array *x)
{
    (void)s;
    int64_t strides[TN_MAX_NDIM];
    tn_strides_of(x, strides);
    tn_shape shape = tn_shape_of(x);
    bool plain = tn_dtype_of(x) == TN_FLOAT32 && !tn_is_error(x) && tn_status_of(x) == TN_OK && !*tn_message_of(x) &&
                 !tn_has_grad(x) && !tn_needs_grad(x) && tn_device_of(x).kind != TN_DEVICE_DEFAULT;
    return plain ? (double)(tn_ndim(x) + 10 * tn_size(x) + 1000 * tn_dim(x, 0) + 10000 * shape.dim[1] +
                            100000 * strides[0] + 10000000 * strides[1])
                 : NAN;
}

static double facts_of_others(const scene *s, const tn_array *x)
{
    (void)x;
    bool right = tn_needs_grad(s->loss) && tn_needs_grad(s->history) && tn_needs_grad(s->weight) &&
                 !tn_is_error(s->loss) && tn_shape_of(s->loss).ndim == 0 && !tn_needs_grad(s->number) &&
                 tn_eval(s->loss) == TN_OK && !tn_has_grad(s->weight);
    return right ? tn_item(s->loss) + tn_item(s->number) : NAN;
}

static double to_host(const scene *s, const tn_array *x)
{
    (void)s;
    float host[ROWS * COLUMNS];
    return tn_to_host(x, host, sizeof host) == TN_OK ? weigh(host, tn_size(x)) : NAN;
}

static double data(const scene *s, const tn_array *x)
{
    (void)s;
    const float *element = tn_data(tn_device_of(x).kind == TN_DEVICE_CPU ? x : tn_to(x, tn_cpu()));
    return element ? weigh(element, tn_size(x)) : NAN;
}

static double item(const scene *s, const tn_array *x)
{
    (void)x;
    double parts[2];
    return tn_item_parts(s->number, parts) == TN_OK ? tn_item(s->number) + (double)tn_item_int(s->number) + parts[0]
                                                     : NAN;
}

static double length(char *text)
{
    double n = text ? (double)strlen(text) : NAN;
    tn_string_free(text);
    return n;
}

static double strings(const scene *s, const tn_array *x)
{
    (void)s;
    return length(tn_string(x)) + 1000 * length(tn_repr(x));
}

static double printing(const scene *s, const tn_array *x)
{
    char *text = NULL;
    size_t size = 0;
    FILE *stream = open_memstream(&text, &size);
    tn_fprint(stream, x);
    tn_status status = tn_graph_dot(s->history, stream);
    fclose(stream);
    free(text);
    return status == TN_OK ? (double)size : NAN;
}

static double plan(const scene *s, const tn_array *x)
{
    (void)s;
    return length(tn_plan_describe(x));
}

static double evaluation(const scene *s, const tn_array *x)
{
    const tn_array *all[] = {x, s->number, s->loss};
    return tn_eval(x) == TN_OK && tn_eval_all(3, all) == TN_OK ? 1 : NAN;
}

static double files(const scene *s, const tn_array *x)
{
    char path[512];
    int length = snprintf(path, sizeof path, "%s/%lx.", s->folder, (unsigned long)pthread_self());
    const tn_array *host = tn_to(x, tn_cpu());
    tn_archive *archive = tn_archive_new();
    tn_status status = tn_archive_add(archive, "x", host);
    snprintf(path + length, sizeof path - (size_t)length, "npz");
    if (status == TN_OK)
        status = tn_archive_save(archive, path);
    double sum = weigh(tn_data(tn_archive_find(archive, "x")), tn_size(x));
    tn_archive_free(archive);
    snprintf(path + length, sizeof path - (size_t)length, "csv");
    if (status == TN_OK)
        status = tn_save_csv(host, path);
    snprintf(path + length, sizeof path - (size_t)length, "npy");
    if (status == TN_OK)
        status = tn_save_npy(host, path);
    return status == TN_OK ? sum + tn_item(tn_sum(tn_load_npy(path))) : NAN;
}

static double dlpack(const scene *s, const tn_array *x)
{
    (void)s;
    if (tn_device_of(x).kind != TN_DEVICE_CPU)
        return 0;
    tn_dlpack *tensor = tn_to_dlpack(x);
    tn_dlpack_versioned *versioned = tn_to_dlpack_versioned(x);
    tn_array *back = tensor ? tn_from_dlpack(tensor) : NULL;
    double sum = versioned ? (double)versioned->tensor.shape[0] : NAN;
    if (versioned)
        versioned->deleter(versioned);
    return sum + tn_item(tn_sum(back));
}

static double interface(const scene *s, const tn_array *x)
{
    (void)s;
    tn_array_interface described;
    if (tn_device_of(x).kind != TN_DEVICE_CPU)
        return 0;
    tn_status status = tn_array_interface_of(x, &described);
    tn_string_free(tn_array_interface_json(x));
    return status == TN_OK ? (double)(described.shape[0] + 100 * described.strides[1]) : NAN;
}

static double moves(const scene *s, const tn_array *x)
{
    tn_array *copy = tn_to(tn_to(x, tn_cpu()), test_device());
    return tn_item(tn_sum(copy)) + tn_item(tn_sum(tn_detach(s->history))) + tn_item(tn_sum(tn_cast(x, TN_FLOAT64)));
}

static double computing(const scene *s, const tn_array *x)
{
    tn_array *sum = tn_sum(tn_add(tn_multiply(x, s->number), tn_flip(x, (tn_axes){0})));
    tn_array *product = tn_max(tn_matmul(x, tn_transpose(x, (tn_axes){0})));
    return tn_item(sum) + tn_item(product) + tn_item(tn_sum(tn_add(s->loss, s->history)));
}

static double pieces(const scene *s, const tn_array *x)
{
    tn_array *few = tn_take(x, s->positions, 0), *row = tn_slice_axis(x, 0, 1, 2, 1);
    tn_array *same = tn_reshape(x, tn_shape_of(x)), *flat = tn_reshape(x, TN_SHAPE(-1));
    return tn_item(tn_sum(few)) + tn_item(tn_sum(row)) + tn_item(tn_max(same)) +
           weigh(tn_data(tn_to(flat, tn_cpu())), 3);
}

/* An array of the thread's own is written with what is shared. */
static double writing(const scene *s, const tn_array *x)
{
    tn_array *own = tn_zeros_like(x);
    tn_status status = tn_assign(own, x);
    for (int i = 0; i < 3 && status == TN_OK; i++)
        status = tn_add_assign(own, s->number);
    return status == TN_OK ? tn_item(tn_sum(own)) : NAN;
}

/* Backward of graphs of the thread's own, whose leaf is its own, through arrays that are shared. */
static double backward(const scene *s, const tn_array *x)
{
    tn_array *own = tn_requires_grad(tn_full_like(x, 2));
    tn_status status = tn_backward(tn_sum(tn_multiply(tn_square(own), tn_multiply(x, s->number))));
    return status == TN_OK ? tn_item(tn_sum(tn_grad(own))) : NAN;
}

/* Gradients of what a thread has computed by a leaf that is shared, and by a value that was computed from it. */
static double gradients(const scene *s, const tn_array *x)
{
    tn_array *y = tn_sum(tn_multiply(s->weight, tn_max(x))), *z = tn_sum(tn_multiply(s->history, tn_max(x))), *out[2];
    const tn_array *xs[] = {s->weight, s->history};
    tn_status status = tn_gradients(y, 1, xs, true, out);
    if (status == TN_OK)
        status = tn_gradients(z, 1, xs + 1, false, out + 1);
    return status == TN_OK ? tn_item(tn_sum(out[0])) + tn_item(tn_sum(out[1])) : NAN;
}

static double dataset(const scene *s, const tn_array *x)
{
    (void)s;
    tn_dataset *both = tn_dataset_arrays(x, x);
    double sum = weigh(tn_data(tn_dataset_t(both)), tn_size(x));
    tn_dataset_free(both);
    return sum;
}

typedef double (*reader)(const scene *s, const tn_array *x);
static const reader readers[] = {
    facts,  facts_of_others, to_host, data,      item,      strings, printing, plan,     evaluation, files,
    dlpack, interface,       moves,   computing, pieces,    writing, backward, gradients, dataset,
};
enum { READERS = sizeof readers / sizeof readers[0] };

/* ---- the threads ---- */

typedef struct run {
    const scene *of;
    const double (*expected)[VIEWS];
    pthread_barrier_t *start;
    int number, round;
    int wrong; /* 1 + the first reader that gave another number than expected */
} run;

static void *read_all(void *argument)
{
    run *r = argument;
    pthread_barrier_wait(r->start);
    if (r->number == 0 && tn_backward(r->of->loss) != TN_OK)
        r->wrong = READERS + 1;
    for (int i = 0; i < READERS * VIEWS && !r->wrong; i++) {
        int at = (i + r->number / 2 * 5 + r->round * 11) % (READERS * VIEWS), which = at / VIEWS, view = at % VIEWS;
        TN_SCOPE
            if (readers[which](r->of, r->of->view[view]) != r->expected[which][view] || !tn_ok())
                r->wrong = which + 1;
    }
    return NULL;
}

static void one_round(int round, const char *folder, const double (*expected)[VIEWS])
{
    scene shared;
    run runs[THREADS];
    pthread_t threads[THREADS];
    pthread_barrier_t start;
    make_scene(&shared);
    memcpy(shared.folder, folder, sizeof shared.folder);
    pthread_barrier_init(&start, NULL, THREADS);
    for (int i = 0; i < THREADS; i++) {
        runs[i] = (run){.of = &shared, .expected = expected, .start = &start, .number = i, .round = round};
        assert_int_equal(pthread_create(&threads[i], NULL, read_all, &runs[i]), 0);
    }
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    pthread_barrier_destroy(&start);
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(runs[i].wrong, 0);
}

static void eight_threads_read(void **state)
{
    (void)state;
    double expected[READERS][VIEWS];
    char folder[256];
    test_folder_make(folder);
    for (int view = 0; view < VIEWS; view++)
        for (int i = 0; i < READERS; i++)
            TN_SCOPE {
                scene own;
                make_scene(&own);
                memcpy(own.folder, folder, sizeof own.folder);
                expected[i][view] = readers[i](&own, own.view[view]);
                assert_false(isnan(expected[i][view]));
            }
    for (int round = 0; round < ROUNDS; round++)
        TN_SCOPE
            one_round(round, folder, expected);
    test_folder_remove(folder);
    assert_true(tn_ok());
}

/* ---- one chain of values, gone back through by all ---- */

/* More than base.h says, of values with nothing between them that is still to be computed: what one thread says of them
 * on its way is not what others find. */

enum { LINKS = 100, TIMES = 200 };

typedef struct chain {
    tn_array *link[LINKS]; /* each computed from the one before, and each a value */
    pthread_barrier_t start;
} chain;

static void *differentiate(void *argument)
{
    chain *c = argument;
    const tn_array *first[] = {c->link[0]};
    bool right = true;
    pthread_barrier_wait(&c->start);
    for (int i = 0; i < TIMES && right; i++)
        TN_SCOPE {
            tn_array *gradient;
            tn_status status = tn_gradients(tn_sum(c->link[LINKS - 1]), 1, first, false, &gradient);
            right = status == TN_OK && tn_item(tn_sum(gradient)) == -4;
        }
    return right ? c : NULL;
}

static void eight_threads_differentiate(void **state)
{
    (void)state;
    TN_SCOPE {
        chain c;
        pthread_t threads[THREADS];
        c.link[0] = tn_requires_grad(computed(tn_full(TN_SHAPE(4), 2)));
        for (int i = 1; i < LINKS; i++)
            c.link[i] = tn_negative(c.link[i - 1]);
        assert_int_equal(tn_eval_all(LINKS, (const tn_array *const *)c.link), TN_OK);
        pthread_barrier_init(&c.start, NULL, THREADS);
        for (int i = 0; i < THREADS; i++)
            assert_int_equal(pthread_create(&threads[i], NULL, differentiate, &c), 0);
        for (int i = 0; i < THREADS; i++) {
            void *right = NULL;
            pthread_join(threads[i], &right);
            assert_non_null(right);
        }
        pthread_barrier_destroy(&c.start);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(eight_threads_read),
                                       cmocka_unit_test(eight_threads_differentiate)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
