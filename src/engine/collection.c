/* SPDX-License-Identifier: MIT */
/* A thread's collections, whose vectors are kept from one evaluation to the next. */
#include "engine/collect.h"

#include "core/memory.h"

#include <pthread.h>

static pthread_key_t collection_key;
static pthread_once_t collection_once = PTHREAD_ONCE_INIT;
static _Thread_local tn__collection *collection __attribute__((tls_model("initial-exec")));

static void collection_free(void *memory)
{
    tn__collection *c = memory;
    if (c->next)
        collection_free(c->next);
    tn__free(c->entry);
    tn__free(c->leaf);
    tn__free(c->root);
    tn__free(c->gradient);
    tn__free(c->scalar);
    tn__free(c->key);
    tn__free(c->stack);
    tn__free(c->table);
    tn__free(c->moving);
    tn__free(c->loose);
    tn__free(c);
}

static void make_key(void) { pthread_key_create(&collection_key, collection_free); }

__attribute__((destructor)) static void free_last(void)
{
    if (collection)
        collection_free(collection);
    collection = NULL;
}

tn__collection *tn__collection_get(void)
{
    if (collection)
        return collection;
    pthread_once(&collection_once, make_key);
    collection = tn__calloc(1, sizeof *collection);
    if (collection)
        pthread_setspecific(collection_key, collection);
    return collection;
}

tn__collection *tn__collection_next(tn__collection *c)
{
    if (!c->next)
        c->next = tn__calloc(1, sizeof *c->next);
    return c->next;
}

void tn__collection_forget(const tn__collection *c)
{
    for (size_t i = 0; i < c->count; i++)
        if (c->entry[i].leaf < 0 && !c->entry[i].again)
            tn__node_set_mark(c->entry[i].node, 0);
}
