/* SPDX-License-Identifier: MIT */
/*
 * The positions of the `most` largest elements of rows, the greatest first; of equal ones, those at higher positions
 * count as greater, so that no two elements are equal.
 *
 *     largest    a block finds those of a part of a row, which stays in registers. Of a row of several parts it leaves
 *                them as keys and positions, which the next launch takes for a shorter row
 *
 * Few of many rows, or of short ones, are found by largest_few.cuh.
 *
 * A digit of the keys at a time, from the highest, elements are counted, and the digit is found among whose elements
 * the last one wanted is. As soon as those that lie not below it are FOUND or fewer, they go to shared memory and are
 * sorted there (Batcher's bitonic network): mostly after one digit. Where too many keys are equal, digits of their
 * positions decide. What lies where in shared memory is left to chance, but not what comes out, as no two are equal.
 *
 * The host puts in front of it what sort_keys.cuh needs. Threads are 64, 128, 256 or 512.
 */
#define EACH_THREAD (E_BITS == 64 ? 8 : 16)
#define DIGIT 11
#define DIGITS (1 << DIGIT)
#define FOUND 2048
#define NOTHING ((E)0)

struct largest_work {
    const E *from;
    i64 *to;
    const E *keys;          /* by row: what a launch before has left; NULL: the first one */
    const u32 *positions;
    E *next_keys;           /* by row, part and place; NULL: the last one */
    u32 *next_positions;
    i64 n, parts, rows, most;
    i64 from_step, to_step;
    const u64 *guard;       /* NULL, or not 0 after a failure */
};

struct __align__(E_BITS == 64 ? 16 : 8) element {
    E key;
    u32 position;
};

static __device__ __forceinline__ bool below(const element &a, const element &b)
{
    return a.key < b.key || (a.key == b.key && a.position < b.position);
}

/* Elements that are wanted for certain, those of which only some are, and what is known of the last one wanted. */
struct choice {
    int above, among;
    E key;                  /* its upper bits */
    int key_bits;           /* that are not known */
    u32 position;
    int position_bits;
};

struct largest_shared {
    u32 count[DIGITS];
    element found[FOUND];
    u32 sums[16];
    u32 digit, higher, here; /* the digit looked for, elements of higher ones, and of its own */
    u32 number;
};

/* Of the counted digits the one that has the `wanted`th element from above. */
static __device__ __forceinline__ void find_digit(largest_shared &s, u32 wanted)
{
    const int each = DIGITS / (int)blockDim.x, top = DIGITS - 1 - (int)threadIdx.x * each;
    const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
    u32 own = 0;
    for (int i = 0; i < each; i++)
        own += s.count[top - i];
    const u32 upto = warp_sums(own);
    if (lane == 31)
        s.sums[warp] = upto;
    __syncthreads();
    u32 before = upto - own;
    for (int i = 0; i < warp; i++)
        before += s.sums[i];
    if (before < wanted && wanted <= before + own) {
        int i = 0;
        while (before + s.count[top - i] < wanted)
            before += s.count[top - i++];
        s.digit = (u32)(top - i);
        s.higher = before;
        s.here = s.count[top - i];
    }
    __syncthreads();
}

/* One digit more. digit(i): that of the thread's element number i, or -1 if it is not among those in question. */
template <class Digit>
static __device__ __forceinline__ u32 narrow(largest_shared &s, choice &c, int most, const Digit &digit)
{
    for (int i = threadIdx.x; i < DIGITS; i += (int)blockDim.x)
        s.count[i] = 0;
    __syncthreads();
#pragma unroll
    for (int i = 0; i < EACH_THREAD; i++) {
        const int d = digit(i);
        if (d >= 0)
            atomicAdd(&s.count[d], 1u);
    }
    __syncthreads();
    find_digit(s, (u32)(most - c.above));
    c.above += (int)s.higher;
    c.among = (int)s.here;
    return s.digit;
}

/* The first `count` of shared memory in order, the greatest first, with others behind them up to a power of two. */
static __device__ __forceinline__ int put_in_order(element *found, int count)
{
    int size = 64;
    while (size < count)
        size *= 2;
    for (int i = count + (int)threadIdx.x; i < size; i += (int)blockDim.x) {
        found[i].key = NOTHING;
        found[i].position = 0;
    }
    __syncthreads();
    for (int run = 2; run <= size; run *= 2)
        for (int apart = run / 2; apart > 0; apart /= 2) {
            for (int j = threadIdx.x; j < size / 2; j += (int)blockDim.x) {
                const int low = (j & ~(apart - 1)) * 2 | (j & (apart - 1)), high = low + apart;
                const element a = found[low], b = found[high];
                if (low & run ? below(b, a) : below(a, b)) {
                    found[low] = b;
                    found[high] = a;
                }
            }
            /* a warp's elements are 64 neighbours while they are at most 32 apart */
            if (apart > 32 || (apart == 1 && run > 32))
                __syncthreads();
            else
                __syncwarp();
        }
    return size;
}

static __device__ __forceinline__ void find_largest(const walk &w, const largest_work &work, largest_shared &s,
                                                    i64 row, i64 part)
{
    const i64 begin = work.n * part / work.parts;
    const int n = (int)(work.n * (part + 1) / work.parts - begin), most = (int)work.most;
    i64 at[3] = {0, 0, 0};
    if (!work.keys || !work.next_keys)
        places(w, row, at);
    E x[EACH_THREAD];
    const E *from = work.keys ? work.keys + row * work.n + begin : work.from + at[1] + begin * work.from_step;
    const i64 step = work.keys ? 1 : work.from_step;
#pragma unroll
    for (int i = 0; i < EACH_THREAD; i++) {
        const int j = i * (int)blockDim.x + (int)threadIdx.x;
        x[i] = j < n ? from[j * step] : (E)0;
    }
    if (!work.keys)
#pragma unroll
        for (int i = 0; i < EACH_THREAD; i++)
            x[i] = key_of(x[i]);
    const auto here = [&](int i) { return i * (int)blockDim.x + (int)threadIdx.x < n; };
    const auto position = [&](int i) {
        const i64 j = begin + i * (int)blockDim.x + (int)threadIdx.x;
        return work.keys ? work.positions[row * work.n + j] : (u32)j;
    };

    choice c = {0, n, 0, E_BITS, 0, 32};
    while (c.above + c.among > FOUND && c.key_bits > 0) {
        const int left = c.key_bits > DIGIT ? c.key_bits - DIGIT : 0, bits = c.key_bits - left;
        const bool first = c.key_bits == E_BITS;
        const E known = c.key;
        const u32 d = narrow(s, c, most, [&](int i) {
            const E upper = (E)(x[i] >> left);
            return here(i) && (first || (E)(upper >> bits) == known) ? (int)(upper & (E)((1 << bits) - 1)) : -1;
        });
        c.key = (E)(first ? d : c.key << bits | d);
        c.key_bits = left;
    }
    while (c.above + c.among > FOUND) { /* all in question are equal */
        const int left = c.position_bits > DIGIT ? c.position_bits - DIGIT : 0, bits = c.position_bits - left;
        const bool first = c.position_bits == 32;
        const u32 known = c.position;
        const u32 d = narrow(s, c, most, [&](int i) {
            if (!here(i) || x[i] != c.key)
                return -1;
            const u32 upper = position(i) >> left;
            return first || upper >> bits == known ? (int)(upper & ((1u << bits) - 1)) : -1;
        });
        c.position = first ? d : c.position << bits | d;
        c.position_bits = left;
    }

    if (threadIdx.x == 0)
        s.number = 0;
    __syncthreads();
    const bool any = c.key_bits == E_BITS, ties = c.position_bits < 32;
#pragma unroll
    for (int i = 0; i < EACH_THREAD; i++) {
        const E upper = any ? (E)0 : (E)(x[i] >> c.key_bits);
        if (!here(i) || upper < c.key ||
            (ties && upper == c.key && position(i) >> c.position_bits < c.position))
            continue;
        element &e = s.found[atomicAdd(&s.number, 1u)];
        e.key = x[i];
        e.position = position(i);
    }
    __syncthreads();
    put_in_order(s.found, (int)s.number);
    const i64 next = (row * work.parts + part) * most;
    for (int i = threadIdx.x; i < most; i += (int)blockDim.x) {
        const element e = s.found[i];
        if (work.next_keys) {
            work.next_keys[next + i] = e.key;
            work.next_positions[next + i] = e.position;
        } else {
            work.to[at[0] + i * work.to_step] = e.position;
        }
    }
    __syncthreads();
}

extern "C" __global__ void __launch_bounds__(512, 2) largest(const __grid_constant__ walk w,
                                                             const __grid_constant__ largest_work work)
{
    __shared__ largest_shared s;
    if (work.guard && *(const volatile u64 *)work.guard)
        return;
    for (i64 i = blockIdx.x; i < work.rows * work.parts; i += gridDim.x) {
        const i64 row = i / work.parts;
        find_largest(w, work, s, row, i - row * work.parts);
    }
}
