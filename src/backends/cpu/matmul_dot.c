/* SPDX-License-Identifier: MIT */
/*
 * Products of a row and a column, which are one number: a sum in lanes, which do not wait for one another as the steps of one sum
 * do, then of the lanes in halves.
 */
#include "backends/cpu/matmul.h"

enum { LANES = 32 };

#define DOT(name, T) \
    static T dot_##name(const T *a, int64_t a_step, const T *b, int64_t b_step, int64_t k) \
    { \
        T lane[LANES] = {0}; \
        int64_t i = 0; \
        if (a_step == 1 && b_step == 1) \
            for (; i + LANES <= k; i += LANES) \
                for (int j = 0; j < LANES; j++) \
                    lane[j] += a[i + j] * b[i + j]; \
        for (; i < k; i++) \
            lane[i % LANES] += a[i * a_step] * b[i * b_step]; \
        for (int half = LANES / 2; half > 0; half /= 2) \
            for (int j = 0; j < half; j++) \
                lane[j] += lane[j + half]; \
        return lane[0]; \
    } \
    bool tn__matmul_dot_##name(const tn__matmul_product *p) \
    { \
        T *out = (T *)p->out.place; \
        int64_t a_step = p->a.transposed ? p->a.ld : 1, b_step = p->b.transposed ? 1 : p->b.ld; \
        T sum = p->alpha.name * dot_##name((const T *)p->a.place, a_step, (const T *)p->b.place, b_step, p->k); \
        *out = p->beta ? *out + sum : sum; \
        return true; \
    }
DOT(f32, float)
DOT(f64, double)
