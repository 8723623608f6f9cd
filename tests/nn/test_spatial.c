/* SPDX-License-Identifier: MIT */
/* Samples at given places, boxes of pictures and pyramids against PyTorch's and Chainer's values; what they refuse. */
#include "nn/torch.h"

#define CASE(name, expression) \
    static tn_array *name(tn_array *const *x, tn_array *const *t) \
    { \
        (void)t; \
        return expression; \
    }
#define GRID(name, ...) CASE(name, tn_grid_sample(x[0], x[1], __VA_ARGS__))
GRID(grid_linear_zeros, .mode = "linear")
GRID(grid_linear_border, .pad_mode = "border")
GRID(grid_linear_reflection, .pad_mode = "reflect")
GRID(grid_linear_zeros_corners, .align_corners = true)
GRID(grid_linear_border_corners, .pad_mode = "border", .align_corners = true)
GRID(grid_linear_reflection_corners, .pad_mode = "reflect", .align_corners = true)
GRID(grid_cubic, .mode = "cubic", .pad_mode = "border")
GRID(grid_cubic_corners, .mode = "cubic", .pad_mode = "border", .align_corners = true)
GRID(grid_cubic_zeros, .mode = "cubic")
GRID(grid_nearest, .mode = "nearest")
CASE(grid_three, tn_grid_sample(x[0], x[1]))
CASE(affine_grid, tn_affine_grid(x[0], TN_SHAPE(3, 4), false))
CASE(affine_grid_corners, tn_affine_grid(x[0], TN_SHAPE(3, 4), true))
CASE(affine_three, tn_affine_grid(x[0], TN_SHAPE(2, 3, 4), false))
CASE(transformer, tn_grid_sample(x[0], tn_affine_grid(x[1], TN_SHAPE(4, 5), true), .align_corners = true))
CASE(spatial_pyramid_pooling, tn_spatial_pyramid_pool(x[0], 3))

static tn_array *boxes(void) { return tn_cast(torch_value("boxes"), TN_FLOAT32); }
#define BINS TN_SHAPE(3, 2)
CASE(roi_average_align, tn_roi_align(x[0], boxes(), BINS, .scale = 0.5))
CASE(roi_max_align, tn_roi_align(x[0], boxes(), BINS, .scale = 0.5, .samples = 3, .max = true))
CASE(roi_average_pooling, tn_roi_pool(x[0], boxes(), BINS, .scale = 0.5, .average = true, .open = true))
CASE(roi_max_pooling, tn_roi_pool(x[0], boxes(), BINS, .scale = 0.5, .open = true))
CASE(roi_pooling, tn_roi_pool(x[0], boxes(), BINS, .scale = 0.5))

#define ROW(name) {#name, name, true}
#define CHECKED(name) {#name, name, false}

/* Kernels of own texts cost CI's seconds: these are evaluated without a compiler but for one each. */
static void check_all(const char *file, int count, const torch_case *cases)
{
    if (!values_open(file))
        skip();
    torch_check(1, cases);
    tn_set_compile(TN_COMPILE_NEVER);
    torch_check(count - 1, cases + 1);
    tn_set_compile(TN_COMPILE_AUTO);
    torch_close();
}

static void test_grids(void **state)
{
    (void)state;
    static const torch_case cases[] = {
        CHECKED(grid_linear_zeros), ROW(grid_linear_border), CHECKED(grid_linear_reflection),
        ROW(grid_linear_zeros_corners), ROW(grid_linear_border_corners), ROW(grid_linear_reflection_corners),
        CHECKED(grid_cubic), ROW(grid_cubic_corners), ROW(grid_cubic_zeros), ROW(grid_nearest), ROW(grid_three),
        CHECKED(affine_grid), ROW(affine_grid_corners), ROW(affine_three),
    };
    check_all("torch.npz", sizeof cases / sizeof *cases, cases);
}

static void test_boxes(void **state)
{
    (void)state;
    static const torch_case cases[] = {
        CHECKED(roi_average_align), CHECKED(roi_max_align), CHECKED(roi_average_pooling), CHECKED(roi_max_pooling),
        CHECKED(roi_pooling), ROW(spatial_pyramid_pooling), CHECKED(transformer),
    };
    check_all("chainer.npz", sizeof cases / sizeof *cases, cases);
}

/* The whole picture at its own places is the picture, whatever its extents and dtype; none of it is none. */
static void test_whole(void **state)
{
    (void)state;
    static const tn_dtype dtypes[] = {TN_FLOAT16, TN_FLOAT32, TN_FLOAT64};
    tn_set_compile(TN_COMPILE_NEVER);
    for (int round = 0; round < 12; round++)
        TN_SCOPE {
            int64_t n = test_random_int(&check_random, 0, 2), h = test_random_int(&check_random, 1, 5),
                    w = test_random_int(&check_random, 1, 5);
            tn_dtype dtype = dtypes[round % 3];
            bool corners = round & 1;
            tn_array *x = tn_random_normal(TN_SHAPE(n, 2, h, w), .dtype = dtype);
            tn_array *theta = tn_broadcast_to(tn_eye(2, -1, .dtype = dtype), TN_SHAPE(n, 2, 2));
            theta = tn_concatenate(TN_ARRAYS(theta, tn_zeros(TN_SHAPE(n, 2, 1), .dtype = dtype)), 2);
            tn_array *grid = tn_affine_grid(theta, TN_SHAPE(h, w), corners);
            tn_array *y = tn_grid_sample(x, grid, .align_corners = corners);
            assert_int_equal(tn_dtype_of(y), dtype);
            assert_true(tn_allclose(y, x, .rtol = 0, .atol = dtype == TN_FLOAT16 ? 0.05 : 1e-4));
            tn_array *box = tn_zeros(TN_SHAPE(0, 5), .dtype = TN_FLOAT32);
            assert_int_equal(tn_size(tn_roi_align(x, box, TN_SHAPE(2))), 0);
            assert_int_equal(tn_size(tn_roi_pool(x, box, TN_SHAPE(2))), 0);
            const double all[] = {0, 0, 0, (double)(w - 1), (double)(h - 1)};
            box = check_array(all, TN_SHAPE(1, 5), TN_FLOAT32);
            if (n > 0) {
                y = tn_roi_pool(x, box, TN_SHAPE(h, w));
                assert_true(tn_array_equal(tn_index(y, 0), tn_index(x, 0), false));
            }
        }
    tn_set_compile(TN_COMPILE_AUTO);
    check_fine();
}

static void test_refused(void **state)
{
    (void)state;
    TN_SCOPE {
        tn_array *x = tn_ones(TN_SHAPE(2, 3, 4, 5)), *grid = tn_zeros(TN_SHAPE(2, 3, 3, 2));
        REFUSED(TN_ERR_NAME, "no 'bilinear'", tn_grid_sample(x, grid, .mode = "bilinear"));
        REFUSED(TN_ERR_NAME, "no 'circular'", tn_grid_sample(x, grid, .pad_mode = "circular"));
        REFUSED(TN_ERR_SHAPE, "expected a grid", tn_grid_sample(x, tn_zeros(TN_SHAPE(1, 3, 3, 2))));
        REFUSED(TN_ERR_SHAPE, "expected a grid", tn_grid_sample(x, tn_zeros(TN_SHAPE(2, 3, 3, 3))));
        REFUSED(TN_ERR_SHAPE, "nothing to sample", tn_grid_sample(tn_ones(TN_SHAPE(2, 3, 0, 5)), grid));
        REFUSED(TN_ERR_VALUE, "two axes",
                tn_grid_sample(tn_ones(TN_SHAPE(2, 3, 4)), tn_zeros(TN_SHAPE(2, 3, 1)), .mode = "cubic"));
        REFUSED(TN_ERR_SHAPE, "expected theta", tn_affine_grid(tn_ones(TN_SHAPE(2, 3)), TN_SHAPE(2), false));
        REFUSED(TN_ERR_VALUE, "of 1 or more", tn_affine_grid(tn_ones(TN_SHAPE(2, 2, 3)), TN_SHAPE(0), false));
        tn_array *box = tn_zeros(TN_SHAPE(1, 5));
        REFUSED(TN_ERR_SHAPE, "expected x (N", tn_roi_align(x, tn_zeros(TN_SHAPE(1, 4)), TN_SHAPE(2)));
        REFUSED(TN_ERR_VALUE, "scale above 0", tn_roi_pool(x, box, TN_SHAPE(2), .scale = -1));
        REFUSED(TN_ERR_VALUE, "1 to 1024 samples", tn_roi_align(x, box, TN_SHAPE(2), .samples = 0));
        REFUSED(TN_ERR_VALUE, "1 to 16 levels", tn_spatial_pyramid_pool(x, 0));
        REFUSED(TN_ERR_SHAPE, "4 elements or more", tn_spatial_pyramid_pool(tn_ones(TN_SHAPE(1, 1, 3, 8)), 3));
        const double far[] = {2, 0, 0, 1, 1};
        box = check_array(far, TN_SHAPE(1, 5), TN_FLOAT32);
        tn_array *y = tn_roi_align(x, box, TN_SHAPE(2));
        assert_int_equal(test_eval(y), TN_ERR_INDEX);
        tn_clear_error();
        y = tn_roi_pool(x, tn_negative(tn_ones(TN_SHAPE(1, 5))), TN_SHAPE(2));
        assert_int_equal(test_eval(y), TN_ERR_INDEX);
        tn_clear_error();
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_grids), cmocka_unit_test(test_boxes), cmocka_unit_test(test_whole),
        cmocka_unit_test(test_refused),
    };
    return cmocka_run_group_tests(tests, check_seed, NULL);
}
