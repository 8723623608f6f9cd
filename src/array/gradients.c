/* SPDX-License-Identifier: MIT */
/* Which records hold gradients that are still to be computed: a step of an optimizer overwrites what they are computed
 * from. */
#include "array/node.h"

#include <pthread.h>
#include <stdatomic.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static tn__var *first;
static atomic_int listed;

static void take_out(tn__var *var)
{
    *(var->previous ? &var->previous->next : &first) = var->next;
    if (var->next)
        var->next->previous = var->previous;
    var->previous = var->next = NULL;
    var->giver = 0;
    atomic_fetch_sub_explicit(&listed, 1, memory_order_relaxed);
}

static void put_in(tn__var *var)
{
    var->next = first;
    if (first)
        first->previous = var;
    first = var;
    atomic_fetch_add_explicit(&listed, 1, memory_order_relaxed);
}

void tn__var_hold(tn__var *var, tn__node *grad)
{
    bool pending = grad && tn__node_pending(grad);
    if (!pending && !var->giver)
        return;
    pthread_mutex_lock(&lock);
    if (!pending) {
        take_out(var);
    } else {
        if (!var->giver)
            put_in(var);
        var->giver = tn__thread_number() + 1u;
    }
    pthread_mutex_unlock(&lock);
}

int tn__pending_gradients(tn__node **nodes, int room)
{
    if (atomic_load_explicit(&listed, memory_order_relaxed) == 0)
        return 0;
    int count = 0;
    uint32_t mine = tn__thread_number() + 1u;
    pthread_mutex_lock(&lock);
    for (const tn__var *var = first; var; var = var->next) {
        if (var->giver != mine)
            continue;
        tn__node *node = var->handle ? tn__array_node(var->handle) : var->grad;
        if (!tn__node_pending(node) || node->arity == 0)
            continue; /* constants need nothing */
        if (count < room)
            nodes[count] = node;
        count++;
    }
    pthread_mutex_unlock(&lock);
    return count;
}

/* A child by fork has none of the threads that may hold the lock. */
static void hold(void) { pthread_mutex_lock(&lock); }
static void let_go(void) { pthread_mutex_unlock(&lock); }
__attribute__((constructor)) static void watch_forks(void)
{
    (void)!pthread_atfork(hold, let_go, let_go); /* without memory: no child while others record gradients */
}
