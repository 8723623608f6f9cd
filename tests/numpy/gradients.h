/* SPDX-License-Identifier: MIT */
/* Functions as rows of a table, whose first and second derivatives are checked against differences. */
#ifndef TN_TESTS_GRADIENTS_H
#define TN_TESTS_GRADIENTS_H

#include <stddef.h>
#include <tanso.h>

typedef struct gradient_case {
    const char *name;
    tn_function f;
    int count; /* operands */
} gradient_case;

/* An expression of x, and of y where there are two operands. */
#define RULE(name, expression) \
    static tn_array *f_##name(int count, tn_array *const *xs, void *user) \
    { \
        tn_array *x = xs[0], *y = count > 1 ? xs[1] : NULL; \
        (void)user, (void)x, (void)y; \
        return expression; \
    }
/* Arrays as a count and a list. */
#define LIST(...) \
    (int)(sizeof((const tn_array *[]){__VA_ARGS__}) / sizeof(tn_array *)), ((const tn_array *[]){__VA_ARGS__})
#define ONE(name) {#name, f_##name, 1}
#define TWO(name) {#name, f_##name, 2}

/* Positions along the first axis, and a mask of every third element. */
static inline tn_array *rows(void) { return tn_from_int64s((int64_t[]){2, 0, 2, -1}, 4); }
static inline tn_array *mask(void)
{
    return tn_equal(tn_reshape(tn_remainder(tn_arange(0, 12, 1), 3), TN_SHAPE(3, 4)), 0);
}

/* A test's whole program: checks each at distinct (3, 4) float64 operands drawn anew (TANSO_TEST_SEED draws them
 * again), and names all that fail. */
int gradients_main(const gradient_case *cases, size_t count);

#endif
