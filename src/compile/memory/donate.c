/* SPDX-License-Identifier: MIT */
/*
 * Donations: a result is written into the memory of a leaf that nothing needs after this program, if all steps that
 * read the leaf can be put before the one that writes the result. Steps are a linked list with order numbers that leave
 * gaps, and each value has the list of steps that touch it: a donation takes time by these, not by the whole program.
 */
#include "compile/memory/donate.h"

#include "core/memory.h"

#include <string.h>

#define GAP ((int64_t)1 << 32)

typedef struct link {
    int next, previous; /* -1: none */
    int64_t at;         /* order number: rises along the list */
    bool gone;
} link;

/* A step that reads or writes a value. */
typedef struct touch {
    int step;
    bool writes;
} touch;

typedef struct donor {
    tn__draft *draft;
    const tn__graph *graph;
    const bool *result_home;
    int *memory; /* for each home: the home whose memory it shares (a donated leaf's value, else itself) */
    int *taker;  /* by leaf's value: the home that got its memory, -1: none */
    link *step;
    int head;     /* the first of the list */
    touch *touch; /* those of a home are touch[first[home]] up to touch[first[home + 1]], a step once, in the steps'
                     first order */
    int *first;
    int *last; /* by home: of the steps that touch it, the one that is last in the list now */
} donor;

static int home_of(const donor *p, const tn__draft_operand *o) { return p->draft->home[o->value]; }

static bool is_before(const donor *p, int a, int b) { return p->step[a].at < p->step[b].at; }

/* ---- the steps ---- */

static void number(donor *p)
{
    int64_t at = 0;
    for (int i = p->head; i >= 0; i = p->step[i].next)
        p->step[i].at = at += GAP;
}

static void unlink_step(donor *p, int i)
{
    link *s = &p->step[i];
    *(s->previous < 0 ? &p->head : &p->step[s->previous].next) = s->next;
    if (s->next >= 0)
        p->step[s->next].previous = s->previous;
}

static void link_behind(donor *p, int i, int to)
{
    link *s = &p->step[i], *front = &p->step[to];
    s->previous = to;
    s->next = front->next;
    front->next = i;
    if (s->next < 0) {
        s->at = front->at + GAP;
        return;
    }
    p->step[s->next].previous = i;
    s->at = front->at + (p->step[s->next].at - front->at) / 2;
    if (s->at == front->at)
        number(p);
}

/* The draft's steps in the order of the list. */
static bool rearrange(donor *p)
{
    tn__draft *draft = p->draft;
    if (draft->step_count == 0)
        return true;
    tn__draft_step *steps = tn__alloc(sizeof *steps * ((size_t)draft->step_count + 1));
    if (!steps)
        return false;
    int count = 0;
    for (int i = p->head; i >= 0; i = p->step[i].next)
        steps[count++] = draft->step[i];
    /* only what was emitted as the first step reads late all that a run may overwrite */
    if (p->head > 0 && steps[0].step.kind == TN__STEP_KERNEL)
        steps[0].step.kernel.launch.late_trigger = false;
    for (int i = 0; i < draft->step_count; i++)
        if (p->step[i].gone)
            tn__draft_step_free(&draft->step[i]);
    memcpy(draft->step, steps, sizeof *steps * (size_t)count);
    draft->step_count = count;
    tn__free(steps);
    return true;
}

/* ---- who touches what ---- */

/* Lists the touches of values, or counts them. A step's outputs come first. */
static void go_through(donor *p, int *end, bool list)
{
    for (int i = 0; i < p->draft->step_count; i++) {
        const tn__draft_step *s = &p->draft->step[i];
        for (int k = 0; k < s->operand_count; k++) {
            int home = home_of(p, &s->operand[k]);
            if (p->last[home] == i)
                continue;
            p->last[home] = i;
            if (list)
                p->touch[end[home]] = (touch){i, k < s->output_count};
            end[home]++;
        }
    }
}

static bool find_touches(donor *p)
{
    size_t homes = (size_t)p->graph->count;
    int *end = tn__calloc(homes + 1, sizeof *end);
    if (!end)
        return false;
    for (size_t v = 0; v < homes; v++)
        p->last[v] = -1;
    go_through(p, end, false);
    int total = 0;
    for (size_t v = 0; v <= homes; v++) {
        int count = v < homes ? end[v] : 0;
        p->first[v] = end[v] = total;
        total += count;
    }
    p->touch = tn__alloc(sizeof *p->touch * ((size_t)total + 1));
    for (size_t v = 0; v < homes; v++)
        p->last[v] = -1;
    if (p->touch)
        go_through(p, end, true);
    tn__free(end);
    return p->touch != NULL;
}

static bool touches(const donor *p, int step, int home)
{
    const tn__draft_step *s = &p->draft->step[step];
    for (int i = 0; i < s->operand_count; i++)
        if (home_of(p, &s->operand[i]) == home)
            return true;
    return false;
}

/* Is there a step behind one, up to another, that touches a value, or that writes it? -1: no value. */
static bool touched_between(const donor *p, int home, int from, int to, bool writes)
{
    for (int i = home < 0 ? 0 : p->first[home]; home >= 0 && i < p->first[home + 1]; i++) {
        const touch *t = &p->touch[i];
        if ((t->writes || !writes) && !p->step[t->step].gone && is_before(p, from, t->step) &&
            !is_before(p, to, t->step))
            return true;
    }
    return false;
}

/* Moves step `from` behind step `to` if nothing between minds. */
static bool delay(donor *p, int from, int to)
{
    const tn__draft_step *s = &p->draft->step[from];
    for (int i = 0; i < s->operand_count; i++) {
        int memory = p->memory[home_of(p, &s->operand[i])];
        bool reads = i >= s->output_count;
        if (touched_between(p, memory, from, to, reads) || touched_between(p, p->taker[memory], from, to, reads))
            return false;
    }
    unlink_step(p, from);
    link_behind(p, from, to);
    for (int i = 0; i < s->operand_count; i++) {
        int *last = &p->last[home_of(p, &s->operand[i])];
        *last = is_before(p, *last, from) ? from : *last;
    }
    return true;
}

/* ---- donations ---- */

static bool same_window(const tn__draft_operand *a, const tn__draft_operand *b)
{
    if (a->ndim != b->ndim || a->offset != b->offset || a->shift != b->shift ||
        tn_dtype_size(a->dtype) != tn_dtype_size(b->dtype))
        return false;
    for (int d = 0; d < a->ndim; d++)
        if (a->dim[d] != b->dim[d] || (a->stride[d] != b->stride[d] && a->dim[d] > 1))
            return false;
    return true;
}

bool tn__writes_over(const tn__draft *draft, const tn__draft_step *s, int from, int home)
{
    for (int w = 0; w < s->output_count; w++)
        for (int r = s->output_count; r < s->operand_count; r++) {
            const tn__draft_operand *out = &s->operand[w], *in = &s->operand[r];
            if (draft->home[out->value] != home || draft->home[in->value] != from ||
                (in->nest < out->nest && in->part == out->part))
                continue;
            if (in->nest != out->nest || in->part != out->part || !in->pointwise || !out->pointwise ||
                !same_window(in, out))
                return false;
        }
    return true;
}

/* A step that only copies the leaf into the result, and is not needed if that takes over its memory. */
static bool only_copies(const donor *p, int step, int leaf)
{
    return p->draft->step[step].adopts && touches(p, step, leaf);
}

/* The last step that reads the leaf, but such that copy it into `home`. -1: none. */
static int last_read(const donor *p, int leaf, int home)
{
    int last = p->last[leaf];
    if (last < 0 || !p->draft->step[last].adopts || !touches(p, last, home))
        return last;
    last = -1;
    for (int i = p->first[leaf]; i < p->first[leaf + 1]; i++) {
        int step = p->touch[i].step;
        if (!p->step[step].gone && !(p->draft->step[step].adopts && touches(p, step, home)) &&
            (last < 0 || is_before(p, last, step)))
            last = step;
    }
    return last;
}

/* Lets results in `home` take over the memory of the value `leaf`, reordering and dropping steps as needed. */
static bool try_donation(donor *p, int leaf, int home)
{
    int first_write = -1, adopted = -1, readers_of_result = 0;
    for (int i = p->first[home]; i < p->first[home + 1]; i++) {
        int step = p->touch[i].step;
        if (!p->touch[i].writes || p->step[step].gone)
            continue;
        if (only_copies(p, step, leaf)) {
            adopted = adopted < 0 || is_before(p, adopted, step) ? step : adopted;
            continue;
        }
        if (p->draft->step[step].may_fail || !tn__writes_over(p->draft, &p->draft->step[step], leaf, home))
            return false;
        first_write = first_write < 0 || is_before(p, step, first_write) ? step : first_write;
    }
    int last = last_read(p, leaf, home);
    if (first_write < 0)
        return false;
    if (last >= 0 && is_before(p, first_write, last)) {
        for (int i = p->first[home]; i < p->first[home + 1]; i++)
            readers_of_result += !p->step[p->touch[i].step].gone && p->touch[i].step != adopted;
        if (readers_of_result > 1 || (adopted >= 0 && is_before(p, first_write, adopted)) ||
            !delay(p, first_write, last))
            return false;
    }
    if (adopted >= 0) {
        p->step[adopted].gone = true;
        unlink_step(p, adopted);
    }
    p->memory[home] = leaf;
    p->taker[leaf] = home;
    return true;
}

static size_t value_bytes(const tn__value *v) { return (size_t)v->shape->size * tn_dtype_size(v->dtype); }

/* The donatable leaf nearest to a result in its expression: a parameter for its updated value. Breadth first. A leaf
 * that another result is a window of stays as it is. */
static int nearest_leaf(const donor *p, int home)
{
    enum { SEARCH = 64 };
    int queue[SEARCH], count = 0;
    queue[count++] = home;
    for (int at = 0; at < count; at++) {
        const tn__value *v = &p->graph->value[queue[at]];
        if (v->leaf >= 0 && p->graph->leaf[v->leaf].donatable && p->taker[queue[at]] < 0 && !v->strides &&
            !p->result_home[queue[at]] && p->graph->leaf[v->leaf].storage_bytes == value_bytes(&p->graph->value[home]))
            return queue[at];
        int kind = tn__value_kind(v);
        if (kind == TN__KIND_MAP || kind == TN__KIND_USER || kind == TN__KIND_UPDATE || kind == TN__KIND_SCATTER)
            for (int i = 0; i < v->arity && count < SEARCH; i++)
                queue[count++] = v->in[i];
    }
    return -1;
}

static bool begin(donor *p)
{
    size_t homes = (size_t)p->graph->count + 1;
    int count = p->draft->step_count;
    p->step = tn__alloc(sizeof *p->step * ((size_t)count + 1));
    p->taker = tn__alloc(sizeof *p->taker * homes);
    p->first = tn__alloc(sizeof *p->first * homes);
    p->last = tn__alloc(sizeof *p->last * homes);
    if (!p->step || !p->taker || !p->first || !p->last)
        return false;
    for (size_t v = 0; v < homes; v++)
        p->taker[v] = -1;
    for (int i = 0; i < count; i++)
        p->step[i] = (link){.next = i + 1 < count ? i + 1 : -1, .previous = i - 1};
    p->head = count ? 0 : -1;
    number(p);
    return find_touches(p);
}

bool tn__donate(tn__draft *draft, const bool *result_home, int *memory)
{
    donor p = {.draft = draft, .graph = draft->graph, .result_home = result_home, .memory = memory};
    bool done = begin(&p);
    for (int home = 0; done && home < p.graph->count; home++) {
        int leaf = !result_home[home] || p.graph->value[home].leaf >= 0 ? -1 : nearest_leaf(&p, home);
        if (leaf >= 0)
            try_donation(&p, leaf, home);
    }
    done = done && rearrange(&p);
    tn__free(p.step);
    tn__free(p.taker);
    tn__free(p.touch);
    tn__free(p.first);
    tn__free(p.last);
    return done;
}
