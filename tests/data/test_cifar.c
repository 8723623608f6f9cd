/* SPDX-License-Identifier: MIT */
/* CIFAR's archives: read right, in whatever order their files come, and refused where they are damaged. */
#include <sys/stat.h>
#include <zlib.h>
#include "data/check.h"

enum { BLOCK = 512, PIXELS = 3072, RECORDS = 3 };

/* An archive that grows, and the random contents of its files. */
typedef struct tar {
    uint8_t *data;
    size_t size;
    uint8_t pixels[6][RECORDS][PIXELS];
    uint8_t label[6][RECORDS];
} tar;

static void add_file(tar *t, const char *name, const uint8_t *contents, size_t size)
{
    size_t padded = (size + BLOCK - 1) / BLOCK * BLOCK;
    t->data = realloc(t->data, t->size + BLOCK + padded);
    uint8_t *header = t->data + t->size;
    memset(header, 0, BLOCK + padded);
    snprintf((char *)header, 100, "%s", name);
    snprintf((char *)header + 124, 12, "%011zo", size);
    memset(header + 148, ' ', 8);
    unsigned sum = 0;
    for (int i = 0; i < BLOCK; i++)
        sum += header[i];
    snprintf((char *)header + 148, 8, "%06o", sum);
    if (size)
        memcpy(header + BLOCK, contents, size);
    t->size += BLOCK + padded;
}

/* File i, of random records, each of `labels` bytes and pixels. */
static void add_records(tar *t, const char *name, int i, int labels, int classes, test_random *random)
{
    uint8_t file[RECORDS * (PIXELS + 2)], *at = file;
    for (int k = 0; k < RECORDS; k++) {
        if (labels == 2)
            *at++ = (uint8_t)(test_random_bits(random) % 20);
        *at++ = t->label[i][k] = (uint8_t)(test_random_bits(random) % (unsigned)classes);
        for (int j = 0; j < PIXELS; j++)
            *at++ = t->pixels[i][k][j] = (uint8_t)test_random_bits(random);
    }
    add_file(t, name, file, (size_t)(at - file));
}

static void save(const tar *t, const char *name, bool packed)
{
    char folder[64];
    mkdir(scratch_path("cifar"), 0777);
    snprintf(folder, sizeof folder, "cifar/%s", name);
    const char *path = scratch_path(folder);
    if (!packed) {
        test_write_bytes(path, t->data, t->size);
        return;
    }
    gzFile file = gzopen(path, "wb1");
    assert_non_null(file);
    assert_int_equal(gzwrite(file, t->data, (unsigned)t->size), (int)t->size);
    assert_int_equal(gzclose(file), Z_OK);
}

static void end_archive(tar *t)
{
    t->data = realloc(t->data, t->size + 2 * BLOCK);
    memset(t->data + t->size, 0, 2 * BLOCK);
    t->size += 2 * BLOCK;
}

static void assert_holds(tn_dataset *dataset, const tar *t, int first, int files, int classes)
{
    assert_string_equal(tn_error(), "");
    tn_shape shape = tn_shape_of(tn_dataset_x(dataset));
    assert_true(shape.ndim == 4 && shape.dim[0] == files * RECORDS && shape.dim[1] == 3 && shape.dim[3] == 32);
    assert_int_equal(tn_dataset_classes(dataset), classes);
    const float *x = tn_data(tn_dataset_x(dataset));
    const int64_t *label = tn_data(tn_dataset_t(dataset));
    for (int i = 0; i < files; i++)
        for (int k = 0; k < RECORDS; k++) {
            assert_int_equal(*label++, t->label[first + i][k]);
            for (int j = 0; j < PIXELS; j++)
                assert_true(*x++ == (float)t->pixels[first + i][k][j] / 255.0f);
        }
    tn_dataset_free(dataset);
}

static const char *const files10[6] = {"cifar-10-batches-bin/data_batch_1.bin", "cifar-10-batches-bin/data_batch_2.bin",
                                       "cifar-10-batches-bin/data_batch_3.bin", "cifar-10-batches-bin/data_batch_4.bin",
                                       "cifar-10-batches-bin/data_batch_5.bin", "cifar-10-batches-bin/test_batch.bin"};

/* All of CIFAR-10 but `without` (6: nothing is left out), its files in an order of their own. */
static tar *archive10(test_random *random, int without)
{
    static const int order[6] = {5, 2, 0, 4, 1, 3};
    tar *t = calloc(1, sizeof *t);
    add_file(t, "cifar-10-batches-bin/", NULL, 0);
    add_file(t, "cifar-10-batches-bin/readme.html", (const uint8_t *)"what is in it", 13);
    for (int i = 0; i < 6; i++)
        if (order[i] != without)
            add_records(t, files10[order[i]], order[i], 1, 10, random);
    end_archive(t);
    return t;
}

static void tar_free(tar *t)
{
    free(t->data);
    free(t);
}

static void cifar10(void **state)
{
    (void)state;
    test_random random = test_random_new();
    for (int packed = 0; packed < 2; packed++) {
        tar *t = archive10(&random, 6);
        save(t, "cifar-10-binary.tar.gz", packed);
        assert_holds(tn_dataset_named("cifar10", TN_TRAIN), t, 0, 5, 10);
        assert_holds(tn_cifar10(TN_TEST), t, 5, 1, 10);
        tar_free(t);
    }
}

static void cifar100(void **state)
{
    (void)state;
    test_random random = test_random_new();
    tar *t = calloc(1, sizeof *t);
    add_records(t, "cifar-100-binary/train.bin", 0, 2, 100, &random);
    add_records(t, "cifar-100-binary/test.bin", 1, 2, 100, &random);
    save(t, "cifar-100-binary.tar.gz", true); /* one without the blocks of zeros is read, too */
    assert_holds(tn_cifar100(TN_TRAIN), t, 0, 1, 100);
    assert_holds(tn_cifar100(TN_TEST), t, 1, 1, 100);
    tar_free(t);
}

static void refuse(const tar *t, const char *words)
{
    save(t, "cifar-10-binary.tar.gz", false);
    tn_dataset *dataset = tn_cifar10(TN_TRAIN);
    assert_int_equal(tn_dataset_status(dataset), TN_ERR_FORMAT);
    assert_failed(TN_ERR_FORMAT, words);
    tn_dataset_free(dataset);
}

static void damaged(void **state)
{
    (void)state;
    test_random random = test_random_new();
    tar *t = archive10(&random, 3);
    refuse(t, "a file is missing in it; remove it and run `tanso data fetch cifar10`");
    tar_free(t);

    t = archive10(&random, 6);
    t->data[0] ^= 1; /* a name that its checksum does not know */
    refuse(t, "it is no tar file");
    t->data[0] ^= 1;
    size_t whole = t->size;
    t->size = whole - 2 * BLOCK - 100;
    refuse(t, "it ends within a file");
    t->size = 300;
    refuse(t, "it is no tar file");
    t->size = whole;
    tar_free(t);

    t = archive10(&random, 0);
    t->size -= 2 * BLOCK;
    add_file(t, files10[0], (const uint8_t[7]){0}, 7);
    refuse(t, "the length of whole records");
    tar_free(t);

    t = archive10(&random, 6);
    t->size -= 2 * BLOCK;
    add_records(t, files10[1], 1, 1, 10, &random);
    refuse(t, "a file is in it twice");
    tar_free(t);

    t = archive10(&random, 0);
    t->size -= 2 * BLOCK;
    add_records(t, files10[0], 0, 1, 10, &random);
    t->data[t->size - (RECORDS * (PIXELS + 1) + BLOCK - 1) / BLOCK * BLOCK] = 10;
    refuse(t, "a label in it is too large");
    tar_free(t);

    test_write_bytes(scratch_path("cifar/cifar-10-binary.tar.gz"), (const uint8_t *)"\x1f\x8b\x08 and no more", 15);
    tn_dataset *dataset = tn_cifar10(TN_TEST);
    assert_int_equal(tn_dataset_status(dataset), TN_ERR_FORMAT);
    tn_clear_error();
    tn_dataset_free(dataset);
}

static void absent(void **state)
{
    (void)state;
    setenv("TANSO_DATA", scratch_path("nowhere"), 1);
    setenv("XDG_CACHE_HOME", scratch_path("cache"), 1);
    tn_dataset *dataset = tn_cifar10(TN_TRAIN);
    assert_int_equal(tn_dataset_status(dataset), TN_ERR_IO);
    assert_failed(TN_ERR_IO, "run `tanso data fetch cifar10`, or set TANSO_DATA to a folder that holds "
                             "cifar-10-binary.tar.gz");
    tn_dataset_free(dataset);
}

/* Stand-ins have the shapes and classes of what they stand for, and their classes can be told apart. */
static void stand_ins(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        int ndim;
        int64_t pixels, classes;
    } set[] = {{"mnist", 2, 784, 10},
               {"fashion-mnist", 2, 784, 10},
               {"kmnist", 2, 784, 10},
               {"cifar10", 4, 3072, 10},
               {"cifar100", 4, 3072, 100},
               {"svhn", 4, 3072, 10}};
    for (size_t i = 0; i < sizeof set / sizeof *set; i++) {
        char name[32];
        snprintf(name, sizeof name, "synthetic:%s", set[i].name);
        tn_dataset *part[2] = {tn_dataset_named(name, TN_TRAIN), tn_dataset_named(name, TN_TEST)};
        for (int split = 0; split < 2; split++) {
            assert_int_equal(tn_dataset_size(part[split]), split ? 500 : 2000);
            assert_int_equal(tn_dataset_classes(part[split]), set[i].classes);
            assert_int_equal(tn_ndim(tn_dataset_x(part[split])), set[i].ndim);
            assert_int_equal(tn_size(tn_dataset_x(part[split])), tn_dataset_size(part[split]) * set[i].pixels);
        }
        /* a test sample is nearer to a training sample of its class than to one of another */
        const float *train = tn_data(tn_dataset_x(part[0])), *test = tn_data(tn_dataset_x(part[1]));
        double same = 0, other = 0;
        for (int64_t j = 0; j < set[i].pixels; j++) {
            double d = test[j] - train[j], e = test[j] - train[set[i].pixels + j];
            same += d * d;
            other += e * e;
        }
        assert_true(same < 0.95 * other);
        assert_memory_not_equal(train, test, 64);
        tn_dataset_free(part[0]);
        tn_dataset_free(part[1]);
    }
    tn_dataset *none = tn_dataset_named("synthetic:cifar1", TN_TRAIN);
    assert_failed(TN_ERR_NAME, "did you mean 'cifar10'?");
    tn_dataset_free(none);
}

static int use_folder(void **state)
{
    (void)state;
    return setenv("TANSO_DATA", scratch_path("cifar"), 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(cifar10, use_folder),
        cmocka_unit_test_setup(cifar100, use_folder),
        cmocka_unit_test_setup(damaged, use_folder),
        cmocka_unit_test(absent),
        cmocka_unit_test(stand_ins),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
