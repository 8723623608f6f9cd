/* SPDX-License-Identifier: MIT */
/* Convolutions of random shapes, strides, paddings, dilations and groups against plain loops, their gradients against
 * differences, their layers, and what is refused. */
#include "check.h"

enum { AXES = 3, MOST = 1 << 14 };

/* A convolution, its axes filled up to three by extents of 1. */
typedef struct problem {
    int axes;
    int64_t n, in, out, groups;
    int64_t l[AXES], k[AXES], m[AXES], step[AXES], spread[AXES], pad[AXES], behind[AXES];
} problem;

static int64_t between(int64_t low, int64_t high) { return test_random_int(&check_random, low, high); }

static problem random_problem(int least)
{
    problem p = {.axes = (int)between(1, 3), .n = between(least, 3), .groups = between(0, 1) ? 1 : between(1, 3)};
    bool depthwise = between(0, 3) == 0;
    p.in = p.groups * (depthwise ? 1 : between(1, 3));
    p.out = p.groups * (depthwise ? between(1, 2) : between(1, 3));
    for (int i = 0; i < AXES; i++) {
        bool real = i < p.axes;
        p.k[i] = real ? between(1, 3) : 1;
        p.step[i] = real ? between(1, 3) : 1;
        p.spread[i] = real ? between(1, 2) : 1;
        p.pad[i] = real ? between(0, 2) : 0;
        p.behind[i] = real ? between(0, 2) : 0;
        int64_t covered = (p.k[i] - 1) * p.spread[i] + 1, needed = covered - p.pad[i] - p.behind[i];
        needed = needed > 1 ? needed : 1;
        p.l[i] = real ? between(needed, needed + 3) : 1;
        p.m[i] = (p.l[i] + p.pad[i] + p.behind[i] - covered) / p.step[i] + 1;
    }
    return p;
}

static tn_shape shape_of(const problem *p, int64_t first, int64_t second, const int64_t *extent)
{
    tn_shape shape = {.ndim = p->axes + 2, .dim = {first, second}};
    memcpy(&shape.dim[2], extent, sizeof *extent * (size_t)p->axes);
    return shape;
}
static tn_shape list_of(const problem *p, const int64_t *value)
{
    tn_shape list = {.ndim = p->axes};
    memcpy(list.dim, value, sizeof *value * (size_t)p->axes);
    return list;
}
static tn_shape x_shape(const problem *p) { return shape_of(p, p->n, p->in, p->l); }
static tn_shape w_shape(const problem *p) { return shape_of(p, p->out, p->in / p->groups, p->k); }
static tn_shape y_shape(const problem *p) { return shape_of(p, p->n, p->out, p->m); }
static int64_t size_of(tn_shape shape)
{
    int64_t size = 1;
    for (int i = 0; i < shape.ndim; i++)
        size *= shape.dim[i];
    return size;
}

static tn_array *conv(const problem *p, const tn_array *x, const tn_array *w)
{
    return tn_conv(x, w, .stride = list_of(p, p->step), .pad = list_of(p, p->pad), .pad_behind = list_of(p, p->behind),
                   .dilation = list_of(p, p->spread), .groups = p->groups);
}

/* Every product of an element of x and one of w, with the element of y that it belongs to. */
typedef void visitor(double *y, double *x, double *w);
static void into_y(double *y, double *x, double *w) { *y += *x * *w; }
static void into_x(double *y, double *x, double *w) { *x += *y * *w; }
static void into_w(double *y, double *x, double *w) { *w += *y * *x; }

static void visit_window(const problem *p, const int64_t at[AXES], double *x, double *w, double *y, visitor *visit)
{
    for (int64_t i = 0; i < p->k[0]; i++)
        for (int64_t j = 0; j < p->k[1]; j++)
            for (int64_t k = 0; k < p->k[2]; k++) {
                const int64_t tap[AXES] = {i, j, k};
                int64_t place = 0;
                bool inside = true;
                for (int d = 0; d < AXES; d++) {
                    int64_t to = at[d] * p->step[d] + tap[d] * p->spread[d] - p->pad[d];
                    inside = inside && to >= 0 && to < p->l[d];
                    place = place * p->l[d] + to;
                }
                if (inside)
                    visit(y, &x[place], &w[(i * p->k[1] + j) * p->k[2] + k]);
            }
}

static void visit_all(const problem *p, double *x, double *w, double *y, visitor *visit)
{
    int64_t per = p->in / p->groups, plane = p->l[0] * p->l[1] * p->l[2], taps = p->k[0] * p->k[1] * p->k[2];
    for (int64_t n = 0; n < p->n; n++)
        for (int64_t o = 0; o < p->out; o++)
            for (int64_t a = 0; a < p->m[0]; a++)
                for (int64_t b = 0; b < p->m[1]; b++)
                    for (int64_t c = 0; c < p->m[2]; c++, y++)
                        for (int64_t q = 0; q < per; q++) {
                            int64_t channel = o / (p->out / p->groups) * per + q;
                            visit_window(p, (int64_t[]){a, b, c}, x + (n * p->in + channel) * plane,
                                         w + (o * per + q) * taps, y, visit);
                        }
}

typedef struct values {
    double x[MOST], w[MOST], y[MOST], zero[MOST];
} values;
static values given;

static void fill(const problem *p)
{
    check_fill(given.x, size_of(x_shape(p)), -1, 1);
    check_fill(given.w, size_of(w_shape(p)), -1, 1);
    check_fill(given.y, size_of(y_shape(p)), -1, 1);
}

/* What `visit` makes of zeros in one of the three. */
static double *found(const problem *p, double *into, int64_t size, visitor *visit)
{
    memset(given.zero, 0, sizeof *given.zero * (size_t)size);
    visit_all(p, into == given.x ? given.zero : given.x, into == given.w ? given.zero : given.w,
              into == given.y ? given.zero : given.y, visit);
    return given.zero;
}

static void check_problem(const problem *p, tn_dtype dtype, double tolerance)
{
    fill(p);
    tn_array *x = tn_requires_grad(check_array(given.x, x_shape(p), dtype));
    tn_array *w = tn_requires_grad(check_array(given.w, w_shape(p), dtype));
    tn_array *g = check_array(given.y, y_shape(p), dtype);
    check_read(x, given.x, tn_size(x)); /* as the dtype rounds them */
    check_read(w, given.w, tn_size(w));
    check_read(g, given.y, tn_size(g));
    tn_array *y = conv(p, x, w);
    assert_int_equal(tn_dtype_of(y), dtype);
    check_context = "y";
    check_near(y, found(p, given.y, tn_size(g), into_y), tn_size(g), tolerance);
    assert_int_equal(tn_backward(tn_sum_with(tn_multiply(tn_cast(y, TN_FLOAT64), tn_cast(g, TN_FLOAT64)), NULL)),
                     TN_OK);
    check_context = "gradient by x";
    check_near(tn_grad(x), found(p, given.x, tn_size(x), into_x), tn_size(x), tolerance);
    check_context = "gradient by w";
    check_near(tn_grad(w), found(p, given.w, tn_size(w), into_w), tn_size(w), tolerance);
    check_context = "";
}

static void test_values(void **state)
{
    (void)state;
    static const struct {
        tn_dtype dtype;
        double tolerance;
    } kinds[] = {{TN_FLOAT64, 1e-12}, {TN_FLOAT32, 1e-5}, {TN_FLOAT16, 3e-3}, {TN_BFLOAT16, 2e-2}};
    for (int round = 0; round < 120; round++) {
        problem p = random_problem(0);
        tn_set_compile(round % 12 == 11 ? TN_COMPILE_ALWAYS : TN_COMPILE_NEVER);
        TN_SCOPE check_problem(&p, kinds[round % 4].dtype, kinds[round % 4].tolerance);
    }
    tn_set_compile(TN_COMPILE_AUTO);
    check_fine();
}

/* Groups along three axes in 16 bits, of which a library's gradients by weights were wrong in a third of all shapes. */
static void test_groups_of_volumes(void **state)
{
    (void)state;
    tn_set_compile(TN_COMPILE_NEVER);
    for (int done = 0; done < 24;) {
        problem p = random_problem(1);
        if (p.axes < AXES || p.groups == 1)
            continue;
        bool half = done++ % 2 == 0;
        TN_SCOPE check_problem(&p, half ? TN_FLOAT16 : TN_BFLOAT16, half ? 3e-3 : 2e-2);
    }
    tn_set_compile(TN_COMPILE_AUTO);
    check_fine();
}

/* The transpose is what the gradient by the data is. */
static void test_transposed(void **state)
{
    (void)state;
    for (int round = 0; round < 60; round++) {
        problem p = random_problem(1);
        int64_t more[AXES];
        for (int i = 0; i < p.axes; i++) {
            int64_t covered = (p.k[i] - 1) * p.spread[i] + 1;
            p.behind[i] = p.pad[i] = p.pad[i] * 2 < covered ? p.pad[i] : 0;
            p.m[i] = between(1, 3);
            more[i] = between(0, p.step[i] - 1);
            p.l[i] = (p.m[i] - 1) * p.step[i] + covered - 2 * p.pad[i] + more[i];
        }
        fill(&p);
        TN_SCOPE {
            tn_array *g = check_array(given.y, y_shape(&p), TN_FLOAT64);
            tn_array *w = check_array(given.w, w_shape(&p), TN_FLOAT64);
            double bias[16];
            check_fill(bias, p.in, -1, 1);
            tn_array *b = check_array(bias, TN_SHAPE(p.in), TN_FLOAT64), *wanted[2];
            wanted[0] = tn_conv_transpose(g, w, .stride = list_of(&p, p.step), .pad = list_of(&p, p.pad),
                                          .output_pad = list_of(&p, more), .dilation = list_of(&p, p.spread),
                                          .groups = p.groups);
            wanted[1] = tn_conv_transpose(g, w, .bias = b, .stride = list_of(&p, p.step), .pad = list_of(&p, p.pad),
                                          .out = list_of(&p, p.l), .dilation = list_of(&p, p.spread),
                                          .groups = p.groups);
            double *x = found(&p, given.x, size_of(x_shape(&p)), into_x);
            check_near(wanted[0], x, size_of(x_shape(&p)), 1e-12);
            int64_t plane = p.l[0] * p.l[1] * p.l[2];
            for (int64_t i = 0; i < size_of(x_shape(&p)); i++)
                x[i] += bias[i / plane % p.in];
            check_near(wanted[1], x, size_of(x_shape(&p)), 1e-12);
        }
    }
    check_fine();
}

static tn_array *of_both(int count, tn_array *const *xs, void *user)
{
    (void)count;
    return tn_sin(conv(user, xs[0], xs[1]));
}
static tn_array *of_both_transposed(int count, tn_array *const *xs, void *user)
{
    (void)count;
    const problem *p = user;
    return tn_sin(tn_conv_transpose(xs[0], xs[1], .stride = list_of(p, p->step), .dilation = list_of(p, p->spread),
                                    .groups = p->groups));
}

static void test_gradients(void **state)
{
    (void)state;
    tn_set_compile(TN_COMPILE_NEVER);
    for (int round = 0; round < 12; round++) {
        problem p = random_problem(1);
        fill(&p);
        TN_SCOPE {
            tn_array *w = check_array(given.w, w_shape(&p), TN_FLOAT64);
            const tn_array *of[][2] = {{check_array(given.x, x_shape(&p), TN_FLOAT64), w},
                                       {check_array(given.y, y_shape(&p), TN_FLOAT64), w}};
            for (int i = 0; i < 2; i++) {
                tn_function f = i ? of_both_transposed : of_both;
                if (tn_check_backward_with(f, &p, 2, of[i], NULL) != TN_OK ||
                    tn_check_double_backward_with(f, &p, 2, of[i], NULL) != TN_OK)
                    fail_msg("round %d: %s", round, tn_error());
            }
        }
    }
    tn_set_compile(TN_COMPILE_AUTO);
}

/* "same" gives an element for an element, or for the beginning of a stride; modes are what NumPy's padding gives. */
static void test_padding(void **state)
{
    (void)state;
    static const char *const modes[][2] = {{"reflect", "reflect"}, {"replicate", "edge"}, {"circular", "wrap"}};
    for (int64_t length = 3; length < 9; length++)
        TN_SCOPE {
            double x[9], w[12];
            check_fill(x, 9, -1, 1);
            check_fill(w, 12, -1, 1);
            tn_array *a = check_array(x, TN_SHAPE(1, 1, length), TN_FLOAT64);
            for (int64_t k = 1; k <= 4; k++)
                for (int64_t stride = 1; stride < 4; stride++) {
                    tn_array *kernel = check_array(w, TN_SHAPE(1, 1, k), TN_FLOAT64);
                    tn_array *y = tn_conv(a, kernel, .stride = TN_SHAPE(stride), .padding = "same");
                    int64_t count = (length + stride - 1) / stride, total = (count - 1) * stride + k - length;
                    total = total > 0 ? total : 0;
                    assert_int_equal(tn_dim(y, 2), count);
                    tn_array *z = tn_conv(a, kernel, .stride = TN_SHAPE(stride), .pad = TN_SHAPE(total / 2),
                                          .pad_behind = TN_SHAPE(total - total / 2));
                    assert_true(tn_item(tn_all_with(tn_equal(y, z), NULL)));
                }
            for (size_t m = 0; m < 3; m++) {
                const int64_t width[3][2] = {{0, 0}, {0, 0}, {2, 1}};
                tn_array *kernel = check_array(w, TN_SHAPE(1, 1, 3), TN_FLOAT64);
                tn_array *y =
                    tn_conv(a, kernel, .pad = TN_SHAPE(2), .pad_behind = TN_SHAPE(1), .pad_mode = modes[m][0]);
                double want[16];
                tn_array *z = tn_conv(tn_pad(a, width, .mode = modes[m][1]), kernel);
                check_read(z, want, tn_size(z));
                check_near(y, want, tn_size(z), 1e-14);
            }
        }
    check_fine();
}

static void test_refused(void **state)
{
    (void)state;
    TN_SCOPE {
        tn_array *x = tn_ones(TN_SHAPE(2, 4, 5, 5)), *w = tn_ones(TN_SHAPE(6, 4, 3, 3));
        tn_array *half = tn_ones(TN_SHAPE(6, 2, 3, 3));
        REFUSED(TN_ERR_SHAPE, "larger than axis 2", tn_conv(x, tn_ones(TN_SHAPE(6, 4, 6, 3))));
        REFUSED(TN_ERR_SHAPE, "larger than axis 3", tn_conv(x, w, .dilation = TN_SHAPE(2, 3)));
        REFUSED(TN_ERR_SHAPE, "larger than axis", tn_conv(x, w, .dilation = TN_SHAPE(INT64_MAX)));
        REFUSED(TN_ERR_SHAPE, "second extent", tn_conv(x, half));
        REFUSED(TN_ERR_SHAPE, "second extent", tn_conv(x, w, .groups = 2));
        REFUSED(TN_ERR_VALUE, "must divide", tn_conv(x, half, .groups = 3));
        REFUSED(TN_ERR_VALUE, "one group", tn_conv(x, w, .groups = 0));
        REFUSED(TN_ERR_VALUE, "one group", tn_conv(x, w, .groups = -1));
        REFUSED(TN_ERR_VALUE, "pad of 0", tn_conv(x, w, .pad = TN_SHAPE(-1)));
        REFUSED(TN_ERR_VALUE, "pad_behind of 0", tn_conv(x, w, .pad_behind = TN_SHAPE(0, -1)));
        REFUSED(TN_ERR_VALUE, "stride of 1", tn_conv(x, w, .stride = TN_SHAPE(1, 0)));
        REFUSED(TN_ERR_VALUE, "dilation of 1", tn_conv(x, w, .dilation = TN_SHAPE(0)));
        REFUSED(TN_ERR_SHAPE, "one stride", tn_conv(x, w, .stride = TN_SHAPE(1, 1, 1)));
        REFUSED(TN_ERR_SHAPE, "larger than any memory", tn_conv(x, w, .pad = TN_SHAPE((int64_t)1 << 61)));
        REFUSED(TN_ERR_SHAPE, "bias of shape (6,)", tn_conv(x, w, .bias = tn_ones(TN_SHAPE(5))));
        REFUSED(TN_ERR_NAME, "no padding 'all'", tn_conv(x, w, .padding = "all"));
        REFUSED(TN_ERR_VALUE, "one of them", tn_conv(x, w, .pad = TN_SHAPE(1), .padding = "same"));
        REFUSED(TN_ERR_NAME, "no pad_mode 'wrap'", tn_conv(x, w, .pad_mode = "wrap"));
        REFUSED(TN_ERR_VALUE, "at most 4", tn_conv(x, w, .pad = TN_SHAPE(5), .pad_mode = "reflect"));
        REFUSED(TN_ERR_VALUE, "at most 5", tn_conv(x, w, .pad = TN_SHAPE(6), .pad_mode = "circular"));
        REFUSED(TN_ERR_DTYPE, "floating", tn_conv(tn_cast(x, TN_INT32), tn_cast(w, TN_INT32)));
        REFUSED(TN_ERR_DTYPE, "floating", tn_conv(tn_cast(x, TN_COMPLEX64), w));
        REFUSED(TN_ERR_DTYPE, "int32 and float32", tn_conv(tn_cast(x, TN_INT32), w));
        REFUSED(TN_ERR_DTYPE, "floating", tn_conv(x, tn_cast(w, TN_UINT8)));
        REFUSED(TN_ERR_DTYPE, "floating bias", tn_conv(x, w, .bias = tn_zeros(TN_SHAPE(6), .dtype = TN_INT64)));
        REFUSED(TN_ERR_SHAPE, "one to three extents", tn_conv(tn_ones(TN_SHAPE(2, 3)), tn_ones(TN_SHAPE(2, 3))));
        REFUSED(TN_ERR_SHAPE, "one to three extents", tn_conv(x, tn_ones(TN_SHAPE(6, 4, 3))));
        REFUSED(TN_ERR_SHAPE, "at least one element", tn_conv(x, tn_ones(TN_SHAPE(6, 4, 0, 3))));
        tn_array *v = tn_ones(TN_SHAPE(4, 3, 3, 3));
        REFUSED(TN_ERR_SHAPE, "first extent", tn_conv_transpose(x, w));
        REFUSED(TN_ERR_VALUE, "below the stride", tn_conv_transpose(x, v, .output_pad = TN_SHAPE(1)));
        REFUSED(TN_ERR_VALUE, "from 11 to 12", tn_conv_transpose(x, v, .stride = TN_SHAPE(2), .out = TN_SHAPE(13)));
        REFUSED(TN_ERR_VALUE, "at least 1", tn_conv_transpose(x, v, .pad = TN_SHAPE(4)));
    }
}

static void test_layers(void **state)
{
    (void)state;
    static const char *const names[] = {"W", "b"};
    TN_SCOPE {
        tn_layer *layer = tn_conv2d(64, TN_SHAPE(3), .stride = TN_SHAPE(2, 1), .pad = TN_SHAPE(1), .groups = 2,
                                    .weight = {TN_INIT_HE_NORMAL});
        tn_array *x = tn_random_normal(TN_SHAPE(2, 32, 7, 5)), *y = tn_forward(layer, x);
        assert_int_equal(tn_param_count(layer), 2);
        for (int i = 0; i < 2; i++)
            assert_string_equal(tn_param_name(layer, i), names[i]);
        tn_array *w = tn_param(layer, 0), *b = tn_param(layer, 1);
        assert_int_equal(tn_dim(w, 0), 64);
        assert_int_equal(tn_dim(w, 1), 16);
        double spread = tn_item(tn_std_with(w, NULL)), wanted = sqrt(2.0 / (16 * 9));
        if (fabs(spread / wanted - 1) > 0.05)
            fail_msg("deviation %g, expected %g", spread, wanted);
        tn_array *same = tn_conv(x, w, .bias = b, .stride = TN_SHAPE(2, 1), .pad = TN_SHAPE(1), .groups = 2);
        assert_true(tn_item(tn_all_with(tn_equal(y, same), NULL)));
        tn_layer *copy = tn_layer_copy(layer);
        assert_true(tn_item(tn_all_with(tn_equal(y, tn_forward(copy, x)), NULL)));
        char *text = tn_layer_string(copy);
        if (!strstr(text, "conv2d:64,3,stride=2x1,pad=1,groups=2"))
            fail_msg("%s", text);
        tn_string_free(text);
        assert_true(tn_is_error(tn_forward(layer, tn_ones(TN_SHAPE(2, 30, 7, 5)))));
        check_latched(TN_ERR_SHAPE, "conv2d");
        assert_true(tn_is_error(tn_forward(layer, tn_ones(TN_SHAPE(2, 32, 7)))));
        check_latched(TN_ERR_SHAPE, "(N, channels, height, width)");
        tn_layer_free(copy);
        tn_layer_free(layer);

        tn_layer *chain = tn_sequential(tn_conv1d(4, TN_SHAPE(3), .padding = "same", .pad_mode = "circular"),
                                        tn_conv_transpose1d(3, TN_SHAPE(4), .stride = TN_SHAPE(2), .no_bias = true));
        y = tn_forward(chain, tn_ones(TN_SHAPE(2, 5, 6)));
        assert_int_equal(tn_dim(y, 1), 3);
        assert_int_equal(tn_dim(y, 2), 14);
        assert_int_equal(tn_param_count(chain), 3);
        assert_int_equal(tn_dim(tn_param_named(chain, "1.W"), 0), 4);
        tn_layer_free(chain);
        chain = tn_sequential(tn_conv3d(2, TN_SHAPE(2)), tn_conv_transpose3d(1, TN_SHAPE(2, 1, 1)));
        y = tn_forward(chain, tn_ones(TN_SHAPE(1, 2, 3, 3, 3)));
        assert_int_equal(tn_size(y), 3 * 2 * 2);
        tn_layer_free(chain);
        chain = tn_depthwise_conv2d(2, TN_SHAPE(3), .in = 5);
        assert_int_equal(tn_dim(tn_forward(chain, tn_ones(TN_SHAPE(1, 5, 4, 4))), 1), 10);
        tn_layer_free(chain);
        chain = tn_conv_transpose2d(6, TN_SHAPE(3), .groups = 3);
        y = tn_forward(chain, tn_ones(TN_SHAPE(2, 9, 4, 4)));
        assert_int_equal(tn_dim(tn_param(chain, 0), 1), 2);
        assert_int_equal(tn_dim(y, 1), 6);
        tn_layer_free(chain);
    }
    check_fine();
    const struct {
        tn_layer *layer;
        const char *word;
    } bad[] = {{tn_conv2d(0, TN_SHAPE(3)), "at least one channel"},
               {tn_conv2d(4, TN_SHAPE(3), .in = 0), "at least one channel"},
               {tn_conv2d(4, TN_SHAPE(3), .groups = 3), "divides"},
               {tn_conv2d(4, (tn_shape){0}), "expected a window's extents"},
               {tn_conv2d(4, TN_SHAPE(3, 3, 3)), "one window's extent"},
               {tn_conv2d(4, TN_SHAPE(0)), "of 1 or more"},
               {tn_conv2d(4, TN_SHAPE(3), .pad = TN_SHAPE(-1)), "pad of 0 or more"},
               {tn_conv2d(4, TN_SHAPE(3), .output_pad = TN_SHAPE(1)), "transposed"},
               {tn_conv_transpose2d(4, TN_SHAPE(3), .padding = "same"), ".pad alone"},
               {tn_conv2d(4, TN_SHAPE(3), .dtype = TN_INT32), "floating"},
               {tn_depthwise_conv2d(4, TN_SHAPE(3)), ".in"}};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        TN_SCOPE {
            tn_array *y = tn_forward(bad[i].layer, tn_ones(TN_SHAPE(1, 4, 5, 5)));
            if (!tn_is_error(y) || !strstr(tn_message_of(y), bad[i].word))
                fail_msg("layer %zu: %s, not '%s'", i, tn_message_of(y), bad[i].word);
        }
        tn_clear_error();
        tn_layer_free(bad[i].layer);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_values),     cmocka_unit_test(test_groups_of_volumes), cmocka_unit_test(test_transposed),
        cmocka_unit_test(test_gradients),  cmocka_unit_test(test_padding),           cmocka_unit_test(test_refused),
        cmocka_unit_test(test_layers),
    };
    return cmocka_run_group_tests(tests, check_seed, NULL);
}
