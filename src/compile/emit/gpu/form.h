/* SPDX-License-Identifier: MIT */
/*
 * What the files that print a GPU's loops share: form.c and reduced.c (how a nest is spread over threads), launch.c
 * (how it is spread over blocks), walk.c (index arithmetic), vectors.c (loads and stores), elements.c (elements and
 * divisions), combine.c (how threads combine results), and one file for each form. They print C's expressions and
 * statements; everything else that differs between languages is a word or a function, which the language's folder
 * defines.
 *
 * Words, in the target's table (see words.c):
 *     @memory, @shared         in front of the type that a pointer to device memory, or shared memory, points to; or ""
 *     @thread, @threads        an int: which thread of its block this one is; how many a block has
 *     @barrier, @warp_barrier  calls: all threads of a block, or of a warp, have come here, and see what others wrote
 *     @unroll, @unroll_by(n)   lines in front of a loop
 *     @vector(T, n)            a type with an array e of n elements
 *     @reference(T, n)         in front of a variable's name: a reference to another; a language without references
 *                              leaves the word out, and has no aligned path
 * Functions or macros, in its helpers:
 *     tn_load(to, from, live, whole), tn_load_apart(to, from, live, stride), tn_store, tn_store_apart: vectors, of
 *         which `live` elements are there; `whole`: all, and aligned; tn_aligned(p, bytes)
 *     tn_quotient(x, d, m, shift): x / d for two numbers of type ix, by the two words of tn__gpu_extras
 *     tn_down(x, h, width), tn_first(x, width): x of the thread h lanes on, or of the first one, among `width` lanes of
 *     a warp tn_shared, tn_parts[2], tn_places[2]: shared memory that the launch asks for, and of fixed size
 *     tn_deviations, tn_deviate, tn_squares: numbers' deviations from their mean
 *     tn_inverse, tn_divides, tn_unchecked_<operation>: divisions, for operands not near the ends of the range
 *     tn_<random operation>(to, key, counter, i), tn_<..>_apart(.., carries): a vector of random numbers
 *     tn_rank, tn_of, tn_join: clusters of blocks, on chips that have them
 *
 * A vector is `width` neighbours along one loop, the form's, which a thread handles together: it loads them at once, 16
 * bytes where they lie in one piece, computes them one by one, and stores them at once. In the text, b<l> is the
 * position of a vector's first element along loop l, `live` how many of its elements exist, u the number of the current
 * element in the vector, and x<l> its position along loop l.
 */
#ifndef TN_COMPILE_EMIT_GPU_FORM_H
#define TN_COMPILE_EMIT_GPU_FORM_H

#include "compile/emit/emit.h"

#define TN__GPU_THREADS  256  /* threads of a block, by default */
#define TN__GPU_TOGETHER 512  /* threads of the single block that runs several nests */
#define TN__GPU_MOST     1024 /* the most threads that a block can have */
#define TN__GPU_EXPRS    512  /* most expressions of a nest for which it is tracked which values live from pass to
                                 pass */

typedef enum tn__gpu_kind {
    TN__GPU_ELEMENTWISE, /* a thread takes vectors */
    TN__GPU_TILES,       /* a block takes a tile, which it transposes in shared memory */
    TN__GPU_ROWS,        /* `lanes` threads take a row */
    TN__GPU_COLUMNS,     /* `lanes` threads side by side take a vector of columns each; others of the block take other
                             rows */
    TN__GPU_COMBINE      /* the columns of partial results of a split reduction */
} tn__gpu_kind;

typedef struct tn__gpu_form {
    tn__gpu_kind kind;
    bool wide;            /* positions need 64 bits */
    int loop;             /* the loop whose neighbours make a vector; -1: none */
    int width;            /* elements of a vector */
    int batch;            /* a thread's vectors that are in flight together; with `in_registers` all that it has of a
                             row or column */
    bool in_registers;    /* ROWS, COLUMNS: values stay in registers from pass to pass */
    int streams;          /* COLUMNS: interleaved accumulators of a thread for each column; variances have 1 */
    int cluster;          /* ROWS: blocks of a cluster that share a row, each with `threads` of its lanes; 0: one
                             block has them all */
    int64_t shared;       /* ROWS: bytes of shared memory in which loads stay from pass to pass; 0: each pass loads
                             again */
    int64_t exchanged; /* TILES, COLUMNS, COMBINE: bytes of shared memory through which threads pass values to others */
    int lanes;            /* threads of a row or side by side, a power of two. ROWS: part of the text; COLUMNS: an
                             argument */
    int tiled, tile;      /* TILES: the loop that loads run along; the extent of a tile */
    int64_t vectors;      /* number of vectors along `loop`; ROWS: of a row */
    int64_t rows;         /* what segments divide. COLUMNS: reduced elements; ROWS: vectors of a row */
    int64_t segments, segment; /* how many segments a split reduction has, and the length of each */
    int64_t groups;       /* groups of rows, of vectors, or tiles: a block takes one at a time (of each segment) */
    int threads;
    int resident;         /* second argument of __launch_bounds__, blocks of a multiprocessor; 0: it is left out */
} tn__gpu_form;

/* The compiler's policy for GPUs of any language, which passes ask (defined in gemm/product.c). */
extern const tn__target_policy tn__gpu_policy;

tn__gpu_form tn__gpu_form_of(const tn__capabilities *chip, const tn__nest *nest);
/* Is each row of the nest kept in the registers of several blocks (a cluster), so that only the first pass reads
 * memory? */
bool tn__gpu_holds_rows(const tn__capabilities *chip, const tn__nest *nest);
/* Must the nest be split? True for columns that several passes need, and for nests of more reductions than can be
 * split, if without splitting there is too little parallel work for the chip. */
bool tn__gpu_needs_splitting(const tn__capabilities *chip, const tn__nest *nest);
/* Is the nest better done in two steps, segments first and their partial results then? Sets nest->segments. */
bool tn__gpu_splits(const tn__emitter *emitter, tn__nest *nest);

/* Indices of a form's parameters in n[], after the extents of the loops. */
#define TN__GPU_MAGIC(nest, l) (1 + (nest)->loop_count + 2 * (l)) /* magic multiplier and shift to divide by the
                                                                     extent of loop l */
#define TN__GPU_AFTER(nest)    TN__GPU_MAGIC(nest, (nest)->loop_count)
#define TN__GPU_VECTORS(nest)   TN__GPU_AFTER(nest)               /* vectors along the form's loop, then the two
                                                                     words to divide by that number */
#define TN__GPU_GROUPS(nest)   (TN__GPU_AFTER(nest) + 3)
#define TN__GPU_SEGMENT(nest)  (TN__GPU_AFTER(nest) + 4)
#define TN__GPU_SEGMENTS(nest) (TN__GPU_AFTER(nest) + 5)
#define TN__GPU_LANES(nest)    (TN__GPU_AFTER(nest) + 6)
#define TN__GPU_ROWS_AT(nest)  (TN__GPU_AFTER(nest) + 7)
int tn__gpu_extras(const tn__emitter *emitter, const tn__nest *nest, int64_t *extra);

/* ---- walk.c ---- */

/* Prints the declarations at the start of a kernel: ix, the type of positions; for each access, whether vectors of it
 * can be loaded or stored as a whole; R, the number of reduced elements. */
void tn__gpu_begin(tn__printer *p, const tn__gpu_form *f);
/* ELEMENTWISE: declares `aligned`, which is true at run time if the loop's end cuts off no vector and all vectors of
 * every access in one piece can be moved as a whole. Returns false, and declares nothing, if no access is in one piece.
 * tn__gpu_print_whole opens a scope in which `aligned` holds, so that no access is tested again. */
bool tn__gpu_print_aligned(tn__printer *p, const tn__gpu_form *f);
void tn__gpu_print_whole(tn__printer *p, const tn__gpu_form *f);
/* Declares the positions along the given loops, decoded from a number that counts through them: the vectors of the
 * form's loop vary fastest, then the last of the other loops. */
void tn__gpu_decode(tn__printer *p, const tn__gpu_form *f, uint32_t loops, const char *from);
/* Decodes an item's number into its index among the kept loops, under the given name, and its segment [begin, end) of
 * reduced rows or vectors; for a split nest, that of segment `part`. */
void tn__gpu_open_segment(tn__printer *p, bool partial, const char *name);
/* Are the elements of an access in a vector neighbours in memory? If so, the variable w<access> tells whether they are
 * aligned, so that they can be moved as a whole. */
bool tn__gpu_in_one_piece(const tn__printer *p, const tn__gpu_form *f, int access);

/* ---- vectors.c ---- */

/* Finds out what a pass computes and loads: which pass first uses each expression, and which values later passes find
 * in registers. Loads that do not vary with the loops in `inner` stay where they are used. */
void tn__gpu_find(tn__printer *p, const tn__gpu_form *f, uint32_t inner);
/* Print a pass's work on vectors: the declarations of those it loads or keeps, their loads, their computation, and the
 * stores. `rows`: the stores of row values instead. The caller has opened a scope in which the vector's positions and
 * `live` are known. */
void tn__gpu_declare(tn__printer *p, const tn__gpu_form *f, int pass);
void tn__gpu_load(tn__printer *p, const tn__gpu_form *f, int pass);
/* Prints the loads that all rows or columns share, before tn__gpu_elements. */
void tn__gpu_load_late(tn__printer *p, const tn__gpu_form *f, int pass);
/* ROWS: the bytes of an access's loads that stay in shared memory; the declaration of their area; the store of what
 * vector `id` has loaded, if a later pass needs it. */
int64_t tn__gpu_shared_bytes(const tn__gpu_form *f, const tn__access *a, int64_t vectors);
void tn__gpu_declare_shared(tn__printer *p, const tn__gpu_form *f);
void tn__gpu_keep(tn__printer *p, const tn__gpu_form *f, int pass);
/* Random numbers are drawn as if each vector began at a block of the generator; this redraws those of the vectors that
 * do not. */
void tn__gpu_mend_random(tn__printer *p, const tn__gpu_form *f, int pass);
/* Opens the branch around that redrawing, which all threads take or none: is there a vector that does not begin at a
 * block? */
void tn__gpu_print_random_apart(tn__printer *p, const tn__gpu_form *f, int pass);
/* ROWS: can the pass be repeated, as it reads no memory that it may have overwritten? */
bool tn__gpu_repeats(const tn__printer *p, const tn__gpu_form *f, int pass);
void tn__gpu_open_elements(tn__printer *p, const tn__gpu_form *f);
void tn__gpu_values(tn__printer *p, bool rows, int pass);
void tn__gpu_store(tn__printer *p, const tn__gpu_form *f, bool rows, int pass);
void tn__gpu_declare_stores(tn__printer *p, const tn__gpu_form *f, bool rows, int pass);
/* Is e a load through a transposing tile? The tile is the array tile<access>, and is read at [j][i]. */
bool tn__gpu_is_transposed(const tn__printer *p, const tn__gpu_form *f, const tn__expr *e);

/* ---- facts.c ---- */

bool tn__gpu_is_random(const tn__expr *e);
bool tn__gpu_makes_random(const tn__nest *nest);
/* Must the missing elements of a cut-off vector not even be computed, as their indices would be garbage, or as users'
 * functions may do anything with their values? */
bool tn__gpu_skips_absent(const tn__nest *nest);
/* Does the nest store a value for each row? */
bool tn__gpu_has_row_values(const tn__nest *nest);
/* Is there a pass after the last combination? If so, its threads may still be reading memory that a stored row or
 * column value overwrites, and a barrier is needed before that store. */
bool tn__gpu_ends_uncombined(const tn__nest *nest);
/* The most 32-bit registers that the values of a vector, and those kept from pass to pass, take at any time; vectors
 * lie along `loop`. INT32_MAX: there are too many values to tell. */
int64_t tn__gpu_kept_words(const tn__nest *nest, int loop, int width);
/* Is a an access that does not vary with the kept loops, of which there are some? */
bool tn__gpu_same_in_rows(const tn__nest *n, const tn__access *a);
/* Is e a load of 16 bits converted to 32? Then the load is kept instead of e, in half as many registers. */
bool tn__gpu_widens(const tn__nest *n, const tn__expr *e);

/* ---- elements.c ---- */

/* Declares the inverses of divisors that are the same for all elements of a pass, before tn__gpu_elements. */
void tn__gpu_declare_inverses(tn__printer *p, int pass);
/* Declares `sure`, and returns true, if a pass can compute its divisions unchecked (see elements.c). */
bool tn__gpu_begin_unchecked(tn__printer *p, int pass);
/* Prints a pass's work on the elements of a vector: their accumulation and what is stored of them. */
void tn__gpu_elements(tn__printer *p, const tn__gpu_form *f, int pass);

/* ---- combine.c ---- */

/* Declares a level's accumulators: `width` for each of a thread's `streams`; 0: a single one. */
void tn__gpu_start(tn__printer *p, const tn__gpu_form *f, int level, int width);
void tn__gpu_accumulate(tn__printer *p, const tn__gpu_form *f, int level);
/* Sums of at most so many elements stay in float32 throughout, unless they are those of a split nest's segments. */
#define TN__GPU_SINGLE 16384
bool tn__gpu_widens_pieces(const tn__nest *n, int r);
/* Sums that continue in float64: whether a level has any; the statements that add to these what was summed in float32,
 * and those that do so whenever it is of a few vectors or rows: they stand behind each of these, and (`batch`) behind
 * each batch of them. */
bool tn__gpu_widens_any(const tn__nest *n, const tn__gpu_form *f, int level);
void tn__gpu_add_few(tn__printer *p, const tn__gpu_form *f, int level);
void tn__gpu_declare_few(tn__printer *p, const tn__gpu_form *f, int level);
void tn__gpu_count_few(tn__printer *p, const tn__gpu_form *f, int level, bool batch);
/* For such a sum, or for the accumulator of another reduction: its variable, its type, the function that combines two,
 * and the one that turns it into a result ("": none). */
const char *tn__gpu_sum(const tn__nest *n, const tn__gpu_form *f, int r);
const char *tn__gpu_sum_type(const tn__printer *p, const tn__gpu_form *f, int r);
const char *tn__gpu_sum_function(tn__printer *p, const tn__gpu_form *f, int r);
const char *tn__gpu_narrowing(const tn__printer *p, const tn__gpu_form *f, int r);
/* Combines the accumulators of the threads of a row; all get the result. */
void tn__gpu_combine_lanes(tn__printer *p, const tn__gpu_form *f, int level, int *used);
/* Combines the accumulators of threads that have the same columns; all get the result. */
void tn__gpu_combine_down(tn__printer *p, const tn__gpu_form *f, int level);
/* Bytes of shared memory that tn__gpu_combine_down takes. */
int64_t tn__gpu_down_bytes(const tn__nest *nest);
/* The letter before the number of the access that reads the segments' partial results of reduction r. */
static inline char tn__gpu_partial(const tn__nest *n, int r) { return n->reduction[r].about_mean ? 'd' : 'p'; }

/* ---- launch.c ---- */

/* Prints the loops of p's nest, by its form. */
void tn__gpu_loops(tn__printer *p);
int64_t tn__gpu_items(const tn__emitter *emitter, const tn__nest *nest);
void tn__gpu_launch(const tn__emitter *emitter, const tn__kernel_part *part, bool alone, tn__part_launch *launch);

/* The fields of a tn__emit_target that are the same for every GPU language. */
#define TN__GPU_FORMS \
    .splits = tn__gpu_splits, .single = TN__GPU_SINGLE, .loops = tn__gpu_loops, .items = tn__gpu_items, \
    .extras = tn__gpu_extras, .launch = tn__gpu_launch

/* ---- the body of a kernel of each form, a file each ---- */

void tn__gpu_emit_elementwise(tn__printer *p, const tn__gpu_form *f);
void tn__gpu_emit_tiles(tn__printer *p, const tn__gpu_form *f);
void tn__gpu_emit_rows(tn__printer *p, const tn__gpu_form *f);
void tn__gpu_emit_columns(tn__printer *p, const tn__gpu_form *f);
void tn__gpu_emit_combine(tn__printer *p, const tn__gpu_form *f);

#endif
