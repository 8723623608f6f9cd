/* SPDX-License-Identifier: MIT */
/*
 * The program's handlers of SIGINT and SIGTERM, kept while NVRTC compiles a process's first text. For some ten
 * milliseconds of that NVRTC puts its own in their place, which end the program with status 4, or by a fault in another
 * thread than the compiling one; and it puts the program's back without their flags. It says so nowhere and has no
 * switch for it. So the compiling thread holds signals back, and for those that other threads of the program let
 * through (OpenBLAS has some), one more thread waits for the exchange and undoes it.
 */
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>

#include "backends/cuda/driver/driver.h"
#include "core/signals.h"

enum { TAKEN = 3 };
static const int taken[TAKEN] = {SIGINT, SIGTERM, SIGXFSZ};

typedef struct watch {
    struct sigaction own[TAKEN];
    atomic_bool ended;
} watch;

static void put_back(const watch *w)
{
    for (int i = 0; i < TAKEN; i++)
        sigaction(taken[i], &w->own[i], NULL);
}

static bool differs(const watch *w, int i)
{
    struct sigaction now;
    return sigaction(taken[i], NULL, &now) == 0 && now.sa_handler != w->own[i].sa_handler;
}

static void *keep(void *context)
{
    watch *w = context;
    while (!w->ended)
        if (differs(w, 0) || differs(w, 1))
            put_back(w);
    return NULL;
}

nvrtcResult tn__cuda_compile_program(const tn__cuda_compiler *compiler, nvrtcProgram program, int count,
                                     const char *const *options)
{
    static atomic_flag begun = ATOMIC_FLAG_INIT;
    if (atomic_flag_test_and_set(&begun))
        return compiler->nvrtcCompileProgram(program, count, options);
    watch w = {.ended = false};
    sigset_t before;
    pthread_t keeper;
    tn__signals_hold(&before); /* the new thread inherits the mask */
    for (int i = 0; i < TAKEN; i++)
        sigaction(taken[i], NULL, &w.own[i]);
    bool kept = pthread_create(&keeper, NULL, keep, &w) == 0;
    nvrtcResult result = compiler->nvrtcCompileProgram(program, count, options);
    w.ended = true;
    if (kept)
        pthread_join(keeper, NULL);
    put_back(&w);
    tn__signals_let(&before);
    return result;
}
