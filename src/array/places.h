/* SPDX-License-Identifier: MIT */
/*
 * Where handles died, for the message that a later use of one gets. Places of the program's text have small numbers
 * that last as long as the process, so that a free handle can keep one. With TANSO_DEBUG the whole lives of handles
 * are written down, too. Inside the room array/ only.
 */
#ifndef TN_ARRAY_PLACES_H
#define TN_ARRAY_PLACES_H

#include "array/node.h"

/* The number of the place of the call that is under way, where something is freed by itself. 0: not known. */
uint32_t tn__place_here(void);
/* The number of a scope that was opened there: what dies with it. */
uint32_t tn__place_of_scope(const char *file, int line);
/* Writes how what died there died: "freed at a.c:3". */
#define TN__DEATH_TEXT 160
const char *tn__place_text(uint32_t place, char text[TN__DEATH_TEXT]);

/* Latches TN_ERR_STATE for the use of a handle that is dead. The caller owns one reference. */
tn__error *tn__dead_error(const tn_array *x, const char *operation);

/* With TANSO_DEBUG. */
extern bool tn__history_kept;
static inline bool tn__history_is_kept(void) { return tn__history_kept; }
void tn__history_made(const tn_array *x, const tn__node *node);
void tn__history_died(const tn_array *x, uint32_t place);
/* Writes where x was made and died, as far as that is known; "" without. */
#define TN__HISTORY_TEXT 400
const char *tn__history_text(const tn_array *x, char text[TN__HISTORY_TEXT]);

#endif
