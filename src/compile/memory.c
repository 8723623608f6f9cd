/* SPDX-License-Identifier: MIT */
/*
 * Planning memory: which results take over donated storages, and where temporaries lie in the arena. A pure function of
 * the draft; tn__plan_verify (verify.c) checks what it decided.
 */
#include "compile/compile.h"

#include "core/memory.h"

#include <string.h>

typedef struct lifetime {
    int first, last; /* step that first writes, last step that touches; first > last: unused */
    size_t bytes, offset;
    bool temporary;
} lifetime;

typedef struct planner {
    tn__draft *draft;
    const tn__graph *graph;
    int *memory;       /* for each home: the home whose memory it shares (a donated leaf's value, else itself) */
    bool *result_home; /* homes that results are read from */
    lifetime *life;    /* by home */
    int *buffer;       /* by home: number in the program, -1: none */
} planner;

static int home_of(const planner *p, const tn__draft_operand *o) { return p->draft->home[o->value]; }
static int memory_of(const planner *p, const tn__draft_operand *o) { return p->memory[home_of(p, o)]; }

static bool touches(const planner *p, const tn__draft_step *s, int memory, bool writes_only)
{
    for (int i = 0; i < (writes_only ? s->output_count : s->operand_count); i++)
        if (memory_of(p, &s->operand[i]) == memory)
            return true;
    return false;
}

/* True if two steps must keep their order. */
static bool conflict(const planner *p, const tn__draft_step *a, const tn__draft_step *b)
{
    for (int i = 0; i < a->operand_count; i++)
        if (touches(p, b, memory_of(p, &a->operand[i]), i >= a->output_count))
            return true;
    return false;
}

/* Moves step `from` behind step `to` if nothing between minds. */
static bool delay(planner *p, int from, int to)
{
    tn__draft_step *s = p->draft->step, moved = s[from];
    for (int i = from + 1; i <= to; i++)
        if (conflict(p, &moved, &s[i]))
            return false;
    memmove(&s[from], &s[from + 1], sizeof *s * (size_t)(to - from));
    s[to] = moved;
    return true;
}

static bool same_window(const tn__draft_operand *a, const tn__draft_operand *b)
{
    if (a->ndim != b->ndim || a->offset != b->offset || tn_dtype_size(a->dtype) != tn_dtype_size(b->dtype))
        return false;
    for (int d = 0; d < a->ndim; d++)
        if (a->dim[d] != b->dim[d] || (a->stride[d] != b->stride[d] && a->dim[d] > 1))
            return false;
    return true;
}

/* May a step that reads `leaf` write `home` in the same memory? */
static bool in_step_legal(const planner *p, const tn__draft_step *s, int leaf, int home)
{
    for (int w = 0; w < s->output_count; w++)
        for (int r = s->output_count; r < s->operand_count; r++) {
            const tn__draft_operand *out = &s->operand[w], *in = &s->operand[r];
            if (home_of(p, out) != home || home_of(p, in) != leaf || (in->nest < out->nest && in->part == out->part))
                continue;
            if (in->nest != out->nest || !in->pointwise || !out->pointwise || !same_window(in, out))
                return false;
        }
    return true;
}

/* Lets results in `home` take over the memory of the value `leaf`, reordering and dropping steps as needed. */
static bool try_donation(planner *p, int leaf, int home)
{
    tn__draft *draft = p->draft;
    int first_write = -1, last_read = -1, adopted = -1;
    for (int i = 0; i < draft->step_count; i++) {
        const tn__draft_step *s = &draft->step[i];
        bool reads = touches(p, s, leaf, false), writes = touches(p, s, home, true);
        if (reads && writes && s->adopts) {
            adopted = i;
            continue;
        }
        if (writes && (s->may_fail || !in_step_legal(p, s, leaf, home)))
            return false;
        if (writes && first_write < 0)
            first_write = i;
        if (reads)
            last_read = i;
    }
    if (first_write < 0)
        return false;
    if (last_read > first_write) {
        int readers_of_result = 0;
        for (int i = 0; i < draft->step_count; i++)
            readers_of_result += touches(p, &draft->step[i], home, false) && i != adopted;
        if (readers_of_result > 1 || (adopted >= 0 && adopted > first_write) || !delay(p, first_write, last_read))
            return false;
    }
    if (adopted >= 0)
        tn__draft_remove(draft, adopted);
    p->memory[home] = leaf;
    return true;
}

static size_t value_bytes(const tn__value *v) { return (size_t)v->shape->size * tn_dtype_size(v->dtype); }

/* The donatable leaf nearest to a result in its expression: a parameter for its updated value. Breadth first. A leaf
 * that another result is a window of stays as it is. */
static int nearest_leaf(const planner *p, int home, const bool *taken)
{
    enum { SEARCH = 64 };
    int queue[SEARCH], count = 0;
    queue[count++] = home;
    for (int at = 0; at < count; at++) {
        const tn__value *v = &p->graph->value[queue[at]];
        if (v->leaf >= 0 && p->graph->leaf[v->leaf].donatable && !taken[v->leaf] && !v->strides &&
            !p->result_home[queue[at]] &&
            p->graph->leaf[v->leaf].storage_bytes == value_bytes(&p->graph->value[home]))
            return queue[at];
        int kind = tn__value_kind(v);
        if (kind == TN__KIND_MAP || kind == TN__KIND_USER || kind == TN__KIND_UPDATE || kind == TN__KIND_SCATTER)
            for (int i = 0; i < v->arity && count < SEARCH; i++)
                queue[count++] = v->in[i];
    }
    return -1;
}

static bool donate(planner *p)
{
    bool *taken = tn__calloc((size_t)p->graph->leaf_count + 1, sizeof *taken);
    if (!taken)
        return false;
    for (int home = 0; home < p->graph->count; home++) {
        if (!p->result_home[home] || p->graph->value[home].leaf >= 0)
            continue;
        int leaf = nearest_leaf(p, home, taken);
        if (leaf >= 0 && try_donation(p, leaf, home))
            taken[p->graph->value[leaf].leaf] = true;
    }
    tn__free(taken);
    return true;
}

static void find_lifetimes(planner *p)
{
    for (int v = 0; v < p->graph->count; v++)
        p->life[v] = (lifetime){.first = INT32_MAX, .last = -1};
    for (int i = 0; i < p->draft->step_count; i++) {
        const tn__draft_step *s = &p->draft->step[i];
        for (int k = 0; k < s->operand_count; k++) {
            const tn__draft_operand *o = &s->operand[k];
            lifetime *life = &p->life[home_of(p, o)];
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

/* Places temporaries, largest first, each at the lowest offset where it meets no other that lives at the same time. */
static bool lay_out(planner *p, bool reuse, size_t *arena)
{
    int count = 0;
    lifetime **order = tn__alloc(sizeof *order * ((size_t)p->graph->count + 1));
    if (!order)
        return false;
    for (int v = 0; v < p->graph->count; v++) {
        if (!p->life[v].temporary)
            continue;
        int at = count++;
        while (at > 0 && order[at - 1]->bytes < p->life[v].bytes) {
            order[at] = order[at - 1];
            at--;
        }
        order[at] = &p->life[v];
    }
    *arena = 0;
    for (int i = 0; i < count; i++) {
        lifetime *l = order[i];
        size_t size = (l->bytes + TN__ALIGNMENT - 1) / TN__ALIGNMENT * TN__ALIGNMENT, at = 0;
        for (bool moved = true; moved;) {
            moved = false;
            for (int k = 0; k < i; k++) {
                const lifetime *o = order[k];
                bool alive = !reuse || (o->first <= l->last && l->first <= o->last);
                if (alive && at < o->offset + o->bytes && o->offset < at + size) {
                    at = (o->offset + o->bytes + TN__ALIGNMENT - 1) / TN__ALIGNMENT * TN__ALIGNMENT;
                    moved = true;
                }
            }
        }
        l->offset = at;
        *arena = at + size > *arena ? at + size : *arena;
    }
    tn__free(order);
    return true;
}

/* ---- making the program ---- */

static int buffer_of(planner *p, tn__program *program, int home)
{
    if (p->buffer[home] >= 0)
        return p->buffer[home];
    const tn__value *v = &p->graph->value[home];
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
        *t = (tn__operand){.buffer = buffer_of(p, program, home_of(p, o)), .dtype = o->dtype, .ndim = o->ndim,
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
    program->buffer = tn__calloc((size_t)graph->count + 1, sizeof *program->buffer);
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
                 .result_home = tn__calloc(n, sizeof(bool)), .life = tn__calloc(n, sizeof(lifetime)),
                 .buffer = tn__alloc(n * sizeof(int))};
    bool done = p.memory && p.result_home && p.life && p.buffer;
    if (done)
        for (size_t v = 0; v < n; v++) {
            p.memory[v] = (int)v;
            p.buffer[v] = -1;
        }
    done = done && mark_results(&p) && (!reuse || donate(&p));
    if (done)
        find_lifetimes(&p);
    done = done && lay_out(&p, reuse, &plan->program.arena_bytes) && make_program(&p, plan);
    if (done) {
        plan->program.source = draft->source ? draft->source : tn__strdup("");
        draft->source = NULL;
        done = plan->program.source != NULL;
    }
    tn__free(p.memory);
    tn__free(p.result_home);
    tn__free(p.life);
    tn__free(p.buffer);
    return done;
}
