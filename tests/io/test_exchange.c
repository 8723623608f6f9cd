/* SPDX-License-Identifier: MIT */
/* Memory of others and memory for others: wrapped arrays, DLPack tensors, the array interface. */
#include "io/check.h"

#include <tanso/exchange.h>
#include <tanso/stream.h>

#include "support/starve.h"

static int released;
static void *released_memory;

static void release(void *user, void *memory)
{
    released += *(int *)user;
    released_memory = memory;
}

static void wrapped(void **state)
{
    (void)state;
    float data[12];
    int one = 1;
    for (int i = 0; i < 12; i++)
        data[i] = (float)i;
    released = 0;
    TN_SCOPE {
        tn_array *x = tn_wrap(data, TN_SHAPE(3, 4), TN_FLOAT32, .release = release, .user = &one);
        assert_ptr_equal(tn_data(x), data);
        tn_array *turned = tn_wrap(data, TN_SHAPE(4, 3), TN_FLOAT32, .strides = (int64_t[]){4, 16});
        assert_true(tn_item(tn_all(tn_equal(turned, tn_transpose(x, (tn_axes){0})))) == 1);
        tn_array *backward =
            tn_wrap(data + 11, TN_SHAPE(12), TN_FLOAT32, .strides = (int64_t[]){-4}, .release = release, .user = &one);
        assert_true(tn_item(tn_all(tn_equal(backward, tn_flip(tn_flatten(x), (tn_axes){0})))) == 1);
        assert_true(tn_item(tn_sum(tn_slice_axis(backward, 0, 1, 3, 1))) == 19);
        tn_array *rows = tn_wrap(data, TN_SHAPE(5, 4), TN_FLOAT32, .strides = (int64_t[]){0, 4});
        assert_true(tn_item(tn_sum(rows)) == 5 * 6);
        /* what is made from it is Tanso's own memory; the lender's stays as it is */
        tn_array *y = tn_add(x, 1);
        assert_int_equal(tn_add_assign(x, 5), TN_OK);
        assert_true(tn_item(tn_sum(y)) == 78);
        assert_true(tn_item(tn_sum(x)) == 66 + 60);
        assert_true(data[0] == 0);
        assert_int_equal(released, 0); /* arrays of this scope may still need it */
    }
    assert_int_equal(released, 2);
    assert_ptr_equal(released_memory, data); /* the lowest address */
}

static void wrapping_refused(void **state)
{
    (void)state;
    _Alignas(8) char memory[64] = {0};
    int one = 1;
    released = 0;
    const struct {
        void *memory;
        tn_shape shape;
        tn_dtype dtype;
        int64_t strides[2];
        tn_status status;
        const char *words;
    } bad[] = {
        {NULL, TN_SHAPE(2), TN_FLOAT32, {4}, TN_ERR_VALUE, "NULL"},
        {memory + 2, TN_SHAPE(2), TN_FLOAT32, {4}, TN_ERR_VALUE, "no multiple of 4"},
        {memory, TN_SHAPE(2), TN_FLOAT32, {6}, TN_ERR_VALUE, "stride 0 is 6 bytes"},
        {memory, TN_SHAPE(2), (tn_dtype)77, {4}, TN_ERR_DTYPE, "no dtype"},
        {memory, TN_SHAPE(-2), TN_FLOAT32, {4}, TN_ERR_SHAPE, ""},
        {memory, TN_SHAPE(2, 3), TN_FLOAT32, {INT64_MAX / 4 * 4, 4}, TN_ERR_VALUE, "beyond all addresses"},
        {memory, TN_SHAPE(3, 3), TN_FLOAT64, {INT64_MIN, 8}, TN_ERR_VALUE, "beyond all addresses"},
    };
    TN_SCOPE
        for (size_t k = 0; k < sizeof bad / sizeof *bad; k++) {
            tn_array *x = tn_wrap(bad[k].memory, bad[k].shape, bad[k].dtype, .strides = bad[k].strides,
                                  .release = release, .user = &one);
            assert_true(tn_is_error(x));
            assert_failed(bad[k].status, bad[k].words);
        }
    assert_int_equal(released, 0);
}

/* What lies at multiples of a part of a complex number only: the CPU takes it, a GPU does not read it. */
static void complex_parts(void **state)
{
    (void)state;
    static const tn_dtype dtypes[] = {TN_COMPLEX64, TN_COMPLEX128};
    _Alignas(16) static char memory[64];
    for (int i = 0; i < 2; i++)
        TN_SCOPE {
            tn_dtype dtype = dtypes[i];
            char *at = memory + tn_dtype_size(dtype) / 2;
            assert_int_equal(tn_eval(tn_wrap(at, TN_SHAPE(2), dtype, .device = tn_cpu())), TN_OK);
            if (test_device().kind != TN_DEVICE_CUDA)
                continue;
            assert_true(tn_is_error(tn_wrap(at, TN_SHAPE(2), dtype, .device = test_device())));
            assert_failed(TN_ERR_VALUE, i ? "no multiple of 16" : "no multiple of 8");
        }
}

/* ---- DLPack ---- */

static void round_trips(void **state)
{
    (void)state;
    test_random random = test_random_new();
    size_t arrays = tn_live_arrays();
    for (int d = TN_BOOL; d < TN_DTYPE_COUNT; d++)
        for (int i = 0; i < 6; i++)
            TN_SCOPE {
                tn_array *x = tn_to(random_array(&random, (tn_dtype)d), tn_cpu());
                assert_same_array(tn_from_dlpack(tn_to_dlpack(x)), x);
                assert_same_array(tn_from_dlpack_versioned(tn_to_dlpack_versioned(x)), x);
            }
    assert_string_equal(tn_error(), "");
    assert_int_equal(tn_live_arrays(), arrays);
}

/* Views of every kind come back as they went: those that go backwards, of which readers want none, as copies. */
static void views_round_trip(void **state)
{
    (void)state;
    test_random random = test_random_new();
    size_t arrays = tn_live_arrays();
    for (int i = 0; i < 12; i++)
        TN_SCOPE {
            int64_t n = test_random_int(&random, 0, 5);
            tn_array *matrix = tn_arange(0, 6.0 * (double)n, 1, .dtype = TN_INT16, .device = tn_cpu());
            matrix = tn_reshape(matrix, TN_SHAPE(3, 2, n));
            tn_array *const views[] = {tn_flip(matrix, TN_AXES(1)),
                                       tn_transpose(tn_flip(matrix, TN_AXES(0, 2)), TN_AXES(1, 2, 0)),
                                       tn_transpose(matrix, TN_AXES(2, 0, 1)),
                                       tn_broadcast_to(matrix, TN_SHAPE(2, 3, 2, n)),
                                       tn_flip(tn_slice_axis(matrix, 0, 1, 2, 1), TN_AXES(0)),
                                       tn_flip(tn_slice_axis(matrix, 0, 1, 3, 1), TN_AXES(0, 1, 2))};
            for (size_t v = 0; v < sizeof views / sizeof *views; v++) {
                for (int evaluated = 0; evaluated < 2; evaluated++) {
                    assert_same_array(tn_from_dlpack(tn_to_dlpack(views[v])), views[v]);
                    assert_same_array(tn_from_dlpack_versioned(tn_to_dlpack_versioned(views[v])), views[v]);
                    assert_int_equal(tn_eval(views[v]), TN_OK);
                }
            }
        }
    assert_string_equal(tn_error(), "");
    assert_int_equal(tn_live_arrays(), arrays);
}

/* The tensor lives without its array; nothing is copied; strides stay. */
static void lent(void **state)
{
    (void)state;
    tn_dlpack_versioned *tensor = NULL;
    const void *memory = NULL;
    TN_SCOPE {
        tn_array *x = tn_reshape(tn_arange(0, 12, 1, .dtype = TN_INT16, .device = tn_cpu()), TN_SHAPE(3, 4));
        tn_array *view = tn_slice_axis(x, 1, 1, 4, 2);
        assert_int_equal(tn_eval(x), TN_OK);
        memory = tn_data(x);
        tensor = tn_to_dlpack_versioned(view);
    }
    assert_non_null(tensor);
    const tn_dl_tensor *t = &tensor->tensor;
    assert_int_equal(tensor->version.major, 1);
    assert_int_equal(tensor->flags, TN_DLPACK_READ_ONLY);
    assert_int_equal(t->device.type, 1);
    assert_int_equal(t->ndim, 2);
    assert_int_equal(t->dtype.code, 0);
    assert_int_equal(t->dtype.bits, 16);
    assert_int_equal(t->dtype.lanes, 1);
    const int16_t *at = (const int16_t *)((const char *)t->data + t->byte_offset);
    for (int i = 0; i < 3; i++)
        for (int k = 0; k < 2; k++)
            assert_int_equal(at[i * t->strides[0] + k * t->strides[1]], 4 * i + 1 + 2 * k);
    (void)memory;
    tensor->deleter(tensor);
}

static int deleted;
static void delete_one(tn_dlpack *self) { deleted += self->manager == (void *)self; }

static void borrowed(void **state)
{
    (void)state;
    float data[] = {0, 1, 2, 3, 4, 5, 6};
    int64_t shape[] = {2, 2}, strides[] = {3, 2};
    tn_dlpack tensor = {.tensor = {.data = data, .device = {1, 0}, .ndim = 2, .dtype = {2, 32, 1}, .shape = shape,
                                   .strides = strides, .byte_offset = 4}, .deleter = delete_one};
    tensor.manager = &tensor;
    deleted = 0;
    TN_SCOPE {
        tn_array *x = tn_from_dlpack(&tensor), *y = tn_reshape(x, TN_SHAPE(4));
        assert_false(tn_is_error(x));
        assert_true(tn_item(tn_sum(y)) == 1 + 3 + 4 + 6);
        tn_free(x);
        assert_int_equal(deleted, 0); /* y may still need it */
    }
    assert_int_equal(deleted, 1);
    strides[0] = -3;
    TN_SCOPE assert_true(tn_is_error(tn_from_dlpack(&tensor)));
    assert_failed(TN_ERR_VALUE, "negative stride");
    tn_dlpack_versioned newer = {.version = {2, 0}};
    TN_SCOPE assert_true(tn_is_error(tn_from_dlpack_versioned(&newer)));
    assert_failed(TN_ERR_UNSUPPORTED, "version 2.0");
    TN_SCOPE assert_true(tn_is_error(tn_from_dlpack(NULL)));
    assert_failed(TN_ERR_VALUE, "NULL");
    assert_int_equal(deleted, 1); /* what is refused stays the caller's */
    TN_SCOPE assert_null(tn_to_dlpack(tn_ones(TN_SHAPE(2), .device = tn_device_parse("virtual:0", NULL))));
    assert_failed(TN_ERR_DEVICE, "no name for the device");
}

/* On a GPU: the tensor is the GPU's memory, and comes back from there. */
static void on_a_gpu(void **state)
{
    (void)state;
    if (test_device().kind != TN_DEVICE_CUDA)
        skip();
    TN_SCOPE {
        tn_array *x = tn_arange(0, 1000, 1, .dtype = TN_FLOAT32);
        tn_dlpack *tensor = tn_to_dlpack(tn_add(x, 1));
        assert_non_null(tensor);
        assert_int_equal(tensor->tensor.device.type, 2);
        tn_array *y = tn_from_dlpack(tensor);
        assert_int_equal(tn_device_of(y).kind, TN_DEVICE_CUDA);
        assert_true(tn_item(tn_sum(tn_subtract(y, x))) == 1000);
    }
    assert_string_equal(tn_error(), "");
}

/* ---- the array interface ---- */

static void interface(void **state)
{
    (void)state;
    TN_SCOPE {
        tn_array *x = tn_reshape(tn_arange(0, 6, 1, .dtype = TN_FLOAT64, .device = tn_cpu()), TN_SHAPE(2, 3));
        tn_array *t = tn_transpose(x, (tn_axes){0});
        tn_array_interface a;
        assert_int_equal(tn_array_interface_of(t, &a), TN_OK);
        assert_int_equal(a.version, 3);
        assert_int_equal(a.ndim, 2);
        assert_true(a.shape[0] == 3 && a.shape[1] == 2 && a.strides[0] == 8 && a.strides[1] == 24);
        assert_string_equal(a.typestr, __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__ ? "<f8" : ">f8");
        assert_true(a.read_only && ((const double *)a.data)[5] == 5);
        char *json = tn_array_interface_json(t), expected[256];
        snprintf(expected, sizeof expected,
                 "{\"shape\": [3, 2], \"typestr\": \"%s\", \"data\": [%llu, true], \"strides\": [8, 24], "
                 "\"version\": 3, \"stream\": null}",
                 a.typestr, (unsigned long long)(uintptr_t)a.data);
        assert_string_equal(json, expected);
        tn_string_free(json);
        assert_null(tn_array_interface_json(tn_ones(TN_SHAPE(2), .dtype = TN_BFLOAT16)));
        assert_failed(TN_ERR_DTYPE, "bfloat16 has no typestr");
        assert_null(tn_array_interface_json(NULL));
        assert_failed(TN_ERR_VALUE, "NULL");
    }
}

static tn_status exchange(void *user)
{
    (void)user;
    static float data[6];
    tn_status status = TN_OK;
    TN_SCOPE {
        tn_array *x = tn_wrap(data, TN_SHAPE(2, 3), TN_FLOAT32, .strides = (int64_t[]){4, 8});
        tn_dlpack *tensor = tn_to_dlpack(x);
        if (tensor) {
            tn_array *y = tn_from_dlpack(tensor);
            if (tn_is_error(y))
                tensor->deleter(tensor);
            tn_string_free(tn_array_interface_json(y));
        }
        status = tn_error_code();
    }
    return status;
}

static void starved(void **state)
{
    (void)state;
    TEST_ABOUT_CPU("memory of the host");
    starve("exchange", exchange, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(wrapped),     cmocka_unit_test(wrapping_refused), cmocka_unit_test(round_trips),
        cmocka_unit_test(views_round_trip),
        cmocka_unit_test(lent),        cmocka_unit_test(borrowed),         cmocka_unit_test(on_a_gpu),
        cmocka_unit_test(interface),   cmocka_unit_test(starved),          cmocka_unit_test(complex_parts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
