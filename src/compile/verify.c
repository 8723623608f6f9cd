/* SPDX-License-Identifier: MIT */
/* Checks a finished plan, whoever made it: the safety net under the memory planner. */
#include "compile/compile.h"

/* First and last element an operand can touch; false for empty ones. */
static bool reach(const tn__operand *o, int64_t *low, int64_t *high)
{
    *low = *high = o->offset;
    for (int d = 0; d < o->ndim; d++) {
        if (o->dim[d] == 0)
            return false;
        int64_t span = (o->dim[d] - 1) * o->stride[d];
        *(span < 0 ? low : high) += span;
    }
    return true;
}

static const char *check_operands(const tn__program *p, const tn__step *s)
{
    for (int i = 0; i < s->operand_count; i++) {
        const tn__operand *o = &s->operand[i];
        int64_t low, high;
        if (o->buffer < 0 || o->buffer >= p->buffer_count)
            return "an operand without a buffer";
        const tn__buffer *b = &p->buffer[o->buffer];
        if (i < s->output_count && b->kind == TN__BUFFER_INPUT)
            return "a step writes to an input";
        if (b->kind == TN__BUFFER_INPUT || !reach(o, &low, &high))
            continue;
        if (low < 0 || (size_t)(high + 1) * tn_dtype_size(o->dtype) > b->bytes)
            return "an operand reaches outside its buffer";
    }
    return NULL;
}

typedef struct span {
    int first, last;
} span;

static span alive(const tn__program *p, int buffer)
{
    span s = {p->step_count, -1};
    for (int i = 0; i < p->step_count; i++)
        for (int k = 0; k < p->step[i].operand_count; k++)
            if (p->step[i].operand[k].buffer == buffer) {
                s.first = i < s.first ? i : s.first;
                s.last = i;
            }
    return s;
}

static bool first_touch_writes(const tn__program *p, int buffer)
{
    for (int i = 0; i < p->step_count; i++) {
        const tn__step *s = &p->step[i];
        for (int k = 0; k < s->output_count; k++)
            if (s->operand[k].buffer == buffer)
                return true;
        for (int k = s->output_count; k < s->operand_count; k++)
            if (s->operand[k].buffer == buffer)
                return false;
    }
    return true;
}

const char *tn__plan_verify(const tn__plan *plan)
{
    const tn__program *p = &plan->program;
    for (int i = 0; i < p->step_count; i++) {
        const char *wrong = check_operands(p, &p->step[i]);
        if (wrong)
            return wrong;
    }
    for (int a = 0; a < p->buffer_count; a++) {
        const tn__buffer *x = &p->buffer[a];
        if (x->kind == TN__BUFFER_DONATED && p->buffer[x->donor].kind != TN__BUFFER_INPUT)
            return "a donation from what is no input";
        if (x->kind == TN__BUFFER_DONATED && alive(p, x->donor).last > alive(p, a).first)
            return "a donated input is read after it is overwritten";
        if (x->kind != TN__BUFFER_TEMPORARY)
            continue;
        if (!first_touch_writes(p, a))
            return "a temporary is read before it is written";
        if (x->offset + x->bytes > p->arena_bytes)
            return "a temporary lies outside the arena";
        span sa = alive(p, a);
        for (int b = a + 1; b < p->buffer_count; b++) {
            const tn__buffer *y = &p->buffer[b];
            if (y->kind != TN__BUFFER_TEMPORARY || x->offset >= y->offset + y->bytes || y->offset >= x->offset + x->bytes)
                continue;
            span sb = alive(p, b);
            if (sa.first <= sb.last && sb.first <= sa.last)
                return "two live temporaries overlap";
        }
    }
    return NULL;
}
