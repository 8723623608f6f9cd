/* SPDX-License-Identifier: MIT */
/* The public elementwise functions: one a row of ops.def, and tn_cast, tn_where, tn_clip. */
#include <tanso/array.h>
#include <tanso/complex.h>

#include "array/build_parts.h"

/* A row makes a function of its arity, but for the rows that SKIP_<ID> names: CHOOSE(SKIP_CAST, f)
 * is NOTHING since SKIP_CAST expands to two arguments, and f for every other row. */
#define SECOND(a, b, ...) b
#define CHOOSE(...)       SECOND(__VA_ARGS__, )
#define SKIP_COPY         ~, NOTHING
#define SKIP_CAST         ~, NOTHING
#define SKIP_WHERE        ~, NOTHING
#define SKIP_IMAGINARY    ~, NOTHING
#define SKIP_PACK         ~, NOTHING
#define NOTHING(ID, name)
#define FUNCTION_1(ID, name)                                                                       \
    tn_array *tn_##name(const tn_array *x)                                                         \
    {                                                                                              \
        TN__RETURN(tn__unary(TN__OP_##ID, tn__node_of(x, #name)));                                 \
    }
#define FUNCTION_2(ID, name)                                                                       \
    tn_array *tn_##name(const tn_array *a, const tn_array *b)                                      \
    {                                                                                              \
        TN__RETURN(tn__binary(TN__OP_##ID, tn__node_of(a, #name), tn__node_of(b, #name)));         \
    }
#define TN_MAP(ID, name, arity, ...) CHOOSE(SKIP_##ID, FUNCTION_##arity)(ID, name)
#include "array/ops.def"

tn_array *tn_cast(const tn_array *x, tn_dtype dtype)
{
    TN__RETURN(tn__cast(tn__node_of(x, "cast"), dtype));
}

tn_array *tn_where(const tn_array *condition, const tn_array *a, const tn_array *b)
{
    TN__RETURN(tn__where(tn__node_of(condition, "where"), tn__node_of(a, "where"),
                         tn__node_of(b, "where")));
}

tn_array *tn_clip(const tn_array *x, const tn_array *low, const tn_array *high)
{
    TN__RETURN(
        tn__binary(TN__OP_MINIMUM,
                   tn__binary(TN__OP_MAXIMUM, tn__node_of(x, "clip"), tn__node_of(low, "clip")),
                   tn__node_of(high, "clip")));
}
