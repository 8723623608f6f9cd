/* SPDX-License-Identifier: MIT */
/* A kernel as a step: the operands, parameters and scalars of its nests, their functions, its launch and its label. */
#include "compile/emit/emit.h"

#include "array/user.h"

#include <string.h>

/* ---- operands, parameters, scalars of a step ---- */

/* What fills in a kernel's step while its nests are gone through. */
typedef struct filler {
    tn__draft_step *step;
    size_t param_capacity, slot_capacity, scalar_capacity;
    bool own_scalars;  /* kernels get the scalars of their step only */
    int first_param;   /* of the nest in hand */
    int *slot;         /* the scalars of that nest, each once */
    int slot_count;
} filler;

static bool add_param(filler *f, int64_t value)
{
    tn__step *s = &f->step->step;
    if (!tn__grow((void **)&s->param, &f->param_capacity, (size_t)s->param_count + 1, sizeof *s->param))
        return false;
    s->param[s->param_count++] = value;
    return true;
}

static bool add_slot(filler *f, int slot)
{
    for (int i = 0; i < f->slot_count; i++)
        if (f->slot[i] == slot)
            return true;
    if (!tn__grow((void **)&f->slot, &f->slot_capacity, (size_t)f->slot_count + 1, sizeof *f->slot))
        return false;
    f->slot[f->slot_count++] = slot;
    return true;
}

/* Adds, as a parameter, where in s[] the kernel finds a scalar. */
static bool add_slot_param(filler *f, int slot)
{
    tn__step *s = &f->step->step;
    if (!f->own_scalars)
        return add_param(f, slot);
    int at = 0;
    while (at < s->scalar_count && s->scalar[at] != slot)
        at++;
    if (at == s->scalar_count) {
        if (!tn__grow((void **)&s->scalar, &f->scalar_capacity, (size_t)at + 1, sizeof *s->scalar))
            return false;
        s->scalar[s->scalar_count++] = slot;
    }
    return add_param(f, at);
}

static bool add_operand(filler *f, const tn__nest *nest, tn__access *a, const tn__nest_call *call, int nest_number)
{
    tn__window w = {.base = a->value, .ndim = a->raw ? 0 : nest->loop_count, .offset = a->offset};
    if (a->whole)
        w = (tn__window){.base = a->value, .ndim = 1, .dim = {a->whole}, .stride = {1}};
    for (int l = 0; l < w.ndim && !a->whole; l++) {
        w.stride[l] = a->stride[l];
        w.dim[l] = a->stride[l] ? nest->extent[l] : 1; /* a row's result is written even if the row is empty */
    }
    if (a->counted && a->stride[nest->product.row_loop])
        w.dim[nest->product.row_loop] = a->counted;
    if (a->lines && !a->by_k) /* anywhere along the loop of the rows */
        w.dim[nest->product.row_loop] = a->lines;
    if ((a->gathered || a->raw || a->factor) && w.ndim < TN_MAX_NDIM) {
        w.dim[w.ndim] = a->by_k ? a->lines : a->gather_extent;
        w.stride[w.ndim++] = a->gather_stride;
    }
    a->operand = f->step->operand_count;
    if (!tn__draft_operand_add(f->step, &w, a->dtype))
        return false;
    tn__draft_operand *o = &f->step->operand[a->operand];
    o->nest = nest_number;
    /* behind its own block of the other only */
    o->part = call[nest_number].back_to_back ? -1 - nest_number : call[nest_number].part;
    o->pointwise = a->pointwise;
    int64_t bytes = (int64_t)tn_dtype_size(a->dtype);
    for (int d = 0; d < w.ndim; d++)
        bytes *= w.stride[d] ? w.dim[d] : 1;
    f->step->step.bytes += bytes;
    return true;
}

/* The operand, offset and strides of an access, as tn__print_position and the gathered load expect them. */
static bool add_access_params(filler *f, const tn__nest *nest, tn__access *a)
{
    a->param = f->step->step.param_count - f->first_param;
    bool done = add_param(f, a->operand) && add_param(f, a->offset);
    for (int l = 0; l < nest->loop_count; l++)
        if (a->stride[l])
            done = done && add_param(f, a->stride[l]);
    if (a->gathered || a->factor)
        done = done && add_param(f, a->gather_stride) && add_param(f, a->gather_extent);
    return done;
}

static bool dropped(const tn__access *a) { return a->idle || (a->kind == TN__ACCESS_STORE && a->value < 0); }

/* A store that a nest does before its last pass: a later pass may still read what was there. */
static bool overwritten_early(const tn__nest *nest, int access)
{
    for (int s = 0; s < nest->store_count; s++)
        if (nest->store[s].access == access)
            return nest->reduced && !nest->store[s].row && nest->store[s].level < tn__nest_passes(nest) - 1;
    return false;
}

/* Outputs come first in a step, so operands are added kind by kind. */
static bool add_operands(filler *f, tn__nest *nest, const tn__nest_call *call, int number, tn__access_kind kind)
{
    for (int i = 0; i < nest->access_count; i++) {
        tn__access *a = &nest->access[i];
        if (a->kind != kind)
            continue;
        a->operand = -1;
        if (a->idle)
            continue;
        a->pointwise = a->pointwise && !overwritten_early(nest, i) && !a->whole;
        f->step->may_fail |= a->gathered && !a->known;
        if (!dropped(a) && kind != TN__ACCESS_INDEX && !add_operand(f, nest, a, call, number))
            return false;
    }
    return true;
}

static bool find_slots(filler *f, const tn__nest *nest)
{
    f->slot_count = 0;
    for (int e = 0; e < nest->expr_count; e++) {
        const tn__expr *x = &nest->expr[e];
        if (x->kind == TN__EXPR_SCALAR && !add_slot(f, x->scalar))
            return false;
        if (x->kind == TN__EXPR_INDEX && x->op != TN__OP_IOTA &&
            !(add_slot(f, x->scalar) && add_slot(f, x->scalar + 1)))
            return false;
    }
    return true;
}

/* The nest's stretch of n[]: items, extents, the target's own, where that of the nest behind it is, then its accesses
 * and the slots of its scalars. */
static bool add_params(const tn__emitter *emitter, filler *f, tn__nest *nest, int64_t items, const tn__nest_call *next)
{
    f->first_param = f->step->step.param_count;
    bool done = add_param(f, items);
    for (int l = 0; l < nest->loop_count; l++)
        done = done && add_param(f, nest->extent[l]);
    int64_t extra[TN__MAX_EXTRAS];
    int extras = emitter->target->extras(emitter, nest, extra);
    for (int i = 0; i < extras; i++)
        done = done && add_param(f, extra[i]);
    if (nest->product.there) {
        nest->product.param = f->step->step.param_count - f->first_param;
        done = done && add_param(f, tn__product_tiles_down(nest)) && add_param(f, tn__product_tiles_across(nest));
        nest->product.next_param = nest->product.param + 2;
        if (nest->product.back_to_back)
            done = done && add_param(f, next->param - f->first_param);
    }
    for (int i = 0; i < nest->access_count; i++)
        done = done && (dropped(&nest->access[i]) || add_access_params(f, nest, &nest->access[i]));
    for (int i = 0; i < f->slot_count; i++)
        done = done && add_slot_param(f, f->slot[i]);
    return done;
}

/* ---- a step ---- */

#define LABEL_MOST 160 /* characters, and what is begun by then */

static void add_label(tn__text *label, const tn__nest *nest)
{
    size_t start = label->length;
    for (int e = 0; e < nest->expr_count && label->length < LABEL_MOST; e++) {
        const tn__expr *x = &nest->expr[e];
        if (x->kind == TN__EXPR_OP || x->kind == TN__EXPR_REDUCED || x->kind == TN__EXPR_INDEX ||
            x->kind == TN__EXPR_PRODUCT)
            tn__text_addf(label, "%s%s", label->length > start ? " " : "",
                          x->user ? x->user->kernel->name : tn__ops[x->op].name);
        else if (x->kind == TN__EXPR_LOAD && x->arity)
            tn__text_addf(label, "%s%s", label->length > start ? " " : "", "gather");
    }
    if (label->length == start && start < LABEL_MOST)
        tn__text_add(label, "copy");
}

/* Whether what the nest writes might, for all that a C compiler knows, be the extents that it reads: bytes and integers
 * of 64 bits, but for random numbers, whose loops take long to compile as vectors; or that an index is out of range. */
static bool writes_like_extents(const tn__nest *n)
{
    bool like = false;
    for (int s = 0; s < n->store_count; s++) {
        tn_dtype dtype = n->access[n->store[s].access].dtype;
        like = like || tn_dtype_size(dtype) == 1 || dtype == TN_INT64 || dtype == TN_UINT64;
    }
    for (int a = 0; a < n->access_count; a++)
        like = like || (n->access[a].gathered && !n->access[a].known);
    for (int e = 0; e < n->expr_count && like; e++)
        like = n->expr[e].kind != TN__EXPR_INDEX || n->expr[e].op == TN__OP_IOTA;
    return like;
}

/* How the function for a nest begins. */
static const char *head_of(const tn__emit_target *target, const tn__nest *n)
{
    if (n->product.there && n->product.tile.main_loop == TN__MAIN_LOOP_BACK_TO_BACK)
        return target->back_to_back_head;
    return target->restrict_head && writes_like_extents(n) ? target->restrict_head : target->nest_head;
}

/* What has been printed begins anew to note what it uses. */
static void begin_piece(tn__emitter *emitter)
{
    emitter->uses.count = 0;
    emitter->needs = 0;
}

/* The piece for a text of that name, which begins with `head`: a new one unless there is one already. -1 without
 * memory. Takes over the text. */
static int end_piece(tn__emitter *emitter, const char *name, char *text, bool kernel)
{
    int there = text ? tn__piece_find(emitter, name) : -1;
    if (there >= 0) {
        tn__free(text);
        return there;
    }
    tn__piece like = {.needs = emitter->needs, .uses = emitter->uses, .kernel = kernel};
    strcpy(like.name, name);
    emitter->uses = (tn__numbers){0};
    return tn__piece_add(emitter, text, &like);
}

/* The function for the nest in p, and its name: that of an equal one if there is one. -1 without memory. */
static int nest_function(tn__emitter *emitter, tn__printer *p, char name[24])
{
    tn__text body = {0}, text = {0};
    begin_piece(emitter);
    if (p->nest->product.back_to_back)
        tn__piece_use(emitter, tn__piece_find(emitter, p->nest->product.next));
    p->text = &body;
    tn__print_nest(p);
    char *string = tn__text_take(&body);
    if (!string)
        return -1;
    tn__piece_name(name, "nest_", string);
    tn__text_addf(&text, head_of(emitter->target, p->nest), name);
    tn__text_add(&text, string);
    tn__free(string);
    return end_piece(emitter, name, tn__text_take(&text), false);
}

/* The kernel that calls the nests' functions: its number among the kernels of the text, and its name. -1 without
 * memory. */
static int kernel_function(tn__emitter *emitter, const tn__step *step, int count, const tn__nest_call *call,
                           const tn__part_launch *launch, char name[24])
{
    tn__text nameless = {0}, text = {0};
    emitter->target->entry(&nameless, step, "k", count, call, launch);
    char *string = tn__text_take(&nameless);
    if (!string)
        return -1;
    tn__piece_name(name, "k_", string);
    tn__free(string);
    begin_piece(emitter);
    for (int i = 0; i < count; i++)
        tn__piece_use(emitter, call[i].piece);
    emitter->target->entry(&text, step, name, count, call, launch);
    int piece = end_piece(emitter, name, tn__text_take(&text), true), number = 0;
    for (int i = 0; i < piece; i++)
        number += emitter->piece[i].kernel;
    return piece < 0 ? -1 : number;
}

/* One nest's share of a step: its parameters, its function, which may call the next one's. */
static bool emit_nest(tn__emitter *emitter, filler *f, tn__nest *nest, tn__nest_call *call, const tn__nest_call *next)
{
    tn__step *s = &f->step->step;
    int64_t items = emitter->target->items(emitter, nest), work = tn__nest_points(nest) * (1 + nest->expr_count);
    if (!find_slots(f, nest) || !add_params(emitter, f, nest, items, next))
        return false;
    if (nest->product.back_to_back)
        nest->product.next = next->name;
    tn__printer p = {.emitter = emitter, .nest = nest, .slot = f->slot, .slot_count = f->slot_count,
                     .scalar_param = s->param_count - f->first_param - f->slot_count};
    call->piece = nest_function(emitter, &p, call->name);
    call->param = f->first_param;
    call->waits = nest->product.there;
    s->kernel.items = items;
    s->kernel.item_cost = items ? work / items + 1 : 1;
    s->operations += tn__nest_points(nest) * (nest->expr_count - nest->access_count / 2);
    if (nest->product.there)
        s->operations += 2 * tn__nest_points(nest) * tn__product_extents_of(nest).depth;
    return call->piece >= 0;
}

/* How the step is launched, from its parts, which lie beside one another; the number of each one's blocks becomes a
 * parameter. */
static bool add_launches(const tn__emitter *emitter, filler *f, const tn__kernel_part *part, int parts,
                         tn__part_launch *launch)
{
    tn__step *s = &f->step->step;
    tn__kernel_launch *to = &s->kernel.launch;
    bool done = true;
    for (int i = 0; i < parts && emitter->target->launch; i++) {
        tn__part_launch *l = &launch[i];
        emitter->target->launch(emitter, &part[i], parts == 1, l);
        to->blocks += l->blocks;
        to->threads = l->threads > to->threads ? l->threads : to->threads;
        to->shared = l->shared > to->shared ? l->shared : to->shared;
        to->most_threads = l->most_threads > to->most_threads ? l->most_threads : to->most_threads;
        to->resident = parts == 1 ? l->resident : 0;
        /* the first kernel and the last one, of a run that begins so */
        if (l->registers && to->late_trigger && emitter->resident_products)
            to->registers = l->registers;
        to->spread = l->spread && (!to->spread || l->spread < to->spread) ? l->spread : to->spread;
        to->cluster = l->cluster;
        l->param = s->param_count;
        done = done && (parts == 1 || add_param(f, l->blocks));
    }
    return done;
}

bool tn__emit_step(tn__emitter *emitter, const tn__kernel_part *part, int parts, tn__draft_step *step)
{
    filler f = {.step = step, .own_scalars = emitter->target->own_scalars};
    tn__text label = {0};
    int count = 0;
    for (int k = 0; k < parts; k++)
        count += part[k].count;
    tn__nest *nest[count];
    tn__nest_call call[count];
    tn__part_launch launch[parts];
    memset(launch, 0, sizeof launch);
    for (int k = 0, at = 0; k < parts; k++)
        for (int i = 0; i < part[k].count; i++, at++) {
            nest[at] = part[k].nest[i];
            call[at].part = k;
            call[at].back_to_back =
                nest[at]->product.there && nest[at]->product.tile.main_loop == TN__MAIN_LOOP_BACK_TO_BACK;
        }
    int64_t all_cost = 0;
    bool done = true;
    for (int i = 0; i < count && done; i++)
        done = add_operands(&f, nest[i], call, i, TN__ACCESS_STORE);
    step->output_count = step->operand_count;
    for (int i = 0; i < count && done; i++)
        done =
            add_operands(&f, nest[i], call, i, TN__ACCESS_LOAD) && add_operands(&f, nest[i], call, i, TN__ACCESS_INDEX);
    for (int i = count - 1; i >= 0 && done; i--) { /* one that is called before the one that calls it */
        done = emit_nest(emitter, &f, nest[i], &call[i], i + 1 < count ? &call[i + 1] : NULL);
        all_cost += step->step.kernel.items * step->step.kernel.item_cost;
    }
    for (int i = 0; i < count && done; i++) {
        tn__text_addf(&label, "%s", !i ? "" : call[i].part == call[i - 1].part ? "; " : " | ");
        add_label(&label, nest[i]);
    }
    tn__free(f.slot);
    if (count > 1) {
        step->step.kernel.items = 1;
        step->step.kernel.item_cost = all_cost;
    }
    tn__kernel_step *kernel = &step->step.kernel;
    kernel->may_fail = step->may_fail;
    step->step.operand_count = step->operand_count;
    done = done && add_launches(emitter, &f, part, parts, launch);
    char name[24] = "";
    if (done)
        kernel->code = kernel_function(emitter, &step->step, count, call, launch, name);
    kernel->name = tn__strdup(name);
    step->step.label = tn__text_take(&label);
    return done && kernel->code >= 0 && kernel->name && step->step.label && !emitter->failed;
}
