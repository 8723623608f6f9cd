/* SPDX-License-Identifier: MIT */
/*
 * CUDA C: the table of its words, a kernel's parameters, and the helper functions it may use (cuda_helpers.cuh). Each
 * form's loops are printed by a file of their own, see gpu/form.h; a nest runs over `blocks` blocks of threads, of
 * which the current one is number `block`.
 */
#include "compile/emit/gpu/form.h"

#include "tn_embed.h"
#include "tn_op_functions.h"

#include <stdio.h>

#define HALF_OF_REGISTERS 128 /* registers of each thread, so that two blocks take all of a multiprocessor's */

/* Prints the calls of a part's nests, one after another. */
static void call_part(tn__text *text, int count, const tn__nest_call *call, int part, const char *block,
                      const char *blocks)
{
    bool first = true;
    for (int i = 0; i < count; i++) {
        if (call[i].part != part || call[i].back_to_back)
            continue;
        if (first && !call[i].waits)
            tn__text_add(text, "    tn_await_dependencies();\n    TN_STOP_IF_FAILED((*(const tn_failure *)fault));\n");
        tn__text_addf(text, "%s    %s(p, n + %d, s, %s, %s, fault);\n", first ? "" : "    __syncthreads();\n",
                      call[i].name, call[i].param, block, blocks);
        first = false;
    }
}

/* Prints the choice between the parts of a horizontally fused kernel, by the block's number. */
static void call_parts(tn__text *text, int count, const tn__nest_call *call, const tn__part_launch *launch, int threads)
{
    char blocks[24];
    tn__text_add(text, "    unsigned block = blockIdx.x;\n");
    for (int part = 0; part <= call[count - 1].part; part++) {
        snprintf(blocks, sizeof blocks, "n[%d]", launch[part].param);
        tn__text_addf(text, "    if (block < (unsigned)%s) {\n", blocks);
        if (!launch[part].all_threads && launch[part].threads < threads)
            tn__text_addf(text, "    if (threadIdx.x >= %d) return;\n", launch[part].threads);
        call_part(text, count, call, part, "block", blocks);
        tn__text_addf(text, "    return;\n    }\n    block -= (unsigned)%s;\n", blocks);
    }
}

/* Prints a kernel's entry. All its parameters are passed by value, so that a graph's node contains them: addresses,
 * words, scalars. A kernel that overwrites donated memory does nothing after a failure (see program.h). */
static void entry(tn__text *text, const tn__step *step, const char *name, int count, const tn__nest_call *call,
                  const tn__part_launch *launch)
{
    const tn__kernel_launch *how = &step->kernel.launch;
    char bounds[48], cluster[40] = "", claim[32] = "";
    if (how->registers)
        snprintf(bounds, sizeof bounds, "TN_BOUNDS(%d, %d)", how->most_threads, how->registers);
    else if (how->resident)
        snprintf(bounds, sizeof bounds, "__launch_bounds__(%d, %d)", how->most_threads, how->resident);
    else
        snprintf(bounds, sizeof bounds, "__launch_bounds__(%d)", how->most_threads);
    if (how->cluster)
        snprintf(cluster, sizeof cluster, "__cluster_dims__(%d, 1, 1) ", how->cluster);
    if (how->registers > HALF_OF_REGISTERS)
        snprintf(claim, sizeof claim, "    tn_claim<%d>(f);\n", HALF_OF_REGISTERS + 1);
    tn__text_addf(text,
                  "struct tn_%s { void *p[%d]; tn_i64 n[%d]; tn_u64 s[%d]; };\n"
                  "extern \"C\" __global__ void %s %s%s(const __grid_constant__ tn_%s a, "
                  "const __grid_constant__ tn_failure f)\n"
                  "{\n"
                  "%s%s"
                  "    void *const *const p = a.p;\n"
                  "    const tn_i64 *const n = a.n;\n"
                  "    const tn_u64 *const s = a.s;\n"
                  "    tn_i64 *const fault = (tn_i64 *)&f;\n",
                  name, step->operand_count, step->param_count, step->scalar_count ? step->scalar_count : 1,
                  bounds, cluster, name, name, claim, how->late_trigger ? "" : "    tn_let_next_start();\n");
    if (how->cluster) /* a clustered launch has a single nest */
        tn__text_addf(text,
                      "    tn_await_dependencies();\n"
                      "    if (tn_begin_together<%d>(f)) return;\n"
                      "    %s(p, n + %d, s, blockIdx.x, gridDim.x, fault);\n",
                      how->cluster, call[0].name, call[0].param);
    else if (call[count - 1].part)
        call_parts(text, count, call, launch, how->threads);
    else
        call_part(text, count, call, 0, "blockIdx.x", "gridDim.x");
    tn__text_add(text, "}\n\n");
}

static const tn__word words[] = {
    {"memory", ""},
    {"shared", ""},
    {"thread", "threadIdx.x"},
    {"threads", "blockDim.x"},
    {"barrier", "__syncthreads()"},
    {"warp_barrier", "__syncwarp()"},
    {"unroll", "#pragma unroll"},
    {"unroll_by", "#pragma unroll $1"},
    {"vector", "tn_pack<$1, $2>"},
    {"reference", "tn_pack<$1, $2> &"},
    {NULL, NULL},
};

/* Functions with fewer digits, enough for results in float16 and bfloat16. */
static const char *const brief[TN__OP_COUNT] = {[TN__OP_TANH] = "tns_brief_tanh_f32",
                                                [TN__OP_GELU] = "tns_brief_gelu_f32"};

const tn__emit_target tn__emit_target_cuda = {
    .words = words,
    .policy = &tn__gpu_policy,
    .nest_head =
        "static __device__ __forceinline__ void %s(void *const *p, const tn_i64 *n, const tn_u64 *s, tn_i64 block, "
        "tn_i64 blocks, tn_i64 *fault)\n",
    .back_to_back_head =
        "static __device__ __forceinline__ auto %s(void *const *p, const tn_i64 *n, const tn_u64 *s, tn_i64 block, "
        "tn_i64 *fault)\n",
    .parts = true,
    .own_scalars = true,
    .helpers = (const char *)tn__embed_cuda_helpers,
    .brief = brief,
    .rounding = "TN_HOT tn_f32 tn_round_f16(tn_f32 x) { return tn_f16_to_f32(tn_f32_to_f16(x)); }\n"
                "TN_HOT tn_f32 tn_round_bf16(tn_f32 x) { return tn_bf16_to_f32(tn_f32_to_bf16(x)); }\n",
    .random_helpers = (const char *)tn__embed_cuda_random,
    .product_loops = tn__emit_cuda_product,
    .product_launch = tn__launch_cuda_product,
    TN__GPU_FORMS,
    .entry = entry,
};
