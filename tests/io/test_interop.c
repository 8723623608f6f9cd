/* SPDX-License-Identifier: MIT */
/* Files from NumPy read here, files from here read by NumPy. Skipped where there is no NumPy. */
#include "io/check.h"

static const char *data_folder(void)
{
    static char folder[1024];
    const char *base = getenv("TANSO_TEST_DATA");
    snprintf(folder, sizeof folder, "%s/io", base ? base : "");
    return base && access(folder, R_OK) == 0 ? folder : NULL;
}

static void check_array(const char *folder, char *line, tn_archive *stored, tn_archive *deflated)
{
    char path[2048], name[64], dtype[16];
    int used;
    assert_int_equal(sscanf(line, "%63s %15s%n", name, dtype, &used), 2);
    tn_shape shape = {0};
    for (char *at = line + used, *end; strtoll(at, &end, 10), end != at; at = end)
        shape.dim[shape.ndim++] = strtoll(at, &end, 10);
    snprintf(path, sizeof path, "%s/%s.raw", folder, name);
    size_t size;
    uint8_t *raw = scratch_read(path, &size);
    tn_array *expected = tn_from_host_with(raw, shape, tn_dtype_parse(dtype), &(tn_create_opts){0});
    assert_int_equal(size, (size_t)tn_size(expected) * tn_dtype_size(tn_dtype_of(expected)));
    free(raw);
    snprintf(path, sizeof path, "%s/%s.npy", folder, name);
    assert_same_array(expected, tn_load_npy(path));
    assert_non_null(tn_archive_find(stored, name));
    assert_non_null(tn_archive_find(deflated, name));
    assert_same_array(expected, tn_archive_find(stored, name));
    assert_same_array(expected, tn_archive_find(deflated, name));
}

static void from_numpy(void **state)
{
    (void)state;
    const char *folder = data_folder();
    char path[2048], line[256];
    if (!folder)
        skip();
    snprintf(path, sizeof path, "%s/stored.npz", folder);
    tn_archive *stored = tn_archive_load(path);
    assert_string_equal(tn_error(), "");
    snprintf(path, sizeof path, "%s/deflated.npz", folder);
    tn_archive *deflated = tn_archive_load(path);
    snprintf(path, sizeof path, "%s/empty.npz", folder);
    tn_archive *empty = tn_archive_load(path);
    assert_string_equal(tn_error(), "");
    assert_int_equal(tn_archive_count(empty), 0);
    snprintf(path, sizeof path, "%s/list.txt", folder);
    FILE *list = fopen(path, "r");
    assert_non_null(list);
    int count = 0;
    for (; fgets(line, sizeof line, list); count++)
        TN_SCOPE check_array(folder, line, stored, deflated);
    fclose(list);
    assert_int_equal(count, tn_archive_count(stored));
    assert_true(count > 200);
    tn_archive_free(stored);
    tn_archive_free(deflated);
    tn_archive_free(empty);
}

/* Archives that no one should write: a header that claims a terabyte, two arrays of a name, a file that is no array. */
static void hostile_archives(void **state)
{
    (void)state;
    static const struct {
        const char *file, *words;
    } cases[] = {
        {"lie.npz", "expected 1099511627776 bytes of elements by its header, found 3"},
        {"twice.npz", "twice.npz'"},
        {"other.npz", "expected arrays only"},
    };
    const char *folder = data_folder();
    if (!folder)
        skip();
    for (int i = 0; i < 3; i++) {
        char path[2048];
        snprintf(path, sizeof path, "%s/%s", folder, cases[i].file);
        tn_archive *archive = tn_archive_load(path);
        assert_int_equal(tn_archive_status(archive), TN_ERR_FORMAT);
        assert_int_equal(tn_archive_count(archive), 0);
        assert_failed(TN_ERR_FORMAT, cases[i].words);
        tn_archive_free(archive);
    }
}

/* Runs a line of Python that reads our files; false where no python3 has NumPy. */
static int python(const char *program)
{
    static const char *const commands[] = {"python3", "/usr/bin/python3"};
    char line[4096];
    for (int i = 0; i < 2; i++) {
        snprintf(line, sizeof line, "%s -c 'import numpy' 2>/dev/null", commands[i]);
        if (system(line) != 0)
            continue;
        snprintf(line, sizeof line, "cd '%s' && %s -c '%s'", scratch_folder, commands[i], program);
        return system(line);
    }
    skip();
    return -1;
}

static void to_numpy(void **state)
{
    (void)state;
    test_random random = test_random_new();
    tn_archive *archive = tn_archive_new();
    for (int d = TN_BOOL; d <= TN_FLOAT64; d++)
        if (d != TN_BFLOAT16) {
            tn_array *x = tn_reshape(tn_cast(tn_arange(0, 6, 1), (tn_dtype)d), TN_SHAPE(2, 3));
            assert_int_equal(tn_archive_add(archive, tn_dtype_name((tn_dtype)d), x), TN_OK);
        }
    assert_int_equal(tn_archive_add(archive, "layer/0.empty", tn_zeros(TN_SHAPE(0, 2))), TN_OK);
    assert_int_equal(tn_archive_set_text(archive, "model", "linear:10"), TN_OK);
    assert_int_equal(tn_archive_save(archive, scratch_path("a.npz")), TN_OK);
    tn_array *x = random_array(&random, TN_FLOAT64);
    assert_int_equal(tn_save_npy(x, scratch_path("x.npy")), TN_OK);
    test_write_bytes(scratch_path("x.raw"), test_data(x), (size_t)tn_size(x) * 8);
    tn_archive_free(archive);
    assert_int_equal(python("import numpy as np, zipfile\n"
                            "assert zipfile.ZipFile(\"a.npz\").testzip() is None\n"
                            "z = np.load(\"a.npz\")\n"
                            "assert len(z.files) == 14, z.files\n"
                            "assert z[\"layer/0.empty\"].shape == (0, 2)\n"
                            "assert bytes(z[\"__metadata__/model\"]) == b\"linear:10\"\n"
                            "names = [f for f in z.files if \"/\" not in f]\n"
                            "assert len(names) == 12\n"
                            "for f in names:\n"
                            "    assert z[f].dtype.name == f\n"
                            "    assert (z[f] == np.arange(6).astype(f).reshape(2, 3)).all()\n"
                            "x = np.load(\"x.npy\")\n"
                            "assert x.tobytes() == open(\"x.raw\", \"rb\").read()\n"), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(from_numpy),
        cmocka_unit_test(hostile_archives),
        cmocka_unit_test(to_numpy),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
