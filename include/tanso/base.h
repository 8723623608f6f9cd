/* SPDX-License-Identifier: MIT */
/*
 * What every other header builds on: status codes and errors, dtypes, shapes, devices as values, and scopes.
 *
 * Errors. Nothing in Tanso aborts or exits. A function that makes an array never returns NULL: when it cannot
 * make one it returns an error array, inert, which every operation passes on. A function that acts on the world
 * returns a tn_status. Either way the thread's first error is latched: tn_ok() turns false and tn_error() tells
 * what was expected, what came, what to do, and, as far as macros can, the caller's file and line.
 *
 * Threads. An array that has not been evaluated belongs to the thread that recorded it; tn_eval it before another
 * thread uses it. Evaluated arrays may be read by any number of threads: whatever is asked of them, their elements
 * read, printed, saved and exported, new arrays computed from them, and what a thread computed gone back through down
 * to them (tn_gradients). For a single thread at a time is what changes one: writing, marks and names, freeing; and to
 * go back through what it was itself computed from, by tn_backward or tn_gradients; but others may read meanwhile the
 * array that this starts from. Errors, scopes and the current device are per thread.
 *
 * Objects (layers, datasets, loaders, optimizers, archives, streams, a trainer's parts and others: whatever has a
 * function that frees it, but for strings and plain numbers). What a function takes over, as a loader its dataset, is
 * the new object's, which frees it; where the function fails, it has been freed, or is freed with the failed object.
 * What is another object's already is not taken over, and TN_ERR_STATE. Frees may come in any order: to free what is an
 * object's, or has been freed, is TN_ERR_STATE and does nothing, and to use what has been freed, or what borrowed it,
 * is TN_ERR_STATE, until 256 more objects of its kind have been freed. The same goes for arrays that objects give out,
 * such as parameters: tn_free does not free them.
 *
 * Functions of the program's that the library calls (gradients, layers, hooks, losses, samples, triggers, extensions)
 * had better return. A C++ exception that one throws goes through the library to the program, and the thread has its
 * scopes, its recording or not, and its reporters as before the call. longjmp out of one leaves the library no chance
 * to do so: the thread's next call, from a function of about the same depth as the one that was returned to, puts
 * things right and is TN_ERR_STATE; memory that was in use is lost. What the library calls in threads of its own
 * (samples with prefetching, functions of numbers and raw kernels, which computing calls) must do neither: an exception
 * ends the process there, as in any thread.
 */
#ifndef TANSO_BASE_H
#define TANSO_BASE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <tanso/options.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#define TN_API __attribute__((visibility("default")))
#define TN_MUST_CHECK __attribute__((warn_unused_result))
#define TN_PRINTF(text, first) __attribute__((format(printf, text, first)))
#else
#define TN_API
#define TN_MUST_CHECK
#define TN_PRINTF(text, first)
#endif

#define TN_VERSION_MAJOR 0
#define TN_VERSION_MINOR 1
#define TN_VERSION_PATCH 0

/* The library's version as "major.minor.patch"; static, never freed. */
TN_API const char *tn_version(void);

/* ---- status and errors ---- */

typedef enum tn_status {
    TN_OK = 0,
    TN_ERR_SHAPE,       /* shapes that do not fit the operation or each other */
    TN_ERR_DTYPE,       /* a dtype the operation does not take */
    TN_ERR_DEVICE,      /* a device that is absent, or operands on different devices */
    TN_ERR_INDEX,       /* an index or axis out of range */
    TN_ERR_VALUE,       /* any other argument out of its range */
    TN_ERR_MEMORY,      /* host or device memory exhausted */
    TN_ERR_IO,          /* the operating system refused a file or network operation */
    TN_ERR_FORMAT,      /* a file or stream whose contents break its format */
    TN_ERR_NAME,        /* an unknown name: a layer, dataset, parameter or option */
    TN_ERR_COMPILE,     /* the kernel compiler failed */
    TN_ERR_STATE,       /* a call that does not fit the state of its object */
    TN_ERR_NAN,         /* a loss or value that is not a number where one is needed */
    TN_ERR_UNSUPPORTED, /* valid, but not available in this build or on this device */
    TN_ERR_INTERNAL     /* a broken invariant of the library itself: please report it */
} tn_status;

/*
 * An error that nobody has asked for by tn_ok, tn_error, tn_error_code or, of an error array, by tn_message_of, and
 * that was not cleared, is printed to stderr when its thread or the process ends. A program that only returns a failed
 * call's status from main so still says why.
 */

/* True while no error has been latched in this thread since its start or the last tn_clear_error(). */
TN_API bool tn_ok(void);
/* The message of the first latched error, or "" when tn_ok(). Valid until tn_clear_error() in this thread. */
TN_API const char *tn_error(void);
/* The code of the first latched error, or TN_OK. */
TN_API tn_status tn_error_code(void);
/* Forgets the latched error. */
TN_API void tn_clear_error(void);
/* A code's name: "TN_ERR_SHAPE". Static. */
TN_API const char *tn_status_name(tn_status status);
/* The one of `count` valid names that is nearest to `word` by edit distance, for "did you mean"; NULL if none is
 * near. */
TN_API const char *tn_nearest_name(const char *word, const char *const *names, int count);

/* Remembers the caller's place for messages. Put in front of calls by the macros of these headers; what has none, such
 * as tn_layer_save, names no place. With TN_NO_MACROS, as inside the library, no call is noted: messages name the
 * program's. */
TN_API void tn__at(const char *file, int line);
#define TN_AT(function) (tn__at(__FILE__, __LINE__), function)
#ifdef TN_NO_MACROS
#define TN_HERE(call) (call)
#else
#define TN_HERE(call) (tn__at(__FILE__, __LINE__), call)
#endif

/* f(x, .axis = TN_AXES(1)) calls f_with(x, TN_OPTS(f_opts, .axis = TN_AXES(1))): the macros of functions with keyword
 * arguments go through one of these, named by what stands before the keywords, A an operand (an array or a number), V
 * any other value. They are given an empty last argument, which makes calls without keywords standard C and C++. */
#define TN__CALL_V(f, opts, a, ...) TN_AT(f)(a, TN_OPTS(opts, __VA_ARGS__))
#define TN__CALL_VV(f, opts, a, b, ...) TN_AT(f)(a, b, TN_OPTS(opts, __VA_ARGS__))
#define TN__CALL_VVV(f, opts, a, b, c, ...) TN_AT(f)(a, b, c, TN_OPTS(opts, __VA_ARGS__))
#define TN__CALL_VVVV(f, opts, a, b, c, d, ...) TN_AT(f)(a, b, c, d, TN_OPTS(opts, __VA_ARGS__))
#define TN__CALL_VVVVV(f, opts, a, b, c, d, e, ...) TN_AT(f)(a, b, c, d, e, TN_OPTS(opts, __VA_ARGS__))
#define TN__CALL_VVVVVV(f, opts, a, b, c, d, e, g, ...) TN_AT(f)(a, b, c, d, e, g, TN_OPTS(opts, __VA_ARGS__))
#define TN__CALL_VVVVVVV(f, opts, a, b, c, d, e, g, h, ...) TN_AT(f)(a, b, c, d, e, g, h, TN_OPTS(opts, __VA_ARGS__))
#define TN__CALL_VA(f, opts, a, b, ...) TN_AT(f)(a, TN_ARG(b), TN_OPTS(opts, __VA_ARGS__))
#define TN__CALL_VAA(f, opts, a, b, c, ...) TN_AT(f)(a, TN_ARG(b), TN_ARG(c), TN_OPTS(opts, __VA_ARGS__))
#define TN__CALL_A(f, opts, a, ...) TN_AT(f)(TN_ARG(a), TN_OPTS(opts, __VA_ARGS__))
#define TN__CALL_AV(f, opts, a, b, ...) TN_AT(f)(TN_ARG(a), b, TN_OPTS(opts, __VA_ARGS__))
#define TN__CALL_AVV(f, opts, a, b, c, ...) TN_AT(f)(TN_ARG(a), b, c, TN_OPTS(opts, __VA_ARGS__))
#define TN__CALL_AA(f, opts, a, b, ...) TN_AT(f)(TN_ARG(a), TN_ARG(b), TN_OPTS(opts, __VA_ARGS__))
#define TN__CALL_AAV(f, opts, a, b, c, ...) TN_AT(f)(TN_ARG(a), TN_ARG(b), c, TN_OPTS(opts, __VA_ARGS__))
#define TN__CALL_AAAV(f, opts, a, b, c, d, ...) \
    TN_AT(f)(TN_ARG(a), TN_ARG(b), TN_ARG(c), d, TN_OPTS(opts, __VA_ARGS__))

/* Lists as the two arguments that functions take them by, their count and their elements, which live as the options of
 * a call do: tn_concatenate(TN_ARRAYS(a, b), 0), tn_insert(x, TN_INTS(1, 3), 0, TN_AXES(0)). */
#define TN_ARRAYS(...) TN__LIST(const tn_array *, __VA_ARGS__)
#define TN_INTS(...) TN__LIST(int64_t, __VA_ARGS__)

/* ---- dtypes ---- */

typedef enum tn_dtype {
    TN_DTYPE_DEFAULT = 0, /* in options: the function's documented default */
    TN_BOOL,
    TN_INT8,
    TN_INT16,
    TN_INT32,
    TN_INT64,
    TN_UINT8,
    TN_UINT16,
    TN_UINT32,
    TN_UINT64,
    TN_FLOAT16,
    TN_BFLOAT16,
    TN_FLOAT32,
    TN_FLOAT64,
    TN_COMPLEX64,  /* two float32: real and imaginary part */
    TN_COMPLEX128, /* two float64 */
    TN_DTYPE_COUNT
} tn_dtype;

/* NumPy's name of a dtype ("float32"), "bfloat16", or "invalid". Static. */
TN_API const char *tn_dtype_name(tn_dtype dtype);
/* Bytes of one element; 0 for an invalid dtype. */
TN_API size_t tn_dtype_size(tn_dtype dtype);
/* The dtype of a name such as "float32", or TN_DTYPE_DEFAULT if there is none. */
TN_API tn_dtype tn_dtype_parse(const char *name);
/* The dtype NumPy's result_type gives for arrays of these two dtypes (bfloat16: as float16, with it float32). */
TN_API tn_dtype tn_dtype_promote(tn_dtype a, tn_dtype b);
/* Whether a dtype is floating (and not complex); whether it is a signed or unsigned integer (bool is neither); whether
 * it is complex. */
TN_API bool tn_dtype_is_float(tn_dtype dtype);
TN_API bool tn_dtype_is_integer(tn_dtype dtype);
TN_API bool tn_dtype_is_complex(tn_dtype dtype);

/* ---- shapes and axes ---- */

#define TN_MAX_NDIM 8

/* A shape by value: ndim extents, outermost first. ndim 0 is a scalar. */
#ifndef __cplusplus
typedef struct TN__LISTED tn_shape {
    tn__count ndim;
    int64_t dim[TN_MAX_NDIM];
} tn_shape;
#else
extern "C++" { /* in C++ a number or braces will do, too */
struct tn_shape {
    int ndim;
    int64_t dim[TN_MAX_NDIM];
    tn_shape() = default;
    tn_shape(int64_t extent) : ndim(1), dim{extent} {}
    tn_shape(std::initializer_list<int64_t> extents) : ndim(static_cast<int>(extents.size())), dim{}
    {
        tn__list_into(dim, TN_MAX_NDIM, extents);
    }
};
}
#endif

/* A list of axes by value. In options an empty list (zero) means "not given". Negative axes count from the end. */
#ifndef __cplusplus
typedef struct TN__LISTED tn_axes {
    tn__count count;
    int axis[TN_MAX_NDIM];
} tn_axes;
#else
extern "C++" {
struct tn_axes {
    int count;
    int axis[TN_MAX_NDIM];
    tn_axes() = default;
    tn_axes(int only) : count(1), axis{only} {}
    tn_axes(std::initializer_list<int> axes) : count(static_cast<int>(axes.size())), axis{}
    {
        tn__list_into(axis, TN_MAX_NDIM, axes);
    }
};
}
#endif

/* TN_SHAPE(100, 784) and TN_AXES(0, -1) build such values; both count their arguments (at least one, at most
 * 8 are used; more are reported as an error by the function that receives the value). */
#ifndef __cplusplus
#define TN__AT_MOST_8(a, b, c, d, e, f, g, h, ...) a, b, c, d, e, f, g, h
#define TN_SHAPE(...) \
    ((tn_shape){.ndim = (tn__count)TN__COUNT(int64_t, __VA_ARGS__), \
                .dim = {TN__AT_MOST_8(__VA_ARGS__, 0, 0, 0, 0, 0, 0, 0, 0, 0)}})
#define TN_AXES(...) \
    ((tn_axes){.count = (tn__count)TN__COUNT(int, __VA_ARGS__), \
               .axis = {TN__AT_MOST_8(__VA_ARGS__, 0, 0, 0, 0, 0, 0, 0, 0, 0)}})
#endif

/* ---- devices as values ---- */

typedef enum tn_device_kind {
    TN_DEVICE_DEFAULT = 0, /* the thread's current device */
    TN_DEVICE_CPU,
    TN_DEVICE_CUDA,
    TN_DEVICE_NULL,
    TN_DEVICE_VIRTUAL
} tn_device_kind; /* kinds that plug-ins bring have numbers behind these: tn_device_parse gives a device of theirs */

typedef struct tn_device {
    short kind; /* a tn_device_kind, or a plug-in's */
    short index;
} tn_device;

/* Several, as TN_DEVICES(tn_cuda(0), tn_cuda(1)): ended by the zero device, until the end of the block (C). */
#ifndef __cplusplus
#define TN_DEVICES(...) ((const tn_device[]){__VA_ARGS__, {TN_DEVICE_DEFAULT, 0}})
#endif

/* ---- arrays and scopes ---- */

/* An n-dimensional array: a handle to an immutable value, evaluated or still only recorded. */
typedef struct tn_array tn_array;

/*
 * A scope owns every array made in its thread while it is the innermost one, and frees them when it is left.
 *
 *     TN_SCOPE { ... }             leaves however the block is left: end, return, goto, break (which leaves only
 *                                  the scope's own block, as `continue` does)
 *     tn_scope_push(); ... tn_scope_pop();
 *
 * With no scope open, arrays belong to the thread and live until tn_free or the thread's end.
 *
 * An array that has been freed, by its scope or by tn_free, is no array any more: whatever is done with it, freeing it
 * again included, is TN_ERR_STATE, and the message says where it was freed if no other array has come and gone in its
 * place since. With TANSO_DEBUG=1 in the environment messages also say which operation made it, and where, and know
 * all that for every array; recording is slower then, and memory is used for each array made.
 */
TN_API void tn_scope_push(void);
/* Leaves the innermost scope and frees its arrays. With no scope open, latches TN_ERR_STATE. */
TN_API void tn_scope_pop(void);
/* Number of scopes open in this thread. */
TN_API int tn_scope_depth(void);
/* Hands x to the scope around the innermost one (to the thread, if there is none), so that it outlives it. Returns
 * x. */
TN_API tn_array *tn_keep(tn_array *x);
/* Takes x out of every scope; the caller frees it with tn_free. Returns x. In the thread whose scope it is in only:
 * else TN_ERR_STATE is latched. */
TN_API tn_array *tn_own(tn_array *x);
/* Frees x now, whatever scope it is in. NULL is ignored; an array that an object keeps (a layer its parameters, a
 * dataset, a loader, an optimizer, an archive, or an array its gradient) is TN_ERR_STATE. */
TN_API void tn_free(tn_array *x);
/* Number of live arrays of the process; for leak tests. */
TN_API size_t tn_live_arrays(void);

typedef struct tn__scope_guard {
    int depth;
} tn__scope_guard;
TN_API tn__scope_guard tn__scope_enter(void);
TN_API void tn__scope_leave(tn__scope_guard *guard);
#if defined(__GNUC__)
/* A loop of one round, in a form in which compilers see that there is one. Its names end in the line: such blocks lie
 * in each other. */
#define TN__GLUED(name, line) name##line
#define TN__GLUE(name, line) TN__GLUED(name, line)
#define TN__LINE_NAME(name) TN__GLUE(name, __LINE__)
#define TN__BLOCK(kind, enter) \
    for (tn__##kind##_guard TN__LINE_NAME(tn__in_##kind) __attribute__((cleanup(tn__##kind##_leave))) = enter, \
                           *TN__LINE_NAME(tn__once_##kind) = &TN__LINE_NAME(tn__in_##kind); \
         TN__LINE_NAME(tn__once_##kind); TN__LINE_NAME(tn__once_##kind) = NULL)
#define TN_SCOPE TN__BLOCK(scope, TN_HERE(tn__scope_enter()))
#endif

#ifndef TN_NO_MACROS
#define tn_scope_push() TN_HERE(tn_scope_push())
#define tn_scope_pop() TN_HERE(tn_scope_pop())
#define tn_keep(...) TN_HERE(tn_keep(__VA_ARGS__))
#define tn_own(...) TN_HERE(tn_own(__VA_ARGS__))
#define tn_free(...) TN_HERE(tn_free(__VA_ARGS__))
#endif

#ifdef __cplusplus
}

template <class... I> inline tn_shape TN_SHAPE(I... extents)
{
    static_assert(sizeof...(I) <= TN_MAX_NDIM, "at most TN_MAX_NDIM extents");
    return tn_shape{static_cast<int64_t>(extents)...};
}
template <class... I> inline tn_axes TN_AXES(I... axes)
{
    static_assert(sizeof...(I) <= TN_MAX_NDIM, "at most TN_MAX_NDIM axes");
    return tn_axes{static_cast<int>(axes)...};
}
#endif

#endif
