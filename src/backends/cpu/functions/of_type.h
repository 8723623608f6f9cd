/* SPDX-License-Identifier: MIT */
/*
 * The functions of ops.def for one compute dtype; included once for each. The includer defines
 *     T, SUFFIX         the C type and the suffix of its scalar functions
 *     SELECT_<TYPES>    the arguments or nothing, for each set of dtypes of ops.def; SELECT_COMPLEX, for its rows of
 *                       complex numbers
 * and gets tn__cpu_functions_<SUFFIX>.
 */
#define F(function)        TN__JOIN(tns_##function##_, SUFFIX)
#define TYPED(name)        TN__JOIN(name##_, SUFFIX)
#define RESULT_TYPE_SAME   T
#define RESULT_TYPE_BOOL   tn_b8
#define RESULT_TYPE_INT64  T

/* ---- maps ---- */

/* A contiguous loop that vectorises, and a strided one. In place is allowed: same element, same index. */
#define LOAD(k, type, step) (*(const type *)(p[k] + i * (int64_t)(step)))
#define MAP_LOOPS(OUT, EXPR, CONTIGUOUS, NEAR, FAR) \
    if (CONTIGUOUS) { \
        INDEPENDENT for (int64_t i = 0; i < n; i++) \
        { \
            NEAR \
            *(OUT *)(p[0] + i * (int64_t)sizeof(OUT)) = (OUT)(EXPR); \
        } \
        return; \
    } \
    for (int64_t i = 0; i < n; i++) { \
        FAR \
        *(OUT *)(p[0] + i * s[0]) = (OUT)(EXPR); \
    }
#define SIZE(type) ((int64_t)sizeof(type))
#define MAP_BODY_1(OUT, condition, EXPR) \
    MAP_LOOPS(OUT, EXPR, s[0] == SIZE(OUT) && s[1] == SIZE(T), const T a = LOAD(1, T, SIZE(T));, \
              const T a = LOAD(1, T, s[1]);)
#define MAP_BODY_2(OUT, condition, EXPR) \
    MAP_LOOPS(OUT, EXPR, s[0] == SIZE(OUT) && s[1] == SIZE(T) && s[2] == SIZE(T), \
              const T a = LOAD(1, T, SIZE(T)); const T b = LOAD(2, T, SIZE(T));, \
              const T a = LOAD(1, T, s[1]); const T b = LOAD(2, T, s[2]);)
#define MAP_BODY_3(OUT, condition, EXPR) \
    const int64_t first = (condition) ? 1 : SIZE(T); \
    MAP_LOOPS(OUT, EXPR, s[0] == SIZE(OUT) && s[1] == first && s[2] == SIZE(T) && s[3] == SIZE(T), \
              const T a = (condition) ? (T)LOAD(1, tn_b8, first) : LOAD(1, T, first); \
              const T b = LOAD(2, T, SIZE(T)); const T c = LOAD(3, T, SIZE(T));, \
              const T a = (condition) ? (T)LOAD(1, tn_b8, s[1]) : LOAD(1, T, s[1]); \
              const T b = LOAD(2, T, s[2]); const T c = LOAD(3, T, s[3]);)
#define MAP_FUNCTION(name, arity, OUT, condition, EXPR) \
    static void TYPED(map_##name)(char *const *p, const int64_t *s, int64_t n) \
    { \
        MAP_BODY_##arity(OUT, condition, EXPR) \
    }

#define TN_MAP(ID, name, arity, TYPES, RESULT, grad, props, EXPR, doc) \
    SELECT_##TYPES(MAP_FUNCTION(name, arity, RESULT_TYPE_##RESULT, (props) & TN_CONDITION, EXPR))
#define TN_COMPLEX_MAP(ID, name, arity, RESULT, EXPR) \
    SELECT_COMPLEX(MAP_FUNCTION(name, arity, RESULT_TYPE_##RESULT, TN__OP_##ID == TN__OP_WHERE, EXPR))

/* ---- reductions: by lanes, element by element, halving; and positions ---- */
#define REDUCE_FUNCTIONS(name, IDENTITY, COMBINE) \
    static inline T TYPED(combine_##name)(T a, T b) \
    { \
        return (T)(COMBINE); \
    } \
    static void TYPED(fill_##name)(void *to, int64_t n) \
    { \
        for (int64_t i = 0; i < n; i++) \
            ((T *)to)[i] = (T)(IDENTITY); \
    } \
    static void TYPED(each_##name)(void *to, const void *from, int64_t n) \
    { \
        T *x = to; \
        const T *y = from; \
        INDEPENDENT for (int64_t i = 0; i < n; i++) x[i] = TYPED(combine_##name)(x[i], y[i]); \
    } \
    static void TYPED(lanes_##name)(void *to, const void *from, int64_t n) \
    { \
        T lane[TN__REDUCE_LANES]; \
        const T *x = from; \
        memcpy(lane, to, sizeof(lane)); \
        for (; n >= TN__REDUCE_LANES; n -= TN__REDUCE_LANES, x += TN__REDUCE_LANES) \
            for (int j = 0; j < TN__REDUCE_LANES; j++) \
                lane[j] = TYPED(combine_##name)(lane[j], x[j]); \
        for (int j = 0; j < n; j++) \
            lane[j] = TYPED(combine_##name)(lane[j], x[j]); \
        memcpy(to, lane, sizeof(lane)); \
    } \
    static void TYPED(halve_##name)(void *to) \
    { \
        T *lane = to; \
        for (int half = TN__REDUCE_LANES / 2; half > 0; half /= 2) \
            for (int j = 0; j < half; j++) \
                lane[j] = TYPED(combine_##name)(lane[j], lane[j + half]); \
    }
/* COMBINE is over the best so far, a, and element b; the first element is the best at first. */
#define POSITION_FUNCTION(name, COMBINE) \
    static void TYPED(scan_##name)(void *best, int64_t *position, const void *from, int64_t first, int64_t n) \
    { \
        const T *x = from; \
        T a = first == 0 && n > 0 ? x[0] : *(T *)best; \
        for (int64_t i = 0; i < n; i++) { \
            const T b = x[i]; \
            if (COMBINE) { \
                a = b; \
                *position = first + i; \
            } \
        } \
        *(T *)best = a; \
    }
#define REDUCE_SAME(name, IDENTITY, COMBINE)  REDUCE_FUNCTIONS(name, IDENTITY, COMBINE)
#define REDUCE_BOOL(name, IDENTITY, COMBINE)  REDUCE_FUNCTIONS(name, IDENTITY, COMBINE)
#define REDUCE_INT64(name, IDENTITY, COMBINE) POSITION_FUNCTION(name, COMBINE)

#define TN_REDUCE(ID, name, TYPES, RESULT, grad, props, IDENTITY, COMBINE, doc) \
    SELECT_##TYPES(REDUCE_##RESULT(name, IDENTITY, COMBINE))
#define TN_COMPLEX_REDUCE(ID, name, RESULT, IDENTITY, COMBINE) SELECT_COMPLEX(REDUCE_##RESULT(name, IDENTITY, COMBINE))

/* ---- values by position ---- */
#define GENERATE_FUNCTION(name, EXPR) \
    static void TYPED(generate_##name)(void *to, int64_t first, int64_t n, tn_u64 k, tn_u64 o) \
    { \
        (void)k, (void)o; \
        for (int64_t j = 0; j < n; j++) { \
            const tn_u64 i = (tn_u64)(first + j); \
            ((T *)to)[j] = (EXPR); \
        } \
    }
#define TN_GENERATE(ID, name, TYPES, EXPR, doc) SELECT_##TYPES(GENERATE_FUNCTION(name, EXPR))

#include "ops/ops.def"

static const tn__cpu_map TYPED(map_table)[TN__OP_COUNT] = {
#define TN_MAP(ID, name, arity, TYPES, ...) SELECT_##TYPES([TN__OP_##ID] = TYPED(map_##name), )
#define TN_COMPLEX_MAP(ID, name, ...) SELECT_COMPLEX([TN__OP_##ID] = TYPED(map_##name), )
#include "ops/ops.def"
};

#define REDUCE_ENTRY_SAME(name) \
    .fill = TYPED(fill_##name), .each = TYPED(each_##name), .lanes = TYPED(lanes_##name), .halve = TYPED(halve_##name)
#define REDUCE_ENTRY_BOOL(name)  REDUCE_ENTRY_SAME(name)
#define REDUCE_ENTRY_INT64(name) .scan = TYPED(scan_##name)
static const tn__cpu_reduce TYPED(reduce_table)[TN__OP_COUNT] = {
#define TN_REDUCE(ID, name, TYPES, RESULT, ...) \
    SELECT_##TYPES([TN__OP_##ID] = {REDUCE_ENTRY_##RESULT(name)}, )
#define TN_COMPLEX_REDUCE(ID, name, RESULT, ...) SELECT_COMPLEX([TN__OP_##ID] = {REDUCE_ENTRY_##RESULT(name)}, )
#include "ops/ops.def"
};

static const tn__cpu_generate TYPED(generate_table)[TN__OP_COUNT] = {
#define TN_GENERATE(ID, name, TYPES, ...) SELECT_##TYPES([TN__OP_##ID] = TYPED(generate_##name), )
#include "ops/ops.def"
};

const tn__cpu_functions TYPED(tn__cpu_functions) = {TYPED(map_table), TYPED(reduce_table), TYPED(generate_table)};

#undef T
#undef SUFFIX
