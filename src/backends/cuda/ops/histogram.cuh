/* SPDX-License-Identifier: MIT */
/*
 * Counting between ascending edges. An element's bin is guessed as if the edges were equally far from one another, and
 * searched for where the guess and its neighbours are wrong. Elements and edges are compared by their keys, as in
 * sorting.
 *
 *     histogram         edges and a block's own counters lie in shared memory; its counts are added at the end
 *     histogram_many    more bins than have room there
 *
 * In front of it: what sort_keys.cuh and value.cuh need. Counts are whole numbers, so that the order in which they are
 * added makes no difference.
 */
#define FEW 2048
#define FOUR 4
#define VECTORS 4            /* of four neighbours each, that a thread has under way */
#define THREADS 256

struct histogram_work {
    const E *edges, *from;
    u64 *to;
    i64 n, bins;
    i64 edges_step, from_step, to_step;
    const u64 *guard;
};

struct __align__(4 * sizeof(E) < 16 ? 4 * sizeof(E) : 16) four {
    E x[FOUR];
};

/* The bin of an element, or -1; edge(i) is the key of an edge. */
template <class Edge>
static __device__ __forceinline__ i64 bin_of(E x, const Edge &edge, i64 bins, V first, V bins_a_unit)
{
    const E key = key_of(x);
    const V guess = (value_of(x) - first) * bins_a_unit;
    i64 bin = guess >= 0 ? (guess < (V)bins ? (i64)guess : bins - 1) : 0;
    bin = bin < bins ? bin : bins - 1;
    if (edge(bin) <= key && key < edge(bin + 1))
        return bin;
    if (key < edge(0) || key > edge(bins))
        return -1;
    i64 low = 0, high = bins; /* edge(low) <= key; edge(high) is above it, or the last one */
    if (bin > 0 && edge(bin - 1) <= key && key < edge(bin))
        return bin - 1;
    if (bin + 2 <= bins && edge(bin + 1) <= key && key < edge(bin + 2))
        return bin + 1;
    while (high - low > 1) {
        const i64 middle = low + (high - low) / 2;
        if (edge(middle) <= key)
            low = middle;
        else
            high = middle;
    }
    return low;
}

/* Hands each of the thread's elements to `take`. */
template <class Take> static __device__ __forceinline__ void go_through(const histogram_work &work, const Take &take)
{
    const i64 thread = (i64)blockIdx.x * THREADS + threadIdx.x, threads = (i64)gridDim.x * THREADS;
    i64 done = 0;
    if (work.from_step == 1 && (u64)work.from % alignof(four) == 0) {
        const four *from = (const four *)work.from;
        const i64 vectors = work.n / FOUR;
        done = vectors * FOUR;
        for (i64 i = thread; i < vectors; i += threads * VECTORS) {
            four given[VECTORS];
#pragma unroll
            for (int k = 0; k < VECTORS; k++)
                if (i + k * threads < vectors)
                    given[k] = from[i + k * threads];
#pragma unroll
            for (int k = 0; k < VECTORS; k++)
                if (i + k * threads < vectors)
                    for (int j = 0; j < FOUR; j++)
                        take(given[k].x[j]);
        }
    }
    for (i64 i = done + thread; i < work.n; i += threads)
        take(work.from[i * work.from_step]);
}

extern "C" __global__ void histogram_clear(const __grid_constant__ histogram_work work)
{
    if (work.guard && *(const volatile u64 *)work.guard)
        return;
    for (i64 i = (i64)blockIdx.x * blockDim.x + threadIdx.x; i < work.bins; i += (i64)gridDim.x * blockDim.x)
        work.to[i * work.to_step] = 0;
}

static __device__ __forceinline__ V bins_a_unit(const histogram_work &work)
{
    return (V)work.bins / (value_of(work.edges[work.bins * work.edges_step]) - value_of(work.edges[0]));
}

extern "C" __global__ void __launch_bounds__(THREADS) histogram(const __grid_constant__ histogram_work work)
{
    __shared__ E edges[FEW + 1];
    __shared__ u32 count[FEW];
    if (work.guard && *(const volatile u64 *)work.guard)
        return;
    for (int i = threadIdx.x; i <= (int)work.bins; i += THREADS) {
        edges[i] = key_of(work.edges[i * work.edges_step]);
        if (i < (int)work.bins)
            count[i] = 0;
    }
    __syncthreads();
    const V first = value_of(work.edges[0]), rate = bins_a_unit(work);
    const auto edge = [&](i64 i) { return edges[(int)i]; };
    go_through(work, [&](E x) {
        const int bin = (int)bin_of(x, edge, (int)work.bins, first, rate);
        if (bin >= 0)
            atomicAdd(&count[bin], 1u);
    });
    __syncthreads();
    for (int i = threadIdx.x; i < (int)work.bins; i += THREADS)
        if (count[i])
            atomicAdd(&work.to[i * work.to_step], (u64)count[i]);
}

extern "C" __global__ void __launch_bounds__(THREADS) histogram_many(const __grid_constant__ histogram_work work)
{
    if (work.guard && *(const volatile u64 *)work.guard)
        return;
    const V first = value_of(work.edges[0]), rate = bins_a_unit(work);
    const auto edge = [&](i64 i) { return key_of(work.edges[i * work.edges_step]); };
    go_through(work, [&](E x) {
        const i64 bin = bin_of(x, edge, work.bins, first, rate);
        if (bin >= 0)
            atomicAdd(&work.to[bin * work.to_step], (u64)1);
    });
}
