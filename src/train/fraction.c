/* SPDX-License-Identifier: MIT */
/*
 * Periods as fractions, so that parts of epochs are counted in whole samples: 0.1 epochs of 10 samples are one sample,
 * and three times that are three, which floating-point numbers do not give.
 */
#include <math.h>
#include "train/parts.h"

/* A fraction that is as near as this is what was meant. */
#define NEAR 1e-12
/* Numerators and denominators stay below, so that products of three of a run's counts fit into 128 bits. */
#define LARGEST 1e9

/* By continued fractions. */
bool tn__fraction_of(double value, tn__fraction *fraction)
{
    if (!(value > 0) || value > LARGEST || value < 1 / LARGEST)
        return false;
    double rest = value, p0 = 0, q0 = 1, p1 = 1, q1 = 0;
    for (int i = 0; i < 64; i++) {
        double whole = floor(rest), p = whole * p1 + p0, q = whole * q1 + q0;
        if (p > LARGEST || q > LARGEST)
            break;
        p0 = p1, q0 = q1, p1 = p, q1 = q;
        if (p1 > 0 && fabs(value - p1 / q1) <= NEAR * value)
            break;
        rest = 1 / (rest - whole);
    }
    *fraction = (tn__fraction){(int64_t)p1, (int64_t)q1};
    return p1 > 0 && q1 > 0;
}

int64_t tn__fraction_multiples(tn__fraction value, int64_t count, int64_t size)
{
    int64_t above, below; /* which nearly always fit, and are divided several times faster then */
    if (!__builtin_mul_overflow(count, value.q, &above) && !__builtin_mul_overflow(value.p, size, &below))
        return above / below;
    return (int64_t)((__int128)count * value.q / ((__int128)value.p * size));
}

bool tn__fraction_reached(tn__fraction value, int64_t count, int64_t size)
{
    return (__int128)count * value.q >= (__int128)value.p * size;
}
