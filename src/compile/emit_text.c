/* SPDX-License-Identifier: MIT */
/* The emitter's words: functions of operations from ops.def's expressions, and the whole text of a program's
 * kernels. */
#include "compile/emit.h"

#include "array/dialect.h"
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
    const char *const *brief = p->emitter->target->brief;
    if (brief && brief[op] && compute != dtype) {
        p->emitter->math = true;
        snprintf(p->name[0], sizeof p->name[0], "%s", brief[op]);
        return p->name[0];
    }
    uint8_t *declared = &p->emitter->declared[op * TN_DTYPE_COUNT + compute];
    if (!*declared)
        declare(p->emitter, op, compute);
    *declared = 1;
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
        if (!e->loose)
            tn__text_addf(p->text, "tn_round_%s", tn__dtypes[to].suffix);
        tn__text_addf(p->text, "(v%d)", arg);
        return;
    }
    p->emitter->complex |= tn_dtype_is_complex(to) || tn_dtype_is_complex(from);
    if (widen)
        tn__text_addf(p->text, "tn_%s_to_f32(", tn__dtypes[to].suffix);
    tn__text_addf(p->text, "tns_cast_%s_%s(v%d)%s", tn__dtypes[to].suffix, tn__dtypes[tn__dtypes[from].compute].suffix,
                  arg, widen ? ")" : "");
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
    bool rounds = tn__dtypes[e->dtype].compute != e->dtype && !e->loose;
    if (rounds)
        tn__text_addf(p->text, "tn_round_%s(", tn__dtypes[e->dtype].suffix);
    if (e->made) {
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

/* ---- the whole text ---- */

static const char faults[] =
    "#ifndef TN_FAULT\n"
    "#define TN_FAULT(fault, operand, index) (fault[0] = operand, fault[1] = index)\n"
    "#endif\n";
static const char helpers[] =
    "TN_HOT tn_i64 tn_wrap(tn_i64 i, tn_i64 n) { return i < 0 ? i + n : i; }\n"
    "TN_HOT int tn_in_range(tn_i64 i, tn_i64 n, tn_i64 *fault, int operand)\n"
    "{\n"
    "    int in = i >= -n && i < n;\n"
    "    if (!in)\n"
    "        TN_FAULT(fault, operand, i);\n"
    "    return in;\n"
    "}\n";

#define EMBEDDED(part) tn__text_addn(&text, (const char *)tn__embed_##part, tn__embed_##part##_size)

char *tn__emit_finish(tn__emitter *emitter)
{
    tn__text text = {0};
    bool real = emitter->math || emitter->random || emitter->complex;
    tn__dialect_add(&text, TN__DIALECT_TYPES);
    if (real && !emitter->integers)
        tn__text_add(&text, "#define TNS_NO_INTEGERS\n");
    tn__dialect_add(&text, (real ? TN__DIALECT_REAL | emitter->target->functions : 0) |
                               (emitter->random ? TN__DIALECT_RANDOM : 0) |
                               (emitter->complex ? TN__DIALECT_COMPLEX : 0) | (emitter->draws ? TN__DIALECT_DRAW : 0));
    tn__text_add(&text, emitter->target->helpers);
    if (emitter->random)
        tn__text_add(&text, emitter->target->random_helpers);
    tn__text_add(&text, faults);
    tn__text_add(&text, emitter->target->rounding);
    tn__text_add(&text, helpers);
    if (emitter->products) {
        EMBEDDED(product_factors);
        EMBEDDED(product);
    }
    if (emitter->tensor_products)
        EMBEDDED(product_tensor);
    if (emitter->whole_products)
        EMBEDDED(product_whole);
    if (emitter->thin_products)
        EMBEDDED(product_thin);
    if (emitter->user_count)
        tn__dialect_add(&text, TN__DIALECT_USER);
    text.failed |= emitter->functions.failed || emitter->body.failed;
    tn__text_add(&text, emitter->functions.data ? emitter->functions.data : "");
    tn__text_add(&text, emitter->body.data ? emitter->body.data : "");
    tn__free(emitter->functions.data);
    tn__free(emitter->body.data);
    tn__free(emitter->declared);
    for (int i = 0; i < emitter->nest_count; i++)
        tn__free(emitter->nest[i]);
    tn__free(emitter->nest);
    tn__free(emitter->table);
    tn__free(emitter->user);
    memset(emitter, 0, sizeof *emitter);
    return tn__text_take(&text);
}
