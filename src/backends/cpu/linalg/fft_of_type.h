/* SPDX-License-Identifier: MIT */
/*
 * Fourier transforms for one type of floats; included once for each. The includer defines T and SUFFIX.
 *
 * A transform goes factor by factor (Stockham's algorithm: each pass sorts by itself, from one buffer to another; see
 * C. Van Loan, "Computational Frameworks for the Fast Fourier Transform", 1992, 1.7). Lengths with a large prime factor
 * become a convolution with a chirp (L. Bluestein, 1970), whose length is a power of 2.
 */
#define NAME_(a, b) a##_##b
#define NAME2(a, b) NAME_(a, b)
#define NAME(a)     NAME2(a, SUFFIX)
#define C           NAME(number)

typedef struct C {
    T re, im;
} C;

static inline C NAME(plus)(C a, C b) { return (C){a.re + b.re, a.im + b.im}; }
static inline C NAME(minus)(C a, C b) { return (C){a.re - b.re, a.im - b.im}; }
static inline C NAME(times)(C a, C b) { return (C){a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re}; }
static inline C NAME(scaled)(C a, T s) { return (C){a.re * s, a.im * s}; }
static inline C NAME(rotated)(C a) { return (C){a.im, -a.re}; } /* times -i */
#define plus   NAME(plus)
#define minus  NAME(minus)
#define times  NAME(times)
#define scaled NAME(scaled)
#define rotated NAME(rotated)

/* One pass: n numbers still to transform in each of s interleaved sequences, factor r, m = n / r; w: roots of the whole
 * length, of which every s-th is one of n's. */
#define PASS(name) static void NAME(name)(C *restrict y, const C *restrict x, int64_t m, int64_t s, const C *restrict w)
#define IN(j)      x[q + s * (p + (j) * m)]
#define OUT(r, k)  y[q + s * ((r) * p + (k))]

PASS(pass2)
{
    for (int64_t p = 0; p < m; p++) {
        const C w1 = w[p * s];
        for (int64_t q = 0; q < s; q++) {
            C a = IN(0), b = IN(1);
            OUT(2, 0) = plus(a, b);
            OUT(2, 1) = times(minus(a, b), w1);
        }
    }
}

PASS(pass3)
{
    const T half = (T)0.5, sine = (T)0.86602540378443864676;
    for (int64_t p = 0; p < m; p++) {
        const C w1 = w[p * s], w2 = w[2 * p * s];
        for (int64_t q = 0; q < s; q++) {
            C a = IN(0), b = plus(IN(1), IN(2)), d = scaled(rotated(minus(IN(1), IN(2))), sine);
            C mid = minus(a, scaled(b, half));
            OUT(3, 0) = plus(a, b);
            OUT(3, 1) = times(plus(mid, d), w1);
            OUT(3, 2) = times(minus(mid, d), w2);
        }
    }
}

PASS(pass4)
{
    for (int64_t p = 0; p < m; p++) {
        const C w1 = w[p * s], w2 = w[2 * p * s], w3 = w[3 * p * s];
        for (int64_t q = 0; q < s; q++) {
            C a = plus(IN(0), IN(2)), b = minus(IN(0), IN(2)), c = plus(IN(1), IN(3)), d = rotated(minus(IN(1), IN(3)));
            OUT(4, 0) = plus(a, c);
            OUT(4, 1) = times(plus(b, d), w1);
            OUT(4, 2) = times(minus(a, c), w2);
            OUT(4, 3) = times(minus(b, d), w3);
        }
    }
}

PASS(pass5)
{
    const T c1 = (T)0.30901699437494742410, s1 = (T)0.95105651629515357212;
    const T c2 = (T)-0.80901699437494742410, s2 = (T)0.58778525229247312917;
    for (int64_t p = 0; p < m; p++) {
        const C w1 = w[p * s], w2 = w[2 * p * s], w3 = w[3 * p * s], w4 = w[4 * p * s];
        for (int64_t q = 0; q < s; q++) {
            C a = IN(0), b = plus(IN(1), IN(4)), c = plus(IN(2), IN(3));
            C d = rotated(minus(IN(1), IN(4))), e = rotated(minus(IN(2), IN(3)));
            C f = plus(a, plus(scaled(b, c1), scaled(c, c2))), g = plus(a, plus(scaled(b, c2), scaled(c, c1)));
            C h = plus(scaled(d, s1), scaled(e, s2)), i = minus(scaled(d, s2), scaled(e, s1));
            OUT(5, 0) = plus(a, plus(b, c));
            OUT(5, 1) = times(plus(f, h), w1);
            OUT(5, 2) = times(plus(g, i), w2);
            OUT(5, 3) = times(minus(g, i), w3);
            OUT(5, 4) = times(minus(f, h), w4);
        }
    }
}

/* Any odd factor r, by its definition: of sums and differences of inputs that lie the same way from the ends, so that
 * each output and its counterpart are a sum of cosines and one of sines. A few sequences at a time; `step`: the whole
 * length over r. */
#define BATCH 16
static void NAME(pass_any)(C *restrict y, const C *restrict x, int64_t m, int64_t s, const C *restrict w, int r,
                           int64_t step)
{
    T even[2][LARGEST_FACTOR / 2 + 1][BATCH], odd[2][LARGEST_FACTOR / 2 + 1][BATCH];
    int half = r / 2;
    for (int64_t p = 0; p < m; p++)
        for (int64_t from = 0; from < s; from += BATCH) {
            int count = s - from < BATCH ? (int)(s - from) : BATCH;
            T total[2][BATCH];
            for (int i = 0; i < count; i++) {
                C a = x[from + i + s * p];
                even[0][0][i] = total[0][i] = a.re;
                even[1][0][i] = total[1][i] = a.im;
            }
            for (int j = 1; j <= half; j++)
                for (int i = 0; i < count; i++) {
                    C a = x[from + i + s * (p + j * m)], b = x[from + i + s * (p + (r - j) * m)];
                    even[0][j][i] = a.re + b.re;
                    even[1][j][i] = a.im + b.im;
                    odd[0][j][i] = a.re - b.re;
                    odd[1][j][i] = a.im - b.im;
                    total[0][i] += even[0][j][i];
                    total[1][i] += even[1][j][i];
                }
            for (int i = 0; i < count; i++)
                y[from + i + s * r * p] = (C){total[0][i], total[1][i]};
            for (int k = 1; k <= half; k++) {
                T c[2][BATCH], d[2][BATCH];
                for (int i = 0; i < BATCH; i++) {
                    c[0][i] = even[0][0][i];
                    c[1][i] = even[1][0][i];
                    d[0][i] = d[1][i] = 0;
                }
                for (int j = 1, t = k; j <= half; j++, t = t + k >= r ? t + k - r : t + k) {
                    const T cosine = w[t * step].re, sine = w[t * step].im;
                    for (int i = 0; i < BATCH; i++) { /* past `count`, of whatever is there */
                        c[0][i] += even[0][j][i] * cosine;
                        c[1][i] += even[1][j][i] * cosine;
                        d[0][i] += odd[0][j][i] * sine;
                        d[1][i] += odd[1][j][i] * sine;
                    }
                }
                const C w1 = w[k * p * s], w2 = w[(r - k) * p * s];
                for (int i = 0; i < count; i++) {
                    y[from + i + s * (r * p + k)] = times((C){c[0][i] - d[1][i], c[1][i] + d[0][i]}, w1);
                    y[from + i + s * (r * p + r - k)] = times((C){c[0][i] + d[1][i], c[1][i] - d[0][i]}, w2);
                }
            }
        }
}
#undef BATCH

/* Transforms `length` numbers in x, with y as a second buffer; returns where the result is. */
static C *NAME(transform)(const tn__fft_plan *plan, const C *w, C *x, C *y)
{
    int64_t n = plan->length, s = 1;
    for (int f = 0; f < plan->factors; f++) {
        int r = plan->factor[f];
        int64_t m = n / r;
        if (r == 4)
            NAME(pass4)(y, x, m, s, w);
        else if (r == 2)
            NAME(pass2)(y, x, m, s, w);
        else if (r == 3)
            NAME(pass3)(y, x, m, s, w);
        else if (r == 5)
            NAME(pass5)(y, x, m, s, w);
        else
            NAME(pass_any)(y, x, m, s, w, r, plan->length / r);
        C *swap = x;
        x = y;
        y = swap;
        n = m;
        s *= r;
    }
    return x;
}

/* exp(-2 pi i k / n), with the angle brought near 0 in integers. */
static C NAME(root)(int64_t k, int64_t n)
{
    int64_t eighth = 8 * (k % n) / n, turn = 8 * (k % n) - eighth * n; /* angle = pi/4 (eighth + turn / n) */
    bool odd = eighth & 1;
    double angle = 0.78539816339744830962 * (double)(odd ? n - turn : turn) / (double)n;
    double c = cos(angle), s = sin(angle);
    int quarter = (int)((eighth + 1) / 2); /* the axis that the angle is measured from, forwards or backwards */
    double x = c, y = odd ? -s : s;
    double re = quarter % 4 == 0 ? x : quarter % 4 == 1 ? -y : quarter % 4 == 2 ? -x : y;
    double im = quarter % 4 == 0 ? y : quarter % 4 == 1 ? x : quarter % 4 == 2 ? -y : -x;
    return (C){(T)re, (T)-im};
}

static bool NAME(make)(tn__fft_plan *plan)
{
    C *w = (C *)plan->tables;
    for (int64_t k = 0; k < plan->length; k++)
        w[k] = NAME(root)(k, plan->length);
    C *halves = w + plan->length + (plan->length == plan->n ? 0 : plan->n + plan->length);
    for (int64_t k = 0; k < plan->n && plan->whole == 2 * plan->n; k++)
        halves[k] = NAME(root)(k, plan->whole);
    if (plan->length == plan->n)
        return true;
    /* k²/2 n-ths of a turn; the filter is its conjugate, both ways round */
    C *chirp = w + plan->length, *filter = chirp + plan->n, *other = tn__alloc((size_t)plan->length * sizeof(C));
    if (!other)
        return false;
    for (int64_t k = 0; k < plan->length; k++)
        filter[k] = (C){0, 0};
    int64_t square = 0; /* k² modulo 2n */
    for (int64_t k = 0; k < plan->n; k++) {
        chirp[k] = NAME(root)(square, 2 * plan->n);
        C back = {chirp[k].re, -chirp[k].im};
        filter[k] = back;
        if (k)
            filter[plan->length - k] = back;
        square = (square + 2 * k + 1) % (2 * plan->n);
    }
    C *result = NAME(transform)(plan, w, filter, other);
    if (result != filter)
        memcpy(filter, result, (size_t)plan->length * sizeof(C));
    tn__free(other);
    return true;
}

/* Transforms n numbers in x; both buffers have room for `length` numbers. Returns where the result is. */
static C *NAME(whole)(const tn__fft_plan *plan, C *x, C *y)
{
    const C *w = (const C *)plan->tables, *chirp = w + plan->length, *filter = chirp + plan->n;
    if (plan->length == plan->n)
        return NAME(transform)(plan, w, x, y);
    for (int64_t k = 0; k < plan->n; k++)
        x[k] = times(x[k], chirp[k]);
    memset(x + plan->n, 0, (size_t)(plan->length - plan->n) * sizeof(C));
    C *result = NAME(transform)(plan, w, x, y);
    /* back by the conjugates; the division by the length comes with the chirp */
    for (int64_t k = 0; k < plan->length; k++) {
        C product = times(result[k], filter[k]);
        result[k] = (C){product.re, -product.im};
    }
    result = NAME(transform)(plan, w, result, result == x ? y : x);
    for (int64_t k = 0; k < plan->n; k++)
        result[k] = scaled(times((C){result[k].re, -result[k].im}, chirp[k]), (T)1 / (T)plan->length);
    return result;
}

/* mode[0]: inverse, without the division: real and imaginary parts change places before and after. */
static int NAME(fft)(tn__library *l, char *const *p, tn__carver *carver)
{
    const tn__fft_plan *plan = l->plan;
    bool swap = l->mode[0];
    C *x = tn__carve(carver, plan->length, sizeof(C)), *y = tn__carve(carver, plan->length, sizeof(C));
    if (!x)
        return 0;
    int64_t step = l->layout[1].column, to = l->layout[0].column;
    for (int64_t k = 0; k < plan->n; k++) {
        C a = *(const C *)(p[1] + k * step);
        x[k] = swap ? (C){a.im, a.re} : a;
    }
    C *result = NAME(whole)(plan, x, y);
    for (int64_t k = 0; k < plan->n; k++)
        *(C *)(p[0] + k * to) = swap ? (C){result[k].im, result[k].re} : result[k];
    return 0;
}

/* The roots of `whole`, which take halves of a real transform apart and put them together. */
static const C *NAME(halves)(const tn__fft_plan *plan)
{
    const C *w = (const C *)plan->tables;
    return w + plan->length + (plan->length == plan->n ? 0 : plan->n + plan->length);
}

/* Neighbours as real and imaginary parts: z = even + i odd elements, whose transforms are told apart by their symmetry.
 * An odd number of elements as complex numbers. */
static int NAME(rfft)(tn__library *l, char *const *p, tn__carver *carver)
{
    const tn__fft_plan *plan = l->plan;
    C *x = tn__carve(carver, plan->length, sizeof(C)), *y = tn__carve(carver, plan->length, sizeof(C));
    if (!x)
        return 0;
    int64_t step = l->layout[1].column, to = l->layout[0].column, n = plan->n;
    bool paired = plan->whole != n;
    for (int64_t k = 0; k < n; k++)
        x[k] = paired ? (C){*(const T *)(p[1] + 2 * k * step), *(const T *)(p[1] + (2 * k + 1) * step)}
                      : (C){*(const T *)(p[1] + k * step), 0};
    const C *z = NAME(whole)(plan, x, y), *root = NAME(halves)(plan);
#define OUTPUT(k) (*(C *)(p[0] + (k) * to))
    OUTPUT(0) = (C){paired ? z[0].re + z[0].im : z[0].re, 0};
    if (!paired) {
        for (int64_t k = 1; k <= n / 2; k++)
            OUTPUT(k) = z[k];
        return 0;
    }
    OUTPUT(n) = (C){z[0].re - z[0].im, 0};
    for (int64_t k = 1; k <= n / 2; k++) {
        C a = z[k], b = {z[n - k].re, -z[n - k].im};
        C even = scaled(plus(a, b), (T)0.5), odd = times(scaled(rotated(minus(a, b)), (T)0.5), root[k]);
        C sum = plus(even, odd), rest = minus(even, odd);
        OUTPUT(k) = sum;
        OUTPUT(n - k) = (C){rest.re, -rest.im};
    }
    return 0;
}

/* The inverse of that, without the division. */
static int NAME(irfft)(tn__library *l, char *const *p, tn__carver *carver)
{
    const tn__fft_plan *plan = l->plan;
    C *x = tn__carve(carver, plan->length, sizeof(C)), *y = tn__carve(carver, plan->length, sizeof(C));
    if (!x)
        return 0;
    int64_t step = l->layout[1].column, to = l->layout[0].column, n = plan->n;
    bool paired = plan->whole != n;
    const C *root = NAME(halves)(plan);
#define INPUT(k) (*(const C *)(p[1] + (k) * step))
    /* real and imaginary parts change places, as the transform goes forward */
    x[0] = paired ? (C){INPUT(0).re - INPUT(n).re, INPUT(0).re + INPUT(n).re} : (C){0, INPUT(0).re};
    for (int64_t k = 1; k <= n / 2; k++) {
        C a = INPUT(k), b = paired ? INPUT(n - k) : a;
        b.im = -b.im;
        if (!paired) {
            x[k] = (C){a.im, a.re};
            x[n - k] = (C){b.im, b.re};
            continue;
        }
        C sum = plus(a, b), odd = times(minus(a, b), (C){root[k].re, -root[k].im});
        C first = minus(sum, rotated(odd)), second = plus(sum, rotated(odd));
        x[k] = (C){first.im, first.re};
        x[n - k] = (C){-second.im, second.re};
    }
    const C *z = NAME(whole)(plan, x, y);
    for (int64_t k = 0; k < n; k++)
        if (paired) {
            *(T *)(p[0] + 2 * k * to) = z[k].im;
            *(T *)(p[0] + (2 * k + 1) * to) = z[k].re;
        } else {
            *(T *)(p[0] + k * to) = z[k].im;
        }
    return 0;
}

#undef T
#undef SUFFIX
#undef NAME_
#undef NAME2
#undef NAME
#undef C
#undef plus
#undef minus
#undef times
#undef scaled
#undef rotated
#undef PASS
#undef IN
#undef OUT
#undef INPUT
#undef OUTPUT
