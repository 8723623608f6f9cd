/* SPDX-License-Identifier: MIT */
/*
 * The inner loops of large float32 products for one instruction set; included once for each, behind isa_*.h. The
 * includer also defines TALLEST, the rows of a tile of two vectors: as many sums as registers hold beside two of b and
 * one of a.
 */

/*
 * A tile of the result: rows by vectors of sums in registers, over all of this stretch of k. Each row of a is spread
 * from the packed block, so that a step is 2 loads of b, `rows` of a and 2 `rows` multiply-adds: these are what it
 * waits for. The first tile of a panel reads b where it lies, and packs it for the others on the way. Each step asks
 * for one line of what will be needed: few at a time, since these requests share buffers with the loads that miss the
 * nearest cache.
 */
static inline __attribute__((always_inline)) TARGET void ISA(packed_tile)(const tn__packed_tile *t, const int rows,
                                                                          const int vectors, const bool packs)
{
    V sum[TALLEST][2];
    const float *a = t->a, *b = t->b;
    float *panel = t->panel;
    const int64_t ldb = t->ldb, ahead = AHEAD * ldb;
    const MASK last = FIRST(t->columns - (vectors - 1) * WIDTH);
    UNROLL for (int r = 0; r < rows; r++)
        sum[r][0] = sum[r][1] = ZERO();
    for (int s = 0; s < SOONS; s++) {
        const char *soon = t->soon[s].place;
        const int64_t step = t->soon[s].step;
        for (int64_t p = t->soon[s].count; p > 0; p--) {
            V b0, b1 = ZERO();
            __builtin_prefetch(soon, 0, 3);
            soon += step;
            if (packs) {
                b0 = vectors == 2 ? LOAD_ALL(b) : LOAD(b, last);
                STORE_ALL(panel, b0);
                if (vectors == 2) {
                    b1 = LOAD(b + WIDTH, last);
                    STORE_ALL(panel + WIDTH, b1);
                }
                __builtin_prefetch(b + ahead, 0, 3);
                if (vectors == 2)
                    __builtin_prefetch(b + ahead + WIDTH, 0, 3);
                b += ldb;
                panel += vectors * WIDTH;
            } else {
                b0 = LOAD_ALL(b);
                if (vectors == 2)
                    b1 = LOAD_ALL(b + WIDTH);
                b += vectors * WIDTH;
            }
            UNROLL for (int r = 0; r < rows; r++) {
                V x = SPREAD(a[r]);
                sum[r][0] = FMA(x, b0, sum[r][0]);
                if (vectors == 2)
                    sum[r][1] = FMA(x, b1, sum[r][1]);
            }
            a += rows;
        }
    }
    const V alpha = SPREAD(t->alpha);
    const bool whole = t->columns == vectors * WIDTH, beta = t->beta;
    const int64_t ldo = t->ldo;
    float *to = t->out;
    UNROLL for (int r = 0; r < rows; r++, to += ldo) {
        float *end = to + (vectors - 1) * WIDTH;
        if (vectors == 2)
            STORE_ALL(to, FMA(alpha, sum[r][0], beta ? LOAD_ALL(to) : ZERO()));
        if (whole)
            STORE_ALL(end, FMA(alpha, sum[r][vectors - 1], beta ? LOAD_ALL(end) : ZERO()));
        else
            STORE(end, last, FMA(alpha, sum[r][vectors - 1], beta ? LOAD(end, last) : ZERO()));
    }
}

#define TILE(rows) \
    static TARGET void ISA(packed_##rows##_1)(const tn__packed_tile *t) { ISA(packed_tile)(t, rows, 1, false); } \
    static TARGET void ISA(packed_##rows##_2)(const tn__packed_tile *t) { ISA(packed_tile)(t, rows, 2, false); } \
    static TARGET void ISA(packing_##rows##_1)(const tn__packed_tile *t) { ISA(packed_tile)(t, rows, 1, true); } \
    static TARGET void ISA(packing_##rows##_2)(const tn__packed_tile *t) { ISA(packed_tile)(t, rows, 2, true); }
EACH_HEIGHT(TILE)
#undef TILE

/*
 * Packing stores whole vectors, whose ends the next ones overwrite, as long as they end inside of what is packed: a
 * masked store takes a dozen cycles on some processors. How many steps of k these are:
 */
static inline int64_t ISA(unmasked)(int64_t k, int64_t step) { return k + 1 - (WIDTH + step - 1) / step; }

/* to[p * step + r] = from[p * ld + r] for `rows` rows, at most a vector's, and zeros behind them, up to a vector or to
 * `step`. */
static TARGET void ISA(pack_columns)(const float *from, int64_t ld, int64_t rows, int64_t k, float *to, int64_t step)
{
    const MASK mask = FIRST(rows), whole = FIRST(step);
    _Static_assert(TALLEST <= WIDTH, "a vector holds a block's rows");
    const int64_t unmasked = ISA(unmasked)(k, step);
    int64_t p = 0;
    for (; p < unmasked; p++)
        STORE_ALL(to + p * step, LOAD(from + p * ld, mask));
    for (; p < k; p++)
        STORE(to + p * step, whole, LOAD(from + p * ld, mask));
}

/* to[p * step + r] = from[r * ld + p] for `rows` rows, at most a vector's, and each p below k. What lies behind them,
 * up to a vector or to `step`, gets some numbers. */
static TARGET void ISA(pack_rows)(const float *from, int64_t ld, int64_t rows, int64_t k, float *to, int64_t step)
{
    const float *row[WIDTH];
    const MASK mask = FIRST(step);
    const int64_t unmasked = ISA(unmasked)(k, step);
    int64_t p = 0;
    for (int64_t r = 0; r < WIDTH; r++)
        row[r] = from + (r < rows ? r : rows - 1) * ld;
    for (; p + 4 <= k; p += 4, to += 4 * step) {
        V a = FOURS(row, 0, p), b = FOURS(row, 1, p), c = FOURS(row, 2, p), d = FOURS(row, 3, p);
        V ab = LOW(a, b), cd = LOW(c, d), ab_high = HIGH(a, b), cd_high = HIGH(c, d);
        if (p + 4 <= unmasked) {
            STORE_ALL(to, LOW_PAIRS(ab, cd));
            STORE_ALL(to + step, HIGH_PAIRS(ab, cd));
            STORE_ALL(to + 2 * step, LOW_PAIRS(ab_high, cd_high));
            STORE_ALL(to + 3 * step, HIGH_PAIRS(ab_high, cd_high));
        } else {
            STORE(to, mask, LOW_PAIRS(ab, cd));
            STORE(to + step, mask, HIGH_PAIRS(ab, cd));
            STORE(to + 2 * step, mask, LOW_PAIRS(ab_high, cd_high));
            STORE(to + 3 * step, mask, HIGH_PAIRS(ab_high, cd_high));
        }
    }
    for (; p < k; p++, to += step)
        for (int64_t r = 0; r < WIDTH && r < step; r++)
            to[r] = row[r][p];
}

static const tn__packed_isa ISA(packed_isa) = {
    .width = WIDTH,
    .tallest = TALLEST,
#define TILE(rows) \
    [rows] = {{ISA(packed_##rows##_1), ISA(packed_##rows##_2)}, {ISA(packing_##rows##_1), ISA(packing_##rows##_2)}},
    .tile = {EACH_HEIGHT(TILE)},
#undef TILE
    .pack_rows = ISA(pack_rows),
    .pack_columns = ISA(pack_columns),
};
#undef EACH_HEIGHT
#undef TALLEST
