/* SPDX-License-Identifier: MIT */
/* Between the files that make layers of words: those whose arguments are a list, and groups. */
#ifndef TN_NN_PARSE_H
#define TN_NN_PARSE_H

#include "nn/layer.h"

/* The layer of such a word; NULL if it is none of them. */
tn_layer *tn__layer_from_list(const char *operation, const char *word);
/* The i-th of their names, and how it is written; NULL: there are no more. */
const char *tn__list_word(int i, const char **usage);
/* The same of groups in parentheses. */
const char *tn__nest_word(int i, const char **usage);

#endif
