/* SPDX-License-Identifier: MIT */
/*
 * Sorting by radix, a byte of the keys at a time from the lowest, so that equal elements keep their order (Knuth, The
 * Art of Computer Programming, volume 3, 5.2.5), in one reading and one writing a pass (Adinets and Merrill,
 * "Onesweep", 2022):
 *
 *     sort_clear   before everything: no tile has published anything
 *     sort_count   how often each value of each byte occurs in each row
 *     sort_plan    where each value's elements begin, and which bytes differ within a row: only those take a pass
 *     sort_move    a pass: ranks a tile's elements, puts them in order in shared memory, learns from the tiles before
 *                  it where each digit's elements go, and writes them as one piece a digit
 *
 * A tile publishes for each digit how many elements it has, then how many it and all tiles before it have; whoever
 * comes after adds up the former until it meets the latter. Tiles are numbered in the order in which blocks begin, so
 * that whoever is waited for is running or done.
 *
 * The first pass makes keys of the elements, the last one elements of the keys: a pass costs instructions more than
 * memory, so that each one counts. With POSITIONS, the positions that sort are wanted: each key has a 32-bit position
 * beside it, and the last pass writes only those.
 *
 * WIDE is for rows of 2^30 elements and more.
 */
#define DIGITS 256
#define THREADS 512
#define WARPS (THREADS / 32)
#ifdef POSITIONS /* they want registers, too */
#define EACH_THREAD (E_BITS == 64 ? 8 : 16)
#else
#define EACH_THREAD (E_BITS == 64 ? 10 : 20)
#endif
#define TILE (THREADS * EACH_THREAD)
#define BYTES (E_BITS / 8)
#define BACK 4              /* earlier tiles whose counts are read at once */

/* What a tile publishes: a number of elements, and in the two highest bits what they are. */
#ifdef WIDE
typedef u64 word;
#else
typedef u32 word;
#endif
#define OWN  ((word)1 << (sizeof(word) * 8 - 2)) /* elements of the tile */
#define UPTO ((word)2 << (sizeof(word) * 8 - 2)) /* elements of it and of all tiles before it */
#define ELEMENTS (OWN - 1)

struct sort_pass {
    const E *in;
    E *out;
    E *between[2];          /* elements between passes: the last pass but one writes the first, the one before it the
                               second */
    u32 *positions[2];      /* the positions that belong to them */
    word *published[2];     /* by row, tile and digit; passes take them by turns and clear the other one's */
    u32 *starts;            /* by row, byte and digit: how many; then how many of lower digits */
    u32 *differs;           /* by row: the passes that it takes, a bit set */
    u64 *ticket;            /* one a pass */
    i64 n, tiles, rows;
    i64 from_step, to_step;
    int passes, number;
    int even;               /* passes are even in number: the first one must not write where it reads */
    int at_once;            /* tiles of one block of sort_count */
    const u64 *guard;       /* NULL, or not 0 after a failure */
};

static __device__ __forceinline__ u32 digit_of(E key, int byte)
{
#if E_BITS == 64
    return __byte_perm((u32)key, (u32)(key >> 32), (u32)byte) & (DIGITS - 1);
#else
    return __byte_perm((u32)key, 0, 0x4440u | (u32)byte);
#endif
}

/* The lanes of the warp that have this digit, by a vote on each of its bits: faster than __match_any_sync. In PTX, as
 * the compiler makes four instructions a bit of it, and nearly twice as many of the same in C. */
static __device__ __forceinline__ u32 lanes_of(u32 digit)
{
    u32 lanes = ~0u;
#pragma unroll
    for (int bit = 0; bit < 8; bit++) {
        u32 votes;
        asm("{ .reg .pred p; .reg .b32 b; and.b32 b, %1, %2; setp.ne.u32 p, b, 0; "
            "vote.sync.ballot.b32 %0, p, 0xffffffff; @!p not.b32 %0, %0; }"
            : "=r"(votes)
            : "r"(digit), "r"(1u << bit));
        lanes &= votes;
    }
    return lanes;
}

extern "C" __global__ void sort_clear(const __grid_constant__ sort_pass pass)
{
    const i64 first = (i64)blockIdx.x * blockDim.x + threadIdx.x, all = (i64)gridDim.x * blockDim.x;
    const i64 words = pass.rows * pass.tiles * DIGITS;
    for (i64 i = first; i < words; i += all) {
        pass.published[0][i] = 0;
        pass.published[1][i] = 0;
    }
    for (i64 i = first; i < pass.rows * BYTES * DIGITS; i += all)
        pass.starts[i] = 0;
    if (first < pass.passes)
        pass.ticket[first] = 0;
}

extern "C" __global__ void __launch_bounds__(THREADS) sort_count(const __grid_constant__ walk w,
                                                                 const __grid_constant__ sort_pass pass)
{
    __shared__ u32 count[BYTES * DIGITS];
    const i64 shares = (pass.tiles + pass.at_once - 1) / pass.at_once;
    const i64 row = blockIdx.x / shares, share = blockIdx.x % shares;
    i64 at[3];
    places(w, row, at);
    const E *from = pass.in + at[1];
    for (int i = threadIdx.x; i < BYTES * DIGITS; i += THREADS)
        count[i] = 0;
    __syncthreads();
    for (i64 tile = share * pass.at_once; tile < pass.tiles && tile < (share + 1) * pass.at_once; tile++) {
        const i64 begin = tile * TILE + threadIdx.x;
        E x[EACH_THREAD];
#pragma unroll
        for (int i = 0; i < EACH_THREAD; i++)
            x[i] = begin + i * THREADS < pass.n ? from[(begin + i * THREADS) * pass.from_step] : (E)0;
#pragma unroll
        for (int i = 0; i < EACH_THREAD; i++) {
            const E key = moved(x[i]);
            for (int byte = 0; byte < BYTES && begin + i * THREADS < pass.n; byte++)
                atomicAdd(&count[byte * DIGITS + digit_of(key, byte)], 1u);
        }
    }
    __syncthreads();
    for (int i = threadIdx.x; i < BYTES * DIGITS; i += THREADS)
        if (count[i])
            atomicAdd(&pass.starts[row * BYTES * DIGITS + i], count[i]);
}

/* For the first DIGITS threads, the sum of x over the threads before this one. */
static __device__ u32 sum_before(u32 x, u32 *sums)
{
    const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
    const u32 upto = warp_sums(x);
    if (lane == 31)
        sums[warp] = upto;
    __syncthreads();
    u32 lower = 0;
    for (int i = 0; i < DIGITS / 32; i++)
        lower += i < warp ? sums[i] : 0;
    __syncthreads();
    return lower + upto - x;
}

/* One block for each row, one thread for each digit. */
extern "C" __global__ void __launch_bounds__(DIGITS) sort_plan(const __grid_constant__ sort_pass pass)
{
    __shared__ u32 sums[DIGITS / 32];
    for (i64 row = blockIdx.x; row < pass.rows; row += gridDim.x) {
        u32 differs = 0;
        for (int byte = 0; byte < BYTES && byte < pass.passes; byte++) {
            u32 *start = &pass.starts[(row * BYTES + byte) * DIGITS + threadIdx.x];
            const u32 count = *start;
            if (!__syncthreads_or(count == (u32)pass.n))
                differs |= 1u << byte;
            *start = sum_before(count, sums);
        }
        if (differs == 0)
            differs = 1;
        if (pass.even && __popc(differs) % 2)
            differs |= ~differs & (differs + 1);
        if (threadIdx.x == 0)
            pass.differs[row] = differs;
    }
}

/* How many elements of a digit the tiles before `tile` of the row have, from what they have published. */
static __device__ __forceinline__ word elements_before(const word *published, i64 tile, int digit)
{
    word sum = 0;
    while (tile > 0) {
        word said[BACK];
#pragma unroll
        for (int k = 0; k < BACK; k++)
            said[k] = tile - 1 - k < 0 ? UPTO : *(const volatile word *)&published[(tile - 1 - k) * DIGITS + digit];
        int k = 0;
#pragma unroll
        for (; k < BACK; k++) {
            if (said[k] == 0)
                break;
            sum += said[k] & ELEMENTS;
            if (said[k] & UPTO)
                return sum;
        }
        tile -= k;
    }
    return sum;
}

/* Where a row begins in what a pass writes, at[0], and in what it reads, at[1], if that is the program's memory. */
static __device__ __forceinline__ void find_row(const walk &w, i64 row, int passed, int left, i64 *at)
{
    if (passed == 0 || left == 0) {
        i64 outside[3];
        places(w, row, outside);
        if (passed == 0)
            at[1] = outside[1];
        if (left == 0)
            at[0] = outside[0];
    }
}

/* The thread's elements, as keys. What lies behind the row's end counts as the highest key, and so comes after all. */
static __device__ __forceinline__ void read(E (&x)[EACH_THREAD], const sort_pass &pass, i64 at, i64 tile, int passed,
                                            int left, int begin, int rest)
{
    if (passed == 0) {
        const E *from = pass.in + at + (tile * TILE + begin) * pass.from_step;
#pragma unroll
        for (int i = 0; i < EACH_THREAD; i++)
            x[i] = begin + i * 32 < rest ? moved(from[i * 32 * pass.from_step]) : (E)~(E)0;
    } else {
        const E *from = pass.between[left & 1] + at + tile * TILE + begin;
#pragma unroll
        for (int i = 0; i < EACH_THREAD; i++)
            x[i] = begin + i * 32 < rest ? from[i * 32] : (E)~(E)0;
    }
}

/* Puts the thread's elements in order into shared memory, each behind those of its digit in the lanes below. next: by
 * digit, where the warp's next one goes; place: where the thread's own went. */
static __device__ __forceinline__ void put_in_order(const E (&x)[EACH_THREAD], int byte, u32 *next, E *ordered,
                                                    unsigned short (&place)[EACH_THREAD])
{
    const u32 below = (1u << (threadIdx.x & 31)) - 1;
#pragma unroll
    for (int i = 0; i < EACH_THREAD; i++) {
        u32 *at = &next[digit_of(x[i], byte)];
        const u32 same = lanes_of(digit_of(x[i], byte)), lower = __popc(same & below), first = *at;
        __syncwarp();
        if (lower == 0)
            *at = first + __popc(same);
        __syncwarp();
        ordered[first + lower] = x[i];
        place[i] = (unsigned short)(first + lower);
    }
}

extern "C" __global__ void __launch_bounds__(THREADS, 2) sort_move(const __grid_constant__ walk w,
                                                                   const __grid_constant__ sort_pass pass)
{
    extern __shared__ __align__(16) unsigned char memory[];
    /* of the digits in each warp; then where the next one of it goes in the tile */
    u32 (*count)[DIGITS] = (u32 (*)[DIGITS])memory;
    unsigned char *moving = memory + sizeof(u32) * WARPS * DIGITS;
    /* where a digit's elements go in the row, less their place in the tile */
    __shared__ u32 target[DIGITS];
    __shared__ u32 sums[WARPS];
    __shared__ u64 number;
    if (pass.guard && *(const volatile u64 *)pass.guard)
        return;
    if (pass.rows == 1 && !(pass.differs[0] >> pass.number & 1))
        return;
    if (threadIdx.x == 0)
        number = atomicAdd(&pass.ticket[pass.number], 1ull);
    for (int i = threadIdx.x; i < WARPS * DIGITS; i += THREADS)
        (&count[0][0])[i] = 0;
    __syncthreads();
    const i64 row = pass.rows == 1 ? 0 : (i64)number / pass.tiles, tile = (i64)number - row * pass.tiles;
    const u32 differs = pass.differs[row];
    if (!(differs >> pass.number & 1))
        return;
    const int passed = __popc(differs & ((1u << pass.number) - 1)), left = __popc(differs) - 1 - passed;
    const int byte = pass.number < BYTES ? pass.number : 0;
    const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
    const int begin = warp * (32 * EACH_THREAD) + lane; /* within the tile */
    const int rest = pass.n - tile * TILE < TILE ? (int)(pass.n - tile * TILE) : TILE;
    i64 at[3] = {row * pass.n, row * pass.n, 0};
    find_row(w, row, passed, left, at);

    E x[EACH_THREAD];
    read(x, pass, at[1], tile, passed, left, begin, rest);
#pragma unroll
    for (int i = 0; i < EACH_THREAD; i++)
        atomicAdd(&count[warp][digit_of(x[i], byte)], 1u);
    __syncthreads();

    word *published = pass.published[passed & 1] + row * pass.tiles * DIGITS;
    const int d = threadIdx.x;
    u32 own = 0, real = 0;
    if (d < DIGITS) {
        u32 here[WARPS];
#pragma unroll
        for (int i = 0; i < WARPS; i++)
            here[i] = count[i][d];
#pragma unroll
        for (int i = 0; i < WARPS; i++)
            own += here[i];
        real = d == DIGITS - 1 ? own - (u32)(TILE - rest) : own;
        *(volatile word *)&published[tile * DIGITS + d] = (tile ? OWN : UPTO) | real;
        pass.published[~passed & 1][number * DIGITS + d] = 0;
    }
    const u32 start = sum_before(own, sums);
    if (d < DIGITS) {
        u32 here[WARPS], upto = start;
#pragma unroll
        for (int i = 0; i < WARPS; i++)
            here[i] = count[i][d];
#pragma unroll
        for (int i = 0; i < WARPS; i++) {
            count[i][d] = upto;
            upto += here[i];
        }
    }
    __syncthreads();

    E *ordered = (E *)moving;
    unsigned short place[EACH_THREAD];
    put_in_order(x, byte, count[warp], ordered, place);
    if (d < DIGITS) {
        const word before = elements_before(published, tile, d);
        if (tile)
            *(volatile word *)&published[tile * DIGITS + d] = UPTO | (before + real);
        target[d] = pass.starts[(row * BYTES + byte) * DIGITS + d] + (u32)before - start;
    }
    __syncthreads();
#ifdef POSITIONS
    u32 goes[EACH_THREAD];
#pragma unroll
    for (int i = 0; i < EACH_THREAD; i++) {
        const int j = i * THREADS + threadIdx.x;
        const E y = j < rest ? ordered[j] : (E)0;
        goes[i] = target[digit_of(y, byte)] + j;
        if (left && j < rest)
            pass.between[~left & 1][at[0] + goes[i]] = y;
    }
    __syncthreads();
    u32 *positions = (u32 *)moving;
    const u32 *given = passed ? pass.positions[left & 1] + row * pass.n + tile * TILE + begin : NULL;
#pragma unroll
    for (int i = 0; i < EACH_THREAD; i++)
        positions[place[i]] = begin + i * 32 >= rest ? 0 : given ? given[i * 32] : (u32)(tile * TILE) + begin + i * 32;
    __syncthreads();
#pragma unroll
    for (int i = 0; i < EACH_THREAD; i++) {
        const int j = i * THREADS + threadIdx.x;
        if (j >= rest)
            break;
        if (left == 0)
            ((i64 *)pass.out)[at[0] + goes[i] * pass.to_step] = positions[j];
        else
            pass.positions[~left & 1][row * pass.n + goes[i]] = positions[j];
    }
#else
    if (left == 0) {
        E *to = pass.out + at[0];
#pragma unroll
        for (int i = 0; i < EACH_THREAD; i++) {
            const int j = i * THREADS + threadIdx.x;
            if (j < rest)
                to[(target[digit_of(ordered[j], byte)] + j) * pass.to_step] = moved_back(ordered[j]);
        }
    } else {
        E *to = pass.between[~left & 1] + at[0];
#pragma unroll
        for (int i = 0; i < EACH_THREAD; i++) {
            const int j = i * THREADS + threadIdx.x;
            if (j < rest)
                to[target[digit_of(ordered[j], byte)] + j] = ordered[j];
        }
    }
#endif
}
