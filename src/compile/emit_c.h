/* SPDX-License-Identifier: MIT */
/* Between the files that write loops in C. */
#ifndef TN_COMPILE_EMIT_C_H
#define TN_COMPILE_EMIT_C_H

#include "compile/emit.h"

/* Of nests whose last loop is reduced. */
void tn__c_emit_rows(tn__printer *p);
/* Of those whose last loop is kept; how many blocks it is cut in. */
void tn__c_emit_columns(tn__printer *p);
int64_t tn__c_column_blocks(const tn__nest *n);

/* Of elementwise nests over short rows; whether one is, and its items and extras (tn__emit_target). */
void tn__c_emit_short(tn__printer *p);
bool tn__c_is_short(const tn__nest *n);
int64_t tn__c_short_items(const tn__nest *n);
int tn__c_short_extras(const tn__nest *n, int64_t *extra);

/* Whether a reduction of this pass finds a position. */
static inline bool tn__c_is_position(const tn__nest *n, int r, int level)
{
    return n->reduction[r].level == level && (tn__ops[n->reduction[r].op].props & TN_ARG);
}

#endif
