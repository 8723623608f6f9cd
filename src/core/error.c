/* SPDX-License-Identifier: MIT */
/*
 * Error records and each thread's latch. A record is immutable and counted, so that the latch and any number of error
 * arrays, in any thread, share it.
 */
#include "core/error.h"

#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "core/log.h"
#include "core/memory.h"
#include "core/number.h"

struct tn__error {
    _Atomic uint32_t references;
    tn_status code;
    const char *message;
};

/* Records that need no memory; their counts mean nothing. */
static tn__error out_of_memory = {
    1, TN_ERR_MEMORY, "out of memory: not even an error message could be made; free some arrays and try again"};
static tn__error freed = {1, TN_ERR_STATE,
                          "this object has been freed, by its own tn_..._free or with what it was given to: nothing "
                          "can be done with it any more; make another one"};
static tn__error no_failure = {1, TN_ERR_INTERNAL, "an error was asked for where none was reported"};

typedef struct error_state {
    tn__error *latched; /* the first since tn_clear_error */
    tn__error *last;
    const char *file;   /* the caller's place, by tn__at */
    int line;
    bool watched;       /* is cleaned up when the thread ends */
    bool unread;        /* nobody has asked for what is latched */
} error_state;
/* In the static block of thread storage: tn__at is part of every call. */
static _Thread_local error_state state __attribute__((tls_model("initial-exec")));

static bool is_static(const tn__error *error)
{
    return error == &out_of_memory || error == &no_failure || error == &freed;
}

tn__error *tn__error_retain(tn__error *error)
{
    if (!is_static(error))
        atomic_fetch_add_explicit(&error->references, 1, memory_order_relaxed);
    return error;
}

void tn__error_release(tn__error *error)
{
    if (error && !is_static(error) &&
        atomic_fetch_sub_explicit(&error->references, 1, memory_order_acq_rel) == 1)
        tn__free(error);
}

/* ---- clean-up at the end of a thread ---- */

static pthread_key_t key;
static pthread_once_t key_once = PTHREAD_ONCE_INIT;
static bool have_key;

static void tell(const char *what)
{
    if (state.latched && state.unread)
        tn__log(TN__LOG_ERROR, "core", "%s ends, and nobody has asked for its error: %s: %s", what,
                tn_status_name(state.latched->code), state.latched->message);
    state.unread = false;
}

void tn__error_tell(void) { tell("the process"); }

static void forget(void *ended)
{
    tell(ended ? "a thread" : "the process");
    tn__error_release(state.latched);
    tn__error_release(state.last);
    state = (error_state){0};
}

static void make_key(void)
{
    have_key = pthread_key_create(&key, forget) == 0;
}

/* The main thread ends by exit(), which runs no destructors of keys. */
__attribute__((destructor(TN__EXIT_CORE))) static void forget_at_exit(void)
{
    forget(NULL);
}

static void watch_thread(void)
{
    if (state.watched)
        return;
    state.watched = true;
    pthread_once(&key_once, make_key);
    if (have_key)
        pthread_setspecific(key, &state);
}

/* ---- records ---- */

static void latch(tn__error *error)
{
    watch_thread();
    if (!state.latched) {
        state.latched = tn__error_retain(error);
        state.unread = true;
    }
    tn__error_retain(error);
    tn__error_release(state.last);
    state.last = error;
}

static const char *basename_of(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

/* Writes "operation: text (file:line)" as far as it fits; gives the whole length. */
static int compose(char *buffer, size_t capacity, const char *operation, const char *format, va_list args)
{
    size_t length = 0;
#define REST buffer + (length < capacity ? length : 0), (length < capacity ? capacity - length : 0)
    if (operation && *operation)
        length += (size_t)snprintf(REST, "%s: ", operation);
    int text = tn__vprint_into(REST, format, args);
    length += text > 0 ? (size_t)text : 0;
    if (state.file)
        length += (size_t)snprintf(REST, " (%s:%d)", basename_of(state.file), state.line);
#undef REST
    return (int)length;
}

static tn__error *record(tn_status code, const char *operation, const char *format, va_list args)
{
    char local[512];
    va_list again;
    va_copy(again, args);
    size_t length = (size_t)compose(local, sizeof local, operation, format, again);
    va_end(again);
    tn__error *error = tn__alloc(sizeof *error + length + 1);
    if (!error) {
        error = &out_of_memory;
    } else {
        char *message = (char *)(error + 1);
        if (length < sizeof local)
            memcpy(message, local, length + 1);
        else
            compose(message, length + 1, operation, format, args);
        atomic_init(&error->references, 1);
        error->code = code;
        error->message = message;
    }
    return error;
}

tn__error *tn__error_record(tn_status code, const char *operation, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    tn__error *error = record(code, operation, format, args);
    va_end(args);
    return error;
}

tn__error *tn__error_new(tn_status code, const char *operation, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    tn__error *error = record(code, operation, format, args);
    va_end(args);
    latch(error);
    return error;
}

tn_status tn__fail(tn_status code, const char *operation, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    tn__error *error = record(code, operation, format, args);
    va_end(args);
    latch(error);
    code = error->code;
    tn__error_release(error);
    return code;
}

tn_status tn__fail_null(const char *operation, const char *what)
{
    return tn__fail(TN_ERR_VALUE, operation, "expected %s, got NULL", what);
}

tn_status tn__fail_memory(const char *operation, size_t bytes)
{
    return tn__fail(TN_ERR_MEMORY, operation, "no memory for %zu bytes on the host; free some arrays and try again",
                    bytes);
}

tn__error *tn__error_last(void)
{
    return state.last ? state.last : &no_failure;
}

tn__error *tn__error_take(void)
{
    tn__error *taken = state.latched;
    state.latched = NULL;
    return taken;
}

tn__error *tn__error_no_memory(void)
{
    return &out_of_memory;
}

tn__error *tn__error_freed(void)
{
    return &freed;
}

tn_status tn__error_status(const tn__error *error)
{
    return error->code;
}

const char *tn__error_message(const tn__error *error)
{
    return error->message;
}

tn_status tn__error_raise(tn__error *error)
{
    latch(error);
    return error->code;
}

/* ---- the public face ---- */

void tn__at(const char *file, int line)
{
    state.file = file;
    state.line = line;
}

const char *tn__caller(int *line)
{
    *line = state.line;
    return state.file;
}

bool tn__latched(void)
{
    return state.latched;
}

void tn__error_seen(void)
{
    state.unread = false;
}

bool tn_ok(void)
{
    state.unread = false;
    return !state.latched;
}

const char *tn_error(void)
{
    state.unread = false;
    return state.latched ? state.latched->message : "";
}

tn_status tn_error_code(void)
{
    state.unread = false;
    return state.latched ? state.latched->code : TN_OK;
}

void tn_clear_error(void)
{
    tn__error_release(state.latched);
    state.latched = NULL;
}

const char *tn_status_name(tn_status status)
{
#define ROW(name) [name] = #name
    static const char *const names[] = {
        ROW(TN_OK),         ROW(TN_ERR_SHAPE),       ROW(TN_ERR_DTYPE),   ROW(TN_ERR_DEVICE), ROW(TN_ERR_INDEX),
        ROW(TN_ERR_VALUE),  ROW(TN_ERR_MEMORY),      ROW(TN_ERR_IO),      ROW(TN_ERR_FORMAT), ROW(TN_ERR_NAME),
        ROW(TN_ERR_COMPILE), ROW(TN_ERR_STATE),      ROW(TN_ERR_NAN),     ROW(TN_ERR_UNSUPPORTED),
        ROW(TN_ERR_INTERNAL),
    };
#undef ROW
    size_t index = (size_t)status;
    return index < sizeof names / sizeof *names ? names[index] : "an unknown status";
}
