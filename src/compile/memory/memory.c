/* SPDX-License-Identifier: MIT */
/*
 * Planning memory: which results take over donated storages (donate.c), when values' memory is in use, and where
 * temporaries lie in the arena (arena.c). A pure function of the draft; tn__plan_verify (verify.c) checks what it
 * decided.
 */
#include "compile/memory/arena.h"
#include "compile/memory/donate.h"
#include "compile/memory/planner.h"

#include "core/memory.h"

#include <string.h>

typedef struct planner {
    tn__draft *draft;
    const tn__graph *graph;
    int *memory;       /* for each home: the home whose memory it shares (a donated leaf's value, a temporary that ends
                          where it begins, else itself) */
    bool *result_home; /* homes that results are read from */
    tn__lifetime *life; /* by home */
    int *buffer;       /* by home: number in the program, -1: none */
    int *shifted;      /* by shift: the same of the part of a home that begins there */
} planner;

static int home_of(const planner *p, const tn__draft_operand *o) { return p->draft->home[o->value]; }

static void find_lifetimes(planner *p)
{
    for (int v = 0; v < p->graph->count; v++)
        p->life[v] = (tn__lifetime){.first = INT32_MAX, .last = -1};
    for (int i = 0; i < p->draft->step_count; i++) {
        const tn__draft_step *s = &p->draft->step[i];
        for (int k = 0; k < s->operand_count; k++) {
            const tn__draft_operand *o = &s->operand[k];
            tn__lifetime *life = &p->life[home_of(p, o)];
            life->first = i < life->first ? i : life->first;
            life->last = i;
            int64_t reach = 1 + o->offset;
            for (int d = 0; d < o->ndim; d++)
                reach = o->dim[d] == 0 ? 0 : reach + (o->stride[d] > 0 ? (o->dim[d] - 1) * o->stride[d] : 0);
            size_t bytes = (size_t)(reach > 0 ? reach : 0) * tn_dtype_size(o->dtype);
            if (k < s->output_count && bytes > life->bytes)
                life->bytes = bytes;
        }
    }
    for (int v = 0; v < p->graph->count; v++)
        p->life[v].temporary = p->life[v].last >= 0 && p->graph->value[v].leaf < 0 && !p->result_home[v];
}

/* ---- temporaries in one another's place ---- */

#define LARGE (1 << 20) /* bytes; below, a kernel would wait for the others that read what it writes over */

static bool writes(const planner *p, const tn__draft_step *s, int memory)
{
    for (int w = 0; w < s->output_count; w++)
        if (p->memory[home_of(p, &s->operand[w])] == memory)
            return true;
    return false;
}

/* Where a temporary ends as a step reads it, which writes another one element by element, they are one buffer: else
 * both would be there at the same time. */
static bool take_over(planner *p, int i, int from, int home)
{
    int root = p->memory[from];
    tn__lifetime *old = &p->life[root], *new = &p->life[home];
    if (!old->temporary || !new->temporary || home == root || p->memory[home] != home || old->first == i ||
        old->last != i || new->first != i || new->last == i || old->bytes != new->bytes || new->bytes < LARGE ||
        writes(p, &p->draft->step[i], root) || !tn__writes_over(p->draft, &p->draft->step[i], from, home))
        return false;
    p->memory[home] = root;
    old->last = new->last;
    new->temporary = false;
    return true;
}

static void share_temporaries(planner *p)
{
    for (int i = 0; i < p->draft->step_count; i++) {
        const tn__draft_step *s = &p->draft->step[i];
        bool taken = s->adopts;
        for (int w = 0; w < s->output_count; w++, taken = s->adopts)
            for (int r = s->output_count; r < s->operand_count && !taken; r++)
                taken = take_over(p, i, home_of(p, &s->operand[r]), home_of(p, &s->operand[w]));
    }
}

/* ---- making the program ---- */

static int buffer_of(planner *p, tn__program *program, int home)
{
    if (p->buffer[home] >= 0)
        return p->buffer[home];
    const tn__value *v = &p->graph->value[home];
    if (p->memory[home] != home && p->graph->value[p->memory[home]].leaf < 0)
        return p->buffer[home] = buffer_of(p, program, p->memory[home]);
    tn__buffer b = {.kind = TN__BUFFER_OUTPUT, .slot = -1, .donor = -1, .bytes = p->life[home].bytes};
    if (v->leaf >= 0)
        b = (tn__buffer){.kind = TN__BUFFER_INPUT, .slot = v->leaf, .donor = -1};
    else if (p->life[home].temporary)
        b = (tn__buffer){.kind = TN__BUFFER_TEMPORARY, .slot = -1, .donor = -1, .bytes = b.bytes,
                         .offset = p->life[home].offset};
    else if (p->memory[home] != home)
        b = (tn__buffer){.kind = TN__BUFFER_DONATED, .slot = -1, .donor = buffer_of(p, program, p->memory[home]),
                         .bytes = p->graph->leaf[p->graph->value[p->memory[home]].leaf].storage_bytes};
    program->buffer[program->buffer_count] = b;
    return p->buffer[home] = program->buffer_count++;
}

/* The buffer of an operand: its home's, or the part of that which begins where each run tells. */
static int buffer_for(planner *p, tn__program *program, const tn__draft_operand *o)
{
    int whole = buffer_of(p, program, home_of(p, o));
    if (!o->shift)
        return whole;
    int *shifted = &p->shifted[o->shift - 1];
    if (*shifted < 0) {
        tn__buffer b = {.kind = TN__BUFFER_SHIFTED, .slot = o->shift - 1, .donor = whole,
                        .bytes = program->buffer[whole].bytes};
        *shifted = program->buffer_count;
        program->buffer[program->buffer_count++] = b;
    }
    return *shifted;
}

static bool make_step(planner *p, tn__draft_step *from, tn__program *program, tn__step *to)
{
    *to = from->step;
    memset(&from->step, 0, sizeof from->step); /* its arrays now belong to the program */
    to->operand_count = from->operand_count;
    to->output_count = from->output_count;
    to->operand = tn__alloc(sizeof *to->operand * (size_t)from->operand_count);
    if (!to->operand)
        return false;
    for (int i = 0; i < from->operand_count; i++) {
        const tn__draft_operand *o = &from->operand[i];
        tn__operand *t = &to->operand[i];
        *t = (tn__operand){.buffer = buffer_for(p, program, o), .dtype = o->dtype, .ndim = o->ndim,
                           .offset = o->offset};
        memcpy(t->dim, o->dim, sizeof t->dim);
        memcpy(t->stride, o->stride, sizeof t->stride);
    }
    return true;
}

static bool make_results(planner *p, tn__plan *plan)
{
    const tn__graph *graph = p->graph;
    for (int r = 0; r < graph->result_count; r++) {
        tn__window w;
        int64_t stride[TN_MAX_NDIM];
        int blocked;
        if (!tn__window_of(graph, graph->result[r], p->draft->stored, &w, &blocked))
            return false;
        tn__result_window *out = &plan->result[r];
        out->buffer = buffer_of(p, &plan->program, p->draft->home[w.base]);
        out->offset = w.offset;
        out->strides = NULL;
        tn__strides_contiguous(w.ndim, w.dim, stride);
        bool plain = true;
        for (int d = 0; d < w.ndim; d++)
            plain = plain && (w.dim[d] <= 1 || w.stride[d] == stride[d]);
        if (!plain && !(out->strides = tn__ints_intern(w.ndim, w.stride)))
            return false;
        tn__buffer *b = &plan->program.buffer[out->buffer];
        if (b->slot < 0)
            b->slot = r;
    }
    return true;
}

static bool make_program(planner *p, tn__plan *plan)
{
    tn__program *program = &plan->program;
    const tn__graph *graph = p->graph;
    program->buffer = tn__calloc((size_t)graph->count + (size_t)graph->shift_count + 1, sizeof *program->buffer);
    program->step = tn__calloc((size_t)p->draft->step_count + 1, sizeof *program->step);
    program->scalar_dtype = tn__alloc(sizeof(tn_dtype) * ((size_t)graph->scalar_count + 1));
    plan->result = tn__calloc((size_t)graph->result_count + 1, sizeof *plan->result);
    if (!program->buffer || !program->step || !program->scalar_dtype || !plan->result)
        return false;
    memcpy(program->scalar_dtype, graph->scalar_dtype, sizeof(tn_dtype) * (size_t)graph->scalar_count);
    program->scalar_count = graph->scalar_count;
    plan->result_count = graph->result_count;
    for (int i = 0; i < p->draft->step_count; i++) {
        program->step_count++;
        if (!make_step(p, &p->draft->step[i], program, &program->step[i]))
            return false;
    }
    return make_results(p, plan);
}

/* Homes that results are windows of. */
static bool mark_results(planner *p)
{
    for (int r = 0; r < p->graph->result_count; r++) {
        tn__window w;
        int blocked;
        if (!tn__window_of(p->graph, p->graph->result[r], p->draft->stored, &w, &blocked))
            return false;
        p->result_home[p->draft->home[w.base]] = true;
    }
    return true;
}

bool tn__plan_memory(tn__draft *draft, bool reuse, tn__plan *plan)
{
    size_t n = (size_t)draft->graph->count + 1;
    planner p = {.draft = draft, .graph = draft->graph, .memory = tn__alloc(n * sizeof(int)),
                 .result_home = tn__calloc(n, sizeof(bool)), .life = tn__calloc(n, sizeof(tn__lifetime)),
                 .buffer = tn__alloc(n * sizeof(int)),
                 .shifted = tn__alloc(((size_t)draft->graph->shift_count + 1) * sizeof(int))};
    bool done = p.memory && p.result_home && p.life && p.buffer && p.shifted;
    for (int i = 0; i < draft->graph->shift_count && done; i++)
        p.shifted[i] = -1;
    if (done)
        for (size_t v = 0; v < n; v++) {
            p.memory[v] = (int)v;
            p.buffer[v] = -1;
        }
    done = done && mark_results(&p) && (!reuse || tn__donate(draft, p.result_home, p.memory));
    if (done) {
        find_lifetimes(&p);
        if (reuse)
            share_temporaries(&p);
    }
    done = done &&
           tn__arena_lay_out(p.life, draft->graph->count, draft->step_count, reuse, &plan->program.arena_bytes) &&
           make_program(&p, plan);
    if (done) {
        plan->program.source = draft->source ? draft->source : tn__strdup("");
        plan->program.text = draft->text;
        draft->source = NULL;
        draft->text = (tn__program_text){0};
        done = plan->program.source != NULL;
    }
    tn__free(p.memory);
    tn__free(p.result_home);
    tn__free(p.life);
    tn__free(p.buffer);
    tn__free(p.shifted);
    return done;
}
