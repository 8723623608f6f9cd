/* SPDX-License-Identifier: MIT */
/*
 * Kernel dialect, part 8: distributions that take a changing number of uniform numbers (needs parts 1 to 5). An element
 * has a stream of its own, whose key are the bits of one uniform number, `seed`; parameters out of their range give
 * NaN.
 *
 * Gamma: G. Marsaglia, W. Tsang, "A Simple Method for Generating Gamma Variables" (2000). Poisson and binomial: W.
 * Hörmann, "The Transformed Rejection Method for Generating Poisson Random Variables" (1993), PTRS, and "The Generation
 * of Binomial Random Variates" (1993), BTRS; by multiplication and by inversion where the mean is below 10. Von Mises:
 * D. Best, N. Fisher, "Efficient Simulation of the von Mises Distribution" (1979). Hypergeometric: E. Stadlober, "The
 * Ratio of Uniforms Approach for Generating Discrete Random Variates" (1990), HRUA*; drawn one by one where there are
 * at most 10.
 */
#ifndef TN_OPS_SCALAR_DRAW_H
#define TN_OPS_SCALAR_DRAW_H

/* Two numbers in (0, 1), of block j of the stream. */
TN_FN void tns__two_open(tn_f64 seed, tn_u64 j, tn_f64 out[2])
{
    tn_u32 v[4];
    tns_philox(tns_bits_f64(seed), j, 1, v);
    out[0] = tns__uniform_f64(v[0] | (tn_u64)v[1] << 32) + 0x1p-54;
    out[1] = tns__uniform_f64(v[2] | (tn_u64)v[3] << 32) + 0x1p-54;
}

/* log n! for whole n >= 0; from 10 on Stirling's series, with an error below 1e-13. */
TN_FN tn_f64 tns__log_factorial(tn_f64 n)
{
    if (n < 10) {
        tn_f64 product = 1;
        for (tn_f64 k = 2; k <= n; k += 1)
            product *= k;
        return tns_log_f64(product);
    }
    tn_f64 r = 1 / (n + 1), r2 = r * r;
    tn_f64 tail = r * (8.3333333333333333e-2 -
                       r2 * (2.7777777777777778e-3 - r2 * (7.9365079365079365e-4 - r2 * 5.9523809523809524e-4)));
    return (n + 0.5) * tns_log_f64(n + 1) - (n + 1) + 0.91893853320467274178 + tail;
}

/* t of a gamma variate d t^3 of shape d + 1/3. Most are taken without a logarithm, as u < 1 - 0.0331 x^4 implies
 * what is asked of it. */
TN_FN tn_f64 tns__gamma_root(tn_f64 d, tn_f64 seed)
{
    tn_f64 u[2], c = 1 / tns_sqrt_f64(9 * d);
    for (tn_u64 j = 0; j < 2000; j += 2) { /* 95 of 100 are taken at once */
        tn_u32 v[4];
        tns_philox(tns_bits_f64(seed), j, 1, v);
        tn_f64 x = tns__box_muller_f64(v[0] | (tn_u64)v[1] << 32, v[2] | (tn_u64)v[3] << 32, 0), t = 1 + c * x;
        tns__two_open(seed, j + 1, u);
        if (t > 0 && (u[0] < 1 - 0.0331 * (x * x) * (x * x) ||
                      tns_log_f64(u[0]) < 0.5 * x * x + d * (1 - t * t * t + 3 * tns_log_f64(t))))
            return t;
    }
    return 1;
}

/* A gamma variate; of shapes below 1, one of a shape greater by 1, times u^(1 / shape). */
TN_LONG tn_f64 tns_draw_gamma_f64(tn_f64 shape, tn_f64 seed)
{
    if (!(shape >= 0))
        return TNS_NAN_F64;
    if (shape == 0 || shape == TNS_INF_F64)
        return shape;
    tn_f64 d = (shape < 1 ? shape + 1 : shape) - 0.33333333333333333, t = tns__gamma_root(d, seed), x = d * (t * t * t);
    if (shape < 1) {
        tn_f64 u[2];
        tns__two_open(seed, 4001, u);
        x *= tns_exp_f64(tns_log_f64(u[0]) / shape);
    }
    return x;
}

/* Its logarithm: of small shapes, the variate itself may be too small for a float. */
TN_LONG tn_f64 tns_draw_log_gamma_f64(tn_f64 shape, tn_f64 seed)
{
    if (!(shape >= 0))
        return TNS_NAN_F64;
    if (shape == 0)
        return -TNS_INF_F64;
    if (shape == TNS_INF_F64)
        return shape;
    tn_f64 d = (shape < 1 ? shape + 1 : shape) - 0.33333333333333333, t = tns__gamma_root(d, seed),
           result = tns_log_f64(d) + 3 * tns_log_f64(t);
    if (shape < 1) {
        tn_f64 u[2];
        tns__two_open(seed, 4001, u);
        result += tns_log_f64(u[0]) / shape;
    }
    return result;
}

TN_LONG tn_f64 tns_draw_poisson_f64(tn_f64 mean, tn_f64 seed)
{
    tn_f64 u[2];
    if (!(mean >= 0 && mean < 9.2e18))
        return TNS_NAN_F64;
    if (mean < 10) {
        tn_f64 limit = tns_exp_f64(-mean), product = 1, k = 0;
        for (tn_u64 j = 0; j < 200; j++) {
            tns__two_open(seed, j, u);
            product *= u[0];
            if (product <= limit)
                return k;
            product *= u[1];
            if (product <= limit)
                return k + 1;
            k += 2;
        }
        return k;
    }
    tn_f64 root = tns_sqrt_f64(mean), log_mean = tns_log_f64(mean), b = 0.931 + 2.53 * root, a = -0.059 + 0.02483 * b;
    tn_f64 inverse_alpha = 1.1239 + 1.1328 / (b - 3.4), vr = 0.9277 - 3.6224 / (b - 2);
    for (tn_u64 j = 0; j < 2000; j++) {
        tns__two_open(seed, j, u);
        tn_f64 x = u[0] - 0.5, us = 0.5 - TNS__ABS_F64(x);
        tn_f64 k = tns_floor_f64((2 * a / us + b) * x + mean + 0.43);
        if (us >= 0.07 && u[1] <= vr)
            return k;
        if (k < 0 || (us < 0.013 && u[1] > us))
            continue;
        if (tns_log_f64(u[1]) + tns_log_f64(inverse_alpha) - tns_log_f64(a / (us * us) + b) <=
            -mean + k * log_mean - tns__log_factorial(k))
            return k;
    }
    return tns_floor_f64(mean);
}

/* Of p <= 1/2. */
TN_LONG tn_f64 tns__binomial_f64(tn_f64 n, tn_f64 p, tn_f64 seed)
{
    tn_f64 u[2], q = 1 - p, ratio = p / q;
    if (n * p < 10) {
        tn_f64 chance = tns_exp_f64(n * tns_log1p_f64(-p)), k = 0;
        tns__two_open(seed, 0, u);
        while (u[0] > chance && k < n && k < 1000) {
            u[0] -= chance;
            k += 1;
            chance *= (n - k + 1) * ratio / k;
        }
        return k;
    }
    tn_f64 spread = tns_sqrt_f64(n * p * q), b = 1.15 + 2.53 * spread, a = -0.0873 + 0.0248 * b + 0.01 * p,
           centre = n * p + 0.5;
    tn_f64 alpha = (2.83 + 5.1 / b) * spread, vr = 0.92 - 4.2 / b, mode = tns_floor_f64((n + 1) * p),
           log_ratio = tns_log_f64(ratio);
    tn_f64 peak = tns__log_factorial(mode) + tns__log_factorial(n - mode);
    for (tn_u64 j = 0; j < 2000; j++) {
        tns__two_open(seed, j, u);
        tn_f64 x = u[0] - 0.5, us = 0.5 - TNS__ABS_F64(x), k = tns_floor_f64((2 * a / us + b) * x + centre);
        if (k < 0 || k > n)
            continue;
        if (us >= 0.07 && u[1] <= vr)
            return k;
        if (tns_log_f64(u[1] * alpha / (a / (us * us) + b)) <=
            peak - tns__log_factorial(k) - tns__log_factorial(n - k) + (k - mode) * log_ratio)
            return k;
    }
    return mode;
}
TN_FN tn_f64 tns_draw_binomial_f64(tn_f64 n, tn_f64 p, tn_f64 seed)
{
    if (!(n >= 0 && p >= 0 && p <= 1))
        return TNS_NAN_F64;
    return p > 0.5 ? n - tns__binomial_f64(n, 1 - p, seed) : tns__binomial_f64(n, p, seed);
}

/* The angle from the mean direction, in [-pi, pi]. */
TN_LONG tn_f64 tns_draw_vonmises_f64(tn_f64 kappa, tn_f64 seed)
{
    const tn_f64 pi = 3.14159265358979323846;
    tn_f64 u[2], v[2], r;
    if (!(kappa >= 0))
        return TNS_NAN_F64;
    tns__two_open(seed, 4001, v);
    if (kappa < 1e-8)
        return pi * (2 * v[0] - 1);
    if (kappa > 1e6) { /* a normal, to the last bit but few */
        tns__two_open(seed, 0, u);
        tn_f64 z = tns_sqrt_f64(-2 * tns_log_f64(u[0])) * tns_cos_f64(2 * pi * u[1]) / tns_sqrt_f64(kappa);
        return z > pi ? pi : z < -pi ? -pi : z;
    }
    if (kappa < 1e-5) {
        r = 1 / kappa + kappa;
    } else {
        tn_f64 tau = 1 + tns_sqrt_f64(1 + 4 * kappa * kappa), rho = (tau - tns_sqrt_f64(2 * tau)) / (2 * kappa);
        r = (1 + rho * rho) / (2 * rho);
    }
    tn_f64 f = 1;
    for (tn_u64 j = 0; j < 2000; j++) { /* two of three are taken at once */
        tns__two_open(seed, j, u);
        tn_f64 z = tns_cos_f64(pi * u[0]), c;
        f = (1 + r * z) / (r + z);
        c = kappa * (r - f);
        if (c * (2 - c) > u[1] || tns_log_f64(c / u[1]) + 1 - c >= 0)
            break;
    }
    f = f > 1 ? 1 : f < -1 ? -1 : f;
    return v[0] < 0.5 ? -tns_acos_f64(f) : tns_acos_f64(f);
}

/* How many of `taken` are good, of the two sizes. `taken` has the seed as its fraction, as an operation has three
 * operands: the bits of both are the stream's key. */
TN_LONG tn_f64 tns_draw_hypergeometric_f64(tn_f64 good, tn_f64 bad, tn_f64 taken)
{
    tn_f64 seed = taken, u[2], all = good + bad;
    taken = tns_floor_f64(taken);
    if (!(good >= 0 && bad >= 0 && taken >= 0 && taken <= all && all < 2e9))
        return TNS_NAN_F64;
    tn_f64 few = good < bad ? good : bad, many = all - few, m = taken < all - taken ? taken : all - taken, k = 0;
    if (m <= 10) {
        tn_f64 left = few, rest = all;
        for (tn_u64 j = 0; (tn_f64)j < m; j++, rest -= 1) {
            tns__two_open(seed, j, u);
            if (u[0] * rest < left) {
                left -= 1;
                k += 1;
            }
        }
    } else {
        tn_f64 p = few / all, centre = m * p + 0.5,
               spread = tns_sqrt_f64((all - m) * m * p * (1 - p) / (all - 1) + 0.5);
        tn_f64 width = 1.7155277699214135 * spread + 0.8989161620588988; /* 2 sqrt(2 / e), 3 - 2 sqrt(3 / e) */
        tn_f64 mode = tns_floor_f64((m + 1) * (few + 1) / (all + 2)), end = (m < few ? m : few) + 1;
        tn_f64 peak = tns__log_factorial(mode) + tns__log_factorial(few - mode) + tns__log_factorial(m - mode) +
                      tns__log_factorial(many - m + mode);
        if (tns_floor_f64(centre + 16 * spread) < end)
            end = tns_floor_f64(centre + 16 * spread);
        k = mode;
        for (tn_u64 j = 0; j < 2000; j++) {
            tns__two_open(seed, j, u);
            tn_f64 x = centre + width * (u[1] - 0.5) / u[0];
            if (x < 0 || x >= end)
                continue;
            tn_f64 n = tns_floor_f64(x), t;
            if (n > few || n > m || many - m + n < 0)
                continue;
            t = peak - tns__log_factorial(n) - tns__log_factorial(few - n) - tns__log_factorial(m - n) -
                tns__log_factorial(many - m + n);
            if (u[0] * (4 - u[0]) - 3 <= t || 2 * tns_log_f64(u[0]) <= t) {
                k = n;
                break;
            }
        }
    }
    k = good > bad ? m - k : k;
    return m < taken ? good - k : k;
}

TN_FN tn_f32 tns_draw_vonmises_f32(tn_f32 kappa, tn_f32 seed) { return (tn_f32)tns_draw_vonmises_f64(kappa, seed); }
TN_FN tn_f32 tns_draw_hypergeometric_f32(tn_f32 good, tn_f32 bad, tn_f32 taken)
{
    return (tn_f32)tns_draw_hypergeometric_f64(good, bad, taken);
}
TN_FN tn_f32 tns_draw_gamma_f32(tn_f32 shape, tn_f32 seed) { return (tn_f32)tns_draw_gamma_f64(shape, seed); }
TN_FN tn_f32 tns_draw_log_gamma_f32(tn_f32 shape, tn_f32 seed) { return (tn_f32)tns_draw_log_gamma_f64(shape, seed); }
TN_FN tn_f32 tns_draw_poisson_f32(tn_f32 mean, tn_f32 seed) { return (tn_f32)tns_draw_poisson_f64(mean, seed); }
TN_FN tn_f32 tns_draw_binomial_f32(tn_f32 n, tn_f32 p, tn_f32 seed)
{
    return (tn_f32)tns_draw_binomial_f64(n, p, seed);
}

#endif
