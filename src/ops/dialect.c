/* SPDX-License-Identifier: MIT */
/* The kernel dialect's files, which are embedded into the library, in the order in which they need one another. */
#include "ops/dialect.h"

#include "tn_embed.h"

#define FILE_OF(part, name) {TN__DIALECT_##part, tn__embed_scalar_##name, &tn__embed_scalar_##name##_size}
static const struct {
    uint32_t part;
    const unsigned char *text;
    const size_t *size;
} files[] = {
    FILE_OF(TYPES, base), FILE_OF(TYPES, cast),
    FILE_OF(REAL, arith), FILE_OF(REAL, math), FILE_OF(REAL, gpu), FILE_OF(CPU, cpu), FILE_OF(REAL, reduce),
    FILE_OF(RANDOM, random),
    FILE_OF(COMPLEX, complex),
    FILE_OF(DRAW, draw),
    FILE_OF(USER, user),
};

void tn__dialect_add(tn__text *text, uint32_t parts)
{
    for (size_t i = 0; i < sizeof files / sizeof *files; i++)
        if (parts & files[i].part)
            tn__text_addn(text, (const char *)files[i].text, *files[i].size);
}
