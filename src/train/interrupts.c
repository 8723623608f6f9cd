/* SPDX-License-Identifier: MIT */
/*
 * SIGINT and SIGTERM as the end of a run. Several trainers of a process may catch them at once: the first installs the
 * handler, the last one takes it away. The handler has a stack of its own in the thread that runs: oneDNN's products
 * keep their workspace where the stack pointer is, and a signal's frame would be written into it.
 */
#include <pthread.h>
#include <signal.h>
#include "train/parts.h"

static const int caught[] = {SIGINT, SIGTERM};
#define CAUGHT ((int)(sizeof caught / sizeof *caught))
#define STACK ((size_t)1 << 16)

static volatile sig_atomic_t interrupted;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int catching;
static struct sigaction before[CAUGHT];

struct tn__interrupts {
    stack_t before;
    bool has_stack;
    char stack[STACK];
};

static void interrupt(int signal)
{
    (void)signal;
    interrupted = 1;
}

static void install(void)
{
    struct sigaction action = {.sa_handler = interrupt, .sa_flags = (int)SA_RESETHAND | SA_RESTART | SA_ONSTACK};
    sigemptyset(&action.sa_mask);
    interrupted = 0;
    for (int i = 0; i < CAUGHT; i++)
        sigaction(caught[i], &action, &before[i]);
}

tn__interrupts *tn__interrupts_catch(void)
{
    tn__interrupts *made = tn__calloc(1, sizeof *made);
    if (!made) {
        tn__fail_memory("trainer_run", sizeof *made);
        return NULL;
    }
    stack_t stack = {.ss_sp = made->stack, .ss_size = sizeof made->stack};
    made->has_stack = sigaltstack(NULL, &made->before) == 0 && (made->before.ss_flags & SS_DISABLE) &&
                      sigaltstack(&stack, NULL) == 0; /* a program's own will do */
    pthread_mutex_lock(&lock);
    if (catching++ == 0)
        install();
    pthread_mutex_unlock(&lock);
    return made;
}

void tn__interrupts_let(tn__interrupts *interrupts)
{
    if (!interrupts)
        return;
    pthread_mutex_lock(&lock);
    if (--catching == 0)
        for (int i = 0; i < CAUGHT; i++)
            sigaction(caught[i], &before[i], NULL);
    pthread_mutex_unlock(&lock);
    if (interrupts->has_stack)
        sigaltstack(&interrupts->before, NULL);
    tn__free(interrupts);
}

bool tn__interrupted(void) { return interrupted != 0; }
