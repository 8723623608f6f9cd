/* SPDX-License-Identifier: MIT */
/*
 * Steps that are no kernels, in OpenCL C: windows copied or filled, and matrix products by plain loops, an element a
 * thread. Compiled for each dtype: SIZE bytes, OF_f32 or such. a: the table that operations.c fills in.
 */
#pragma OPENCL EXTENSION cl_khr_fp64 : enable
#pragma OPENCL FP_CONTRACT OFF
#define ARGUMENTS __global const ulong *a, __global long *fault, __local uchar *shared
#define AXES 8

/* The offset of element `id` along axes whose extents begin at `extent`, by strides in elements. */
static long place(__global const long *extent, __global const long *stride, int axes, long id)
{
    long at = 0;
    for (int d = axes - 1; d >= 0; d--) {
        at += id % extent[d] * stride[d];
        id /= extent[d];
    }
    return at;
}

enum { TO, FROM, VALUE, COPY_AXES, COPY_COUNT, COPY_EXTENT, TO_STRIDE = COPY_EXTENT + AXES,
       FROM_STRIDE = TO_STRIDE + AXES };

__kernel void tn_copy(ARGUMENTS)
{
    __global const long *n = (__global const long *)a;
    const long id = get_global_id(0);
    if (id >= n[COPY_COUNT])
        return;
    __global uchar *to = (__global uchar *)a[TO] + place(n + COPY_EXTENT, n + TO_STRIDE, (int)n[COPY_AXES], id) * SIZE;
    if (!a[FROM]) {
        for (int i = 0; i < SIZE; i++)
            to[i] = i < 8 ? (uchar)(a[VALUE] >> 8 * i) : 0; /* for complex numbers, the real part */
        return;
    }
    __global const uchar *from =
        (__global const uchar *)a[FROM] + place(n + COPY_EXTENT, n + FROM_STRIDE, (int)n[COPY_AXES], id) * SIZE;
    for (int i = 0; i < SIZE; i++)
        to[i] = from[i];
}

/* T: the dtype in memory; W: the dtype of sums; LOAD and STORE convert between them. */
#define LOAD(p, i) ((W)(p)[i])
#define STORE(p, i, x) ((p)[i] = (T)(x))
#define PLUS +
#define TIMES *
#if defined(OF_f64)
typedef double T, W;
#elif defined(OF_f32)
typedef float T;
typedef double W;
#elif defined(OF_f16)
#undef LOAD
#undef STORE
typedef half T;
typedef float W;
#define LOAD(p, i) vload_half(i, p)
#define STORE(p, i, x) vstore_half_rte(x, i, p)
#elif defined(OF_bf16)
#undef LOAD
#undef STORE
typedef ushort T;
typedef float W;
static ushort narrow(float x)
{
    const uint bits = as_uint(x);
    return isnan(x) ? (bits >> 16) | 0x40u : (bits + 0x7fffu + (bits >> 16 & 1u)) >> 16;
}
#define LOAD(p, i) as_float((uint)(p)[i] << 16)
#define STORE(p, i, x) ((p)[i] = narrow(x))
#elif defined(OF_b8)
typedef uchar T, W;
#undef PLUS
#undef TIMES
#define PLUS |
#define TIMES &
#elif defined(OF_i64) || defined(OF_u64)
typedef ulong T, W;
#elif defined(OF_i32) || defined(OF_u32)
typedef uint T;
typedef ulong W;
#elif defined(OF_i16) || defined(OF_u16)
typedef ushort T;
typedef ulong W;
#else
typedef uchar T;
typedef ulong W;
#endif

enum { OUT, A, B, ALPHA, BETA, PRODUCT_AXES, PRODUCT_COUNT, ROWS, COLUMNS, DEPTH, ALONG, /* six strides */
       PRODUCT_EXTENT = ALONG + 6, OUT_STRIDE = PRODUCT_EXTENT + AXES, A_STRIDE = OUT_STRIDE + AXES,
       B_STRIDE = A_STRIDE + AXES };

/* out = alpha a b + beta out, of which row, column and batch are what the thread's number says; alpha is a double, or
 * of whole numbers an integer. */
__kernel void tn_matmul(ARGUMENTS)
{
    __global const long *n = (__global const long *)a, *along = n + ALONG, *extent = n + PRODUCT_EXTENT;
    const long id = get_global_id(0);
    if (id >= n[PRODUCT_COUNT])
        return;
    const long column = id % n[COLUMNS], row = id / n[COLUMNS] % n[ROWS], batch = id / n[COLUMNS] / n[ROWS];
    const int axes = (int)n[PRODUCT_AXES];
    __global T *out = (__global T *)a[OUT];
    __global const T *left = (__global const T *)a[A], *right = (__global const T *)a[B];
    const long to = place(extent, n + OUT_STRIDE, axes, batch) + row * along[0] + column * along[1];
    const long from = place(extent, n + A_STRIDE, axes, batch) + row * along[2];
    const long other = place(extent, n + B_STRIDE, axes, batch) + column * along[5];
    W sum = 0;
    for (long k = 0; k < n[DEPTH]; k++)
        sum = sum PLUS (W)(LOAD(left, from + k * along[3]) TIMES LOAD(right, other + k * along[4]));
#if defined(OF_f64) || defined(OF_f32) || defined(OF_f16) || defined(OF_bf16)
    sum = (W)as_double(a[ALPHA]) * sum;
#else
    sum = (W)a[ALPHA] TIMES sum;
#endif
    if (a[BETA])
        sum = sum PLUS LOAD(out, to);
    STORE(out, to, sum);
}
