/* SPDX-License-Identifier: MIT */
/*
 * What all main loops of matrix products in CUDA C++ share: a product's two factors, and how they are copied to shared
 * memory. This text stands before that of the main loop.
 *
 *     lines     The tile of a block of threads needs some rows of a and some columns of b, here called lines.
 *     stages    They are copied DEPTH positions of k at a time, several stages ahead of their use (by cp.async, which
 *               takes no registers). A line that is contiguous along k stays so in shared memory; otherwise the
 *               stage is stored by k, so that both kinds are copied 16 bytes at a time where extents and addresses
 *               allow it.
 *     sides     A factor's part of the stages: its layout there, the copies into it, and what a thread reads from it.
 */
template <typename T, int N> struct alignas(sizeof(T) * N) tn_span { T at[N]; };

/* Starts an asynchronous copy of SIZE bytes; of zeros if `there` is false. */
template <int SIZE> TN_HOT void tn_copy_async(void *to, const void *from, bool there)
{
    const unsigned shared = (unsigned)__cvta_generic_to_shared(to);
    if constexpr (SIZE == 16)
        asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(shared), "l"(from), "r"(there ? 16 : 0));
    else
        asm volatile("cp.async.ca.shared.global [%0], [%1], %2, %3;" ::"r"(shared), "l"(from), "n"(SIZE),
                     "r"(there ? SIZE : 0));
}
TN_HOT void tn_copies_are_a_stage() { asm volatile("cp.async.commit_group;" ::: "memory"); }
template <int LEFT> TN_HOT void tn_copies_wait() { asm volatile("cp.async.wait_group %0;" ::"n"(LEFT) : "memory"); }

TN_HOT tn_f32 tn_multiply_add(tn_f32 a, tn_f32 b, tn_f32 c) { return __fmaf_rn(a, b, c); }
TN_HOT tn_f64 tn_multiply_add(tn_f64 a, tn_f64 b, tn_f64 c) { return __fma_rn(a, b, c); }

/* The largest power of two up to `most` that divides n. */
static constexpr int tn_piece(int n, int most) { return n % most ? tn_piece(n, most / 2) : most; }

/* `left`, limited to the range 0 to `most`. */
TN_HOT int tn_within(tn_i64 left, int most) { return left < 0 ? 0 : left < most ? (int)left : most; }

/* The value of x in another lane of the warp. */
template <typename T> TN_HOT T tn_from_lane(T x, int lane)
{
    if constexpr (__is_class(T)) /* complex */
        return T(tn_from_lane(x.re, lane), tn_from_lane(x.im, lane));
    else if constexpr (sizeof(T) < 4)
        return (T)__shfl_sync(~0u, (int)x, lane);
    else
        return __shfl_sync(~0u, x, lane);
}

/* The sum of an element's partial sums over the slices, which are `apart` elements from each other in memory. */
template <int SLICES, typename T> TN_HOT T tn_sum_of_slices(const T *first, int apart)
{
    T sum = *first;
#pragma unroll
    for (int s = 1; s < SLICES; s++)
        sum += first[s * apart];
    return sum;
}

/* Keeps a pointer in registers: the compiler would otherwise compute it again for each element, from kernel
 * parameters. */
template <typename T> TN_HOT T *tn_kept(T *p)
{
    tn_u64 at = __cvta_generic_to_global(p);
    asm("" : "+l"(at));
    return (T *)__cvta_global_to_generic(at);
}
TN_HOT int tn_kept(int n)
{
    asm("" : "+r"(n));
    return n;
}

/* Loads *p before this kernel has waited for the kernels before it. These may have been started before an earlier
 * kernel, which wrote *p, had ended; so the load bypasses the multiprocessor's own cache, which may still have the
 * value from before that, and reads the second-level cache. */
template <typename T> TN_HOT T tn_load_l2(const T *p)
{
    constexpr int PIECE = alignof(T) < 16 ? alignof(T) : 16;
    static_assert(sizeof(T) % PIECE == 0, "");
    const tn_u64 at = __cvta_generic_to_global(p);
    tn_u32 word[(sizeof(T) + 3) / 4];
#pragma unroll
    for (int i = 0; i < (int)sizeof(T); i += PIECE) {
        tn_u32 *const w = word + i / 4;
        if constexpr (PIECE == 16)
            asm volatile("ld.global.cg.v4.u32 {%0, %1, %2, %3}, [%4];" : "=r"(w[0]), "=r"(w[1]), "=r"(w[2]),
                         "=r"(w[3]) : "l"(at + i));
        else if constexpr (PIECE == 8)
            asm volatile("ld.global.cg.v2.u32 {%0, %1}, [%2];" : "=r"(w[0]), "=r"(w[1]) : "l"(at + i));
        else if constexpr (PIECE == 4)
            asm volatile("ld.global.cg.u32 %0, [%1];" : "=r"(w[0]) : "l"(at + i));
        else if constexpr (PIECE == 2)
            asm volatile("ld.global.cg.u16 %0, [%1];" : "=r"(w[0]) : "l"(at + i));
        else
            asm volatile("ld.global.cg.u8 %0, [%1];" : "=r"(w[0]) : "l"(at + i));
    }
    static_assert(PIECE >= 4 || sizeof(T) == PIECE, "");
    T x;
    memcpy(&x, word, sizeof x);
    return x;
}

extern __shared__ __align__(16) unsigned char tn_shared[];

/* A factor as a tile sees it: lines, each of elements along k. */
template <typename T> struct tn_factor {
    const T *from;       /* the tile's first line, at k = 0 */
    tn_i64 step, k_step; /* strides in elements, from line to line and along k */
    int lines;           /* lines of the tile that exist */
    const tn_i64 *offsets;
        /* for gathered lines, in shared memory: the offset of each, in place of the stride; or, BY_K, the offset of
         * each k; else NULL */
    bool quads;          /* may be copied 16 bytes at a time: addresses and extents are multiples of that */
};

template <typename T, bool ALONG_K>
TN_HOT tn_factor<T> tn_factor_of(const T *from, tn_i64 step, tn_i64 k_step, tn_i64 extent, int lines, tn_i64 all_lines)
{
    constexpr int QUAD = 16 / sizeof(T);
    const bool quads = ALONG_K ? k_step == 1 && step % QUAD == 0 && extent % QUAD == 0
                               : step == 1 && k_step % QUAD == 0 && all_lines % QUAD == 0;
    return {from, step, k_step, lines, nullptr, quads && (tn_u64)from % 16 == 0};
}

/* One factor's part of the stages. A thread copies the pieces number threadIdx.x, threadIdx.x + THREADS, ... of each
 * stage. EACH is the number of lines that a thread multiplies, LANES the number of threads that divide a warp's lines
 * among them. */
template <typename T, int LINES, int DEPTH, int THREADS, int EACH, int LANES, bool ALONG_K, bool GATHERED,
          bool TENSOR = false, bool BY_K = false>
struct tn_side {
    static constexpr int QUAD = 16 / sizeof(T);
    static constexpr int INNER = ALONG_K ? DEPTH : LINES,
                         OUTER = ALONG_K ? LINES : DEPTH; /* extents in shared memory */
    /* PITCH is an odd number of QUADs, or of pairs of them where four lines of eight numbers are read at once, so that
     * lines read together use different banks of shared memory. */
    static constexpr int ODD = TENSOR && !ALONG_K ? 2 * QUAD : QUAD, PITCH = INNER + (INNER / ODD % 2 ? 0 : ODD);
    static constexpr int SIZE = PITCH * OUTER, SIZE_OF_ALL = INNER * OUTER; /* elements of a stage, with and without
                                                                               padding */
    /* How a thread reads its EACH lines where neighbours are lines: four at a time, then two, then the one that is
     * left. */
    static constexpr int QUADS = ALONG_K ? 0 : EACH / QUAD * QUAD, PAIRS = ALONG_K ? 0 : QUADS + EACH % QUAD / 2 * 2;
    static __host__ __device__ constexpr int piece(int i) { return i < QUADS ? QUAD : i < PAIRS ? 2 : 1; }
    static __host__ __device__ constexpr int piece_first(int i)
    {
        return i < QUADS ? i / QUAD * QUAD : i < PAIRS ? QUADS : i;
    }

    /* the addresses of a thread's lines are kept in registers */
    static constexpr bool KEEPS = GATHERED && ALONG_K && INNER % QUAD == 0;
    static constexpr int QUADS_EACH = (SIZE_OF_ALL / QUAD + THREADS - 1) / THREADS;

    const T *from;
    tn_i64 outer_step, advance;
    int lines;
    const tn_i64 *offsets;
    bool quads;
    tn_i64 begin[KEEPS ? QUADS_EACH : 1];

    /* Is the factor copied 16 bytes at a time? */
    TN_HOT bool in_quads(const tn_factor<T> &f)
    {
        return f.quads && INNER % QUAD == 0 && (ALONG_K || BY_K || !GATHERED);
    }

    /* The side of factor f, of which `started` stages are being copied already. */
    TN_HOT tn_side make(const tn_factor<T> &f, int started)
    {
        static_assert(!BY_K || (GATHERED && !ALONG_K), "");
        tn_side side = {f.from + (BY_K ? 0 : started * DEPTH * f.k_step), ALONG_K ? f.step : f.k_step,
                        BY_K ? 0 : DEPTH * f.k_step, f.lines, f.offsets + (BY_K ? started * DEPTH : 0), in_quads(f)};
        if constexpr (KEEPS)
#pragma unroll
            for (int i = 0; i < QUADS_EACH; i++) {
                const int line = (i * THREADS + threadIdx.x) / (INNER / QUAD);
                side.begin[i] = line < f.lines ? f.offsets[line] : 0;
            }
        return side;
    }

    /* Finds the address of the thread's piece number i. Lines that do not exist have none. */
    template <int WIDTH>
    __device__ __forceinline__ tn_i64 place_of(int i, int outer, int inner, tn_i64 inner_step, bool there) const
    {
        if constexpr (!GATHERED)
            return outer * outer_step + inner * inner_step;
        else if constexpr (KEEPS && WIDTH == QUAD)
            return begin[i] + inner;
        else if constexpr (ALONG_K || BY_K)
            return (there ? offsets[outer] : 0) + inner * inner_step;
        else
            return outer * outer_step + (there ? offsets[inner] : 0);
    }

    template <int WIDTH> __device__ __forceinline__ void copy_pieces(T *to, int depth, tn_i64 inner_step) const
    {
        constexpr int PER = INNER / WIDTH, COUNT = PER * OUTER, HOP = THREADS / PER,
                      AT_ONCE = KEEPS || WIDTH > 1 ? 32 : 8;
#pragma unroll AT_ONCE
        for (int i = 0; i < (COUNT + THREADS - 1) / THREADS; i++) {
            const int at = i * THREADS + threadIdx.x;
            const int inner = (THREADS % PER ? at : threadIdx.x) % PER * WIDTH;
            const int outer = THREADS % PER ? at / PER : threadIdx.x / PER + i * HOP;
            if (COUNT % THREADS && at >= COUNT)
                break;
            const bool there = ALONG_K ? inner < depth && outer < lines : outer < depth && inner < lines;
            const T *const piece = from + place_of<WIDTH>(i, outer, inner, inner_step, there);
            if constexpr (WIDTH * sizeof(T) >= 4)
                tn_copy_async<WIDTH * (int)sizeof(T)>(to + outer * PITCH + inner, piece, there);
            else
                to[outer * PITCH + inner] = there ? *piece : (T)0;
        }
    }

    /* Starts the copies of the next stage, of which `depth` positions of k are left. */
    __device__ __forceinline__ void copy(T *to, int depth, const tn_factor<T> &f)
    {
        constexpr int MOST = INNER % QUAD ? 1 : QUAD;
        if (quads)
            copy_pieces<MOST>(to, depth, 1);
        else
            copy_pieces<1>(to, depth, ALONG_K ? f.k_step : f.step);
        if constexpr (BY_K)
            offsets += DEPTH;
        else
            from += advance;
    }

    /* The i-th line of a thread, relative to the warp's first: the pieces number i of all lanes are neighbours. */
    static __host__ __device__ constexpr int line(int i, int lane)
    {
        return piece_first(i) * LANES + lane * piece(i) + i - piece_first(i);
    }

    /* The offset, in elements, of a line and a position of k in a stage; also between two such. */
    static __device__ constexpr int place(int line, int k) { return ALONG_K ? line * PITCH + k : k * PITCH + line; }

    /* Reads N positions of k of a thread's lines; N is QUAD for lines that are contiguous along k. */
    template <int N> TN_HOT void read(T (&x)[N][EACH], const T *lines, int lane, int k)
    {
        if constexpr (ALONG_K) {
            static_assert(N == QUAD, "");
#pragma unroll
            for (int i = 0; i < EACH; i++) {
                const tn_span<T, QUAD> piece = *(const tn_span<T, QUAD> *)(lines + line(i, lane) * PITCH + k);
#pragma unroll
                for (int q = 0; q < QUAD; q++)
                    x[q][i] = piece.at[q];
            }
        } else {
#pragma unroll
            for (int q = 0; q < N; q++)
                read_pieces<0>(x[q], lines + (k + q) * PITCH, lane);
        }
    }
    template <int I> TN_HOT void read_pieces(T (&x)[EACH], const T *lines, int lane)
    {
        if constexpr (I < EACH) {
            *(tn_span<T, piece(I)> *)&x[I] = *(const tn_span<T, piece(I)> *)(lines + line(I, lane));
            read_pieces<I + piece(I)>(x, lines, lane);
        }
    }
    /* Writes a thread's numbers to the places that read() reads. */
    template <int I = 0> TN_HOT void write_pieces(T *lines, const T (&x)[EACH], int lane)
    {
        if constexpr (I < EACH) {
            *(tn_span<T, piece(I)> *)(lines + line(I, lane)) = *(const tn_span<T, piece(I)> *)&x[I];
            write_pieces<I + piece(I)>(lines, x, lane);
        }
    }
    TN_HOT const T *lane_lines(const T *stage, int line, int k) { return stage + place(line, k); }
};

/* Starts the copies of the first stages of a main loop: of a, b, or both. LAST: no other call follows. Copies that were
 * started before it arrive with the first stage. */
template <typename CORE, bool A, bool B, bool LAST, typename T>
TN_HOT void tn_start(T *shared, const tn_factor<T> &a, const tn_factor<T> &b, tn_i64 extent)
{
    auto from_a = CORE::side_a::make(a, 0);
    auto from_b = CORE::side_b::make(b, 0);
#pragma unroll 1
    for (int s = 0; s < CORE::AHEAD; s++) {
        const int depth = tn_within(extent - s * CORE::DEPTH, CORE::DEPTH);
        if (A && depth)
            from_a.copy(shared + s * CORE::STAGE, depth, a);
        if (B && depth)
            from_b.copy(shared + s * CORE::STAGE + CORE::side_a::SIZE, depth, b);
        if (LAST)
            tn_copies_are_a_stage();
    }
}

/* Called before copies that a kernel starts before it has waited for the kernels before it (see tn_load_l2): pieces of
 * less than 16 bytes pass through the multiprocessor's own cache; a fence by any thread invalidates that. */
template <typename CORE, bool A, bool B, typename T>
TN_HOT void tn_evict_stale(const tn_factor<T> &a, const tn_factor<T> &b)
{
    if ((A && !CORE::side_a::in_quads(a)) || (B && !CORE::side_b::in_quads(b))) {
        if (threadIdx.x == 0)
            __threadfence();
        __syncthreads();
    }
}
