/* SPDX-License-Identifier: MIT */
/* The emitter's words: functions of operations from ops.def's expressions, entry points, operands and parameters. */
#include "compile/emit.h"
#include "compile/product.h"

#include "array/user.h"
#include "tn_embed.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

/* ---- functions of operations ---- */

/* Writes an expression of ops.def for a type: F(name) becomes tns_name_<suffix>, T the C type. */
static void specialize(tn__text *text, const char *expression, const tn__dtype_info *type)
{
    for (const char *at = expression; *at;) {
        bool starts = at == expression || !(isalnum((unsigned char)at[-1]) || at[-1] == '_');
        if (starts && at[0] == 'F' && at[1] == '(') {
            const char *end = strchr(at, ')');
            tn__text_addf(text, "tns_%.*s_%s", (int)(end - at - 2), at + 2, type->suffix);
            at = end + 1;
        } else if (starts && at[0] == 'T' && !(isalnum((unsigned char)at[1]) || at[1] == '_')) {
            tn__text_add(text, type->ctype);
            at++;
        } else {
            tn__text_addn(text, at++, 1);
        }
    }
}

static const char *result_type(const tn__op_info *op, const tn__dtype_info *type)
{
    bool truth = op->result == TN__RESULT_BOOL || op->props & TN_ARG;
    return truth ? "tn_b8" : type->ctype;
}

static void declare(tn__emitter *emitter, tn__op op, tn_dtype dtype)
{
    const tn__op_info *info = &tn__ops[op];
    const tn__dtype_info *type = &tn__dtypes[dtype];
    tn__text *text = &emitter->functions;
    int parameters = info->kind == TN__KIND_REDUCE ? 2 : info->arity;
    tn__text_addf(text, "TN_HOT %s op_%s_%s(", result_type(info, type), info->name, type->suffix);
    if (info->kind == TN__KIND_GENERATE)
        tn__text_add(text, "tn_u64 k, tn_u64 o, tn_u64 i");
    for (int i = 0; i < parameters; i++)
        tn__text_addf(text, "%s%s %c", i ? ", " : "", info->props & TN_CONDITION && i == 0 ? "tn_b8" : type->ctype,
                      'a' + i);
    tn__text_addf(text, ") { return (%s)(", result_type(info, type));
    const char *expression = tn__op_expression(op, dtype);
    specialize(text, expression, type);
    tn__text_add(text, "); }\n");
    bool calls = strstr(expression, "F(") != NULL || strstr(tn__op_identity(op, dtype), "F(") != NULL;
    emitter->math |= calls;
    emitter->complex |= type->class == TN__CLASS_COMPLEX;
    bool draws = strstr(expression, "F(draw_") != NULL;
    emitter->draws |= draws;
    emitter->random |= draws;
    emitter->integers |= calls && type->class < TN__CLASS_FLOAT;
    emitter->random |= info->kind == TN__KIND_GENERATE && op != TN__OP_IOTA;
}

const char *tn__function(tn__printer *p, tn__op op, tn_dtype dtype)
{
    tn_dtype compute = tn__dtypes[dtype].compute;
    uint8_t *declared = &p->emitter->declared[op * TN_DTYPE_COUNT + compute];
    if (!*declared)
        declare(p->emitter, op, compute);
    *declared = 1;
    snprintf(p->name[0], sizeof p->name[0], "op_%s_%s", tn__ops[op].name, tn__dtypes[compute].suffix);
    return p->name[0];
}

void tn__print_function(tn__printer *p, tn__op op, tn_dtype dtype) { tn__text_add(p->text, tn__function(p, op, dtype)); }

const char *tn__identity(tn__printer *p, tn__op op, tn_dtype dtype)
{
    tn__text text = {0};
    tn_dtype compute = (tn_dtype)tn__dtypes[dtype].compute;
    specialize(&text, tn__op_identity(op, compute), &tn__dtypes[compute]);
    snprintf(p->name[1], sizeof p->name[1], "%s", text.data ? text.data : "");
    p->text->failed |= text.failed;
    tn__free(text.data);
    return p->name[1];
}

void tn__print_identity(tn__printer *p, tn__op op, tn_dtype dtype) { tn__text_add(p->text, tn__identity(p, op, dtype)); }

void tn__print_cast(tn__printer *p, tn_dtype to, tn_dtype from, int arg)
{
    bool widen = tn__dtypes[to].compute != to;
    p->emitter->complex |= tn_dtype_is_complex(to) || tn_dtype_is_complex(from);
    if (widen)
        tn__text_addf(p->text, "tn_%s_to_f32(", tn__dtypes[to].suffix);
    tn__text_addf(p->text, "tns_cast_%s_%s(v%d)%s", tn__dtypes[to].suffix, tn__dtypes[tn__dtypes[from].compute].suffix, arg,
                  widen ? ")" : "");
}

void tn__print_generated(tn__printer *p, const tn__expr *e)
{
    const tn__access *a = &p->nest->access[e->access];
    if (a->staged) {
        tn__text_addf(p->text, "c%d%s.e[%s]", e->access, p->chunk, p->lane);
        return;
    }
    if (e->op == TN__OP_IOTA) {
        tn__print_position(p, a);
        return;
    }
    bool rounds = tn__dtypes[e->dtype].compute != e->dtype;
    if (rounds)
        tn__text_addf(p->text, "tn_round_%s(", tn__dtypes[e->dtype].suffix);
    tn__text_addf(p->text, "%s(s[n[%d]], s[n[%d]], (tn_u64)(", tn__function(p, e->op, e->dtype), tn__scalar_param(p, e->scalar),
                  tn__scalar_param(p, e->scalar + 1));
    tn__print_position(p, a);
    tn__text_add(p->text, rounds ? ")))" : "))");
}

int tn__scalar_param(const tn__printer *p, int slot)
{
    int i = 0;
    while (i < p->slot_count - 1 && p->slot[i] != slot)
        i++;
    return p->scalar_param + i;
}

/* ---- operands, parameters, scalars of a step ---- */

typedef struct filler {
    tn__draft_step *step;
    size_t param_capacity, slot_capacity, scalar_capacity;
    bool own_scalars;  /* kernels get the scalars of their step only */
    int first_param;   /* of the nest in hand */
    int *slot;         /* its scalars */
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

/* The number by which the kernel knows a slot, as a parameter. */
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
    o->part = call[nest_number].behind ? -1 - nest_number : call[nest_number].part; /* behind its own block of the other only */
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
        if (x->kind == TN__EXPR_INDEX && x->op != TN__OP_IOTA && !(add_slot(f, x->scalar) && add_slot(f, x->scalar + 1)))
            return false;
    }
    return true;
}

/* The nest's stretch of n[]: items, extents, the target's own, where that of the nest behind it is, then its accesses and the slots
 * of its scalars. */
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
        if (nest->product.goes_on)
            done = done && add_param(f, next->param - f->first_param);
    }
    for (int i = 0; i < nest->access_count; i++)
        done = done && (dropped(&nest->access[i]) || add_access_params(f, nest, &nest->access[i]));
    for (int i = 0; i < f->slot_count; i++)
        done = done && add_slot_param(f, f->slot[i]);
    return done;
}

/* ---- a step ---- */

static void add_label(tn__text *label, const tn__nest *nest)
{
    for (int e = 0; e < nest->expr_count && label->length < 160; e++) {
        const tn__expr *x = &nest->expr[e];
        if (x->kind == TN__EXPR_OP || x->kind == TN__EXPR_REDUCED || x->kind == TN__EXPR_INDEX || x->kind == TN__EXPR_PRODUCT)
            tn__text_addf(label, "%s%s", label->length ? " " : "", x->user ? x->user->kernel->name : tn__ops[x->op].name);
        else if (x->kind == TN__EXPR_LOAD && x->arity)
            tn__text_addf(label, "%s%s", label->length ? " " : "", "gather");
    }
    if (!label->length)
        tn__text_add(label, "copy");
}

/* Bytes of anything but random numbers, whose loops take long to compile as vectors. */
static bool writes_bytes(const tn__nest *n)
{
    bool bytes = false;
    for (int s = 0; s < n->store_count; s++)
        bytes = bytes || tn_dtype_size(n->access[n->store[s].access].dtype) == 1;
    for (int e = 0; e < n->expr_count && bytes; e++)
        bytes = n->expr[e].kind != TN__EXPR_INDEX || n->expr[e].op == TN__OP_IOTA;
    return bytes;
}

/* How the function for a nest begins. */
static const char *head_of(const tn__emit_target *target, const tn__nest *n)
{
    if (n->product.there && n->product.tile.core == TN__CORE_BACK)
        return target->back_head;
    return target->bytes_head && writes_bytes(n) ? target->bytes_head : target->nest_head;
}

/* The number of the function for the nest in p: that of an equal one if there is one. -1 without memory. */
static int nest_function(tn__emitter *emitter, tn__printer *p)
{
    tn__text text = {0};
    p->text = &text;
    tn__print_nest(p);
    char *string = tn__text_take(&text);
    for (int i = 0; string && i < emitter->nest_count; i++)
        if (strcmp(emitter->nest[i], string) == 0) {
            tn__free(string);
            return i;
        }
    if (!string || !tn__grow((void **)&emitter->nest, &emitter->nest_capacity, (size_t)emitter->nest_count + 1,
                             sizeof *emitter->nest)) {
        tn__free(string);
        return -1;
    }
    tn__text_addf(&emitter->body, head_of(emitter->target, p->nest), emitter->nest_count);
    tn__text_add(&emitter->body, string);
    emitter->nest[emitter->nest_count] = string;
    return emitter->nest_count++;
}

/* One nest's share of a step: its parameters, its function, which may call the next one's. */
static bool emit_nest(tn__emitter *emitter, filler *f, tn__nest *nest, tn__nest_call *call, const tn__nest_call *next)
{
    tn__step *s = &f->step->step;
    int64_t items = emitter->target->items(emitter, nest), work = tn__nest_points(nest) * (1 + nest->expr_count);
    if (!find_slots(f, nest) || !add_params(emitter, f, nest, items, next))
        return false;
    if (nest->product.goes_on)
        nest->product.next = next->function;
    tn__printer p = {.emitter = emitter, .nest = nest, .slot = f->slot, .slot_count = f->slot_count,
                     .scalar_param = s->param_count - f->first_param - f->slot_count};
    call->function = nest_function(emitter, &p);
    call->param = f->first_param;
    call->waits = nest->product.there;
    s->items = items;
    s->item_cost = items ? work / items + 1 : 1;
    s->operations += tn__nest_points(nest) * (nest->expr_count - nest->access_count / 2);
    if (nest->product.there)
        s->operations += 2 * tn__nest_points(nest) * tn__product_extents_of(nest).depth;
    return call->function >= 0;
}

/* How the step is launched, from its parts, which lie beside one another; the number of each one's blocks becomes a parameter. */
static bool add_launches(const tn__emitter *emitter, filler *f, const tn__kernel_part *part, int parts, tn__part_launch *launch)
{
    tn__step *s = &f->step->step;
    bool done = true;
    for (int i = 0; i < parts && emitter->target->launch; i++) {
        tn__part_launch *l = &launch[i];
        emitter->target->launch(emitter, &part[i], parts == 1, l);
        s->blocks += l->blocks;
        s->threads = l->threads > s->threads ? l->threads : s->threads;
        s->shared = l->shared > s->shared ? l->shared : s->shared;
        s->most_threads = l->most_threads > s->most_threads ? l->most_threads : s->most_threads;
        s->resident = parts == 1 ? l->resident : 0;
        s->cluster = l->cluster;
        l->param = s->param_count;
        done = done && (parts == 1 || add_param(f, l->blocks));
    }
    return done;
}

bool tn__emit_step(tn__emitter *emitter, const tn__kernel_part *part, int parts, int number, tn__draft_step *step)
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
            call[at].behind = nest[at]->product.there && nest[at]->product.tile.core == TN__CORE_BACK;
        }
    int64_t all_cost = 0;
    bool done = true;
    for (int i = 0; i < count && done; i++)
        done = add_operands(&f, nest[i], call, i, TN__ACCESS_STORE);
    step->output_count = step->operand_count;
    for (int i = 0; i < count && done; i++)
        done = add_operands(&f, nest[i], call, i, TN__ACCESS_LOAD) && add_operands(&f, nest[i], call, i, TN__ACCESS_INDEX);
    for (int i = count - 1; i >= 0 && done; i--) { /* one that is called before the one that calls it */
        done = emit_nest(emitter, &f, nest[i], &call[i], i + 1 < count ? &call[i + 1] : NULL);
        all_cost += step->step.items * step->step.item_cost;
    }
    for (int i = 0; i < count && done; i++) {
        tn__text_addf(&label, "%s", !i ? "" : call[i].part == call[i - 1].part ? "; " : " | ");
        add_label(&label, nest[i]);
    }
    tn__free(f.slot);
    if (count > 1) {
        step->step.items = 1;
        step->step.item_cost = all_cost;
    }
    step->step.may_fail = step->may_fail;
    step->step.operand_count = step->operand_count;
    done = done && add_launches(emitter, &f, part, parts, launch);
    if (done)
        emitter->target->entry(&emitter->body, &step->step, number, count, call, launch);
    step->step.kernel = tn__format("k%d", number);
    step->step.label = tn__text_take(&label);
    return done && step->step.kernel && step->step.label && !emitter->body.failed && !emitter->functions.failed;
}

/* ---- the whole text ---- */

static const char helpers[] =
    "#ifndef TN_FAULT\n"
    "#define TN_FAULT(fault, operand, index) (fault[0] = operand, fault[1] = index)\n"
    "#endif\n"
    "TN_HOT tn_f32 tn_round_f16(tn_f32 x) { return tn_f16_to_f32(tn_f32_to_f16(x)); }\n"
    "TN_HOT tn_f32 tn_round_bf16(tn_f32 x) { return tn_bf16_to_f32(tn_f32_to_bf16(x)); }\n"
    "TN_HOT tn_i64 tn_wrap(tn_i64 i, tn_i64 n) { return i < 0 ? i + n : i; }\n"
    "TN_HOT int tn_in_range(tn_i64 i, tn_i64 n, tn_i64 *fault, int operand)\n"
    "{\n"
    "    int in = i >= -n && i < n;\n"
    "    if (!in)\n"
    "        TN_FAULT(fault, operand, i);\n"
    "    return in;\n"
    "}\n";

#define EMBEDDED_AS(part) tn__text_addn(&text, (const char *)tn__embed_##part, tn__embed_##part##_size)
#define EMBEDDED(part) EMBEDDED_AS(scalar_##part)

char *tn__emit_finish(tn__emitter *emitter)
{
    tn__text text = {0};
    EMBEDDED(base);
    EMBEDDED(cast);
    if (emitter->math || emitter->random || emitter->complex) {
        if (!emitter->integers)
            tn__text_add(&text, "#define TNS_NO_INTEGERS\n");
        EMBEDDED(arith);
        EMBEDDED(math);
        EMBEDDED(reduce);
    }
    if (emitter->random)
        EMBEDDED(random);
    if (emitter->complex)
        EMBEDDED(complex);
    if (emitter->draws)
        EMBEDDED(draw);
    tn__text_add(&text, emitter->target->helpers);
    if (emitter->random)
        tn__text_add(&text, emitter->target->random_helpers);
    tn__text_add(&text, helpers);
    if (emitter->products)
        EMBEDDED_AS(product);
    if (emitter->tensor_products)
        EMBEDDED_AS(product_tensor);
    if (emitter->thin_products)
        EMBEDDED_AS(product_thin);
    if (emitter->user_count) /* whose macros only users' functions and what follows may see */
        EMBEDDED(user);
    text.failed |= emitter->functions.failed || emitter->body.failed;
    tn__text_add(&text, emitter->functions.data ? emitter->functions.data : "");
    tn__text_add(&text, emitter->body.data ? emitter->body.data : "");
    tn__free(emitter->functions.data);
    tn__free(emitter->body.data);
    tn__free(emitter->declared);
    for (int i = 0; i < emitter->nest_count; i++)
        tn__free(emitter->nest[i]);
    tn__free(emitter->nest);
    tn__free(emitter->user);
    memset(emitter, 0, sizeof *emitter);
    return tn__text_take(&text);
}
