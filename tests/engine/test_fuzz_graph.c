/* SPDX-License-Identifier: MIT */
/*
 * Random graphs give the same bits however they are evaluated: by the reference evaluator, by
 * kernels fused or not, with the planner of memory on or off. Only NaNs may differ in their bits.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "core/dtype.h"
#include "engine/random_graph.h"
#include "support/device.h"
#include "support/random.h"
#include "support/slice.h"

#define TOGETHER         6 /* graphs evaluated in one plan: compiling costs more than running */
#define REFERENCE_ROUNDS 60
#define COMPILED_ROUNDS  2
#define DEVICES_ROUNDS   30
#define FIXED_SEED       20250101

/* What one graph gave: its held arrays' bytes one after another. */
typedef struct outcome {
    char *bytes[GRAPH_MAX];
    size_t size[GRAPH_MAX];
    tn_dtype dtype[GRAPH_MAX];
    int count;
    char *trace; /* of the graph */
} outcome;

typedef struct way {
    const char *name;
    tn_compile_mode compile;
    bool fusion, planning;
    int times; /* over: the later ones find their plans, and in auto mode use kernels */
    const tn_device *devices; /* three, of graphs over several; NULL: the current one */
} way;

static const way reference = {"reference", TN_COMPILE_NEVER, true, true, 1, NULL};
static int wrong;
static int compared, others; /* graphs; of these, such as are other graphs */

static void use(const way *w)
{
    tn_set_compile(w->compile);
    tn_set_fusion(w->fusion);
    tn_set_memory_planning(w->planning);
    random_graph_devices(w->devices);
}

static void forget(outcome *o)
{
    for (int i = 0; i < o->count; i++)
        free(o->bytes[i]);
    free(o->trace);
    *o = (outcome){.count = 0};
}

static void take(outcome *o, const random_graph *g)
{
    o->count = 0;
    o->trace = strdup(g->trace);
    assert_non_null(o->trace);
    for (int i = 0; i < g->count; i++) {
        const tn_array *x = g->x[i];
        if (!x)
            continue;
        int k = o->count++;
        o->dtype[k] = tn_dtype_of(x);
        o->size[k] = (size_t)tn_size(x) * tn_dtype_size(o->dtype[k]);
        o->bytes[k] = malloc(o->size[k] + 1);
        assert_non_null(o->bytes[k]);
        if (tn_to_host(x, o->bytes[k], o->size[k]) != TN_OK) {
            print_error("%s\n", tn_error());
            wrong++;
            tn_clear_error();
        }
    }
}

/* Numbers are looked at one by one, of complex ones each part. */
static tn_dtype part_of(const outcome *o, int k) { return (tn_dtype)tn__dtypes[o->dtype[k]].component; }

static double element(const outcome *o, int k, size_t i)
{
    tn__scalar s = {0};
    size_t size = tn_dtype_size(part_of(o, k));
    memcpy(s.bytes, o->bytes[k] + i * size, size);
    return tn__scalar_to_double(s, part_of(o, k));
}

/* The number of the first result that differs, and of its element or part; false when all agree. */
static bool differ(const outcome *a, const outcome *b, int *result, size_t *at)
{
    for (*result = 0; *result < a->count; ++*result) {
        int k = *result;
        if (a->dtype[k] != b->dtype[k] || a->size[k] != b->size[k])
            return true;
        if (a->size[k] == 0 || memcmp(a->bytes[k], b->bytes[k], a->size[k]) == 0)
            continue;
        size_t size = tn_dtype_size(part_of(a, k));
        for (*at = 0; *at < a->size[k] / size; ++*at) {
            bool nan = tn_dtype_is_float(part_of(a, k)) && isnan(element(a, k, *at)) && isnan(element(b, k, *at));
            if (!nan && memcmp(a->bytes[k] + *at * size, b->bytes[k] + *at * size, size) != 0)
                return true;
        }
    }
    return a->count != b->count;
}

/* Builds and evaluates `count` graphs together. */
static void evaluate(const way *w, uint64_t seed, int count, outcome *outcomes, random_graph *graphs)
{
    const tn_array *roots[TOGETHER * GRAPH_MAX];
    int n = 0;
    use(w);
    for (int i = 0; i < count; i++) {
        random_graph_build(&graphs[i], seed + (uint64_t)i);
        for (int k = 0; k < graphs[i].count; k++)
            if (graphs[i].x[k])
                roots[n++] = graphs[i].x[k];
    }
    if (tn_eval_all(n, roots) != TN_OK) {
        print_error("%s, TANSO_TEST_SEED=%llu: %s\n", w->name, (unsigned long long)seed, tn_error());
        wrong++;
        tn_clear_error();
    }
    for (int i = 0; i < count; i++)
        take(&outcomes[i], &graphs[i]);
}

static void compare(const way *w, uint64_t seed, int count, const outcome *expected)
{
    random_graph graphs[TOGETHER];
    outcome got[TOGETHER];
    for (int time = 0; time < w->times; time++)
        TN_SCOPE {
            evaluate(w, seed, count, got, graphs);
            for (int i = 0; i < count; i++) {
                int k = 0;
                size_t at = 0;
                /* What a gradient is taken by may have been folded away on one device, and not where it was moved: then
                 * the generator went on in another way. */
                bool another = w->devices && strcmp(expected[i].trace, got[i].trace) != 0;
                compared++;
                others += another;
                if (!another && differ(&expected[i], &got[i], &k, &at) && wrong++ < 3)
                    print_error("%s, TANSO_TEST_SEED=%llu, time %d: result %d, element %zu is "
                                "%.17g, the reference gave %.17g\n%s",
                                w->name, (unsigned long long)seed + (unsigned)i, time, k, at, element(&got[i], k, at),
                                element(&expected[i], k, at), graphs[i].trace);
                forget(&got[i]);
                random_graph_free(&graphs[i]);
            }
        }
}

static void round_of(const way *first, uint64_t seed, int count, const way *ways, int way_count)
{
    random_graph graphs[TOGETHER];
    outcome expected[TOGETHER];
    TN_SCOPE
        evaluate(first, seed, count, expected, graphs);
    for (int i = 0; i < count; i++)
        random_graph_free(&graphs[i]);
    for (int w = 0; w < way_count; w++)
        compare(&ways[w], seed, count, expected);
    for (int i = 0; i < count; i++)
        forget(&expected[i]);
}

static int rounds(int usual)
{
    const char *wanted = getenv("TANSO_TEST_ROUNDS");
    return wanted ? atoi(wanted) : usual;
}

static void by_operations(uint64_t seed)
{
    static const way ways[] = {{"reference without planning", TN_COMPILE_NEVER, true, false, 1, NULL}};
    for (int i = 0; i < rounds(REFERENCE_ROUNDS); i++)
        if (test_in_slice())
            round_of(&reference, seed + (uint64_t)(i * TOGETHER), 1 + i % TOGETHER, ways, 1);
}

static void by_kernels(uint64_t seed)
{
    static const way ways[] = {
        {"fused", TN_COMPILE_ALWAYS, true, true, 2, NULL},
        {"fused without planning", TN_COMPILE_ALWAYS, true, false, 1, NULL},
        {"unfused", TN_COMPILE_ALWAYS, false, true, 1, NULL},
        {"unfused without planning", TN_COMPILE_ALWAYS, false, false, 1, NULL},
        {"automatic", TN_COMPILE_AUTO, true, true, 2, NULL},
    };
    for (int i = 0; i < rounds(COMPILED_ROUNDS); i++)
        if (test_in_slice())
            round_of(&reference, seed + (uint64_t)(i * TOGETHER), TOGETHER, ways, sizeof ways / sizeof *ways);
}

/* Over three devices as on one of them: values, gradients and gradients of those. */
static void by_devices(uint64_t seed)
{
    static tn_device one[3], three[3];
    if (test_too_few(three, 2))
        skip();
    three[2] = tn_cpu();
    for (int k = 0; k < 3; k++)
        one[k] = three[0];
    const way first = {"one device", TN_COMPILE_NEVER, true, true, 1, one};
    const way ways[] = {{"three devices", TN_COMPILE_NEVER, true, true, 1, three},
                        {"three devices without planning", TN_COMPILE_NEVER, true, false, 1, three},
                        {"three devices, fused", TN_COMPILE_ALWAYS, true, true, 2, three}};
    for (int i = 0; i < rounds(DEVICES_ROUNDS); i++)
        if (test_in_slice()) /* kernels of the first round alone: they take a second to compile, each */
            round_of(&first, seed + (uint64_t)(i * TOGETHER), 1 + i % TOGETHER, ways, i ? 2 : 3);
}

static void devices_agree_with_one(void **state)
{
    (void)state;
    if (test_device().kind == TN_DEVICE_CUDA) /* whose functions are others than the CPU's */
        skip();
    wrong = compared = others = 0;
    by_devices(FIXED_SEED);
    by_devices(test_random_new().state);
    random_graph_devices(NULL);
    assert_int_equal(wrong, 0);
    assert_true(others * 10 <= compared);
}

static void reference_agrees_with_itself(void **state)
{
    (void)state;
    wrong = 0;
    by_operations(FIXED_SEED);
    by_operations(test_random_new().state);
    assert_int_equal(wrong, 0);
}

static void kernels_agree_with_the_reference(void **state)
{
    (void)state;
    wrong = 0;
    by_kernels(FIXED_SEED);
    by_kernels(test_random_new().state);
    assert_int_equal(wrong, 0);
}

/* p - c (a @ b) may be one product that rounds otherwise: bounded, not equal. */
static void folded_update_is_near(void **state)
{
    (void)state;
    test_random random = test_random_new();
    static const way fused = {"fused", TN_COMPILE_ALWAYS, true, true, 1, NULL};
    float data[2][35 * 21], got[2][35 * 21];
    for (int i = 0; i < 35 * 21; i++)
        for (int k = 0; k < 2; k++)
            data[k][i] = (float)test_random_double(&random) - 0.5f;
    for (int k = 0; k < 2; k++)
        TN_SCOPE {
            use(k ? &fused : &reference);
            tn_array *a = tn_from_host(data[1], TN_SHAPE(35, 21), TN_FLOAT32);
            tn_array *p = tn_from_host(data[0], TN_SHAPE(35, 21), TN_FLOAT32);
            tn_array *b = tn_matmul(tn_transpose(a, (tn_axes){0}), a);
            assert_int_equal(tn_subtract_assign(p, tn_multiply(tn_matmul(a, b), 0.25)), TN_OK);
            assert_int_equal(tn_to_host(p, got[k], sizeof got[k]), TN_OK);
        }
    for (int i = 0; i < 35 * 21; i++)
        assert_true(fabsf(got[0][i] - got[1][i]) <= 1e-5f * (1 + fabsf(got[0][i])));
}

/* What fuzzing found once: a compiler made one truncation of two casts, which kept the sign of a
 * zero. */
static void whole_numbers_have_no_negative_zero(void **state)
{
    (void)state;
    static const way fused = {"fused", TN_COMPILE_ALWAYS, true, true, 1, NULL};
    static const double small[] = {-0.5, -0.0, -0.25, -1e-300, -0.75, 0.5, -0.1};
    use(&fused);
    for (int i = 0; i < 2; i++)
        TN_SCOPE {
            tn_array *x = tn_from_doubles(small, 7);
            tn_array *whole =
                tn_cast(tn_cast(tn_cast(x, i ? TN_FLOAT32 : TN_FLOAT64), i ? TN_INT32 : TN_INT64), TN_FLOAT64);
            assert_true(tn_item(tn_any(tn_signbit(whole))) == 0);
            const double *data = test_data(tn_copysign(1, whole));
            assert_non_null(data);
            for (int k = 0; k < 7; k++)
                assert_true(data[k] == 1);
        }
}

/* Another find: the memory of a value that is assigned to is reused, but not while a result is a window of it. */
static void a_window_keeps_its_values(void **state)
{
    (void)state;
    static const way ways[] = {{"reference", TN_COMPILE_NEVER, true, true, 1, NULL},
                               {"fused", TN_COMPILE_ALWAYS, true, true, 1, NULL}};
    for (int i = 0; i < 2; i++)
        TN_SCOPE {
            use(&ways[i]);
            tn_array *x = tn_cast(tn_reshape(tn_arange(0, 35, 1), TN_SHAPE(5, 7)), TN_FLOAT64);
            assert_int_equal(tn_eval(x), TN_OK);
            tn_array *window = tn_transpose(x, (tn_axes){0});
            assert_int_equal(tn_subtract_assign(x, 100), TN_OK);
            const tn_array *both[] = {x, window};
            assert_int_equal(tn_eval_all(2, both), TN_OK);
            const double *new = test_data(x), *old = test_data(window);
            for (int k = 0; k < 35; k++)
                assert_true(new[k] == k - 100 && old[k] == k % 5 * 7 + k / 5);
        }
}

static const way compiled_ways[] = {{"fused", TN_COMPILE_ALWAYS, true, true, 1, NULL},
                                    {"unfused", TN_COMPILE_ALWAYS, false, true, 1, NULL}};

/* A transpose that is copied, because something flattens it, is read only after the copy, by products as well. */
static void a_copied_window_is_read_later(void **state)
{
    (void)state;
    for (int i = 0; i < 2; i++)
        TN_SCOPE {
            use(&compiled_ways[i]);
            tn_array *x = tn_cast(tn_reshape(tn_arange(0, 12, 1), TN_SHAPE(4, 3)), TN_INT64);
            assert_int_equal(tn_eval(x), TN_OK);
            tn_array *turned = tn_swapaxes(x, 0, 1);
            tn_array *product = tn_matmul(x, turned), *sign = tn_negative(product), *flat = tn_flatten(turned);
            const tn_array *all[] = {product, sign, flat};
            assert_int_equal(tn_eval_all(3, all), TN_OK);
            const int64_t *p = test_data(product), *f = test_data(flat);
            for (int k = 0; k < 16; k++) {
                int64_t r = k / 4 * 3, c = k % 4 * 3;
                assert_int_equal(p[k], r * c + (r + 1) * (c + 1) + (r + 2) * (c + 2));
            }
            for (int k = 0; k < 12; k++)
                assert_int_equal(f[k], k % 4 * 3 + k / 4);
        }
}

/* A view that is stored, because something flattens it, is no longer read from what it is a view of: who reads it in
 * the loops that store it takes what these have. */
static void a_stored_view_is_read_where_it_lies(void **state)
{
    (void)state;
    for (int i = 0; i < 2; i++)
        TN_SCOPE {
            use(&compiled_ways[i]);
            tn_array *x = tn_cast(tn_reshape(tn_arange(1, 35, 1), TN_SHAPE(17, 2)), TN_INT32);
            assert_int_equal(tn_eval(x), TN_OK);
            tn_array *spread = tn_broadcast_to(x, TN_SHAPE(4, 17, 2)), *flat = tn_flatten(spread);
            tn_array *cast = tn_cast(tn_expand_dims(spread, 0), TN_FLOAT64);
            const tn_array *all[] = {flat, cast, spread};
            assert_int_equal(tn_eval_all(3, all), TN_OK);
            const int32_t *f = test_data(flat);
            const double *c = test_data(cast);
            for (int k = 0; k < 4 * 34; k++)
                assert_true(f[k] == k % 34 + 1 && c[k] == k % 34 + 1);
        }
}

/* And another: the position of the largest is looked for before the same kernel overwrites what it looks at. */
static void a_position_is_of_what_was_there(void **state)
{
    (void)state;
    static const way fused = {"fused", TN_COMPILE_ALWAYS, true, true, 1, NULL};
    static const struct {
        int64_t rows, columns;
        int axis;
    } cases[] = {{1, 2, 1},    {70, 10, 1},  {10, 70, 0},    {70, 300, 1},
                 {300, 70, 0}, {2, 3000, 1}, {1, 300000, 1}, {30000, 9, 0}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        TN_SCOPE {
            int64_t rows = cases[i].rows, columns = cases[i].columns, along = cases[i].axis ? columns : rows;
            tn_shape shape = TN_SHAPE(rows, columns);
            use(&fused);
            /* falls along the axis, and rises once it is overwritten */
            tn_array *line = tn_subtract(along, tn_arange(0, (double)along, 1));
            tn_array *column = tn_reshape(line, cases[i].axis ? TN_SHAPE(1, along) : TN_SHAPE(along, 1));
            tn_array *x = tn_add(tn_cast(column, TN_FLOAT32), tn_zeros(shape));
            assert_int_equal(tn_eval(x), TN_OK);
            tn_array *first = tn_argmax(x, .axis = TN_AXES(cases[i].axis));
            assert_int_equal(tn_multiply_assign(x, -1), TN_OK);
            const tn_array *both[] = {x, first};
            assert_int_equal(tn_eval_all(2, both), TN_OK);
            assert_true(tn_item(tn_sum(first)) == 0);
            assert_true(tn_item(tn_max(x)) == -1);
        }
}

/* And: what is read of an array into which something was written is read from that, be it one number, a row that is
 * repeated, or numbers that are counted up; and where nothing was written, from the zeros before. */
static void a_window_of_what_was_written(void **state)
{
    (void)state;
    static const way ways[] = {{"reference", TN_COMPILE_NEVER, true, true, 1, NULL},
                               {"unplanned", TN_COMPILE_NEVER, true, false, 1, NULL},
                               {"fused", TN_COMPILE_ALWAYS, true, true, 1, NULL},
                               {"unfused", TN_COMPILE_ALWAYS, false, true, 1, NULL}};
    static const float row[] = {5, 6, 7}, expected[][3] = {{3, 3, 3}, {7, 6, 5}, {2, 1, 0}, {0, 0, 0}};
    for (size_t i = 0; i < 4 * sizeof ways / sizeof *ways; i++)
        TN_SCOPE {
            use(&ways[i / 4]);
            tn_array *leaf = tn_from_host(row, TN_SHAPE(1, 3), TN_FLOAT32), *x = tn_zeros(TN_SHAPE(4, 5));
            tn_array *counted = tn_cast(tn_reshape(tn_arange(0, 6, 1), TN_SHAPE(2, 3)), TN_FLOAT32);
            tn_array *parts[] = {tn_weak_int(3), tn_broadcast_to(leaf, TN_SHAPE(2, 3)), counted, tn_weak_int(9)};
            const tn_slice_range window[] = {{1, 3, 1}, {1, 4, 1}};
            x = tn_slice_update(x, 2, window, parts[i % 4]);
            int64_t at = i % 4 == 3 ? 3 : 1;
            const tn_slice_range line[] = {{at, at + 1, 1}, {3, 0, -1}};
            tn_array *y = tn_slice(x, 2, line);
            const tn_array *both[] = {x, y};
            assert_int_equal(tn_eval_all(i % 2 ? 1 : 2, i % 2 ? both + 1 : both), TN_OK);
            float got[3];
            assert_int_equal(tn_to_host(y, got, sizeof got), TN_OK);
            assert_memory_equal(got, expected[i % 4], sizeof got);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reference_agrees_with_itself),
        cmocka_unit_test(kernels_agree_with_the_reference),
        cmocka_unit_test(devices_agree_with_one),
        cmocka_unit_test(folded_update_is_near),
        cmocka_unit_test(whole_numbers_have_no_negative_zero),
        cmocka_unit_test(a_window_keeps_its_values),
        cmocka_unit_test(a_copied_window_is_read_later),
        cmocka_unit_test(a_stored_view_is_read_where_it_lies),
        cmocka_unit_test(a_position_is_of_what_was_there),
        cmocka_unit_test(a_window_of_what_was_written),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
