/* SPDX-License-Identifier: MIT */
/*
 * A program of little work as one kernel. Its steps become phases, gone through by a cluster of blocks of threads that wait for
 * one another after each: a launch for all steps where each would have cost one of the host's and the GPU's time. Everything
 * else is as it was planned for the steps: a phase comes behind a barrier as a step comes behind a launch, so memory that one
 * step may take over from another is a phase's, too.
 */
#include "compile/compile.h"

#include "core/memory.h"

#include <string.h>

/* The offsets of a step's share in the kernel's parameters. */
typedef struct share {
    int operand, param, scalar;
} share;

static bool fits(const tn__program *p, const tn__capabilities *chip)
{
    int words = p->step_count;
    for (int i = 0; i < p->step_count; i++) {
        const tn__step *s = &p->step[i];
        words += s->operand_count + s->param_count + s->scalar_count;
        if (s->kind != TN__STEP_KERNEL || s->may_fail || s->threads != p->step[0].threads)
            return false;
    }
    return p->step_count > 1 && words <= chip->words;
}

/* What all steps ask for, with room for their lists. */
static bool begin(const tn__program *p, tn__step *all)
{
    *all = (tn__step){.kind = TN__STEP_KERNEL, .alpha = -1, .threads = p->step[0].threads, .most_threads = p->step[0].threads};
    for (int i = 0; i < p->step_count; i++) {
        const tn__step *s = &p->step[i];
        all->operand_count += s->operand_count;
        all->param_count += s->param_count;
        all->scalar_count += s->scalar_count;
        all->items += s->items;
        all->bytes += s->bytes;
        all->operations += s->operations;
        all->shared = s->shared > all->shared ? s->shared : all->shared;
    }
    all->output_count = all->operand_count;
    all->item_cost = 1;
    all->operand = tn__alloc(sizeof *all->operand * (size_t)(all->operand_count + 1));
    all->param = tn__alloc(sizeof *all->param * (size_t)(all->param_count + p->step_count));
    all->scalar = tn__alloc(sizeof *all->scalar * (size_t)(all->scalar_count + 1));
    all->phase = tn__calloc((size_t)p->step_count, sizeof *all->phase);
    all->kernel = tn__strdup("chain");
    return all->operand && all->param && all->scalar && all->phase && all->kernel;
}

/* Copies the lists of the steps behind one another; behind their parameters stands how many blocks each would be launched on. */
static bool gather(const tn__program *p, tn__step *all, share *at)
{
    share next = {0};
    tn__text label = {0};
    for (int i = 0; i < p->step_count; i++) {
        const tn__step *s = &p->step[i];
        at[i] = next;
        memcpy(all->operand + next.operand, s->operand, sizeof *s->operand * (size_t)s->operand_count);
        if (s->param_count)
            memcpy(all->param + next.param, s->param, sizeof *s->param * (size_t)s->param_count);
        if (s->scalar_count)
            memcpy(all->scalar + next.scalar, s->scalar, sizeof *s->scalar * (size_t)s->scalar_count);
        all->param[all->param_count + i] = s->blocks;
        next = (share){next.operand + s->operand_count, next.param + s->param_count, next.scalar + s->scalar_count};
        all->phase[i] = (tn__phase){s->operand_count, s->output_count, s->bytes, s->operations, tn__strdup(s->label)};
        all->phase_count++;
        tn__text_addf(&label, "%s%s", i ? " > " : "", s->label);
        if (!all->phase[i].label)
            label.failed = true;
    }
    all->label = tn__text_take(&label);
    return all->label != NULL;
}

/* The entry, behind the phases' text, from which their own entries are left out. */
static char *text_of(const tn__program *p, const tn__step *all, const share *at, int cluster)
{
    tn__text text = {0};
    tn__text_add(&text, "#define TN_CHAINED\n");
    tn__text_add(&text, p->source);
    tn__text_addf(&text,
                  "static __device__ __forceinline__ void tn_meet(void)\n"
                  "{\n"
                  "    asm volatile(\"barrier.cluster.arrive.release;\\n\\tbarrier.cluster.wait.acquire;\" ::: \"memory\");\n"
                  "}\n"
                  "struct tn_chain { void *p[%d]; tn_i64 n[%d]; tn_u64 s[%d]; };\n"
                  "extern \"C\" __global__ void __cluster_dims__(%d, 1, 1) __launch_bounds__(%d) chain("
                  "const __grid_constant__ tn_chain a, const __grid_constant__ tn_failure f)\n"
                  "{\n"
                  "    tn_take_over();\n"
                  "    TN_STOP_IF_FAILED(f);\n",
                  all->operand_count, all->param_count + p->step_count, all->scalar_count ? all->scalar_count : 1, cluster,
                  all->threads);
    for (int i = 0; i < p->step_count; i++)
        tn__text_addf(&text,
                      "%s"
                      "#pragma unroll 1\n"
                      "    for (unsigned block = blockIdx.x; block < (unsigned)a.n[%d]; block += %d) {\n"
                      "        phase%s(a.p + %d, a.n + %d, a.s + %d, block, (unsigned)a.n[%d], (tn_i64 *)&f);\n"
                      "        __syncthreads();\n"
                      "    }\n",
                      i ? "    tn_meet();\n" : "", all->param_count + i, cluster, p->step[i].kernel + 1, at[i].operand,
                      at[i].param, at[i].scalar, all->param_count + i);
    tn__text_add(&text, "}\n");
    return tn__text_take(&text);
}

bool tn__chain(tn__program *program, const tn__capabilities *chip)
{
    if (!chip->cluster || !fits(program, chip))
        return true;
    tn__step all;
    share *at = tn__alloc(sizeof *at * (size_t)program->step_count);
    char *text = NULL;
    if (begin(program, &all) && at && gather(program, &all, at))
        text = text_of(program, &all, at, chip->cluster);
    tn__free(at);
    if (!text) {
        tn__step_free(&all);
        return false;
    }
    for (int i = 0; i < program->step_count; i++)
        tn__step_free(&program->step[i]);
    program->step[0] = all;
    program->step[0].param_count += program->step_count;
    program->step[0].blocks = chip->cluster;
    program->step_count = 1;
    tn__free(program->source);
    program->source = text;
    return true;
}
