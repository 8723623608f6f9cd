/* SPDX-License-Identifier: MIT */
/* Users' kernels compile for GPUs, which needs NVRTC but no GPU: every function of the dialect, positions, raw
 * arguments, reductions, all dtypes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>
#include <tanso.h>

#include "backends/cuda/runtime/cuda.h"
#include "array/user.h"
#include "compile/compile.h"
#include "core/memory.h"
#include "engine/collect.h"

static tn__cuda_libraries libraries;

static tn_status compile_text(const char *source)
{
    char *image = NULL;
    size_t length = 0;
    tn_status status = tn__cuda_compile(&libraries, 90, source, &image, &length);
    tn__free(image);
    return status;
}

/* The kernels that would compute x on an H200. */
static tn_status compile_for_gpu(const tn_array *x)
{
    tn__device gpu = {.capabilities = {.target = TN__TARGET_CUDA, .product_kernels = true, .multiprocessors = 132,
                                       .shared_memory = 227 << 10}};
    tn__compile_options options = {.kernels = true, .fusion = true, .plan_memory = true};
    tn__call call = tn__enter();
    tn__node *node = tn__node_of(x, "test");
    tn__collection *c = tn__collection_get();
    tn__graph graph;
    assert_string_equal(tn_message_of(x), "");
    assert_int_equal(tn__collect(c, 1, &node, TN__COLLECT_ONLY), TN_OK);
    assert_true(tn__collection_graph(c, &graph));
    tn__plan *plan = tn__compile(&graph, &gpu, &options);
    assert_non_null(plan);
    tn_status status = compile_text(plan->program.source);
    tn__plan_free(plan);
    tn__graph_free(&graph);
    tn__leave(call);
    return status;
}

#define assert_compiles(x) \
    do { \
        tn_status status = compile_for_gpu(x); \
        assert_string_equal(tn_error(), ""); \
        assert_int_equal(status, TN_OK); \
    } while (0)

static void functions(void **state)
{
    (void)state;
    static const char text[] =
        "z = abs(x) + sqrt(x) + cbrt(x) + rsqrt(x) + exp(x) + exp2(x) + expm1(x) + log(x) + log2(x) + log10(x) + "
        "log1p(x)"
        " + sin(x) + cos(x) + tan(x) + asin(x) + acos(x) + atan(x) + sinh(x) + cosh(x) + tanh(x) + asinh(x) + acosh(x)"
        " + atanh(x) + erf(x) + erfc(x) + sigmoid(x) + floor(x) + ceil(x) + trunc(x) + rint(x) + pow(x, 2) + atan2(x, "
        "y)"
        " + hypot(x, y) + fmod(x, y) + copysign(x, y) + min(x, y) + max(x, 1) + fmin(x, y) + fmax(x, y) + isnan(x) + "
        "isinf(x)"
        " + isfinite(x) + min(3, 4) + fabs(x)";
    tn_kernel *f = tn_elementwise("T x, T y", "T z", text, "everything");
    static const tn_dtype dtypes[] = {TN_BOOL, TN_INT8, TN_UINT16, TN_INT32, TN_INT64, TN_UINT64, TN_FLOAT16,
                                      TN_BFLOAT16, TN_FLOAT32, TN_FLOAT64};
    for (size_t k = 0; k < sizeof dtypes / sizeof *dtypes; k++) {
        tn_array *x = tn_ones(TN_SHAPE(4, 5), .dtype = dtypes[k]);
        assert_compiles(tn_call(f, TN_ARGS(tn_add(x, x), x)));
    }
    tn_kernel *g = tn_elementwise("T x", "T z", "z = x * x + x", "complex_square");
    assert_compiles(tn_call(g, TN_ARGS(tn_cast(tn_ones(TN_SHAPE(3)), TN_COMPLEX64))));
}

static void positions(void **state)
{
    (void)state;
    tn_kernel *f = tn_elementwise(
        "T x, raw T r", "T z, int64 n",
        "z = r[(i + 1) % r_size] * x + r_shape[0] * r_ndim; n = _ind[0] * _shape[1] + _ind[1] + size + _ndim",
        "positions");
    const tn_shape shapes[] = {TN_SHAPE(4, 5), TN_SHAPE(512, 4096), TN_SHAPE(3, 1)};
    for (int k = 0; k < 3; k++) {
        tn_array *x = tn_ones(shapes[k]), *results[2] = {NULL, NULL};
        assert_int_equal(tn_eval(x), TN_OK);
        assert_int_equal(tn_call_into(f, TN_ARGS(tn_exp(x), tn_exp(x)), 2, results), TN_OK);
        assert_compiles(tn_add(results[0], results[1]));
        tn_kernel *g = tn_elementwise("T x, raw T r", "T z", "z = x * r[0]", "scaled");
        assert_compiles(tn_exp(tn_call(g, TN_ARGS(x, x))));
        assert_compiles(tn_exp(tn_call(g, TN_ARGS(tn_transpose(x, (tn_axes){0}), x))));
        assert_compiles(tn_sum(tn_call(g, TN_ARGS(x, x)), .axis = TN_AXES(0)));
    }
}

static void reductions(void **state)
{
    (void)state;
    tn_kernel *f = tn_reduction("T x, T y", "T z", "x * y", "max(a, b)", "z = a / _count", "0", "best");
    tn_array *x = tn_ones(TN_SHAPE(2048, 1536)), *y = tn_ones(TN_SHAPE(1536));
    assert_int_equal(tn_eval(x), TN_OK);
    for (int axis = 0; axis < 2; axis++)
        assert_compiles(tn_exp(tn_call(f, TN_ARGS(tn_exp(x), y), .axis = TN_AXES(axis))));
    assert_compiles(tn_call(f, TN_ARGS(tn_exp(x), y)));
    assert_compiles(tn_subtract(x, tn_call(f, TN_ARGS(x, y), .axis = TN_AXES(1), .keepdims = true)));
    assert_compiles(tn_call(f, TN_ARGS(tn_cast(x, TN_FLOAT16), tn_cast(y, TN_FLOAT16))));
}

TN_UFUNC(int64_t, gcd, (int64_t a, int64_t b), {
    bool going = true;
    while (going) {
        int64_t r = b ? a % b : 0;
        going = r != 0;
        a = b;
        b = r;
    }
    return a;
})

static void vectorized(void **state)
{
    (void)state;
    assert_compiles(tn_call(tn_vectorize(gcd), TN_ARGS(tn_arange(0, 9, 1), 6)));
    tn_kernel *f = tn_vectorize(gcd, .identity = "0");
    assert_compiles(tn_ufunc_reduce(f, tn_reshape(tn_arange(0, 9, 1), TN_SHAPE(3, 3))));
    /* the source of the fold, as it was compiled for the CPU */
    tn_array *folded = tn_ufunc_accumulate(f, tn_arange(1, 9, 1));
    assert_false(tn_is_error(folded));
    tn_status status = compile_text(atomic_load(&f->fold[1])->source);
    assert_string_equal(tn_error(), "");
    assert_int_equal(status, TN_OK);
}

static void errors(void **state)
{
    (void)state;
    tn_kernel *f = tn_elementwise("T x", "T z", "T w = x;\nz = w + carbon", "wrong_on_gpu");
    assert_int_equal(compile_for_gpu(tn_call(f, TN_ARGS(tn_ones(TN_SHAPE(3))))), TN_ERR_COMPILE);
    assert_non_null(strstr(tn_error(), "wrong_on_gpu(2)"));
    assert_non_null(strstr(tn_error(), "carbon"));
    tn_clear_error();
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(functions), cmocka_unit_test(positions),
                                       cmocka_unit_test(reductions),
                                       cmocka_unit_test(vectorized), cmocka_unit_test(errors)};
    if (!tn__cuda_open_compiler(&libraries, CUDA_VERSION / 1000)) {
        printf("libnvrtc is not here\n");
        return 77;
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}
