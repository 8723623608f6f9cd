/* SPDX-License-Identifier: MIT */
/* The list of passes, with the verifiers between them. */
#include "compile/compile.h"
#include "compile/lower/lower.h"
#include "compile/lower_kernels.h"
#include "compile/memory/planner.h"
#include "compile/rewrite/rewrite.h"

#include "core/error.h"
#include "core/log.h"
#include "core/memory.h"

#include <stdio.h>
#include <string.h>

#define LARGE (1 << 20) /* elements of what is worth being computed again */

/* A copy of a table, with room for one more row: never NULL but without memory. */
static void *copy_table(const void *rows, int count, size_t size)
{
    void *copy = tn__alloc(((size_t)count + 1) * size);
    if (copy && count)
        memcpy(copy, rows, (size_t)count * size);
    return copy;
}

static bool copy_graph(const tn__graph *from, tn__graph *to)
{
    memset(to, 0, sizeof *to);
    for (int v = 0; v < from->count; v++)
        if (tn__graph_add(to, &from->value[v]) < 0)
            return false;
    to->leaf = copy_table(from->leaf, from->leaf_count, sizeof *to->leaf);
    to->result = copy_table(from->result, from->result_count, sizeof *to->result);
    to->scalar_dtype = copy_table(from->scalar_dtype, from->scalar_count, sizeof *to->scalar_dtype);
    to->leaf_count = from->leaf_count;
    to->result_count = from->result_count;
    to->scalar_count = from->scalar_count;
    to->shift_count = from->shift_count;
    return to->leaf && to->result && to->scalar_dtype;
}

static void dump_graph(const char *title, const tn__graph *graph)
{
    if (!tn__dump_enabled("graph"))
        return;
    tn__text text = {0};
    tn__text_addf(&text, "graph %s\n", title);
    tn__graph_print(graph, &text);
    char *string = tn__text_take(&text);
    if (string)
        fputs(string, stderr);
    tn__free(string);
}

static void dump_plan(const tn__plan *plan, const tn__device *device)
{
    tn__text text = {0};
    if (tn__dump_enabled("plan")) {
        tn__text_addf(&text, "on %s\n", device->name);
        tn__plan_print(plan, &text);
    }
    if (tn__dump_enabled("kernels"))
        tn__text_add(&text, plan->program.source);
    char *string = tn__text_take(&text);
    if (string)
        fputs(string, stderr);
    tn__free(string);
}

static tn_status broken(const char *pass, const char *what)
{
    if (what == tn__verify_no_memory)
        return tn__fail_memory("compile", 0);
    return tn__fail(TN_ERR_INTERNAL, "compile", "after %s: %s; please report this as a bug of Tanso", pass, what);
}

/* Runs all passes over `graph`, which it may change. */
static tn_status run_passes(tn__graph *graph, tn__draft *draft, const tn__device *device,
                            const tn__compile_options *options, tn__plan *plan)
{
    const char *wrong = tn__graph_verify(graph);
    bool together = tn__on_gpu(device); /* launches cost more than memory traffic */
    if (wrong)
        return broken("recording", wrong);
    dump_graph("recorded", graph);
    tn__keep_convolutions(graph, device, options->precision);
    if (!tn__sum_vector_products(graph, device))
        return tn__fail_memory("compile", 0);
    if ((wrong = tn__graph_verify(graph)))
        return broken("summing vectors' products", wrong);
    if (!tn__keep_looks(graph))
        return tn__fail_memory("compile", 0);
    if ((wrong = tn__graph_verify(graph)))
        return broken("keeping looks", wrong);
    if (!tn__rewrite(graph, together && options->kernels))
        return tn__fail_memory("compile", 0);
    if ((wrong = tn__graph_verify(graph)))
        return broken("rewrite", wrong);
    dump_graph("rewritten", graph);
    bool laid;
    if (!tn__lay_channels_last(graph, &laid) || (laid && !tn__rewrite(graph, false)))
        return tn__fail_memory("compile", 0);
    if (laid) {
        if ((wrong = tn__graph_verify(graph)))
            return broken("laying channels last", wrong);
        dump_graph("with channels last", graph);
    }
    if (together && options->kernels && options->fusion) {
        if (!tn__make_again(graph, LARGE))
            return tn__fail_memory("compile", 0);
        if ((wrong = tn__graph_verify(graph)))
            return broken("what is made again", wrong);
    }
    const tn__target_policy *policy = tn__target_of(device)->policy;
    if (together && policy) { /* on a CPU, matrices that lie at other distances are no call more */
        if (!tn__pack_batches(graph, device, policy, options->precision))
            return tn__fail_memory("compile", 0);
        if ((wrong = tn__graph_verify(graph)))
            return broken("packing batches", wrong);
        dump_graph("with packed batches", graph);
    }
    if (!tn__draft_init(draft, graph))
        return tn__fail_memory("compile", 0);
    draft->precision = options->precision;
    if (options->fusion)
        tn__find_folds(draft);
    if (!(options->kernels ? tn__lower_kernels(draft, device, options->fusion) : tn__lower_operations(draft)))
        return draft->wrong ? broken("fusing", draft->wrong) : tn__fail_memory("compile", 0);
    if ((wrong = tn__draft_verify(draft)))
        return broken("lowering", wrong);
    if (!tn__join_copies(draft, together))
        return tn__fail_memory("compile", 0);
    if ((wrong = tn__draft_verify(draft)))
        return broken("joining copies", wrong);
    if (!tn__plan_memory(draft, options->plan_memory, plan))
        return tn__fail_memory("compile", 0);
    dump_plan(plan, device);
    wrong = tn__plan_verify(plan);
    return wrong ? broken("planning memory", wrong) : TN_OK;
}

tn__plan *tn__compile(const tn__graph *graph, const tn__device *device, const tn__compile_options *options)
{
    tn__graph copy;
    tn__draft draft = {0};
    tn__plan *plan = tn__calloc(1, sizeof *plan);
    tn_status status = TN_ERR_MEMORY;
    if (copy_graph(graph, &copy) && plan)
        status = run_passes(&copy, &draft, device, options, plan);
    else
        tn__fail_memory("compile", sizeof *plan);
    tn__draft_free(&draft);
    tn__graph_free(&copy);
    if (status == TN_OK)
        return plan;
    tn__plan_free(plan);
    return NULL;
}

void tn__plan_free(tn__plan *plan)
{
    if (!plan)
        return;
    tn__program_free(&plan->program);
    tn__free(plan->result);
    tn__free(plan);
}
