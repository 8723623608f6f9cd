/* SPDX-License-Identifier: MIT */
/* Between the files that write loops in C. */
#ifndef TN_COMPILE_EMIT_C_C_H
#define TN_COMPILE_EMIT_C_C_H

#include "compile/emit/emit.h"

/* Of nests whose last loop is reduced. */
void tn__c_emit_rows(tn__printer *p);
/* Their sums, and other reductions that give no position (lanes.c), of a pass as variables; in two steps, of the
 * block from b to e as this item's pieces, and of a row, from its pieces. */
void tn__c_row_sums(tn__printer *p, int level);
void tn__c_block_sums(tn__printer *p);
void tn__c_join_blocks(tn__printer *p);
#define TN__C_SHORT 8 /* expressions of elements that may be written out several times */
/* Of those whose last loop is kept; how many blocks it is cut in. */
void tn__c_emit_columns(tn__printer *p);
int64_t tn__c_column_blocks(const tn__nest *n);

/* The loops of these (columns.c): the rows from `first` up to `end`, r and where it is; a block's columns, from
 * l0 up to l1 and no more than tn__c_most_columns. Whether operands lie across, which are copied for some rows then,
 * and whether something is chosen by an index that all columns of a row share, as where rows are looked up in a table;
 * that tn__c_begin_row computes once a row of a pass. */
void tn__c_open_rows(tn__printer *p, const char *first, const char *end);
void tn__c_begin_row(tn__printer *p, int level);
void tn__c_close_rows(tn__printer *p);
void tn__c_each_column(tn__printer *p);
int tn__c_most_columns(const tn__nest *n);
bool tn__c_any_across(const tn__nest *n);
bool tn__c_chooses_rows(const tn__nest *n);
/* Whether a value is a table's row, by an index that is stored for each of the rows that are reduced. */
bool tn__c_is_row_of_table(const tn__nest *n, const tn__expr *x);
/* Their sums, and other reductions that give no position (column_sums.c), of a pass in arrays a0, a1, ...; in
 * two steps, of the block from b to e in part0, part1, ...; and of all blocks: first, for each of a column's pieces,
 * last. */
void tn__c_column_sums(tn__printer *p, int level);
void tn__c_column_block(tn__printer *p);
void tn__c_begin_columns(tn__printer *p, int level);
void tn__c_join_columns(tn__printer *p);
void tn__c_end_columns(tn__printer *p, int level);

/* Of elementwise nests over short rows; whether one is, and its items and extras (tn__emit_target). */
void tn__c_emit_short(tn__printer *p);
bool tn__c_is_short(const tn__nest *n);
int64_t tn__c_short_items(const tn__nest *n);
int tn__c_short_extras(const tn__nest *n, int64_t *extra);

/* Of reductions of short rows, whose elements are written out; whether it is one. */
void tn__c_emit_few(tn__printer *p);
bool tn__c_is_few(const tn__nest *n);
/* Of columns of few elements: the columns from l0 up to l1. */
void tn__c_emit_few_columns(tn__printer *p);
bool tn__c_is_few_columns(const tn__nest *n);

/* A strip of a loop (strip.c): the elements from `first` up to `end` of what a pass computes, at most `size`. */
#define TN__C_STRIP 512
typedef struct tn__c_strip {
    int loop;
    const char *first, *end;
    int size;
    bool rows;  /* values of whole rows, not of a pass */
    int level;
} tn__c_strip;
bool tn__c_has_strip(tn__printer *p, int loop, bool rows, int level);
void tn__c_open_strip(tn__printer *p, const tn__c_strip *strip);
void tn__c_close_strip(tn__printer *p, const tn__c_strip *strip);
/* A strip of each row's columns, or of the results' where `rows`; false: nothing needs one. */
bool tn__c_open_columns(tn__printer *p, tn__c_strip *strip, bool rows, int level);

/*
 * Copies what a tile needs of an operand that lies across, line by line: read where it lies, its lines would be far
 * apart and push one another out of the caches, above all where extents are powers of two. The tile: r0 to r1 of loop
 * `row`, and of loop `column`, the one that runs through neighbours, <from>0 to <from>1.
 */
void tn__c_stage(tn__printer *p, int access, int row, int column, char from, int rows, int columns);

/* Whether a reduction of this pass finds a position. */
static inline bool tn__c_is_position(const tn__nest *n, int r, int level)
{
    return n->reduction[r].level == level && (tn__ops[n->reduction[r].op].props & TN_ARG);
}

#endif
