/* SPDX-License-Identifier: MIT */
/*
 * Signals are the program's business. The library's own threads take none, nor do those that a driver starts while it
 * is opened: a thread inherits what its maker holds back. And what is held back waits until it is let through.
 */
#ifndef TN_CORE_SIGNALS_H
#define TN_CORE_SIGNALS_H

#include <pthread.h>
#include <signal.h>
#include <stddef.h>

/* Holds back, in this thread, all that others send; not what its own faults raise, which cannot wait. `before` is for
 * the return. */
static inline void tn__signals_hold(sigset_t *before)
{
    static const int faults[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGSYS, SIGABRT};
    sigset_t held;
    sigfillset(&held);
    for (size_t i = 0; i < sizeof faults / sizeof *faults; i++)
        sigdelset(&held, faults[i]);
    pthread_sigmask(SIG_BLOCK, &held, before);
}

static inline void tn__signals_let(const sigset_t *before) { pthread_sigmask(SIG_SETMASK, before, NULL); }

#endif
