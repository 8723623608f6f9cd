/* SPDX-License-Identifier: MIT */
/* The emitter's words: functions of operations from ops.def's expressions, casts, generated values. */
#include "compile/emit/emit.h"

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

static uint32_t needs_of(const tn__op_info *op, const tn__dtype_info *type, tn_dtype dtype)
{
    const char *expression = tn__op_expression((tn__op)(op - tn__ops), dtype);
    bool calls = strstr(expression, "F(") || strstr(tn__op_identity((tn__op)(op - tn__ops), dtype), "F(");
    bool draws = strstr(expression, "F(draw_") != NULL;
    bool random = draws || (op->kind == TN__KIND_GENERATE && op != &tn__ops[TN__OP_IOTA]);
    return (calls ? TN__NEEDS_MATH : 0) | (calls && type->class < TN__CLASS_FLOAT ? TN__NEEDS_INTEGERS : 0) |
           (type->class == TN__CLASS_COMPLEX ? TN__NEEDS_COMPLEX : 0) | (draws ? TN__NEEDS_DRAWS : 0) |
           (random ? TN__NEEDS_RANDOM : 0);
}

/* The piece of an operation's function; -1 without memory. */
static int declare(tn__emitter *emitter, tn__op op, tn_dtype dtype)
{
    const tn__op_info *info = &tn__ops[op];
    const tn__dtype_info *type = &tn__dtypes[dtype];
    tn__text text = {0};
    int parameters = info->kind == TN__KIND_REDUCE ? 2 : info->arity;
    tn__text_addf(&text, "TN_HOT %s op_%s_%s(", result_type(info, type), info->name, type->suffix);
    if (info->kind == TN__KIND_GENERATE)
        tn__text_add(&text, "tn_u64 k, tn_u64 o, tn_u64 i");
    for (int i = 0; i < parameters; i++)
        tn__text_addf(&text, "%s%s %c", i ? ", " : "", info->props & TN_CONDITION && i == 0 ? "tn_b8" : type->ctype,
                      'a' + i);
    tn__text_addf(&text, ") { return (%s)(", result_type(info, type));
    specialize(&text, tn__op_expression(op, dtype), type);
    tn__text_add(&text, "); }\n");
    return tn__piece_add(emitter, tn__text_take(&text),
                         &(tn__piece){.function = true, .needs = needs_of(info, type, dtype)});
}

const char *tn__function(tn__printer *p, tn__op op, tn_dtype dtype)
{
    tn_dtype compute = tn__dtypes[dtype].compute;
    const char *const *brief = p->emitter->target->brief;
    if (brief && brief[op] && compute != dtype) {
        p->emitter->needs |= TN__NEEDS_MATH;
        snprintf(p->name[0], sizeof p->name[0], "%s", brief[op]);
        return p->name[0];
    }
    int *declared = &p->emitter->declared[op * TN_DTYPE_COUNT + compute];
    if (*declared)
        tn__piece_use(p->emitter, *declared - 1);
    else
        *declared = declare(p->emitter, op, compute) + 1;
    snprintf(p->name[0], sizeof p->name[0], "op_%s_%s", tn__ops[op].name, tn__dtypes[compute].suffix);
    return p->name[0];
}

void tn__print_function(tn__printer *p, tn__op op, tn_dtype dtype)
{
    tn__text_add(p->text, tn__function(p, op, dtype));
}

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

void tn__print_identity(tn__printer *p, tn__op op, tn_dtype dtype)
{
    tn__text_add(p->text, tn__identity(p, op, dtype));
}

void tn__print_cast(tn__printer *p, const tn__expr *e, tn_dtype from, int arg)
{
    tn_dtype to = e->dtype;
    bool widen = tn__dtypes[to].compute != to;
    if (widen && tn__dtypes[from].compute == TN_FLOAT32) {
        if (!tn__note_of(p, e)->loose)
            tn__text_addf(p->text, "tn_round_%s", tn__dtypes[to].suffix);
        tn__text_addf(p->text, "(v%d)", arg);
        return;
    }
    p->emitter->needs |= tn_dtype_is_complex(to) || tn_dtype_is_complex(from) ? TN__NEEDS_COMPLEX : 0;
    if (widen)
        tn__text_addf(p->text, "tn_%s_to_f32(", tn__dtypes[to].suffix);
    tn__text_addf(p->text, "tns_cast_%s_%s(v%d)%s", tn__dtypes[to].suffix, tn__dtypes[tn__dtypes[from].compute].suffix,
                  arg, widen ? ")" : "");
}

void tn__print_generated(tn__printer *p, const tn__expr *e)
{
    const tn__access *a = &p->nest->access[e->access];
    if (tn__access_note_of(p, a)->staged) {
        tn__text_addf(p->text, "c%d%s.e[%s]", e->access, p->vector, p->lane);
        return;
    }
    if (e->op == TN__OP_IOTA) {
        tn__print_position(p, a);
        return;
    }
    bool rounds = tn__dtypes[e->dtype].compute != e->dtype && !tn__note_of(p, e)->loose;
    if (rounds)
        tn__text_addf(p->text, "tn_round_%s(", tn__dtypes[e->dtype].suffix);
    if (tn__note_of(p, e)->made) {
        tn__text_addf(p->text, rounds ? "g%d[%s])" : "g%d[%s]", (int)(e - p->nest->expr), p->strip);
        return;
    }
    tn__text_addf(p->text, "%s(s[n[%d]], s[n[%d]], (tn_u64)(", tn__function(p, e->op, e->dtype),
                  tn__scalar_param(p, e->scalar), tn__scalar_param(p, e->scalar + 1));
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
