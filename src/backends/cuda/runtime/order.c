/* SPDX-License-Identifier: MIT */
/* Which steps of a program must wait for which: those that touch the same memory, if one of them writes it. */
#include "backends/cuda/runtime/cuda.h"

static int memory_of(const tn__program *program, int buffer)
{
    int whole = tn__buffer_whole(program, buffer);
    const tn__buffer *b = &program->buffer[whole];
    return b->kind == TN__BUFFER_DONATED ? b->donor : whole;
}

static bool same_memory(const tn__program *program, int a, int b)
{
    const tn__buffer *x = &program->buffer[tn__buffer_whole(program, a)],
                     *y = &program->buffer[tn__buffer_whole(program, b)];
    if (x->kind == TN__BUFFER_TEMPORARY && y->kind == TN__BUFFER_TEMPORARY)
        return x->offset < y->offset + y->bytes && y->offset < x->offset + x->bytes;
    return memory_of(program, a) == memory_of(program, b);
}

/* Must the two steps keep their order? Operations may have memory of their own, shared by all of their kind, so they
 * keep theirs. A step that may fail and one that overwrites donated memory do, too. */
static bool conflict(const tn__cuda_step *a, const tn__cuda_step *b)
{
    const tn__step *s = a->step, *t = b->step;
    if ((s->kind != TN__STEP_KERNEL && t->kind != TN__STEP_KERNEL) || (a->may_fail && b->overwrites))
        return true;
    for (int i = 0; i < s->operand_count; i++)
        for (int k = 0; k < t->operand_count; k++)
            if ((i < s->output_count || k < t->output_count) &&
                same_memory(a->program, s->operand[i].buffer, t->operand[k].buffer))
                return true;
    return false;
}

void tn__cuda_order(const tn__cuda_step *step, int count, uint64_t *waits)
{
    uint64_t before[TN__CUDA_ORDERED]; /* bit set of all steps that this one comes after, directly or not */
    for (int i = 0; i < count; i++) {
        waits[i] = before[i] = 0;
        for (int k = i - 1; k >= 0; k--)
            if (!(before[i] >> k & 1) && conflict(&step[k], &step[i])) {
                waits[i] |= (uint64_t)1 << k;
                before[i] |= before[k] | (uint64_t)1 << k;
            }
    }
}
