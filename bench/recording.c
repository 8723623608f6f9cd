/* SPDX-License-Identifier: MIT */
/*
 * What an evaluation costs beside its kernels: recording nodes, making the graph's key, finding the plan, binding
 * memory, letting the nodes go. Measured on the null device, whose kernels do nothing, as the time of a short and of a
 * long recording: their difference gives the cost of a node, what is left the cost of an evaluation.
 */
#include "measure.h"

enum { SHORT = 20, LONG = 120 };

typedef struct recording {
    tn_array *x, *y;
    int nodes;
} recording;

static void record(void *context, bool last)
{
    (void)last;
    recording *r = context;
    TN_SCOPE {
        tn_array *z = r->x;
        for (int i = 0; i < r->nodes; i += 2)
            z = tn_exp(tn_multiply(z, r->y));
        if (tn_eval(z) != TN_OK)
            return;
    }
}

/* A sum of sums, each of a product of its own; five values or six each. */
static void plan(void *context, bool last)
{
    (void)last;
    recording *r = context;
    TN_SCOPE {
        tn_array *sum = tn_sum(r->x);
        for (int i = 0; i < r->nodes; i += 5) {
            tn_array *part = tn_slice_axis(r->x, 0, i % 8, i % 8 + 4, 1);
            sum = tn_add(sum, tn_sum(tn_tanh(tn_multiply(part, i))));
        }
        tn_string_free(tn_plan_describe(sum));
    }
}

/* By the value that is planned. */
static void report_plan(const bench *b, const char *row, int nodes)
{
    if (!wanted(b, row))
        return;
    recording r = {.x = tn_ones(TN_SHAPE(16), .device = b->device), .nodes = nodes};
    timing t = {0};
    if (tn_eval(r.x) == TN_OK)
        t = measure(b, plan, &r, 1e-4);
    t.best /= nodes;
    t.median /= nodes;
    report(b, (row_facts){.row = row, .work = "a value planned, of a graph of so many"}, t);
}

static timing per_node(timing brief, timing lengthy)
{
    double nodes = LONG - SHORT;
    return (timing){.best = (lengthy.best - brief.best) / nodes, .median = (lengthy.median - brief.median) / nodes,
                    .repetitions = lengthy.repetitions};
}

static timing per_evaluation(timing brief, timing node)
{
    return (timing){.best = brief.best - SHORT * node.best, .median = brief.median - SHORT * node.median,
                    .repetitions = brief.repetitions};
}

int main(int argc, char **argv)
{
    bench b = bench_flags(argc, argv);
    bool nodes = wanted(&b, "record-node"), evaluations = wanted(&b, "record-evaluation");
    report_plan(&b, "plan-500", 500);
    report_plan(&b, "plan-8000", 8000);
    if (!nodes && !evaluations)
        return 0;
    tn_status status;
    tn_device null = tn_device_parse("null", &status);
    recording r = {.x = tn_ones(TN_SHAPE(16), .device = null),
                   .y = tn_ones(TN_SHAPE(16), .device = null),
                   .nodes = SHORT};
    if (tn_eval(r.x) != TN_OK || tn_eval(r.y) != TN_OK) {
        fprintf(stderr, "%s: %s\n", argv[0], tn_error());
        return 1;
    }
    timing brief = measure(&b, record, &r, 1e-4);
    r.nodes = LONG;
    timing lengthy = measure(&b, record, &r, 1e-4);
    timing node = per_node(brief, lengthy), evaluation = per_evaluation(brief, node);
    if (nodes)
        report(&b, (row_facts){.row = "record-node", .work = "a node recorded, found in the cache, let go"}, node);
    if (evaluations)
        report(&b, (row_facts){.row = "record-evaluation", .work = "an evaluation, without its nodes and kernels"},
               evaluation);
    return 0;
}
