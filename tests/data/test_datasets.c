/* SPDX-License-Identifier: MIT */
/* Datasets: what they hold, and what they say when they cannot. */
#include "data/check.h"

#include <math.h>
#include <sys/stat.h>
#include "core/memory.h"

static const float *floats_of(const tn_dataset *dataset) { return tn_data(tn_dataset_x(dataset)); }
static const int64_t *labels_of(const tn_dataset *dataset) { return tn_data(tn_dataset_t(dataset)); }

static void assert_dataset_failed(tn_dataset *dataset, tn_status status, const char *words)
{
    assert_non_null(dataset);
    assert_int_equal(tn_dataset_status(dataset), status);
    assert_int_equal(tn_dataset_size(dataset), 0);
    assert_int_equal(tn_dataset_classes(dataset), 0);
    assert_failed(status, words);
    assert_true(tn_is_error(tn_dataset_x(dataset)));
    assert_int_equal(tn_status_of(tn_dataset_t(dataset)), status);
    tn_clear_error();
    tn_dataset_free(dataset);
}

static void digits(void **state)
{
    (void)state;
    tn_dataset *raw = tn_digits_raw();
    assert_int_equal(tn_dataset_status(raw), TN_OK);
    assert_int_equal(tn_dataset_size(raw), 1797);
    assert_int_equal(tn_dataset_classes(raw), 10);
    const float *x = floats_of(raw);
    const int64_t *t = labels_of(raw);
    const float first[16] = {0, 0, 5, 13, 9, 1, 0, 0, 0, 0, 13, 15, 10, 15, 5, 0};
    assert_memory_equal(x, first, sizeof first);
    double sum = 0;
    int count[10] = {0};
    for (int i = 0; i < 1797 * 64; i++)
        sum += x[i];
    for (int i = 0; i < 1797; i++)
        count[t[i]]++;
    assert_true(sum == 561718); /* scikit-learn's load_digits().data.sum(), and counts of its target */
    const int expected[10] = {178, 182, 177, 183, 181, 182, 181, 179, 174, 180};
    assert_memory_equal(count, expected, sizeof expected);
    tn_dataset_free(raw);
}

/* Training and test digits together are all the digits, each once. */
static void digits_are_split(void **state)
{
    (void)state;
    tn_dataset *raw = tn_digits_raw(), *part[2] = {tn_digits(TN_TRAIN), tn_digits(TN_TEST)};
    assert_int_equal(tn_dataset_size(part[0]), 1437);
    assert_int_equal(tn_dataset_size(part[1]), 360);
    bool used[1797] = {false};
    const float *all = floats_of(raw);
    int in_order = 0;
    for (int p = 0; p < 2; p++)
        for (int64_t i = 0; i < tn_dataset_size(part[p]); i++) {
            const float *x = floats_of(part[p]) + 64 * i;
            int found = -1;
            for (int j = 0; j < 1797 && found < 0; j++) {
                bool same = !used[j] && labels_of(raw)[j] == labels_of(part[p])[i];
                for (int k = 0; k < 64 && same; k++)
                    same = all[64 * j + k] / 16 == x[k];
                if (same)
                    found = j;
            }
            assert_true(found >= 0);
            used[found] = true;
            in_order += found == i;
        }
    assert_true(in_order < 30); /* a permutation, not the file's order */
    for (int p = 0; p < 2; p++) /* every class is in both */
        assert_int_equal(tn_dataset_classes(part[p]), 10);
    tn_dataset *again = tn_digits(TN_TEST);
    assert_memory_equal(floats_of(again), floats_of(part[1]), 360 * 64 * sizeof(float));
    tn_dataset_free(again);
    tn_dataset_free(part[0]);
    tn_dataset_free(part[1]);
    tn_dataset_free(raw);
}

static void of_arrays(void **state)
{
    (void)state;
    tn_dataset *dataset = NULL;
    TN_SCOPE {
        tn_array *x = tn_reshape(tn_arange(0, 12, 1, .dtype = TN_FLOAT64), TN_SHAPE(3, 4));
        tn_array *turned = tn_transpose(x, (tn_axes){0});
        dataset = tn_dataset_arrays(turned, tn_arange(4, 8, 1, .dtype = TN_UINT8));
    }
    assert_int_equal(tn_dataset_size(dataset), 4);
    assert_int_equal(tn_dataset_classes(dataset), 8);
    const double *data = tn_data(tn_dataset_x(dataset));
    assert_true(data[0] == 0 && data[1] == 4 && data[2] == 8 && data[3] == 1);
    tn_dataset_free(dataset);

    dataset = tn_dataset_arrays(tn_zeros(TN_SHAPE(0, 3)), tn_zeros(TN_SHAPE(0)));
    assert_int_equal(tn_dataset_status(dataset), TN_OK);
    assert_int_equal(tn_dataset_size(dataset), 0);
    tn_dataset_free(dataset);

    assert_dataset_failed(tn_dataset_arrays(tn_zeros(TN_SHAPE(3, 2)), tn_zeros(TN_SHAPE(2))), TN_ERR_SHAPE,
                          "x of shape (3, 2) and t of shape (2,)");
    assert_dataset_failed(tn_dataset_arrays(tn_scalar(1), tn_scalar(1)), TN_ERR_SHAPE, "first extent");
    tn_array *broken = tn_reshape(tn_zeros(TN_SHAPE(3)), TN_SHAPE(2));
    tn_clear_error();
    assert_dataset_failed(tn_dataset_arrays(broken, tn_zeros(TN_SHAPE(2))), TN_ERR_SHAPE, "reshape");
}

static void toy_sets(void **state)
{
    (void)state;
    tn_dataset *spiral = tn_spiral(50, 3), *again = tn_spiral(50, 3), *other = tn_spiral(50, 4);
    assert_int_equal(tn_dataset_size(spiral), 150);
    assert_int_equal(tn_dataset_classes(spiral), 3);
    assert_memory_equal(floats_of(spiral), floats_of(again), 150 * 2 * sizeof(float));
    assert_memory_not_equal(floats_of(spiral), floats_of(other), 150 * 2 * sizeof(float));
    int count[3] = {0}, sorted = 0;
    double noise = 0;
    for (int i = 0; i < 150; i++) {
        int64_t arm = labels_of(spiral)[i];
        double x = floats_of(spiral)[2 * i], y = floats_of(spiral)[2 * i + 1], r = hypot(x, y);
        assert_true(r < 1.0001);
        count[arm]++;
        sorted += i > 0 && labels_of(spiral)[i - 1] <= arm;
        double turn = r > 0 ? remainder(atan2(x, y) - 4 * (double)arm - 4 * r, 2 * M_PI) : 0;
        noise += turn * turn;
    }
    for (int arm = 0; arm < 3; arm++)
        assert_int_equal(count[arm], 50);
    assert_true(sorted < 140); /* shuffled */
    assert_true(noise / 150 > 0.02 && noise / 150 < 0.08); /* the angles' variance is 0.04 */
    tn_dataset_free(spiral);
    tn_dataset_free(again);
    tn_dataset_free(other);

    tn_dataset *sine = tn_sine(1000, 7);
    const float *x = floats_of(sine), *t = tn_data(tn_dataset_t(sine));
    assert_int_equal(tn_dataset_size(sine), 1000);
    assert_int_equal(tn_dataset_classes(sine), 0);
    assert_int_equal(tn_ndim(tn_dataset_t(sine)), 2);
    double mean = 0;
    for (int i = 0; i < 1000; i++) {
        double rest = t[i] - sin(2 * M_PI * x[i]);
        assert_true(x[i] >= 0 && x[i] < 1 && rest > -1e-6 && rest < 1 + 1e-6);
        mean += rest / 1000;
    }
    assert_true(mean > 0.4 && mean < 0.6);
    tn_dataset_free(sine);
    tn_dataset *none = tn_spiral(0, 1);
    assert_int_equal(tn_dataset_size(none), 0);
    assert_int_equal(tn_dataset_status(none), TN_OK);
    tn_dataset_free(none);
    assert_dataset_failed(tn_spiral(-1, 1), TN_ERR_VALUE, "got -1");
    assert_dataset_failed(tn_sine(-5, 1), TN_ERR_VALUE, "got -5");
    assert_dataset_failed(tn_spiral(INT64_MAX / 2, 1), TN_ERR_VALUE, "more than memory");
    assert_dataset_failed(tn_sine(INT64_MAX / 2, 1), TN_ERR_SHAPE, "larger than any memory");
}

static void write_idx(const char *path, int images, const uint8_t *pixels)
{
    uint8_t file[256] = {0, 0, 8, 3, 0, 0, 0, (uint8_t)images, 0, 0, 0, 2, 0, 0, 0, 3};
    memcpy(file + 16, pixels, (size_t)images * 6);
    test_write_bytes(path, file, 16 + (size_t)images * 6);
}

static void idx_folders(void **state)
{
    (void)state;
    const uint8_t pixels[12] = {0, 51, 102, 153, 204, 255, 1, 2, 3, 4, 5, 6};
    uint8_t labels[] = {0, 0, 8, 1, 0, 0, 0, 2, 3, 9};
    mkdir(scratch_path("idx"), 0777);
    assert_dataset_failed(tn_idx_folder(scratch_path("idx"), TN_TRAIN), TN_ERR_IO,
                          "holds no readable train-images-idx3-ubyte[.gz]");
    assert_dataset_failed(tn_idx_folder(scratch_path("nowhere"), TN_TEST), TN_ERR_IO, "t10k-images-idx3-ubyte");
    write_idx(scratch_path("idx/train-images-idx3-ubyte"), 2, pixels);
    assert_dataset_failed(tn_idx_folder(scratch_path("idx"), TN_TRAIN), TN_ERR_IO, "train-labels-idx1-ubyte[.gz]");
    test_write_bytes(scratch_path("idx/train-labels-idx1-ubyte.gz"), labels, sizeof labels); /* .gz, but plain: taken */
    tn_dataset *dataset = tn_dataset_named(scratch_path("idx"), TN_TRAIN);
    assert_string_equal(tn_error(), "");
    assert_int_equal(tn_dataset_size(dataset), 2);
    assert_int_equal(tn_dim(tn_dataset_x(dataset), 1), 6);
    assert_int_equal(tn_dataset_classes(dataset), 10);
    const float scaled[6] = {0.0f, 51 / 255.0f, 102 / 255.0f, 153 / 255.0f, 204 / 255.0f, 1.0f};
    assert_memory_equal(floats_of(dataset), scaled, sizeof scaled);
    assert_int_equal(labels_of(dataset)[1], 9);
    tn_dataset_free(dataset);

    labels[7] = 3;
    uint8_t longer[11] = {0};
    memcpy(longer, labels, sizeof labels);
    test_write_bytes(scratch_path("idx/train-labels-idx1-ubyte.gz"), longer, sizeof longer);
    assert_dataset_failed(tn_idx_folder(scratch_path("idx"), TN_TRAIN), TN_ERR_FORMAT,
                          "train-images-idx3-ubyte' holds 2 images and");
    labels[2] = 0xd;
    uint8_t floating[20] = {0, 0, 0xd, 1, 0, 0, 0, 2};
    test_write_bytes(scratch_path("idx/train-labels-idx1-ubyte.gz"), floating, 16);
    assert_dataset_failed(tn_idx_folder(scratch_path("idx"), TN_TRAIN), TN_ERR_FORMAT,
                          "float32 with 1 axes: expected labels");
    test_write_bytes(scratch_path("idx/train-labels-idx1-ubyte.gz"), labels, 5);
    assert_dataset_failed(tn_idx_folder(scratch_path("idx"), TN_TRAIN), TN_ERR_FORMAT, "cut short");
}

/* TANSO_DATA first, its subfolder, then the cache; one set's files are never taken for the other's. */
static void where_sets_are_looked_for(void **state)
{
    (void)state;
    const uint8_t pixels[6] = {0}, labels[] = {0, 0, 8, 1, 0, 0, 0, 1, 4};
    char *data = getenv("TANSO_DATA") ? strdup(getenv("TANSO_DATA")) : NULL;
    setenv("XDG_CACHE_HOME", scratch_path("cache"), 1);
    static const char *const folders[] = {"cache", "cache/tanso", "cache/tanso/mnist", "data", "data/mnist",
                                          "data/fashion-mnist"};
    for (int i = 0; i < 6; i++)
        mkdir(scratch_path(folders[i]), 0777);
    unsetenv("TANSO_DATA");
    assert_dataset_failed(tn_mnist(TN_TRAIN), TN_ERR_IO, "tanso data fetch mnist");
    static const char *const homes[] = {"cache/tanso/mnist", "data/mnist", "data"};
    for (int i = 0; i < 3; i++) {
        char name[128];
        uint8_t marked[9];
        memcpy(marked, labels, sizeof labels);
        marked[8] = (uint8_t)i;
        snprintf(name, sizeof name, "%s/t10k-images-idx3-ubyte", homes[i]);
        write_idx(scratch_path(name), 1, pixels);
        snprintf(name, sizeof name, "%s/t10k-labels-idx1-ubyte", homes[i]);
        test_write_bytes(scratch_path(name), marked, sizeof marked);
        if (i > 0)
            setenv("TANSO_DATA", scratch_path("data"), 1);
        tn_dataset *dataset = tn_dataset_named("mnist", TN_TEST);
        assert_string_equal(tn_error(), "");
        assert_int_equal(labels_of(dataset)[0], i);
        tn_dataset_free(dataset);
    }
    assert_dataset_failed(tn_fashion_mnist(TN_TEST), TN_ERR_IO, "tanso data fetch fashion-mnist");
    char *cache = tn_data_cache("mnist");
    assert_string_equal(cache, scratch_path("cache/tanso/mnist"));
    tn_string_free(cache);
    assert_null(tn_data_cache("digits"));
    tn_clear_error();
    setenv("XDG_CACHE_HOME", "relative", 1); /* to be ignored */
    unsetenv("TANSO_DATA");
    char *home = getenv("HOME") ? strdup(getenv("HOME")) : NULL;
    setenv("HOME", scratch_path("home"), 1);
    assert_dataset_failed(tn_mnist(TN_TEST), TN_ERR_IO, "home/.cache/tanso/mnist");
    unsetenv("HOME");
    assert_dataset_failed(tn_mnist(TN_TEST), TN_ERR_IO, "neither XDG_CACHE_HOME nor HOME");
    if (home)
        setenv("HOME", home, 1);
    unsetenv("XDG_CACHE_HOME");
    if (data)
        setenv("TANSO_DATA", data, 1);
    free(home);
    free(data);
}

static void names(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        int64_t train, test;
    } known[] = {{"digits", 1437, 360}, {"spiral", 300, 300}, {"sine", 1000, 250}};
    for (int i = 0; i < 3; i++) {
        tn_dataset *train = tn_dataset_named(known[i].name, TN_TRAIN), *test = tn_dataset_named(known[i].name, TN_TEST);
        assert_int_equal(tn_dataset_size(train), known[i].train);
        assert_int_equal(tn_dataset_size(test), known[i].test);
        assert_memory_not_equal(floats_of(train), floats_of(test), 32);
        tn_dataset_free(train);
        tn_dataset_free(test);
    }
    assert_dataset_failed(tn_dataset_named("digit", TN_TRAIN), TN_ERR_NAME, "did you mean 'digits'?");
    assert_dataset_failed(tn_dataset_named("imagenet-22k", TN_TRAIN), TN_ERR_NAME, "there are digits, mnist");
    assert_dataset_failed(tn_dataset_named(NULL, TN_TRAIN), TN_ERR_NAME, "called ''");
    assert_dataset_failed(tn_idx_folder(NULL, TN_TRAIN), TN_ERR_IO, "no folder 'NULL'");
    assert_dataset_failed(tn_idx_folder(scratch_path("nowhere"), TN_TRAIN), TN_ERR_IO, "there is no folder '");
    assert_dataset_failed(tn_dataset_named("no/folder", TN_TRAIN), TN_ERR_IO, "no/folder");
}

static void real_mnist(void **state)
{
    (void)state;
    if (!getenv("TANSO_DATA"))
        skip();
    tn_dataset *dataset = tn_mnist(TN_TEST);
    if (tn_dataset_status(dataset) == TN_ERR_IO) {
        tn_clear_error();
        tn_dataset_free(dataset);
        skip();
    }
    assert_int_equal(tn_dataset_size(dataset), 10000);
    assert_int_equal(tn_dim(tn_dataset_x(dataset), 1), 784);
    assert_int_equal(tn_dataset_classes(dataset), 10);
    assert_int_equal(labels_of(dataset)[0], 7); /* the first test image is a seven */
    double sum = 0;
    for (int i = 0; i < 784; i++)
        sum += floats_of(dataset)[i];
    assert_true(fabs(sum - 72.2) < 1);
    tn_dataset_free(dataset);
}

static void no_memory(void **state)
{
    (void)state;
    bool done = false;
    for (long n = 0; !done && n < 200; n++) {
        tn__fail_allocation_after(n);
        tn_dataset *dataset = tn_digits(TN_TRAIN);
        tn__fail_allocation_after(-1);
        done = tn_dataset_status(dataset) == TN_OK;
        assert_true(done || (tn_dataset_status(dataset) == TN_ERR_MEMORY && tn_error_code() == TN_ERR_MEMORY));
        tn_dataset_free(dataset);
        tn_clear_error();
    }
    assert_true(done);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(digits),      cmocka_unit_test(digits_are_split),
        cmocka_unit_test(of_arrays),   cmocka_unit_test(toy_sets),
        cmocka_unit_test(idx_folders), cmocka_unit_test(where_sets_are_looked_for),
        cmocka_unit_test(names),       cmocka_unit_test(real_mnist),
        cmocka_unit_test(no_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
