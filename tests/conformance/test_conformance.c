/* SPDX-License-Identifier: MIT */
/*
 * Every operation against what NumPy computed (gen_conformance.py), by the reference evaluator and
 * by compiled kernels, fused and not, which must agree with each other bit for bit (NaNs aside,
 * whose bits nobody promises).
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "conformance/cases.h"
#include "core/dtype.h"
#include "device/device.h"
#include "support/device.h"

#define BATCH          50 /* cases evaluated in one plan: a compilation costs more than running them */
#define REPORTED       25 /* failures told in full */
#define COMPILED_EVERY 16 /* of the cases, kernels are made for these; TANSO_TEST_EVERY=1 makes them for all */
#define FAILING_EVERY  10 /* of those, of the ones that fail when evaluated: each needs a plan of its own */

static case_file file;
static const char *way; /* of evaluating */
static int wrong;

static double to_double(const char *at, tn_dtype dtype)
{
    tn__scalar s = {0};
    memcpy(s.bytes, at, tn_dtype_size(dtype));
    return tn__scalar_to_double(s, dtype);
}

static void report(const one_case *c, const char *format, ...) TN_PRINTF(2, 3);
static void report(const one_case *c, const char *format, ...)
{
    char text[512], detail[512];
    va_list args;
    if (++wrong > REPORTED)
        return;
    va_start(args, format);
    vsnprintf(detail, sizeof detail, format, args);
    va_end(args);
    print_error("%s, case %d, TANSO_TEST_SEED=%llu: %s: %s\n", way, c->number, file.seed,
                case_text(c, text, sizeof text), detail);
}

static bool both_nan(const char *a, const char *b, tn_dtype dtype)
{
    return tn_dtype_is_float(dtype) && isnan(to_double(a, dtype)) && isnan(to_double(b, dtype));
}

static bool element_is(const one_case *c, const char *got, int64_t i)
{
    size_t size = tn_dtype_size(c->dtype);
    if (c->mode != NEAR) {
        const char *wanted = c->bytes + (size_t)i * size;
        return memcmp(got, wanted, size) == 0 || both_nan(got, wanted, c->dtype) ||
               (c->mode == VALUE && to_double(got, c->dtype) == 0 && to_double(wanted, c->dtype) == 0);
    }
    double value = to_double(got, c->dtype), wanted, bound;
    memcpy(&wanted, c->bytes + 8 * i, 8);
    memcpy(&bound, c->bytes + 8 * (shape_size(c->shape) + i), 8);
    if (isnan(value) || isnan(wanted))
        return isnan(value) && isnan(wanted);
    /* Beyond the largest number a dtype rounds to infinity. */
    double beyond = c->dtype == TN_FLOAT16 ? 65520 : c->dtype == TN_FLOAT64 ? (double)INFINITY : 0x1.fffffefp127;
    if (isinf(value))
        return signbit(value) == signbit(wanted) && fabs(wanted) + bound >= beyond;
    return fabs(value - wanted) <= bound;
}

static void check_elements(one_case *c, const char *got)
{
    size_t size = tn_dtype_size(c->dtype);
    int64_t count = shape_size(c->shape);
    for (int64_t i = 0; i < count; i++)
        if (!element_is(c, got + (size_t)i * size, i)) {
            double wanted = c->mode == NEAR ? 0 : to_double(c->bytes + (size_t)i * size, c->dtype), bound = 0;
            if (c->mode == NEAR) {
                memcpy(&wanted, c->bytes + 8 * i, 8);
                memcpy(&bound, c->bytes + 8 * (count + i), 8);
            }
            report(c, "element %lld is %.17g, expected %.17g within %g", (long long)i,
                   to_double(got + (size_t)i * size, c->dtype), wanted, bound);
            break;
        }
    for (int64_t i = 0; i < count && c->first; i++) {
        const char *now = got + (size_t)i * size, *before = c->first + (size_t)i * size;
        if (memcmp(now, before, size) != 0 && !both_nan(now, before, c->dtype)) {
            report(c, "element %lld is %.17g, another way gave %.17g", (long long)i,
                   to_double(now, c->dtype), to_double(before, c->dtype));
            break;
        }
    }
}

static void check(one_case *c, const tn_array *x)
{
    tn_shape shape = tn_shape_of(x);
    if (tn_dtype_of(x) != c->dtype) {
        report(c, "dtype %s, expected %s", tn_dtype_name(tn_dtype_of(x)), tn_dtype_name(c->dtype));
        return;
    }
    if (shape.ndim != c->shape.ndim || memcmp(shape.dim, c->shape.dim, sizeof *shape.dim * (size_t)shape.ndim) != 0) {
        report(c, "%d dimensions of %lld elements, expected %d of %lld", shape.ndim, (long long)tn_size(x),
               c->shape.ndim, (long long)shape_size(c->shape));
        return;
    }
    size_t bytes = (size_t)shape_size(c->shape) * tn_dtype_size(c->dtype);
    char *got = malloc(bytes + 1);
    assert_non_null(got);
    if (tn_to_host(x, got, bytes) != TN_OK)
        report(c, "%s", tn_error());
    else
        check_elements(c, got);
    tn_clear_error();
    if (c->first)
        free(got);
    else
        c->first = got;
}

/* The array of a case, if it is one to be evaluated; else checks that it is refused as it should
 * be. */
static tn_array *make(const one_case *c)
{
    tn_array *x = case_array(c);
    if (!x) {
        report(c, "no such operation, or refused: %s", tn_error());
    } else if (c->mode == REFUSED ? !tn_is_error(x) : tn_is_error(x)) {
        report(c, "%s", tn_is_error(x) ? tn_message_of(x) : "an error was expected");
        x = NULL;
    }
    tn_clear_error();
    return c->mode == REFUSED ? NULL : x;
}

static void run_failing(const one_case *c)
{
    tn_array *x = make(c);
    if (x && test_eval(x) == TN_OK)
        report(c, "an error was expected when evaluated");
    tn_clear_error();
}

static void run_batch(one_case **cases, int count)
{
    const tn_array *made[BATCH], *pending[BATCH];
    int pending_count = 0;
    for (int i = 0; i < count; i++) {
        made[i] = make(cases[i]);
        if (made[i])
            pending[pending_count++] = made[i];
    }
    if (tn_eval_all(pending_count, pending) != TN_OK) {
        print_error("%s, cases %d to %d: %s\n", way, cases[0]->number, cases[count - 1]->number, tn_error());
        tn_clear_error(); /* each alone then tells which */
    }
    for (int i = 0; i < count; i++)
        if (made[i])
            check(cases[i], made[i]);
}

static int share(tn_compile_mode mode)
{
    const char *wanted = getenv("TANSO_TEST_EVERY");
    int every = wanted ? atoi(wanted) : COMPILED_EVERY;
    return mode == TN_COMPILE_NEVER || every < 1 ? 1 : every;
}

static void run(const char *name, tn_compile_mode mode, bool fusion)
{
    one_case *batch[BATCH];
    int every = share(mode), count = 0, failing = 0;
    if (!file.count)
        skip();
    way = name;
    wrong = 0;
    tn_set_compile(mode);
    tn_set_fusion(fusion);
    for (int i = (int)(file.seed % (unsigned)every); i < file.count; i += every) {
        one_case *c = &file.cases[i];
        if (c->mode != FAILS)
            batch[count++] = c;
        else if (mode == TN_COMPILE_NEVER || failing++ % FAILING_EVERY == 0)
            TN_SCOPE
                run_failing(c);
        if (count == BATCH || (count && i + every >= file.count))
            TN_SCOPE {
                run_batch(batch, count);
                count = 0;
            }
    }
    assert_int_equal(wrong, 0);
}

static void reference_evaluator(void **state)
{
    (void)state;
    if (!tn__device_current()->capabilities.operations)
        skip(); /* this device has only kernels */
    run("reference", TN_COMPILE_NEVER, true);
}

static void fused_kernels(void **state)
{
    (void)state;
    run("fused", TN_COMPILE_ALWAYS, true);
}

static void kernels_of_one_operation(void **state)
{
    (void)state;
    run("unfused", TN_COMPILE_ALWAYS, false);
}

static void another_device(void **state)
{
    (void)state;
    TEST_ABOUT_CPU("its results, which a virtual device gives, too");
    TN_ON_DEVICE (tn_device_parse("virtual:1", NULL))
        run("virtual:1", TN_COMPILE_AUTO, true);
}

static void every_operation_has_cases(void **state)
{
    (void)state;
    if (!file.count)
        skip();
    assert_true(file.count >= 5000);
    const char *name;
    for (int k = 0; (name = operation_name(k)); k++) {
        int i = 0;
        while (i < file.count && strcmp(file.cases[i].operation, name) != 0)
            i++;
        if (i == file.count)
            fail_msg("no case of %s", name);
    }
}

static int read_cases(void **state)
{
    (void)state;
    char path[4096];
    const char *folder = getenv("TANSO_TEST_DATA");
    snprintf(path, sizeof path, "%s/conformance.bin", folder ? folder : ".");
    cases_read(path, &file);
    return 0;
}

static int free_cases(void **state)
{
    (void)state;
    cases_free(&file);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_operation_has_cases),
        cmocka_unit_test(reference_evaluator),
        cmocka_unit_test(fused_kernels),
        cmocka_unit_test(kernels_of_one_operation),
        cmocka_unit_test(another_device),
    };
    return cmocka_run_group_tests(tests, read_cases, free_cases);
}
