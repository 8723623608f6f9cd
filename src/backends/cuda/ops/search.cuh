/* SPDX-License-Identifier: MIT */
/*
 * Where elements go in sorted rows; with RIGHT behind their equals.
 *
 *     search             by halving, a thread an element
 *     search_guided      of one row that has room in shared memory, many elements. What lies between its ends is cut
 *                        into CELLS pieces of equal width; a table tells how many elements of the row lie in the pieces
 *                        before each. So few are left to look at, one or two where they rise evenly
 *
 * In front of it: what sort_keys.cuh and value.cuh need.
 */
#define CELLS 4096
#define SEARCHES 8          /* searches that a thread has under way */

struct search_work {
    i64 *to;
    const E *sorted, *wanted;
    i64 n, count;         /* elements of a sorted row, and of a row of values to be searched for */
    i64 to_step, sorted_step, wanted_step;
    const u64 *guard;
};

/* Does the key come before the wanted place? */
static __device__ __forceinline__ bool goes_before(E key, E wanted)
{
#ifdef RIGHT
    return key <= wanted;
#else
    return key < wanted;
#endif
}

extern "C" __global__ void __launch_bounds__(256) search(const __grid_constant__ walk w,
                                                         const __grid_constant__ search_work work)
{
    if (work.guard && *(const volatile u64 *)work.guard)
        return;
    const i64 all = w.size * work.count;
    for (i64 i = (i64)blockIdx.x * blockDim.x + threadIdx.x; i < all; i += (i64)gridDim.x * blockDim.x) {
        const i64 row = i / work.count, j = i - row * work.count;
        i64 at[3];
        places(w, row, at);
        const E wanted = key_of(work.wanted[at[2] + j * work.wanted_step]);
        i64 low = 0, high = work.n;
        while (low < high) {
            const i64 middle = low + (high - low) / 2;
            const E key = key_of(work.sorted[at[1] + middle * work.sorted_step]);
            const bool below = goes_before(key, wanted);
            low = below ? middle + 1 : low;
            high = below ? high : middle;
        }
        work.to[at[0] + j * work.to_step] = low;
    }
}

/* The piece that a number lies in; what comes later in order lies in no earlier one, whatever is rounded
 * or infinite. */
static __device__ __forceinline__ int cell_of(V x, V first, V cells_a_unit)
{
    const V guess = (x - first) * cells_a_unit;
    const int cell = guess >= 0 ? (guess < (V)CELLS ? (int)guess : CELLS - 1) : 0;
    return x != x || cell >= CELLS ? CELLS - 1 : cell;
}

extern "C" __global__ void __launch_bounds__(512, 3) search_guided(const __grid_constant__ search_work work)
{
    extern __shared__ __align__(16) unsigned char memory[];
    u32 *table = (u32 *)memory; /* low 16 bits: elements in the pieces before; high 16 bits: those before the next
                                   piece */
    E *keys = (E *)(table + CELLS);
    if (work.guard && *(const volatile u64 *)work.guard)
        return;
    const int n = (int)work.n;
    const V first = value_of(work.sorted[0]), last = value_of(work.sorted[(n - 1) * work.sorted_step]),
            rate = (V)CELLS / (last - first);
    for (int i = threadIdx.x; i < n; i += (int)blockDim.x)
        keys[i] = key_of(work.sorted[i * work.sorted_step]);
    for (int c = threadIdx.x; c < CELLS; c += (int)blockDim.x) {
        int low = 0, high = n;
        while (low < high) {
            const int middle = (low + high) / 2;
            const bool before = cell_of(value_of(work.sorted[middle * work.sorted_step]), first, rate) < c;
            low = before ? middle + 1 : low;
            high = before ? high : middle;
        }
        table[c] = (u32)low;
    }
    __syncthreads();
    u32 next[CELLS / 512];
#pragma unroll
    for (int i = 0; i < CELLS / 512; i++) {
        const int c = i * 512 + (int)threadIdx.x;
        next[i] = c + 1 < CELLS ? table[c + 1] : (u32)n;
    }
    __syncthreads();
#pragma unroll
    for (int i = 0; i < CELLS / 512; i++)
        table[i * 512 + (int)threadIdx.x] |= next[i] << 16;
    __syncthreads();
    const i64 threads = (i64)gridDim.x * 512;
    for (i64 i = (i64)blockIdx.x * 512 + threadIdx.x; i < work.count; i += threads * SEARCHES) {
        E wanted[SEARCHES];
#pragma unroll
        for (int k = 0; k < SEARCHES; k++)
            wanted[k] = i + k * threads < work.count ? work.wanted[(i + k * threads) * work.wanted_step] : (E)0;
#pragma unroll
        for (int k = 0; k < SEARCHES; k++) {
            if (i + k * threads >= work.count)
                break;
            const u32 both = table[cell_of(value_of(wanted[k]), first, rate)];
            const E key = key_of(wanted[k]);
            int low = (int)(both & 0xffff), high = (int)(both >> 16);
            while (low < high) {
                const int middle = (low + high) / 2;
                const bool below = goes_before(keys[middle], key);
                low = below ? middle + 1 : low;
                high = below ? high : middle;
            }
            work.to[(i + k * threads) * work.to_step] = low;
        }
    }
}
