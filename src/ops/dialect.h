/* SPDX-License-Identifier: MIT */
/* The kernel dialect as text: the parts of scalar.h, for whoever makes sources that call scalar functions. */
#ifndef TN_OPS_DIALECT_H
#define TN_OPS_DIALECT_H

#include <stdint.h>

#include "core/memory.h"

enum {
    TN__DIALECT_TYPES = 1,   /* types, casts: in front of all others */
    TN__DIALECT_REAL = 2,    /* arithmetic, functions of real numbers, reductions (of floats alone: TNS_NO_INTEGERS) */
    TN__DIALECT_RANDOM = 4,  /* these need the functions of real numbers */
    TN__DIALECT_COMPLEX = 8,
    TN__DIALECT_DRAW = 16,   /* needs the random numbers */
    TN__DIALECT_CPU = 64,    /* on CPUs, in the place of some functions of real numbers */
    TN__DIALECT_USER = 32,   /* C's names as macros, which only users' functions and what follows may see */
};

/* Adds the given parts, in the order above. */
void tn__dialect_add(tn__text *text, uint32_t parts);

#endif
