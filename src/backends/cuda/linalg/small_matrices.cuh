/* SPDX-License-Identifier: MIT */
/*
 * Factors of many small matrices: a warp takes one, a lane a row of it, in shared memory. Behind solver.cuh, and with
 * its layout and LAPACK's meaning: partial pivoting by |re| + |im|, the first of equals; info the place of the first
 * pivot that is zero, or not positive.
 * The algorithms: Golub and Van Loan, Matrix Computations, 4th edition, 3.4.1 and 4.2.5 (right-looking).
 */
#define LANES 32                /* most rows of a matrix */
#define WARPS (4 / PARTS)
#define ALL 0xffffffffu

__device__ number conjugate(number a)
{
#if PARTS == 2
    a.part[1] = -a.part[1];
#endif
    return a;
}

/* x - a b */
__device__ number less_product(number x, const number a, const number b)
{
    x.part[0] -= a.part[0] * b.part[0];
#if PARTS == 2
    x.part[0] += a.part[1] * b.part[1];
    x.part[1] -= a.part[0] * b.part[1];
    x.part[1] -= a.part[1] * b.part[0];
#endif
    return x;
}

/* a / b. Complex numbers by Smith's method (Communications of the ACM 5, 1962), which avoids overflowing squares. */
__device__ number quotient(const number a, const number b)
{
    number result;
#if PARTS == 2
    const bool turn = fabs(b.part[0]) < fabs(b.part[1]);
    const double large = turn ? b.part[1] : b.part[0], ratio = turn ? b.part[0] / large : b.part[1] / large;
    const double scale = turn ? b.part[0] * ratio + large : large + b.part[1] * ratio;
    result.part[0] = (turn ? a.part[0] * ratio + a.part[1] : a.part[0] + a.part[1] * ratio) / scale;
    result.part[1] = (turn ? a.part[1] * ratio - a.part[0] : a.part[1] - a.part[0] * ratio) / scale;
#else
    result.part[0] = a.part[0] / b.part[0];
#endif
    return result;
}

__device__ double size_of(const number a)
{
#if PARTS == 2
    return fabs(a.part[0]) + fabs(a.part[1]);
#else
    return fabs(a.part[0]);
#endif
}

__device__ number from_lane(number a, int lane)
{
    for (int part = 0; part < PARTS; part++)
        a.part[part] = __shfl_sync(ALL, a.part[part], lane);
    return a;
}

/* The lane from k on whose element is the largest; NaN counts as 0. */
__device__ int largest_from(int k, double size, int lane)
{
    int place = lane;
    size = lane < k ? -1 : size > 0 ? size : 0;
    for (int apart = LANES / 2; apart > 0; apart /= 2) {
        const double other = __shfl_xor_sync(ALL, size, apart);
        const int there = __shfl_xor_sync(ALL, place, apart);
        if (other > size || (other == size && there < place)) {
            size = other;
            place = there;
        }
    }
    return place;
}

/* P a = L U in place. `row`: the row of a that is the lane's in P a; `pivot`: what the lane's row was exchanged with,
 * from 1. */
__device__ int factor(number *a, int n, int lane, int *row, i64 *pivot)
{
    int info = 0;
    *row = lane;
    for (int k = 0; k < n; k++) {
        const int place = largest_from(k, lane < n ? size_of(a[k * n + lane]) : -1, lane);
        const int first = __shfl_sync(ALL, *row, k), second = __shfl_sync(ALL, *row, place);
        __syncwarp();
        if (lane < n && place != k) {
            const number was = a[lane * n + k];
            a[lane * n + k] = a[lane * n + place];
            a[lane * n + place] = was;
        }
        if (lane == k) {
            *row = second;
            *pivot = place + 1;
        } else if (lane == place)
            *row = first;
        __syncwarp();
        const number head = a[k * n + k];
        if (size_of(head) == 0) {
            info = info ? info : k + 1;
        } else if (lane > k && lane < n) {
            const number l = a[k * n + lane] = quotient(a[k * n + lane], head);
            for (int j = k + 1; j < n; j++)
                a[j * n + lane] = less_product(a[j * n + lane], l, a[j * n + k]);
        }
        __syncwarp();
    }
    return info;
}

/* a = L L^H in the lower triangle, in place. */
__device__ int factor_positive(number *a, int n, int lane)
{
    for (int k = 0; k < n; k++) {
        const double head = a[k * n + k].part[0], root = sqrt(head);
        if (!(head > 0))
            return k + 1;
        __syncwarp();
        if (lane >= k && lane < n) {
            number l = a[k * n + lane];
            for (int part = 0; part < PARTS; part++)
                l.part[part] = lane == k ? (part ? 0 : root) : l.part[part] / root;
            a[k * n + lane] = l;
        }
        __syncwarp();
        if (lane > k && lane < n)
            for (int j = k + 1; j <= lane; j++)
                a[j * n + lane] = less_product(a[j * n + lane], a[k * n + lane], conjugate(a[k * n + j]));
        __syncwarp();
    }
    return 0;
}

/* Solves L U x = b; a lane has one element of b, and returns that of x. */
__device__ number substitute(const number *a, int n, int lane, number x)
{
    for (int k = 0; k < n; k++) {
        const number solved = from_lane(x, k);
        if (lane > k && lane < n)
            x = less_product(x, a[k * n + lane], solved);
    }
    for (int k = n - 1; k >= 0; k--) {
        if (lane == k)
            x = quotient(x, a[k * n + k]);
        const number solved = from_lane(x, k);
        if (lane < k)
            x = less_product(x, a[k * n + lane], solved);
    }
    return x;
}

/* Copies a matrix into shared memory, and back; `upper`: the upper triangle is read as the lower one of the adjoint. */
__device__ void fetch(number *tile, const number *a, int n, int lane, bool upper)
{
    for (int j = 0; j < n && lane < n; j++)
        tile[j * n + lane] = upper ? conjugate(a[lane * n + j]) : a[j * n + lane];
    __syncwarp();
}

__device__ void put(number *a, const number *tile, int n, int lane, bool upper)
{
    for (int j = 0; j < n && lane < n; j++)
        a[upper ? lane * n + j : j * n + lane] = upper ? conjugate(tile[j * n + lane]) : tile[j * n + lane];
}

/* This warp's number among all of the grid, and the number of all. */
__device__ i64 warp_of_all() { return (i64)blockIdx.x * WARPS + threadIdx.x / LANES; }
__device__ i64 all_warps() { return (i64)gridDim.x * WARPS; }

extern "C" __global__ void __launch_bounds__(WARPS * LANES) small_cholesky(const __grid_constant__ matrices m,
                                                                           int upper)
{
    __shared__ number tiles[WARPS][LANES * LANES];
    number *tile = tiles[threadIdx.x / LANES];
    const int lane = threadIdx.x % LANES, n = (int)m.n;
    for (i64 i = warp_of_all(); i < m.count; i += all_warps()) {
        fetch(tile, m.a + i * n * n, n, lane, upper);
        const int info = factor_positive(tile, n, lane);
        put(m.a + i * n * n, tile, n, lane, upper);
        if (lane == 0)
            m.info[i] = info;
        __syncwarp();
    }
}

/* Computes the LU factors, for the determinant. */
extern "C" __global__ void __launch_bounds__(WARPS * LANES) small_lu(const __grid_constant__ matrices m)
{
    __shared__ number tiles[WARPS][LANES * LANES];
    number *tile = tiles[threadIdx.x / LANES];
    const int lane = threadIdx.x % LANES, n = (int)m.n;
    for (i64 i = warp_of_all(); i < m.count; i += all_warps()) {
        fetch(tile, m.a + i * n * n, n, lane, false);
        int row;
        i64 pivot = 0;
        const int info = factor(tile, n, lane, &row, &pivot);
        put(m.a + i * n * n, tile, n, lane, false);
        if (lane < n)
            m.pivot[i * n + lane] = pivot;
        if (lane == 0)
            m.info[i] = info;
        __syncwarp();
    }
}

/* Replaces right-hand sides by solutions. A warp has LANES right-hand sides of a matrix; warps with others of the same
 * matrix compute its factors again. */
extern "C" __global__ void __launch_bounds__(WARPS * LANES) small_solve(const __grid_constant__ matrices m, i64 sides)
{
    __shared__ number tiles[WARPS][LANES * LANES];
    number *tile = tiles[threadIdx.x / LANES];
    const int lane = threadIdx.x % LANES, n = (int)m.n;
    const i64 groups = (sides + LANES - 1) / LANES;
    for (i64 k = warp_of_all(); k < m.count * groups; k += all_warps()) {
        const i64 i = k / groups, first = (k - i * groups) * LANES,
                  last = first + LANES < sides ? first + LANES : sides;
        fetch(tile, m.a + i * n * n, n, lane, false);
        int row;
        i64 pivot;
        const int info = factor(tile, n, lane, &row, &pivot);
        for (i64 side = first; side < last; side++) {
            number *b = m.b + i * m.each + side * n;
            const number x = substitute(tile, n, lane, lane < n ? b[row] : number());
            if (lane < n)
                b[lane] = x;
        }
        if (lane == 0 && first == 0)
            m.info[i] = info;
        __syncwarp();
    }
}
