/* SPDX-License-Identifier: MIT */
/*
 * Reductions in CUDA C: accumulators of a thread, and what threads do to combine theirs. The order depends on the form alone,
 * never on which thread comes first: by halves, over lanes of a warp by shuffles, over warps through shared memory.
 */
#include "compile/emit_cuda.h"

#include <stdio.h>

const char tn__cu_helpers[] =
    "struct tn_failure { tn_u64 guard, latch, report, run, who; };\n"
    "#define TN_FAILED(f) (f.guard ? *(const volatile tn_u64 *)f.guard : 0)\n"
    "#define TN_STOP_IF_FAILED(f) if (TN_FAILED(f)) return\n"
    /* A kernel whose threads have so many registers at most; and so many at least, as there is something that would need them
     * if it were ever done. Of one kernel only one bound can be said; a compiler that knows but the other leaves registers as may be. */
    "#if __CUDACC_VER_MAJOR__ * 100 + __CUDACC_VER_MINOR__ >= 1204\n"
    "#define TN_BOUNDS(threads, registers) __maxnreg__(registers)\n"
    "template <int COUNT> static __device__ __forceinline__ void tn_claim(const tn_failure &f)\n"
    "{\n"
    "    if (f.who != ~0ull) return;\n"
    "    volatile int *const p = (volatile int *)f.report;\n"
    "    int x[COUNT];\n"
    "    _Pragma(\"unroll\") for (int i = 0; i < COUNT; i++) x[i] = p[i];\n"
    "    _Pragma(\"unroll\") for (int i = COUNT - 1; i >= 0; i--) p[x[i]] = i;\n"
    "}\n"
    "#else\n"
    "#define TN_BOUNDS(threads, registers) __launch_bounds__(threads)\n"
    "template <int COUNT> static __device__ __forceinline__ void tn_claim(const tn_failure &) {}\n"
    "#endif\n"
    /* A kernel may be started while those before it still run: the first of these lets the next one start, and everything behind
     * the second comes after those before; there at the latest the next one may start. */
    "static __device__ __forceinline__ void tn_let_next_start(void)\n"
    "{\n"
    "#if __CUDA_ARCH__ >= 900\n"
    "    asm volatile(\"griddepcontrol.launch_dependents;\" ::: \"memory\");\n"
    "#endif\n"
    "}\n"
    "static __device__ __forceinline__ void tn_take_over(void)\n"
    "{\n"
    "#if __CUDA_ARCH__ >= 900\n"
    "    asm volatile(\"griddepcontrol.wait;\" ::: \"memory\");\n"
    "#endif\n"
    "    tn_let_next_start();\n"
    "}\n"
    /* Blocks of a cluster: which one this is, where another one has what p points to, and a barrier for all their threads. */
    "#if __CUDA_ARCH__ >= 900\n"
    "static __device__ __forceinline__ int tn_rank(void) { int y; asm(\"mov.u32 %0, %%cluster_ctarank;\" : \"=r\"(y)); return y; }\n"
    "template <class T> static __device__ __forceinline__ T *tn_of(int rank, T *p)\n"
    "{\n"
    "    T *y;\n"
    "    asm(\"mapa.u64 %0, %1, %2;\" : \"=l\"(y) : \"l\"(p), \"r\"(rank));\n"
    "    return y;\n"
    "}\n"
    "static __device__ __forceinline__ void tn_join(void)\n"
    "{\n"
    "    asm volatile(\"barrier.cluster.arrive.release;\" ::: \"memory\");\n"
    "    asm volatile(\"barrier.cluster.wait.acquire;\" ::: \"memory\");\n"
    "}\n"
    "#endif\n"
    "#define TN_FAULT(fault, operand, index) tn_fail((const tn_failure *)fault, operand, index)\n"
    "static __device__ __noinline__ void tn_fail(const tn_failure *f, tn_i64 operand, tn_i64 index)\n"
    "{\n"
    "    volatile tn_i64 *report = (volatile tn_i64 *)f->report;\n"
    "    if (atomicCAS((tn_u64 *)f->latch, 0ull, 1ull) != 0)\n"
    "        return;\n"
    "    report[1] = (tn_i64)f->run;\n"
    "    report[2] = (tn_i64)f->who;\n"
    "    report[3] = operand;\n"
    "    report[4] = index;\n"
    "    __threadfence_system();\n"
    "    report[0] = 1;\n"
    "}\n"
    /* The same memory for all nests of a kernel, which run one after another or in other blocks: at most 8 KiB that the text
     * asks for (see RESERVED in product.c), and what the launch does, the most that one of the nests needs. */
    "__shared__ __align__(16) unsigned char tn_parts[2][1024];\n" /* of rows: two stretches, an element a warp */
    "__shared__ tn_i64 tn_places[2][32];\n"
    "__shared__ tn_i64 tn_lines[128];\n" /* of a product's tile, where they are gathered */
    "extern __shared__ __align__(16) unsigned char tn_shared[];\n"
    /* All blocks of a cluster have begun; has one of them seen a failure? Then none goes on. */
    "#if __CUDA_ARCH__ >= 900\n"
    "template <int BLOCKS> static __device__ __forceinline__ bool tn_begin_together(const tn_failure &f)\n"
    "{\n"
    "    tn_i64 failed = 0;\n"
    "    tn_join();\n"
    "    if (!f.guard) return false;\n"
    "    if (threadIdx.x < BLOCKS) *tn_of(threadIdx.x, &tn_lines[tn_rank()]) = *(const volatile tn_u64 *)f.guard != 0;\n"
    "    tn_join();\n"
    "    for (int k = 0; k < BLOCKS; k++) failed |= tn_lines[k];\n"
    "    return failed;\n"
    "}\n"
    "#endif\n"
    "template <class T, int V> struct alignas(V * sizeof(T) < 16 ? V * sizeof(T) : 16) tn_pack { T e[V]; };\n"
    "template <class T> TN_HOT bool tn_aligned(const T *p, int bytes) { return (tn_u64)p % (tn_u64)bytes == 0; }\n"
    /* `live` elements of a chunk; those beyond are 0 */
    "template <class T, int V, class L> TN_HOT void tn_load(tn_pack<T, V> &to, const T *p, L live, bool whole)\n"
    "{\n"
    "    if (whole && live >= V) {\n"
    "        to = *(const tn_pack<T, V> *)p;\n"
    "        return;\n"
    "    }\n"
    "#pragma unroll\n"
    "    for (int u = 0; u < V; u++) to.e[u] = u < live ? p[u] : T();\n"
    "}\n"
    "template <class T, int V, class L, class I> TN_HOT void tn_load_apart(tn_pack<T, V> &to, const T *p, L live, I stride)\n"
    "{\n"
    "#pragma unroll\n"
    "    for (int u = 0; u < V; u++) to.e[u] = u < live ? p[u * stride] : T();\n"
    "}\n"
    "template <class T, int V, class L> TN_HOT void tn_store(const tn_pack<T, V> &from, T *p, L live, bool whole)\n"
    "{\n"
    "    if (whole && live >= V) {\n"
    "        *(tn_pack<T, V> *)p = from;\n"
    "        return;\n"
    "    }\n"
    "#pragma unroll\n"
    "    for (int u = 0; u < V; u++) if (u < live) p[u] = from.e[u];\n"
    "}\n"
    "template <class T, int V, class L, class I> TN_HOT void tn_store_apart(const tn_pack<T, V> &from, T *p, L live, I stride)\n"
    "{\n"
    "#pragma unroll\n"
    "    for (int u = 0; u < V; u++) if (u < live) p[u * stride] = from.e[u];\n"
    "}\n"
    /* Correctly rounded (Markstein, "Computation of elementary functions on the IBM RISC System/6000 processor", 1990) while
     * nothing on the way is subnormal or infinite, else `sure` is cleared. */
    "TN_HOT tn_f32 tn_careless_sqrt(tn_f32 x, bool &sure)\n"
    "{\n"
    "    const tn_f32 y = tns__inverse_root_f32(x), s = x * y, r = fmaf(fmaf(-s, s, x), 0.5f * fabsf(y), s);\n"
    "    sure &= r >= 0x1p-50f;\n"
    "    return r;\n"
    "}\n"
    "TN_HOT tn_f32 tn_inverse(tn_f32 b) { const tn_f32 x = tns__inverse_f32(b); return fmaf(fmaf(-b, x, 1.0f), x, x); }\n"
    "TN_HOT bool tn_divides(tn_f32 b) { return (fabsf(b) >= 0x1p-40f) & (fabsf(b) <= 0x1p60f); }\n"
    /* y: the inverse of b, which divides */
    "TN_HOT tn_f32 tn_careless_divide_by(tn_f32 a, tn_f32 b, tn_f32 y, bool &sure)\n"
    "{\n"
    "    const tn_f32 q = a * y, r = fmaf(fmaf(-b, q, a), y, q);\n"
    "    sure &= (fabsf(r) >= 0x1p-60f) | (tns_bits_f32(a) == 0);\n"
    "    return r;\n"
    "}\n"
    "TN_HOT tn_f32 tn_careless_divide(tn_f32 a, tn_f32 b, bool &sure)\n"
    "{\n"
    "    sure &= tn_divides(b);\n"
    "    return tn_careless_divide_by(a, b, tn_inverse(b), sure);\n"
    "}\n"
    "TN_HOT tn_f32 tn_careless_reciprocal(tn_f32 b, bool &sure)\n"
    "{\n"
    "    sure &= (fabsf(b) >= 0x1p-100f) & (fabsf(b) <= 0x1p100f);\n"
    "    return tn_inverse(b);\n"
    "}\n"
    "TN_HOT tn_i32 tn_quotient(tn_i32 x, tn_i64 d, tn_i64 m, tn_i64 shift)\n"
    "{ return (tn_i32)((__umulhi((tn_u32)x, (tn_u32)m) + (tn_u32)x) >> (int)shift); }\n"
    "TN_HOT tn_i64 tn_quotient(tn_i64 x, tn_i64 d, tn_i64 m, tn_i64 shift) { return x / d; }\n"
    "#define TN_SHUFFLE(name, shuffle) \\\n"
    "    template <class T> TN_HOT T name \\\n"
    "    { \\\n"
    "        if constexpr (sizeof(T) < 4) { \\\n"
    "            const tn_u32 word = (tn_u32)x; \\\n"
    "            return (T)shuffle; \\\n"
    "        } else { \\\n"
    "            struct { tn_u32 word[sizeof(T) / 4]; } words; \\\n"
    "            memcpy(&words, &x, sizeof x); \\\n"
    "            _Pragma(\"unroll\") for (int i = 0; i < (int)(sizeof(T) / 4); i++) { \\\n"
    "                const tn_u32 word = words.word[i]; \\\n"
    "                words.word[i] = shuffle; \\\n"
    "            } \\\n"
    "            memcpy(&x, &words, sizeof x); \\\n"
    "            return x; \\\n"
    "        } \\\n"
    "    }\n"
    "TN_SHUFFLE(tn_down(T x, int h, int width), __shfl_down_sync(0xffffffffu, word, h, width))\n"
    "TN_SHUFFLE(tn_first(T x, int width), __shfl_sync(0xffffffffu, word, 0, width))\n";

/*
 * Elements i, i + 1, ... of a random stream: a block of the generator serves four of 32 bits, two of 64. tn_<name> is for an i
 * that a block begins at, and counters that have their upper half in common, so that what the generator makes of it is the same
 * in all threads; tn_<name>_apart mends what it gave where one of these does not hold, out of line as that is rare.
 */
const char tn__cu_random_helpers[] =
    "#define TN_WIDE(w, u) (w[2 * (u)] | (tn_u64)w[2 * (u) + 1] << 32)\n"
    "TN_HOT tn_u64 tn_near(tn_u64 o, tn_u64 block) { return o >> 32 << 32 | (tn_u32)((tn_u32)o + (tn_u32)block); }\n"
    "#define TN_RANDOM(name, suffix, T, each, of) \\\n"
    "    template <int V> TN_HOT void tn_##name(tn_pack<T, V> &to, tn_u64 k, tn_u64 o, tn_u64 i) \\\n"
    "    { \\\n"
    "        tn_u32 w[4]; \\\n"
    "        _Pragma(\"unroll\") for (int u = 0; u < V; u++) { \\\n"
    "            if (u % each == 0) tns_philox(k, tn_near(o, i / each + u / each), 0, w); \\\n"
    "            to.e[u] = of; \\\n"
    "        } \\\n"
    "    } \\\n"
    "    static __device__ __noinline__ __attribute__((unused)) T tn_##name##_at(tn_u64 k, tn_u64 o, tn_u64 i, T) { return tns_##name##_##suffix(k, o, i); } \\\n"
    "    template <int V> TN_HOT void tn_##name##_apart(tn_pack<T, V> &to, tn_u64 k, tn_u64 o, tn_u64 i, bool carries) \\\n"
    "    { \\\n"
    "        if (i % each == 0 && !carries) return; \\\n"
    "        _Pragma(\"unroll\") for (int u = 0; u < V; u++) to.e[u] = tn_##name##_at(k, o, i + u, T()); \\\n"
    "    }\n"
    "TN_RANDOM(random_uniform, f32, tn_f32, 4, tns__uniform_f32(w[u % 4]))\n"
    "TN_RANDOM(random_uniform, f64, tn_f64, 2, tns__uniform_f64(TN_WIDE(w, u % 2)))\n"
    "TN_RANDOM(random_normal, f32, tn_f32, 4, tns__box_muller_f32(w[u % 4 / 2 * 2], w[u % 4 / 2 * 2 + 1], u % 2))\n"
    "TN_RANDOM(random_normal, f64, tn_f64, 2, tns__box_muller_f64(TN_WIDE(w, 0), TN_WIDE(w, 1), u % 2))\n"
    "TN_RANDOM(random_bits, u32, tn_u32, 4, w[u % 4])\n"
    "TN_RANDOM(random_bits, u64, tn_u64, 2, TN_WIDE(w, u % 2))\n";

/* ---- accumulators ---- */

void tn__cu_start(tn__printer *p, int level, int width)
{
    char size[24] = "";
    if (width)
        snprintf(size, sizeof size, "[%d]", width);
    EACH_PLAIN(p, r, level)
        tn__line(p, "%s t%d%s;", tn__emit_type(p, r), r, size);
    EACH_POSITION(p, r, level)
        tn__line(p, "%s t%d%s; tn_i64 at%d%s;", tn__emit_type(p, r), r, size, r, size);
    if (width)
        tn__line(p, "for (int u = 0; u < %d; u++) {", width);
    EACH_PLAIN(p, r, level)
        tn__line(p, "t%d%s = %s;", r, width ? "[u]" : "", tn__emit_identity(p, r));
    EACH_POSITION(p, r, level)
        tn__line(p, "t%d%s = %s; at%d%s = R;", r, width ? "[u]" : "", tn__emit_identity(p, r), r, width ? "[u]" : "");
    if (width)
        tn__line(p, "}");
}

void tn__cu_print_reduced_position(tn__printer *p)
{
    const tn__nest *n = p->nest;
    bool first = true;
    for (int l = 0; l < n->loop_count; l++) {
        if (!(n->reduced >> l & 1))
            continue;
        tn__text_addf(p->text, "%s(tn_i64)x%d", first ? "" : " + ", l);
        for (int k = l + 1; k < n->loop_count; k++)
            if (n->reduced >> k & 1)
                tn__text_addf(p->text, " * n[%d]", EXTENT(k));
        first = false;
    }
}

/* The element in hand goes into the accumulators of its level. A thread comes by positions in order. */
void tn__cu_accumulate(tn__printer *p, int level, bool columns)
{
    const tn__nest *n = p->nest;
    const char *u = columns ? "[u]" : "";
    EACH_PLAIN(p, r, level) {
        tn__emit_need(p, n->reduction[r].arg);
        tn__line(p, "t%d%s = %s(t%d%s, v%d);", r, u, tn__emit_function(p, r), r, u, n->reduction[r].arg);
    }
    EACH_POSITION(p, r, level) {
        int v = n->reduction[r].arg;
        tn__emit_need(p, v);
        tn__line(p, "if (at%d%s == R || %s(t%d%s, v%d)) {", r, u, tn__emit_function(p, r), r, u, v);
        tn__line(p, "t%d%s = v%d;", r, u, v);
        tn__emit_indent(p);
        tn__text_addf(p->text, "at%d%s = ", r, u);
        tn__cu_print_reduced_position(p);
        tn__text_add(p->text, ";\n");
        tn__line(p, "}");
    }
}

/* Accumulator r and position, `mine`, take over those of another thread if they are better, or as good and earlier. */
static void take_better(tn__printer *p, int r, const char *mine)
{
    const char *f = tn__emit_function(p, r);
    tn__line(p, "if (j < R && (at%d%s == R || %s(t%d%s, b) || (!%s(b, t%d%s) && j < at%d%s))) {", r, mine, f, r, mine, f, r,
             mine, r, mine);
    tn__line(p, "t%d%s = b;", r, mine);
    tn__line(p, "at%d%s = j;", r, mine);
    tn__line(p, "}");
}

/* ---- rows ---- */

static void shuffle(tn__printer *p, int r, bool position, int lanes)
{
    if (lanes < 2)
        return;
    tn__line(p, "#pragma unroll");
    tn__line(p, "for (int h = %d; h; h /= 2) {", lanes / 2);
    if (position) {
        tn__line(p, "const %s b = tn_down(t%d, h, %d);", tn__emit_type(p, r), r, lanes);
        tn__line(p, "const tn_i64 j = tn_down(at%d, h, %d);", r, lanes);
        take_better(p, r, "");
    } else {
        tn__line(p, "t%d = %s(t%d, tn_down(t%d, h, %d));", r, tn__emit_function(p, r), r, r, lanes);
    }
    tn__line(p, "}");
}

/* Over the warps of a row: each leaves its result in shared memory, that of all blocks if several have the row, then every warp
 * combines them all. Two combinations in turn use two stretches of it, so that one barrier is enough. */
static void over_warps(tn__printer *p, const tn__cu_form *f, int r, bool position, int *used)
{
    int warps = f->lanes / 32, half = *used % 2;
    const char *type = tn__emit_type(p, r), *whose = f->cluster ? "tn_of(k, " : "(";
    const char *warp = f->cluster ? "lane / 32" : "threadIdx.x / 32";
    tn__line(p, "{");
    tn__line(p, "if (threadIdx.x %% 32 == 0) {");
    if (f->cluster)
        tn__line(p, "for (int k = 0; k < %d; k++) {", f->cluster);
    tn__line(p, "((%s *)%stn_parts[%d]))[%s] = t%d;", type, whose, half, warp, r);
    if (position)
        tn__line(p, "%stn_places[%d])[%s] = at%d;", whose, half, warp, r);
    if (f->cluster)
        tn__line(p, "}");
    tn__line(p, "}");
    tn__line(p, f->cluster ? "tn_join();" : "__syncthreads();");
    if (f->cluster)
        tn__line(p, "const int w = threadIdx.x %% %d;", warps);
    else
        tn__line(p, "const int w = threadIdx.x / %d * %d + threadIdx.x %% %d;", f->lanes, warps, warps);
    tn__line(p, "t%d = ((%s *)tn_parts[%d])[w];", r, type, half);
    if (position)
        tn__line(p, "at%d = tn_places[%d][w];", r, half);
    tn__line(p, "}");
    shuffle(p, r, position, warps);
    ++*used;
}

void tn__cu_combine_lanes(tn__printer *p, const tn__cu_form *f, int level, int *used)
{
    int lanes = f->lanes < 32 ? f->lanes : 32;
    for (int r = 0; r < p->nest->reduction_count; r++) {
        bool position = tn__ops[p->nest->reduction[r].op].props & TN_ARG;
        if (p->nest->reduction[r].level != level)
            continue;
        shuffle(p, r, position, lanes);
        if (f->lanes > 32)
            over_warps(p, f, r, position, used);
        int width = f->lanes > 32 ? f->lanes / 32 : lanes;
        if (width > 1) {
            tn__line(p, "t%d = tn_first(t%d, %d);", r, r, width);
            if (position)
                tn__line(p, "at%d = tn_first(at%d, %d);", r, r, width);
        }
    }
}

/* ---- columns: a chunk a thread, then its positions ---- */

#define DOWN_PARTS  16384
#define DOWN_PLACES 8192

int64_t tn__cu_down_bytes(const tn__nest *n)
{
    bool position = false;
    for (int r = 0; r < n->reduction_count; r++)
        position = position || tn__ops[n->reduction[r].op].props & TN_ARG;
    return DOWN_PARTS + (position ? DOWN_PLACES : 0);
}

void tn__cu_combine_down(tn__printer *p, const tn__cu_form *f, int level)
{
    for (int r = 0; r < p->nest->reduction_count; r++) {
        bool position = tn__ops[p->nest->reduction[r].op].props & TN_ARG;
        const char *type = tn__emit_type(p, r);
        if (p->nest->reduction[r].level != level)
            continue;
        tn__line(p, "{");
        tn__line(p, "tn_pack<%s, %d> *const part = (tn_pack<%s, %d> *)tn_shared;", type, f->width, type, f->width);
        if (position)
            tn__line(p, "tn_pack<tn_i64, %d> *const place = (tn_pack<tn_i64, %d> *)(tn_shared + %d);", f->width,
                     f->width, DOWN_PARTS);
        tn__line(p, "if (cy < down) {");
        tn__line(p, "for (int u = 0; u < %d; u++) part[threadIdx.x].e[u] = t%d[u];", f->width, r);
        if (position)
            tn__line(p, "for (int u = 0; u < %d; u++) place[threadIdx.x].e[u] = at%d[u];", f->width, r);
        tn__line(p, "}");
        tn__line(p, "for (int h = down / 2; h; h /= 2) {");
        tn__line(p, "__syncthreads();");
        tn__line(p, "if (cy < h) {");
        tn__line(p, "const int other = threadIdx.x + h * across;");
        tn__line(p, "#pragma unroll");
        tn__line(p, "for (int u = 0; u < %d; u++) {", f->width);
        tn__line(p, "const %s b = part[other].e[u];", type);
        if (position) {
            tn__line(p, "const tn_i64 j = place[other].e[u];");
            take_better(p, r, "[u]");
            tn__line(p, "place[threadIdx.x].e[u] = at%d[u];", r);
        } else {
            tn__line(p, "t%d[u] = %s(t%d[u], b);", r, tn__emit_function(p, r), r);
        }
        tn__line(p, "part[threadIdx.x].e[u] = t%d[u];", r);
        tn__line(p, "}");
        tn__line(p, "}");
        tn__line(p, "}");
        tn__line(p, "__syncthreads();");
        tn__line(p, "for (int u = 0; u < %d; u++) t%d[u] = part[cx].e[u];", f->width, r);
        if (position)
            tn__line(p, "for (int u = 0; u < %d; u++) at%d[u] = place[cx].e[u];", f->width, r);
        tn__line(p, "__syncthreads();");
        tn__line(p, "}");
    }
}
