/* SPDX-License-Identifier: MIT */
/* Pictures: read from any kind of PNG, framed as a dataset's, recognised. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <math.h>
#include <sys/stat.h>
#include <tanso.h>
#include "cli/command_runner.h"
#include "support/device.h"
#include "cli/picture.h"
#include "support/folder.h"
#include "support/random.h"
#include "tn_build_config.h"

#ifdef TN_HAVE_PNG
#include <png.h>
#endif

static test_random chance;
static char folder[256];

/* ---- framing ---- */

static tn__picture picture_new(int width, int height, float ground)
{
    tn__picture p = {width, height, malloc((size_t)(width * height) * sizeof(float))};
    assert_non_null(p.pixels);
    for (int i = 0; i < width * height; i++)
        p.pixels[i] = ground;
    return p;
}

static void fill(tn__picture *p, int left, int top, int right, int bottom, float value)
{
    for (int y = top; y < bottom; y++)
        for (int x = left; x < right; x++)
            p->pixels[y * p->width + x] = value;
}

static void test_same_size_is_kept(void **state)
{
    (void)state;
    char did[256];
    float out[64];
    tn__picture p = picture_new(8, 8, 0);
    fill(&p, 2, 1, 5, 7, 0.7f);
    assert_true(tn__picture_fit(&p, tn__framing_of("digits"), TN__INVERT_AUTO, 8, 8, out, did, sizeof did));
    assert_string_equal(did, "");
    assert_memory_equal(out, p.pixels, sizeof out);
    assert_true(tn__picture_fit(&p, tn__framing_of("digits"), TN__INVERT_YES, 8, 8, out, did, sizeof did));
    assert_string_equal(did, "inverted");
    for (int i = 0; i < 64; i++)
        assert_float_equal(out[i], 1 - p.pixels[i], 1e-6);
    tn__picture_free(&p);
}

/* A dark bar anywhere on light ground of any size comes to lie in MNIST's box, its centre of mass in the middle. */
static void test_mnist_framing(void **state)
{
    (void)state;
    for (int round = 0; round < 30; round++) {
        int width = (int)test_random_int(&chance, 60, 300), height = (int)test_random_int(&chance, 60, 300);
        int w = (int)test_random_int(&chance, 5, 20), h = (int)test_random_int(&chance, 25, 50);
        int left = (int)test_random_int(&chance, 1, width - w - 1),
            top = (int)test_random_int(&chance, 1, height - h - 1);
        tn__picture p = picture_new(width, height, 0.9f);
        fill(&p, left, top, left + w, top + h, 0.1f);
        char did[256];
        float out[28 * 28];
        assert_true(tn__picture_fit(&p, tn__framing_of("mnist"), TN__INVERT_AUTO, 28, 28, out, did, sizeof did));
        assert_non_null(strstr(did, "inverted"));
        assert_non_null(strstr(did, "scaled to 28 x 28"));
        double mass = 0, x = 0, y = 0;
        for (int j = 0; j < 28; j++)
            for (int i = 0; i < 28; i++) {
                double value = out[j * 28 + i];
                assert_true(value >= 0 && value <= 1.0001);
                if (j < 4 || j >= 24)
                    assert_float_equal(value, 0, 1e-5);
                mass += value;
                x += value * (i + 0.5);
                y += value * (j + 0.5);
            }
        assert_float_equal(x / mass, 14, 0.01);
        assert_float_equal(y / mass, 14, 0.01);
        assert_float_equal(mass, 20.0 * 20 * w / h, 0.1); /* 20 pixels high, as wide as its shape asks */
        tn__picture_free(&p);
    }
}

static void test_odd_pictures(void **state)
{
    (void)state;
    static const int sizes[][2] = {{1, 1}, {1, 9}, {9, 1}, {2, 2}, {500, 1}};
    for (int i = 0; i < 5; i++)
        for (int ground = 0; ground < 2; ground++) {
            tn__picture p = picture_new(sizes[i][0], sizes[i][1], (float)ground);
            char did[256];
            float out[28 * 28];
            static const char *const sets[] = {"mnist", "digits", "/some/folder"};
            for (int j = 0; j < 3; j++) {
                assert_true(
                    tn__picture_fit(&p, tn__framing_of(sets[j]), TN__INVERT_AUTO, 28, 28, out, did, sizeof did));
                for (int k = 0; k < 28 * 28; k++)
                    assert_true(isfinite(out[k]) && out[k] >= 0 && out[k] <= 1);
            }
            tn__picture_free(&p);
        }
}

/* ---- the command ---- */

/* Digits of the test set as the command's input; what they are. */
#define SAMPLES 12
static float images[SAMPLES][64];
static int64_t labels[SAMPLES];

static int train_once(void **state)
{
    (void)state;
    test_folder_make(folder);
    tn_dataset *digits = tn_digits(TN_TEST);
    const float *x = test_data(tn_dataset_x(digits));
    const int64_t *t = test_data(tn_dataset_t(digits));
    for (int i = 0; i < SAMPLES; i++) {
        memcpy(images[i], x + i * 64, sizeof images[i]);
        labels[i] = t[i];
    }
    tn_dataset_free(digits);
    return tn_train("digits", NULL, .device = test_device(), .out = test_path(folder, "run")) == TN_OK ? 0 : 1;
}

static int remove_all(void **state)
{
    (void)state;
    test_folder_remove(folder);
    return 0;
}

/* The number of lines "NAME: CLASS  P%" that name the right class; every line must have that form. */
static int right_lines(const char *out, const char *format)
{
    int right = 0;
    const char *line = out;
    for (int i = 0; i < SAMPLES; i++) {
        char head[64];
        int64_t label;
        double probability;
        int length = snprintf(head, sizeof head, format, i);
        if (strncmp(line, head, (size_t)length) != 0 ||
            sscanf(line + length, ": %ld  %lf%%", &label, &probability) != 2)
            fail_msg("expected a line for %s, got: %s", head, line);
        assert_true(probability > 0 && probability <= 100);
        right += label == labels[i];
        line = strchr(line, '\n') + 1;
    }
    assert_true(*line == '\0');
    return right;
}

static void test_idx(void **state)
{
    (void)state;
    for (int most = 16; most <= 255; most += 239) { /* both ranges of values that digits come in */
        FILE *file = fopen(test_path(folder, "few.idx"), "wb");
        fwrite("\0\0\x08\x03\0\0\0\x0c\0\0\0\x08\0\0\0\x08", 1, 16, file);
        for (int i = 0; i < SAMPLES; i++)
            for (int j = 0; j < 64; j++)
                fputc((int)lround(images[i][j] * most), file);
        fclose(file);
        command_result got = command_run(folder, "predict run few.idx");
        assert_int_equal(got.code, 0);
        assert_true(right_lines(got.out, "few.idx[%d]") >= SAMPLES - 2);
        command_free(&got);
    }
}

/* `count` pictures of height x width and their labels, 0 and 1 in turn. */
static void write_pictures(const char *place, const char *stem, int count, int height, int width)
{
    char name[64];
    for (int labelled = 0; labelled < 2; labelled++) {
        snprintf(name, sizeof name, "%s-%s-ubyte", stem, labelled ? "labels-idx1" : "images-idx3");
        FILE *file = fopen(test_path(place, name), "wb");
        assert_non_null(file);
        unsigned char head[16] = {0, 0, 8, labelled ? 1 : 3, 0, 0, 0, (unsigned char)count,
                                  0, 0, 0, (unsigned char)height, 0, 0, 0, (unsigned char)width};
        fwrite(head, 1, labelled ? 8 : 16, file);
        for (int i = 0; i < count; i++)
            for (int j = 0; j < (labelled ? 1 : height * width); j++)
                fputc(labelled ? i % 2 : i % 2 ? 255 - 20 * (j % 5) : 20 * (j % 5), file);
        fclose(file);
    }
}

/* A network on pictures that are not square takes pictures of as many pixels. The folder is remembered by its whole
 * path. */
static void test_not_square(void **state)
{
    (void)state;
    const char *place = test_path(folder, "flags");
    assert_int_equal(mkdir(place, 0777), 0);
    write_pictures(place, "train", 40, 3, 5);
    write_pictures(place, "t10k", 4, 3, 5);
    write_pictures(folder, "other", 2, 4, 5);
    command_result got = command_run(
        folder, "train flags --epochs 20 --batch 10 --optimizer adam:lr=0.01 --quiet --out flagged");
    assert_int_equal(got.code, 0);
    command_free(&got);
    got = command_run(folder, "predict flagged flags/t10k-images-idx3-ubyte");
    assert_int_equal(got.code, 0);
    assert_non_null(strstr(got.out, "[2]: 0"));
    assert_non_null(strstr(got.out, "[3]: 1"));
    command_free(&got);
    got = command_run(folder, "predict flagged other-images-idx3-ubyte");
    assert_int_equal(got.code, 1);
    assert_non_null(strstr(got.err, "5 x 4 pixels: expected 15"));
    command_free(&got);
    tn_archive *archive = tn_archive_load(test_path(folder, "flagged/model.safetensors"));
    const char *dataset = tn_archive_text(archive, "tanso.dataset");
    assert_true(dataset && *dataset == '/');
    tn_archive_free(archive);
    assert_int_equal(rename(place, test_path(folder, "moved")), 0);
    got = command_run(folder, "eval flagged");
    assert_int_equal(got.code, 1);
    assert_non_null(strstr(got.err, "tanso eval flagged --dataset FOLDER"));
    command_free(&got);
    got = command_run(folder, "eval flagged --dataset moved");
    assert_int_equal(got.code, 0);
    command_free(&got);
}

#ifdef TN_HAVE_PNG
enum { ENLARGED = 20, MARGIN = 37, SIDE = 8 * ENLARGED + 2 * MARGIN };

/* Dark blue on cream, enlarged and off the middle: as 8-bit colours, with transparency, in grey, or in 16 bits. */
static void write_png(const char *path, const float *image, int kind)
{
    static unsigned char pixels[SIDE * SIDE * 4];
    static unsigned short deep[SIDE * SIDE];
    static const png_uint_32 formats[] = {PNG_FORMAT_RGB, PNG_FORMAT_RGBA, PNG_FORMAT_GRAY, PNG_FORMAT_LINEAR_Y};
    int channels = kind == 0 ? 3 : kind == 1 ? 4 : 1;
    for (int y = 0; y < SIDE; y++)
        for (int x = 0; x < SIDE; x++) {
            int column = (x - MARGIN) / ENLARGED, row = (y - MARGIN) / ENLARGED;
            bool on = x >= MARGIN && y >= MARGIN && column < 8 && row < 8;
            float ink = on ? image[row * 8 + column] : 0;
            unsigned char *p = pixels + (y * SIDE + x) * channels;
            if (kind == 1) { /* black that is more or less there */
                memset(p, 0, 3);
                p[3] = (unsigned char)lround(255 * ink);
                continue;
            }
            for (int c = 0; c < channels && channels > 1; c++)
                p[c] = (unsigned char)lround(250 - ink * (c == 2 ? 100 : 240));
            if (channels == 1)
                p[0] = (unsigned char)lround(250 - ink * 240);
            deep[y * SIDE + x] = (unsigned short)(65535 * (1 - ink));
        }
    png_image png = {.version = PNG_IMAGE_VERSION, .width = SIDE, .height = SIDE, .format = formats[kind]};
    assert_true(png_image_write_to_file(&png, path, 0, kind == 3 ? (void *)deep : (void *)pixels, 0, NULL));
}

static void test_png(void **state)
{
    (void)state;
    for (int kind = 0; kind < 4; kind++) {
        char words[1024] = "predict run";
        for (int i = 0; i < SAMPLES; i++) {
            char name[16];
            snprintf(name, sizeof name, "%d.png", i);
            write_png(test_path(folder, name), images[i], kind);
            snprintf(words + strlen(words), sizeof words - strlen(words), " %s", name);
        }
        command_result got = command_run(folder, words);
        assert_int_equal(got.code, 0);
        int right = right_lines(got.out, "%d.png");
        if (right < SAMPLES - 3)
            fail_msg("kind %d: only %d of %d pictures were recognised\n%s", kind, right, SAMPLES, got.out);
        assert_non_null(strstr(got.err, "234 x 234 pixels, light background: inverted"));
        assert_non_null(strstr(got.err, "scaled to 8 x 8"));
        command_free(&got);
    }
}

/* A file that breaks off and one that is none are said; the good one beside them is still told. */
static void test_bad_png(void **state)
{
    (void)state;
    write_png(test_path(folder, "0.png"), images[0], 0);
    size_t size;
    char *data = test_read(test_path(folder, "0.png"), &size);
    FILE *file = fopen(test_path(folder, "cut.png"), "wb");
    fwrite(data, 1, size / 2, file);
    fclose(file);
    free(data);
    test_write(test_path(folder, "text.png"), "no picture");
    command_result got = command_run(folder, "predict run cut.png text.png none.png 0.png");
    assert_int_equal(got.code, 1);
    assert_non_null(strstr(got.err, "'cut.png'"));
    assert_non_null(strstr(got.err, "damaged or cut short"));
    assert_non_null(strstr(got.err, "'text.png' is neither a PNG nor a JPEG file"));
    assert_non_null(strstr(got.err, "predict: cannot read 'none.png': No such file"));
    assert_non_null(strstr(got.out, "0.png: "));
    command_free(&got);
}
#endif

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_same_size_is_kept),
        cmocka_unit_test(test_mnist_framing),
        cmocka_unit_test(test_odd_pictures),
        cmocka_unit_test(test_idx),
        cmocka_unit_test(test_not_square),
#ifdef TN_HAVE_PNG
        cmocka_unit_test(test_png),
        cmocka_unit_test(test_bad_png),
#endif
    };
    chance = test_random_new();
    return cmocka_run_group_tests(tests, train_once, remove_all);
}
