/* SPDX-License-Identifier: MIT */
/*
 * Users' own kernels: definitions, which are interned and live as long as the process (a tn_kernel points to one), and
 * their instances for the dtypes of a call. An instance holds the text of a function in the kernel dialect; nodes of
 * the operations USER and USER_REDUCE point to instances, and the emitter puts their text in front of its kernels.
 */
#ifndef TN_ARRAY_USER_H
#define TN_ARRAY_USER_H

#include <tanso/kernel.h>
#include <tanso/vectorize.h>

#include "array/node.h"
#include "core/memory.h"

#define TN__USER_NAME 48
#define TN__USER_PARAMS 16 /* inputs, or outputs, that a definition may list */

/* What tn_call is to do with a kernel. */
typedef enum tn__user_kind {
    TN__USER_BROKEN,      /* an error: carries its record */
    TN__USER_ELEMENTWISE,
    TN__USER_REDUCTION,
    TN__USER_RAW
} tn__user_kind;

typedef struct tn__user_param {
    char name[TN__USER_NAME];
    tn_dtype dtype;       /* DEFAULT: by its letter */
    char letter;          /* placeholder, 'T'; 0: none */
    bool raw;
} tn__user_param;

/* What a definition's text mentions beside its parameters; each becomes an input of its own. */
typedef enum tn__user_extra {
    TN__USER_I = 1,       /* i: the position in C order */
    TN__USER_SIZE = 2,    /* size: the number of positions */
    TN__USER_IND = 4,     /* _ind[d]: the position along each axis */
    TN__USER_SHAPE = 8,   /* _shape[d], _ndim */
    TN__USER_COUNT = 16   /* _count: elements reduced, in a reduction's last text */
} tn__user_extra;

typedef struct tn__user tn__user;

/* One text with its parameters: an elementwise kernel has one, a reduction three. */
typedef struct tn__user_part {
    const char *title;    /* the file's name in the compiler's messages: "add", "norm (map)" */
    const char *text;
    bool is_expression;   /* of the first output; else statements */
    tn__user_param in[TN__USER_PARAMS], out[TN__USER_PARAMS];
    int in_count, out_count;
    unsigned extras;      /* a set of tn__user_extra */
    bool plain;           /* no extras, nothing raw, one letter everywhere */
    uint32_t sizes, shapes; /* bit k: the text mentions NAME_size, NAME_shape of raw input k */
    const char *identity; /* of a combination, else NULL */
    tn__user *_Atomic instances;
} tn__user_part;

enum { TN__PART_MAP, TN__PART_COMBINE, TN__PART_POST, TN__USER_PARTS };

struct tn_kernel {
    tn__user_kind kind;
    uint64_t hash;
    tn_kernel *chain;
    char *key;            /* all that makes it what it is */
    char *strings;        /* the memory of titles and texts */
    char name[TN__USER_NAME];
    const char *source;   /* RAW: the text; else its preamble */
    tn__user_part part[TN__USER_PARTS];
    tn_gradient_function gradient; /* NULL: none, or by `gradient_kernel` */
    void *user;
    tn_kernel *gradient_kernel;    /* inputs, outputs, outputs' gradients -> inputs' gradients */
    /* Of tn_vectorize: */
    struct tn__signature *signature; /* owned; else NULL */
    tn_scalar_function function;   /* one without a text: the last input is its address */
    const char *identity;
    tn_kernel *_Atomic fold[2];    /* raw kernels that reduce and accumulate, made when first needed */
    tn__error *error;     /* BROKEN */
};

/* A part for given dtypes. */
struct tn__user {
    uint32_t id;          /* small, unique: stands for the instance in keys */
    const tn_kernel *kernel;
    const tn__user_part *part;
    int in_count, out_count;        /* the part's own and the extras' */
    tn_dtype in[TN__MAX_INPUTS], out[TN__USER_PARAMS];
    uint32_t raw;         /* bit i: input i is memory, C order */
    int ndim, raw_ndim[TN__USER_PARAMS]; /* where the text asks for shapes, else 0 */
    char function[TN__USER_NAME + 20];   /* its name: the same in every process */
    char *text;           /* defines it */
    tn__user *next;
};

/* Makes or finds the definition with this key (taken over); `fill` completes a new one, or latches what is wrong with
 * it. Never NULL. */
tn_kernel *tn__kernel_intern(char *key, bool (*fill)(tn_kernel *kernel, void *user), void *user);
/* A kernel that stands for the failure latched last. */
tn_kernel *tn__kernel_broken(void);
/* An elementwise kernel around a C function. */
tn_kernel *tn__kernel_vectorized(const char *inputs, const char *outputs, const char *text, const char *name,
                                 const tn_kernel_opts *opts, tn_scalar_function function, const char *identity,
                                 const struct tn__signature *signature);
/* True if a text has the identifier `word`. */
bool tn__user_mentions(const char *text, const char *word);
/* Reads "T x, raw T y" into parameters; false with a latched failure. */
bool tn__user_params(const char *operation, const char *list, bool outputs, tn__user_param *param, int *count);
/* Notes what a part's text mentions. */
void tn__user_scan(tn__user_part *part);
/* The instance of a part with the counts, dtypes and numbers of axes of `wanted` (whose unused entries are 0); NULL
 * with a latched failure. */
const tn__user *tn__user_instance(const tn_kernel *kernel, int part, const tn__user *wanted);
/* The type in C that users' functions have an element of a dtype in. */
const char *tn__user_ctype(tn_dtype dtype);
/* Appends the numbered lines of its texts, for messages. */
void tn__user_listing(const tn__user *user, tn__text *text);

/* Appends the title and the lines, numbered from 1. */
void tn__source_listing(const char *title, const char *lines, tn__text *text);

/* TN_OK if a kernel can be called (`raw`: launched), else a latched failure. */
tn_status tn__kernel_check(const tn_kernel *kernel, const char *operation, bool raw);

/* What a call asks for beside its operands. */
typedef struct tn__user_wish {
    const tn__shape *shape; /* NULL: the operands' */
    tn_dtype dtype;         /* of letters that no array fixes; DEFAULT: the numbers' */
    tn_dtype accumulator;   /* filled in by tn__user_reduce */
    tn__device *device;     /* where there are no operands */
} tn__user_wish;
/* All outputs of an elementwise kernel; false with a latched failure. */
bool tn__user_apply(const tn_kernel *kernel, int count, tn__node *const *in, const tn__user_wish *wish, tn__node **out);
/* A reduction, reduced axes kept with extent 1. */
tn__node *tn__user_reduce(const tn_kernel *kernel, int count, tn__node *const *in, const tn__user_wish *wish,
                          tn_axes axes);

#endif
