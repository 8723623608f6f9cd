/* SPDX-License-Identifier: MIT */
/* Elements as numbers, to guess where they are among others: what comes later in order is no smaller number. Needs what
 * sort_keys.cuh needs, i64, and LOAD for elements of 16 bits that are floats. */
#if E_BITS == 64
typedef double V;
#else
typedef float V;
#endif

static __device__ __forceinline__ V value_of(E x)
{
#if defined(KEY_UNSIGNED)
    return (V)x;
#elif defined(KEY_SIGNED)
    return E_BITS == 64 ? (V)(i64)x : (V)((int)((u32)x << (32 - E_BITS % 64)) >> (32 - E_BITS % 64));
#elif E_BITS == 16
    return LOAD(x);
#elif E_BITS == 32
    return __uint_as_float(x);
#else
    return __longlong_as_double((i64)x);
#endif
}
