/* SPDX-License-Identifier: MIT */
/* Descriptors of cuDNN: tensors, the convolution, the operation, the graph; proposals and plans; running one. */
#include "backends/cuda/convolution/graph.h"

#include <string.h>

enum { TENSORS = TN__CUDNN_TENSORS };

#define ALIGNMENT      16                 /* bytes: the alignment of operands that engines are asked for */
#define MOST_WORKSPACE ((int64_t)1 << 30) /* bytes of workspace that an engine may need at most */
#define ASKED          64                 /* proposals of a heuristic that are asked for; most of these round, or are
                                             not deterministic */
#define BY_RULES       8                  /* proposals kept of cuDNN's heuristic; the rest are its fallbacks */
#define NOTES          10                 /* most notes of an engine */

static const int types[TN_DTYPE_COUNT] = {
    [TN_FLOAT32] = TN__CUDNN_FLOAT, [TN_FLOAT16] = TN__CUDNN_HALF, [TN_BFLOAT16] = TN__CUDNN_BFLOAT16};

/* Attributes of the three operations; tensors in the order of TN__CUDNN_X, _W and _Y. */
static const struct {
    int kind, alpha, beta, convolution, tensor[TENSORS];
} operations[TN__CUDNN_WAYS] = {
    [TN__CUDNN_RESULT] = {TN__CUDNN_FORWARD, 700, 701, 702, {704, 703, 705}},
    [TN__CUDNN_DATA] = {TN__CUDNN_BACKWARD_DATA, 706, 707, 708, {710, 709, 711}},
    [TN__CUDNN_WEIGHTS] = {TN__CUDNN_BACKWARD_FILTER, 712, 713, 714, {716, 715, 717}},
};

/* ---- descriptors ---- */

static bool set(const tn__cudnn *dnn, void *descriptor, int name, int type, int64_t count, const void *elements)
{
    return descriptor && dnn->cudnnBackendSetAttribute(descriptor, name, type, count, elements) == 0;
}

/* Reads an attribute's elements, as many as exist, and returns their number. */
static int64_t get(const tn__cudnn *dnn, void *descriptor, int name, int type, int64_t room, void *elements)
{
    int64_t count = 0;
    if (!descriptor || dnn->cudnnBackendGetAttribute(descriptor, name, type, room, &count, elements) != 0)
        return 0;
    return count < room ? count : room;
}

static void *create(const tn__cudnn *dnn, int kind)
{
    void *made = NULL;
    return dnn->cudnnBackendCreateDescriptor(kind, &made) == 0 ? made : NULL;
}

static bool finish(const tn__cudnn *dnn, void *descriptor)
{
    return descriptor && dnn->cudnnBackendFinalize(descriptor) == 0;
}

static void drop(const tn__cudnn *dnn, void *descriptor)
{
    if (descriptor)
        dnn->cudnnBackendDestroyDescriptor(descriptor);
}

void tn__cudnn_drop(const tn__cuda_device *device, void *descriptor)
{
    drop(tn__cuda_dnn_library(device), descriptor);
}

/* ---- the graph ---- */

static void *part(const tn__cudnn *dnn, tn__cudnn_proposals *p, int kind)
{
    return p->part[p->parts++] = create(dnn, kind);
}

static int64_t id_of(int tensor) { return tensor + 1; }

static void *tensor_of(const tn__cudnn *dnn, tn__cudnn_proposals *p, const tn__cudnn_problem *problem, int t)
{
    const int64_t id = id_of(t), alignment = ALIGNMENT;
    void *d = part(dnn, p, TN__CUDNN_TENSOR);
    return set(dnn, d, TN__CUDNN_TENSOR_ID, TN__CUDNN_OF_INT64, 1, &id) &&
                   set(dnn, d, TN__CUDNN_TENSOR_DTYPE, TN__CUDNN_OF_DTYPE, 1, &types[problem->dtype]) &&
                   set(dnn, d, TN__CUDNN_TENSOR_ALIGNMENT, TN__CUDNN_OF_INT64, 1, &alignment) &&
                   set(dnn, d, TN__CUDNN_TENSOR_DIMENSIONS, TN__CUDNN_OF_INT64, 2 + problem->axes,
                       problem->tensor[t].dim) &&
                   set(dnn, d, TN__CUDNN_TENSOR_STRIDES, TN__CUDNN_OF_INT64, 2 + problem->axes,
                       problem->tensor[t].stride) &&
                   finish(dnn, d)
               ? d
               : NULL;
}

static void *convolution_of(const tn__cudnn *dnn, tn__cudnn_proposals *p, const tn__cudnn_problem *problem)
{
    const int mode = TN__CUDNN_CROSS_CORRELATION, compute = TN__CUDNN_FLOAT;
    const int64_t axes = problem->axes;
    const struct {
        int name;
        const int64_t *values;
    } lists[] = {{TN__CUDNN_CONVOLUTION_DILATIONS, problem->spread},
                 {TN__CUDNN_CONVOLUTION_STRIDES, problem->step},
                 {TN__CUDNN_CONVOLUTION_BEFORE, problem->before},
                 {TN__CUDNN_CONVOLUTION_BEHIND, problem->behind}};
    void *d = part(dnn, p, TN__CUDNN_CONVOLUTION);
    bool done = set(dnn, d, TN__CUDNN_CONVOLUTION_COMPUTE, TN__CUDNN_OF_DTYPE, 1, &compute) &&
                set(dnn, d, TN__CUDNN_CONVOLUTION_MODE, TN__CUDNN_OF_CONVOLUTION_MODE, 1, &mode) &&
                set(dnn, d, TN__CUDNN_CONVOLUTION_AXES, TN__CUDNN_OF_INT64, 1, &axes);
    for (size_t i = 0; i < sizeof lists / sizeof *lists && done; i++)
        done = set(dnn, d, lists[i].name, TN__CUDNN_OF_INT64, axes, lists[i].values);
    return done && finish(dnn, d) ? d : NULL;
}

static void *graph_of(const tn__cuda_device *device, tn__cudnn_proposals *p, const tn__cudnn_problem *problem)
{
    const tn__cudnn *dnn = tn__cuda_dnn_library(device);
    const float one = 1, zero = 0;
    void *tensor[TENSORS], *convolution = convolution_of(dnn, p, problem), *operation;
    bool done = convolution != NULL;
    for (int t = 0; t < TENSORS && done; t++)
        done = (tensor[t] = tensor_of(dnn, p, problem, t)) != NULL;
    if (!done)
        return NULL;
    operation = part(dnn, p, operations[problem->way].kind);
    done = set(dnn, operation, operations[problem->way].convolution, TN__CUDNN_OF_DESCRIPTOR, 1, &convolution) &&
           set(dnn, operation, operations[problem->way].alpha, TN__CUDNN_OF_FLOAT, 1, &one) &&
           set(dnn, operation, operations[problem->way].beta, TN__CUDNN_OF_FLOAT, 1, &zero);
    for (int t = 0; t < TENSORS && done; t++)
        done = set(dnn, operation, operations[problem->way].tensor[t], TN__CUDNN_OF_DESCRIPTOR, 1, &tensor[t]);
    if (!done || !finish(dnn, operation))
        return NULL;
    void *graph = part(dnn, p, TN__CUDNN_GRAPH);
    return set(dnn, graph, TN__CUDNN_GRAPH_OPERATIONS, TN__CUDNN_OF_DESCRIPTOR, 1, &operation) &&
                   set(dnn, graph, TN__CUDNN_GRAPH_HANDLE, TN__CUDNN_OF_HANDLE, 1, &device->dnn) && finish(dnn, graph)
               ? graph
               : NULL;
}

/* ---- proposals ---- */

#define BIT(note) (1u << (note))

/* The notes that an engine may not have. Winograd transforms are allowed where their numbers are not much larger than
 * the inputs, so that little accuracy is lost. */
static unsigned forbidden(const tn__cudnn_problem *problem)
{
    unsigned always = BIT(TN__CUDNN_NONDETERMINISTIC) | BIT(TN__CUDNN_ROUNDS_INPUTS) | BIT(TN__CUDNN_ROUNDS_SUMS) |
                      BIT(TN__CUDNN_WINOGRAD_6) | BIT(TN__CUDNN_WINOGRAD_13);
    if (problem->dtype != TN_FLOAT32)
        return always | BIT(TN__CUDNN_BY_FFT) | BIT(TN__CUDNN_WINOGRAD) | BIT(TN__CUDNN_WINOGRAD_4);
    return problem->tf32 ? always : always | BIT(TN__CUDNN_TENSOR_CORE);
}

/* May the engine of a configuration be used? *index: the engine's number. */
static bool suits(const tn__cudnn *dnn, void *config, unsigned never, int64_t *index)
{
    int note[NOTES];
    void *engine = create(dnn, TN__CUDNN_ENGINE);
    bool there = get(dnn, config, TN__CUDNN_CONFIG_ENGINE, TN__CUDNN_OF_DESCRIPTOR, 1, &engine) == 1 &&
                 get(dnn, engine, TN__CUDNN_ENGINE_INDEX, TN__CUDNN_OF_INT64, 1, index) == 1;
    int64_t notes = there ? get(dnn, engine, TN__CUDNN_ENGINE_NOTES, TN__CUDNN_OF_NOTE, NOTES, note) : 0;
    for (int64_t i = 0; i < notes; i++)
        there = there && !(note[i] < 32 && never & BIT(note[i]));
    drop(dnn, engine);
    return there;
}

/* Adds those of a heuristic up to `most` proposals in all. */
static void ask(const tn__cudnn *dnn, tn__cudnn_proposals *p, void *graph, int mode, unsigned never, int most)
{
    void *config[ASKED], *heuristic = create(dnn, TN__CUDNN_HEURISTIC);
    int64_t made = 0, count = 0;
    if (set(dnn, heuristic, TN__CUDNN_HEURISTIC_GRAPH, TN__CUDNN_OF_DESCRIPTOR, 1, &graph) &&
        set(dnn, heuristic, TN__CUDNN_HEURISTIC_MODE, TN__CUDNN_OF_HEURISTIC_MODE, 1, &mode) &&
        finish(dnn, heuristic)) {
        while (made < ASKED && (config[made] = create(dnn, TN__CUDNN_CONFIG)) != NULL)
            made++;
        count = get(dnn, heuristic, TN__CUDNN_HEURISTIC_RESULTS, TN__CUDNN_OF_DESCRIPTOR, made, config);
    }
    for (int64_t i = 0; i < made; i++) {
        int64_t engine;
        if (i < count && p->count < most && suits(dnn, config[i], never, &engine)) {
            p->proposal[p->count] = (tn__cudnn_proposal){(int64_t)mode << 32 | i, engine};
            p->config[p->count++] = config[i];
        } else {
            drop(dnn, config[i]);
        }
    }
    drop(dnn, heuristic);
}

bool tn__cudnn_propose(const tn__cuda_device *device, const tn__cudnn_problem *problem, tn__cudnn_proposals *p)
{
    const tn__cudnn *dnn = tn__cuda_dnn_library(device);
    *p = (tn__cudnn_proposals){.count = 0};
    void *graph = graph_of(device, p, problem);
    if (graph == NULL)
        return false;
    ask(dnn, p, graph, TN__CUDNN_BY_RULES, forbidden(problem), BY_RULES);
    ask(dnn, p, graph, TN__CUDNN_FALLBACK, forbidden(problem), TN__CUDNN_PROPOSALS);
    return true;
}

void tn__cudnn_proposals_free(const tn__cuda_device *device, tn__cudnn_proposals *p)
{
    const tn__cudnn *dnn = tn__cuda_dnn_library(device);
    for (int i = 0; i < p->count; i++)
        drop(dnn, p->config[i]);
    while (p->parts > 0)
        drop(dnn, p->part[--p->parts]);
}

/* ---- plans ---- */

void *tn__cudnn_build(const tn__cuda_device *device, void *config, size_t *workspace)
{
    const tn__cudnn *dnn = tn__cuda_dnn_library(device);
    void *plan = create(dnn, TN__CUDNN_PLAN);
    int64_t bytes = 0;
    if (set(dnn, plan, TN__CUDNN_PLAN_HANDLE, TN__CUDNN_OF_HANDLE, 1, &device->dnn) &&
        set(dnn, plan, TN__CUDNN_PLAN_CONFIG, TN__CUDNN_OF_DESCRIPTOR, 1, &config) && finish(dnn, plan) &&
        get(dnn, plan, TN__CUDNN_PLAN_WORKSPACE, TN__CUDNN_OF_INT64, 1, &bytes) == 1 && bytes >= 0 &&
        bytes <= MOST_WORKSPACE) {
        *workspace = (size_t)bytes;
        return plan;
    }
    drop(dnn, plan);
    return NULL;
}

bool tn__cudnn_execute(const tn__cuda_device *device, const tn__cudnn_problem *problem, void *plan, CUstream stream,
                       const CUdeviceptr *operand, CUdeviceptr workspace)
{
    const tn__cudnn *dnn = tn__cuda_dnn_library(device);
    void *pack = create(dnn, TN__CUDNN_PACK), *place[TENSORS], *space = (void *)workspace;
    int64_t id[TENSORS];
    for (int k = 0; k < TENSORS; k++) {
        id[k] = id_of(tn__cudnn_operands[problem->way][k]);
        place[k] = (void *)operand[k];
    }
    bool done = set(dnn, pack, TN__CUDNN_PACK_POINTERS, TN__CUDNN_OF_POINTER, TENSORS, place) &&
                set(dnn, pack, TN__CUDNN_PACK_IDS, TN__CUDNN_OF_INT64, TENSORS, id) &&
                set(dnn, pack, TN__CUDNN_PACK_WORKSPACE, TN__CUDNN_OF_POINTER, 1, &space) && finish(dnn, pack) &&
                dnn->cudnnSetStream(device->dnn, stream) == 0 &&
                dnn->cudnnBackendExecute(device->dnn, plan, pack) == 0;
    drop(dnn, pack);
    return done;
}
