/* SPDX-License-Identifier: MIT */
/* Threads that record: their numbers, what they post to each other, and what is freed when one ends. */
#include "array/thread.h"

#include <pthread.h>

#include "array/build.h"
#include "array/places.h"
#include "core/memory.h"

#define NUMBERS 65536 /* what 16 bits hold; 0 is nobody's */

_Thread_local tn__thread tn__this_thread __attribute__((tls_model("initial-exec")));
_Thread_local int tn__no_grad_depth;

static struct {
    pthread_mutex_t lock;
    tn__thread *threads[NUMBERS]; /* by number; NULL: free */
    int64_t live;                 /* balance of ended threads */
    pthread_once_t once;
    pthread_key_t key;            /* whose destructor ends a thread */
    bool has_key;
} registry = {.lock = PTHREAD_MUTEX_INITIALIZER, .once = PTHREAD_ONCE_INIT};

/* ---- posting ---- */

static void free_posted(tn__handle *arrays, tn__node *nodes)
{
    while (arrays) {
        tn__handle *x = arrays;
        arrays = x->posted;
        tn__handle_free(x, x->died);
    }
    while (nodes) {
        tn__node *node = nodes;
        nodes = (tn__node *)(uintptr_t)node->mark;
        tn__node_free(node);
    }
}

/* Takes what was posted to a thread, with the registry locked; false if there is nothing. */
static bool take_posted(tn__thread *thread, tn__handle **arrays, tn__node **nodes)
{
    *arrays = thread->posted_arrays;
    *nodes = thread->posted_nodes;
    thread->posted_arrays = NULL;
    thread->posted_nodes = NULL;
    /* Where the lives of handles are written down, no call takes the straight way of plain.c. */
    tn__thread_set_state(thread, TN__CALM, !tn__history_is_kept());
    return *arrays || *nodes;
}

static void receive(tn__thread *self)
{
    tn__handle *arrays;
    tn__node *nodes;
    pthread_mutex_lock(&registry.lock);
    take_posted(self, &arrays, &nodes);
    pthread_mutex_unlock(&registry.lock);
    free_posted(arrays, nodes);
}

/* Frees for an owner that has ended. While a stand-in holds its number, other threads post to the stand-in and no new
 * thread gets the number. Called with the registry locked. */
static void act_for(tn__thread *stand_in, uint16_t owner)
{
    uint16_t acting = tn__self()->acting;
    tn__handle *arrays;
    tn__node *nodes;
    while (take_posted(stand_in, &arrays, &nodes)) {
        pthread_mutex_unlock(&registry.lock);
        tn__self()->acting = owner;
        free_posted(arrays, nodes);
        tn__self()->acting = acting;
        pthread_mutex_lock(&registry.lock);
    }
    registry.threads[owner] = NULL;
}

static void post(uint16_t owner, tn__handle *x, tn__node *node)
{
    tn__thread stand_in = {0};
    pthread_mutex_lock(&registry.lock);
    tn__thread *thread = registry.threads[owner];
    bool ended = thread == NULL;
    if (ended)
        registry.threads[owner] = thread = &stand_in;
    if (x) {
        x->died = tn__place_here(); /* for when the owner frees it */
        x->posted = thread->posted_arrays;
        thread->posted_arrays = x;
    }
    if (node) {
        node->mark = (uintptr_t)thread->posted_nodes;
        thread->posted_nodes = node;
    }
    tn__thread_set_state(thread, TN__CALM, false);
    if (ended)
        act_for(&stand_in, owner);
    pthread_mutex_unlock(&registry.lock);
}

void tn__thread_post_array(tn__handle *x, uint16_t owner) { post(owner, x, NULL); }
void tn__thread_post_node(tn__node *node, uint16_t owner) { post(owner, NULL, node); }

/* ---- the end of a thread and of the process ---- */

static void end_thread(void)
{
    tn__thread *self = tn__self();
    if (!self->number)
        return;
    receive(self); /* before the scopes free the same arrays again */
    tn__scopes_end();
    tn__leave(0);
    tn__pending_end();

    /* Once the number is free nobody can post to this thread any more. */
    tn__handle *arrays;
    tn__node *nodes;
    pthread_mutex_lock(&registry.lock);
    while (take_posted(self, &arrays, &nodes)) {
        pthread_mutex_unlock(&registry.lock);
        free_posted(arrays, nodes);
        pthread_mutex_lock(&registry.lock);
    }
    registry.threads[self->number] = NULL;
    registry.live += self->live;
    pthread_mutex_unlock(&registry.lock);

    tn__free(self->temporaries);
    tn__guards_free(self);
    /* The flush itself puts objects into the cache, which only a thread with a number may. */
    for (int kind = 0; kind < TN__SLAB_KINDS; kind++)
        tn__slab_flush(&self->slabs[kind], (tn__slab_kind)kind);
    *self = (tn__thread){0};
}

static void end_thread_by_key(void *unused)
{
    (void)unused;
    end_thread();
}

/* The key's destructor does not run for the thread that ends the process. */
__attribute__((destructor)) static void end_process(void)
{
    end_thread();
    if (registry.has_key)
        pthread_key_delete(registry.key);
    registry.has_key = false;
    tn__slab_trim();
}

static void make_key(void)
{
    registry.has_key = pthread_key_create(&registry.key, end_thread_by_key) == 0;
}

/* ---- registration ---- */

static uint16_t claim_number(tn__thread *self)
{
    uint16_t number = 0;
    pthread_mutex_lock(&registry.lock);
    for (int n = 1; n < NUMBERS && !number; n++)
        if (!registry.threads[n])
            number = (uint16_t)n;
    if (number)
        registry.threads[number] = self;
    pthread_mutex_unlock(&registry.lock);
    return number;
}

bool tn__thread_register(void)
{
    tn__thread *self = tn__self();
    if (self->number)
        return true;
    pthread_once(&registry.once, make_key);
    uint16_t number = claim_number(self);
    if (!number) {
        tn__fail(TN_ERR_STATE, "thread", "%d threads use arrays already, the most there can be: end some", NUMBERS - 1);
        return false;
    }
    if (registry.has_key && pthread_setspecific(registry.key, self) != 0) {
        pthread_mutex_lock(&registry.lock);
        registry.threads[number] = NULL;
        pthread_mutex_unlock(&registry.lock);
        tn__fail_memory("thread", sizeof *self);
        return false;
    }
    self->number = self->acting = number;
    self->innermost = &self->base;
    return true;
}

bool tn__thread_attend(void)
{
    if (!tn__thread_register())
        return false;
    receive(tn__self());
    return true;
}

bool tn__thread_begin_slowly(tn__thread *self)
{
    tn__guards_check(self);
    return tn__thread_ready(self);
}

uint16_t tn__thread_number(void)
{
    tn__thread_register();
    return tn__self()->number;
}

size_t tn_live_arrays(void)
{
    pthread_mutex_lock(&registry.lock);
    int64_t live = registry.live;
    for (int n = 1; n < NUMBERS; n++)
        if (registry.threads[n])
            live += __atomic_load_n(&registry.threads[n]->live, __ATOMIC_RELAXED);
    pthread_mutex_unlock(&registry.lock);
    return live > 0 ? (size_t)live : 0;
}

/* Stamps differ between threads too, because evaluated nodes are shared: another thread's mark must never pass for
 * one's own. */
uint32_t tn__stamp(void)
{
    static uint32_t last;
    uint32_t stamp = __atomic_add_fetch(&last, 1, __ATOMIC_RELAXED);
    return stamp ? stamp : tn__stamp(); /* 0 is the mark of a new node */
}
