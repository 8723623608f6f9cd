/* SPDX-License-Identifier: MIT */
/* SVHN and the Penn Treebank, read from small files of their formats, and their stand-ins. */
#include <sys/stat.h>
#include <tanso/table.h>
#include "data/check.h"
#include "support/mat.h"

/* ---- SVHN ---- */

enum { IMAGES = 3, PIXELS = 3 * 32 * 32 };

/* Image i has, at row, column and colour, a byte of its own; labels are 1, 10 and 5. */
static uint8_t pixel(int row, int column, int colour, int i) { return (uint8_t)(row + 3 * column + 101 * colour + i); }

static void write_svhn(const char *path, uint32_t label_class, uint8_t first_label)
{
    static uint8_t x[IMAGES * PIXELS];
    uint8_t y[IMAGES] = {first_label, 10, 5}, *at = x;
    for (int i = 0; i < IMAGES; i++)
        for (int colour = 0; colour < 3; colour++)
            for (int column = 0; column < 32; column++)
                for (int row = 0; row < 32; row++)
                    *at++ = pixel(row, column, colour, i);
    mat_file f = {0};
    mat_header(&f);
    mat_add(&f, &(mat_array){"X", 9, 2, 4, (int32_t[]){32, 32, 3, IMAGES}, x, sizeof x}, 1);
    mat_add(&f, &(mat_array){"y", label_class, 2, 2, (int32_t[]){IMAGES, 1}, y, sizeof y}, 1);
    test_write_bytes(path, f.bytes, f.size);
    free(f.bytes);
}

static void svhn(void **state)
{
    (void)state;
    mkdir(scratch_path("svhn"), 0777);
    setenv("TANSO_DATA", scratch_path(""), 1);
    for (int split = 0; split < 2; split++) {
        /* labels of bytes, and of doubles that are stored as bytes */
        write_svhn(scratch_path(split ? "svhn/test_32x32.mat" : "svhn/train_32x32.mat"), split ? 6 : 9, 1);
        tn_dataset *dataset = tn_dataset_named("svhn", split ? TN_TEST : TN_TRAIN);
        assert_string_equal(tn_error(), "");
        assert_int_equal(tn_dataset_size(dataset), IMAGES);
        assert_int_equal(tn_dataset_classes(dataset), 10);
        const float *x = tn_data(tn_dataset_x(dataset));
        const int64_t *t = tn_data(tn_dataset_t(dataset));
        assert_true(tn_ndim(tn_dataset_x(dataset)) == 4 && tn_dim(tn_dataset_x(dataset), 1) == 3);
        assert_true(t[0] == 1 && t[1] == 0 && t[2] == 5);
        for (int i = 0; i < IMAGES; i++)
            for (int colour = 0; colour < 3; colour++)
                for (int row = 0; row < 32; row++)
                    for (int column = 0; column < 32; column++)
                        assert_true(*x++ == (float)pixel(row, column, colour, i) / 255.0f);
        tn_dataset_free(dataset);
    }
    write_svhn(scratch_path("svhn/train_32x32.mat"), 9, 11);
    tn_dataset *bad = tn_svhn(TN_TRAIN);
    assert_failed(TN_ERR_FORMAT, "label 11, expected 1 to 10");
    tn_dataset_free(bad);
    mat_file f = {0};
    mat_header(&f);
    mat_add(&f, &(mat_array){"X", 9, 2, 2, (int32_t[]){2, 2}, "abcd", 4}, 0);
    mat_add(&f, &(mat_array){"y", 9, 2, 2, (int32_t[]){2, 1}, "ab", 2}, 0);
    test_write_bytes(scratch_path("svhn/train_32x32.mat"), f.bytes, f.size);
    free(f.bytes);
    bad = tn_svhn(TN_TRAIN);
    assert_failed(TN_ERR_FORMAT, "does not hold images of 32 x 32 x 3 bytes");
    tn_dataset_free(bad);
}

/* ---- the Penn Treebank ---- */

static void put(const char *name, const char *text) { test_write_bytes(scratch_path(name), text, strlen(text)); }

static void ptb(void **state)
{
    (void)state;
    mkdir(scratch_path("ptb"), 0777);
    setenv("TANSO_DATA", scratch_path(""), 1);
    put("ptb/ptb.train.txt", " the cat sat \n the dog \n");
    put("ptb/ptb.valid.txt", " a dog \n");
    put("ptb/ptb.test.txt", " a cat and \n");
    /* numbered as they come: the 0 cat 1 sat 2 <eos> 3 dog 4 a 5 and 6 */
    static const int64_t train[] = {0, 1, 2, 3, 0, 4, 3}, valid[] = {5, 4, 3}, test[] = {5, 1, 6, 3};
    static const struct {
        const char *name;
        int64_t count;
        const int64_t *numbers;
    } parts[] = {{"train", 7, train}, {"valid", 3, valid}, {"test", 4, test}};
    TN_SCOPE
        for (int i = 0; i < 3; i++) {
            tn_array *words = tn_ptb_words(parts[i].name);
            assert_string_equal(tn_message_of(words), "");
            assert_int_equal(tn_size(words), parts[i].count);
            assert_memory_equal(tn_data(tn_to_cpu(words)), parts[i].numbers, (size_t)parts[i].count * 8);
        }
    tn_words *list = tn_ptb_vocabulary();
    assert_int_equal(tn_words_count(list), 7);
    assert_string_equal(tn_words_get(list, 3), "<eos>");
    assert_int_equal(tn_words_find(list, "and"), 6);
    tn_words_free(list);
    tn_dataset *dataset = tn_dataset_named("ptb", TN_TRAIN);
    assert_int_equal(tn_dataset_size(dataset), 6);
    assert_int_equal(tn_dataset_classes(dataset), 5);
    assert_memory_equal(tn_data(tn_dataset_x(dataset)), train, 6 * 8);
    assert_memory_equal(tn_data(tn_dataset_t(dataset)), train + 1, 6 * 8);
    tn_dataset_free(dataset);
    dataset = tn_ptb(TN_TEST);
    assert_memory_equal(tn_data(tn_dataset_t(dataset)), test + 1, 3 * 8);
    tn_dataset_free(dataset);
    put("ptb/ptb.train.txt", "");
    dataset = tn_ptb(TN_TRAIN);
    assert_int_equal(tn_dataset_status(dataset), TN_OK);
    assert_int_equal(tn_dataset_size(dataset), 0);
    tn_dataset_free(dataset);
    TN_SCOPE
        assert_true(tn_is_error(tn_ptb_words("all")));
    assert_failed(TN_ERR_NAME, "got \"all\"");
    setenv("TANSO_DATA", scratch_path("nowhere"), 1);
    setenv("XDG_CACHE_HOME", scratch_path("cache"), 1);
    tn_words_free(tn_ptb_vocabulary());
    assert_failed(TN_ERR_IO, "run `tanso data fetch ptb`");
    dataset = tn_svhn(TN_TEST);
    assert_failed(TN_ERR_IO, "run `tanso data fetch svhn`");
    tn_dataset_free(dataset);
}

/* Three of four words are told by the one before; the frequent ones are those of low numbers. */
static void ptb_stand_in(void **state)
{
    (void)state;
    for (int split = 0; split < 2; split++) {
        tn_dataset *dataset = tn_dataset_named("synthetic:ptb", split ? TN_TEST : TN_TRAIN);
        int64_t size = tn_dataset_size(dataset), follows[10000], right = 0, low = 0;
        assert_int_equal(size, split ? 5000 : 20000);
        assert_int_equal(tn_dataset_classes(dataset), 10000);
        const int64_t *x = tn_data(tn_dataset_x(dataset)), *t = tn_data(tn_dataset_t(dataset));
        memset(follows, -1, sizeof follows);
        for (int64_t i = 0; i < size; i++) {
            assert_in_range(x[i], 0, 9999);
            assert_in_range(t[i], 0, 9999);
            assert_true(i + 1 == size || x[i + 1] == t[i]);
            right += follows[x[i]] == t[i];
            follows[x[i]] = t[i];
            low += x[i] < 100;
        }
        assert_true(right > size / 4); /* the same twice running, of words that came before */
        assert_true(low > size / 4 && low < size);
        tn_dataset_free(dataset);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(svhn), cmocka_unit_test(ptb), cmocka_unit_test(ptb_stand_in)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
