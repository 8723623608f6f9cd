/* SPDX-License-Identifier: MIT */
/*
 * OpenCL C 1.2, as a second language for a GPU's forms: its words, what kernels are called with, and what they may use
 * (opencl_helpers.cl). It has no generated products, no horizontal fusion and no clusters.
 *
 * A kernel's parameters are a table of 64-bit words in device memory (addresses, then parameters, then scalars), three
 * words for a fault, and shared memory as large as the launch asks for.
 */
#include "compile/emit/gpu/form.h"

#include "tn_embed.h"

#define NEST_PARAMETERS \
    "__global const tn_u64 *p, __global const tn_i64 *n, __global const tn_u64 *s, tn_i64 block, tn_i64 blocks, " \
    "__global tn_i64 *fault, __local tn_together *tn_local, __local unsigned char *tn_shared"

static void entry(tn__text *text, const tn__step *step, const char *name, int count, const tn__nest_call *call,
                  const tn__part_launch *launch)
{
    (void)launch;
    tn__text_addf(text,
                  "__kernel void %s(__global const tn_u64 *a, __global tn_i64 *fault, "
                  "__local unsigned char *tn_shared)\n"
                  "{\n"
                  "    __local tn_together together;\n"
                  "    __global const tn_i64 *const n = (__global const tn_i64 *)a + %d;\n",
                  name, step->operand_count);
    for (int i = 0; i < count; i++)
        tn__text_addf(text, "%s    %s(a, n + %d, a + %d, get_group_id(0), get_num_groups(0), fault, &together, "
                            "tn_shared);\n",
                      i ? "    barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);\n" : "", call[i].name,
                      call[i].param, step->operand_count + step->param_count);
    tn__text_add(text, "}\n\n");
}

static const tn__word words[] = {
    {"memory", "__global"},
    {"shared", "__local"},
    {"thread", "(int)get_local_id(0)"},
    {"threads", "(int)get_local_size(0)"},
    {"barrier", "barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE)"},
    {"warp_barrier", "barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE)"},
    {"unroll", ""},
    {"unroll_by", ""},
    {"vector", "tn_pack_$1_$2"},
    {NULL, NULL},
};

const tn__emit_target tn__emit_target_opencl = {
    .words = words,
    .prelude = (const char *)tn__embed_opencl_prelude,
    .nest_head = "static inline void %s(" NEST_PARAMETERS ")\n",
    .own_scalars = true,
    .helpers = (const char *)tn__embed_opencl_helpers,
    .rounding = "TN_HOT tn_f32 tn_round_f16(tn_f32 x) { return tn_f16_to_f32(tn_f32_to_f16(x)); }\n"
                "TN_HOT tn_f32 tn_round_bf16(tn_f32 x) { return tn_bf16_to_f32(tn_f32_to_bf16(x)); }\n",
    .random_helpers = (const char *)tn__embed_opencl_random,
    TN__GPU_FORMS,
    .entry = entry,
};
