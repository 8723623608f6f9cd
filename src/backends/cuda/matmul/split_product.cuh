/* SPDX-License-Identifier: MIT */
/*
 * Large float32 products on tensor cores of compute capability 9.0 with float32's accuracy: c = alpha a b + beta c.
 *
 *     parts      A number is the sum of two TF32 numbers but for its last bit or so: great, the nearest one, and small,
 *                what is left. Of the four products of the parts of two numbers three count: small x great, great x
 *                small, great x great.
 *     sums       Tensor cores cut off what they add instead of rounding it. So they add the terms of 2 DEPTH positions
 *                of k, and float32 additions in registers do the rest.
 *     packing    Kernels before the product put the operands, however they lie, where it reads them in pieces without
 *                gaps, each by one bulk copy, zeros around what is there: a as it is, in the order of the fragments
 *                that registers hold, so that a thread reads 16 bytes of its own; b in its parts, a row of 128 bytes a
 *                column (16 great ones, 16 small ones), swizzled as wgmma wants it.
 *     blocks     One a multiprocessor, taking tiles of ROWS x COLUMNS in turn. A thread of the third warp group copies
 *                stages of DEPTH positions, ahead by STAGES; the first two multiply, 64 rows each, PIECE columns at a
 *                time in two sets of registers by turns, so that the sums are brought up to date while the tensor cores
 *                work on the next piece.
 *     infinities Parts of infinite numbers, and of the very largest, have no such sum. An element that is not finite is
 *                computed again by multiply-adds of whole numbers, so infinities and NaN come out as anywhere else.
 */
typedef unsigned int u32;
typedef unsigned long long u64;
typedef long long i64;

#define HOT __device__ __forceinline__
#define STOP_IF_FAILED(guard) if (guard && *(const volatile u64 *)guard) return

constexpr int ROWS = 128, COLUMNS = 256, PIECE = 64, PIECES = COLUMNS / PIECE, DEPTH = 16, STAGES = 5;
constexpr int CONSUMERS = 256, THREADS = CONSUMERS + 128, PACKERS = 256;
constexpr u32 B_BYTES = COLUMNS * 128, A_BYTES = ROWS * DEPTH * 4, STAGE = B_BYTES + A_BYTES;

HOT u32 bits_of(float x) { return (u32)__float_as_int(x); }
HOT bool finite(float x) { return (bits_of(x) & 0x7f800000u) != 0x7f800000u; }
HOT float nearest_tf32(float x)
{
    u32 y;
    asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(y) : "f"(x));
    return __int_as_float((int)y);
}
HOT void split(float x, u32 &great, u32 &small)
{
    const float nearest = nearest_tf32(x);
    great = bits_of(nearest);
    small = bits_of(nearest_tf32(x - nearest));
}

/* ---- packing ---- */

struct operand {
    const float *from;
    i64 line, step;  /* from line (row of a, column of b) to line, from k to k + 1 */
    int lines, depth;
};

HOT float element(const operand &x, int line, int k)
{
    return line < x.lines && k < x.depth ? x.from[line * x.line + k * x.step] : 0;
}

/* Two stages of a tile of a: [stage][strip of 16 rows][half of the stage][lane] four numbers, those of wgmma's fragment
 * of 64 x 8. */
extern "C" __global__ void __launch_bounds__(PACKERS) pack_a(const __grid_constant__ operand x, float4 *to, int stages)
{
    const int pairs = stages / 2, tile = blockIdx.x / pairs, pair = blockIdx.x % pairs;
    const int lane = threadIdx.x % 32, strip = threadIdx.x / 32;
    const int row = tile * ROWS + strip * 16 + lane / 4, k = pair * 2 * DEPTH + lane % 4;
    float4 four[4];
#pragma unroll
    for (int i = 0; i < 4; i++)
        four[i] = make_float4(element(x, row, k + 8 * i), element(x, row + 8, k + 8 * i),
                              element(x, row, k + 8 * i + 4), element(x, row + 8, k + 8 * i + 4));
    to += ((i64)tile * stages + pair * 2) * (A_BYTES / 16) + strip * 64 + lane;
#pragma unroll
    for (int i = 0; i < 4; i++)
        to[i / 2 * (A_BYTES / 16) + i % 2 * 32] = four[i];
}

/* A stage of a tile of b: [column][place] 16 bytes, vector i ^ column % 8 at place i. Through shared memory, so that
 * neighbours read along memory, whichever way that is, and write along it. */
extern "C" __global__ void __launch_bounds__(PACKERS) pack_b(const __grid_constant__ operand x, uint4 *to, int stages)
{
    __shared__ float part[DEPTH][COLUMNS + 1];
    const int tile = blockIdx.x / stages, stage = blockIdx.x % stages;
    const bool along = x.step == 1;
#pragma unroll
    for (int i = threadIdx.x; i < COLUMNS * DEPTH; i += PACKERS) {
        const int column = along ? i / DEPTH : i % COLUMNS, k = along ? i % DEPTH : i / COLUMNS;
        part[k][column] = element(x, tile * COLUMNS + column, stage * DEPTH + k);
    }
    __syncthreads();
    to += (i64)blockIdx.x * COLUMNS * 8;
#pragma unroll
    for (int i = threadIdx.x; i < COLUMNS * 8; i += PACKERS) {
        const int column = i / 8, vector = i % 8 ^ column % 8;
        u32 word[4];
#pragma unroll
        for (int e = 0; e < 4; e++) {
            u32 great, small;
            split(part[vector % 4 * 4 + e][column], great, small);
            word[e] = vector < 4 ? great : small;
        }
        to[i] = make_uint4(word[0], word[1], word[2], word[3]);
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
HOT void barrier_arrive(u32 barrier)
{
    asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(barrier) : "memory");
}
HOT void barrier_wait(u32 barrier, u32 parity)
{
    asm volatile("{\n.reg .pred done;\nAGAIN:\n"
                 "mbarrier.try_wait.parity.shared::cta.b64 done, [%0], %1;\n@!done bra AGAIN;\n}"
                 ::"r"(barrier), "r"(parity) : "memory");
}
HOT void copy(u32 to, const char *from, u32 bytes, u32 barrier)
{
    asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];"
                 ::"r"(to), "l"(from), "r"(bytes), "r"(barrier) : "memory");
}

/* ---- tensor cores ---- */

#define FOUR(i) "+f"(d[i]), "+f"(d[i + 1]), "+f"(d[i + 2]), "+f"(d[i + 3])
#define EIGHT(i) FOUR(i), FOUR(i + 4)

/* d = a b + (add ? d : 0) for 64 x 8 of a in a warp group's registers and 64 columns of b in shared memory. */
HOT void multiply(float (&d)[PIECE / 2], const u32 (&a)[4], u64 b, bool add)
{
    asm volatile("{\n.reg .pred add;\nsetp.ne.b32 add, %37, 0;\n"
                 "wgmma.mma_async.sync.aligned.m64n64k8.f32.tf32.tf32 {%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, "
                 "%10, %11, %12, %13, %14, %15, %16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, "
                 "%30, %31}, "
                 "{%32, %33, %34, %35}, %36, add, 1, 1;\n}"
                 : EIGHT(0), EIGHT(8), EIGHT(16), EIGHT(24)
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b), "r"((int)add));
}
HOT void tensor_begin() { asm volatile("wgmma.fence.sync.aligned;" ::: "memory"); }
HOT void tensor_end() { asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory"); }
template <int LEFT> HOT void tensor_wait() { asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(LEFT) : "memory"); }

/* What wgmma is told of a matrix whose rows of 128 bytes, eight after eight, lie at `at`, swizzled by 128 bytes. */
HOT u64 matrix_at(u32 at) { return (u64)((at & 0x3ffffu) >> 4) | 1ull << 16 | 64ull << 32 | 1ull << 62; }

/* ---- the product ---- */

struct product {
    const char *a, *b;        /* packed */
    float *c;
    operand left, right;      /* not packed */
    i64 pitch;                /* from row to row of c */
    int m, n, stages;         /* rows and columns of c; of k, in stages, an even number */
    int down, across, strip;  /* tiles below one another, side by side; those taken before the next column of tiles */
    float alpha;
    int beta;
    u64 guard;
};

struct place { int row, column; };

/* The tile of a turn: strips of tiles, down before across, so that those at work share what they read. */
HOT place place_of(const product &p, int turn)
{
    const int whole = p.strip * p.across, first = turn / whole * p.strip, left = p.down - first;
    const int high = left < p.strip ? left : p.strip, rest = turn % whole;
    return {first + rest % high, rest / high};
}

/* A place in the ring of stages, and the phase that its barriers are in. */
struct ring {
    u32 slot, parity;
    HOT void next()
    {
        if (++slot == STAGES)
            slot = 0, parity ^= 1;
    }
};

HOT void produce(const product &p, u32 shared, u32 full, u32 empty)
{
    ring to = {0, 1};
    for (int turn = blockIdx.x; turn < p.down * p.across; turn += gridDim.x) {
        const place at = place_of(p, turn);
        const char *a = p.a + (i64)at.row * p.stages * A_BYTES, *b = p.b + (i64)at.column * p.stages * B_BYTES;
        for (int s = 0; s < p.stages; s++, a += A_BYTES, b += B_BYTES, to.next()) {
            const u32 stage = shared + to.slot * STAGE, barrier = full + 8 * to.slot;
            barrier_wait(empty + 8 * to.slot, to.parity);
            barrier_expect(barrier, STAGE);
            copy(stage, b, B_BYTES, barrier);
            copy(stage + B_BYTES, a, A_BYTES, barrier);
        }
    }
}

/* What wgmma multiplies of a stage. */
struct factors {
    u32 great[2][4], small[2][4]; /* of a, by half of the stage */
    u64 b;
    HOT void load(u32 stage, u32 offset)
    {
        b = matrix_at(stage);
#pragma unroll
        for (int h = 0; h < 2; h++) {
            float x[4];
            asm volatile("ld.shared.v4.f32 {%0, %1, %2, %3}, [%4];"
                         : "=f"(x[0]), "=f"(x[1]), "=f"(x[2]), "=f"(x[3]) : "r"(stage + B_BYTES + offset + h * 512));
#pragma unroll
            for (int e = 0; e < 4; e++)
                split(x[e], great[h][e], small[h][e]);
        }
    }
    /* A piece's columns of b begin 8 rows of 1024 bytes on; its small parts 64 bytes, its second half 32. */
    HOT void times(float (&part)[PIECE / 2], int piece, bool add) const
    {
        const u64 at = b + piece * (PIECE * 128 / 16);
        multiply(part, small[0], at, add);
        multiply(part, small[1], at + 2, true);
        multiply(part, great[0], at + 4, true);
        multiply(part, great[1], at + 6, true);
        multiply(part, great[0], at, true);
        multiply(part, great[1], at + 2, true);
    }
};

/* Of a thread: element i of a piece is i / 2 % 2 * 8 rows down, i / 4 * 8 + i % 2 columns across. */
typedef float sums[PIECES][PIECE / 2];

HOT float whole(const product &p, int row, int column)
{
    float sum = 0;
    const float *a = p.left.from + row * p.left.line, *b = p.right.from + column * p.right.line;
    for (int k = 0; k < p.left.depth && sum == sum; k++)
        sum = fmaf(a[k * p.left.step], b[k * p.right.step], sum);
    return sum;
}

HOT void put(const product &p, int row, int column, float sum)
{
    float *const to = p.c + row * p.pitch + column;
    *to = p.beta ? fmaf(p.alpha, sum, *to) : p.alpha * sum;
}

/* Elements that are not finite are left to the end, when the sums' registers are free. */
HOT void store(const product &p, const sums &sum, int row, int column)
{
    u32 again[PIECES] = {};
#pragma unroll
    for (int q = 0; q < PIECES; q++)
#pragma unroll
        for (int i = 0; i < PIECE / 2; i += 2) {
            const int r = row + i / 2 % 2 * 8, c = column + q * PIECE + i / 4 * 8;
            const float x = sum[q][i], y = sum[q][i + 1];
            float *const to = p.c + r * p.pitch + c;
            if (r >= p.m || c >= p.n)
                continue;
            if (finite(x) && finite(y) && c + 1 < p.n && (u64)to % 8 == 0) {
                const float2 old = p.beta ? *(const float2 *)to : make_float2(0, 0);
                *(float2 *)to = p.beta ? make_float2(fmaf(p.alpha, x, old.x), fmaf(p.alpha, y, old.y))
                                       : make_float2(p.alpha * x, p.alpha * y);
                continue;
            }
            if (finite(x))
                put(p, r, c, x);
            else
                again[q] |= 1u << i;
            if (c + 1 < p.n && finite(y))
                put(p, r, c + 1, y);
            else if (c + 1 < p.n)
                again[q] |= 2u << i;
        }
#pragma unroll
    for (int q = 0; q < PIECES; q++)
        for (u32 left = again[q]; left; left &= left - 1) {
            const int i = __ffs(left) - 1, r = row + i / 2 % 2 * 8, c = column + q * PIECE + i / 4 * 8 + i % 2;
            put(p, r, c, whole(p, r, c));
        }
}

HOT void consume(const product &p, u32 shared, u32 full, u32 empty)
{
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    ring at = {0, 0};
    for (int turn = blockIdx.x; turn < p.down * p.across; turn += gridDim.x) {
        sums sum = {};
        for (int s = 0; s < p.stages; s += 2) {
            factors x[2];
            u32 slot[2];
#pragma unroll
            for (int g = 0; g < 2; g++, at.next()) {
                slot[g] = at.slot;
                barrier_wait(full + 8 * at.slot, at.parity);
                x[g].load(shared + at.slot * STAGE, (warp * 64 + lane) * 16);
            }
            float part[2][PIECE / 2];
#pragma unroll
            for (int q = 0; q <= PIECES; q++) {
                if (q < PIECES) {
                    tensor_begin();
                    x[0].times(part[q % 2], q, false);
                    x[1].times(part[q % 2], q, true);
                    tensor_end();
                }
                if (q == 0)
                    continue;
                if (q < PIECES) {
                    tensor_wait<1>();
                } else {
                    tensor_wait<0>();
                    if (lane < 2) /* the stages may be filled again */
                        barrier_arrive(empty + 8 * (lane ? slot[1] : slot[0]));
                }
#pragma unroll
                for (int i = 0; i < PIECE / 2; i++)
                    sum[q > 0 ? q - 1 : 0][i] += part[(q + 1) % 2][i];
            }
        }
        const place tile = place_of(p, turn);
        store(p, sum, tile.row * ROWS + warp * 16 + lane / 4, tile.column * COLUMNS + lane % 4 * 2);
    }
}

extern "C" __global__ void __launch_bounds__(THREADS, 1) split_product(const __grid_constant__ product p)
{
    extern __shared__ unsigned char raw[];
    STOP_IF_FAILED(p.guard);
    const u32 shared = ((u32)__cvta_generic_to_shared(raw) + 1023) & ~1023u;
    const u32 full = shared + STAGES * STAGE, empty = full + 8 * STAGES;
    if (threadIdx.x == 0) {
        for (int i = 0; i < STAGES; i++) {
            barrier_make(full + 8 * i, 1);
            barrier_make(empty + 8 * i, CONSUMERS / 32);
        }
        asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    }
    __syncthreads();
    if (threadIdx.x >= CONSUMERS) {
        asm volatile("setmaxnreg.dec.sync.aligned.u32 24;");
        if (threadIdx.x == CONSUMERS)
            produce(p, shared, full, empty);
    } else {
        asm volatile("setmaxnreg.inc.sync.aligned.u32 240;");
        consume(p, shared, full, empty);
    }
}
