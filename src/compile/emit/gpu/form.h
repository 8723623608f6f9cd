/* SPDX-License-Identifier: MIT */
/*
 * Between the files that write a GPU's loops: form.c and reduced.c (how a nest is spread over threads), launch.c (and
 * over blocks), walk.c (index arithmetic), vectors.c (loads and stores), elements.c (elements, divisions), combine.c
 * (what threads do together), and a file a form. They know no language but C's expressions and statements: what else
 * they write are words and functions, which a language's folder brings.
 *
 * Words, in the target's table (see words.c):
 *     @memory, @shared         in front of the type that a pointer to device memory, or shared memory, points to; or ""
 *     @thread, @threads        an int: which thread of its block this one is; how many a block has
 *     @barrier, @warp_barrier  calls: all threads of a block, or of a warp, have come here, and see what others wrote
 *     @unroll, @unroll_by(n)   lines in front of a loop
 *     @vector(T, n)            a type with an array e of n elements
 *     @reference(T, n)         in front of a variable's name: it stands for another; a language without leaves the word
 *                              out, and does without the aligned path
 * Functions or macros, in its helpers:
 *     tn_load(to, from, live, whole), tn_load_apart(to, from, live, stride), tn_store, tn_store_apart: vectors, of
 *         which `live` elements are there; `whole`: all, and aligned; tn_aligned(p, bytes)
 *     tn_quotient(x, d, m, shift): x / d of two ix, by tn__gpu_extras' two words
 *     tn_down(x, h, width), tn_first(x, width): x of the thread h behind, or of the first, among `width` of a warp
 *     tn_shared, tn_parts[2], tn_places[2]: shared memory that the launch asks for, and of fixed size
 *     tn_deviations, tn_deviate, tn_squares: numbers' deviations from their mean
 *     tn_inverse, tn_divides, tn_unchecked_<operation>: divisions whose operands are not near the range's ends
 *     tn_<random operation>(to, key, counter, i), tn_<..>_apart(.., carries): a vector of random numbers
 *     tn_rank, tn_of, tn_join: clusters of blocks, of chips that have them
 *
 * A vector is `width` neighbours along one loop, the form's, which a thread handles together: it loads them at once, 16
 * bytes where they lie in one piece, computes them one by one, and stores them at once. In the text b<l> is a vector's
 * first place, `live` how many of its elements there are, u which of them is in hand, x<l> its place.
 */
#ifndef TN_COMPILE_EMIT_GPU_FORM_H
#define TN_COMPILE_EMIT_GPU_FORM_H

#include "compile/emit/emit.h"

#define TN__GPU_THREADS  256  /* of a block, where nothing asks for another number */
#define TN__GPU_TOGETHER 512  /* of the one block that runs several nests */
#define TN__GPU_MOST     1024 /* the most a block can have */
#define TN__GPU_EXPRS    512  /* of a nest whose values are followed from pass to pass */

typedef enum tn__gpu_kind {
    TN__GPU_ELEMENTWISE, /* a thread takes vectors */
    TN__GPU_TILES,       /* a block takes a tile, which it transposes in shared memory */
    TN__GPU_ROWS,        /* `lanes` threads take a row */
    TN__GPU_COLUMNS,     /* `lanes` threads side by side take a vector of columns each; others of the block take other
                             rows */
    TN__GPU_COMBINE      /* the same, over the partial results of a split reduction */
} tn__gpu_kind;

typedef struct tn__gpu_form {
    tn__gpu_kind kind;
    bool wide;            /* positions need 64 bits */
    int loop;             /* whose neighbours make a vector; -1: none */
    int width;            /* elements of a vector */
    int batch;            /* vectors of a thread that are in flight together; all that it has of a row or column where
                             `in_registers` */
    bool in_registers;    /* ROWS, COLUMNS: values stay in registers from pass to pass */
    int streams;          /* COLUMNS: interleaved accumulators that a thread has for each column; 1 of variances */
    int cluster;          /* ROWS: blocks that have a row's lanes together, each `threads` of them; 0: a block has them
                             all */
    int64_t shared;       /* ROWS: bytes of shared memory that keep loads from pass to pass; 0: passes read again */
    int64_t exchanged; /* TILES, COLUMNS, COMBINE: bytes of shared memory through which threads pass values to others */
    int lanes;            /* ROWS: a power of two, part of the text; COLUMNS: a power of two, an argument */
    int tiled, tile;      /* TILES: the loop that loads run along; the extent of a tile */
    int64_t vectors;      /* along `loop`; ROWS: of a row */
    int64_t rows;         /* reduced elements, in COLUMNS; vectors of a row, in ROWS: what segments are cut from */
    int64_t segments, segment; /* pieces that a reduction is cut in, and their length */
    int64_t groups;       /* of rows, vectors, tiles: a block takes one at a time (of each segment) */
    int threads;
    int resident;         /* second argument of __launch_bounds__, blocks a multiprocessor; 0: none is given */
} tn__gpu_form;

/* What passes ask of a GPU, whatever its language (gemm/product.c). */
extern const tn__target_policy tn__gpu_policy;

tn__gpu_form tn__gpu_form_of(const tn__capabilities *chip, const tn__nest *nest);
/* Are the nest's rows held by several blocks each, whose passes then read memory once? */
bool tn__gpu_holds_rows(const tn__capabilities *chip, const tn__nest *nest);
/* True for columns that are gone through more than once, and for more reductions than can be split, if there is too
 * little to do beside one another for the chip unless it is split. */
bool tn__gpu_needs_splitting(const tn__capabilities *chip, const tn__nest *nest);
/* True if the nest is better done in two steps: pieces of rows, then what the pieces gave; fills in nest->segments. */
bool tn__gpu_splits(const tn__emitter *emitter, tn__nest *nest);

/* Where the numbers of a form are in n[], behind the extents. */
#define TN__GPU_MAGIC(nest, l) (1 + (nest)->loop_count + 2 * (l)) /* two words to divide by the extent of loop l */
#define TN__GPU_AFTER(nest)    TN__GPU_MAGIC(nest, (nest)->loop_count)
#define TN__GPU_VECTORS(nest)   TN__GPU_AFTER(nest)               /* and two words to divide by them */
#define TN__GPU_GROUPS(nest)   (TN__GPU_AFTER(nest) + 3)
#define TN__GPU_SEGMENT(nest)  (TN__GPU_AFTER(nest) + 4)
#define TN__GPU_SEGMENTS(nest) (TN__GPU_AFTER(nest) + 5)
#define TN__GPU_LANES(nest)    (TN__GPU_AFTER(nest) + 6)
#define TN__GPU_ROWS_AT(nest)  (TN__GPU_AFTER(nest) + 7)
int tn__gpu_extras(const tn__emitter *emitter, const tn__nest *nest, int64_t *extra);

/* ---- walk.c ---- */

/* Declares, at the start of a kernel: ix, the type of positions; for each access whether vectors of it can be moved at
 * once; R, how many elements are reduced. */
void tn__gpu_begin(tn__printer *p, const tn__gpu_form *f);
/* ELEMENTWISE: declares `aligned`, true at run time if the loop's end cuts no vector off and vectors of every access
 * that is in one piece can be moved at once; false, and nothing is declared, if no access is in one piece.
 * tn__gpu_print_whole goes into a scope where `aligned` holds: there the kernel asks for no access again. */
bool tn__gpu_print_aligned(tn__printer *p, const tn__gpu_form *f);
void tn__gpu_print_whole(tn__printer *p, const tn__gpu_form *f);
/* Declares the places of the given loops, from a number that counts through them: fastest are the vectors of the form's
 * loop, then comes the last of the other loops. */
void tn__gpu_decode(tn__printer *p, const tn__gpu_form *f, uint32_t loops, const char *from);
/* From an item, what it is of the kept loops under a name, and the stretch [begin, end) of reduced rows or vectors; of
 * a nest in pieces, number `part`. */
void tn__gpu_open_segment(tn__printer *p, bool pieces, const char *name);
/* Are the elements of an access that belong to a vector neighbours in memory? Then w<access> says whether they lie so
 * that they can be moved at once. */
bool tn__gpu_in_one_piece(const tn__printer *p, const tn__gpu_form *f, int access);

/* ---- vectors.c ---- */

/* Finds what a pass computes and loads: in expressions, first users and what later passes find kept. Loads that do not
 * vary with `inner` stay where they are used. */
void tn__gpu_find(tn__printer *p, const tn__gpu_form *f, uint32_t inner);
/* Declares the variables of vectors that a pass loads or keeps; loads them; computes them; stores what the pass stores.
 * `rows`: the stores of row values instead. The caller has opened a scope in which the vector's places and `live` are
 * known. */
void tn__gpu_declare(tn__printer *p, const tn__gpu_form *f, int pass);
void tn__gpu_load(tn__printer *p, const tn__gpu_form *f, int pass);
/* What all rows or columns have in common, in front of tn__gpu_elements. */
void tn__gpu_load_late(tn__printer *p, const tn__gpu_form *f, int pass);
/* ROWS: declares the places of loads that stay in shared memory; puts there what vector `id` has loaded, if a later
 * pass needs it. */
int64_t tn__gpu_shared_bytes(const tn__gpu_form *f, const tn__access *a, int64_t vectors);
void tn__gpu_declare_shared(tn__printer *p, const tn__gpu_form *f);
void tn__gpu_keep(tn__printer *p, const tn__gpu_form *f, int pass);
/* Random numbers are made as if each vector began with a block of the generator; this makes those of other vectors. */
void tn__gpu_mend_random(tn__printer *p, const tn__gpu_form *f, int pass);
/* Opens a branch around that, which all threads take or none: is there a vector that does not begin so? */
void tn__gpu_print_random_apart(tn__printer *p, const tn__gpu_form *f, int pass);
/* ROWS: does the pass read no memory that it may have overwritten? Then it can be done again. */
bool tn__gpu_repeats(const tn__printer *p, const tn__gpu_form *f, int pass);
void tn__gpu_open_elements(tn__printer *p, const tn__gpu_form *f);
void tn__gpu_values(tn__printer *p, bool rows, int pass);
void tn__gpu_store(tn__printer *p, const tn__gpu_form *f, bool rows, int pass);
void tn__gpu_declare_stores(tn__printer *p, const tn__gpu_form *f, bool rows, int pass);
/* A load that goes through a transposing tile: the tile is tile<access>, and read at [j][i]. */
bool tn__gpu_is_transposed(const tn__printer *p, const tn__gpu_form *f, const tn__expr *e);

/* ---- facts.c ---- */

bool tn__gpu_is_random(const tn__expr *e);
bool tn__gpu_makes_random(const tn__nest *nest);
/* Must a cut-off vector's missing elements not even be computed, as their indices are garbage, or users' functions may
 * do anything with them? */
bool tn__gpu_skips_absent(const tn__nest *nest);
/* Does it store values of rows? */
bool tn__gpu_has_row_values(const tn__nest *nest);
/* Is there a pass behind the last combination? Its threads may still read what a value of their row or column takes the
 * memory of, and have to be waited for. */
bool tn__gpu_ends_uncombined(const tn__nest *nest);
/* The most registers that a vector's values, with those kept from pass to pass, take at any time; vectors are along
 * `loop`. INT32_MAX: there are too many values to tell. */
int64_t tn__gpu_kept_words(const tn__nest *nest, int loop, int width);
/* An access that does not vary with the kept loops, of which there are some. */
bool tn__gpu_same_in_rows(const tn__nest *n, const tn__access *a);
/* Is it a load of 16 bits converted to 32? Then what is kept is the load, in half as many registers. */
bool tn__gpu_widens(const tn__nest *n, const tn__expr *e);

/* ---- elements.c ---- */

/* Inverses of divisors that are the same for all elements of a pass: in front of tn__gpu_elements. */
void tn__gpu_declare_inverses(tn__printer *p, int pass);
/* Declares `sure` if a pass can do its divisions unchecked. */
bool tn__gpu_begin_unchecked(tn__printer *p, int pass);
/* A pass's work on a vector: its elements go into the accumulators and into what is stored. */
void tn__gpu_elements(tn__printer *p, const tn__gpu_form *f, int pass);

/* ---- combine.c ---- */

/* Declares a level's accumulators: `width` of them in a thread, 0: one; times `streams` of the form. */
void tn__gpu_start(tn__printer *p, const tn__gpu_form *f, int level, int width);
void tn__gpu_accumulate(tn__printer *p, const tn__gpu_form *f, int level);
/* Sums of at most so many elements stay in single precision; whether those of a split nest's pieces do not. */
#define TN__GPU_SINGLE 16384
bool tn__gpu_widens_pieces(const tn__nest *n, int r);
/* Whether a level has sums that go on in double precision; how many vectors of a row, or rows, are summed in single
 * precision before that; the statements that then add them to the sums. */
bool tn__gpu_widens_any(const tn__nest *n, const tn__gpu_form *f, int level);
int tn__gpu_few(const tn__gpu_form *f);
void tn__gpu_add_few(tn__printer *p, const tn__gpu_form *f, int level);
/* Of such a sum, or of the accumulator of another reduction: its variable, its type, the function that combines two,
 * and the one that makes a result of it ("": none). */
const char *tn__gpu_sum(const tn__nest *n, const tn__gpu_form *f, int r);
const char *tn__gpu_sum_type(const tn__printer *p, const tn__gpu_form *f, int r);
const char *tn__gpu_sum_function(tn__printer *p, const tn__gpu_form *f, int r);
const char *tn__gpu_narrowing(const tn__printer *p, const tn__gpu_form *f, int r);
/* Combines the accumulators of the threads of a row; all get the result. */
void tn__gpu_combine_lanes(tn__printer *p, const tn__gpu_form *f, int level, int *used);
/* Combines the accumulators of threads that have the same columns; all get the result. */
void tn__gpu_combine_down(tn__printer *p, const tn__gpu_form *f, int level);
/* Bytes of shared memory that it takes. */
int64_t tn__gpu_down_bytes(const tn__nest *nest);
/* The letter in front of the number of the access that has the pieces' results of reduction r. */
static inline char tn__gpu_partial(const tn__nest *n, int r) { return n->reduction[r].about_mean ? 'd' : 'p'; }

/* ---- launch.c ---- */

/* The loops of p's nest. */
void tn__gpu_loops(tn__printer *p);
int64_t tn__gpu_items(const tn__emitter *emitter, const tn__nest *nest);
void tn__gpu_launch(const tn__emitter *emitter, const tn__kernel_part *part, bool alone, tn__part_launch *launch);

/* What of a target is the same in every language of a GPU's. */
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
