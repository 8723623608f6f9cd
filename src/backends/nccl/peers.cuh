/* SPDX-License-Identifier: MIT */
/*
 * A sum over two ranks, each of which runs this kernel, with as many blocks, each for a piece: it writes what it gives
 * into the other one's segment, tells it of that by a flag there, and adds what has come into its own segment.
 *
 * A block waits for the other rank's block of its number alone, and gives its own piece before: so no block need run
 * beside another. The flags count the sums in 64 bits, which never begin anew: one of a block that small sums leave out
 * may be any number of sums old. A segment has two halves that take turns: the other rank writes the next sum's pieces
 * only after this one has given this sum's, and those of the sum after next only after this kernel has ended.
 */

/* A piece is dealt out to threads by four elements where addresses allow it, and the rest one by one. */
struct piece {
    const float *from;
    long long begin, end, whole; /* whole: end of the fours */
};

static __device__ piece piece_of(const float *from, bool by_four, long long size, long long count)
{
    piece p;
    p.from = from;
    p.begin = blockIdx.x * size < count ? blockIdx.x * size : count;
    p.end = p.begin + size < count ? p.begin + size : count;
    p.whole = by_four ? p.begin + (p.end - p.begin) / 4 * 4 : p.begin;
    return p;
}

static __device__ void give(piece p, float *there)
{
    for (long long i = p.begin + 4 * threadIdx.x; i < p.whole; i += 4 * blockDim.x)
        *(float4 *)(there + i) = *(const float4 *)(p.from + i);
    for (long long i = p.whole + threadIdx.x; i < p.end; i += blockDim.x)
        there[i] = p.from[i];
}

static __device__ void add(piece p, const float *here, float *to)
{
    for (long long i = p.begin + 4 * threadIdx.x; i < p.whole; i += 4 * blockDim.x) {
        float4 a = *(const float4 *)(p.from + i), b = *(const float4 *)(here + i);
        *(float4 *)(to + i) = make_float4(a.x + b.x, a.y + b.y, a.z + b.z, a.w + b.w);
    }
    for (long long i = p.whole + threadIdx.x; i < p.end; i += blockDim.x)
        to[i] = p.from[i] + here[i];
}

/* Waits for a flag, or until the sum is called off; whether it has come. */
static __device__ bool comes(const volatile unsigned long long *flag, unsigned long long turn,
                             const volatile unsigned *off)
{
    bool come;
    for (unsigned round = 1; !(come = *flag >= turn); round++)
        if (round % 1024 == 0 && *off)
            break;
    __threadfence_system();
    return come;
}

/* size: elements of a piece, a multiple of 4; here, there: this turn's halves of the two segments. */
extern "C" __global__ void tn_sum_of_two(const float *from, float *to, long long count, long long size,
                                         const float *here, float *there,
                                         const volatile unsigned long long *here_flags,
                                         volatile unsigned long long *there_flags, unsigned long long turn,
                                         const volatile unsigned *off)
{
    __shared__ int come;
    const piece p = piece_of(from, ((unsigned long long)from | (unsigned long long)to) % sizeof(float4) == 0, size,
                             count);
    give(p, there);
    __syncthreads();
    if (threadIdx.x == 0) {
        __threadfence_system();
        there_flags[blockIdx.x] = turn;
        come = comes(here_flags + blockIdx.x, turn, off);
    }
    __syncthreads();
    if (come)
        add(p, here, to);
}
