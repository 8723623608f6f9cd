/* SPDX-License-Identifier: MIT */
/*
 * What the kernels of sorting and searching share. The host puts in front of it
 *     E          the stored element as an unsigned word, of E_BITS bits
 *     KEY_...    one of KEY_UNSIGNED, KEY_SIGNED, KEY_FLOAT (then INFINITE_BITS: those of infinity)
 * and struct walk with places(): the rows are its elements, at[k] where a row of operand k begins.
 */
/* A word that is ordered as the elements are. NaN comes last; zeros of either sign are equal. */
static __device__ __forceinline__ E key_of(E x)
{
    constexpr E top = (E)((E)1 << (E_BITS - 1));
#if defined(KEY_SIGNED)
    return (E)(x ^ top);
#elif defined(KEY_FLOAT)
    const E size = (E)(x & (E)(top - 1));
    if (size > (E)INFINITE_BITS)
        return (E)~(E)0;
    return x & top ? (E)(top - size) : (E)(top + size);
#else
    return x;
#endif
}

/* What a sort moves: without POSITIONS, a number that is ordered as the elements are and from which they can be
 * recovered; NaN is positive, and -0 before 0. */
static __device__ __forceinline__ E moved(E x)
{
#if defined(KEY_FLOAT) && !defined(POSITIONS)
    constexpr E top = (E)((E)1 << (E_BITS - 1));
    const E size = (E)(x & (E)(top - 1));
    return ((x & top) != 0) & (size <= (E)INFINITE_BITS) ? (E)~x : (E)(size | top);
#else
    return key_of(x);
#endif
}

static __device__ __forceinline__ E moved_back(E key)
{
#if defined(KEY_FLOAT) && !defined(POSITIONS)
    constexpr E top = (E)((E)1 << (E_BITS - 1));
    return key & top ? (E)(key ^ top) : (E)~key;
#elif defined(KEY_SIGNED)
    return (E)(key ^ (E)((E)1 << (E_BITS - 1)));
#else
    return key;
#endif
}

/* The sum of `x` over the lanes up to this one. */
static __device__ __forceinline__ u32 warp_sums(u32 x)
{
    const u32 lane = threadIdx.x & 31;
    for (int by = 1; by < 32; by *= 2) {
        const u32 before = __shfl_up_sync(~0u, x, by);
        if (lane >= by)
            x += before;
    }
    return x;
}
