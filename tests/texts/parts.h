/* SPDX-License-Identifier: MIT */
/*
 * A kernel text (compile/emit_text.c) in its parts, so that many can be compiled as one program and what they have in
 * common only once: the prelude, which is the library's own text; then functions, loop nests and entry points made for
 * this text.
 */
#ifndef TN_TESTS_TEXTS_PARTS_H
#define TN_TESTS_TEXTS_PARTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct text_part {
    size_t begin, end; /* in the text */
    size_t body;       /* of a loop nest that others only call: its opening brace; else 0 */
    enum { NOTHING_NEW, NEW_FORM, NEW_WORDS } wanted; /* what it has that no part before it has */
} text_part;

typedef struct kernel_text {
    char *name, *data;
    size_t length, prelude; /* bytes; a text of the library's own kernels is all prelude */
    uint64_t group;         /* of those with the same prelude */
    int count, wanted; /* parts: nests and entry points in their order; the functions in front of them belong to all */
    bool clusters;     /* it asks for what there is from sm_90 on */
    text_part *part;
} kernel_text;

/* Finds the parts of a text, which is kept; false without memory. */
bool text_split(kernel_text *to, char *name, char *data);
/*
 * Marks parts to be translated, so that each thing that machine code is made of is translated at least once: each
 * function and operation for each type, each instance of a template, each user's function (parts that have a new one
 * are NEW_WORDS); each form of loop and of entry point, a nest but for its element types, operations and numbers (parts
 * that have but that are NEW_FORM). Shorter parts first.
 */
bool texts_choose(int count, kernel_text *texts);
/* Whether a test made it wrong on purpose: it has a user's function whose name begins with "wrong" or "bad". */
bool text_is_wrong(const kernel_text *text);

#endif
