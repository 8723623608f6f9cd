/* SPDX-License-Identifier: MIT */
/*
 * Large float32 products on tensor cores of compute capability 9.0 with float32's accuracy: c = alpha a b + beta c.
 *
 *     parts      A number x is the sum of great, the nearest TF32 number (11 bits), and small, what is left. A product of two
 *                numbers is great x great, in TF32, and great x small + small x great, for which bfloat16 (8 bits, twice as fast)
 *                is enough, as small is 2^-12 of x: what is lost so, 2^-21 of a term on average, is less than what float32
 *                loses by adding thousands of terms.
 *     sums       Tensor cores cut off what they add instead of rounding it. So they add the terms of DEPTH positions of k, and
 *                float32 additions in registers do the rest.
 *     packing    Kernels before the product put the operands, however they lie, where it reads them in pieces without gaps, each by
 *                one bulk copy, zeros around what is there: a as it is, in the order of the fragments that registers hold, so that a
 *                thread reads 16 bytes of its own; b in its parts, a row of 128 bytes a column (16 great ones, 16 great and 16
 *                small ones in bfloat16), swizzled as wgmma wants it.
 *     blocks     One a multiprocessor, taking tiles of ROWS x COLUMNS in turn. A thread of the third warp group copies stages of
 *                DEPTH positions, ahead by STAGES; the first two multiply, 64 rows each, HALF columns at a time, so that there
 *                are registers for their sums and for what the tensor cores are at. Two blocks of a cluster work on tiles below
 *                one another: each copies half of b's piece to both.
 *     infinities The parts of a number that is not finite are itself and zeros, so infinities and NaN come out as anywhere else.
 */
typedef unsigned int u32;
typedef unsigned long long u64;
typedef long long i64;

#define HOT __device__ __forceinline__
#define STOP_IF_FAILED(guard) if (guard && *(const volatile u64 *)guard) return

constexpr int ROWS = 128, COLUMNS = 256, HALF = COLUMNS / 2, DEPTH = 16, STAGES = 5, CLUSTER = 2;
constexpr int CONSUMERS = 256, THREADS = CONSUMERS + 128, PACKERS = 256;
constexpr u32 B_BYTES = COLUMNS * 128, A_BYTES = ROWS * DEPTH * 4, STAGE = B_BYTES + A_BYTES;

/* ---- parts ---- */

HOT u32 bits_of(float x) { return (u32)__float_as_int(x); }
HOT float number_of(u32 x) { return __int_as_float((int)x); }
HOT bool finite(float x) { return (bits_of(x) & 0x7f800000u) != 0x7f800000u; }

/* The nearest TF32 number; the one below where that would be infinite, and x is not. */
HOT float great_of(float x)
{
    u32 y;
    asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(y) : "f"(x));
    return finite(number_of(y)) || !finite(x) ? number_of(y) : number_of(bits_of(x) & 0xffffe000u);
}
HOT float small_of(float x, float great) { return finite(great) ? x - great : 0; }
/* x for bfloat16, whose largest number is less than float32's. */
HOT float narrow_of(float x, float great) { return finite(great) ? fminf(fmaxf(x, -0x1.fep127f), 0x1.fep127f) : 0; }
HOT u32 pair_of(float low, float high)
{
    u32 y;
    asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(y) : "f"(high), "f"(low));
    return y;
}

/* ---- packing ---- */

struct operand {
    const float *from;
    i64 line, step;  /* from line (row of a, column of b) to line, from k to k + 1 */
    int lines, depth;
};

/* LINES lines from `first` on, WIDTH positions from `k` on, by all threads, whichever way is along memory. */
template <int LINES, int WIDTH> HOT void fetch(float (&tile)[LINES][WIDTH + 1], const operand &x, int first, int k)
{
    const bool along = x.step == 1;
#pragma unroll 8
    for (int i = threadIdx.x; i < LINES * WIDTH; i += PACKERS) {
        const int line = along ? i / WIDTH : i % LINES, at = along ? i % WIDTH : i / LINES;
        const bool there = first + line < x.lines && k + at < x.depth;
        tile[line][at] = there ? x.from[(first + line) * x.line + (k + at) * x.step] : 0;
    }
    __syncthreads();
}

/* Two stages of a tile of a: [strip of 16 rows][half of the stage][lane] four numbers, those of wgmma's fragment of 64 x 8. */
extern "C" __global__ void __launch_bounds__(PACKERS) pack_a(const __grid_constant__ operand x, float4 *to, int stages)
{
    __shared__ float tile[ROWS][2 * DEPTH + 1];
    const int pairs = stages / 2, block = blockIdx.x / pairs, stage = blockIdx.x % pairs * 2;
    fetch<ROWS, 2 * DEPTH>(tile, x, block * ROWS, stage * DEPTH);
    to += ((i64)block * stages + stage) * (A_BYTES / 16);
#pragma unroll
    for (int i = threadIdx.x; i < 2 * (int)A_BYTES / 16; i += PACKERS) {
        const int lane = i % 32, strip = i / 64 % (ROWS / 16), row = strip * 16 + lane / 4;
        const int k = i / (A_BYTES / 16) * DEPTH + i / 32 % 2 * 8 + lane % 4;
        to[i] = make_float4(tile[row][k], tile[row + 8][k], tile[row][k + 4], tile[row + 8][k + 4]);
    }
}

/* Two stages of a tile of b. Positions 2 e and 2 e + 1 of eight in bfloat16 hold k = e and e + 4: a thread has both of a. */
extern "C" __global__ void __launch_bounds__(PACKERS) pack_b(const __grid_constant__ operand x, uint4 *to, int stages)
{
    __shared__ float tile[HALF][2 * DEPTH + 1];
    const int pairs = stages / 2, half = blockIdx.x % 2, block = blockIdx.x / 2 / pairs, stage = blockIdx.x / 2 % pairs * 2;
    fetch<HALF, 2 * DEPTH>(tile, x, block * COLUMNS + half * HALF, stage * DEPTH);
    for (int i = threadIdx.x; i < 2 * HALF * 8; i += PACKERS) {
        const int second = i / (HALF * 8), column = i / 8 % HALF, chunk = i % 8 ^ column % 8; /* the swizzle */
        const float *const from = &tile[column][second * DEPTH];
        u32 word[4];
#pragma unroll
        for (int e = 0; e < 4; e++)
            if (chunk < 4) {
                word[e] = bits_of(great_of(from[chunk * 4 + e]));
            } else {
                const float p = from[chunk % 2 * 8 + e], q = from[chunk % 2 * 8 + e + 4], great_p = great_of(p), great_q = great_of(q);
                word[e] = chunk < 6 ? pair_of(narrow_of(p, great_p), narrow_of(q, great_q))
                                    : pair_of(small_of(p, great_p), small_of(q, great_q));
            }
        to[(((i64)block * stages + stage + second) * COLUMNS + half * HALF + column) * 8 + i % 8] = make_uint4(word[0], word[1], word[2], word[3]);
    }
}

/* ---- barriers and copies ---- */

HOT void barrier_make(u32 barrier, int arrivals)
{
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(barrier), "r"(arrivals));
}
HOT void barrier_expect(u32 barrier, u32 bytes)
{
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(barrier), "r"(bytes) : "memory");
}
HOT void barrier_arrive(u32 barrier, u32 rank) /* at the one that block `rank` of the cluster has there */
{
    asm volatile("{\n.reg .b32 there;\nmapa.shared::cluster.u32 there, %0, %1;\n"
                 "mbarrier.arrive.release.cluster.shared::cluster.b64 _, [there];\n}" ::"r"(barrier), "r"(rank) : "memory");
}
HOT void barrier_wait(u32 barrier, u32 parity)
{
    asm volatile("{\n.reg .pred done;\nAGAIN:\n"
                 "mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 done, [%0], %1;\n@!done bra AGAIN;\n}"
                 ::"r"(barrier), "r"(parity) : "memory");
}
HOT void cluster_meets()
{
    asm volatile("barrier.cluster.arrive.release;\nbarrier.cluster.wait.acquire;" ::: "memory");
}
HOT void copy(u32 to, const char *from, u32 bytes, u32 barrier)
{
    asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];"
                 ::"r"(to), "l"(from), "r"(bytes), "r"(barrier) : "memory");
}
HOT void copy_to_cluster(u32 to, const char *from, u32 bytes, u32 barrier)
{
    asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster [%0], [%1], %2, [%3], %4;"
                 ::"r"(to), "l"(from), "r"(bytes), "r"(barrier), "h"((unsigned short)((1 << CLUSTER) - 1)) : "memory");
}

/* ---- tensor cores ---- */

#define EIGHT(i) "+f"(d[i]), "+f"(d[i + 1]), "+f"(d[i + 2]), "+f"(d[i + 3]), "+f"(d[i + 4]), "+f"(d[i + 5]), "+f"(d[i + 6]), "+f"(d[i + 7])
#define SIXTY_FOUR EIGHT(0), EIGHT(8), EIGHT(16), EIGHT(24), EIGHT(32), EIGHT(40), EIGHT(48), EIGHT(56)
#define MULTIPLY(name, instruction, more) \
    HOT void name(float (&d)[64], const u32 (&a)[4], u64 b, bool add) \
    { \
        asm volatile("{\n.reg .pred add;\nsetp.ne.b32 add, %69, 0;\n" \
                     "wgmma.mma_async.sync.aligned." instruction " {%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, " \
                     "%13, %14, %15, %16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, %32, %33, " \
                     "%34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, %48, %49, %50, %51, %52, %53, %54, " \
                     "%55, %56, %57, %58, %59, %60, %61, %62, %63}, {%64, %65, %66, %67}, %68, add, 1, 1" more ";\n}" \
                     : SIXTY_FOUR : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b), "r"((int)add)); \
    }
/* d = a b + (add ? d : 0) for 64 rows of a in a warp group's registers and 128 columns of b in shared memory. */
MULTIPLY(multiply_tf32, "m64n128k8.f32.tf32.tf32", "")
MULTIPLY(multiply_bf16, "m64n128k16.f32.bf16.bf16", ", 0")

HOT void tensor_begin() { asm volatile("wgmma.fence.sync.aligned;" ::: "memory"); }
HOT void tensor_end() { asm volatile("wgmma.commit_group.sync.aligned;\nwgmma.wait_group.sync.aligned 0;" ::: "memory"); }

/* What wgmma is told of a matrix whose rows of 128 bytes, eight after eight, lie at `at`, swizzled by 128 bytes. */
HOT u64 matrix_at(u32 at) { return (u64)((at & 0x3ffffu) >> 4) | 1ull << 16 | 64ull << 32 | 1ull << 62; }

/* ---- the product ---- */

struct product {
    const char *a, *b;        /* packed */
    float *c;
    i64 pitch;                /* from row to row of c */
    int m, n, stages;         /* rows and columns of c; of k, in stages */
    int down, across, strip;  /* pairs of tiles below one another, tiles side by side; pairs that are taken before the next column */
    float alpha;
    int beta;
    u64 guard;
};

struct place { int row, column; };

/* The tile of this block in the cluster's turn: strips of tiles, down before across, so that those at work share what they read. */
HOT place place_of(const product &p, int turn, int rank)
{
    const int whole = p.strip * p.across, first = turn / whole * p.strip, left = p.down - first;
    const int high = left < p.strip ? left : p.strip, rest = turn % whole;
    return {(first + rest % high) * CLUSTER + rank, rest / high};
}

HOT void produce(const product &p, u32 shared, u32 full, u32 empty, int rank)
{
    const int last = (p.m + ROWS - 1) / ROWS - 1;
    int slot = 0;
    u32 parity = 1;
    for (int turn = blockIdx.x / CLUSTER; turn < p.down * p.across; turn += gridDim.x / CLUSTER) {
        const place at = place_of(p, turn, rank);
        const char *a = p.a + (i64)(at.row < last ? at.row : last) * p.stages * A_BYTES; /* where there is none: any */
        const char *b = p.b + (i64)at.column * p.stages * B_BYTES + rank * (B_BYTES / CLUSTER);
        for (int s = 0; s < p.stages; s++, a += A_BYTES, b += B_BYTES) {
            const u32 to = shared + slot * STAGE, barrier = full + 8 * slot;
            barrier_wait(empty + 8 * slot, parity);
            barrier_expect(barrier, STAGE);
            copy(to + B_BYTES, a, A_BYTES, barrier);
            copy_to_cluster(to + rank * (B_BYTES / CLUSTER), b, B_BYTES / CLUSTER, barrier);
            if (++slot == STAGES)
                slot = 0, parity ^= 1;
        }
    }
}

HOT void store(const product &p, const float (&sum)[2][64], int row, int column)
{
#pragma unroll
    for (int i = 0; i < 128; i += 2) {
        const int r = row + i / 2 % 2 * 8, c = column + i / 64 * HALF + i % 64 / 4 * 8;
        float *const to = p.c + r * p.pitch + c;
        float x = p.alpha * sum[i / 64][i % 64], y = p.alpha * sum[i / 64][i % 64 + 1];
        if (r >= p.m || c >= p.n)
            continue;
        if (c + 1 == p.n || (u64)to % 8) {
            to[0] = p.beta ? x + to[0] : x;
            if (c + 1 < p.n)
                to[1] = p.beta ? y + to[1] : y;
        } else {
            const float2 old = p.beta ? *(const float2 *)to : make_float2(0, 0);
            *(float2 *)to = p.beta ? make_float2(x + old.x, y + old.y) : make_float2(x, y);
        }
    }
}

HOT void consume(const product &p, u32 shared, u32 full, u32 empty, int rank)
{
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    int slot = 0;
    u32 parity = 0;
    for (int turn = blockIdx.x / CLUSTER; turn < p.down * p.across; turn += gridDim.x / CLUSTER) {
        float sum[2][64] = {};
        for (int s = 0; s < p.stages; s++) {
            const u32 stage = shared + slot * STAGE, from = stage + B_BYTES + (warp * 64 + lane) * 16;
            const u64 b = matrix_at(stage);
            u32 great[2][4], narrow[4], small[4];
            barrier_wait(full + 8 * slot, parity);
#pragma unroll
            for (int h = 0; h < 2; h++) {
                float x[4], nearest[4];
                asm volatile("ld.shared.v4.f32 {%0, %1, %2, %3}, [%4];" : "=f"(x[0]), "=f"(x[1]), "=f"(x[2]), "=f"(x[3]) : "r"(from + h * 512));
#pragma unroll
                for (int e = 0; e < 4; e++) {
                    nearest[e] = great_of(x[e]);
                    great[h][e] = bits_of(nearest[e]);
                }
#pragma unroll
                for (int e = 0; e < 2; e++) {
                    narrow[2 * h + e] = pair_of(narrow_of(x[e], nearest[e]), narrow_of(x[e + 2], nearest[e + 2]));
                    small[2 * h + e] = pair_of(small_of(x[e], nearest[e]), small_of(x[e + 2], nearest[e + 2]));
                }
            }
#pragma unroll
            for (int half = 0; half < 2; half++) {
                const u64 at = b + half * (HALF * 128 / 16);
                float part[64];
                tensor_begin();
                multiply_bf16(part, small, at + 4, false);
                multiply_bf16(part, narrow, at + 6, true);
                multiply_tf32(part, great[0], at, true);
                multiply_tf32(part, great[1], at + 2, true);
                tensor_end();
                if (half && lane < CLUSTER) /* the stage may be filled again */
                    barrier_arrive(empty + 8 * slot, lane);
#pragma unroll
                for (int i = 0; i < 64; i++)
                    sum[half][i] += part[i];
            }
            if (++slot == STAGES)
                slot = 0, parity ^= 1;
        }
        const place at = place_of(p, turn, rank);
        store(p, sum, at.row * ROWS + warp * 16 + lane / 4, at.column * COLUMNS + lane % 4 * 2);
    }
}

extern "C" __global__ void __cluster_dims__(CLUSTER, 1, 1) __launch_bounds__(THREADS, 1) split_product(const __grid_constant__ product p)
{
    extern __shared__ unsigned char raw[];
    STOP_IF_FAILED(p.guard);
    const u32 shared = ((u32)__cvta_generic_to_shared(raw) + 1023) & ~1023u, full = shared + STAGES * STAGE, empty = full + 8 * STAGES;
    int rank;
    asm volatile("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
    if (threadIdx.x == 0) {
        for (int i = 0; i < STAGES; i++) {
            barrier_make(full + 8 * i, 1);
            barrier_make(empty + 8 * i, CONSUMERS / 32 * CLUSTER);
        }
        asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    }
    cluster_meets();
    if (threadIdx.x >= CONSUMERS) {
        asm volatile("setmaxnreg.dec.sync.aligned.u32 24;");
        if (threadIdx.x == CONSUMERS)
            produce(p, shared, full, empty, rank);
        __syncwarp();
    } else {
        asm volatile("setmaxnreg.inc.sync.aligned.u32 240;");
        consume(p, shared, full, empty, rank);
    }
    cluster_meets(); /* a block's memory stays until the other one has written to it */
}
