/* SPDX-License-Identifier: MIT */
/* Files of pictures: decoded right, refused where they are damaged, and datasets of them. */
#include <math.h>
#include <sys/stat.h>
#include <unistd.h>
#include <tanso/dataset.h>
#include <tanso/io.h>
#include "data/check.h"
#include "tn_build_config.h"

#if defined(TN_HAVE_PNG) && defined(TN_HAVE_JPEG)
#include <jpeglib.h>
#include <png.h>

/* Writes random pixels, three bytes each, of which `pixels` keeps a copy. */
static void write_png(const char *name, unsigned width, unsigned height, uint8_t *pixels, test_random *random)
{
    for (unsigned i = 0; i < 3 * width * height; i++)
        pixels[i] = (uint8_t)test_random_bits(random);
    png_image image = {.version = PNG_IMAGE_VERSION, .width = width, .height = height, .format = PNG_FORMAT_RGB};
    assert_true(png_image_write_to_file(&image, scratch_path(name), 0, pixels, 0, NULL));
}

/* A picture that JPEG keeps well: brightness rises from left to right, red falls from top to bottom. */
static uint8_t smooth(unsigned row, unsigned column, int channel)
{
    return (uint8_t)(channel == 0 ? 200 - 4 * row : 40 + 3 * column);
}

static void write_jpeg(const char *name, unsigned width, unsigned height, int channels)
{
    struct jpeg_compress_struct info;
    struct jpeg_error_mgr errors;
    info.err = jpeg_std_error(&errors);
    jpeg_create_compress(&info);
    FILE *file = fopen(scratch_path(name), "wb");
    assert_non_null(file);
    jpeg_stdio_dest(&info, file);
    info.image_width = width;
    info.image_height = height;
    info.input_components = channels;
    info.in_color_space = channels == 1 ? JCS_GRAYSCALE : JCS_RGB;
    jpeg_set_defaults(&info);
    jpeg_set_quality(&info, 100, TRUE);
    jpeg_start_compress(&info, TRUE);
    for (unsigned i = 0; i < height; i++) {
        uint8_t line[3 * 64], *row = line;
        for (unsigned j = 0; j < width; j++)
            for (int c = 0; c < channels; c++)
                line[(int)j * channels + c] = smooth(i, j, channels == 1 ? 1 : c);
        jpeg_write_scanlines(&info, &row, 1);
    }
    jpeg_finish_compress(&info);
    fclose(file);
    jpeg_destroy_compress(&info);
}

static void decoded(void **state)
{
    (void)state;
    test_random random = test_random_new();
    uint8_t pixels[3 * 7 * 5];
    write_png("a.png", 7, 5, pixels, &random);
    tn_array *x = tn_to_cpu(tn_load_image(scratch_path("a.png")));
    assert_string_equal(tn_error(), "");
    assert_true(tn_dtype_of(x) == TN_UINT8 && tn_dim(x, 0) == 3 && tn_dim(x, 1) == 5 && tn_dim(x, 2) == 7);
    const uint8_t *bytes = tn_data(x);
    for (int c = 0; c < 3; c++)
        for (int i = 0; i < 35; i++)
            assert_int_equal(bytes[35 * c + i], pixels[3 * i + c]);
    tn_array *grey = tn_load_image(scratch_path("a.png"), .channels = 1);
    assert_true(tn_dim(grey, 0) == 1);

    for (int channels = 1; channels <= 3; channels += 2) {
        write_jpeg("b.jpg", 40, 30, channels);
        x = tn_to_cpu(tn_load_image(scratch_path("b.jpg")));
        assert_string_equal(tn_error(), "");
        assert_true(tn_dim(x, 0) == channels && tn_dim(x, 1) == 30 && tn_dim(x, 2) == 40);
        bytes = tn_data(x);
        for (int c = 0; c < channels; c++)
            for (unsigned i = 0; i < 30; i++)
                for (unsigned j = 0; j < 40; j++)
                    assert_true(abs(*bytes++ - smooth(i, j, channels == 1 ? 1 : c)) <= 6);
        assert_int_equal(tn_dim(tn_load_image(scratch_path("b.jpg"), .channels = 4 - channels), 0), 4 - channels);
    }
}

/* Cut anywhere, or with any byte changed: an array or an error, which names the file. */
static void damaged(void **state)
{
    (void)state;
    test_random random = test_random_new();
    uint8_t pixels[3 * 20 * 20];
    write_png("a.png", 20, 20, pixels, &random);
    write_jpeg("b.jpg", 40, 30, 3);
    static const char *const names[] = {"a.png", "b.jpg"};
    for (int k = 0; k < 2; k++) {
        size_t size;
        uint8_t *data = scratch_read(scratch_path(names[k]), &size);
        int errors = 0;
        for (int round = 0; round < 200; round++) {
            size_t at = (size_t)test_random_int(&random, 0, (int64_t)size - 1);
            uint8_t kept = data[at];
            data[at] ^= (uint8_t)test_random_int(&random, 1, 255);
            test_write_bytes(scratch_path("c"), data, round % 2 ? size : at);
            data[at] = kept;
            TN_SCOPE
                errors += tn_is_error(tn_load_image(scratch_path("c")));
            assert_true(tn_ok() || strstr(tn_error(), "/c'"));
            tn_clear_error();
        }
        assert_true(errors >= 100);
        free(data);
    }
    test_write_bytes(scratch_path("c"), (const uint8_t *)"no picture", 10);
    tn_load_image(scratch_path("c"));
    assert_failed(TN_ERR_FORMAT, "is neither a PNG nor a JPEG file");
    tn_load_image(scratch_path("nothing"));
    assert_failed(TN_ERR_IO, "nothing");
    tn_load_image(scratch_path("a.png"), .channels = 2);
    assert_failed(TN_ERR_VALUE, "expected 1 channel (grey) or 3");
    tn_load_image(NULL);
    assert_failed(TN_ERR_VALUE, "a path");
}

static void of_lists(void **state)
{
    (void)state;
    test_random random = test_random_new();
    uint8_t pixels[2][3 * 6 * 4];
    write_png("p.png", 6, 4, pixels[0], &random);
    write_png("q.png", 6, 4, pixels[1], &random);
    char root[256];
    snprintf(root, sizeof root, "%s", scratch_path("q.png"));
    *strrchr(root, '/') = 0;
    tn_dataset *dataset =
        tn_image_files(2, ((const char *[]){scratch_path("p.png"), "q.png"}), ((int64_t[]){4, 0}), .root = root);
    assert_string_equal(tn_error(), "");
    assert_int_equal(tn_dataset_classes(dataset), 5);
    const float *x = tn_data(tn_dataset_x(dataset));
    for (int k = 0; k < 2; k++)
        for (int c = 0; c < 3; c++)
            for (int i = 0; i < 24; i++)
                assert_true(*x++ == (float)pixels[k][3 * i + c] / 255.0f);
    assert_int_equal(((const int64_t *)tn_data(tn_dataset_t(dataset)))[0], 4);
    tn_dataset_free(dataset);

    write_jpeg("r.jpg", 30, 20, 3);
    const char *mixed[] = {"p.png", "r.jpg"};
    dataset = tn_image_files(2, mixed, NULL, .root = root);
    tn_dataset_x(dataset);
    assert_failed(TN_ERR_SHAPE, "expected pictures of 4 x 6 pixels, as the first is");
    tn_dataset_free(dataset);
    dataset = tn_image_files(2, mixed, NULL, .root = root, .height = 8, .width = 9, .channels = 1);
    tn_array *all = tn_dataset_x(dataset);
    assert_string_equal(tn_error(), "");
    assert_true(tn_dim(all, 0) == 2 && tn_dim(all, 1) == 1 && tn_dim(all, 2) == 8 && tn_dim(all, 3) == 9);
    tn_dataset_free(dataset);
}

static void assert_refused(tn_dataset *dataset, tn_status status, const char *words)
{
    assert_int_equal(tn_dataset_status(dataset), status);
    assert_failed(status, words);
    tn_dataset_free(dataset);
}

static void of_folders(void **state)
{
    (void)state;
    test_random random = test_random_new();
    uint8_t pixels[3 * 4 * 4];
    mkdir(scratch_path("set"), 0777);
    assert_refused(tn_image_folder(scratch_path("set")), TN_ERR_FORMAT, "has no subfolders");
    static const char *const folders[] = {"set/owl", "set/ant", "set/.hidden"};
    for (int i = 0; i < 3; i++)
        mkdir(scratch_path(folders[i]), 0777);
    write_png("set/owl/2.png", 4, 4, pixels, &random);
    write_png("set/owl/10.png", 4, 4, pixels, &random);
    write_png("set/ant/z.png", 4, 4, pixels, &random);
    write_png("set/none.png", 4, 4, pixels, &random);
    write_png("set/.hidden/x.png", 4, 4, pixels, &random);
    test_write_bytes(scratch_path("set/ant/notes.txt"), (const uint8_t *)"about ants", 10);
    tn_dataset *dataset = tn_image_folder(scratch_path("set"));
    assert_int_equal(tn_dataset_size(dataset), 3);
    assert_int_equal(tn_dataset_classes(dataset), 2);
    const int64_t *t = tn_data(tn_dataset_t(dataset));
    assert_true(t[0] == 0 && t[1] == 1 && t[2] == 1);
    tn_dataset_free(dataset);
    char *classes = tn_image_folder_classes(scratch_path("set"));
    assert_string_equal(classes, "ant\nowl\n");
    tn_string_free(classes);
    assert_null(tn_image_folder_classes(scratch_path("nowhere")));
    assert_failed(TN_ERR_IO, "nowhere");

    assert_refused(tn_image_folder(NULL), TN_ERR_VALUE, "path of a folder");
    assert_refused(tn_image_folder(scratch_path("set"), .height = 3), TN_ERR_VALUE, "a height and a width");
    assert_refused(tn_image_files(1, NULL, NULL), TN_ERR_VALUE, "and NULL");
    assert_refused(tn_image_files(1, ((const char *[]){"x"}), ((int64_t[]){-1})), TN_ERR_VALUE, "got x and -1");
    assert_refused(tn_image_files(1, ((const char *[]){"x"}), NULL), TN_ERR_IO, "'x'");
    unlink(scratch_path("set/owl/2.png")); /* it goes after it was listed */
    dataset = tn_image_folder(scratch_path("set"));
    unlink(scratch_path("set/owl/10.png"));
    tn_loader *loader = tn_loader_new(dataset, .batch = 1, .workers = 2, .device = test_device());
    tn_batch b;
    assert_true(tn_loader_next(loader, &b));
    assert_false(tn_loader_next(loader, &b));
    assert_failed(TN_ERR_IO, "owl/10.png");
    tn_loader_free(loader);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(decoded),
        cmocka_unit_test(damaged),
        cmocka_unit_test(of_lists),
        cmocka_unit_test(of_folders),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

#else

static void unsupported(void **state)
{
    (void)state;
    test_write_bytes(scratch_path("a.png"), (const uint8_t *)"\x89PNG\r\n\x1a\n", 8);
    test_write_bytes(scratch_path("b.jpg"), (const uint8_t *)"\xff\xd8\xff", 3);
#ifndef TN_HAVE_PNG
    tn_load_image(scratch_path("a.png"));
    assert_failed(TN_ERR_UNSUPPORTED, "install libpng-dev");
#endif
#ifndef TN_HAVE_JPEG
    tn_load_image(scratch_path("b.jpg"));
    assert_failed(TN_ERR_UNSUPPORTED, "install libjpeg-dev");
#endif
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(unsupported)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

#endif
