/* SPDX-License-Identifier: MIT */
/*
 * Products of rows and a column, or of a row and columns, that are contiguous along k: each is summed in independent
 * lanes of a vector, which are then combined by halves; long ones in stretches, whose sums are added up in float64, so
 * that their errors do not grow with the length. And products of a column and a row: multiples of the row, one
 * after another, as tiles of several rows would write to several places at once.
 */
#include "backends/cpu/base/parallel.h"
#include "backends/cpu/matmul/matmul.h"

enum { LANES = 32, STRETCH = 4096 };

#define DOT(name, T) \
    static T stretch_##name(const T *a, int64_t a_step, const T *b, int64_t b_step, int64_t k) \
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
    static T dot_##name(const T *a, int64_t a_step, const T *b, int64_t b_step, int64_t k) \
    { \
        if (k <= STRETCH) \
            return stretch_##name(a, a_step, b, b_step, k); \
        double sum = 0; \
        for (int64_t i = 0; i < k; i += STRETCH) { \
            int64_t count = k - i < STRETCH ? k - i : STRETCH; \
            sum += stretch_##name(a + i * a_step, a_step, b + i * b_step, b_step, count); \
        } \
        return (T)sum; \
    } \
    static void dots_##name(void *context, int64_t begin, int64_t end) \
    { \
        const tn__matmul_product *p = context; \
        int64_t a_step = p->a.transposed ? p->a.ld : 1, b_step = p->b.transposed ? 1 : p->b.ld; \
        int64_t a_next = p->m > 1 ? p->a.ld : 0, b_next = p->n > 1 ? p->b.ld : 0, next = p->m > 1 ? p->out.ld : 1; \
        for (int64_t i = begin; i < end; i++) { \
            const T *a = (const T *)p->a.place + i * a_next, *b = (const T *)p->b.place + i * b_next; \
            T *out = (T *)p->out.place + i * next, sum = p->alpha.name * dot_##name(a, a_step, b, b_step, p->k); \
            *out = p->beta ? *out + sum : sum; \
        } \
    } \
    bool tn__matmul_dot_##name(const tn__matmul_product *p) \
    { \
        tn__cpu_for(p->m * p->n, p->k + 1, dots_##name, (void *)p); \
        return true; \
    }
DOT(f32, float)
DOT(f64, double)

#define OUTER(name, T) \
    static void multiples_##name(void *context, int64_t begin, int64_t end) \
    { \
        const tn__matmul_product *p = context; \
        const T *a = (const T *)p->a.place, *b = (const T *)p->b.place; \
        const int64_t a_step = p->a.transposed ? 1 : p->a.ld, b_step = p->b.transposed ? p->b.ld : 1, n = p->n; \
        for (int64_t i = begin; i < end; i++) { \
            const T factor = p->alpha.name * a[i * a_step]; \
            T *restrict out = (T *)p->out.place + i * p->out.ld; \
            if (p->beta) \
                for (int64_t j = 0; j < n; j++) \
                    out[j] += factor * b[j * b_step]; \
            else if (b_step == 1) \
                for (int64_t j = 0; j < n; j++) \
                    out[j] = factor * b[j]; \
            else \
                for (int64_t j = 0; j < n; j++) \
                    out[j] = factor * b[j * b_step]; \
        } \
    } \
    bool tn__matmul_outer_##name(const tn__matmul_product *p) \
    { \
        tn__cpu_for(p->m, p->n, multiples_##name, (void *)p); \
        return true; \
    }
OUTER(f32, float)
OUTER(f64, double)

bool tn__matmul_dot_suits(const tn__matmul_product *p)
{
    return (p->n == 1 && (p->m == 1 || !p->a.transposed)) || (p->m == 1 && p->b.transposed);
}
