/* SPDX-License-Identifier: MIT */
/* Pictures made ready: each step against what it must give, and random ones by what they leave as it was. */
#include <math.h>
#include <tanso/dataset.h>
#include "data/check.h"
#include "support/starve.h"

/* `count` random pictures, whose targets are their numbers. */
static tn_dataset *pictures(int64_t count, int64_t channels, int64_t height, int64_t width, tn_dtype dtype)
{
    tn_dataset *dataset = NULL;
    TN_SCOPE {
        tn_generator generator = {.key = test_seed_new()};
        tn_shape shape = TN_SHAPE(count, channels, height, width);
        tn_array *x = dtype == TN_UINT8 ? tn_random_integers(0, 256, shape, .dtype = dtype, .generator = &generator)
                                        : tn_random_uniform(shape, .generator = &generator);
        dataset = tn_dataset_arrays(x, tn_arange(0, (double)count, 1, .dtype = TN_INT64));
    }
    return dataset;
}

static const float *floats_of(const tn_dataset *dataset) { return tn_data(tn_dataset_x(dataset)); }

static void assert_size(const tn_dataset *dataset, int64_t channels, int64_t height, int64_t width)
{
    assert_string_equal(tn_error(), "");
    tn_shape shape = tn_shape_of(tn_dataset_x(dataset));
    assert_true(shape.ndim == 4 && shape.dim[1] == channels && shape.dim[2] == height && shape.dim[3] == width);
    const int64_t *t = tn_data(tn_dataset_t(dataset));
    for (int64_t i = 0; i < tn_dataset_size(dataset); i++)
        assert_int_equal(t[i], i);
}

static void colours(void **state)
{
    (void)state;
    tn_dataset *raw = pictures(3, 2, 3, 4, TN_UINT8);
    const float mean[] = {0.5f, 0.25f}, deviation[] = {2, 0.5f};
    tn_dataset *plain = tn_dataset_images(raw), *normal = tn_dataset_images(raw, .mean = mean, .deviation = deviation);
    assert_size(plain, 2, 3, 4);
    const uint8_t *byte = tn_data(tn_dataset_x(raw));
    for (int i = 0; i < 72; i++) {
        int c = i / 12 % 2;
        assert_true(floats_of(plain)[i] == (float)byte[i] / 255.0f);
        assert_float_equal(floats_of(normal)[i], ((float)byte[i] / 255.0f - mean[c]) / deviation[c], 1e-6);
    }
    assert_int_equal(tn_dataset_classes(normal), 3);
    tn_dataset_free(raw);
    tn_dataset_free(plain);
    tn_dataset_free(normal);
}

/* A random piece of a padded picture lies somewhere in it, mirrored or not; all places and both ways come. */
static void pieces(void **state)
{
    (void)state;
    enum { COUNT = 400, SIDE = 5, PAD = 1, PIECE = 4, PLACES = SIDE + 2 * PAD - PIECE + 1 };
    tn_dataset *raw = pictures(COUNT, 1, SIDE, SIDE, TN_FLOAT32);
    tn_dataset *cut = tn_dataset_images(raw, .pad = PAD, .crop_height = PIECE, .flip = true);
    assert_size(cut, 1, PIECE, PIECE);
    int seen[PLACES][PLACES][2] = {{{0}}};
    for (int k = 0; k < COUNT; k++) {
        const float *from = floats_of(raw) + k * SIDE * SIDE, *piece = floats_of(cut) + k * PIECE * PIECE;
        int found = 0;
        for (int place = 0; place < PLACES * PLACES * 2; place++) {
            int top = place / 2 / PLACES, left = place / 2 % PLACES, same = 1;
            for (int i = 0; i < PIECE * PIECE && same; i++) {
                int row = top + i / PIECE - PAD, column = i % PIECE;
                column = left + (place % 2 ? PIECE - 1 - column : column) - PAD;
                bool inside = row >= 0 && row < SIDE && column >= 0 && column < SIDE;
                same = piece[i] == (inside ? from[row * SIDE + column] : 0);
            }
            if (same)
                seen[top][left][place % 2]++;
            found += same;
        }
        assert_int_equal(found, 1);
    }
    for (int place = 0; place < PLACES * PLACES * 2; place++) /* 32 of equal chance: none is missed but by 1e-4 */
        assert_true(seen[place / 2 / PLACES][place / 2 % PLACES][place % 2] > 0);

    tn_dataset *middle = tn_dataset_images(raw, .crop_height = 3, .crop_width = 1, .centre = true);
    assert_size(middle, 1, 3, 1);
    for (int k = 0; k < COUNT; k++)
        for (int i = 0; i < 3; i++)
            assert_true(floats_of(middle)[3 * k + i] == floats_of(raw)[k * SIDE * SIDE + (1 + i) * SIDE + 2]);
    tn_dataset_free(middle);
    tn_dataset_free(cut);
    tn_dataset_free(raw);
}

/* A slope stays a slope: pixel (i, j) of 2 i + 3 j, whose centre lies at (i + 1/2, j + 1/2). */
static void scales(void **state)
{
    (void)state;
    enum { HEIGHT = 7, WIDTH = 5 };
    float slope[HEIGHT * WIDTH];
    for (int i = 0; i < HEIGHT * WIDTH; i++)
        slope[i] = (float)(2 * (i / WIDTH) + 3 * (i % WIDTH));
    tn_dataset *raw = tn_dataset_arrays(tn_from_host(slope, TN_SHAPE(1, 1, HEIGHT, WIDTH), TN_FLOAT32),
                                        tn_zeros(TN_SHAPE(1), .dtype = TN_INT64));
    static const int sizes[][2] = {{7, 5}, {14, 10}, {3, 2}, {1, 1}, {20, 5}};
    for (size_t k = 0; k < sizeof sizes / sizeof *sizes; k++) {
        int height = sizes[k][0], width = sizes[k][1];
        tn_dataset *scaled = tn_dataset_images(raw, .height = height, .width = width);
        assert_size(scaled, 1, height, width);
        for (int i = 0; i < height * width; i++) {
            double y = (i / width + 0.5) * HEIGHT / height - 0.5, x = (i % width + 0.5) * WIDTH / width - 0.5;
            y = fmin(fmax(y, 0), HEIGHT - 1);
            x = fmin(fmax(x, 0), WIDTH - 1);
            assert_float_equal(floats_of(scaled)[i], 2 * y + 3 * x, 1e-4);
        }
        tn_dataset_free(scaled);
    }
    tn_dataset *one = tn_dataset_images(raw, .height = 14), *dot = tn_dataset_images(one, .height = 1, .width = 1);
    assert_size(one, 1, 14, 10);
    tn_dataset *wide = tn_dataset_images(dot, .height = 3, .width = 4); /* one pixel is all there is */
    for (int i = 0; i < 12; i++)
        assert_true(floats_of(wide)[i] == floats_of(dot)[0]);
    tn_dataset_free(wide);
    tn_dataset_free(dot);
    tn_dataset_free(one);
    tn_dataset_free(raw);
}

static void refuse(const tn_dataset *dataset, tn_image_opts opts, tn_status status, const char *words)
{
    tn_dataset *made = tn_dataset_images_with(dataset, &opts);
    assert_int_equal(tn_dataset_status(made), status);
    assert_failed(status, words);
    tn_dataset_free(made);
}

static void bad_arguments(void **state)
{
    (void)state;
    tn_dataset *raw = pictures(2, 3, 4, 6, TN_FLOAT32), *flat = tn_digits(TN_TEST);
    refuse(raw, (tn_image_opts){.crop_height = 5}, TN_ERR_SHAPE, "at most 4 x 6 pixels");
    refuse(raw, (tn_image_opts){.pad = 1, .crop_width = 9, .crop_height = 2}, TN_ERR_SHAPE, "got 2 x 9");
    refuse(raw, (tn_image_opts){.pad = -1}, TN_ERR_VALUE, "got -1");
    refuse(raw, (tn_image_opts){.deviation = (float[]){1, 0, 1}}, TN_ERR_VALUE, "for channel 1, got 0 and 0");
    refuse(raw, (tn_image_opts){.mean = (float[]){0, 0, NAN}}, TN_ERR_VALUE, "for channel 2");
    refuse(flat, (tn_image_opts){0}, TN_ERR_SHAPE, "got float32 (64,)");
    refuse(NULL, (tn_image_opts){0}, TN_ERR_VALUE, "a dataset");
    tn_dataset_free(flat);
    tn_dataset_free(raw);
}

static tn_status augment(void *user)
{
    tn_dataset *made = tn_dataset_images(user, .pad = 1, .crop_height = 3, .flip = true);
    tn_status status = TN_OK;
    TN_SCOPE
        status = tn_status_of(tn_dataset_x(made));
    tn_dataset_free(made);
    return status;
}

static void no_memory(void **state)
{
    (void)state;
    tn_dataset *raw = pictures(3, 1, 4, 4, TN_FLOAT32);
    starve("images", augment, raw);
    tn_dataset_free(raw);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(colours),       cmocka_unit_test(pieces),    cmocka_unit_test(scales),
        cmocka_unit_test(bad_arguments), cmocka_unit_test(no_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
