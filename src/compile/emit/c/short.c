/* SPDX-License-Identifier: MIT */
/*
 * Elementwise loops in C over short rows, of 3 colours or 10 classes: one loop runs through several rows. What lies in
 * one piece is read and written where it is; of the rest, a row for all or a number a row, the elements of these rows
 * are copied side by side first.
 */
#include "compile/emit/c/c.h"

#define LONGEST     32   /* rows that are short */
#define FEWEST      512  /* elements of them that pay */
#define TOGETHER    1024 /* elements of a round */
#define MOST_STAGED 6

static int last_of(const tn__nest *n) { return n->loop_count - 1; }

static bool in_one_piece(const tn__nest *n, const tn__access *a)
{
    int last = last_of(n);
    return a->stride[last] == 1 && a->stride[last - 1] == n->extent[last];
}

static bool varies(const tn__nest *n, const tn__access *a)
{
    int last = last_of(n);
    return a->stride[last] || a->stride[last - 1];
}

bool tn__c_is_short(const tn__nest *n)
{
    int last = last_of(n), staged = 0;
    if (n->reduced || n->loop_count < 2 || n->extent[last] > LONGEST || n->extent[last] * n->extent[last - 1] < FEWEST)
        return false;
    for (int i = 0; i < n->access_count; i++) {
        const tn__access *a = &n->access[i];
        if (a->gathered || a->operand < 0 || (a->kind != TN__ACCESS_LOAD && !in_one_piece(n, a)))
            return false;
        staged += a->kind == TN__ACCESS_LOAD && varies(n, a) && !in_one_piece(n, a);
    }
    for (int e = 0; e < n->expr_count; e++)
        if (n->expr[e].kind != TN__EXPR_LOAD && n->expr[e].kind != TN__EXPR_SCALAR && n->expr[e].kind != TN__EXPR_OP)
            return false;
    return staged <= MOST_STAGED;
}

int64_t tn__c_short_items(const tn__nest *n)
{
    int last = last_of(n);
    int64_t points = tn__nest_points(n), rows = n->extent[last - 1], extra[2];
    tn__c_short_extras(n, extra);
    return points ? points / n->extent[last] / rows * extra[0] : 0;
}

int tn__c_short_extras(const tn__nest *n, int64_t *extra)
{
    int last = last_of(n);
    int64_t most = n->extent[last] > 0 ? TN__STRETCH / n->extent[last] : TN__STRETCH;
    extra[0] = (n->extent[last - 1] + most - 1) / most;
    extra[1] = most;
    return 2;
}

/* Copies the rows from `first` up to `end` of an operand side by side. */
static void stage(tn__printer *p, int access, const char *first, const char *end)
{
    int last = last_of(p->nest), row = last - 1;
    tn__line(p, "for (tn_i64 x%d = %s, t = 0; x%d < %s; x%d++)", row, first, row, end, row);
    tn__line(p, "    for (tn_i64 x%d = 0; x%d < length; x%d++)", last, last, last);
    tn__emit_indent(p);
    tn__text_addf(p->text, "        c%d->e[t++] = p%d[", access, access);
    tn__print_position(p, &p->nest->access[access]);
    tn__text_add(p->text, "];\n");
}

/* Where the operands of a round are, as c0, c1, ... */
static void place(tn__printer *p, bool of_round)
{
    const tn__nest *n = p->nest;
    int last = last_of(n);
    for (int i = 0; i < n->access_count; i++) {
        const tn__access *a = &n->access[i];
        const char *type = tn__dtypes[a->dtype].ctype;
        bool piece = in_one_piece(n, a), once = !piece && !a->stride[last - 1];
        if (!varies(n, a) || once == of_round)
            continue;
        tn__access_note_of(p, a)->staged = true;
        if (!piece) {
            tn__line(p, "struct { %s e[%d]; } c%d[1];", type, TOGETHER, i);
            stage(p, i, once ? "0" : "t0", once ? "many" : "t1");
            continue;
        }
        tn__emit_indent(p);
        tn__text_addf(p->text, "%sstruct { %s e[1 << 28]; } *const c%d = (void *)&p%d[",
                      a->kind == TN__ACCESS_LOAD ? "const " : "", type, i, i);
        tn__print_position(p, a);
        tn__text_add(p->text, "];\n");
    }
}

void tn__c_emit_short(tn__printer *p)
{
    const tn__nest *n = p->nest;
    int last = last_of(n), row = last - 1, stretches = TN__EXTENT(n->loop_count);
    uint32_t inner = 1u << last | 1u << row;
    p->vector_loop = last;
    tn__line(p, "for (tn_i64 item = begin; item < end; item++) {");
    tn__line(p, "const tn_i64 s0 = item %% n[%d] * n[%d];", stretches, stretches + 1);
    tn__line(p, "const tn_i64 s1 = s0 + n[%d] < n[%d] ? s0 + n[%d] : n[%d];", stretches + 1, TN__EXTENT(row),
             stretches + 1, TN__EXTENT(row));
    tn__line(p, "const tn_i64 length = n[%d], many = %d / length;", TN__EXTENT(last), TOGETHER);
    if (tn__nest_loops(n) & ~inner) {
        tn__line(p, "const tn_i64 rest = item / n[%d];", stretches);
        tn__emit_decode(p, tn__nest_loops(n) & ~inner, "rest");
    }
    for (int s = 0; s < n->store_count; s++)
        tn__emit_hoist(p, n->store[s].expr, inner);
    place(p, false);
    tn__line(p, "for (tn_i64 t0 = s0; t0 < s1; t0 += many) {");
    tn__line(p, "const tn_i64 t1 = t0 + many < s1 ? t0 + many : s1;");
    tn__line(p, "const tn_i64 x%d = t0, x%d = 0;", row, last);
    place(p, true);
    tn__line(p, "const int width = (int)((t1 - t0) * length);");
    tn__line(p, "TN_INDEPENDENT");
    tn__line(p, "for (int t = 0; t < width; t++) {");
    p->lane = "t";
    p->flat = true;
    tn__emit_scope(p);
    tn__emit_stores(p, false, 0);
    p->lane = NULL;
    p->flat = false;
    for (int open = 3; open; open--)
        tn__line(p, "}");
}
