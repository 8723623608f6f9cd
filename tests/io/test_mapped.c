/* SPDX-License-Identifier: MIT */
/* Files whose elements stay where they lie, and archives that unpack to more than they should. */
#include "io/check.h"

static void write_npy(const char *path, const char *dict, const void *data, size_t size)
{
    uint8_t file[512] = "\x93NUMPY\x01\x00";
    memset(file + 10, ' ', 118);
    memcpy(file + 10, dict, strlen(dict));
    file[8] = 118;
    file[127] = '\n';
    memcpy(file + 128, data, size);
    test_write_bytes(path, file, 128 + size);
}

static void npy(void **state)
{
    (void)state;
    test_random random = test_random_new();
    const char *path = scratch_path("a.npy");
    for (int d = TN_BOOL; d < TN_DTYPE_COUNT; d++)
        for (int i = 0; i < 4 && d != TN_BFLOAT16; i++)
            TN_SCOPE {
                tn_array *x = random_array(&random, (tn_dtype)d);
                assert_int_equal(tn_save_npy(x, path), TN_OK);
                tn_array *mapped = tn_map_npy(path);
                assert_same_array(x, mapped);
                remove(path); /* the mapping keeps the contents */
                assert_same_array(x, mapped);
            }
    assert_string_equal(tn_error(), "");
}

static void other_orders(void **state)
{
    (void)state;
    const char *path = scratch_path("b.npy");
    const int16_t values[] = {1, 2, 3, 4, 5, 6};
    TN_SCOPE {
        write_npy(path, "{'descr': '<i2', 'fortran_order': True, 'shape': (2, 3), }", values, sizeof values);
        tn_array *x = tn_map_npy(path);
        int64_t strides[TN_MAX_NDIM];
        tn_strides_of(x, strides);
        assert_true(strides[0] == 2 && strides[1] == 4); /* a view, not a copy */
        const int16_t expected[] = {1, 3, 5, 2, 4, 6};
        assert_memory_equal(test_data(x), expected, sizeof expected);
        assert_memory_equal(test_data(tn_load_npy(path)), expected, sizeof expected);
        write_npy(path, "{'descr': '>i2', 'fortran_order': False, 'shape': (6,), }", values, sizeof values);
        assert_true(((const int16_t *)test_data(tn_map_npy(path)))[1] == 0x200);
    }
    assert_string_equal(tn_error(), "");
}

static void refused(void **state)
{
    (void)state;
    const char *path = scratch_path("c.npy");
    const int16_t values[] = {1, 2, 3};
    static const char *const dicts[] = {"{'descr': '<i2', 'fortran_order': False, 'shape': (4,), }",
                                        "{'descr': '<i2', 'fortran_order': False, 'shape': (1099511627776, 4), }",
                                        "{'descr': '<i2', 'fortran_order': False, 'shape': (-3,), }"};
    TN_SCOPE {
        for (size_t k = 0; k < sizeof dicts / sizeof *dicts; k++) {
            write_npy(path, dicts[k], values, sizeof values);
            assert_true(tn_is_error(tn_map_npy(path)));
            assert_failed(TN_ERR_FORMAT, "c.npy'");
            assert_true(tn_is_error(tn_load_npy(path)));
            assert_failed(TN_ERR_FORMAT, "c.npy'");
        }
        test_write_bytes(path, "", 0);
        assert_true(tn_is_error(tn_map_npy(path)));
        assert_failed(TN_ERR_FORMAT, "not an .npy file");
        assert_true(tn_is_error(tn_map_npy("/nowhere.npy")));
        assert_failed(TN_ERR_IO, "cannot read");
        assert_true(tn_is_error(tn_map_npy(NULL)));
        assert_failed(TN_ERR_VALUE, "NULL");
    }
}

static void safetensors(void **state)
{
    (void)state;
    test_random random = test_random_new();
    const char *path = scratch_path("d.safetensors");
    tn_archive *archive = tn_archive_new();
    TN_SCOPE {
        for (int d = TN_BOOL; d <= TN_FLOAT64; d++)
            assert_int_equal(tn_archive_add(archive, tn_dtype_name((tn_dtype)d), random_array(&random, (tn_dtype)d)),
                             TN_OK);
        assert_int_equal(tn_archive_set_text(archive, "kind", "test"), TN_OK);
        assert_int_equal(tn_archive_save(archive, path), TN_OK);
        tn_archive *mapped = tn_archive_load(path, .mapped = true);
        assert_int_equal(tn_archive_status(mapped), TN_OK);
        assert_string_equal(tn_archive_text(mapped, "kind"), "test");
        for (int i = 0; i < tn_archive_count(archive); i++)
            assert_same_array(tn_archive_array(archive, i), tn_archive_find(mapped, tn_archive_name(archive, i)));
        /* an array outlives archive and file */
        tn_array *kept = tn_reshape(tn_archive_find(mapped, "float64"), TN_SHAPE(-1));
        assert_int_equal(tn_eval(kept), TN_OK);
        tn_archive_free(mapped);
        remove(path);
        assert_int_equal(tn_eval(tn_add(kept, 1)), TN_OK);
    }
    tn_archive_free(archive);
    assert_string_equal(tn_error(), "");
}

static void compressed(void **state)
{
    (void)state;
    const char *path = scratch_path("e.npz");
    tn_archive *archive = tn_archive_new();
    size_t packed, stored;
    TN_SCOPE {
        assert_int_equal(tn_archive_add(archive, "zeros", tn_zeros(TN_SHAPE(1000, 1000))), TN_OK);
        assert_int_equal(tn_archive_save(archive, path), TN_OK);
        free(scratch_read(path, &stored));
        assert_int_equal(tn_archive_save(archive, path, .compressed = true), TN_OK);
        free(scratch_read(path, &packed));
        assert_true(stored > 4000000 && packed < 20000);
        tn_archive *back = tn_archive_load(path);
        assert_int_equal(tn_archive_status(back), TN_OK);
        assert_same_array(tn_archive_find(back, "zeros"), tn_zeros(TN_SHAPE(1000, 1000)));
        tn_archive_free(back);
        /* a bomb, by a smaller limit */
        back = tn_archive_load(path, .limit = 1000000);
        assert_int_equal(tn_archive_status(back), TN_ERR_FORMAT);
        assert_failed(TN_ERR_FORMAT, "unpack to more than 1000000 bytes");
        tn_archive_free(back);
    }
    tn_archive_free(archive);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(npy), cmocka_unit_test(other_orders), cmocka_unit_test(refused),
                                       cmocka_unit_test(safetensors), cmocka_unit_test(compressed)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
