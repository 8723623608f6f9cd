/* SPDX-License-Identifier: MIT */
/* Between the parts of the emitter: emit.c (loops), emit_text.c (functions, names, the step). */
#ifndef TN_COMPILE_EMIT_H
#define TN_COMPILE_EMIT_H

#include "compile/nest.h"

#define TN__STRETCH 16384 /* elements of the last loop that an elementwise item covers */

typedef struct tn__printer {
    tn__emitter *emitter;
    tn__nest *nest;
    tn__draft_step *step;
    int first_scalar; /* of the nest among the step's */
    tn__text *text;
    int vector_loop;  /* the loop that vectorises, -1: none */
    int scope, scopes, depth;
    char name[2][64]; /* of tn__function and tn__identity */
} tn__printer;

/* Functions of operations in the kernel's text: declared on first use. */
const char *tn__function(tn__printer *p, tn__op op, tn_dtype dtype);
const char *tn__identity(tn__printer *p, tn__op op, tn_dtype dtype);
void tn__print_function(tn__printer *p, tn__op op, tn_dtype dtype);
void tn__print_identity(tn__printer *p, tn__op op, tn_dtype dtype);
void tn__print_cast(tn__printer *p, tn_dtype to, tn_dtype from, int arg);
void tn__print_generated(tn__printer *p, const tn__expr *e);
void tn__print_position(tn__printer *p, const tn__access *a);
/* The number of a scalar slot of the program among the nest's scalars. */
int tn__scalar_number(const tn__printer *p, int slot);
/* The function of p->nest from its parameter list on. */
void tn__print_nest(tn__printer *p);
/* Passes over the reduced loops: for reductions that need others first, and for elements that need reductions. */
int tn__nest_passes(const tn__nest *n);
void tn__nest_items(const tn__nest *n, int64_t *items, int64_t *cost);

#endif
