/* SPDX-License-Identifier: MIT */
/* Compilations of users' texts that failed: which texts, line by line, as the compiler counts them. */
#include "engine/users.h"

#include <stdio.h>
#include <string.h>

#include "core/error.h"
#include "core/memory.h"

int tn__without_place(const char *message)
{
    const char *place = strrchr(message, '(');
    int line, end = 0;
    if (place && place > message && sscanf(place, "(%*[^:()]:%d)%n", &line, &end) == 1 && end && !place[end])
        return (int)(place - 1 - message);
    return (int)strlen(message);
}

tn_status tn__fail_explained(const char *more)
{
    tn__error *failure = tn__error_retain(tn__error_last());
    /* The latch keeps the first error: it is let go only if it is this one. */
    if (strcmp(tn_error(), tn__error_message(failure)) == 0)
        tn_clear_error();
    const char *message = tn__error_message(failure);
    tn_status status = tn__fail(tn__error_status(failure), NULL, "%.*s%s", tn__without_place(message), message, more);
    tn__error_release(failure);
    return status;
}

/* Whether an entry before this one has the same text. */
static bool seen_before(const tn__collection *c, size_t entry, const tn__user *user)
{
    for (size_t i = 0; i < entry; i++) {
        const tn__node *n = c->entry[i].node;
        if ((n->op == TN__OP_USER || n->op == TN__OP_USER_REDUCE) && n->attr.user->part == user->part)
            return true;
    }
    return false;
}

void tn__users_explain(const tn__collection *c)
{
    const tn__error *failure = tn__error_last();
    if (tn__error_status(failure) != TN_ERR_COMPILE)
        return;
    const char *message = tn__error_message(failure);
    tn__text text = {0};
    for (size_t i = 0; i < c->count; i++) {
        const tn__node *n = c->entry[i].node;
        if (n->op != TN__OP_USER && n->op != TN__OP_USER_REDUCE)
            continue;
        /* "TITLE:LINE:" for gcc and clang, "TITLE(LINE):" for NVRTC */
        if (strstr(message, n->attr.user->kernel->name) && !seen_before(c, i, n->attr.user))
            tn__user_listing(n->attr.user, &text);
    }
    if (!text.length)
        tn__text_add(
            &text, "\n(the evaluation has kernels of your own, which only a compiler can run: the reference evaluator "
                   "cannot take its place)");
    char *more = tn__text_take(&text);
    if (more)
        tn__fail_explained(more);
    tn__free(more);
}
