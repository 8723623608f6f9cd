/* SPDX-License-Identifier: MIT */
/* A C function's signature, read from its definition or declaration. */
#ifndef TN_ARRAY_VECTORIZE_H
#define TN_ARRAY_VECTORIZE_H

#include "array/user.h"

typedef struct tn__signature {
    tn_dtype result;
    char name[TN__USER_NAME];
    int count;
    tn_dtype dtype[TN__USER_PARAMS];
    char parameter[TN__USER_PARAMS][TN__USER_NAME]; /* a, b, ... where the text names none */
    bool body;
} tn__signature;

/* False with a latched failure. */
bool tn__signature_read(const char *text, tn__signature *signature);

#endif
