/* SPDX-License-Identifier: MIT */
/* TN_EACH: every minibatch once, a scope a round, and all ways out of the loop. */
#include "data/check.h"

static tn_loader *loader_of(int samples, int batch)
{
    tn_array *x = tn_reshape(tn_arange(0, samples, 1, .dtype = TN_FLOAT32), TN_SHAPE(samples, 1));
    return tn_loader_new(tn_dataset_arrays(x, tn_arange(0, samples, 1, .dtype = TN_INT64)), .batch = batch);
}

static void goes_through_an_epoch(void **state)
{
    (void)state;
    TN_SCOPE {
        tn_loader *loader = loader_of(7, 3);
        size_t live = 0;
        int rounds = 0, depth = tn_scope_depth();
        double sum = 0;
        for (int epoch = 0; epoch < 2; epoch++)
            TN_EACH(batch, loader) {
                assert_int_equal(tn_scope_depth(), depth + 1);
                if (rounds++ == 1)
                    live = tn_live_arrays();
                assert_true(rounds < 3 || tn_live_arrays() <= live);
                sum += tn_item(tn_sum(batch.x));
                assert_int_equal(batch.size, rounds % 3 ? 3 : 1);
            }
        assert_int_equal(rounds, 6);
        assert_true(sum == 42);
        assert_int_equal(tn_scope_depth(), depth);
        assert_int_equal(tn_loader_status(loader), TN_OK);
        tn_loader_free(loader);
    }
}

static int leave_by_return(tn_loader *loader)
{
    TN_EACH(batch, loader) {
        tn_exp(batch.x);
        return (int)tn_item(tn_sum(batch.x));
    }
    return -1;
}

static void break_continue_return_and_goto_are_a_loops(void **state)
{
    (void)state;
    TN_SCOPE {
        tn_loader *loader = loader_of(10, 2);
        int depth = tn_scope_depth(), rounds = 0, whole = 0;
        TN_EACH(batch, loader) {
            tn_exp(batch.x);
            if (rounds++ == 0)
                continue;
            if (rounds == 3)
                break;
            whole++;
        }
        assert_int_equal(rounds, 3);
        assert_int_equal(whole, 1);
        assert_int_equal(tn_scope_depth(), depth);
        assert_int_equal(leave_by_return(loader), 6 + 7); /* goes on where the loop was left */
        assert_int_equal(tn_scope_depth(), depth);
        TN_EACH(batch, loader) {
            assert_true(tn_item(tn_sum(batch.x)) == 8 + 9);
            goto out;
        }
        fail();
    out:
        assert_int_equal(tn_scope_depth(), depth);
        TN_EACH(one, loader)
            fail(); /* the epoch is over: this asks for its end */
        tn_loader *other_loader = loader_of(3, 1);
        int pairs = 0;
        TN_EACH(one, loader) /* loops lie in each other, and need no braces */
            TN_EACH(other, other_loader)
                pairs += one.x != NULL && other.x != NULL;
        assert_int_equal(pairs, 5 * 3);
        tn_loader_free(other_loader);
        tn_loader_free(loader);
    }
}

static void an_error_ends_it(void **state)
{
    (void)state;
    tn_loader *loader = loader_of(4, 2);
    int rounds = 0;
    TN_EACH(batch, loader) {
        rounds++;
        tn_reshape(batch.x, TN_SHAPE(3, 3));
    }
    assert_int_equal(rounds, 1);
    assert_int_equal(tn_error_code(), TN_ERR_SHAPE);
    tn_clear_error();
    TN_EACH(batch, NULL)
        fail();
    assert_false(tn_ok());
    tn_clear_error();
    tn_loader_free(loader);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(goes_through_an_epoch),
        cmocka_unit_test(break_continue_return_and_goto_are_a_loops),
        cmocka_unit_test(an_error_ends_it),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
