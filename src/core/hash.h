/* SPDX-License-Identifier: MIT */
/* A 64-bit hash for tables, and a 128-bit one for names of cached files (not against adversaries). */
#ifndef TN_CORE_HASH_H
#define TN_CORE_HASH_H

#include <stddef.h>
#include <stdint.h>
#include "core/plugin.h"

TN__PLUGIN_BEGIN
uint64_t tn__hash(const void *bytes, size_t count, uint64_t seed);
/* 32 hexadecimal digits and a NUL. */
void tn__hash_name(const void *bytes, size_t count, char name[33]);
TN__PLUGIN_END
static inline uint64_t tn__hash_mix(uint64_t h, uint64_t v)
{
    h = (h ^ v) * 0x9E3779B97F4A7C15u;
    return h ^ (h >> 29);
}

#endif
