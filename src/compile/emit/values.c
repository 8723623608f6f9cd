/* SPDX-License-Identifier: MIT */
/* What a variable of a kernel is initialised with: for each kind of a nest's expressions, its value as C. */
#include "compile/emit/emit.h"

int tn__stride_param(const tn__access *a, int loop)
{
    int param = a->param + 2; /* behind the operand's number and the offset; strides of 0 are left out */
    for (int l = 0; l < loop; l++)
        param += a->stride[l] != 0;
    return param;
}

void tn__print_steps(tn__printer *p, const tn__access *a, uint32_t loops)
{
    for (int l = 0; l < p->nest->loop_count; l++) {
        if (!a->stride[l] || !(loops >> l & 1))
            continue;
        if (a->stride[l] == 1 && l == p->vector_loop)
            tn__text_addf(p->text, " + x%d", l);
        else if (p->literal)
            tn__text_addf(p->text, " + x%d * %lld", l, (long long)a->stride[l]);
        else
            tn__text_addf(p->text, " + x%d * %sn[%d]", l, p->index, tn__stride_param(a, l));
    }
}

void tn__print_position(tn__printer *p, const tn__access *a)
{
    if (p->based && tn__has_base(a)) {
        int number = (int)(a - p->nest->access);
        int64_t stride = a->stride[p->vector_loop];
        tn__text_addf(p->text, "base%d", number);
        if (stride == 1)
            tn__text_addf(p->text, " + x%d", p->vector_loop);
        else if (stride)
            tn__text_addf(p->text, " + x%d * step%d", p->vector_loop, number);
        return;
    }
    tn__text_addf(p->text, "%sn[%d]", p->index, a->param + 1);
    tn__print_steps(p, a, ~0u);
}

void tn__print_element(tn__printer *p, int access)
{
    const tn__access *a = &p->nest->access[access];
    if (a->in_registers) {
        tn__text_add(p->text, "in_registers.a[u / main_loop::QUAD][u % main_loop::QUAD]");
        return;
    }
    if (tn__access_note_of(p, a)->own) {
        tn__text_addf(p->text, "*q%d", access);
        return;
    }
    if (p->flat && tn__access_note_of(p, a)->staged) {
        tn__text_addf(p->text, "c%d->e[%s]", access, p->lane);
        return;
    }
    bool in_tile = p->in_tile && tn__access_note_of(p, a)->near;
    const tn__nest_product *product = &p->nest->product;
    bool down = in_tile && product->row_loop >= 0 && a->stride[product->row_loop];
    bool across = in_tile && product->column_loop >= 0 && a->stride[product->column_loop];
    tn__text_addf(p->text, "%c%d[", in_tile ? 'q' : 'p', access);
    if (down)
        tn__text_addf(p->text, "row * down%d%s", access, across ? " + " : "");
    if (across)
        tn__text_addf(p->text, "column * across%d", access);
    if (in_tile && !down && !across)
        tn__text_add(p->text, "0");
    if (!in_tile)
        tn__print_position(p, a);
    tn__text_add(p->text, "]");
}

static void print_load(tn__printer *p, const tn__expr *e)
{
    const tn__access *a = &p->nest->access[e->access];
    const char *from = a->dtype == TN_FLOAT16 ? "tn_f16_to_f32" : a->dtype == TN_BFLOAT16 ? "tn_bf16_to_f32" : "";
    if (tn__access_note_of(p, a)->wide) {
        tn__text_addf(p->text, "w%d[%s]", e->access, p->strip);
        return;
    }
    if (tn__access_note_of(p, a)->staged && !p->flat) {
        bool varies = p->vector_loop >= 0 && a->stride[p->vector_loop];
        tn__text_addf(p->text, "%s(c%d%s.e[%s])", from, e->access, p->vector, varies ? p->lane : "0");
        return;
    }
    if (!a->gathered) {
        tn__text_addf(p->text, p->early ? "%s(tn_load_l2(&" : "%s(", from);
        tn__print_element(p, e->access);
        tn__text_add(p->text, p->early ? "))" : ")");
        return;
    }
    int extra = tn__stride_param(a, p->nest->loop_count);
    if (tn__note_of(p, e)->checked) {
        int index = (int)(e - p->nest->expr);
        tn__text_addf(p->text, "in%d ? %s(p%d[at%d", index, from, e->access, index);
        tn__print_steps(p, a, tn__note_of(p, e)->ahead);
        tn__text_add(p->text, "]) : 0");
        return;
    }
    if (a->known) {
        tn__text_addf(p->text, "%s(%sp%d[", from, p->early ? "tn_load_l2(&" : "", e->access);
        tn__print_position(p, a);
        tn__text_addf(p->text, " + v%d * n[%d]])%s", e->arg[0], extra, p->early ? ")" : "");
        return;
    }
    tn__text_addf(p->text, "tn_in_range(v%d, n[%d], fault, n[%d] + 1) ? %s(p%d[", e->arg[0], extra + 1, a->param, from,
                  e->access);
    tn__print_position(p, a);
    tn__text_addf(p->text, " + tn_wrap(v%d, n[%d]) * n[%d]]) : 0", e->arg[0], extra + 1, extra);
}

/* Of a complex dtype, its real part: a constant has no other. */
static void print_scalar(tn__printer *p, const tn__expr *e)
{
    static const char *const from_bits[TN_DTYPE_COUNT] = {
        [TN_FLOAT16] = "tn_f16_to_f32((tn_f16)",
        [TN_BFLOAT16] = "tn_bf16_to_f32((tn_bf16)",
        [TN_FLOAT32] = "tns_f32_bits((tn_u32)",
        [TN_FLOAT64] = "tns_f64_bits(",
    };
    const tn_dtype dtype = (tn_dtype)tn__dtypes[e->dtype].component;
    const int slot = tn__scalar_param(p, e->scalar);
    if (from_bits[dtype])
        tn__text_addf(p->text, "%ss[n[%d]])", from_bits[dtype], slot);
    else
        tn__text_addf(p->text, "(%s)s[n[%d]]", tn__dtypes[dtype].ctype, slot);
}

bool tn__is_divided(const tn__expr *e)
{
    bool divided = e->op == TN__OP_DIVIDE || e->op == TN__OP_RECIPROCAL || e->op == TN__OP_SQRT;
    return e->kind == TN__EXPR_OP && !e->user && divided && tn__dtypes[e->dtype].compute == TN_FLOAT32;
}

static void print_operation(tn__printer *p, const tn__expr *e)
{
    if (e->user) {
        tn__print_user(p, e);
        return;
    }
    const tn__expr *last = &p->nest->expr[e->arg[e->arity - 1]];
    if (e->op == TN__OP_CAST) {
        tn__print_cast(p, e, last->dtype, e->arg[0]);
        return;
    }
    bool rounds = tn__dtypes[e->dtype].compute != e->dtype && e->op != TN__OP_COPY && e->op != TN__OP_WHERE &&
                  !tn__note_of(p, e)->loose;
    if (rounds)
        tn__text_addf(p->text, "tn_round_%s(", tn__dtypes[e->dtype].suffix);
    bool unchecked = p->unchecked && tn__is_divided(e);
    if (unchecked)
        tn__text_addf(p->text, "tn_unchecked_%s", tn__ops[e->op].name);
    else
        tn__print_function(p, e->op, last->dtype);
    bool by = unchecked && e->op == TN__OP_DIVIDE && p->expr_note[e->arg[1]].printed == TN__SCOPE_ITEM;
    tn__text_add(p->text, by ? "_by" : "");
    for (int i = 0; i < e->arity; i++)
        tn__text_addf(p->text, "%sv%d", i ? ", " : "(", e->arg[i]);
    if (by)
        tn__text_addf(p->text, ", y%d", e->arg[1]);
    tn__text_add(p->text, unchecked ? ", sure)" : ")");
    if (rounds)
        tn__text_add(p->text, ")");
}

static void print_single(tn__printer *p, const tn__expr *e)
{
    tn_dtype dtype = p->nest->expr[e->arg[0]].dtype;
    if (tn__ops[e->op].props & TN_ARG) {
        tn__text_add(p->text, "0");
        return;
    }
    if (e->user) {
        const char *function = tn__user_function(p, e->user);
        tn__text_addf(p->text, "%s(%s_identity(), v%d)", function, function, e->arg[0]);
        return;
    }
    for (int i = 0; i < 2; i++) {
        tn__print_function(p, e->op, dtype);
        tn__text_add(p->text, "(");
    }
    tn__print_identity(p, e->op, dtype);
    tn__text_addf(p->text, ", v%d), ", e->arg[0]);
    tn__print_identity(p, e->op, dtype);
    tn__text_add(p->text, ")");
}

/* In columns; in rows it has its variable already. */
static void print_reduced(tn__printer *p, const tn__expr *e)
{
    if (p->lane)
        tn__text_addf(p->text, "a%d[%s]", e->reduction, p->lane);
    else
        tn__text_addf(p->text, "a%d[x%d - l0]", e->reduction, p->vector_loop);
}

/* Of gemm/kernel.c: a tile in shared memory. */
static void print_product(tn__printer *p, const tn__expr *e)
{
    (void)e;
    tn__text_add(p->text, "product(row, column)");
}

/* What a variable is initialised with. */
static void (*const print_value[])(tn__printer *p, const tn__expr *e) = {
    [TN__EXPR_LOAD] = print_load,       [TN__EXPR_INDEX] = tn__print_generated, [TN__EXPR_SCALAR] = print_scalar,
    [TN__EXPR_OP] = print_operation,    [TN__EXPR_PRODUCT] = print_product,     [TN__EXPR_REDUCED] = print_reduced,
    [TN__EXPR_SINGLE] = print_single,
};

void tn__print_value(tn__printer *p, const tn__expr *e) { print_value[e->kind](p, e); }
