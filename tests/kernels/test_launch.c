/* SPDX-License-Identifier: MIT */
/* Raw kernels: arguments, what they may write into, errors; in C on the CPU, in CUDA C on a GPU. */
#include "kernels/check.h"

#define CUDA(text) "extern \"C\" __global__ " text

static bool on_gpu(void) { return test_device().kind == TN_DEVICE_CUDA; }

static tn_kernel *scale(void)
{
    static const char c[] = "#include <math.h>\n"
                            "void scale(float *y, const float *x, int n, double s, signed char shift)\n"
                            "{\n"
                            "    for (int i = 0; i < n; i++)\n"
                            "        y[i] = sqrt(x[i] * s) + shift;\n"
                            "}\n";
    static const char cuda[] = CUDA("void scale(float *y, const float *x, int n, double s, signed char shift)\n"
                                    "{\n"
                                    "    extern __shared__ double part[];\n"
                                    "    int i = blockIdx.x * blockDim.x + threadIdx.x;\n"
                                    "    if (i < n) {\n"
                                    "        part[threadIdx.x] = sqrt(x[i] * s);\n"
                                    "        y[i] = part[threadIdx.x] + shift;\n"
                                    "    }\n"
                                    "}\n");
    return tn_raw_kernel(on_gpu() ? cuda : c, "scale");
}

#define GEOMETRY .grid = {2}, .block = {4}, .shared = 32

static void arguments(void **state)
{
    (void)state;
    tn_array *x = tn_square(tn_arange(0, 5, 1, .dtype = TN_FLOAT32)), *y = tn_zeros(TN_SHAPE(5));
    assert_int_equal(tn_launch(scale(), TN_ARGS(TN_WRITES(y), x, 5, 4.0, (signed char)-1), GEOMETRY), TN_OK);
    assert_elements(y, -1, 1, 3, 5, 7);
    /* a strided array is read in C order */
    tn_array *table = tn_square(tn_reshape(tn_arange(0, 6, 1, .dtype = TN_FLOAT32), TN_SHAPE(2, 3)));
    tn_array *z = tn_zeros(TN_SHAPE(6));
    assert_int_equal(tn_launch(scale(),
                               TN_ARGS(TN_WRITES(z), tn_transpose(table, (tn_axes){0}), 6, 1.0, (signed char)0),
                               GEOMETRY),
                     TN_OK);
    assert_elements(z, 0, 3, 1, 4, 2, 5);
}

/* Values that others hold stay what they are; a constant that was written is no constant any more. */
static void values_stay(void **state)
{
    (void)state;
    tn_array *zeros = tn_zeros(TN_SHAPE(3)), *same = tn_reshape(zeros, TN_SHAPE(3)), *x = tn_ones(TN_SHAPE(3));
    tn_array *before = tn_add(zeros, 5);
    assert_int_equal(tn_eval(same), TN_OK);
    assert_int_equal(tn_launch(scale(), TN_ARGS(TN_WRITES(zeros), x, 3, 9.0, (signed char)0), GEOMETRY), TN_OK);
    assert_elements(zeros, 3, 3, 3);
    assert_elements(same, 0, 0, 0);
    assert_elements(before, 5, 5, 5);
    assert_elements(tn_add(zeros, 1), 4, 4, 4);
    assert_int_equal(tn_launch(scale(), TN_ARGS(TN_WRITES(zeros), zeros, 3, 3.0, (signed char)0), GEOMETRY), TN_OK);
    assert_elements(zeros, 3, 3, 3);
}

/* A kernel may be called what a function of the C library is called, which the process has, too. */
static void known_names(void **state)
{
    (void)state;
    static const char *const name[] = {"raise", "remove", "index"};
    for (int i = 0; i < 3; i++) {
        char text[100];
        snprintf(text, sizeof text, "%svoid %s(float *y) { y[0] = 7; }\n", on_gpu() ? CUDA("") : "", name[i]);
        tn_array *y = tn_zeros(TN_SHAPE(1));
        assert_int_equal(tn_launch(tn_raw_kernel(text, name[i]), TN_ARGS(TN_WRITES(y))), TN_OK);
        assert_elements(y, 7);
    }
}

static void refused(void **state)
{
    (void)state;
    tn_array *x = tn_ones(TN_SHAPE(3));
    assert_int_equal(tn_launch(scale(), TN_ARGS(x), .grid = {-1}), TN_ERR_VALUE);
    assert_failed(TN_ERR_VALUE, "negative");
    assert_int_equal(tn_launch(NULL, TN_ARGS(x)), TN_ERR_VALUE);
    assert_failed(TN_ERR_VALUE, "NULL");
    assert_int_equal(tn_launch(tn_elementwise("T x", "T y", "y = x", "f"), TN_ARGS(x)), TN_ERR_VALUE);
    assert_failed(TN_ERR_VALUE, "not raw");
    assert_true(tn_is_error(tn_call(scale(), TN_ARGS(x))));
    assert_failed(TN_ERR_VALUE, "start it with tn_launch");
    assert_int_equal(tn_launch(scale(), TN_ARGS((tn_array *)NULL)), TN_ERR_VALUE);
    assert_failed(TN_ERR_VALUE, "NULL");
    tn_kernel *bad = tn_raw_kernel(on_gpu() ? CUDA("void bad(float *y)\n{\n    y[0] = unknown_thing;\n}\n")
                                            : "void bad(float *y)\n{\n    y[0] = unknown_thing;\n}\n", "bad");
    assert_int_equal(tn_launch(bad, TN_ARGS(TN_WRITES(x))), TN_ERR_COMPILE);
    assert_non_null(strstr(tn_error(), "     3 |     y[0] = unknown_thing;"));
    assert_failed(TN_ERR_COMPILE, "unknown_thing");
    if (!on_gpu()) {
        assert_int_equal(tn_launch(scale(), TN_ARGS(TN_WRITES(x), 1)), TN_ERR_COMPILE);
        assert_failed(TN_ERR_COMPILE, "too few arguments");
    }
    /* a text in the other language, and one without the function, tell of the language that is due */
    const char *due = on_gpu() ? "the source is CUDA C, with an extern \"C\" __global__ function other"
                               : "the source is C, with a function other";
    tn_kernel *other = tn_raw_kernel(on_gpu() ? "void other(float *y) { y[0] = 1; }\n"
                                              : CUDA("void other(float *y) { y[0] = 1; }\n"), "other");
    assert_int_equal(tn_launch(other, TN_ARGS(TN_WRITES(x))), TN_ERR_COMPILE);
    assert_failed(TN_ERR_COMPILE, due);
    other = tn_raw_kernel(on_gpu() ? CUDA("void another(float *y) { y[0] = 1; }\n")
                                   : "void another(float *y) { y[0] = 1; }\n", "other");
    assert_int_equal(tn_launch(other, TN_ARGS(TN_WRITES(x))), TN_ERR_COMPILE);
    assert_failed(TN_ERR_COMPILE, due);
    tn_array *elsewhere = tn_ones(TN_SHAPE(3), .device = tn_device_parse("virtual:3", NULL));
    assert_int_equal(tn_launch(scale(), TN_ARGS(TN_WRITES(x), elsewhere, 3, 1.0, (signed char)0)), TN_ERR_DEVICE);
    assert_failed(TN_ERR_DEVICE, "expected one device");
}

int main(void)
{
    const struct CMUnitTest tests[] = {TEST(arguments), TEST(values_stay), TEST(known_names), TEST(refused)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
