/* SPDX-License-Identifier: MIT */
/* Places of one index space, as tn__cuda_walk describes it, and the loop over them; in front of most of the backend's
 * own kernels. */
typedef long long i64;
struct walk { i64 size; int ndim, unused; i64 dim[8]; i64 stride[3][8]; };
__device__ inline void places(const walk &w, i64 i, i64 *at)
{
    at[0] = at[1] = at[2] = 0;
    for (int d = w.ndim - 1; d >= 0; d--) {
        const i64 rest = d ? i / w.dim[d] : 0, j = i - rest * w.dim[d]; /* the remainder by subtraction: a second
                                                                           division would be slow */
        at[0] += j * w.stride[0][d];
        at[1] += j * w.stride[1][d];
        at[2] += j * w.stride[2][d];
        i = rest;
    }
}
#define EACH(i, n) (i64 i = (i64)blockIdx.x * blockDim.x + threadIdx.x; i < (n); i += (i64)gridDim.x * blockDim.x)
#define STOP_IF_FAILED(guard) if (guard && *(const volatile unsigned long long *)guard) return
