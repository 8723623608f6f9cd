/* SPDX-License-Identifier: MIT */
/*
 * Long float32 products with few results, by any way of computing a product: in stretches of k, whose results are added
 * up in float64. Of millions of positive numbers a single sum in float32 is wrong by percents, and no longer grows at
 * last; of stretches the error does not grow with the length, and to add them up costs a few thousandths of the rest.
 */
#include <stdatomic.h>

#include "backends/cpu/base/parallel.h"
#include "backends/cpu/matmul/matmul.h"

enum { MOST_GROUPS = 16 };

bool tn__matmul_stretches_suit(const tn__matmul_product *p)
{
    return p->k > TN__MATMUL_STRETCH && p->m <= TN__MATMUL_FEW && p->n <= TN__MATMUL_FEW / p->m;
}

/* Stretches are divided among groups, each with sums of its own: their number depends on the extents alone, so that the
 * number of threads changes no bit. */
typedef struct groups {
    const tn__matmul_product *product;
    tn__matmul_function multiply;
    int64_t count, stretches;
    double sum[TN__MATMUL_FEW]; /* of one group after the other */
    _Atomic bool failed;
} groups;

static void groups_part(void *context, int64_t begin, int64_t end)
{
    groups *g = context;
    const tn__matmul_product *p = g->product;
    const int64_t results = p->m * p->n;
    float result[TN__MATMUL_FEW];
    tn__matmul_product one = *p;
    one.out = (tn__matmul_matrix){.place = (char *)result, .ld = p->n};
    one.alpha.f32 = 1;
    one.beta = false;
    for (; begin < end; begin++) {
        double *sum = g->sum + begin * results;
        int64_t after = g->stretches * (begin + 1) / g->count;
        for (int64_t i = 0; i < results; i++)
            sum[i] = 0;
        for (int64_t s = g->stretches * begin / g->count; s < after; s++) {
            int64_t depth = s * TN__MATMUL_STRETCH;
            one.k = p->k - depth < TN__MATMUL_STRETCH ? p->k - depth : TN__MATMUL_STRETCH;
            one.a.place = p->a.place + depth * (p->a.transposed ? p->a.ld : 1) * (int64_t)sizeof(float);
            one.b.place = p->b.place + depth * (p->b.transposed ? 1 : p->b.ld) * (int64_t)sizeof(float);
            if (!g->multiply(&one))
                g->failed = true;
            for (int64_t i = 0; i < results; i++)
                sum[i] += result[i];
        }
    }
}

bool tn__matmul_stretches(const tn__matmul_product *p, tn__matmul_function multiply)
{
    groups g;
    const int64_t results = p->m * p->n, room = TN__MATMUL_FEW / results;
    g.product = p;
    g.multiply = multiply;
    g.stretches = (p->k + TN__MATMUL_STRETCH - 1) / TN__MATMUL_STRETCH;
    g.count = multiply == tn__matmul_packed ? 1 : room < MOST_GROUPS ? room : MOST_GROUPS;
    g.count = g.count < g.stretches ? g.count : g.stretches;
    g.failed = false;
    if (g.count == 1)
        groups_part(&g, 0, 1); /* each stretch's product may be shared out */
    else
        tn__cpu_for(g.count, results * (p->k / g.count), groups_part, &g);
    for (int64_t k = 1; k < g.count; k++)
        for (int64_t i = 0; i < results; i++)
            g.sum[i] += g.sum[k * results + i];
    for (int64_t i = 0; i < p->m; i++)
        for (int64_t j = 0; j < p->n; j++) {
            float *out = (float *)p->out.place + i * p->out.ld + j;
            *out = (float)(p->alpha.f32 * g.sum[i * p->n + j] + (p->beta ? *out : 0));
        }
    return !g.failed;
}

size_t tn__matmul_stretches_bytes(const tn__matmul_product *stretch, int64_t k)
{
    tn__matmul_product last = *stretch;
    last.k = (k - 1) % TN__MATMUL_STRETCH + 1;
    size_t bytes = tn__matmul_packed_bytes(stretch), of_last = tn__matmul_packed_bytes(&last);
    return of_last > bytes ? of_last : bytes;
}
