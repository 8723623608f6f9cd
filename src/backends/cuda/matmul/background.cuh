/* SPDX-License-Identifier: MIT */
/* Before kernels that multiply, after walk.cuh: asynchronous copies into shared memory, SIZE bytes each. Of these, as
 * many bytes as exist are copied, and the rest become 0. */
typedef unsigned long long u64;
#define HOT __device__ __forceinline__

template <int SIZE> HOT void copy_async(void *to, const void *from, int there)
{
    const unsigned shared = (unsigned)__cvta_generic_to_shared(to);
    if constexpr (SIZE == 16)
        asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(shared), "l"(from), "r"(there));
    else
        asm volatile("cp.async.ca.shared.global [%0], [%1], %2, %3;" ::"r"(shared), "l"(from), "n"(SIZE), "r"(there));
}
HOT void copies_are_a_stage() { asm volatile("cp.async.commit_group;" ::: "memory"); }
template <int LEFT> HOT void copies_wait() { asm volatile("cp.async.wait_group %0;" ::"n"(LEFT) : "memory"); }

HOT float multiply_add(float a, float b, float c) { return __fmaf_rn(a, b, c); }
HOT double multiply_add(double a, double b, double c) { return __fma_rn(a, b, c); }

/* The kernels' parameter alpha. */
union factor {
    double f64;
    float f32;
    HOT operator float() const { return f32; }
    HOT operator double() const { return f64; }
};

template <typename T, int N> struct alignas(sizeof(T) * N) span { T at[N]; };
