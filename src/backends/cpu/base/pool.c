/* SPDX-License-Identifier: MIT */
/*
 * Threads that wait for pieces of work, spinning briefly and then asleep.
 *
 * Why not OpenMP's: a region of it waits until each of its threads has had a processor, and its threads spin for
 * milliseconds before they sleep. Beside other programs that made an epoch of training ten times as long, and a library
 * cannot choose OpenMP's manner of waiting for the program it is in. oneDNN, which would use OpenMP, multiplies in one
 * thread at a time here, and its products are cut into pieces (matmul/library.c), which is faster than its own cuts,
 * too.
 */
#include "backends/cpu/base/pool.h"

#include <limits.h>
#include <linux/futex.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "core/clock.h"
#include "core/signals.h"

#ifdef _OPENMP
#include <omp.h>
#endif

#define SPIN 60000 /* nanoseconds: somewhat more than a step of training spends between two jobs */

static struct {
    /* The job's number and, in the low half, its pieces that nobody has taken yet: one word, so that whoever takes a
     * piece takes it of the job whose other fields it has read. */
    _Atomic uint64_t left;
    _Atomic uint32_t undone;       /* pieces not done yet; the caller sleeps on it */
    _Atomic uint32_t calls;        /* counts jobs; workers sleep on it */
    _Atomic uint32_t sleepers;     /* workers asleep, or about to be */
    _Atomic bool waits;            /* the caller sleeps, or is about to */
    _Atomic bool ends;
    atomic_flag busy;              /* held by the thread whose job it is */
    _Atomic int pieces, team;
    _Atomic(tn__pool_piece) piece;
    _Atomic(void *) context;
    /* Fields of the thread that holds `busy`. */
    int workers;
    pthread_t thread[TN__POOL_WORKERS];
} pool = {.busy = ATOMIC_FLAG_INIT};

#define PIECES(left) ((uint32_t)(left))

/* ---- waiting ---- */

static void sleep_on(_Atomic uint32_t *word, uint32_t value)
{
    syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, value, NULL, NULL, 0);
}
static void wake(_Atomic uint32_t *word, int count)
{
    syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, count, NULL, NULL, 0);
}

static void pause_briefly(void)
{
#if defined(__x86_64__)
    for (int i = 0; i < 4; i++)
        __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#endif
}

/* Until the word is no longer `value` or the time is up; false if it is. */
static bool spin_while(_Atomic uint32_t *word, uint32_t value)
{
    int64_t end = 0;
    while (atomic_load_explicit(word, memory_order_acquire) == value) {
        int64_t now = tn__nanoseconds();
        end = end ? end : now + SPIN;
        if (now >= end)
            return false;
        pause_briefly();
    }
    return true;
}

/* ---- working ---- */

/* Takes pieces of the job until none is left. */
static void work(void)
{
    uint64_t left = atomic_load(&pool.left);
    while (PIECES(left)) {
        tn__pool_piece piece = atomic_load_explicit(&pool.piece, memory_order_relaxed);
        void *context = atomic_load_explicit(&pool.context, memory_order_relaxed);
        int number = atomic_load_explicit(&pool.pieces, memory_order_relaxed) - (int)PIECES(left);
        if (!atomic_compare_exchange_weak(&pool.left, &left, left - 1))
            continue;
        piece(context, number);
        if (atomic_fetch_sub(&pool.undone, 1) == 1 && atomic_load(&pool.waits))
            wake(&pool.undone, 1);
        left = atomic_load(&pool.left);
    }
}

static void *worker(void *number)
{
#ifdef _OPENMP
    omp_set_num_threads(1); /* oneDNN uses a single thread when called from this one */
#endif
    uint32_t calls = 0;
    while (!atomic_load(&pool.ends)) {
        if ((int)(intptr_t)number < atomic_load_explicit(&pool.team, memory_order_relaxed))
            work();
        if (!spin_while(&pool.calls, calls)) {
            atomic_fetch_add(&pool.sleepers, 1);
            while (atomic_load(&pool.calls) == calls && !atomic_load(&pool.ends))
                sleep_on(&pool.calls, calls);
            atomic_fetch_sub(&pool.sleepers, 1);
        }
        calls = atomic_load(&pool.calls);
    }
    return NULL;
}

/* In a forked child there are no workers; it may start its own. */
static void forget_workers(void)
{
    pool.workers = 0;
    atomic_store(&pool.left, 0);
    atomic_store(&pool.sleepers, 0);
    atomic_store(&pool.waits, false);
    atomic_flag_clear(&pool.busy);
}
static void watch_forks(void) { (void)!pthread_atfork(NULL, NULL, forget_workers); }

/* Starts as many workers as a team needs, or as many as the system allows. */
static void hire(int team)
{
    static pthread_once_t watched = PTHREAD_ONCE_INIT;
    if (pool.workers >= team - 1 || pool.workers == TN__POOL_WORKERS)
        return;
    pthread_once(&watched, watch_forks);
    sigset_t before;
    tn__signals_hold(&before);
    while (pool.workers < team - 1 && pool.workers < TN__POOL_WORKERS &&
           pthread_create(&pool.thread[pool.workers], NULL, worker, (void *)(intptr_t)(pool.workers + 1)) == 0)
        pool.workers++;
    tn__signals_let(&before);
}

bool tn__pool_run(int team, int pieces, tn__pool_piece piece, void *context)
{
    if (atomic_flag_test_and_set_explicit(&pool.busy, memory_order_acquire))
        return false;
    hire(team);
    atomic_store_explicit(&pool.piece, piece, memory_order_relaxed);
    atomic_store_explicit(&pool.context, context, memory_order_relaxed);
    atomic_store_explicit(&pool.pieces, pieces, memory_order_relaxed);
    atomic_store_explicit(&pool.team, team, memory_order_relaxed);
    atomic_store_explicit(&pool.undone, (uint32_t)pieces, memory_order_relaxed);
    uint64_t job = (atomic_load_explicit(&pool.left, memory_order_relaxed) >> 32) + 1;
    atomic_store(&pool.left, job << 32 | (uint32_t)pieces);
    atomic_fetch_add(&pool.calls, 1);
    if (atomic_load(&pool.sleepers))
        wake(&pool.calls, INT_MAX);

    work();
    for (uint32_t undone; (undone = atomic_load(&pool.undone)) != 0;) {
        if (spin_while(&pool.undone, undone))
            continue;
        atomic_store(&pool.waits, true);
        if ((undone = atomic_load(&pool.undone)) != 0)
            sleep_on(&pool.undone, undone);
        atomic_store(&pool.waits, false);
    }
    atomic_flag_clear_explicit(&pool.busy, memory_order_release);
    return true;
}

/* Ends the workers before the library's code is unloaded. */
__attribute__((destructor)) static void dismiss(void)
{
    atomic_store(&pool.ends, true);
    atomic_fetch_add(&pool.calls, 1);
    wake(&pool.calls, INT_MAX);
    while (pool.workers > 0)
        pthread_join(pool.thread[--pool.workers], NULL);
}
