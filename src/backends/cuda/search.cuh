/* SPDX-License-Identifier: MIT */
/* Where elements go in sorted rows, by halving; with RIGHT behind their equals. A thread an element. */
struct search_work {
    i64 *to;
    const E *sorted, *wanted;
    i64 n, count;         /* elements of a sorted row; of a row of wanted ones */
    i64 to_step, sorted_step, wanted_step;
    const u64 *guard;
};

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
#ifdef RIGHT
            const bool below = key <= wanted;
#else
            const bool below = key < wanted;
#endif
            low = below ? middle + 1 : low;
            high = below ? high : middle;
        }
        work.to[at[0] + j * work.to_step] = low;
    }
}
