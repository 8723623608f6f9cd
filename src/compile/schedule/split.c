/* SPDX-License-Identifier: MIT */
/*
 * Split reductions, where there are more workers than rows: a first step reduces pieces of the rows into a temporary
 * for each reduction (by piece and row), a second one the partial results. Both are made of one nest, as parts of it:
 * the same expressions, of which each part prints what it uses.
 */
#include "compile/emit/emit.h"
#include "compile/fuse/fuse.h"

#define DEVIATIONS 4  /* float32 of a tn_deviations (cuda_helpers.cuh) */

/* Marks expression e, all that it is computed from, and the accesses of these. */
static void use(tn__nest *nest, bool *used, int e)
{
    const tn__expr *x = &nest->expr[e];
    if (used[e])
        return;
    used[e] = true;
    if (x->kind == TN__EXPR_LOAD || x->kind == TN__EXPR_INDEX || x->kind == TN__EXPR_RAW)
        nest->access[x->access].idle = false;
    for (int i = 0; i < x->arity; i++)
        use(nest, used, x->arg[i]);
}

/* Makes the nest the given part of itself: accesses that the part has no use of become idle. False without memory. */
static bool choose_part(tn__nest *nest, tn__part part)
{
    bool *used = tn__calloc((size_t)nest->expr_count + 1, sizeof *used);
    if (!used)
        return false;
    nest->part = part;
    for (int i = 0; i < nest->access_count; i++)
        nest->access[i].idle = true;
    for (int r = 0; r < nest->reduction_count && part == TN__PART_PARTIAL; r++)
        use(nest, used, nest->reduction[r].arg);
    for (int s = 0; s < nest->store_count; s++)
        if (nest->store[s].row == (part == TN__PART_FINAL)) {
            use(nest, used, nest->store[s].expr);
            nest->access[nest->store[s].access].idle = false;
        }
    for (int r = 0; r < nest->reduction_count; r++)
        for (int k = 0; k < 2; k++)
            if (nest->partial[r][k] >= 0) {
                tn__access *a = &nest->access[nest->partial[r][k]];
                a->idle = false;
                a->kind = part == TN__PART_PARTIAL ? TN__ACCESS_STORE : TN__ACCESS_LOAD;
            }
    tn__free(used);
    return true;
}

/* A temporary of so many elements for each piece and row, and the nest's access to it; -1 without memory. */
static int add_piece(tn__draft *draft, tn__nest *nest, tn_dtype dtype, int each)
{
    int64_t size = each * nest->segments * tn__nest_rows(nest);
    int value = tn__draft_scratch(draft, dtype, size);
    if (value < 0 || !tn__grow((void **)&nest->access, &nest->access_capacity, (size_t)nest->access_count + 1,
                               sizeof *nest->access))
        return -1;
    nest->access[nest->access_count] = (tn__access){.value = value, .dtype = dtype, .whole = size};
    return nest->access_count++;
}

bool tn__emit_split(tn__draft *draft, tn__emitter *emitter, tn__nest *nest)
{
    for (int r = 0; r < nest->reduction_count; r++) {
        bool position = tn__ops[nest->reduction[r].op].props & TN_ARG;
        int each = nest->reduction[r].about_mean ? DEVIATIONS : 1;
        tn_dtype dtype = (tn_dtype)tn__dtypes[nest->reduction[r].dtype].compute;
        if (tn__nest_widens(nest, r) && tn__nest_length(nest) > emitter->target->single)
            dtype = tn__dtype_wide(dtype);
        nest->partial[r][0] = add_piece(draft, nest, dtype, each);
        nest->partial[r][1] = position ? add_piece(draft, nest, TN_INT64, 1) : -1;
        if (nest->partial[r][0] < 0 || (position && nest->partial[r][1] < 0))
            return false;
    }
    for (tn__part part = TN__PART_PARTIAL; part <= TN__PART_FINAL; part++) {
        if (!choose_part(nest, part))
            return false;
        tn__draft_step *step = tn__draft_add_kernel(draft);
        if (!step || !tn__emit_step(emitter, &(tn__kernel_part){.nest = &nest, .count = 1}, 1, step))
            return false;
    }
    return true;
}
