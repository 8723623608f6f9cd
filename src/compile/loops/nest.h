/* SPDX-License-Identifier: MIT */
/*
 * Loop nests: the kernel's intermediate form. A nest runs over the extents of its loops, some of which may be reduced.
 * Its targets are values of the graph: reductions over exactly the reduced loops, elementwise values over all loops,
 * and elementwise values over the kept loops ("row" values). Everything between them and memory is inlined as
 * expressions.
 */
#ifndef TN_COMPILE_LOOPS_NEST_H
#define TN_COMPILE_LOOPS_NEST_H

#include "compile/ir/draft.h"
#include "compile/ir/numbers.h"
#include "core/memory.h"

#define TN__MAX_LOOPS TN_MAX_NDIM
#define TN__MOST_PLACES 128 /* of gathered lines, or along k, that a product's block knows */

/* Where a nest touches memory, or counts positions (INDEX): an affine function of the loop variables. */
typedef enum tn__access_kind { TN__ACCESS_LOAD, TN__ACCESS_STORE, TN__ACCESS_INDEX } tn__access_kind;

/* How a nest reads or writes one value: an affine function of the loop variables, offset + sum of stride[l] * x<l>, to
 * which a gathered one adds gather_stride times an index. `operand`, `param`, `idle` and `whole` are its place in the
 * step that the nest becomes; what an emission notes besides is in a tn__access_note (emit/emit.h). */
typedef struct tn__access {
    tn__access_kind kind;
    int value;                      /* whose memory */
    tn_dtype dtype;
    int64_t stride[TN__MAX_LOOPS];  /* by loop, in elements */
    int64_t offset;
    int64_t gather_stride;          /* LOAD through an index: elements a position, and their number */
    int64_t gather_extent;
    bool gathered;
    bool known;                     /* gathered: positions are in range, so that the kernel need not check them */
    bool factor;                    /* LOAD of a product: gather_extent elements gather_stride apart, along k, for each
                                       position */
    int64_t lines;                  /* > 0: a factor of a product whose rows are chosen by positions, out of so many */
    bool by_k;                      /* with `lines`: the positions go by k instead, as the factor lies transposed */
    int lines_at;                   /* with `lines`: the expression of the positions, in the variable of the rows */
    int64_t counted;                /* > 0: an access to such positions, of which so many are read */
    bool early;                     /* LOAD of a leaf that no earlier step of the program writes to */
    bool constant;                  /* early, and no run ever writes to it */
    bool raw;                       /* LOAD: not an element, but all gather_extent elements, for a user's function */
    bool pointwise;                 /* each iteration touches the element of its own position, and no other */
    int operand, param;             /* its operand in the step; where that number, offset and strides are in the nest's
                                       n[] */
    bool idle;                      /* not used by the part of a split nest that is being emitted */
    int64_t whole;                  /* > 0: the temporary of a split nest's partial results, of so many elements */
    bool in_registers;              /* of a back-to-back product: the factor that it shares with the product before it,
                                       still in the registers of the same threads */
} tn__access;

typedef enum tn__expr_kind {
    TN__EXPR_LOAD,     /* access; gathered: args[0] is the index */
    TN__EXPR_INDEX,    /* a generated value: op over access's position */
    TN__EXPR_SCALAR,
    TN__EXPR_OP,
    TN__EXPR_RAW,      /* access as a pointer: a raw argument of a user's function */
    TN__EXPR_PRODUCT,  /* the element of the nest's product */
    TN__EXPR_REDUCED,  /* the result of reduction `reduction` */
    TN__EXPR_SINGLE    /* a reduction of one element */
} tn__expr_kind;

/* A node of the nest's expressions, one for each value that is computed at a position; arguments come before it. */
typedef struct tn__expr {
    tn__expr_kind kind;
    tn__op op;
    tn_dtype dtype;
    int arity;
    int arg[TN__GRAPH_INPUTS];
    const struct tn__user *user; /* OP of a user */
    int output;
    int access, scalar, reduction;
    uint32_t loops;    /* the loops it varies with */
    int level;         /* how many passes have to be over before it can be computed (see tn__reduction) */
} tn__expr;

/* A reduction over the nest's reduced loops. A nest goes through these loops once for each level: what a reduction of
 * level 1 reduces may depend on results of level 0, as a variance does on the mean. */
typedef struct tn__reduction {
    int value;         /* the target */
    tn__op op;
    tn_dtype dtype;    /* of its elements */
    const struct tn__user *user; /* USER_REDUCE */
    bool about_mean;   /* SUM: as that of a value's attr. An accumulator is a tn_deviations, on a GPU only */
    int arg;           /* expression */
    int level;         /* the pass that computes it */
} tn__reduction;

typedef struct tn__store {
    int value, expr, access;
    bool row;          /* over the kept loops only */
    int level;         /* pass after which (or in which) it can be written */
} tn__store;

/* Position in a value of the graph as a function of the loops: dimension d is at offset[d] + coefficient[d] *
 * loop[d]. */
typedef struct tn__map {
    int8_t loop[TN_MAX_NDIM]; /* -1: only the offset */
    int64_t coefficient[TN_MAX_NDIM], offset[TN_MAX_NDIM];
} tn__map;

typedef struct tn__memo {
    int value, expr;
    tn__map map;
} tn__memo;

#define TN__MAX_PARTIALS 4

/* What of a nest a step computes: all, or of a split reduction (schedule/split.c) the partial or the final pass. */
typedef enum tn__part { TN__PART_WHOLE, TN__PART_PARTIAL, TN__PART_FINAL } tn__part;

/* The main loops of products, each in its file: product.cuh, product_tensor.cuh, product_resident.cuh; the last three
 * are in product_skinny.cuh. */
typedef enum tn__main_loop {
    TN__MAIN_LOOP_PLAIN,
    TN__MAIN_LOOP_TENSOR,
    TN__MAIN_LOOP_RESIDENT,
    TN__MAIN_LOOP_SKINNY,
    TN__MAIN_LOOP_SHORT,
    TN__MAIN_LOOP_BACK_TO_BACK /* of a product computed in the blocks of a skinny one */
} tn__main_loop;

/* How a block of threads computes its part of a product: the template arguments of a main loop. */
typedef struct tn__product_tile {
    int rows, columns, rows_each, columns_each, lanes_down, slices, step, stages;
    int threads;
    tn__main_loop main_loop;
} tn__product_tile;

/* The matrix product of a nest: its elements are sums over k of products of two factors (product.h). */
typedef struct tn__nest_product {
    bool there;
    tn_dtype dtype;
    bool tensor;                    /* on tensor cores, by tn_set_matmul_precision */
    int access[2];                  /* its factors */
    int row_loop, column_loop;      /* -1: of extent 1 */
    tn__product_tile tile;          /* of tn__product_settle */
    int param;                      /* where the tiles down and across are in the nest's n[] */
    bool back_to_back;              /* its blocks then call the nest of a second product, of which these three tell: */
    int next_value;                 /* its first factor, a value that this nest stores */
    const char *next;               /* the name of its function */
    int next_param;                 /* which n[] of this nest holds where its own n[] begins */
} tn__nest_product;

/* Perfectly nested loops that compute the values `target`: the kept loops outside, the reduced ones inside, gone
 * through once a level. What is above "Built by" says what to compute; the rest is the program for it. */
typedef struct tn__nest {
    int number;                 /* for owner[] */
    int loop_count;
    int64_t extent[TN__MAX_LOOPS];
    uint32_t reduced;           /* loops that are reduced */
    tn__nest_product product;
    bool last_kept;             /* outer order of device/order.h: decided by the logical shape, before loops merge */
    int64_t innermost;          /* extent of the last reduced loop before loops merge, for orders that depend on the
                                   shape alone */
    tn__part part;              /* that is being emitted */
    int64_t segments;           /* pieces of a row */
    bool horizontal;            /* shares a launch with a product that leaves few multiprocessors idle */
    int partial[TN__MAX_PARTIALS][2]; /* accesses to the pieces' results of each reduction, and to their positions */
    int target_count;
    size_t target_capacity;
    int *target;
    /* Built by tn__nest_build from the above: */
    int expr_count, access_count, reduction_count, store_count, memo_count;
    size_t expr_capacity, access_capacity, reduction_capacity, store_capacity, memo_capacity;
    tn__expr *expr;
    tn__access *access;
    tn__reduction *reduction;
    tn__store *store;
    tn__memo *memo;
} tn__nest;

/* The map that puts the dimensions of a shape with extents other than 1 on loops in order: on all loops, or, of a row,
 * on the kept ones. False if they do not correspond. */
bool tn__map_identity(const tn__nest *nest, const tn__shape *shape, bool row, tn__map *map);
bool tn__map_equal(const tn__map *a, const tn__map *b, int ndim);
/* The map of a view's input from the map of the view. False for reshapes that are more than dropped or new extents of
 * 1. */
bool tn__map_through(const tn__graph *graph, const tn__value *v, const tn__map *out, tn__map *in);

/* What the values of the graph are to the fuser. */
typedef struct tn__fusion {
    tn__draft *draft;
    const tn__graph *graph;
    bool *stored;               /* in memory, or the target of a nest: = draft->stored for views and constants too */
    int *owner;                 /* the nest that computes a target, -1: none */
    bool parallel;              /* on a GPU: nests repeat a small gather rather than wait for another nest's */
} tn__fusion;

/* A nest over the domain of one value that becomes its target. False without memory. */
bool tn__nest_start(const tn__fusion *fusion, int value, tn__nest *nest);
bool tn__nest_add_target(tn__nest *nest, int value);

typedef enum tn__built { TN__BUILT, TN__BUILT_MISFIT, TN__BUILT_NO_MEMORY } tn__built;
/* Makes expressions, accesses, reductions and stores from the targets. MISFIT: a target refers to another one of the
 * nest at another position than its own, so they can't share loops. */
tn__built tn__nest_build(const tn__fusion *fusion, tn__nest *nest);
/* Checks a built nest's invariants: loops, passes, that nothing reaches outside its value (nest_verify.c). NULL or a
 * static description of what is broken. */
const char *tn__nest_verify(const tn__graph *graph, const tn__nest *nest);
/* Drops the stores of targets that nobody outside needs. */
void tn__nest_drop_store(tn__nest *nest, int value);
/* Merges neighbouring loops that every access walks as one. */
void tn__nest_collapse(tn__nest *nest);
void tn__nest_clear(tn__nest *nest);
void tn__nest_free(tn__nest *nest);

/* Number of points of the loops; of the kept ones only. */
int64_t tn__nest_points(const tn__nest *nest);
int64_t tn__nest_rows(const tn__nest *nest);
/* Do both run over the same extents? */
bool tn__nest_same_loops(const tn__nest *a, const tn__nest *b);

/* True for a reduction over extents of 1 only: elementwise, really. */
static inline bool tn__reduces_nothing(const tn__graph *graph, int v)
{
    const tn__value *value = &graph->value[v];
    const tn__shape *in = graph->value[value->in[0]].shape;
    for (int d = 0; d < in->ndim; d++)
        if (value->attr.axes >> d & 1 && in->dim[d] != 1)
            return false;
    return true;
}

/* Is one of its sums about the mean? Its accumulators are tn_deviations then. */
static inline bool tn__nest_deviates(const tn__nest *nest)
{
    for (int r = 0; r < nest->reduction_count; r++)
        if (nest->reduction[r].about_mean)
            return true;
    return false;
}

/* ---- facts of products (nest_product.c) ---- */

/* The extents of a nest's product. */
typedef struct tn__product_extents {
    int64_t batch, rows, columns, depth;
} tn__product_extents;

tn__product_extents tn__product_extents_of(const tn__nest *nest);
/* Parts of a size that an extent is cut in. */
static inline int64_t tn__parts(int64_t extent, int64_t size) { return (extent + size - 1) / size; }
/* Of one that is settled: tiles of the rows and of the columns, and of all matrices. */
int64_t tn__product_tiles_down(const tn__nest *nest);
int64_t tn__product_tiles_across(const tn__nest *nest);
int64_t tn__product_blocks(const tn__nest *nest);

/* ---- facts of nests (nest_facts.c) ---- */

uint32_t tn__nest_loops(const tn__nest *n);
bool tn__nest_has_stores(const tn__nest *n, int level);
int tn__nest_reductions(const tn__nest *n, int level, bool arg);
/* How many elements are reduced to one. */
int64_t tn__nest_length(const tn__nest *n);
/* Do stretches of this reduction go on in twice the precision? Of any reduction of a pass? (device/order.h) */
bool tn__nest_widens(const tn__nest *n, int r);
bool tn__nest_widens_any(const tn__nest *n, int level);
/* Whether what a reduction starts from can be left out where there is an element, and combined with it as often as one
 * likes. Not what a user says that one starts from, and not the 1 of complex products: (1+0j)(-0-0j) is 0-0j, and
 * (1+0j)(inf+0j) is inf+nanj. */
bool tn__nest_start_is_neutral(const tn__nest *n, int r);
int tn__nest_reduced_expr(const tn__nest *n, int r);
/* Do elements of a pass take no more than so many expressions, and are none stored? */
bool tn__nest_is_short(const tn__nest *n, int level, int most);
/* Passes over the reduced loops: for reductions that need others first, and for elements that need reductions. */
int tn__nest_passes(const tn__nest *n);

/* ---- emission (emit/step.c, schedule/split.c, emit/text.c) ---- */

/* What of the text in front of all functions something needs: parts of the dialect, the cores of products. */
enum {
    TN__NEEDS_MATH = 1,
    TN__NEEDS_INTEGERS = 2,
    TN__NEEDS_RANDOM = 4,
    TN__NEEDS_COMPLEX = 8,
    TN__NEEDS_DRAWS = 16,
    TN__NEEDS_PRODUCTS = 32,
    TN__NEEDS_TENSOR = 64,
    TN__NEEDS_RESIDENT = 128,
    TN__NEEDS_SKINNY = 256,
    TN__NEEDS_USER = 512,
    TN__NEEDS_REAL = TN__NEEDS_MATH | TN__NEEDS_RANDOM | TN__NEEDS_COMPLEX
};

/* A piece of the text: an operation's function, a user's, a nest's, or a kernel. */
typedef struct tn__piece {
    char *text;
    char name[24];     /* of a nest's function or a kernel: a hash of what it does, which is the same in every plan */
    bool function;     /* comes in front of all nests */
    bool kernel;
    uint32_t needs;
    tn__numbers uses;  /* the pieces that it calls, those that these call, and so on */
} tn__piece;

/* A user's function in the text, and its preamble; -1: it has none. */
typedef struct tn__user_piece {
    const struct tn__user *user;
    int function, preamble;
} tn__user_piece;

/* The text of kernels under construction. */
typedef struct tn__emitter {
    const struct tn__emit_target *target;
    const tn__capabilities *chip;
    tn__piece *piece;          /* each behind those that it uses */
    int piece_count;
    size_t piece_capacity;
    int *declared;             /* by op * dtype: 1 and the piece that its function is, 0: none yet */
    uint32_t *table, table_size; /* finds nests' functions and kernels by their names */
    tn__user_piece *user;      /* users' functions used so far */
    int user_count;
    size_t user_capacity;
    uint32_t needs;            /* of what is being printed */
    tn__numbers uses;
    bool resident_products;    /* there are some */
    bool failed;
} tn__emitter;

/* Nests that a kernel runs one after another; or a single one, of which each worker has a share. */
typedef struct tn__kernel_part {
    tn__nest *const *nest;
    int count;
} tn__kernel_part;

/* Appends a kernel of horizontally fused parts: on a GPU each has blocks of its own (elsewhere there is one part).
 * Fills in the step: operands, parameters, scalars, items, costs, label. False without memory. */
bool tn__emit_step(tn__emitter *emitter, const tn__kernel_part *part, int parts, tn__draft_step *step);
/* Two steps for a nest that the target splits. */
bool tn__emit_split(tn__draft *draft, tn__emitter *emitter, tn__nest *nest);
/* The whole text: the prelude that is needed, the functions, the kernels, and which of its stretches each kernel is
 * made of. False without memory. Empties the emitter. */
bool tn__emit_finish(tn__emitter *emitter, tn__draft *draft);

#endif
