/* SPDX-License-Identifier: MIT */
/* In front of kernels that multiply, behind walk.cuh: copies into shared memory that go on in the background, of SIZE
 * bytes each, of which so many are there, with zeros instead of the others. */
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

/* alpha as the kernels get it. */
union factor {
    double f64;
    float f32;
    HOT operator float() const { return f32; }
    HOT operator double() const { return f64; }
};

template <typename T, int N> struct alignas(sizeof(T) * N) span { T at[N]; };
