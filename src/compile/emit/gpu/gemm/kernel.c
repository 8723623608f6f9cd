/* SPDX-License-Identifier: MIT */
/*
 * Kernels around a matrix product, in CUDA C++. A block computes a tile of the result by the main loop in product.cuh
 * or product_tensor.cuh, which leaves the tile in shared memory (main_loop.c prints that part). The rest of the nest is
 * computed from the tile, each element by the thread whose turn it is:
 *
 *     sums          where a thread has the whole sums, it computes their elements, from its registers: neighbours
 *                   are read and stored together
 *     elementwise   threads go down the rows of a column, several elements each at a time: all their loads first, then
 *                   all their stores, so that the loads do not wait for each other
 *     rows          results of few columns: the tile has whole rows, a warp reduces one
 *     columns       results of few rows: the tile has whole columns, the threads of one combine by halves
 *
 * In the first two forms, a block that has whole rows of a skinny product may go on to multiply these rows by the
 * transpose of the factor that is in its registers (a back-to-back product); the second product's elements stay in
 * registers until they are stored.
 */
#include "compile/emit/gpu/form.h"
#include "compile/emit/gpu/gemm/kernel.h"

#include <stdio.h>
#include <string.h>

/* Elements a thread keeps in registers between its loads and its stores, if none is fetched ahead. */
#define AT_ONCE 16
/* A multiprocessor has 64 K registers. If two blocks of TN__GPU_THREADS threads share it, one kernel may be compiled
 * for more than half of them and the other for the rest, in registers per thread. A thread whose sums take at most
 * FEW_WORDS registers does with LESS_REGISTERS. */
#define MORE_REGISTERS 136
#define LESS_REGISTERS 120
#define FEW_WORDS 32

/* ---- passes ---- */

/* Is the value of store s kept in a variable of the pass over `level`, between its loads and its stores? */
static bool keeps(const tn__nest *n, int s, int level)
{
    return !n->reduced || (!n->store[s].row && n->store[s].level == level);
}

void tn__product_declare_kept(tn__printer *p, int level)
{
    const tn__nest *n = p->nest;
    for (int s = 0; s < n->store_count; s++)
        if (keeps(n, s, level))
            tn__line(p, "%s kept%d[each];", tn__emit_variable_type(n->expr[n->store[s].expr].dtype), s);
    TN__EACH_PLAIN(p, r, level)
        tn__line(p, "%s part%d[each];", tn__emit_type(p, r), r);
    TN__EACH_POSITION(p, r, level)
        tn__line(p, "%s part%d[each];", tn__emit_type(p, r), r);
}

/* The values of an element of a pass. */
void tn__product_keep_values(tn__printer *p, int level)
{
    const tn__nest *n = p->nest;
    for (int r = 0; r < n->reduction_count; r++)
        if (n->reduction[r].level == level) {
            tn__emit_need(p, n->reduction[r].arg);
            tn__line(p, "part%d[u] = v%d;", r, n->reduction[r].arg);
        }
    for (int s = 0; s < n->store_count; s++)
        if (keeps(n, s, level)) {
            tn__emit_need(p, n->store[s].expr);
            tn__line(p, "kept%d[u] = v%d;", s, n->store[s].expr);
        }
}

/* Are a tile's elements computed from registers, by the threads that have their sums, without a detour through shared
 * memory? Not where b lies along k: then the columns of a thread are not neighbours. */
static bool from_sums(const tn__nest *n)
{
    const tn__product_tile *t = &n->product.tile;
    return t->main_loop == TN__MAIN_LOOP_PLAIN && !n->reduced && !n->product.back_to_back &&
           !tn__product_along_k(n, 1) && t->columns_each * tn_dtype_size(n->product.dtype) % (16 * t->slices) == 0;
}

/* Does a thread store four neighbouring elements at once? It does where it has their sums in registers, and in a
 * back-to-back product. */
static bool in_quads(const tn__printer *p, int s)
{
    const tn__nest *n = p->nest;
    const tn__access *a = &n->access[n->store[s].access];
    bool sums = from_sums(n) && tn__access_note_of(p, a)->near && a->dtype == n->product.dtype;
    return (sums || n->product.tile.main_loop == TN__MAIN_LOOP_BACK_TO_BACK) && n->product.column_loop >= 0 &&
           a->stride[n->product.column_loop] == 1 && tn__dtypes[a->dtype].compute == a->dtype;
}

static int stored_apart(const tn__printer *p)
{
    int count = 0;
    for (int s = 0; s < p->nest->store_count; s++)
        count += !in_quads(p, s);
    return count;
}

void tn__product_store_kept(tn__printer *p, int level)
{
    const tn__nest *n = p->nest;
    for (int s = 0; s < n->store_count; s++) {
        const tn__access *a = &n->access[n->store[s].access];
        if (!keeps(n, s, level) || in_quads(p, s))
            continue;
        tn__emit_indent(p);
        tn__print_element(p, n->store[s].access);
        if (a->dtype == TN_FLOAT16 || a->dtype == TN_BFLOAT16)
            tn__text_addf(p->text, " = tn_f32_to_%s(kept%d[u]);\n", tn__dtypes[a->dtype].suffix, s);
        else
            tn__text_addf(p->text, " = kept%d[u];\n", s);
        if (n->product.back_to_back && a->value == n->product.next_value)
            tn__line(p, "((%s *)tn_lines)[row * main_loop::COLUMNS + column] = kept%d[u];", tn__product_type(n), s);
    }
}

/* Prints the passes over a thread's elements, at these rows and columns: first all values, then the stores of those
 * that are not stored four at a time. `sums`: the products are in the thread's registers. */
static void emit_passes(tn__printer *p, const char *row, const char *column, bool sums)
{
    tn__product_declare_kept(p, 0);
    for (int pass = 0; pass < 1 + (stored_apart(p) > 0); pass++) {
        tn__line(p, "#pragma unroll");
        tn__line(p, "for (int u = 0; u < each; u++) {");
        if (pass == 0 && sums)
            tn__line(p, "const auto product = [&](int, int) { return sum[u]; };");
        tn__product_open_element(p, pass == 0, row, column);
        if (pass == 0)
            tn__product_keep_values(p, 0);
        else
            tn__product_store_kept(p, 0);
        tn__line(p, "}");
        tn__line(p, "}");
    }
}

/* ---- ahead of the product ---- */

void tn__product_emit_constants(tn__printer *p)
{
    int scope = p->scope;
    p->scope = TN__SCOPE_ITEM;
    for (int e = 0; e < p->nest->expr_count; e++)
        if (p->expr_note[e].same)
            tn__emit_need(p, e);
    p->scope = scope;
}

/* ---- behind another product ---- */

/* Whatever the second nest of a back-to-back pair reads besides the block's rows is fetched together with what the
 * first nest reads. */
void tn__product_prepare_next(tn__printer *p)
{
    const tn__nest_product *product = &p->nest->product;
    if (product->back_to_back)
        tn__line(p, "const auto next = %s(p, n + n[%d], s, block, fault);", product->next, product->next_param);
}

/* Calls the second nest of a back-to-back pair, once the block's rows are in shared memory and its threads hold b in
 * registers. */
void tn__product_emit_next(tn__printer *p)
{
    if (!p->nest->product.back_to_back)
        return;
    tn__line(p, "__syncthreads();");
    tn__line(p, "next(in_registers);");
}

/* Prints the addresses that a thread stores to, so that they are computed before the values are there. */
static void aim_quads(tn__printer *p)
{
    const tn__nest *n = p->nest;
    for (int s = 0; s < n->store_count; s++) {
        const tn__access *a = &n->access[n->store[s].access];
        bool down = a->stride[n->product.row_loop] != 0;
        tn__access_note_of(p, a)->own = in_quads(p, s);
        if (!tn__access_note_of(p, a)->own)
            continue;
        tn__line(p, down ? "const tn_i64 step%d = n[%d];" : "const tn_i64 step%d = 0;", s,
                 tn__stride_param(a, n->product.row_loop));
        tn__line(p, "auto *const to%d = tn_settled(p%d + n[%d] + top * step%d + own);", s, n->store[s].access,
                 a->param + 1, s);
    }
}

static void store_quads(tn__printer *p)
{
    const tn__nest *n = p->nest;
    tn__line(p, "#pragma unroll");
    tn__line(p, "for (int u = 0; u < each; u += main_loop::QUAD) {");
    tn__line(p, "if (u / main_loop::QUAD < rows && own < columns) {");
    for (int s = 0; s < n->store_count; s++) {
        if (!in_quads(p, s))
            continue;
        tn__line(p, "tn_pack<%s, main_loop::QUAD> quad%d;", tn__dtypes[n->access[n->store[s].access].dtype].ctype, s);
        tn__line(p, "#pragma unroll");
        tn__line(p, "for (int i = 0; i < main_loop::QUAD; i++) quad%d.e[i] = kept%d[u + i];", s, s);
        tn__line(p, "auto *const at%d = to%d + u / main_loop::QUAD * step%d;", s, s, s);
        tn__line(p, "tn_store(quad%d, at%d, columns - own, tn_aligned(at%d, 16));", s, s, s);
    }
    tn__line(p, "}");
    tn__line(p, "}");
}

static void emit_back(tn__printer *p)
{
    const tn__nest *n = p->nest;
    const tn__product_tile *t = &n->product.tile;
    p->emitter->needs |= TN__NEEDS_SKINNY;
    tn__line(p, "typedef tn_back_product<%s, %d, %d, %d> main_loop;", tn__product_type(n), t->rows, t->threads,
             t->step);
    tn__line(p, "const tn_i64 top = block * main_loop::ROWS, left = 0;");
    tn__line(p, "const int rows = tn_within(n[%d] - top, main_loop::ROWS);", TN__EXTENT(n->product.row_loop));
    tn__line(p, "const int columns = tn_within(n[%d], main_loop::COLUMNS);", TN__EXTENT(n->product.column_loop));
    tn__line(p, "const int own = (int)threadIdx.x * main_loop::QUAD;");
    aim_quads(p);
    tn__product_emit_origins(p);
    tn__product_emit_constants(p);
    tn__line(p, "return [=](const auto &in_registers) {");
    tn__line(p, "if (rows == 0 || columns == 0) return;");
    tn__line(p, "constexpr int each = main_loop::EACH;");
    tn__line(p, "%s sum[each];", tn__product_type(n));
    tn__line(p, "main_loop::multiply(sum, (const %s *)tn_lines, in_registers);", tn__product_type(n));
    emit_passes(p, "u / main_loop::QUAD", "own + u % main_loop::QUAD", true);
    if (stored_apart(p) < n->store_count)
        store_quads(p);
    tn__line(p, "};");
}

/* ---- elements of a tile ---- */

static bool differs_down(const tn__printer *p)
{
    const tn__nest *n = p->nest;
    for (int e = 0; e < n->expr_count; e++)
        if (p->expr_note[e].kept && n->product.row_loop >= 0 && n->expr[e].loops >> n->product.row_loop & 1)
            return true;
    return false;
}

static void emit_from_sums(tn__printer *p)
{
    const tn__nest *n = p->nest;
    const tn__product_tile *t = &n->product.tile;
    int each = t->rows_each * t->columns_each / t->slices;
    tn__product_mark(p, each);
    tn__line(p, "constexpr int each = main_loop::EACH;");
    tn__product_emit_main_loop(
        p, &(tn__product_spread){each, "main_loop::own_row(u)", "main_loop::own_column(u)", .sums = true});
    emit_passes(p, "main_loop::own_row(u)", "main_loop::own_column(u)", true);
    for (int s = 0; s < n->store_count; s++) {
        char down[24], across[24];
        if (!in_quads(p, s))
            continue;
        tn__product_steps(n, n->store[s].access, down, across);
        tn__line(p, "main_loop::put(kept%d, q%d, %s, %s, rows, columns);", s, n->store[s].access, down, across);
    }
}

static void emit_elementwise(tn__printer *p)
{
    const tn__nest *n = p->nest;
    const tn__product_tile *t = &n->product.tile;
    int down = t->threads / t->columns, all = (t->rows + down - 1) / down;
    tn__product_mark(p, all);
    int turns = differs_down(p) ? 1 : (all + AT_ONCE - 1) / AT_ONCE, each = (all + turns - 1) / turns;
    tn__line(p, "constexpr int across = main_loop::COLUMNS, down = main_loop::THREADS / across, each = %d;", each);
    tn__line(p, "const int own_column = threadIdx.x %% across, first = threadIdx.x / across;");
    tn__product_emit_main_loop(p, &(tn__product_spread){each, "first + u * down", "own_column",
                                                   .ready = tn__product_prepare_next});
    tn__line(p, "for (int begin = first; begin < main_loop::ROWS; begin += each * down) {");
    emit_passes(p, "begin + u * down", "own_column", false);
    tn__line(p, "}");
    tn__product_emit_next(p);
}

void tn__emit_cuda_product(tn__printer *p)
{
    const tn__nest *n = p->nest;
    tn__product_find(p);
    p->emitter->needs |= TN__NEEDS_PRODUCTS;
    p->vector_loop = -1;
    p->vector = "";
    if (n->product.tile.main_loop == TN__MAIN_LOOP_BACK_TO_BACK) {
        emit_back(p);
        return;
    }
    tn__product_emit_place(p);
    if (from_sums(n))
        emit_from_sums(p);
    else if (!n->reduced)
        emit_elementwise(p);
    else if (n->product.column_loop >= 0 && n->reduced == 1u << n->product.column_loop)
        tn__product_emit_rows(p);
    else
        tn__product_emit_columns(p);
}

/* A kernel is started while the ones before it still run, and its blocks go wherever there is room. A kernel that
 * computes for long asks to be spread, so that no two of its blocks share a multiprocessor while another has none. The
 * first kernel of a run starts beside the last one of the run before it if a multiprocessor has room for a block of
 * each: so the first kernel is given most of the shared memory and less than half of the registers, and the last one
 * the opposite. */
void tn__launch_cuda_product(const tn__nest *nest, const tn__capabilities *chip, tn__part_launch *launch)
{
    const tn__product_tile *t = &nest->product.tile;
    int64_t blocks = tn__product_blocks(nest);
    launch->threads = nest->product.tile.threads;
    launch->most_threads = launch->threads;
    launch->blocks = nest->loop_count && tn__nest_points(nest) == 0 && !nest->reduced ? 0 : blocks;
    launch->shared = tn__product_shared(nest);
    if (chip->multiprocessors && tn__product_is_long(nest))
        launch->spread = (int)((blocks + chip->multiprocessors - 1) / chip->multiprocessors);
    int words = t->rows_each * t->columns_each * (int)tn_dtype_size(nest->product.dtype) / 4;
    if (launch->spread == 1 && t->threads == TN__GPU_THREADS && words <= FEW_WORDS)
        launch->registers = t->main_loop == TN__MAIN_LOOP_RESIDENT ? LESS_REGISTERS
                            : t->main_loop == TN__MAIN_LOOP_PLAIN  ? MORE_REGISTERS
                                                                   : 0;
}
