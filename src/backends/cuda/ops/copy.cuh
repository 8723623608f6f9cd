/* SPDX-License-Identifier: MIT */
/*
 * Copies between windows and fills of windows, many at a time, of elements of any type S of a size. Neighbours in both
 * windows are a line, of which 16 bytes go at once, as they lie where they are written. What is read may lie other than
 * that: then a thread takes the two aligned pieces that have its bytes, and shifts them. So all lines are copied at the
 * same rate, wherever they begin.
 *
 * In front of it: S; WORDS, the room for windows.
 */
typedef long long i64;
typedef unsigned long long u64;
#define SIZE    ((int)sizeof(S))
#define BATCH   4 /* units that a thread copies */
#define THREADS 256

/* A window: its units, which are 16 bytes of a line, or an element where it has no lines. (As copy.c has it.) */
struct part {
    u64 to, from;            /* addresses; of a fill, `from` is its element, repeated */
    i64 line;                /* bytes; 0: no lines */
    unsigned count;          /* of units */
    unsigned first;          /* block of the launch */
    unsigned short axes, at; /* how many axes of the table are its own, from which one on */
    unsigned fills;          /* is it a fill? */
};

/* Axes are counted through from the one along the line. Strides in bytes; units of a line have none, there is where
 * what may be read begins and ends. */
struct axis {
    unsigned extent, magic, shift, unused; /* x / extent == x * magic >> shift, of x < 2^31 */
    i64 to, from;
};

/* All parts, then the axes of all. */
struct parts {
    unsigned count, batch; /* units a thread, BATCH at most */
    unsigned even, unused; /* all parts have as many blocks, and take turns */
    u64 word[WORDS];
};

__device__ inline unsigned quotient(unsigned x, const axis &a) { return (unsigned)((u64)x * a.magic >> a.shift); }

/* Adds to both addresses the offset of the unit number `rest` along the axes from the second one on. */
__device__ inline void go_along(const part &p, const axis *axes, unsigned rest, u64 &to, u64 &from)
{
#pragma unroll 1
    for (int d = 1; d < p.axes; d++) {
        const unsigned next = d + 1 < p.axes ? quotient(rest, axes[d]) : 0, i = rest - next * axes[d].extent;
        to += i * axes[d].to;
        from += i * axes[d].from;
        rest = next;
    }
}

/* The 16 bytes that begin `bytes` bytes after an aligned address, whose two aligned pieces are a and b. */
__device__ inline uint4 shifted(uint4 a, uint4 b, unsigned bytes)
{
    unsigned w[8] = {a.x, a.y, a.z, a.w, b.x, b.y, b.z, b.w};
    if (bytes & 8) {
#pragma unroll
        for (int i = 0; i < 6; i++) w[i] = w[i + 2];
    }
    if (bytes & 4) {
#pragma unroll
        for (int i = 0; i < 5; i++) w[i] = w[i + 1];
    }
    if (SIZE < 4) {
#pragma unroll
        for (int i = 0; i < 4; i++) w[i] = (unsigned)(((u64)w[i + 1] << 32 | w[i]) >> (bytes & 3) * 8);
    }
    return make_uint4(w[0], w[1], w[2], w[3]);
}

union piece {
    u64 word[2];
    uint4 all;
    S element[16 / SIZE];
};

/* A unit of a line: 16 bytes from an aligned place on, of which those from `begin` to `end` are part of the line. */
struct unit {
    u64 to, from;
    int begin, end;
};

__device__ inline unit unit_of(const part &p, const axis *axes, unsigned number)
{
    unit u = {p.to, p.from, 0, 16};
    unsigned along = number;
    if (p.axes) {
        const unsigned rest = quotient(number, axes[0]);
        along -= rest * axes[0].extent;
        go_along(p, axes, rest, u.to, u.from);
    }
    const i64 start = (i64)along * 16 - (i64)(u.to & 15), left = p.line - start;
    u.to += start;
    u.from += start;
    u.begin = start < 0 ? (int)-start : 0;
    u.end = left < 16 ? left < 0 ? 0 : (int)left : 16;
    return u;
}

__device__ inline void move_lines(const part &p, const axis *axes, unsigned first, unsigned batch)
{
    const u64 low = p.axes ? axes[0].to : p.from, high = p.axes ? axes[0].from : p.from + p.line;
    uint4 a[BATCH], b[BATCH];
    u64 to[BATCH];
    unsigned bytes[BATCH], apart = 0; /* begin, end and the distance from an aligned place; what is at an edge */
#pragma unroll
    for (int q = 0; q < BATCH; q++) {
        bytes[q] = 0;
        if (q >= (int)batch || first + q * THREADS >= p.count) continue;
        unit u = unit_of(p, axes, first + q * THREADS);
        const unsigned off = p.fills ? 0 : (unsigned)u.from & 15;
        to[q] = u.to;
        u.from -= off;
        bytes[q] = (unsigned)(u.begin | u.end << 8) | off << 16;
        if (p.fills) {
            const piece pattern = {{p.from, SIZE < 16 ? p.from : 0}};
            a[q] = pattern.all;
        } else if (u.from >= low && u.from + (off ? 32 : 16) <= high) {
            a[q] = *(const uint4 *)u.from;
            if (off) b[q] = *(const uint4 *)(u.from + 16);
        } else {
            apart |= 1u << q;
            bytes[q] = 0;
        }
    }
#pragma unroll
    for (int q = 0; q < BATCH; q++) {
        const unsigned off = bytes[q] >> 16, begin = bytes[q] & 0xff, end = bytes[q] >> 8 & 0xff;
        if (end <= begin) continue;
        piece x;
        x.all = off ? shifted(a[q], b[q], off) : a[q];
        if (begin == 0 && end == 16) {
            *(uint4 *)to[q] = x.all;
            continue;
        }
#pragma unroll
        for (unsigned e = 0; e < 16 / SIZE; e++)
            if (e * SIZE >= begin && e * SIZE < end) ((S *)to[q])[e] = x.element[e];
    }
    for (; apart; apart &= apart - 1) { /* what lies around the first and the last elements is not known */
        const unit u = unit_of(p, axes, first + (unsigned)(__ffs((int)apart) - 1) * THREADS);
#pragma unroll 1
        for (int x = u.begin; x < u.end; x += SIZE) *(S *)(u.to + x) = *(const S *)(u.from + x);
    }
}

__device__ inline void move_elements(const part &p, const axis *axes, unsigned first, unsigned batch)
{
    S value[BATCH];
    u64 to[BATCH];
#pragma unroll
    for (int q = 0; q < BATCH; q++) {
        const unsigned number = first + q * THREADS;
        if (q >= (int)batch || number >= p.count) continue;
        const unsigned rest = p.axes > 1 ? quotient(number, axes[0]) : 0, along = number - rest * axes[0].extent;
        u64 from = p.from + along * axes[0].from;
        to[q] = p.to + along * axes[0].to;
        go_along(p, axes, rest, to[q], from);
        const piece pattern = {{p.from, 0}};
        value[q] = pattern.element[0];
        if (!p.fills) value[q] = *(const S *)from;
    }
#pragma unroll
    for (int q = 0; q < BATCH; q++)
        if (q < (int)batch && first + q * THREADS < p.count) *(S *)to[q] = value[q];
}

/* The part that a block belongs to: the last one whose first block is not later. */
__device__ inline unsigned part_of(const part *p, unsigned count, unsigned block)
{
    unsigned low = 0;
    while (count > 1) {
        const unsigned half = count / 2;
        const bool behind = p[low + half].first <= block;
        low += behind ? half : 0;
        count = behind ? count - half : half;
    }
    return low;
}

extern "C" __global__ void __launch_bounds__(THREADS) move(const __grid_constant__ parts all, const u64 *guard)
{
    if (guard && *(const volatile u64 *)guard) return;
    const part *const list = (const part *)all.word;
    const unsigned number = all.even ? blockIdx.x % all.count : part_of(list, all.count, blockIdx.x);
    const unsigned block = all.even ? blockIdx.x / all.count : blockIdx.x - list[number].first;
    const part &p = list[number];
    const axis *const axes = (const axis *)(list + all.count) + p.at;
    const unsigned first = block * all.batch * THREADS + threadIdx.x;
    if (p.line)
        move_lines(p, axes, first, all.batch);
    else
        move_elements(p, axes, first, all.batch);
}
