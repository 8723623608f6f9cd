/* SPDX-License-Identifier: MIT */
/*
 * Evaluated arrays are read by any number of threads: eight of them read the same ones in every way that there is,
 * while some compute with them and one goes backward through one. Built with -fsanitize=thread, it also tells of races
 * that happened to do no harm.
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

enum { THREADS = 8, ROUNDS = 20, ROWS = 5, COLUMNS = 7 };

typedef struct shared {
    tn_array *value, *strided, *number, *weight, *loss;
    pthread_barrier_t start;
} shared;

typedef struct reader {
    shared *of;
    int number;
    bool right;
} reader;

static bool is_right(const float *came, bool turned)
{
    for (int i = 0; i < ROWS * COLUMNS; i++) {
        int expected = turned ? i % ROWS * COLUMNS + i / ROWS : i;
        if (came[i] != (float)expected)
            return false;
    }
    return true;
}

/* What is asked of an array without its elements. */
static bool ask(const tn_array *x, int rows, int columns)
{
    int64_t strides[TN_MAX_NDIM];
    tn_strides_of(x, strides);
    tn_shape shape = tn_shape_of(x);
    return tn_ndim(x) == 2 && tn_size(x) == ROWS * COLUMNS && tn_dim(x, 0) == rows && shape.dim[1] == columns &&
           tn_dtype_of(x) == TN_FLOAT32 && !tn_is_error(x) && tn_status_of(x) == TN_OK && !*tn_message_of(x) &&
           !tn_has_grad(x) && !tn_needs_grad(x) && strides[0] > 0 && tn_device_of(x).kind != TN_DEVICE_DEFAULT;
}

static bool read_elements(const tn_array *x, bool turned)
{
    float host[ROWS * COLUMNS];
    if (tn_to_host(x, host, sizeof host) != TN_OK || !is_right(host, turned))
        return false;
    const float *data = tn_data(tn_to(x, tn_cpu()));
    if (!data || !is_right(data, turned))
        return false;
    if (tn_device_of(x).kind == TN_DEVICE_CPU && (!(data = tn_data(x)) || !is_right(data, turned)))
        return false;
    char *text = tn_string(x);
    bool written = text && strstr(text, "34");
    tn_string_free(text);
    return written;
}

static bool compute(const shared *of)
{
    tn_array *sum = tn_sum(tn_add(of->value, tn_transpose(of->strided, (tn_axes){0})));
    return tn_item(sum) == ROWS * COLUMNS * (ROWS * COLUMNS - 1) && tn_eval(of->value) == TN_OK &&
           tn_item(tn_max(of->strided)) == ROWS * COLUMNS - 1 && tn_item_int(of->number) == 3;
}

static bool read_once(const reader *r)
{
    const shared *of = r->of;
    double parts[2];
    bool right = ask(of->value, ROWS, COLUMNS) && ask(of->strided, COLUMNS, ROWS) && read_elements(of->value, false) &&
                 read_elements(of->strided, true) && compute(of);
    right = right && tn_item(of->number) == 3 && tn_item_parts(of->number, parts) == TN_OK && parts[0] == 3;
    right = right && tn_item(of->loss) == 12 && tn_eval(of->loss) == TN_OK && !tn_is_error(of->loss) &&
            tn_item(of->weight) == 2 && tn_shape_of(of->loss).ndim == 0;
    return right && tn_ok();
}

static void *read_all(void *argument)
{
    reader *r = argument;
    r->right = true;
    pthread_barrier_wait(&r->of->start);
    if (r->number == 0)
        r->right = tn_backward(r->of->loss) == TN_OK && tn_eval(tn_grad(r->of->weight)) == TN_OK;
    for (int i = 0; i < ROUNDS && r->right; i++) TN_SCOPE
        r->right = read_once(r);
    return NULL;
}

static void eight_threads_read(void **state)
{
    (void)state;
    TN_SCOPE {
        shared of = {.number = tn_scalar(3), .weight = tn_requires_grad(tn_scalar(2))};
        of.value = tn_reshape(tn_arange(0, ROWS * COLUMNS, 1, .dtype = TN_FLOAT32), TN_SHAPE(ROWS, COLUMNS));
        assert_int_equal(tn_eval(of.value), TN_OK);
        of.strided = tn_transpose(of.value, (tn_axes){0});
        of.loss = tn_multiply(of.weight, tn_multiply(of.number, of.weight));
        const tn_array *all[] = {of.value, of.strided, of.number, of.weight, of.loss};
        assert_int_equal(tn_eval_all(5, all), TN_OK);
        reader readers[THREADS];
        pthread_t threads[THREADS];
        pthread_barrier_init(&of.start, NULL, THREADS);
        for (int i = 0; i < THREADS; i++) {
            readers[i] = (reader){&of, i, false};
            assert_int_equal(pthread_create(&threads[i], NULL, read_all, &readers[i]), 0);
        }
        for (int i = 0; i < THREADS; i++)
            pthread_join(threads[i], NULL);
        pthread_barrier_destroy(&of.start);
        for (int i = 0; i < THREADS; i++)
            assert_true(readers[i].right);
        assert_true(tn_item(tn_grad(of.weight)) == 12);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(eight_threads_read)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
