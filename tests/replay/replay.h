/* SPDX-License-Identifier: MIT */
/*
 * Replaying NumPy's calls: what a case is, and the table of operations.
 *
 * To add operations, write a file ops_<subject>.c in this folder (the build finds it) with adapters and rows:
 *
 *     static void trace(call *c, const row *r)
 *     {
 *         give(c, tn_trace(array(c, 0), .offset = (int)integer(c, 1, 0)));
 *     }
 *     static const row rows[] = {{"trace", "a offset axis1 axis2 dtype out", trace}};
 *     REPLAY_ROWS(rows)
 *
 * The second field is NumPy's signature: names in positional order; positional and keyword arguments are bound to them,
 * and the adapter asks for them by number. "*name" takes all positional arguments that are left, names after it and
 * after "|" are keyword-only. A keyword that the signature lacks is refused, as Python refuses it. The readers below
 * convert an argument, or refuse the call with a message. Where NumPy refused the call too, it is counted apart, as it
 * says nothing of Tanso; elsewhere the case has failed.
 */
#ifndef REPLAY_H
#define REPLAY_H

#include <jansson.h>
#include <tanso.h>

/* ---- arguments ---- */

typedef enum kind { NONE, BOOL, INT, FLOAT, COMPLEX, STRING, DTYPE, SLICE, ELLIPSIS, LIST, ARRAY } kind;

/* A Python value. NumPy's newaxis is None, and so is it here. */
typedef struct value value;
struct value {
    kind kind;
    const char *digits; /* INT beyond int64: as it was written; i is then the nearest end */
    bool fortran;       /* ARRAY: its file has it in Fortran order */
    union {
        long long i; /* BOOL, INT */
        double f;
        double complex_parts[2];
        const char *text; /* STRING, DTYPE */
        tn_slice_range slice;
        struct {
            int count;
            value *item;
        } list;
        tn_array *array;
    };
};

#define MAX_SLOTS 24
#define MAX_RESULTS 1024
#define MAX_ARGUMENTS 1024

typedef struct row row;
typedef struct call {
    const row *row;
    const value *slot[MAX_SLOTS]; /* by the signature; NULL: absent */
    bool by_keyword[MAX_SLOTS];
    const value *rest[MAX_ARGUMENTS];
    int rest_count;
    tn_array *result[MAX_RESULTS];
    int result_count;
    struct {
        bool columns; /* of matrices: vectors that are determined but for a factor of size one */
        int rows;     /* the result whose rows take the factors' inverses, or -1 */
    } vectors[MAX_RESULTS];
    bool unordered; /* NumPy gives the elements in any order */
    /* The first result is an order that ties leave open: positions in `of` (NULL: the elements themselves) along
     * `axis`, right if they give the same elements; those before, between and behind the places `kth` in any order. */
    struct {
        bool open;
        tn_array *of;
        int axis, count;
        int64_t kth[MAX_ARGUMENTS];
    } order;
    /* The results of the mask `open` are right, too, if they decompose the operand as NumPy's do: decomposition.c. */
    bool (*holds)(struct call *c, tn_array *const *result);
    unsigned open;
    bool spectrum;  /* result 0 holds eigenvalues of matrices, in any order: compare() brings them, and the vectors, to
                       NumPy's */
    bool refused;   /* message says why */
    bool by_tool;   /* refused before Tanso was asked, or had a word to say */
    bool malformed; /* the case is none, whatever NumPy did */
    char message[512];
} call;

struct row {
    const char *name;      /* NumPy's */
    const char *signature;
    void (*run)(call *c, const row *r);
    void (*function)(void); /* what `run` calls, if it serves several rows */
    long long number;      /* for `run` */
};

/* ---- readers: argument i of the signature ---- */

/* Present and not None. */
bool given(const call *c, int i);
/* As an array, as NumPy's asarray makes one; of dtype `as` unless that is the default. */
tn_array *array(call *c, int i);
tn_array *array_of(call *c, const value *v);
/* As an array that NumPy asks for its shape: refuses a list, and Python's numbers. */
tn_array *own_array(call *c, int i);
/* As an operand of elementwise functions: a Python number is a weak scalar where an array is among arguments a to b. */
tn_array *operand(call *c, int i, int first, int last);
long long integer(call *c, int i, long long absent);
double number(call *c, int i, double absent);
/* Is it an integer, Python's or NumPy's? */
bool is_integer(const call *c, int i);
bool boolean(call *c, int i, bool absent);
const char *string(call *c, int i, const char *absent);
tn_dtype dtype(call *c, int i, tn_dtype absent);
/* An integer or a list of them; none: an empty list. */
tn_axes axes(call *c, int i);
/* One axis or none: refuses a list, where NumPy takes no tuple. */
tn_axes one_axis(call *c, int i);
tn_shape shape(call *c, int i);
/* A mask: NULL if absent, None or True. */
tn_array *mask(call *c, int i);
/* NumPy's index, a tuple of which is a list that holds more than plain numbers; the number of keys. */
int index_keys(call *c, const value *v, tn_key *keys);
/* Python's assignment of a number to elements of a dtype: refuses what it refuses. */
void check_assigned(call *c, const value *v, tn_dtype to);
/* The number or array as it is assigned: NumPy 1 makes a Python float an int first, which may wrap around. */
tn_array *assigned(call *c, const value *v, tn_dtype to);
/* Integers of a list, or one; their number. */
int integers(call *c, const value *v, long long *out, int capacity);
/* The arrays of a list, or along the first axis of one array; their number. */
int arrays(call *c, const value *v, tn_array **out, int capacity);
/* The dtype of text such as "float32" or "<f4"; default if it is none. */
tn_dtype dtype_named(const char *text);

/* ---- results ---- */

void give(call *c, tn_array *result);
/* Matrices whose columns are determined but for a sign (complex: a factor of size one), which LAPACK's versions and
 * cuSOLVER choose differently: compare() brings each to NumPy's first. `rows`: of which result, given next or later,
 * the rows take the same signs, so that the product of the two is the same; or -1. */
void give_vectors(call *c, tn_array *result, int rows);
bool holds_svd(call *c, tn_array *const *result);
bool holds_qr(call *c, tn_array *const *result);
bool holds_eigh(call *c, tn_array *const *result);
bool holds_eig(call *c, tn_array *const *result);
/* A Python bool, integer or float. */
void give_bool(call *c, bool result);
void give_integer(call *c, long long result);
void give_number(call *c, double result);
/* A dtype. */
void give_dtype(call *c, tn_dtype result);
/* The result of a scan in out by any cast, which may have axes behind those of the result: the first element of each is
 * written. */
tn_array *scanned_into(call *c, tn_array *out, tn_array *y);
/* Ends the call with the tool's own refusal (with Tanso's, if an error is latched already). */
void TN_PRINTF(2, 3) refuse(call *c, const char *format, ...);
/* The same with what Tanso refuses. */
void refused_by_tanso(call *c, const char *why);
/* The same of a case that is not in the format: it fails, even if it says that NumPy raised. */
void TN_PRINTF(2, 3) malformed(call *c, const char *format, ...);

/* ---- adapters of functions that take arrays alone: row.function of argument 0, or of 0 and 1 ---- */

void of_one(call *c, const row *r);
void of_two(call *c, const row *r);

/* ---- the table ---- */

void replay_add(const row *rows, size_t count);
const row *replay_find(const char *name);
#define REPLAY_ROWS(rows) \
    __attribute__((constructor)) static void replay_add_rows(void) { replay_add(rows, sizeof(rows) / sizeof(rows)[0]); }

/* ---- editions: edition.c ---- */

/* The call at hand is made as NumPy 1 made it, or as NumPy 2.5 does. */
extern bool numpy_1, numpy_2_5;
/* A list that is an index alone is a tuple of keys. */
extern bool lists_are_tuples;
/* 0: NumPy 2; others are tried by turns. */
enum { EDITIONS = 5 };
void set_edition(int i);
/* operand() then. */
tn_array *first_operand(call *c, int i, int first, int last);
/* `own` among `count` operands, then. */
tn_array *first_of(call *c, const value *own, const value *const *all, int count);
/* x in double precision then, in which NumPy 1 transformed. */
tn_array *first_inexact(tn_array *x);

/* ---- the tool ---- */

/* Memory of the case at hand; freed by case_end. */
void *case_memory(size_t bytes);
void case_end(void);
/* The line with Python's NaN, Infinity and integers beyond int64, which JSON's readers refuse, as strings. */
char *strict_json(const char *line);
/* An argument in JSON, or in Python's plain JSON form. NULL after refuse(). */
const value *value_read(call *c, const json_t *json, const char *folder, tn_device device);
/* Binds arguments to the row's signature. */
bool bind_arguments(call *c, const json_t *args, const json_t *kwargs, const char *folder, tn_device device);
/* NULL, or what differs (of the case's memory). */
const char *compare(call *c, const json_t *out, const char *folder, double rtol, double atol);
/* Runs one line. Passed, or what is wrong with it in *message (of the case's memory). REFUSED: NumPy raised, and the
 * tool did not ask Tanso. */
typedef enum outcome { NOT_RUN, PASSED, FAILED, UNKNOWN, REFUSED, PASSED_AS_OTHER } outcome;
outcome replay_line(const char *line, const char *folder, tn_device device, const char **message);

#endif
