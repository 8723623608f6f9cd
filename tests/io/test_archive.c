/* SPDX-License-Identifier: MIT */
/* Archives in memory, as .npz, and what saving and loading say when they cannot. */
#include "io/check.h"

#include <signal.h>
#include <sys/resource.h>
#include "core/memory.h"
#include "io/formats.h"

static void names_and_replacing(void **state)
{
    (void)state;
    tn_archive *archive = tn_archive_new();
    char name[32];
    for (int i = 0; i < 1000; i++)
        TN_SCOPE {
            snprintf(name, sizeof name, "array %d", i * 7919 % 1000);
            assert_int_equal(tn_archive_add(archive, name, tn_full(TN_SHAPE(1), i)), TN_OK);
        }
    assert_int_equal(tn_archive_count(archive), 1000);
    for (int i = 0; i < 1000; i++)
        TN_SCOPE {
            snprintf(name, sizeof name, "array %d", i * 7919 % 1000);
            assert_string_equal(tn_archive_name(archive, i), name);
            assert_ptr_equal(tn_archive_find(archive, name), tn_archive_array(archive, i));
            assert_int_equal((int)tn_item(tn_archive_find(archive, name)), i);
        }
    TN_SCOPE assert_int_equal(tn_archive_add(archive, "array 5", tn_full(TN_SHAPE(2), -1)), TN_OK);
    assert_int_equal(tn_archive_count(archive), 1000);
    assert_int_equal(tn_dim(tn_archive_find(archive, "array 5"), 0), 2);
    assert_null(tn_archive_find(archive, "array"));
    assert_int_equal(tn_archive_set_text(archive, "k", "one"), TN_OK);
    assert_int_equal(tn_archive_set_text(archive, "k", "two"), TN_OK);
    assert_string_equal(tn_archive_text(archive, "k"), "two");
    assert_int_equal(tn_archive_status(archive), TN_OK);
    tn_archive_free(archive);
    tn_archive_free(NULL);
}

/* What was freed is a failed object. */
static void freed(void **state)
{
    (void)state;
    tn_archive *archive = tn_archive_new();
    TN_SCOPE {
        assert_int_equal(tn_archive_add(archive, "a", tn_zeros(TN_SHAPE(2))), TN_OK);
        assert_int_equal(tn_archive_set_text(archive, "k", "v"), TN_OK);
        tn_archive_free(archive);
        tn_archive_free(archive);
        assert_failed(TN_ERR_STATE, "archive has been freed");
        assert_int_equal(tn_archive_status(archive), TN_ERR_STATE);
        assert_int_equal(tn_archive_add(archive, "a", tn_zeros(TN_SHAPE(2))), TN_ERR_STATE);
        assert_failed(TN_ERR_STATE, "freed");
        assert_int_equal(tn_archive_set_text(archive, "k", "v"), TN_ERR_STATE);
        assert_failed(TN_ERR_STATE, "freed");
        assert_int_equal(tn_archive_count(archive), 0);
        assert_failed(TN_ERR_STATE, "freed");
        assert_null(tn_archive_find(archive, "a"));
        assert_failed(TN_ERR_STATE, "freed");
        assert_null(tn_archive_text(archive, "k"));
        assert_failed(TN_ERR_STATE, "freed");
        assert_string_equal(tn_archive_name(archive, 0), "");
        assert_failed(TN_ERR_STATE, "freed");
        assert_true(tn_is_error(tn_archive_array(archive, 0)));
        assert_failed(TN_ERR_STATE, "freed");
        assert_int_equal(tn_archive_save(archive, scratch_path("freed.npz")), TN_ERR_STATE);
        assert_failed(TN_ERR_STATE, "freed");
    }
    assert_true(tn_ok());
}

static void out_of_range(void **state)
{
    (void)state;
    tn_archive *archive = tn_archive_new();
    assert_string_equal(tn_archive_name(archive, 0), "");
    assert_failed(TN_ERR_INDEX, "from 0 to 0, got 0");
    assert_true(tn_is_error(tn_archive_array(archive, -1)));
    assert_failed(TN_ERR_INDEX, "got -1");
    tn_array *broken = tn_reshape(tn_zeros(TN_SHAPE(3)), TN_SHAPE(2));
    tn_clear_error();
    assert_int_equal(tn_archive_add(archive, "a", broken), TN_ERR_SHAPE);
    tn_clear_error();
    assert_int_equal(tn_archive_add(archive, NULL, tn_zeros(TN_SHAPE(1))), TN_ERR_VALUE);
    assert_failed(TN_ERR_VALUE, "a name");
    assert_int_equal(tn_archive_set_text(archive, "k", NULL), TN_ERR_VALUE);
    assert_failed(TN_ERR_VALUE, "got NULL");
    assert_int_equal(tn_archive_save(archive, NULL), TN_ERR_VALUE);
    assert_failed(TN_ERR_VALUE, "got 'NULL'");
    assert_int_equal(tn_archive_count(archive), 0);
    tn_archive_free(archive);
}

/* A value that changes after it was added must not change in the archive. */
static void values_stay(void **state)
{
    (void)state;
    tn_archive *archive = tn_archive_new();
    TN_SCOPE {
        tn_array *x = tn_full(TN_SHAPE(2), 1);
        assert_int_equal(tn_archive_add(archive, "x", x), TN_OK);
        assert_int_equal(tn_add_assign(x, tn_weak_int(1)), TN_OK);
        assert_true(tn_item(tn_index(x, 0)) == 2);
    }
    TN_SCOPE assert_true(tn_item(tn_index(tn_archive_find(archive, "x"), 0)) == 1);
    tn_archive_free(archive);
}

static void npz_round_trips(void **state)
{
    (void)state;
    test_random random = test_random_new();
    const char *path = scratch_path("a.npz");
    for (int count = 0; count < 30; count += 1 + count)
        TN_SCOPE {
            tn_archive *archive = tn_archive_new();
            char name[32];
            for (int i = 0; i < count; i++) {
                snprintf(name, sizeof name, "part %d/w\xe7\x82\xad", i);
                tn_dtype dtype = (tn_dtype)test_random_int(&random, TN_BOOL, TN_FLOAT16);
                assert_int_equal(tn_archive_add(archive, name, random_array(&random, dtype)), TN_OK);
            }
            if (count > 3)
                assert_int_equal(tn_archive_set_text(archive, "model", "linear:10\nrelu"), TN_OK);
            if (count > 6)
                assert_int_equal(tn_archive_set_text(archive, "nothing", ""), TN_OK);
            assert_int_equal(tn_archive_save(archive, path), TN_OK);
            tn_archive *back = load_same(path, archive);
            assert_int_equal(tn_archive_count(back), count);
            if (count > 6) {
                assert_string_equal(tn_archive_text(back, "model"), "linear:10\nrelu");
                assert_string_equal(tn_archive_text(back, "nothing"), "");
            }
            size_t size, again_size;
            uint8_t *bytes = scratch_read(path, &size);
            assert_int_equal(tn_archive_save(archive, path), TN_OK);
            uint8_t *again = scratch_read(path, &again_size);
            assert_int_equal(size, again_size);
            assert_memory_equal(bytes, again, size); /* nothing of the time or the process is in it */
            free(bytes);
            free(again);
            tn_archive_free(archive);
            tn_archive_free(back);
        }
    assert_int_equal(scratch_count(), 1);
}

/* Each byte of an .npz changed in turn: an archive or an error, and never other elements than were written. */
static void npz_damage(void **state)
{
    (void)state;
    const char *path = scratch_path("damaged.npz");
    tn_archive *archive = tn_archive_new();
    const int64_t values[3] = {10, 20, 30};
    assert_int_equal(tn_archive_add(archive, "x", tn_from_int64s(values, 3)), TN_OK);
    assert_int_equal(tn_archive_save(archive, path), TN_OK);
    tn_archive_free(archive);
    size_t size;
    uint8_t *bytes = scratch_read(path, &size);
    int refused = 0;
    for (size_t i = 0; i < size; i++)
        for (int bit = 0; bit < 8; bit += 3)
            TN_SCOPE {
                uint8_t *changed = malloc(size);
                memcpy(changed, bytes, size);
                changed[i] ^= (uint8_t)(1 << bit);
                archive = tn_archive_new();
                tn_status status = tn__npz_parse("test", "damaged", changed, size, archive);
                tn_array *x = tn_archive_count(archive) ? tn_archive_array(archive, 0) : NULL;
                if (status == TN_OK && x && tn_dtype_of(x) == TN_INT64)
                    assert_memory_equal(test_data(x), values, sizeof values);
                refused += status != TN_OK;
                tn_archive_free(archive);
                tn_clear_error();
                free(changed);
            }
    assert_true(refused > (int)size);
    for (size_t cut = 0; cut < size; cut++) {
        archive = tn_archive_new();
        uint8_t *part = malloc(cut ? cut : 1);
        memcpy(part, bytes, cut);
        assert_int_equal(tn__npz_parse("test", "cut", part, cut, archive), TN_ERR_FORMAT);
        assert_failed(TN_ERR_FORMAT, "cut");
        free(part);
        tn_archive_free(archive);
    }
    free(bytes);
}

static void assert_load_fails(const char *path, tn_status status, const char *words)
{
    tn_archive *archive = tn_archive_load(path);
    assert_int_equal(tn_archive_status(archive), status);
    assert_int_equal(tn_archive_count(archive), 0);
    assert_failed(status, words);
    assert_int_equal(tn_archive_save(archive, scratch_path("again.npz")), status); /* passes its error on */
    assert_failed(status, words);
    assert_int_equal(tn_archive_set_text(archive, "k", "v"), status);
    tn_clear_error();
    tn_archive_free(archive);
}

static void documented_errors(void **state)
{
    (void)state;
    assert_load_fails(scratch_path("model.bin"), TN_ERR_VALUE, "ends in .safetensors or .npz");
    assert_load_fails(".npz", TN_ERR_VALUE, "ends in");
    assert_load_fails(scratch_path("none.npz"), TN_ERR_IO, "No such file");
    assert_load_fails(scratch_path("none.safetensors"), TN_ERR_IO, "No such file");
    test_write_bytes(scratch_path("text.npz"), "not a zip file, not at all", 26);
    assert_load_fails(scratch_path("text.npz"), TN_ERR_FORMAT, "no valid .npz file");
    tn_archive *archive = tn_archive_new();
    assert_int_equal(tn_archive_add(archive, "half", tn_zeros(TN_SHAPE(1), .dtype = TN_BFLOAT16)), TN_OK);
    assert_int_equal(tn_archive_save(archive, scratch_path("half.npz")), TN_ERR_DTYPE);
    assert_failed(TN_ERR_DTYPE, "save it as .safetensors");
    assert_int_equal(tn_archive_save(archive, scratch_path("none/half.npz")), TN_ERR_IO);
    assert_failed(TN_ERR_IO, "No such file");
    assert_int_not_equal(access(scratch_path("half.npz"), F_OK), 0);
    tn_archive_free(archive);
    archive = tn_archive_new();
    assert_int_equal(tn_archive_add(archive, "__metadata__/x", tn_zeros(TN_SHAPE(1))), TN_OK);
    assert_int_equal(tn_archive_save(archive, scratch_path("taken.npz")), TN_ERR_NAME);
    assert_failed(TN_ERR_NAME, "rename it");
    tn_archive_free(archive);
}

/* Whatever is written can be read: an array and a text of no name among them. Endings in any case. */
static void names_of_all_kinds(void **state)
{
    (void)state;
    static const char *const files[] = {"names.npz", "names.safetensors", "names.NPZ", "names.SafeTensors"};
    static const char *const names[] = {"", ".npy", "a/b", "..", " ", "\xc3\xa4", "__metadata__x"};
    enum { NAMES = sizeof names / sizeof *names };
    for (size_t f = 0; f < sizeof files / sizeof *files; f++)
        TN_SCOPE {
            tn_archive *archive = tn_archive_new();
            for (int i = 0; i < NAMES; i++) {
                assert_int_equal(tn_archive_add(archive, names[i], tn_full(TN_SHAPE(2), i)), TN_OK);
                assert_int_equal(tn_archive_set_text(archive, names[i], names[NAMES - 1 - i]), TN_OK);
            }
            assert_int_equal(tn_archive_save(archive, scratch_path(files[f])), TN_OK);
            tn_archive_free(archive);
            archive = tn_archive_load(scratch_path(files[f]));
            assert_int_equal(tn_archive_status(archive), TN_OK);
            assert_int_equal(tn_archive_count(archive), NAMES);
            for (int i = 0; i < NAMES; i++) {
                tn_array *x = tn_archive_find(archive, names[i]);
                assert_non_null(x);
                assert_true(tn_item(tn_sum(x)) == 2 * i);
                assert_non_null(tn_archive_text(archive, names[i]));
                assert_string_equal(tn_archive_text(archive, names[i]), names[NAMES - 1 - i]);
            }
            tn_archive_free(archive);
        }
    assert_true(tn_ok());
}

/* An .npz that has strings beside numbers, as NumPy's users save them: the numbers can be read. */
static void strings_beside_numbers(void **state)
{
    (void)state;
    const char *path = scratch_path("strings.npz");
    tn_archive *archive = tn_archive_new();
    TN_SCOPE {
        assert_int_equal(tn_archive_add(archive, "words", tn_zeros(TN_SHAPE(2), .dtype = TN_INT32)), TN_OK);
        assert_int_equal(tn_archive_add(archive, "x", tn_full(TN_SHAPE(3), 4, .dtype = TN_FLOAT64)), TN_OK);
    }
    assert_int_equal(tn_archive_save(archive, path), TN_OK);
    tn_archive_free(archive);
    size_t size, at = 0;
    uint8_t *data = scratch_read(path, &size);
    while (memcmp(data + at, "'<i4'", 5) != 0)
        assert_true(++at + 5 < size);
    memcpy(data + at, "'<U1'", 5);
    test_write_bytes(path, data, size);
    free(data);
    archive = tn_archive_load(path);
    assert_int_equal(tn_archive_status(archive), TN_OK);
    assert_true(tn_ok());
    TN_SCOPE assert_true(tn_item(tn_sum(tn_archive_find(archive, "x"))) == 12);
    assert_true(tn_is_error(tn_archive_find(archive, "words")));
    assert_failed(TN_ERR_DTYPE, "'words.npy' has the dtype '<U1'");
    tn_archive_free(archive);
    unlink(path);
}

static void a_full_disk(void **state)
{
    (void)state;
    static const char *const names[] = {"full.npz", "full.safetensors"};
    signal(SIGXFSZ, SIG_IGN);
    tn_archive *archive = tn_archive_new();
    assert_int_equal(tn_archive_add(archive, "x", tn_zeros(TN_SHAPE(100, 1000))), TN_OK);
    assert_int_equal(tn_eval(tn_archive_array(archive, 0)), TN_OK);
    for (int i = 0; i < 2; i++) {
        int before = scratch_count();
        struct rlimit usual, small;
        getrlimit(RLIMIT_FSIZE, &usual);
        small = usual;
        small.rlim_cur = 100000;
        setrlimit(RLIMIT_FSIZE, &small);
        tn_status status = tn_archive_save(archive, scratch_path(names[i]));
        setrlimit(RLIMIT_FSIZE, &usual);
        assert_int_equal(status, TN_ERR_IO);
        assert_non_null(strstr(tn_error(), names[i]));
        assert_failed(TN_ERR_IO, "File too large");
        assert_int_equal(scratch_count(), before);
    }
    tn_archive_free(archive);
}

/* With the nth allocation failing there is an error or success, and the file is old or new. */
static void no_memory(void **state)
{
    (void)state;
    static const char *const names[] = {"memory.npz", "memory.safetensors"};
    for (int i = 0; i < 2; i++) {
        bool done = false;
        for (long n = 0; !done && n < 2000; n++)
            TN_SCOPE {
                tn_array *x = tn_arange(0, 10, 1);
                assert_int_equal(tn_eval(x), TN_OK);
                tn__fail_allocation_after(n);
                tn_archive *archive = tn_archive_new();
                done = tn_archive_add(archive, "x", x) == TN_OK && tn_archive_add(archive, "y", x) == TN_OK &&
                       tn_archive_set_text(archive, "k", "v") == TN_OK &&
                       tn_archive_save(archive, scratch_path(names[i])) == TN_OK;
                tn_archive_free(archive);
                archive = done ? tn_archive_load(scratch_path(names[i])) : NULL;
                done = archive && tn_archive_status(archive) == TN_OK;
                tn__fail_allocation_after(-1);
                if (done)
                    assert_same_array(x, tn_archive_find(archive, "y"));
                else
                    assert_failed(TN_ERR_MEMORY, "memory");
                tn_archive_free(archive);
                tn_clear_error();
            }
        assert_true(done);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(npz_round_trips),   cmocka_unit_test(names_and_replacing), cmocka_unit_test(out_of_range),
        cmocka_unit_test(values_stay),       cmocka_unit_test(npz_damage),          cmocka_unit_test(documented_errors),
        cmocka_unit_test(names_of_all_kinds), cmocka_unit_test(freed),
        cmocka_unit_test(strings_beside_numbers),
        cmocka_unit_test(a_full_disk),       cmocka_unit_test(no_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
