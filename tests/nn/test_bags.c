/* SPDX-License-Identifier: MIT */
/* Sums, means and maxima of a table's rows in kernels, which take several rows at a time: the same bits as operation by
 * operation, and the same complaint of an index that is out of range. */
#include "nn/check.h"

enum { ROWS = 37, BAGS = 3 };

typedef tn_array *(*reduction)(tn_array *w, tn_array *x, tn_array *s);
#define REDUCTION(name, expression) \
    static tn_array *name(tn_array *w, tn_array *x, tn_array *s) \
    { \
        (void)s; \
        return expression; \
    }
REDUCTION(mean, tn_embedding_bag(w, x))
REDUCTION(padded, tn_embedding_bag(w, x, .padding_index = 5))
REDUCTION(most, tn_embedding_bag(w, x, .mode = TN_BAG_MAX))
REDUCTION(weighted, tn_embedding_bag(w, x, .mode = TN_BAG_SUM, .weights = s))
REDUCTION(from_the_end, tn_sum(tn_take(w, tn_subtract(x, ROWS), 0), .axis = TN_AXES(1)))
REDUCTION(narrow_list, tn_sum(tn_take(w, tn_cast(x, TN_INT32), 0), .axis = TN_AXES(1)))
REDUCTION(all_bags, tn_sum(tn_take(w, x, 0), .axis = TN_AXES(0, 1)))
REDUCTION(places, tn_argmax(tn_take(w, x, 0), .axis = TN_AXES(1)))
static const reduction reductions[] = {mean, padded, most, weighted, from_the_end, narrow_list, all_bags, places};

/* A wrong index is put into each of these places in turn. */
static void check_wrong(tn_array *w, tn_array *x, int64_t each)
{
    const int64_t at[] = {0, each / 2, each - 1};
    for (int i = 0; i < 3; i++) {
        tn_array *wrong = tn_where(tn_equal(tn_arange(0, each, 1), at[i]), ROWS + 4, x);
        assert_int_equal(tn_eval(wrong), TN_OK);
        assert_int_equal(tn_eval(tn_sum(tn_take(w, wrong, 0), .axis = TN_AXES(1))), TN_ERR_INDEX);
        check_latched(TN_ERR_INDEX, "41");
    }
}

static void test_bits(void **state)
{
    (void)state;
    TEST_ABOUT_CPU("bits of kernels in C");
    static const int64_t lengths[] = {1, 7, 21, 600}, widths[] = {33, 300, 2100};
    static const tn_dtype dtypes[] = {TN_FLOAT32, TN_FLOAT64, TN_BFLOAT16};
    int cases = 0;
    for (size_t l = 0; l < sizeof lengths / sizeof *lengths; l++)
        for (size_t c = 0; c < sizeof widths / sizeof *widths; c++)
            TN_SCOPE {
                tn_array *w = tn_cast(tn_random_normal(TN_SHAPE(ROWS, widths[c])), dtypes[cases++ % 3]);
                tn_array *x = tn_random_integers(0, ROWS, TN_SHAPE(BAGS, lengths[l]));
                tn_array *s = tn_cast(tn_random_normal(TN_SHAPE(BAGS, lengths[l])), tn_dtype_of(w));
                assert_int_equal(tn_eval_all(3, (const tn_array *[]){w, x, s}), TN_OK);
                for (size_t r = 0; r < sizeof reductions / sizeof *reductions; r++) {
                    tn_set_compile(TN_COMPILE_NEVER);
                    tn_array *plain = reductions[r](w, x, s);
                    assert_int_equal(tn_eval(plain), TN_OK);
                    tn_set_compile(TN_COMPILE_ALWAYS);
                    tn_array *compiled = reductions[r](w, x, s);
                    assert_int_equal(tn_eval(compiled), TN_OK);
                    assert_memory_equal(tn_data(compiled), tn_data(plain),
                                        (size_t)tn_size(plain) * tn_dtype_size(tn_dtype_of(plain)));
                }
                check_wrong(w, x, lengths[l]);
            }
    tn_set_compile(TN_COMPILE_AUTO);
    check_fine();
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_bits)};
    return cmocka_run_group_tests(tests, check_seed, NULL);
}
