/* SPDX-License-Identifier: MIT */
/*
 * Tiles of a float32 product for one instruction set; included once for each, behind isa_*.h. The includer also defines
 * TALLEST_1 and TALLEST_2, the rows of tiles of one and of two vectors: as many sums as there are registers.
 */

/* The sums of `rows` rows and `vectors` vectors; constants, so that every sum is a register. */
static inline __attribute__((always_inline)) TARGET void
ISA(tile)(const tn__tile *t, int64_t i, int64_t j, const int rows, const int vectors, const bool by_columns, MASK last)
{
    V sum[8][2];
    const float *a[8], *b = t->b + j;
    const MASK all = FIRST(WIDTH), first = vectors == 1 ? last : all;
    UNROLL for (int r = 0; r < rows; r++) {
        a[r] = t->a + (i + r) * (by_columns ? 1 : t->lda);
        sum[r][0] = sum[r][1] = ZERO();
    }
    const int64_t k = t->k, step = by_columns ? t->lda : 1, ldb = t->ldb;
    for (int64_t p = 0; p < k; p++) {
        V b0 = LOAD(b + p * ldb, first), b1 = vectors == 2 ? LOAD(b + p * ldb + WIDTH, last) : b0;
        UNROLL for (int r = 0; r < rows; r++) {
            V x = SPREAD(by_columns ? a[0][p * step + r] : a[r][p]);
            sum[r][0] = FMA(x, b0, sum[r][0]);
            if (vectors == 2)
                sum[r][1] = FMA(x, b1, sum[r][1]);
        }
    }
    const V alpha = SPREAD(t->alpha);
    UNROLL for (int r = 0; r < rows; r++)
        UNROLL for (int v = 0; v < vectors; v++) {
            float *to = t->out + (i + r) * t->ldo + j + v * WIDTH;
            MASK mask = v == vectors - 1 ? last : all;
            STORE(to, mask, FMA(alpha, sum[r][v], t->beta ? LOAD(to, mask) : ZERO()));
        }
}

/* Rows [i, end) at column j, in tiles as tall as fit. */
static inline __attribute__((always_inline)) TARGET void
ISA(column)(const tn__tile *t, int64_t i, int64_t end, int64_t j, const int vectors, const bool by_columns, MASK last)
{
    const int tallest = vectors == 2 ? TALLEST_2 : TALLEST_1;
    for (; i + tallest <= end; i += tallest)
        ISA(tile)(t, i, j, tallest, vectors, by_columns, last);
    if (tallest > 4 && i + 4 <= end) {
        ISA(tile)(t, i, j, 4, vectors, by_columns, last);
        i += 4;
    }
    if (i + 2 <= end) {
        ISA(tile)(t, i, j, 2, vectors, by_columns, last);
        i += 2;
    }
    if (i < end)
        ISA(tile)(t, i, j, 1, vectors, by_columns, last);
}

static TARGET void ISA(rows)(const tn__tile *t, int64_t begin, int64_t end)
{
    for (int64_t j = 0; j < t->n; j += 2 * WIDTH) {
        int64_t left = t->n - j;
        if (left > WIDTH && t->by_columns)
            ISA(column)(t, begin, end, j, 2, true, FIRST(left - WIDTH));
        else if (left > WIDTH)
            ISA(column)(t, begin, end, j, 2, false, FIRST(left - WIDTH));
        else if (t->by_columns)
            ISA(column)(t, begin, end, j, 1, true, FIRST(left));
        else
            ISA(column)(t, begin, end, j, 1, false, FIRST(left));
    }
}

#undef TALLEST_1
#undef TALLEST_2
