/* SPDX-License-Identifier: MIT */
#include "cuda/fake_dnn.h"

#include <stdlib.h>
#include <string.h>

#include "cuda/fake_convolve.h"
#include "cuda/queues.h"

#define EXPORTED __attribute__((visibility("default")))

struct fake_dnn fake_dnn = {.version = 91000, .engines = 1};

enum { GOOD = 0, BAD = 2000, REFUSED = 3000, MOST_ATTRIBUTES = 12, ALIGNED = 16 };

typedef struct attribute {
    int name, type;
    int64_t count;
    void *elements;
} attribute;

typedef struct descriptor {
    int kind, count, engine;
    bool finished;
    attribute attribute[MOST_ATTRIBUTES];
    fake_convolution of; /* of operations, and of what is made of them */
} descriptor;

/* ---- attributes ---- */

static size_t size_of(int type)
{
    return type == TN__CUDNN_OF_HANDLE || type == TN__CUDNN_OF_INT64 || type == TN__CUDNN_OF_POINTER ||
                   type == TN__CUDNN_OF_DESCRIPTOR
               ? 8
               : 4;
}

EXPORTED int cudnnBackendSetAttribute(void *to, int name, int type, int64_t count, const void *elements)
{
    descriptor *d = to;
    size_t bytes = (size_t)count * size_of(type);
    if (d->finished || d->count == MOST_ATTRIBUTES || count < 1)
        return BAD;
    attribute *a = &d->attribute[d->count++];
    *a = (attribute){name, type, count, malloc(bytes)};
    if (a->elements == NULL)
        return BAD;
    memcpy(a->elements, elements, bytes);
    return GOOD;
}

/* So many elements (0: any number) of a type; NULL: there are none. */
static const void *find(const descriptor *d, int name, int type, int64_t count)
{
    for (int i = 0; i < d->count; i++)
        if (d->attribute[i].name == name && d->attribute[i].type == type &&
            (count == 0 || d->attribute[i].count == count))
            return d->attribute[i].elements;
    return NULL;
}

static int64_t number(const descriptor *d, int name)
{
    const int64_t *n = find(d, name, TN__CUDNN_OF_INT64, 1);
    return n ? *n : 0;
}

static const descriptor *part(const descriptor *d, int name, int kind)
{
    const void *const *at = find(d, name, TN__CUDNN_OF_DESCRIPTOR, 1);
    const descriptor *p = at ? *at : NULL;
    return p && p->finished && p->kind == kind ? p : NULL;
}

/* ---- finishing ---- */

static bool finish_convolution(descriptor *d)
{
    int64_t axes = number(d, TN__CUDNN_CONVOLUTION_AXES);
    const int *mode = find(d, TN__CUDNN_CONVOLUTION_MODE, TN__CUDNN_OF_CONVOLUTION_MODE, 1);
    const int *compute = find(d, TN__CUDNN_CONVOLUTION_COMPUTE, TN__CUDNN_OF_DTYPE, 1);
    const struct {
        int name;
        int64_t *to;
    } list[] = {{TN__CUDNN_CONVOLUTION_STRIDES, d->of.step},
                {TN__CUDNN_CONVOLUTION_DILATIONS, d->of.spread},
                {TN__CUDNN_CONVOLUTION_BEFORE, d->of.before},
                {TN__CUDNN_CONVOLUTION_BEHIND, d->of.behind}};
    if (axes < 2 || axes > 3 || !mode || *mode != TN__CUDNN_CROSS_CORRELATION || !compute || *compute)
        return false;
    d->of.axes = (int)axes;
    for (int i = 0; i < 4; i++) {
        const int64_t *values = find(d, list[i].name, TN__CUDNN_OF_INT64, axes);
        if (values == NULL)
            return false;
        memcpy(list[i].to, values, (size_t)axes * sizeof *values);
    }
    return true;
}

static bool take_tensor(fake_convolution *c, int t, const descriptor *d)
{
    int rank = c->axes + 2;
    const int64_t *dim = d ? find(d, TN__CUDNN_TENSOR_DIMENSIONS, TN__CUDNN_OF_INT64, rank) : NULL;
    const int64_t *stride = d ? find(d, TN__CUDNN_TENSOR_STRIDES, TN__CUDNN_OF_INT64, rank) : NULL;
    const int *dtype = d ? find(d, TN__CUDNN_TENSOR_DTYPE, TN__CUDNN_OF_DTYPE, 1) : NULL;
    if (!dim || !stride || !dtype || number(d, TN__CUDNN_TENSOR_ALIGNMENT) != ALIGNED)
        return false;
    memcpy(c->tensor[t].dim, dim, (size_t)rank * sizeof *dim);
    memcpy(c->tensor[t].stride, stride, (size_t)rank * sizeof *stride);
    c->tensor[t].id = number(d, TN__CUDNN_TENSOR_ID);
    c->dtype = *dtype;
    for (int i = 0; i < rank; i++)
        if (dim[i] < 1 || stride[i] < 1)
            return false;
    return true;
}

static const struct {
    int kind, convolution, alpha, beta, tensor[FAKE_TENSORS];
} operations[] = {{TN__CUDNN_FORWARD, 702, 700, 701, {704, 703, 705}},
                  {TN__CUDNN_BACKWARD_DATA, 708, 706, 707, {710, 709, 711}},
                  {TN__CUDNN_BACKWARD_FILTER, 714, 712, 713, {716, 715, 717}}};

static bool finish_operation(descriptor *d, int way)
{
    const descriptor *convolution = part(d, operations[way].convolution, TN__CUDNN_CONVOLUTION);
    const float *alpha = find(d, operations[way].alpha, TN__CUDNN_OF_FLOAT, 1);
    const float *beta = find(d, operations[way].beta, TN__CUDNN_OF_FLOAT, 1);
    if (!convolution || !alpha || *alpha != 1 || !beta || *beta != 0)
        return false;
    d->of = convolution->of;
    d->of.way = way;
    for (int t = 0; t < FAKE_TENSORS; t++)
        if (!take_tensor(&d->of, t, part(d, operations[way].tensor[t], TN__CUDNN_TENSOR)))
            return false;
    return fake_convolution_fits(&d->of);
}

static const void *handle_of(const descriptor *d, int name)
{
    const void *const *handle = find(d, name, TN__CUDNN_OF_HANDLE, 1);
    return handle ? *handle : NULL;
}

static bool finish_graph(descriptor *d)
{
    for (int way = 0; way < 3; way++) {
        const descriptor *operation = part(d, TN__CUDNN_GRAPH_OPERATIONS, operations[way].kind);
        if (operation)
            d->of = operation->of;
        if (operation)
            return handle_of(d, TN__CUDNN_GRAPH_HANDLE) == &fake_dnn;
    }
    return false;
}

static int finish_plan(descriptor *d)
{
    const descriptor *config = part(d, TN__CUDNN_PLAN_CONFIG, TN__CUDNN_CONFIG);
    if (!config || handle_of(d, TN__CUDNN_PLAN_HANDLE) != &fake_dnn)
        return BAD;
    d->of = config->of;
    d->engine = config->engine;
    fake_dnn.plans++;
    return fake_dnn.refuses[d->engine] ? REFUSED : GOOD;
}

static bool finish_heuristic(descriptor *d)
{
    const descriptor *graph = part(d, TN__CUDNN_HEURISTIC_GRAPH, TN__CUDNN_GRAPH);
    const int *mode = find(d, TN__CUDNN_HEURISTIC_MODE, TN__CUDNN_OF_HEURISTIC_MODE, 1);
    if (!graph || !mode)
        return false;
    d->of = graph->of;
    d->engine = *mode;
    return true;
}

EXPORTED int cudnnBackendFinalize(void *given)
{
    descriptor *d = given;
    int result = GOOD;
    if (d->kind == TN__CUDNN_CONVOLUTION)
        result = finish_convolution(d) ? GOOD : BAD;
    for (int way = 0; way < 3; way++)
        if (d->kind == operations[way].kind)
            result = finish_operation(d, way) ? GOOD : BAD;
    if (d->kind == TN__CUDNN_GRAPH)
        result = finish_graph(d) ? GOOD : BAD;
    if (d->kind == TN__CUDNN_HEURISTIC)
        result = finish_heuristic(d) ? GOOD : BAD;
    if (d->kind == TN__CUDNN_PLAN)
        result = finish_plan(d);
    d->finished = result == GOOD;
    return result;
}

/* ---- asking ---- */

/* Those that the test proposes are found by rules; cuDNN falls back on none. */
static int64_t propose(const descriptor *heuristic, int64_t room, void **config)
{
    int64_t count = heuristic->engine == TN__CUDNN_BY_RULES ? fake_dnn.engines : 0;
    for (int64_t i = 0; i < count && i < room; i++) {
        descriptor *d = config[i];
        d->of = heuristic->of;
        d->engine = (int)i;
        d->finished = true;
    }
    return count;
}

EXPORTED int cudnnBackendGetAttribute(void *of, int name, int type, int64_t room, int64_t *count, void *elements)
{
    const descriptor *d = of;
    *count = 1;
    if (!d->finished || room < 1)
        return BAD;
    if (name == TN__CUDNN_HEURISTIC_RESULTS && type == TN__CUDNN_OF_DESCRIPTOR)
        *count = propose(d, room, elements);
    else if (name == TN__CUDNN_CONFIG_ENGINE && type == TN__CUDNN_OF_DESCRIPTOR)
        *(*(descriptor **)elements) = (descriptor){.kind = TN__CUDNN_ENGINE, .engine = d->engine, .finished = true};
    else if (name == TN__CUDNN_ENGINE_INDEX && type == TN__CUDNN_OF_INT64)
        *(int64_t *)elements = fake_dnn.first + d->engine;
    else if (name == TN__CUDNN_ENGINE_NOTES && type == TN__CUDNN_OF_NOTE)
        *(int *)elements = fake_dnn.note[d->engine] - 1, *count = fake_dnn.note[d->engine] != 0;
    else if (name == TN__CUDNN_PLAN_WORKSPACE && type == TN__CUDNN_OF_INT64)
        *(int64_t *)elements = (int64_t)fake_dnn.workspace[d->engine];
    else
        return BAD;
    return GOOD;
}

EXPORTED int cudnnBackendCreateDescriptor(int kind, void **made)
{
    descriptor *d = calloc(1, sizeof *d);
    *made = d;
    if (d == NULL)
        return BAD;
    d->kind = kind;
    fake_dnn.descriptors++;
    return GOOD;
}

EXPORTED int cudnnBackendDestroyDescriptor(void *given)
{
    descriptor *d = given;
    for (int i = 0; i < d->count; i++)
        free(d->attribute[i].elements);
    free(d);
    fake_dnn.descriptors--;
    return GOOD;
}

/* ---- running ---- */

/* What was asked for, for as long as the process, as a graph may do it again. */
typedef struct call {
    fake_convolution of;
    struct call *next;
} call;
static call *calls;

static void pass(const void *given)
{
    if (fake_dnn.runs)
        fake_dnn.runs(((const fake_convolution *)given)->engine);
}

static void compute(const void *given)
{
    const fake_convolution *c = given;
    memset(c->workspace, 0xa5, c->workspace_bytes); /* what nobody else may use meanwhile */
    if (!fake_dnn.idle)
        fake_convolve(c);
    fake_dnn.done++;
}

static CUstream stream;

EXPORTED int cudnnBackendExecute(void *handle, void *given, void *given_pack)
{
    const descriptor *plan = given, *pack = given_pack;
    const int64_t *id = find(pack, TN__CUDNN_PACK_IDS, TN__CUDNN_OF_INT64, FAKE_TENSORS);
    void *const *place = find(pack, TN__CUDNN_PACK_POINTERS, TN__CUDNN_OF_POINTER, FAKE_TENSORS);
    void *const *workspace = find(pack, TN__CUDNN_PACK_WORKSPACE, TN__CUDNN_OF_POINTER, 1);
    if (handle != &fake_dnn || !plan->finished || !pack->finished || !id || !place || !workspace)
        return BAD;
    call *made = malloc(sizeof *made);
    if (made == NULL)
        return BAD;
    *made = (call){.of = plan->of, .next = calls};
    calls = made;
    fake_convolution *c = &made->of;
    c->workspace = *workspace;
    c->workspace_bytes = fake_dnn.workspace[plan->engine];
    for (int t = 0; t < FAKE_TENSORS; t++)
        for (int i = 0; i < FAKE_TENSORS; i++)
            if (id[i] == c->tensor[t].id)
                c->tensor[t].place = place[i];
    for (int t = 0; t < FAKE_TENSORS; t++)
        if (c->tensor[t].place == NULL || (uintptr_t)c->tensor[t].place % ALIGNED)
            return BAD;
    if (c->workspace_bytes && c->workspace == NULL)
        return BAD;
    fake_dnn.asked++;
    fake_dnn.engine = plan->engine;
    fake_dnn.memory = c->workspace;
    c->engine = plan->engine;
    fake_work work = {.kind = FAKE_CALL, .call = c, .calls = compute, .passes = pass};
    return fake_ask(stream, work) == CUDA_SUCCESS ? GOOD : BAD;
}

EXPORTED size_t cudnnGetVersion(void) { return fake_dnn.version; }

EXPORTED int cudnnCreate(void **handle)
{
    if (fake_dnn.handles < 0)
        return BAD;
    fake_dnn.handles++;
    *handle = &fake_dnn;
    return GOOD;
}

EXPORTED int cudnnSetStream(void *handle, CUstream to)
{
    stream = to;
    return handle == &fake_dnn ? GOOD : BAD;
}

const tn__cudnn fake_dnn_library = {
    .cudnnGetVersion = cudnnGetVersion,
    .cudnnCreate = cudnnCreate,
    .cudnnSetStream = cudnnSetStream,
    .cudnnBackendCreateDescriptor = cudnnBackendCreateDescriptor,
    .cudnnBackendDestroyDescriptor = cudnnBackendDestroyDescriptor,
    .cudnnBackendFinalize = cudnnBackendFinalize,
    .cudnnBackendSetAttribute = cudnnBackendSetAttribute,
    .cudnnBackendGetAttribute = cudnnBackendGetAttribute,
    .cudnnBackendExecute = cudnnBackendExecute,
};
