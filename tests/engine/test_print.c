/* SPDX-License-Identifier: MIT */
/* tn_string and tn_repr against NumPy's str() and repr() (gen_print.py), and what NumPy has no
 * answer for. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <tanso.h>

#include "support/starve.h"

typedef struct one_case {
    char dtype[16], view[16];
    size_t text_length, code_length;
    tn_shape shape;
} one_case;

static bool read_header(FILE *file, one_case *c)
{
    char line[256];
    int used;
    *c = (one_case){0};
    if (!fgets(line, sizeof line, file))
        return false;
    assert_int_equal(sscanf(line, "%15s %15s %zu %zu%n", c->dtype, c->view, &c->text_length, &c->code_length, &used),
                     4);
    char *rest = line + used, *end;
    for (long long extent; extent = strtoll(rest, &end, 10), end != rest; rest = end)
        c->shape.dim[c->shape.ndim++] = extent;
    return true;
}

static void *read_bytes(FILE *file, size_t count)
{
    char *bytes = malloc(count + 1);
    assert_non_null(bytes);
    assert_int_equal(fread(bytes, 1, count, file), count);
    bytes[count] = 0;
    return bytes;
}

static tn_array *array_of(FILE *file, const one_case *c)
{
    bool brain = strcmp(c->dtype, "bfloat16") == 0;
    tn_dtype dtype = brain ? TN_FLOAT32 : tn_dtype_parse(c->dtype);
    size_t count = 1;
    for (int i = 0; i < c->shape.ndim; i++)
        count *= (size_t)c->shape.dim[i];
    void *bytes = read_bytes(file, count * tn_dtype_size(dtype));
    tn_array *x = tn_from_host(bytes, c->shape, dtype);
    free(bytes);
    if (brain)
        x = tn_cast(x, TN_BFLOAT16);
    if (strcmp(c->view, "transposed") == 0)
        x = tn_transpose(x, (tn_axes){0});
    else if (strcmp(c->view, "flipped") == 0)
        x = tn_flip(x, (tn_axes){0});
    return x;
}

static int compare(const one_case *c, const char *what, char *got, const char *wanted)
{
    int differ = got == NULL || strcmp(got, wanted) != 0;
    if (differ)
        print_error("%s of %s %s (ndim %d):\n%s\nexpected:\n%s\n", what, c->view, c->dtype, c->shape.ndim, got, wanted);
    tn_string_free(got);
    return differ;
}

static void arrays_print_as_numpys(void **state)
{
    (void)state;
    char path[4096], first[64];
    const char *folder = getenv("TANSO_TEST_DATA");
    snprintf(path, sizeof path, "%s/print.bin", folder ? folder : ".");
    FILE *file = fopen(path, "rb");
    if (!file)
        skip();
    assert_non_null(fgets(first, sizeof first, file));
    int cases = 0, wrong = 0;
    for (one_case c; read_header(file, &c); cases++)
        TN_SCOPE {
            tn_array *x = array_of(file, &c);
            char *text = read_bytes(file, c.text_length), *code = read_bytes(file, c.code_length);
            if (wrong < 20) {
                wrong += compare(&c, "str", tn_string(x), text);
                wrong += compare(&c, "repr", tn_repr(x), code);
            }
            free(text);
            free(code);
        }
    fclose(file);
    if (wrong)
        print_error("%s", first);
    assert_int_equal(wrong, 0);
    assert_true(cases >= 2000);
    assert_true(tn_ok());
}

static void errors_print_their_message(void **state)
{
    (void)state;
    TN_SCOPE {
        tn_array *bad = tn_add(tn_zeros(TN_SHAPE(2)), tn_zeros(TN_SHAPE(3)));
        char *text = tn_string(bad), *code = tn_repr(bad), wanted[512];
        snprintf(wanted, sizeof wanted, "<error: %s>", tn_message_of(bad));
        assert_string_equal(text, wanted);
        assert_string_equal(code, wanted);
        tn_string_free(text);
        tn_string_free(code);
        tn_clear_error();
        tn_string_free(tn_string(bad));
        assert_int_equal(tn_error_code(), TN_ERR_SHAPE); /* again */
        tn_clear_error();

        text = tn_string(tn_take(tn_zeros(TN_SHAPE(2)), tn_full(TN_SHAPE(1), 7, .dtype = TN_INT64), 0));
        assert_int_equal(tn_error_code(), TN_ERR_INDEX);
        snprintf(wanted, sizeof wanted, "<error: %s>", tn_error());
        assert_string_equal(text, wanted);
        tn_string_free(text);
        tn_clear_error();
    }
}

static void print_writes_a_line(void **state)
{
    (void)state;
    char *memory = NULL;
    size_t size = 0;
    FILE *stream = open_memstream(&memory, &size);
    assert_non_null(stream);
    TN_SCOPE {
        tn_fprint(stream, tn_reshape(tn_arange(0, 4, 1), TN_SHAPE(2, 2)));
        tn_fprint(stream, tn_scalar(0.1));
    }
    fclose(stream);
    assert_string_equal(memory, "[[0 1]\n [2 3]]\n0.1\n");
    free(memory);
}

static tn_status print_many(void *user)
{
    (void)user;
    TN_SCOPE {
        tn_array *x = tn_reshape(tn_arange(0, 1200, 1, .dtype = TN_FLOAT32), TN_SHAPE(40, 30));
        tn_string_free(tn_repr(x));
        tn_string_free(tn_repr(tn_slice_axis(x, 1, 1, 4, 1)));
        tn_string_free(tn_string(tn_sum(x)));
        tn_string_free(tn_repr(tn_zeros(TN_SHAPE(0, 3))));
    }
    return tn_error_code();
}

static void exhausted_memory_is_an_error(void **state)
{
    (void)state;
    starve("print", print_many, NULL);
}

static int never(void **state)
{
    (void)state;
    tn_set_compile(TN_COMPILE_NEVER);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(arrays_print_as_numpys),
        cmocka_unit_test(errors_print_their_message),
        cmocka_unit_test(print_writes_a_line),
        cmocka_unit_test(exhausted_memory_is_an_error),
    };
    return cmocka_run_group_tests(tests, never, NULL);
}
