/* SPDX-License-Identifier: MIT */
/* Drawings: every node once, edges from inputs, names escaped. */
#include "autograd/helpers.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static char *drawn(const tn_array *y)
{
    char *text = NULL;
    size_t size;
    FILE *stream = open_memstream(&text, &size);
    assert_non_null(stream);
    assert_int_equal(tn_graph_dot(y, stream), TN_OK);
    fclose(stream);
    return text;
}

static int count_of(const char *text, const char *word)
{
    int count = 0;
    for (const char *at = text; (at = strstr(at, word)); at += strlen(word))
        count++;
    return count;
}

static void test_drawing(void **state)
{
    (void)state;
    tn_array *x = tn_set_name(tn_requires_grad(tn_zeros(TN_SHAPE(2, 3))), "the \"x\"\\");
    tn_array *y = tn_set_name(tn_multiply(tn_exp(x), tn_exp(x)), "y");
    y = tn_add(y, tn_multiply(y, 2.5));
    char *text = drawn(y);
    assert_non_null(strstr(text, "digraph"));
    assert_int_equal(count_of(text, "the \\\"x\\\"\\\\\\nconst"), 0); /* a leaf's value is shown */
    assert_int_equal(count_of(text, "the \\\"x\\\"\\\\\\n0\\n(2, 3) float32"), 1);
    assert_int_equal(count_of(text, "fillcolor=orange"), 1);
    assert_int_equal(count_of(text, "exp\\n"), 2);
    assert_int_equal(count_of(text, "y\\nmultiply\\n"), 1);
    assert_int_equal(count_of(text, "2.5\\n"), 1);
    assert_int_equal(count_of(text, "label="), 7);
    assert_int_equal(count_of(text, " -> "), 8);
    free(text);
}

static void test_names(void **state)
{
    (void)state;
    tn_array *x = tn_ones(TN_SHAPE(2));
    assert_ptr_equal(tn_set_name(x, "first"), x);
    tn_set_name(x, "second");
    char *text = drawn(x);
    assert_int_equal(count_of(text, "first"), 0);
    assert_int_equal(count_of(text, "second"), 1);
    free(text);
    tn_set_name(x, NULL);
    text = drawn(x);
    assert_int_equal(count_of(text, "second"), 0);
    free(text);
}

static void test_refused(void **state)
{
    (void)state;
    assert_int_equal(tn_graph_dot(tn_zeros(TN_SHAPE(1)), NULL), TN_ERR_VALUE);
    assert_error(TN_ERR_VALUE, "stream");
    assert_int_equal(tn_graph_dot(NULL, stdout), TN_ERR_VALUE);
    assert_error(TN_ERR_VALUE, "NULL");
    FILE *full = fopen("/dev/full", "w");
    if (!full)
        skip();
    assert_int_equal(tn_graph_dot(tn_zeros(TN_SHAPE(1)), full), TN_ERR_IO);
    assert_error(TN_ERR_IO, "full");
    fclose(full);
}

int main(void)
{
    const struct CMUnitTest tests[] = {TEST(test_drawing), TEST(test_names), TEST(test_refused)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
