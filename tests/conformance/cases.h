/* SPDX-License-Identifier: MIT */
/* The cases that gen_conformance.py wrote (casefile.py has the format), and arrays made of their
 * operands. */
#ifndef TN_TESTS_CONFORMANCE_CASES_H
#define TN_TESTS_CONFORMANCE_CASES_H

#include <tanso.h>

#define MAX_OPERANDS 4
#define MAX_INTEGERS 24

typedef struct operand {
    tn_dtype dtype; /* TN_DTYPE_DEFAULT: a weak scalar */
    char view[12];  /* of a weak scalar: its kind */
    bool ready;     /* the view is evaluated before it is used */
    tn_shape stored, target;
    const char *bytes;
    double number;
} operand;

typedef enum expectation { EXACT, VALUE, NEAR, REFUSED, FAILS } expectation;

typedef struct one_case {
    int number;
    char operation[24];
    int integers, operands;
    int64_t integer[MAX_INTEGERS];
    operand in[MAX_OPERANDS];
    expectation mode;
    tn_dtype dtype;
    tn_shape shape;
    const char *bytes; /* NEAR: float64 values, then bounds */
    char *first;       /* the bytes the first way of evaluating gave */
} one_case;

typedef struct case_file {
    char *memory;
    one_case *cases;
    int count;
    unsigned long long seed;
} case_file;

/* False when there is no such file; a file that breaks its format fails the test. */
bool cases_read(const char *path, case_file *file);
void cases_free(case_file *file);
int64_t shape_size(tn_shape shape);
tn_array *operand_array(const operand *o);
/* The operation of a case on its operands; NULL for an operation without a row in the table of
 * operations.c. */
tn_array *case_array(const one_case *c);
/* The names in that table, one by one; NULL after the last. */
const char *operation_name(int i);
/* "add(float32 (3, 4) flipped, weak 2)". */
const char *case_text(const one_case *c, char *text, size_t size);

#endif
