/* SPDX-License-Identifier: MIT */
/*
 * The CPU backend's threads. A job is a number of pieces, which the caller and the workers take one by one, so that the
 * caller never waits for a thread that has not begun: a worker that gets no processor, on a machine that does other
 * work, too, just takes no piece.
 */
#ifndef TN_BACKENDS_CPU_BASE_POOL_H
#define TN_BACKENDS_CPU_BASE_POOL_H

#include <stdbool.h>

#define TN__POOL_WORKERS 1023 /* most workers */

typedef void (*tn__pool_piece)(void *context, int piece);

/* Does all pieces, with up to team - 1 workers, and returns when all are done. False, with nothing done, while another
 * job is under way: of another thread, or the very one that calls. */
bool tn__pool_run(int team, int pieces, tn__pool_piece piece, void *context);

#endif
