/* SPDX-License-Identifier: MIT */
/* What the kernels of every target share: the expressions of a nest as statements, and the passes of its reductions. */
#include "compile/emit/emit.h"

#include <stdio.h>
#include <string.h>

/* ---- expressions ---- */

int tn__stride_param(const tn__access *a, int loop)
{
    int param = a->param + 2; /* behind the operand's number and the offset; strides of 0 are left out */
    for (int l = 0; l < loop; l++)
        param += a->stride[l] != 0;
    return param;
}

/* How far some loops have gone. */
static void print_steps(tn__printer *p, const tn__access *a, uint32_t loops)
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

static bool has_base(const tn__access *a) { return a->kind != TN__ACCESS_INDEX && !a->raw && !a->gathered; }

void tn__print_position(tn__printer *p, const tn__access *a)
{
    if (p->based && has_base(a)) {
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
    print_steps(p, a, ~0u);
}

void tn__print_element(tn__printer *p, int access)
{
    const tn__access *a = &p->nest->access[access];
    if (a->in_registers) {
        tn__text_add(p->text, "held.a[u / core::QUAD][u % core::QUAD]");
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
        tn__text_addf(p->text, p->early ? "%s(tn_fresh(&" : "%s(", from);
        tn__print_element(p, e->access);
        tn__text_add(p->text, p->early ? "))" : ")");
        return;
    }
    int extra = tn__stride_param(a, p->nest->loop_count);
    if (tn__note_of(p, e)->checked) {
        int index = (int)(e - p->nest->expr);
        tn__text_addf(p->text, "in%d ? %s(p%d[at%d", index, from, e->access, index);
        print_steps(p, a, tn__note_of(p, e)->ahead);
        tn__text_add(p->text, "]) : 0");
        return;
    }
    if (a->known) {
        tn__text_addf(p->text, "%s(%sp%d[", from, p->early ? "tn_fresh(&" : "", e->access);
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

const char *tn__emit_variable_type(tn_dtype dtype) { return tn__dtypes[tn__dtypes[dtype].compute].ctype; }

void tn__emit_indent(tn__printer *p)
{
    for (int i = 0; i < p->depth; i++)
        tn__text_add(p->text, "    ");
}

/* The scope that expressions are hoisted to. */
static int outer_scope(const tn__printer *p) { return p->outer ? p->outer : TN__SCOPE_ITEM; }

static bool is_hoisted(const tn__printer *p, int index)
{
    int printed = p->expr_note[index].printed;
    return printed == TN__SCOPE_ITEM || printed == outer_scope(p);
}

void tn__emit_need(tn__printer *p, int index)
{
    const tn__expr *e = &p->nest->expr[index];
    tn__expr_note *note = &p->expr_note[index];
    if (is_hoisted(p, index) || note->printed == p->scope)
        return;
    if (note->kept && !(note->passes >> p->pass & 1)) {
        tn__line(p, "const %s v%d = k%d%s[%s];", tn__emit_variable_type(e->dtype), index, index, p->vector, p->lane);
        note->printed = p->scope;
        return;
    }
    for (int i = 0; i < e->arity; i++)
        tn__emit_need(p, e->arg[i]);
    tn__emit_indent(p);
    if (e->kind == TN__EXPR_RAW) { /* a variable of another type, with a statement of its own */
        tn__print_raw(p, e, index);
        note->printed = p->scope;
        return;
    }
    tn__text_addf(p->text, "const %s v%d = ", tn__emit_variable_type(e->dtype), index);
    print_value[e->kind](p, e);
    tn__text_add(p->text, ";\n");
    note->printed = p->scope;
    if (note->kept && p->lane)
        tn__line(p, "k%d%s[%s] = v%d;", index, p->vector, p->lane, index);
}

/* Whether the index of a gather is in range, and where it points to, where it is hoisted to: a loop over the rest only
 * copies. It reads no extents, which gcc would leave behind the choice, and then not see that neighbours are read. */
static void check_ahead(tn__printer *p, int index, uint32_t inner)
{
    const tn__expr *e = &p->nest->expr[index];
    tn__expr_note *note = &p->expr_note[index];
    const tn__access *a = e->kind == TN__EXPR_LOAD ? &p->nest->access[e->access] : NULL;
    if (!p->checks_ahead || note->checked || !a || !a->gathered || a->known ||
        !is_hoisted(p, e->arg[0]))
        return;
    int v = e->arg[0], extra = tn__stride_param(a, p->nest->loop_count);
    tn__line(p, "const int in%d = tn_in_range(v%d, n[%d], fault, n[%d] + 1);", index, v, extra + 1, a->param);
    tn__emit_indent(p);
    tn__text_addf(p->text, "const tn_i64 at%d = tn_wrap(v%d, n[%d]) * n[%d] + n[%d]", index, v, extra + 1, extra,
                  a->param + 1);
    print_steps(p, a, ~inner);
    tn__text_add(p->text, ";\n");
    note->checked = true;
    note->ahead = inner;
}

/* Each expression once: there are exponentially many ways down where values are used twice, and their users too. */
static void hoist(tn__printer *p, int index, uint32_t inner)
{
    const tn__expr *e = &p->nest->expr[index];
    tn__expr_note *note = &p->expr_note[index];
    if (is_hoisted(p, index) || note->walk == p->walk)
        return;
    note->walk = p->walk;
    if (!(e->loops & inner) && e->kind != TN__EXPR_REDUCED) {
        int scope = p->scope;
        p->scope = outer_scope(p);
        tn__emit_need(p, index);
        p->scope = scope;
        return;
    }
    for (int i = 0; i < e->arity; i++)
        hoist(p, e->arg[i], inner);
    check_ahead(p, index, inner);
}

void tn__emit_hoist(tn__printer *p, int index, uint32_t inner)
{
    p->walk++;
    hoist(p, index, inner);
}

static void print_store(tn__printer *p, const tn__store *s)
{
    const tn__access *a = &p->nest->access[s->access];
    tn__emit_need(p, s->expr);
    if (tn__access_note_of(p, a)->wide) {
        tn__line(p, "w%d[%s] = v%d;", s->access, p->strip, s->expr);
        return;
    }
    tn__emit_indent(p);
    tn__print_element(p, s->access);
    if (a->dtype == TN_FLOAT16 || a->dtype == TN_BFLOAT16)
        tn__text_addf(p->text, " = tn_f32_to_%s(v%d);\n", tn__dtypes[a->dtype].suffix, s->expr);
    else
        tn__text_addf(p->text, " = v%d;\n", s->expr);
}

void tn__emit_stores(tn__printer *p, bool rows, int level)
{
    const tn__nest *n = p->nest;
    for (int pass = 0; pass < 2; pass++) /* values, then stores */
        for (int s = 0; s < n->store_count; s++) {
            if (n->reduced && (n->store[s].row != rows || (!rows && n->store[s].level != level)))
                continue;
            if (pass == 0)
                tn__emit_need(p, n->store[s].expr);
            else
                print_store(p, &n->store[s]);
        }
}

void tn__line(tn__printer *p, const char *format, ...)
{
    char text[512]; /* before words are expanded */
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    if (text[0] == '}')
        p->depth--;
    tn__emit_indent(p);
    tn__words_expand(p->emitter->target, text, p->text);
    tn__text_add(p->text, "\n");
    size_t length = strlen(text);
    if (length && text[length - 1] == '{')
        p->depth++;
}

int tn__emit_scope(tn__printer *p) { return p->scope = ++p->scopes; }

/* Variables of the given loops from a number that counts through them, last fastest. */
void tn__emit_decode(tn__printer *p, uint32_t loops, const char *from)
{
    int count = __builtin_popcount(loops);
    if (count > 1)
        tn__line(p, "tn_i64 q = %s;", from);
    for (int l = p->nest->loop_count - 1; l >= 0; l--) {
        if (!(loops >> l & 1))
            continue;
        if (count == 1)
            tn__line(p, "const tn_i64 x%d = %s;", l, __builtin_popcount(loops) > 1 ? "q" : from);
        else
            tn__line(p, "const tn_i64 x%d = q %% n[%d]; q /= n[%d];", l, TN__EXTENT(l), TN__EXTENT(l));
        count--;
    }
}

void tn__emit_bases(tn__printer *p)
{
    const tn__nest *n = p->nest;
    for (int i = 0; i < n->access_count; i++) {
        const tn__access *a = &n->access[i];
        if (!has_base(a))
            continue;
        tn__emit_indent(p);
        tn__text_addf(p->text, "const tn_i64 base%d = n[%d]", i, a->param + 1);
        print_steps(p, a, ~(1u << p->vector_loop));
        tn__text_add(p->text, ";\n");
        if (a->stride[p->vector_loop] && a->stride[p->vector_loop] != 1)
            tn__line(p, "const tn_i64 step%d = n[%d];", i, tn__stride_param(a, p->vector_loop));
    }
    p->based = true;
}

/* ---- passes ---- */

/* A pass's work on one element: stores of its level, and the reductions' elements left in variables. */
void tn__emit_element(tn__printer *p, int level)
{
    const tn__nest *n = p->nest;
    for (int r = 0; r < n->reduction_count; r++)
        if (n->reduction[r].level == level && !(tn__ops[n->reduction[r].op].props & TN_ARG))
            tn__emit_need(p, n->reduction[r].arg);
    tn__emit_stores(p, false, level);
}

void tn__emit_hoist_pass(tn__printer *p, int level, uint32_t inner)
{
    const tn__nest *n = p->nest;
    for (int r = 0; r < n->reduction_count; r++)
        if (n->reduction[r].level == level)
            tn__emit_hoist(p, n->reduction[r].arg, inner);
    for (int s = 0; s < n->store_count; s++)
        if (!n->store[s].row && n->store[s].level == level)
            tn__emit_hoist(p, n->store[s].expr, inner);
}

const char *tn__emit_identity(tn__printer *p, int r)
{
    const tn__reduction *red = &p->nest->reduction[r];
    if (red->user) {
        snprintf(p->name[1], sizeof p->name[1], "%s_identity()", tn__user_function(p, red->user));
        return p->name[1];
    }
    return red->about_mean ? "tn_deviations()" : tn__identity(p, red->op, red->dtype);
}

const char *tn__emit_function(tn__printer *p, int r)
{
    const tn__reduction *red = &p->nest->reduction[r];
    return red->about_mean ? "tn_deviate"
           : red->user     ? tn__user_function(p, red->user)
                           : tn__function(p, red->op, red->dtype);
}

const char *tn__emit_type(const tn__printer *p, int r)
{
    const tn__reduction *red = &p->nest->reduction[r];
    return red->about_mean ? "tn_deviations" : tn__emit_variable_type(red->dtype);
}

const char *tn__emit_result_type(const tn__printer *p, int r)
{
    return tn__emit_variable_type(p->nest->reduction[r].dtype);
}

static tn_dtype wide_dtype(const tn__printer *p, int r)
{
    tn_dtype dtype = p->nest->reduction[r].dtype;
    return tn__nest_widens(p->nest, r) ? tn__dtype_wide(dtype) : dtype;
}

const char *tn__emit_wide_identity(tn__printer *p, int r)
{
    bool widens = tn__nest_widens(p->nest, r);
    return widens ? tn__identity(p, p->nest->reduction[r].op, wide_dtype(p, r)) : tn__emit_identity(p, r);
}

const char *tn__emit_wide_function(tn__printer *p, int r)
{
    bool widens = tn__nest_widens(p->nest, r);
    return widens ? tn__function(p, p->nest->reduction[r].op, wide_dtype(p, r)) : tn__emit_function(p, r);
}

const char *tn__emit_wide_type(const tn__printer *p, int r)
{
    return tn__nest_widens(p->nest, r) ? tn__emit_variable_type(wide_dtype(p, r)) : tn__emit_type(p, r);
}

const char *tn__emit_widening(tn__printer *p, int r)
{
    bool complex = wide_dtype(p, r) == TN_COMPLEX128 && tn__nest_widens(p->nest, r);
    p->emitter->needs |= complex ? TN__NEEDS_COMPLEX : 0;
    return complex ? "tns_cast_c128_c64" : "";
}

/* What makes a result of a finished accumulator. */
const char *tn__emit_rounding(const tn__printer *p, int r)
{
    const tn__reduction *red = &p->nest->reduction[r];
    return red->about_mean               ? "tn_squares"
           : red->dtype == TN_FLOAT16    ? "tn_round_f16"
           : red->dtype == TN_BFLOAT16   ? "tn_round_bf16"
                                         : "";
}

const char *tn__emit_narrowing(const tn__printer *p, int r)
{
    const char *rounding = tn__emit_rounding(p, r);
    bool complex = tn_dtype_is_complex(p->nest->reduction[r].dtype);
    return *rounding || !tn__nest_widens(p->nest, r) ? rounding : complex ? "tns_cast_c64_c128" : "(tn_f32)";
}

void tn__emit_extent(tn__printer *p)
{
    tn__text text = {0};
    for (int l = 0; l < p->nest->loop_count; l++)
        if (p->nest->reduced >> l & 1)
            tn__text_addf(&text, " * n[%d]", TN__EXTENT(l));
    tn__line(p, "const tn_i64 R = 1%s;", text.data ? text.data : "");
    p->text->failed |= text.failed;
    tn__free(text.data);
}

/* ---- a nest ---- */

/* What nobody but stores needs is rounded by these. */
static void find_loose(tn__printer *p)
{
    const tn__nest *n = p->nest;
    for (int s = 0; s < n->store_count; s++)
        p->expr_note[n->store[s].expr].loose = true;
    for (int s = 0; s < n->store_count; s++)
        p->expr_note[n->store[s].expr].loose &= n->expr[n->store[s].expr].dtype == n->access[n->store[s].access].dtype;
    for (int e = 0; e < n->expr_count; e++)
        for (int i = 0; i < n->expr[e].arity; i++)
            p->expr_note[n->expr[e].arg[i]].loose = false;
    for (int r = 0; r < n->reduction_count; r++)
        p->expr_note[n->reduction[r].arg].loose = false;
}

static void print_body(tn__printer *p)
{
    const tn__nest *n = p->nest;
    find_loose(p);
    tn__line(p, "{");
    tn__line(p, "(void)s, (void)fault;");
    for (int i = 0; i < n->access_count; i++) {
        const tn__access *a = &n->access[i];
        if (a->operand < 0)
            continue;
        const char *type = tn__dtypes[a->dtype].ctype, *constant = a->kind == TN__ACCESS_LOAD ? "const " : "";
        p->emitter->needs |= tn_dtype_is_complex(a->dtype) ? TN__NEEDS_COMPLEX : 0;
        tn__line(p, "%s@memory %s *const p%d = (%s@memory %s *)p[n[%d]];", constant, type, i, constant, type, a->param);
    }
    p->emitter->target->loops(p);
    tn__line(p, "}");
    tn__text_add(p->text, "\n");
}

void tn__print_nest(tn__printer *p)
{
    const tn__nest *n = p->nest;
    p->scopes = TN__SCOPE_FIRST;
    p->scope = TN__SCOPE_NONE;
    p->outer = 0;
    p->depth = 0;
    p->index = "";
    p->literal = false;
    p->expr_note = tn__calloc((size_t)n->expr_count + 1, sizeof *p->expr_note);
    p->access_note = tn__calloc((size_t)n->access_count + 1, sizeof *p->access_note);
    if (p->expr_note && p->access_note)
        print_body(p);
    else
        p->text->failed = true;
    tn__free(p->expr_note);
    tn__free(p->access_note);
}
