/* SPDX-License-Identifier: MIT */
/* Telling a program of the operations that its functions record. */
#include <pthread.h>
#include "array/node.h"
#include "nn/layer.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static tn_function_hook current;
static void *current_user;

/* The hook itself may record: that is not told. */
static void tell(const tn__node *node)
{
    static _Thread_local bool telling;
    if (telling)
        return;
    pthread_mutex_lock(&lock);
    tn_function_hook hook = current;
    void *user = current_user;
    pthread_mutex_unlock(&lock);
    if (!hook)
        return;
    telling = true;
    hook(tn__ops[node->op].name, (tn_dtype)node->dtype, tn__shape_value(node->shape), user);
    telling = false;
}

void tn_set_function_hook(tn_function_hook hook, void *user)
{
    pthread_mutex_lock(&lock);
    current = hook;
    current_user = user;
    pthread_mutex_unlock(&lock);
    tn__watch_recording(hook ? tell : NULL);
}
