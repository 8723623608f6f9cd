/* SPDX-License-Identifier: MIT */
/*
 * What stands before a kernel's text when it is compiled for the processor at hand: CUDA C++'s words, and PTX's
 * instructions as translate.py calls them, asm("max.NaN.f32 %0, %1, %2;" : "=f"(y) : "f"(a), "f"(b)) being
 * ptx_max_NaN_f32(y, a, b). A warp's threads meet where CUDA says that they do, and nowhere else. Includes no more of
 * the standard library than it must: kernels have names of their own.
 */
#include <math.h>
#include <stdint.h>
#include <string.h>
#include <utility>

#include "emulator/block.h"

#define threadIdx (emulated_now->thread)
#define blockIdx  (emulated_now->block->index)
#define blockDim  (emulated_now->block->threads)
#define gridDim   (emulated_now->block->blocks)

struct alignas(8) float2 {
    float x, y;
};
struct alignas(16) float4 {
    float x, y, z, w;
};
struct alignas(16) uint4 {
    unsigned x, y, z, w;
};
struct alignas(16) ulonglong2 {
    unsigned long long x, y;
};
static inline float2 make_float2(float x, float y) { return {x, y}; }
static inline float4 make_float4(float x, float y, float z, float w) { return {x, y, z, w}; }
static inline uint4 make_uint4(unsigned x, unsigned y, unsigned z, unsigned w) { return {x, y, z, w}; }

/* ---- threads that meet ---- */

extern "C" {
emulated_thread *emulated_now;
const emulated_host *emulated_by;
}

static inline void __syncthreads() { emulated_by->all_meet(0); }
static inline int __syncthreads_or(int vote) { return emulated_by->all_meet(vote != 0); }
static inline void __syncwarp(unsigned lanes = ~0u) { emulated_by->lanes_meet(lanes); }
static inline void __threadfence() {}
static inline void __threadfence_system() {}

/* What each lane shows the others. A lane goes on when all have looked. */
template <class T, class F> static inline auto emulated_show(unsigned lanes, const T &shown, F look)
{
    static_assert(sizeof(T) <= sizeof emulated_now->shown, "");
    memcpy(emulated_now->shown, &shown, sizeof shown);
    emulated_by->lanes_meet(lanes);
    const emulated_thread *warp = emulated_now - emulated_now->lane;
    auto seen = look([warp](int lane) {
        T x;
        memcpy(&x, warp[lane].shown, sizeof x);
        return x;
    });
    emulated_by->lanes_meet(lanes);
    return seen;
}

/* From the lane that `other` says, if that is in this lane's part of the warp. */
template <class T> static inline T emulated_shuffle(unsigned lanes, T x, int other, int width)
{
    const int lane = (int)emulated_now->lane, first = lane / width * width;
    const int from = other >= first && other < first + width ? other : lane;
    return emulated_show(lanes, x, [from](auto of) { return of(from); });
}
template <class T> static inline T __shfl_sync(unsigned lanes, T x, int from, int width = 32)
{
    return emulated_shuffle(lanes, x, (int)emulated_now->lane / width * width + (from & (width - 1)), width);
}
template <class T> static inline T __shfl_down_sync(unsigned lanes, T x, unsigned by, int width = 32)
{
    return emulated_shuffle(lanes, x, (int)(emulated_now->lane + by), width);
}
template <class T> static inline T __shfl_up_sync(unsigned lanes, T x, unsigned by, int width = 32)
{
    return emulated_shuffle(lanes, x, (int)(emulated_now->lane - by), width);
}
template <class T> static inline T __shfl_xor_sync(unsigned lanes, T x, int mask, int width = 32)
{
    return emulated_shuffle(lanes, x, (int)emulated_now->lane ^ mask, width);
}
template <class T> static inline unsigned __match_any_sync(unsigned lanes, T x)
{
    return emulated_show(lanes, x, [lanes, x](auto of) {
        unsigned same = 0;
        for (int k = 0; k < 32; k++)
            same |= (unsigned)((lanes >> k & 1) && of(k) == x) << k;
        return same;
    });
}
static inline unsigned __ballot_sync(unsigned lanes, int vote)
{
    return emulated_show(lanes, vote, [lanes](auto of) {
        unsigned votes = 0;
        for (int k = 0; k < 32; k++)
            votes |= (unsigned)((lanes >> k & 1) && of(k)) << k;
        return votes;
    });
}

/* One thread runs at a time. */
template <class T> static inline T atomicCAS(T *p, T old, T next)
{
    const T was = *p;
    *p = was == old ? next : was;
    return was;
}
template <class T, class U> static inline T atomicAdd(T *p, U x)
{
    const T was = *p;
    *p = was + (T)x;
    return was;
}
template <class T, class U> static inline T atomicMax(T *p, U x)
{
    const T was = *p;
    *p = (T)x > was ? (T)x : was;
    return was;
}

/* ---- functions ---- */

template <class To, class From> static inline To emulated_bits(From x)
{
    To y;
    static_assert(sizeof y == sizeof x, "");
    memcpy(&y, &x, sizeof y);
    return y;
}
static inline int __float_as_int(float x) { return emulated_bits<int>(x); }
static inline unsigned __float_as_uint(float x) { return emulated_bits<unsigned>(x); }
static inline float __int_as_float(int x) { return emulated_bits<float>(x); }
static inline float __uint_as_float(unsigned x) { return emulated_bits<float>(x); }
static inline long long __double_as_longlong(double x) { return emulated_bits<long long>(x); }
static inline double __longlong_as_double(long long x) { return emulated_bits<double>(x); }
static inline float __fmaf_rn(float a, float b, float c) { return __builtin_fmaf(a, b, c); }
static inline double __fma_rn(double a, double b, double c) { return __builtin_fma(a, b, c); }
static inline double rsqrt(double x) { return 1 / sqrt(x); }
static inline unsigned __umulhi(unsigned a, unsigned b) { return (unsigned)((unsigned long long)a * b >> 32); }
template <class T> static inline T min(T a, T b) { return a < b ? a : b; }
template <class T> static inline T max(T a, T b) { return a > b ? a : b; }
static inline int __popc(unsigned x) { return __builtin_popcount(x); }
static inline int __clz(int x) { return x ? __builtin_clz((unsigned)x) : 32; }
static inline int __ffs(int x) { return __builtin_ffs(x); }
static inline unsigned __byte_perm(unsigned low, unsigned high, unsigned which)
{
    const unsigned long long bytes = (unsigned long long)high << 32 | low;
    unsigned y = 0;
    for (int k = 0; k < 4; k++)
        y |= (unsigned)(bytes >> 8 * (which >> 4 * k & 7) & 0xff) << 8 * k;
    return y;
}

/* ---- addresses: those of shared memory are 32 bits from some place in it ---- */

static char emulated_place;
static inline size_t __cvta_generic_to_global(const void *p) { return (size_t)p; }
static inline void *__cvta_global_to_generic(size_t at) { return (void *)at; }
static inline size_t __cvta_generic_to_shared(const void *p) { return (size_t)((char *)p - &emulated_place); }
/* By numbers: a compiler that checks what is written where would take it for a place in a single byte. */
static inline char *emulated_shared(unsigned at) { return (char *)((size_t)&emulated_place + (size_t)(int)at); }

/* ---- PTX ---- */

#define EMULATED_APPROXIMATE(name, expression) \
    static inline void ptx_##name(float &y, float x) { y = (float)(expression); }
EMULATED_APPROXIMATE(sqrt_approx_ftz_f32, sqrt((double)x))
EMULATED_APPROXIMATE(ex2_approx_ftz_f32, exp2((double)x))
EMULATED_APPROXIMATE(rcp_approx_ftz_f32, 1 / (double)x)
EMULATED_APPROXIMATE(rsqrt_approx_ftz_f32, 1 / sqrt((double)x))
EMULATED_APPROXIMATE(sin_approx_ftz_f32, sin((double)x))
EMULATED_APPROXIMATE(cos_approx_ftz_f32, cos((double)x))
EMULATED_APPROXIMATE(lg2_approx_ftz_f32, log2((double)x))
static inline void ptx_rcp_approx_ftz_f64(double &y, double x) { y = (double)(float)(1 / x); }
static inline void ptx_mul_wide_u32(unsigned long long &y, unsigned a, unsigned b) { y = (unsigned long long)a * b; }
static inline void ptx_max_NaN_f32(float &y, float a, float b)
{
    y = a != a || b != b ? NAN : a > b || (a == b && !signbit(a)) ? a : b;
}
static inline void ptx_min_NaN_f32(float &y, float a, float b)
{
    y = a != a || b != b ? NAN : a < b || (a == b && signbit(a)) ? a : b;
}
static inline void ptx_cvt_f32_f16(float &y, unsigned short x)
{
    const float sign = x & 0x8000 ? -1.0f : 1.0f;
    const int exponent = x >> 10 & 31, part = x & 0x3ff;
    y = sign * (exponent == 31 ? (part ? NAN : INFINITY)
                               : ldexpf((float)(part | (exponent ? 0x400 : 0)), (exponent ? exponent : 1) - 25));
}
/* To nearest, ties to even, with so many bits of fraction and so many of exponent. */
static inline unsigned short emulated_narrow(float x, int fraction, int bits)
{
    const unsigned sign = signbit(x) ? 0x8000u : 0, top = (1u << bits) - 1u;
    const int bias = (1 << (bits - 1)) - 1;
    if (x != x)
        return (unsigned short)0x7fff;
    int exponent;
    frexpf(x, &exponent);
    exponent = exponent - 1 < 1 - bias ? 1 - bias : exponent - 1;
    const double steps = rint(ldexp(fabs((double)x), fraction - exponent)); /* of the last place */
    const double all = isinf(x) ? INFINITY : steps + ldexp((double)(exponent + bias - 1), fraction);
    return (unsigned short)(sign | (x == 0                                ? 0
                                    : all >= ldexp((double)top, fraction) ? top << fraction
                                                                          : (unsigned)all));
}
static inline void ptx_cvt_rn_f16_f32(unsigned short &y, float x) { y = emulated_narrow(x, 10, 5); }
static inline void ptx_cvt_rn_bf16_f32(unsigned short &y, float x) { y = emulated_narrow(x, 7, 8); }

static inline void ptx_cp_async_cg_shared_global(unsigned to, const void *from, int there)
{
    memset(emulated_shared(to), 0, 16);
    memcpy(emulated_shared(to), from, (size_t)there);
}
static inline void ptx_cp_async_ca_shared_global(unsigned to, const void *from, int size, int there)
{
    memset(emulated_shared(to), 0, (size_t)size);
    memcpy(emulated_shared(to), from, (size_t)there);
}
static inline void ptx_cp_async_commit_group() {}
static inline void ptx_cp_async_wait_group(int) {}

static inline void ptx_ld_global_cg_v4_u32(unsigned &a, unsigned &b, unsigned &c, unsigned &d, unsigned long long at)
{
    const unsigned *p = (const unsigned *)at;
    a = p[0], b = p[1], c = p[2], d = p[3];
}
static inline void ptx_ld_global_cg_v2_u32(unsigned &a, unsigned &b, unsigned long long at)
{
    const unsigned *p = (const unsigned *)at;
    a = p[0], b = p[1];
}
static inline void ptx_ld_global_cg_u32(unsigned &a, unsigned long long at) { a = *(const unsigned *)at; }
static inline void ptx_ld_global_cg_u16(unsigned &a, unsigned long long at) { a = *(const unsigned short *)at; }
static inline void ptx_ld_global_cg_u8(unsigned &a, unsigned long long at) { a = *(const unsigned char *)at; }

/* The lanes whose x has a bit as this one's has it. */
static inline void ptx_vote_sync_ballot_b32(unsigned &lanes, unsigned x, unsigned bit)
{
    const unsigned votes = __ballot_sync(~0u, (x & bit) != 0);
    lanes = x & bit ? votes : ~votes;
}

/* c += a b, 16 x 8 x 8, of TF32 numbers, each 4 lanes' share of a row (PTX ISA, "Matrix Fragments for mma.m16n8k8"). */
static inline void ptx_mma_sync_aligned_m16n8k8_row_col_f32_tf32_tf32_f32(float &c0, float &c1, float &c2, float &c3,
                                                                          unsigned a0, unsigned a1, unsigned a2,
                                                                          unsigned a3, unsigned b0, unsigned b1)
{
    struct share {
        unsigned a[4], b[2];
    };
    float *const c[4] = {&c0, &c1, &c2, &c3};
    const int lane = (int)emulated_now->lane;
    emulated_show(~0u, share{{a0, a1, a2, a3}, {b0, b1}}, [&c, lane](auto of) {
        const auto number = [](unsigned bits) { return emulated_bits<float>(bits & 0xffffe000u); };
        for (int i = 0; i < 4; i++) {
            const int row = lane / 4 + i / 2 * 8, column = lane % 4 * 2 + i % 2;
            for (int k = 0; k < 8; k++)
                *c[i] +=
                    number(of(row % 8 * 4 + k % 4).a[row / 8 + k / 4 * 2]) * number(of(column * 4 + k % 4).b[k / 4]);
        }
        return 0;
    });
}

/* ---- a kernel, as the driver finds it ---- */

template <class... A> struct emulated_signature {
    static constexpr size_t sizes[] = {sizeof(A)..., 0};
    template <size_t... I> static void apply(void (*kernel)(A...), void *const *p, std::index_sequence<I...>)
    {
        kernel(*(A *)p[I]...);
    }
};
template <class... A> constexpr emulated_signature<A...> emulated_signature_of(void (*)(A...)) { return {}; }
template <class... A> static inline void emulated_apply(void (*kernel)(A...), void *const *p)
{
    emulated_signature<A...>::apply(kernel, p, std::index_sequence_for<A...>());
}
#define EMULATED_KERNEL(function) \
    extern "C" __attribute__((visibility("default"))) \
    const emulated_kernel emulated_##function = {#function, \
                                                 &emulated_now, \
                                                 &emulated_by, \
                                                 decltype(emulated_signature_of(&function))::sizes, \
                                                 [](void *const *p) { emulated_apply(&function, p); }, \
                                                 (unsigned char *)emulated_dynamic, \
                                                 sizeof emulated_dynamic};
