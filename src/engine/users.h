/* SPDX-License-Identifier: MIT */
/* What the engine does for users' kernels: a compiler's words beside the numbered lines they are about. */
#ifndef TN_ENGINE_USERS_H
#define TN_ENGINE_USERS_H

#include "array/user.h"
#include "engine/collect.h"

/* After a compilation that failed: makes the failure one that also shows the texts of the collection's users'
 * kernels. */
void tn__users_explain(const tn__collection *c);
/* The failure last latched as one with more text behind it; it takes the latched one's place. */
tn_status tn__fail_explained(const char *more);

/* The length of an error's message without the caller's place, " (file:line)", at its end. */
int tn__without_place(const char *message);

#endif
