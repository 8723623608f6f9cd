/* SPDX-License-Identifier: MIT */
/*
 * A kernel text (compile/emit/text.c) in its parts, so that many can be compiled as one program and what they have
 * in common only once: the prelude, which is the library's own text; then functions, loop nests and entry points made
 * for this text.
 */
#ifndef TN_TESTS_TEXTS_PARTS_H
#define TN_TESTS_TEXTS_PARTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct text_part {
    size_t begin, end; /* in the text */
    size_t body;       /* of a loop nest that others only call: its opening brace; else 0 */
    size_t name_at, name; /* where its name is, and how long */
    bool entry;        /* an entry point, which calls the nests since the one before it */
    bool wanted;       /* no part before it is the same */
    bool form;         /* nor one that differs only in operations, numbers and dtypes' widths */
    uint64_t hash;     /* of what makes it the same as another */
} text_part;

typedef struct kernel_text {
    char *name, *data;
    size_t length, prelude; /* bytes; a text of the library's own kernels is all prelude */
    uint64_t group;         /* of those with the same prelude */
    int count, wanted; /* parts: nests and entry points in their order; the functions in front of them belong to all */
    bool clusters;     /* it asks for what there is from sm_90 on */
    uint64_t users;    /* of the functions in front of the parts if users wrote some of them */
    text_part *part;
} kernel_text;

/* Finds the parts of a text, which is kept; false without memory. */
bool text_split(kernel_text *to, char *name, char *data);
/*
 * Marks each part that is the same as none before it, but for its number in the text, places among its arguments, and
 * names of the text's own; and of these the first of each form: what has the same words of the library's.
 */
bool texts_choose(int count, kernel_text *texts);
/* Whether a test made it wrong on purpose: it has a user's function whose name begins with "wrong" or "bad". */
bool text_is_wrong(const kernel_text *text);

#endif
