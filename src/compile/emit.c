/* SPDX-License-Identifier: MIT */
/*
 * Kernels as text. Each nest becomes one static function; an entry point calls the nests of a step. Three shapes of loops:
 *
 *     elementwise   items are (outer loops, stretches of the last loop); the last loop vectorises
 *     rows          the last loop is reduced: an item is a row; passes over it accumulate in lanes (device/order.h)
 *     columns       the last loop is kept: an item is a block of columns; passes over the rows accumulate in blocks
 */
#include "compile/nest.h"

#include "compile/emit.h"
#include "device/order.h"

#include <stdio.h>
#include <string.h>

#define EXTENT(l) (1 + (l)) /* where the extent of a loop is in n[]: behind the number of items */

enum { NOWHERE, ITEM, FIRST_SCOPE }; /* where an expression has its variable */

static uint32_t all_loops(const tn__nest *n) { return (1u << n->loop_count) - 1; }

/* ---- expressions ---- */

void tn__print_position(tn__printer *p, const tn__access *a)
{
    tn__text_addf(p->text, "n[%d]", a->param + 1);
    int param = a->param + 2;
    for (int l = 0; l < p->nest->loop_count; l++) {
        if (!a->stride[l])
            continue;
        if (a->stride[l] == 1 && l == p->vector_loop)
            tn__text_addf(p->text, " + x%d", l);
        else
            tn__text_addf(p->text, " + x%d * n[%d]", l, param);
        param++;
    }
}

static void print_load(tn__printer *p, const tn__expr *e)
{
    const tn__access *a = &p->nest->access[e->access];
    const char *from = a->dtype == TN_FLOAT16 ? "tn_f16_to_f32" : a->dtype == TN_BFLOAT16 ? "tn_bf16_to_f32" : "";
    if (!a->gathered) {
        tn__text_addf(p->text, "%s(p%d[", from, e->access);
        tn__print_position(p, a);
        tn__text_add(p->text, "])");
        return;
    }
    int extra = a->param + 2;
    for (int l = 0; l < p->nest->loop_count; l++)
        extra += a->stride[l] != 0;
    tn__text_addf(p->text, "tn_in_range(v%d, n[%d], fault, n[%d] + 1) ? %s(p%d[", e->arg[0], extra + 1, a->param, from,
                  e->access);
    tn__print_position(p, a);
    tn__text_addf(p->text, " + tn_wrap(v%d, n[%d]) * n[%d]]) : 0", e->arg[0], extra + 1, extra);
}

static void print_scalar(tn__printer *p, tn_dtype dtype, int slot)
{
    static const char *const forms[TN_DTYPE_COUNT] = {
        [TN_FLOAT16] = "tn_f16_to_f32((tn_f16)s[%d])", [TN_BFLOAT16] = "tn_bf16_to_f32((tn_bf16)s[%d])",
        [TN_FLOAT32] = "tns_f32_bits((tn_u32)s[%d])",  [TN_FLOAT64] = "tns_f64_bits(s[%d])"};
    if (forms[dtype]) {
        /* each form holds exactly one %d */
        char text[64];
        snprintf(text, sizeof text, forms[dtype], slot);
        tn__text_add(p->text, text);
    } else {
        tn__text_addf(p->text, "(%s)s[%d]", tn__dtypes[dtype].ctype, slot);
    }
}

static void print_operation(tn__printer *p, const tn__expr *e)
{
    const tn__expr *last = &p->nest->expr[e->arg[e->arity - 1]];
    if (e->op == TN__OP_CAST) {
        tn__print_cast(p, e->dtype, last->dtype, e->arg[0]);
        return;
    }
    bool rounds = tn__dtypes[e->dtype].compute != e->dtype && e->op != TN__OP_COPY && e->op != TN__OP_WHERE;
    if (rounds)
        tn__text_addf(p->text, "tn_round_%s(", tn__dtypes[e->dtype].suffix);
    tn__print_function(p, e->op, last->dtype);
    for (int i = 0; i < e->arity; i++)
        tn__text_addf(p->text, "%sv%d", i ? ", " : "(", e->arg[i]);
    tn__text_add(p->text, rounds ? "))" : ")");
}

static void print_single(tn__printer *p, const tn__expr *e)
{
    tn_dtype dtype = p->nest->expr[e->arg[0]].dtype;
    if (tn__ops[e->op].props & TN_ARG) {
        tn__text_add(p->text, "0");
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

static const char *variable_type(tn_dtype dtype) { return tn__dtypes[tn__dtypes[dtype].compute].ctype; }

static void indent(tn__printer *p)
{
    for (int i = 0; i < p->depth; i++)
        tn__text_add(p->text, "    ");
}

/* Gives expression e, and what it needs, a variable in the current scope. */
static void need(tn__printer *p, int index)
{
    tn__expr *e = &p->nest->expr[index];
    if (e->printed == ITEM || e->printed == p->scope)
        return;
    for (int i = 0; i < e->arity; i++)
        need(p, e->arg[i]);
    indent(p);
    tn__text_addf(p->text, "const %s v%d = ", variable_type(e->dtype), index);
    switch (e->kind) {
    case TN__EXPR_LOAD:
        print_load(p, e);
        break;
    case TN__EXPR_INDEX:
        tn__print_generated(p, e);
        break;
    case TN__EXPR_SCALAR:
        print_scalar(p, e->dtype, tn__scalar_number(p, e->scalar));
        break;
    case TN__EXPR_OP:
        print_operation(p, e);
        break;
    case TN__EXPR_REDUCED: /* in columns; in rows it has its variable already */
        tn__text_addf(p->text, "a%d[x%d - c0]", e->reduction, p->vector_loop);
        break;
    case TN__EXPR_SINGLE:
        print_single(p, e);
        break;
    }
    tn__text_add(p->text, ";\n");
    e->printed = p->scope;
}

/* Gives the parts of e that do not vary inside an item their variables at the item's level. */
static void hoist(tn__printer *p, int index, uint32_t inner)
{
    const tn__expr *e = &p->nest->expr[index];
    if (e->printed == ITEM)
        return;
    if (!(e->loops & inner) && e->kind != TN__EXPR_REDUCED) {
        int scope = p->scope;
        p->scope = ITEM;
        need(p, index);
        p->scope = scope;
        return;
    }
    for (int i = 0; i < e->arity; i++)
        hoist(p, e->arg[i], inner);
}

static void print_store(tn__printer *p, const tn__store *s)
{
    const tn__access *a = &p->nest->access[s->access];
    need(p, s->expr);
    indent(p);
    tn__text_addf(p->text, "p%d[", s->access);
    tn__print_position(p, a);
    if (a->dtype == TN_FLOAT16 || a->dtype == TN_BFLOAT16)
        tn__text_addf(p->text, "] = tn_f32_to_%s(v%d);\n", tn__dtypes[a->dtype].suffix, s->expr);
    else
        tn__text_addf(p->text, "] = v%d;\n", s->expr);
}

static void line(tn__printer *p, const char *format, ...) TN_PRINTF(2, 3);
static void line(tn__printer *p, const char *format, ...)
{
    char text[512];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    if (text[0] == '}')
        p->depth--;
    indent(p);
    tn__text_add(p->text, text);
    tn__text_add(p->text, "\n");
    size_t length = strlen(text);
    if (length && text[length - 1] == '{')
        p->depth++;
}

static int new_scope(tn__printer *p) { return p->scope = ++p->scopes; }

/* Variables of the given loops from a number that counts through them, last fastest. */
static void decode(tn__printer *p, uint32_t loops, const char *from)
{
    int count = __builtin_popcount(loops);
    if (count > 1)
        line(p, "tn_i64 q = %s;", from);
    for (int l = p->nest->loop_count - 1; l >= 0; l--) {
        if (!(loops >> l & 1))
            continue;
        if (count == 1)
            line(p, "const tn_i64 x%d = %s;", l, __builtin_popcount(loops) > 1 ? "q" : from);
        else
            line(p, "const tn_i64 x%d = q %% n[%d]; q /= n[%d];", l, EXTENT(l), EXTENT(l));
        count--;
    }
}

/* ---- elementwise ---- */

static void emit_elementwise(tn__printer *p)
{
    tn__nest *n = p->nest;
    int last = n->loop_count - 1;
    uint32_t inner = last >= 0 ? 1u << last : 0;
    p->vector_loop = last;
    line(p, "for (tn_i64 item = begin; item < end; item++) {");
    if (last >= 0) {
        line(p, "const tn_i64 c0 = item %% n[%d] * n[%d];", EXTENT(n->loop_count), EXTENT(n->loop_count + 1));
        line(p, "const tn_i64 c1 = c0 + n[%d] < n[%d] ? c0 + n[%d] : n[%d];", EXTENT(n->loop_count + 1),
             EXTENT(last), EXTENT(n->loop_count + 1), EXTENT(last));
        if (last > 0) {
            line(p, "const tn_i64 row = item / n[%d];", EXTENT(n->loop_count));
            decode(p, all_loops(n) & ~inner, "row");
        }
    }
    for (int s = 0; s < n->store_count; s++)
        hoist(p, n->store[s].expr, inner);
    if (last >= 0) {
        line(p, "TN_INDEPENDENT");
        line(p, "for (tn_i64 x%d = c0; x%d < c1; x%d++) {", last, last, last);
    } else {
        line(p, "{");
    }
    new_scope(p);
    for (int s = 0; s < n->store_count; s++)
        print_store(p, &n->store[s]);
    line(p, "}");
    line(p, "}");
}

/* ---- passes ---- */

/* A pass's work on one element: stores of its level, and the reductions' elements left in variables. */
static void element(tn__printer *p, int level)
{
    tn__nest *n = p->nest;
    for (int r = 0; r < n->reduction_count; r++)
        if (n->reduction[r].level == level && !(tn__ops[n->reduction[r].op].props & TN_ARG))
            need(p, n->reduction[r].arg);
    for (int s = 0; s < n->store_count; s++)
        if (!n->store[s].row && n->store[s].level == level)
            print_store(p, &n->store[s]);
}

static void hoist_pass(tn__printer *p, int level, uint32_t inner)
{
    tn__nest *n = p->nest;
    for (int r = 0; r < n->reduction_count; r++)
        if (n->reduction[r].level == level)
            hoist(p, n->reduction[r].arg, inner);
    for (int s = 0; s < n->store_count; s++)
        if (!n->store[s].row && n->store[s].level == level)
            hoist(p, n->store[s].expr, inner);
}

static bool has_stores(const tn__nest *n, int level)
{
    for (int s = 0; s < n->store_count; s++)
        if (!n->store[s].row && n->store[s].level == level)
            return true;
    return false;
}

static int reductions(const tn__nest *n, int level, bool arg)
{
    int count = 0;
    for (int r = 0; r < n->reduction_count; r++)
        count += n->reduction[r].level == level && !!(tn__ops[n->reduction[r].op].props & TN_ARG) == arg;
    return count;
}

int tn__nest_passes(const tn__nest *n)
{
    int passes = 0;
    for (int r = 0; r < n->reduction_count; r++)
        passes = n->reduction[r].level + 1 > passes ? n->reduction[r].level + 1 : passes;
    for (int s = 0; s < n->store_count; s++)
        if (!n->store[s].row)
            passes = n->store[s].level + 1 > passes ? n->store[s].level + 1 : passes;
    return passes;
}

/* For each plain reduction of a level: a statement, with its number, type, identity and combining function. */
#define EACH_PLAIN(p, r, lvl) \
    for (int r = 0; r < (p)->nest->reduction_count; r++) \
        if ((p)->nest->reduction[r].level == (lvl) && !(tn__ops[(p)->nest->reduction[r].op].props & TN_ARG))

static const char *identity_text(tn__printer *p, int r)
{
    return tn__identity(p, p->nest->reduction[r].op, p->nest->reduction[r].dtype);
}

static const char *function_text(tn__printer *p, int r)
{
    return tn__function(p, p->nest->reduction[r].op, p->nest->reduction[r].dtype);
}

static const char *type_text(const tn__printer *p, int r) { return variable_type(p->nest->reduction[r].dtype); }

/* The rounding a finished accumulator needs. */
static const char *rounded(const tn__printer *p, int r)
{
    tn_dtype dtype = p->nest->reduction[r].dtype;
    return dtype == TN_FLOAT16 ? "tn_round_f16" : dtype == TN_BFLOAT16 ? "tn_round_bf16" : "";
}

static int reduced_expr(const tn__nest *n, int r)
{
    for (int e = 0; e < n->expr_count; e++)
        if (n->expr[e].kind == TN__EXPR_REDUCED && n->expr[e].reduction == r)
            return e;
    return -1;
}

/* ---- rows ---- */

static void lane_body(tn__printer *p, int level, uint32_t reduced, const char *position)
{
    decode(p, reduced, position);
    new_scope(p);
    element(p, level);
    EACH_PLAIN(p, r, level)
        line(p, "lane%d[j] = %s(lane%d[j], v%d);", r, function_text(p, r), r, p->nest->reduction[r].arg);
}

static void halve(tn__printer *p, int level, const char *lanes)
{
    line(p, "for (int h = %d; h; h /= 2)", TN__REDUCE_LANES / 2);
    line(p, "    for (int j = 0; j < h; j++) {");
    EACH_PLAIN(p, r, level)
        line(p, "%s%d[j] = %s(%s%d[j], %s%d[j + h]);", lanes, r, function_text(p, r), lanes, r, lanes, r);
    line(p, "}");
}

static void row_sums(tn__printer *p, int level)
{
    uint32_t reduced = p->nest->reduced;
    EACH_PLAIN(p, r, level)
        line(p, "%s t%d = %s;", type_text(p, r), r, identity_text(p, r));
    line(p, "{");
    EACH_PLAIN(p, r, level)
        line(p, "%s total%d[%d], lane%d[%d];", type_text(p, r), r, TN__REDUCE_LANES, r, TN__REDUCE_LANES);
    line(p, "for (int j = 0; j < %d; j++) {", TN__REDUCE_LANES);
    EACH_PLAIN(p, r, level)
        line(p, "total%d[j] = %s;", r, identity_text(p, r));
    line(p, "}");
    line(p, "for (tn_i64 b = 0; b < R; b += %d) {", TN__REDUCE_BLOCK);
    line(p, "const tn_i64 e = b + %d < R ? b + %d : R;", TN__REDUCE_BLOCK, TN__REDUCE_BLOCK);
    line(p, "for (int j = 0; j < %d; j++) {", TN__REDUCE_LANES);
    EACH_PLAIN(p, r, level)
        line(p, "lane%d[j] = %s;", r, identity_text(p, r));
    line(p, "}");
    line(p, "tn_i64 r = b;");
    line(p, "for (; r + %d <= e; r += %d) {", TN__REDUCE_LANES, TN__REDUCE_LANES);
    line(p, "TN_LANES");
    line(p, "for (int j = 0; j < %d; j++) {", TN__REDUCE_LANES);
    lane_body(p, level, reduced, "r + j");
    line(p, "}");
    line(p, "}");
    line(p, "for (int j = 0; r + j < e; j++) {");
    lane_body(p, level, reduced, "r + j");
    line(p, "}");
    halve(p, level, "lane");
    line(p, "const int k = (int)(b / %d %% %d);", TN__REDUCE_BLOCK, TN__REDUCE_LANES);
    EACH_PLAIN(p, r, level) {
        line(p, "t%d = lane%d[0];", r, r);
        line(p, "total%d[k] = %s(total%d[k], lane%d[0]);", r, function_text(p, r), r, r);
    }
    line(p, "}");
    line(p, "if (R > %d) {", TN__REDUCE_BLOCK);
    halve(p, level, "total");
    EACH_PLAIN(p, r, level)
        line(p, "t%d = total%d[0];", r, r);
    line(p, "}");
    line(p, "}");
    EACH_PLAIN(p, r, level) {
        int e = reduced_expr(p->nest, r);
        line(p, "const %s v%d = %s(t%d);", type_text(p, r), e, rounded(p, r), r);
        p->nest->expr[e].printed = ITEM;
    }
}

static void row_positions(tn__printer *p, int level)
{
    for (int r = 0; r < p->nest->reduction_count; r++) {
        const tn__reduction *red = &p->nest->reduction[r];
        if (red->level != level || !(tn__ops[red->op].props & TN_ARG))
            continue;
        int e = reduced_expr(p->nest, r);
        line(p, "%s best%d = %s;", type_text(p, r), r, identity_text(p, r));
        line(p, "tn_i64 v%d = 0;", e);
        line(p, "for (tn_i64 r = 0; r < R; r++) {");
        decode(p, p->nest->reduced, "r");
        new_scope(p);
        need(p, red->arg);
        line(p, "if (%s(best%d, v%d)) { best%d = v%d; v%d = r; }", function_text(p, r), r, red->arg, r, red->arg, e);
        line(p, "}");
        p->nest->expr[e].printed = ITEM;
    }
}

static void emit_rows(tn__printer *p)
{
    tn__nest *n = p->nest;
    uint32_t kept = all_loops(n) & ~n->reduced;
    for (int l = 0; l < n->loop_count; l++)
        if (n->reduced >> l & 1)
            p->vector_loop = l;
    if (__builtin_popcount(n->reduced) > 1)
        p->vector_loop = -1;
    line(p, "for (tn_i64 item = begin; item < end; item++) {");
    decode(p, kept, "item");
    line(p, "const tn_i64 R = 1");
    for (int l = 0; l < n->loop_count; l++)
        if (n->reduced >> l & 1)
            line(p, "    * n[%d]", EXTENT(l));
    line(p, "    ;");
    for (int level = 0, passes = tn__nest_passes(n); level < passes; level++) {
        hoist_pass(p, level, n->reduced);
        if (reductions(n, level, false)) {
            row_sums(p, level);
        } else if (has_stores(n, level)) {
            line(p, "TN_INDEPENDENT");
            line(p, "for (tn_i64 r = 0; r < R; r++) {");
            decode(p, n->reduced, "r");
            new_scope(p);
            element(p, level);
            line(p, "}");
        }
        if (reductions(n, level, true))
            row_positions(p, level);
    }
    p->scope = ITEM;
    for (int s = 0; s < n->store_count; s++)
        if (n->store[s].row)
            print_store(p, &n->store[s]);
    line(p, "}");
}

/* ---- columns ---- */

#define COLUMNS 256 /* in a block */

static void each_column(tn__printer *p)
{
    line(p, "TN_INDEPENDENT");
    line(p, "for (tn_i64 x%d = c0; x%d < c1; x%d++) {", p->vector_loop, p->vector_loop, p->vector_loop);
}

static void column_sums(tn__printer *p, int level)
{
    int c = p->vector_loop;
    EACH_PLAIN(p, r, level) {
        line(p, "%s part%d[%d];", type_text(p, r), r, COLUMNS);
        line(p, "for (int c = 0; c < %d; c++) a%d[c] = %s;", COLUMNS, r, identity_text(p, r));
    }
    line(p, "for (tn_i64 b = 0; b < R; b += %d) {", TN__REDUCE_OUTER_BLOCK);
    line(p, "const tn_i64 e = b + %d < R ? b + %d : R;", TN__REDUCE_OUTER_BLOCK, TN__REDUCE_OUTER_BLOCK);
    EACH_PLAIN(p, r, level)
        line(p, "for (int c = 0; c < %d; c++) part%d[c] = %s;", COLUMNS, r, identity_text(p, r));
    line(p, "for (tn_i64 r = b; r < e; r++) {");
    decode(p, p->nest->reduced, "r");
    each_column(p);
    new_scope(p);
    element(p, level);
    EACH_PLAIN(p, r, level)
        line(p, "part%d[x%d - c0] = %s(part%d[x%d - c0], v%d);", r, c, function_text(p, r), r, c,
             p->nest->reduction[r].arg);
    line(p, "}");
    line(p, "}");
    EACH_PLAIN(p, r, level)
        line(p, "for (int c = 0; c < %d; c++) a%d[c] = R > %d ? %s(a%d[c], part%d[c]) : part%d[c];", COLUMNS, r,
             TN__REDUCE_OUTER_BLOCK, function_text(p, r), r, r, r);
    line(p, "}");
    EACH_PLAIN(p, r, level)
        if (*rounded(p, r))
            line(p, "for (int c = 0; c < %d; c++) a%d[c] = %s(a%d[c]);", COLUMNS, r, rounded(p, r), r);
}

static void column_positions(tn__printer *p, int level)
{
    int c = p->vector_loop;
    for (int r = 0; r < p->nest->reduction_count; r++) {
        const tn__reduction *red = &p->nest->reduction[r];
        if (red->level != level || !(tn__ops[red->op].props & TN_ARG))
            continue;
        line(p, "%s best%d[%d];", type_text(p, r), r, COLUMNS);
        line(p, "for (int c = 0; c < %d; c++) { best%d[c] = %s; a%d[c] = 0; }", COLUMNS, r, identity_text(p, r), r);
        line(p, "for (tn_i64 r = 0; r < R; r++) {");
        decode(p, p->nest->reduced, "r");
        each_column(p);
        new_scope(p);
        need(p, red->arg);
        line(p, "if (%s(best%d[x%d - c0], v%d)) { best%d[x%d - c0] = v%d; a%d[x%d - c0] = r; }", function_text(p, r), r,
             c, red->arg, r, c, red->arg, r, c);
        line(p, "}");
        line(p, "}");
    }
}

static void emit_columns(tn__printer *p)
{
    tn__nest *n = p->nest;
    int c = n->loop_count - 1;
    uint32_t column = 1u << c, outer = all_loops(n) & ~n->reduced & ~column;
    p->vector_loop = c;
    line(p, "for (tn_i64 item = begin; item < end; item++) {");
    line(p, "const tn_i64 blocks = (n[%d] + %d) / %d;", EXTENT(c), COLUMNS - 1, COLUMNS);
    line(p, "const tn_i64 c0 = item %% blocks * %d;", COLUMNS);
    line(p, "const tn_i64 c1 = c0 + %d < n[%d] ? c0 + %d : n[%d];", COLUMNS, EXTENT(c), COLUMNS, EXTENT(c));
    line(p, "const tn_i64 row = item / blocks;");
    decode(p, outer, "row");
    line(p, "const tn_i64 R = 1");
    for (int l = 0; l < n->loop_count; l++)
        if (n->reduced >> l & 1)
            line(p, "    * n[%d]", EXTENT(l));
    line(p, "    ;");
    for (int r = 0; r < n->reduction_count; r++)
        line(p, "%s a%d[%d];", tn__ops[n->reduction[r].op].props & TN_ARG ? "tn_i64" : type_text(p, r), r, COLUMNS);
    for (int level = 0, passes = tn__nest_passes(n); level < passes; level++) {
        hoist_pass(p, level, n->reduced | column);
        if (reductions(n, level, false)) {
            line(p, "{");
            column_sums(p, level);
            line(p, "}");
        } else if (has_stores(n, level)) {
            line(p, "for (tn_i64 r = 0; r < R; r++) {");
            decode(p, n->reduced, "r");
            each_column(p);
            new_scope(p);
            element(p, level);
            line(p, "}");
            line(p, "}");
        }
        if (reductions(n, level, true)) {
            line(p, "{");
            column_positions(p, level);
            line(p, "}");
        }
    }
    bool any = false;
    for (int s = 0; s < n->store_count; s++)
        any = any || n->store[s].row;
    if (any) {
        for (int s = 0; s < n->store_count; s++)
            if (n->store[s].row)
                hoist(p, n->store[s].expr, n->reduced | column);
        each_column(p);
        new_scope(p);
        for (int s = 0; s < n->store_count; s++)
            if (n->store[s].row)
                print_store(p, &n->store[s]);
        line(p, "}");
    }
    line(p, "}");
}

/* ---- a nest ---- */

void tn__print_nest(tn__printer *p)
{
    tn__nest *n = p->nest;
    p->scopes = FIRST_SCOPE;
    p->scope = NOWHERE;
    p->depth = 0;
    for (int e = 0; e < n->expr_count; e++)
        n->expr[e].printed = NOWHERE;
    line(p, "(void *const *p, const tn_i64 *n, const tn_u64 *s, tn_i64 begin, tn_i64 end, tn_i64 *fault)");
    line(p, "{");
    line(p, "(void)s, (void)fault;");
    for (int i = 0; i < n->access_count; i++) {
        const tn__access *a = &n->access[i];
        if (a->operand < 0)
            continue;
        const char *type = tn__dtypes[a->dtype].ctype, *constant = a->kind == TN__ACCESS_LOAD ? "const " : "";
        line(p, "%s%s *const p%d = (%s%s *)p[n[%d]];", constant, type, i, constant, type, a->param);
    }
    if (!n->reduced)
        emit_elementwise(p);
    else if (n->last_kept)
        emit_columns(p);
    else
        emit_rows(p);
    line(p, "}");
    tn__text_add(p->text, "\n");
}

/* Items of a nest, and roughly the operations of one. */
void tn__nest_items(const tn__nest *n, int64_t *items, int64_t *cost)
{
    int64_t points = tn__nest_points(n), weight = 1 + n->expr_count;
    if (n->loop_count == 0) {
        *items = 1;
    } else if (!n->reduced) {
        int64_t last = n->extent[n->loop_count - 1], outer = last ? points / last : 0;
        *items = outer * ((last + TN__STRETCH - 1) / TN__STRETCH);
    } else if (n->last_kept) {
        int64_t last = n->extent[n->loop_count - 1], rows = tn__nest_rows(n);
        *items = last ? rows / last * ((last + COLUMNS - 1) / COLUMNS) : 0;
    } else {
        *items = tn__nest_rows(n);
    }
    *cost = *items ? points * weight / *items + 1 : 1;
}
