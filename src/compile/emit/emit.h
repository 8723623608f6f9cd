/* SPDX-License-Identifier: MIT */
/*
 * Between the parts of the emitter: statements.c (statements from expressions), c/ and gpu/ (the loops of a target),
 * words.c (a language's words in them), text.c (functions, names, the whole text), step.c (a kernel's operands,
 * parameters and launch).
 */
#ifndef TN_COMPILE_EMIT_EMIT_H
#define TN_COMPILE_EMIT_EMIT_H

#include "compile/loops/nest.h"

#define TN__STRETCH 16384 /* elements of the last loop that an elementwise item covers, in C */
#define TN__MAX_EXTRAS (2 * TN__MAX_LOOPS + 8)

/* What an emission notes about an expression of its nest; all zero when it begins. */
typedef struct tn__expr_note {
    int printed;       /* scope in which there is a variable for it, 0: none */
    uint32_t passes;   /* that compute it */
    uint32_t walk;     /* the last walk of tn__emit_hoist that came here */
    uint32_t ahead;    /* of a gather that is `checked`, the loops that its address in front of them leaves out */
    bool kept;         /* later passes find it in a variable */
    bool seen;         /* mark of whatever traversal is under way */
    bool checked;      /* a gather whose index was checked in front of the inner loops */
    bool reached;      /* computed in the loop whose strips are being made (c/strip.c) */
    bool made;         /* a strip of these random numbers has been made */
    bool loose;        /* rounding to 16 bits is left to its stores */
    bool early;        /* of a product's nest: all its loads are `early` accesses */
    bool free;         /* of a product's nest: depends on neither product nor reduction, and cannot fail: may come ahead
                          of them */
    bool same;         /* of a product's nest: the same for all elements, without a load */
} tn__expr_note;

/* The same about an access. */
typedef struct tn__access_note {
    bool near;         /* offsets within a product's tile fit in 32 bits */
    bool own;          /* each thread reads one element, whose address is in a variable */
    bool staged;       /* vectors of it have been loaded into variables of their own */
    bool wide;         /* a strip of it is in the dtype computed in (c/strip.c) */
} tn__access_note;

/* What is known while the function of one nest is printed. The flags tell how an access or an operation is spelled in
 * the code that is being printed: loops set and clear them around it. */
typedef struct tn__printer {
    tn__emitter *emitter;
    const tn__nest *nest;
    tn__expr_note *expr_note;     /* one for each of the nest's expressions */
    tn__access_note *access_note; /* and accesses */
    tn__text *text;
    int scalar_param;  /* where in n[] the places of the nest's scalars in s[] begin, in the order of `slot` */
    const int *slot;   /* the scalars, as numbers of the program's */
    int slot_count;
    int vector_loop;   /* the loop that vectors lie along, -1: none */
    const char *index; /* cast of the terms of positions, "": none is needed */
    const char *lane;  /* inside a loop over the elements of a vector: the variable that counts them; NULL elsewhere */
    const char *vector; /* subscript of the vector in hand */
    char column[24];   /* room for a `lane` */
    char strip[24];    /* which element of a strip is in hand (c/strip.c) */
    bool unchecked;    /* divisions and square roots by tn_unchecked_<operation>, which may clear `sure` */
    bool flat;         /* staged vectors are subscripted by `lane` alone, there being one of each access */
    bool literal;      /* strides are written as numbers */
    bool based;        /* positions are printed by the variables that tn__emit_bases has declared */
    bool checks_ahead; /* indices that do not vary with the inner loops are checked in front of them */
    bool early; /* loads come before the kernel has waited for the one before it, so they bypass L1: tn_load_l2 */
    bool in_tile;      /* elements are at `row` and `column` of a product's tile */
    bool whole;        /* where divisions went wrong (`sure`), the whole pass is done again, not each vector */
    int scope, scopes, depth, pass;
    int outer;         /* the scope that expressions are hoisted to; 0: TN__SCOPE_ITEM */
    uint32_t walk;     /* walks of tn__emit_hoist so far */
    char name[2][96];  /* of tn__function and tn__identity */
} tn__printer;

static inline tn__expr_note *tn__note_of(const tn__printer *p, const tn__expr *e)
{
    return &p->expr_note[e - p->nest->expr];
}
static inline tn__access_note *tn__access_note_of(const tn__printer *p, const tn__access *a)
{
    return &p->access_note[a - p->nest->access];
}

/* A call of a nest's function in a kernel. */
typedef struct tn__nest_call {
    int piece;         /* the function's number among the pieces of the text */
    char name[24];
    int param;         /* where its stretch of n[] begins */
    int part;          /* of the kernel */
    bool waits;        /* the function itself waits for the kernel before, once it has done what needs no waiting */
    bool back_to_back; /* the nest before calls it, not the kernel */
} tn__nest_call;

/* The launch that a part of a kernel (nests that run side by side with other parts) asks for. */
typedef struct tn__part_launch {
    int64_t blocks;
    int threads, shared, most_threads, resident, registers, spread, cluster; /* as of a step */
    bool all_threads;  /* works with blocks of more threads, too */
    int param;         /* where the number of blocks is in n[]; parts of a kernel with others only */
} tn__part_launch;

/* A word of a language: see words.c. */
typedef struct tn__word {
    const char *name, *text; /* "thread", "threadIdx.x"; the table ends with a name of NULL */
} tn__word;

/* What differs between the languages and machines that kernels are written for. */
typedef struct tn__emit_target {
    const tn__word *words;   /* `memory`, in front of the type that a pointer to an operand points to; of a GPU's
                                language those of gpu/form.h, too */
    const tn__target_policy *policy; /* what passes ask; NULL: see ir/target.h */
    const char *nest_head;  /* printf format of a nest function's head, with its name */
    const char *restrict_head; /* the same of one that writes what might be extents; NULL: the same head */
    const char *back_to_back_head;  /* the same of one that another nest calls (TN__MAIN_LOOP_BACK_TO_BACK) */
    const char *prelude;    /* in front of the dialect; NULL: nothing */
    const char *helpers;    /* behind the dialect; may define TN_FAULT(fault, operand, index) */
    uint32_t functions;     /* parts of the dialect that stand in the place of functions of real numbers */
    const char *const *brief; /* by operation: a function that is exact enough where all is rounded to 16 bits; NULL: no
                                 such functions, or no such one */
    const char *rounding;   /* behind these: tn_round_f16, tn_round_bf16 */
    const char *random_helpers; /* behind those where random numbers are made */
    bool parts;             /* a kernel may have nests that lie beside one another in its launch (horizontal fusion) */
    bool own_scalars;       /* s[] of a kernel holds the scalars of its step, by the step's list, not all of the
                               program's */
    /* True if a nest, which has no passes that wait for one another, is better done in two steps; NULL: never. */
    bool (*splits)(const tn__emitter *emitter, tn__nest *nest);
    int64_t single; /* sums of no more elements than that are left in single precision in pieces (tn__nest_widens) */
    void (*loops)(tn__printer *p);
    /* The loops of a nest around a product, and its geometry, where `policy` owns any. */
    void (*product_loops)(tn__printer *p);
    void (*product_launch)(const tn__nest *nest, const tn__capabilities *chip, tn__part_launch *launch);
    int64_t (*items)(const tn__emitter *emitter, const tn__nest *nest);
    /* What stands in n[] behind the extents; its length, at most TN__MAX_EXTRAS. */
    int (*extras)(const tn__emitter *emitter, const tn__nest *nest, int64_t *extra);
    void (*entry)(tn__text *text, const tn__step *step, const char *name, int count, const tn__nest_call *call,
                  const tn__part_launch *launch);
    /* The geometry of a part, alone or beside others; NULL: the backend shares out the items. */
    void (*launch)(const tn__emitter *emitter, const tn__kernel_part *part, bool alone, tn__part_launch *launch);
} tn__emit_target;
extern const tn__emit_target tn__emit_target_c, tn__emit_target_cuda, tn__emit_target_opencl;

/* ---- words (words.c) ---- */

/* What a word stands for in the target's language; NULL: it has none. */
const char *tn__word_of(const tn__emit_target *target, const char *name);
/* Adds a line, each @word in it replaced by what it stands for. */
void tn__words_expand(const tn__emit_target *target, const char *line, tn__text *to);

/* ---- pieces of the text (pieces.c) ---- */

/* Adds a piece, whose text it takes over, NULL if there was no memory for it; what is being printed uses it then. Its
 * number, or -1 without memory. */
int tn__piece_add(tn__emitter *emitter, char *text, const tn__piece *like);
/* Notes that what is being printed uses a piece, with all that this uses and needs. */
void tn__piece_use(tn__emitter *emitter, int number);
/* The piece of that name, -1: there is none. */
int tn__piece_find(const tn__emitter *emitter, const char *name);
/* A name for a function or kernel with this text. */
void tn__piece_name(char name[24], const char *kind, const char *text);

/* In CUDA C, a nest around a product (gpu/gemm/kernel.c). */
void tn__emit_cuda_product(tn__printer *p);
void tn__launch_cuda_product(const tn__nest *nest, const tn__capabilities *chip, tn__part_launch *launch);

/* Functions of operations in the kernel's text: declared on first use. */
const char *tn__function(tn__printer *p, tn__op op, tn_dtype dtype);
const char *tn__identity(tn__printer *p, tn__op op, tn_dtype dtype);
void tn__print_function(tn__printer *p, tn__op op, tn_dtype dtype);
void tn__print_identity(tn__printer *p, tn__op op, tn_dtype dtype);
void tn__print_cast(tn__printer *p, const tn__expr *e, tn_dtype from, int arg);
void tn__print_generated(tn__printer *p, const tn__expr *e);
void tn__print_position(tn__printer *p, const tn__access *a);
/* How far some of the loops have gone in an access: " + x0 * n[5]". */
void tn__print_steps(tn__printer *p, const tn__access *a, uint32_t loops);
/* Does tn__emit_bases declare where it begins? */
static inline bool tn__has_base(const tn__access *a)
{
    return a->kind != TN__ACCESS_INDEX && !a->raw && !a->gathered;
}
/* The value of an expression, the arguments of which have variables (values.c). */
void tn__print_value(tn__printer *p, const tn__expr *e);
/* Where in n[] an access's stride along a loop is, which is not 0; for loop_count, where what follows its strides
 * is. */
int tn__stride_param(const tn__access *a, int loop);
/* The element in hand of an access that is not gathered. */
void tn__print_element(tn__printer *p, int access);
/* Where in n[] the slot of a scalar is. */
int tn__scalar_param(const tn__printer *p, int slot);
/* A user's function (user.c): its name, declared on first use; a call of it; a raw argument as a variable. */
const char *tn__user_function(tn__printer *p, const struct tn__user *user);
void tn__print_user(tn__printer *p, const tn__expr *e);
void tn__print_raw(tn__printer *p, const tn__expr *e, int index);
/* The body of p->nest's function. */
void tn__print_nest(tn__printer *p);

/* ---- statements (statements.c), and what reductions are in them (reductions.c) ---- */

#define TN__EXTENT(l) (1 + (l)) /* where the extent of a loop is in n[]: behind the number of items */

enum { TN__SCOPE_NONE, TN__SCOPE_ITEM, TN__SCOPE_FIRST }; /* where an expression has its variable */

/* For each plain reduction of a level: a statement. */
#define TN__EACH_PLAIN(p, r, lvl) \
    for (int r = 0; r < (p)->nest->reduction_count; r++) \
        if ((p)->nest->reduction[r].level == (lvl) && !(tn__ops[(p)->nest->reduction[r].op].props & TN_ARG))
/* And each one that gives a position. */
#define TN__EACH_POSITION(p, r, lvl) \
    for (int r = 0; r < (p)->nest->reduction_count; r++) \
        if ((p)->nest->reduction[r].level == (lvl) && tn__ops[(p)->nest->reduction[r].op].props & TN_ARG)

void tn__emit_indent(tn__printer *p);
/* A line at the current depth, with its words expanded; one that ends in { deepens it, one that begins with } ends
 * that. */
void tn__line(tn__printer *p, const char *format, ...) TN_PRINTF(2, 3);
int tn__emit_scope(tn__printer *p);
/* Gives expression e, and what it needs, a variable in the current scope. */
void tn__emit_need(tn__printer *p, int index);
/* Gives the parts of e that do not vary with the inner loops their variables at the item's level. */
void tn__emit_hoist(tn__printer *p, int index, uint32_t inner);
/* A division or square root in float32. */
bool tn__is_divided(const tn__expr *e);
/* The stores of row values, or of a pass's elements. All values come first: a result may lie in the memory of an input
 * that another value is loaded from at the same place. */
void tn__emit_stores(tn__printer *p, bool rows, int level);
/* Variables of the given loops from a number that counts through them, last fastest. */
void tn__emit_decode(tn__printer *p, uint32_t loops, const char *from);
/* Declares, of each access, where it is at the start of the vector loop, and its stride along that: loads of n[] behind
 * a condition keep loops from being vectorized. It holds until the caller clears p->based. */
void tn__emit_bases(tn__printer *p);
/* A pass's work on one element: stores of its level, and the reductions' elements left in variables. */
void tn__emit_element(tn__printer *p, int level);
void tn__emit_hoist_pass(tn__printer *p, int level, uint32_t inner);
/* Names for a reduction: what it starts from, its combining function, its accumulator's type, that of its result, and
 * the rounding or other function that makes the one of the other ("": none). */
const char *tn__emit_identity(tn__printer *p, int r);
const char *tn__emit_function(tn__printer *p, int r);
const char *tn__emit_type(const tn__printer *p, int r);
const char *tn__emit_variable_type(tn_dtype dtype);
const char *tn__emit_result_type(const tn__printer *p, int r);
const char *tn__emit_rounding(const tn__printer *p, int r);
/* The same of what accumulators are combined in where that is of twice the precision (tn__nest_widens); of other
 * reductions the names above. tn__emit_widening is the function that makes such a number of an accumulator ("": C
 * converts it). */
const char *tn__emit_wide_identity(tn__printer *p, int r);
const char *tn__emit_wide_function(tn__printer *p, int r);
const char *tn__emit_wide_type(const tn__printer *p, int r);
const char *tn__emit_widening(tn__printer *p, int r);
/* What makes a result of such a number. */
const char *tn__emit_narrowing(const tn__printer *p, int r);
/* const tn_i64 R: the number of reduced elements. */
void tn__emit_extent(tn__printer *p);

#endif
