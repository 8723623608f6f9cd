/* SPDX-License-Identifier: MIT */
#include "cuda/fake.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backends/plugin.h"

fake_driver fake;

/* ---- work ---- */

typedef fake_work work;

#ifndef MOST_NODES
#define MOST_NODES 128 /* of a graph */
#endif
typedef struct fake_graph {
    int count;
    work node[MOST_NODES];
    const work *original; /* of an executable graph: the nodes that it was made of */
} fake_graph;
static fake_graph *capturing;
static CUstream captured_stream;

CUresult fake_ask(CUstream stream, work w)
{
    if (capturing && stream == captured_stream) {
        if (capturing->count == MOST_NODES)
            abort();
        capturing->node[capturing->count++] = w;
        return CUDA_SUCCESS;
    }
    if (w.passes)
        w.passes(w.call);
    return fake_put(stream, &w);
}

void fake_do(const fake_work *w)
{
    if (w->kind == FAKE_COPY)
        memmove(w->to, w->from, w->bytes);
    else if (w->kind == FAKE_SET)
        memset(w->to, 0, w->bytes);
    else if (w->kind == FAKE_CALL)
        (w->calls ? w->calls : fake.calls)(w->call);
    else if (w->kind == FAKE_LAUNCH && fake.kernel_runs)
        fake.kernel_runs(w->name, w->words, (const uint64_t *)w->words + fake.words, &w->failure);
}

void fake_fail(const tn__cuda_failure *failure, int64_t operand, int64_t index)
{
    uint64_t *latch = (uint64_t *)failure->latch;
    int64_t *report = (int64_t *)failure->report;
    if (*latch)
        return;
    *latch = 1;
    report[TN__CUDA_REPORT_RUN] = (int64_t)failure->run;
    report[TN__CUDA_REPORT_WHO] = (int64_t)failure->who;
    report[TN__CUDA_REPORT_OPERAND] = operand;
    report[TN__CUDA_REPORT_INDEX] = index;
    report[TN__CUDA_REPORT_SET] = 1;
}

bool fake_stopped(const tn__cuda_failure *failure) { return failure->guard && *(const uint64_t *)failure->guard; }

/* ---- the driver ---- */

static CUresult fake_init(unsigned flags) { return flags ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS; }

static CUresult fake_version(int *version)
{
    *version = 13000;
    return CUDA_SUCCESS;
}

static CUresult fake_error(CUresult result, const char **text)
{
    *text = result == CUDA_ERROR_ILLEGAL_ADDRESS ? "FAKE_ILLEGAL_ADDRESS" : "FAKE_ERROR";
    return CUDA_SUCCESS;
}

#define GPUS 2

static CUresult fake_device_count(int *count)
{
    *count = GPUS;
    return CUDA_SUCCESS;
}

static CUresult fake_device_get(CUdevice *device, int index)
{
    *device = index;
    return CUDA_SUCCESS;
}

static CUresult fake_name(char *name, int size, CUdevice device)
{
    snprintf(name, size, "Fake %d", device);
    return CUDA_SUCCESS;
}

static CUresult fake_attribute(int *value, CUdevice_attribute which, CUdevice device)
{
    (void)device;
    *value = which == CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR ? 9
             : which == CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT     ? 132
             : which == CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK    ? 1024
             : which == CU_DEVICE_ATTRIBUTE_WARP_SIZE                ? 32
             : which == CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE            ? 50 << 20
             : which == CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN ? 227 << 10
                                                                     : 0;
    return CUDA_SUCCESS;
}

static CUresult fake_total(size_t *bytes, CUdevice device)
{
    (void)device;
    *bytes = (size_t)1 << 30;
    return CUDA_SUCCESS;
}

/* ---- contexts: one a device ---- */

static char contexts[GPUS];
static _Thread_local CUcontext current;

static CUresult fake_retain(CUcontext *context, CUdevice device)
{
    *context = (CUcontext)&contexts[device];
    return CUDA_SUCCESS;
}

static CUresult fake_let_go(CUdevice device) { return (void)device, CUDA_SUCCESS; }

static CUresult fake_current(CUcontext context)
{
    current = context;
    return CUDA_SUCCESS;
}

CUcontext fake_context(void) { return current; }

CUresult fake_within(CUcontext context)
{
    if (context == current)
        return CUDA_SUCCESS;
    fake.astray++;
    return CUDA_ERROR_INVALID_CONTEXT;
}

static CUresult fake_can_reach(int *can, CUdevice device, CUdevice other)
{
    *can = device != other;
    return CUDA_SUCCESS;
}

static CUresult fake_reach(CUcontext other, unsigned flags)
{
    fake.count.reaches++;
    return flags || other == current ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
}

static CUresult fake_memory(size_t *left, size_t *total)
{
    *left = fake.memory_left;
    *total = (size_t)1 << 30;
    return CUDA_SUCCESS;
}

static CUresult fake_bus(char *name, int size, CUdevice device)
{
    snprintf(name, size, "0000:%02x:00.0", device);
    return CUDA_SUCCESS;
}

#define FRONT 256 /* bytes before a block, where its size is */

static CUresult fake_allocate(CUdeviceptr *memory, size_t bytes)
{
    if (bytes > fake.memory_left)
        return CUDA_ERROR_OUT_OF_MEMORY;
    size_t *block = calloc(1, FRONT + bytes);
    if (block == NULL)
        return CUDA_ERROR_OUT_OF_MEMORY;
    *block = bytes;
    fake.memory_left -= bytes;
    fake.count.allocations++;
    *memory = (CUdeviceptr)block + FRONT;
    return CUDA_SUCCESS;
}

static CUresult fake_free(CUdeviceptr memory)
{
    fake_flush();
    fake.count.releases++;
    size_t *block = (size_t *)(memory - FRONT);
    fake.memory_left += *block;
    free(block);
    return CUDA_SUCCESS;
}

static CUresult fake_pin(void **memory, size_t bytes)
{
    if (fake.no_pinned)
        return CUDA_ERROR_OUT_OF_MEMORY;
    fake.count.pinned++;
    *memory = calloc(1, bytes);
    return *memory ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

static CUresult fake_unpin(void *memory)
{
    fake.count.unpinned++;
    free(memory);
    return CUDA_SUCCESS;
}

static CUresult fake_to_device(CUdeviceptr to, const void *from, size_t bytes, CUstream stream)
{
    fake.count.host_to_device++;
    return fake_ask(stream, (work){.kind = FAKE_COPY, .to = (void *)to, .from = from, .bytes = bytes});
}

static CUresult fake_to_host(void *to, CUdeviceptr from, size_t bytes, CUstream stream)
{
    fake.count.device_to_host++;
    return fake_ask(stream, (work){.kind = FAKE_COPY, .to = to, .from = (void *)from, .bytes = bytes});
}

static CUresult fake_inside(CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream stream)
{
    fake.count.device_to_device++;
    return fake_ask(stream, (work){.kind = FAKE_COPY, .to = (void *)to, .from = (void *)from, .bytes = bytes});
}

static CUresult fake_peer(CUdeviceptr to, CUcontext here, CUdeviceptr from, CUcontext there, size_t bytes,
                          CUstream stream)
{
    fake.count.peers++;
    return here == there
               ? CUDA_ERROR_INVALID_VALUE
               : fake_ask(stream, (work){.kind = FAKE_COPY, .to = (void *)to, .from = (void *)from, .bytes = bytes});
}

static CUresult fake_set(CUdeviceptr to, unsigned char value, size_t bytes, CUstream stream)
{
    (void)value; /* the backend only ever clears */
    fake.count.sets++;
    return fake_ask(stream, (work){.kind = FAKE_SET, .to = (void *)to, .bytes = bytes});
}

static CUresult fake_module(CUmodule *module, const void *image)
{
    fake.count.modules++;
    *module = (CUmodule)strdup(image);
    return CUDA_SUCCESS;
}

static CUresult fake_unload(CUmodule module)
{
    fake.count.unloads++;
    free(module);
    return CUDA_SUCCESS;
}

/* A function is the place of its name in the module's text. */
static bool is_letter(char c) { return c == '_' || isalnum((unsigned char)c); }

/* Where a text has a name as a whole word; NULL: nowhere. */
static const char *word_in(const char *text, const char *name)
{
    for (const char *at = strstr(text, name); at; at = strstr(at + 1, name))
        if ((at == text || !is_letter(at[-1])) && !is_letter(at[strlen(name)]))
            return at;
    return NULL;
}

static CUresult fake_function(CUfunction *function, CUmodule module, const char *name)
{
    *function = (CUfunction)word_in((const char *)module, name);
    if (fake.finds)
        fake.finds(*function, name);
    return *function ? CUDA_SUCCESS : CUDA_ERROR_NOT_FOUND;
}

static CUresult fake_function_get(int *value, CUfunction_attribute attribute, CUfunction function)
{
    (void)function;
    *value = attribute == CU_FUNC_ATTRIBUTE_NUM_REGS ? 128 : 0;
    return CUDA_SUCCESS;
}

static CUresult fake_function_set(CUfunction function, CUfunction_attribute attribute, int value)
{
    (void)function, (void)attribute, (void)value;
    fake.count.sets++;
    return CUDA_SUCCESS;
}

/* The work of a launch; kernels that the test has no function for do nothing. */
static work launched(CUfunction function, void **params)
{
    work w = {.kind = FAKE_LAUNCH};
    const void *call = fake.closes ? fake.closes(function, params) : NULL;
    if (call)
        return (work){.kind = FAKE_CALL, .call = call};
    sscanf((const char *)function, "%63[a-z_0-9]", w.name);
    if (w.name[0] != 'k' || !strchr("_0123456789", w.name[1]))
        return (work){.kind = FAKE_NOTHING};
    memcpy(w.words, params[0], (fake.words + fake.scalars) * sizeof *w.words);
    w.failure = *(const tn__cuda_failure *)params[1];
    return w;
}

static CUresult fake_launch(CUfunction function, unsigned x, unsigned y, unsigned z, unsigned tx, unsigned ty,
                            unsigned tz, unsigned shared, CUstream stream, void **params, void **extra)
{
    (void)extra;
    if (y != 1 || z != 1 || ty != 1 || tz != 1)
        return CUDA_ERROR_INVALID_VALUE;
    if (fake.next_launch != CUDA_SUCCESS)
        return fake.next_launch;
    fake.count.launches++;
    fake.blocks = x;
    fake.threads = tx;
    fake.shared = shared;
    sscanf((const char *)function, "%63[a-z_0-9]", fake.kernel);
    return fake_ask(stream, launched(function, params));
}

/* ---- graphs ---- */

static CUresult fake_capture(CUstream stream, CUstreamCaptureMode mode)
{
    (void)mode;
    fake.count.captures++;
    if (fake.no_capture)
        return CUDA_ERROR_NOT_SUPPORTED;
    capturing = calloc(1, sizeof *capturing);
    captured_stream = stream;
    return capturing ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

static CUresult fake_captured(CUstream stream, CUgraph *graph)
{
    (void)stream;
    *graph = (CUgraph)capturing;
    fake.count.graphs += capturing != NULL;
    capturing = NULL;
    return CUDA_SUCCESS;
}

/* A node is the place of its work. */
static CUresult fake_capture_info(CUstream stream, CUstreamCaptureStatus *status, cuuint64_t *id, CUgraph *graph,
                                  const CUgraphNode **nodes, const CUgraphEdgeData **edges, size_t *count)
{
    static CUgraphNode node;
    (void)stream, (void)id, (void)graph, (void)edges;
    *status = capturing ? CU_STREAM_CAPTURE_STATUS_ACTIVE : CU_STREAM_CAPTURE_STATUS_NONE;
    node = capturing ? (CUgraphNode)&capturing->node[capturing->count - 1] : NULL;
    *nodes = &node;
    *count = 1;
    return CUDA_SUCCESS;
}

static CUresult fake_instantiate(CUgraphExec *exec, CUgraph graph, unsigned long long flags)
{
    if (fake.no_room > 0 && fake.no_room--)
        return CUDA_ERROR_OUT_OF_MEMORY;
    fake_graph *made = malloc(sizeof *made), *of = (fake_graph *)graph;
    if (made == NULL || flags)
        return CUDA_ERROR_OUT_OF_MEMORY;
    made->count = of->count;
    memcpy(made->node, of->node, (size_t)of->count * sizeof *of->node);
    made->original = of->node;
    *exec = (CUgraphExec)made;
    fake.count.graphs++;
    return CUDA_SUCCESS;
}

static CUresult fake_create_graph(CUgraph *graph, unsigned flags)
{
    if (fake.no_capture || flags)
        return CUDA_ERROR_NOT_SUPPORTED;
    *graph = (CUgraph)calloc(1, sizeof(fake_graph));
    fake.count.graphs++;
    fake.edges = fake.early = fake.roots = 0;
    return *graph ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

static CUresult fake_add_node(CUgraphNode *node, CUgraph to, const CUgraphNode *wait, size_t waits,
                              const CUDA_KERNEL_NODE_PARAMS *params)
{
    fake_graph *graph = (fake_graph *)to;
    if (graph->count == MOST_NODES)
        abort();
    if (fake.most_nodes && graph->count == fake.most_nodes)
        return CUDA_ERROR_OUT_OF_MEMORY;
    for (size_t i = 0; i < waits; i++) /* for nodes of this graph, each once */
        for (size_t k = 0; k <= i; k++)
            if ((work *)wait[i] < graph->node || (work *)wait[i] >= graph->node + graph->count ||
                (k < i && wait[k] == wait[i]))
                return CUDA_ERROR_INVALID_VALUE;
    fake.count.launches++;
    fake.edges += (int)waits;
    fake.last_root = waits == 0;
    fake.roots += fake.last_root;
    graph->node[graph->count] = launched(params->func, params->kernelParams);
    *node = (CUgraphNode)&graph->node[graph->count++];
    return CUDA_SUCCESS;
}

static CUresult fake_add_child(CUgraphNode *node, CUgraph to, const CUgraphNode *wait, size_t waits, CUgraph child)
{
    fake_graph *graph = (fake_graph *)to;
    const fake_graph *part = (fake_graph *)child;
    bool chained = graph->count ? waits == 1 && (work *)*wait == graph->node + graph->count - 1 : waits == 0;
    if (!chained || (fake.most_nodes && graph->count + part->count > fake.most_nodes))
        return CUDA_ERROR_INVALID_VALUE;
    if (graph->count + part->count > MOST_NODES)
        abort();
    memcpy(graph->node + graph->count, part->node, (size_t)part->count * sizeof *part->node);
    graph->count += part->count;
    *node = (CUgraphNode)&graph->node[graph->count - 1];
    return CUDA_SUCCESS;
}

static CUresult fake_add_edges(CUgraph graph, const CUgraphNode *from, const CUgraphNode *to,
                               const CUgraphEdgeData *data, size_t count)
{
    (void)graph, (void)from, (void)to;
    if (data->from_port != CU_GRAPH_KERNEL_NODE_PORT_PROGRAMMATIC ||
        data->type != CU_GRAPH_DEPENDENCY_TYPE_PROGRAMMATIC)
        return CUDA_ERROR_INVALID_VALUE;
    fake.roots -= fake.last_root;
    fake.last_root = 0;
    fake.edges += (int)count;
    fake.early += (int)count;
    return CUDA_SUCCESS;
}

static CUresult fake_graph_end(CUgraph graph)
{
    fake.count.graphs_gone++;
    free(graph);
    return CUDA_SUCCESS;
}

static CUresult fake_exec_end(CUgraphExec exec)
{
    fake.count.graphs_gone++;
    free(exec);
    return CUDA_SUCCESS;
}

static CUresult fake_graph_launch(CUgraphExec exec, CUstream stream)
{
    const fake_graph *graph = (fake_graph *)exec;
    fake.count.graph_launches++;
    for (int i = 0; i < graph->count; i++)
        fake_ask(stream, graph->node[i]);
    return CUDA_SUCCESS;
}

static CUresult fake_patch(CUgraphExec exec, CUgraphNode node, const CUDA_KERNEL_NODE_PARAMS *params)
{
    fake_graph *graph = (fake_graph *)exec;
    fake.count.patches++;
    graph->node[(work *)node - graph->original] = launched(params->func, params->kernelParams);
    return CUDA_SUCCESS;
}

/* ---- the compiler: its machine code is the text ---- */

static nvrtcResult fake_compiler_version(int *major, int *minor)
{
    *major = 13;
    *minor = 0;
    return NVRTC_SUCCESS;
}

static const char *fake_compiler_error(nvrtcResult result) { return result ? "FAKE_COMPILATION" : "none"; }

static nvrtcResult fake_arch_count(int *count)
{
    *count = 2;
    return NVRTC_SUCCESS;
}

static nvrtcResult fake_archs(int *list)
{
    list[0] = 80;
    list[1] = 90;
    return NVRTC_SUCCESS;
}

static nvrtcResult fake_create(nvrtcProgram *program, const char *source, const char *name, int count,
                               const char *const *headers, const char *const *names)
{
    (void)name, (void)count, (void)headers, (void)names;
    *program = (nvrtcProgram)strdup(source);
    return NVRTC_SUCCESS;
}

static nvrtcResult fake_destroy(nvrtcProgram *program)
{
    free(*program);
    *program = NULL;
    return NVRTC_SUCCESS;
}

static nvrtcResult fake_compile(nvrtcProgram program, int count, const char *const *options)
{
    static pthread_mutex_t one = PTHREAD_MUTEX_INITIALIZER; /* several batches are compiled side by side */
    bool fmad = true;
    pthread_mutex_lock(&one);
    for (int i = 0; i < count; i++) {
        fmad = fmad && strcmp(options[i], "--fmad=false") != 0;
        sscanf(options[i], "--gpu-architecture=%63s", fake.target);
    }
    fake.count.compilations++;
    if (fake.compiles)
        fake.compiles((const char *)program);
    pthread_mutex_unlock(&one);
    return fmad || strstr((const char *)program, "#error") ? NVRTC_ERROR_COMPILATION : NVRTC_SUCCESS;
}

static nvrtcResult fake_size(nvrtcProgram program, size_t *size)
{
    *size = strlen((const char *)program) + 1;
    return NVRTC_SUCCESS;
}

static nvrtcResult fake_code(nvrtcProgram program, char *code)
{
    strcpy(code, (const char *)program);
    return NVRTC_SUCCESS;
}

static nvrtcResult fake_log_size(nvrtcProgram program, size_t *size)
{
    (void)program;
    *size = sizeof "the compiler's log";
    return NVRTC_SUCCESS;
}

static nvrtcResult fake_log(nvrtcProgram program, char *log)
{
    (void)program;
    strcpy(log, "the compiler's log");
    return NVRTC_SUCCESS;
}

/* ---- together ---- */

static tn__cuda_libraries libraries = {
    .driver = {.cuInit = fake_init,
               .cuDriverGetVersion = fake_version,
               .cuGetErrorName = fake_error,
               .cuGetErrorString = fake_error,
               .cuDeviceGetCount = fake_device_count,
               .cuDeviceGet = fake_device_get,
               .cuDeviceGetName = fake_name,
               .cuDeviceGetAttribute = fake_attribute,
               .cuDeviceTotalMem = fake_total,
               .cuDevicePrimaryCtxRetain = fake_retain,
               .cuDevicePrimaryCtxRelease = fake_let_go,
               .cuCtxSetCurrent = fake_current,
               .cuDeviceCanAccessPeer = fake_can_reach,
               .cuCtxEnablePeerAccess = fake_reach,
               .cuMemcpyPeerAsync = fake_peer,
               .cuStreamCreate = fake_stream,
               .cuStreamDestroy = fake_stream_end,
               .cuStreamSynchronize = fake_stream_wait,
               .cuStreamWaitEvent = fake_stream_follow,
               .cuStreamQuery = fake_stream_ask,
               .cuEventCreate = fake_event,
               .cuEventDestroy = fake_event_end,
               .cuEventRecord = fake_record,
               .cuEventSynchronize = fake_event_wait,
               .cuEventQuery = fake_event_ask,
               .cuEventElapsedTime = fake_elapsed,
               .cuMemGetInfo = fake_memory,
               .cuDeviceGetPCIBusId = fake_bus,
               .cuMemAlloc = fake_allocate,
               .cuMemFree = fake_free,
               .cuMemAllocHost = fake_pin,
               .cuMemFreeHost = fake_unpin,
               .cuMemcpyHtoDAsync = fake_to_device,
               .cuMemcpyDtoHAsync = fake_to_host,
               .cuMemcpyDtoDAsync = fake_inside,
               .cuMemsetD8Async = fake_set,
               .cuModuleLoadData = fake_module,
               .cuModuleUnload = fake_unload,
               .cuModuleGetFunction = fake_function,
               .cuFuncGetAttribute = fake_function_get,
               .cuFuncSetAttribute = fake_function_set,
               .cuLaunchKernel = fake_launch},
    .graphs = {.cuStreamBeginCapture = fake_capture,
               .cuStreamEndCapture = fake_captured,
               .cuStreamGetCaptureInfo = fake_capture_info,
               .cuGraphCreate = fake_create_graph,
               .cuGraphAddKernelNode = fake_add_node,
               .cuGraphAddChildGraphNode = fake_add_child,
               .cuGraphAddDependencies = fake_add_edges,
               .cuGraphInstantiate = fake_instantiate,
               .cuGraphDestroy = fake_graph_end,
               .cuGraphExecDestroy = fake_exec_end,
               .cuGraphLaunch = fake_graph_launch,
               .cuGraphExecKernelNodeSetParams = fake_patch},
    .compiler = {.nvrtcVersion = fake_compiler_version,
                 .nvrtcGetErrorString = fake_compiler_error,
                 .nvrtcGetNumSupportedArchs = fake_arch_count,
                 .nvrtcGetSupportedArchs = fake_archs,
                 .nvrtcCreateProgram = fake_create,
                 .nvrtcDestroyProgram = fake_destroy,
                 .nvrtcCompileProgram = fake_compile,
                 .nvrtcGetProgramLogSize = fake_log_size,
                 .nvrtcGetProgramLog = fake_log,
                 .nvrtcGetCUBINSize = fake_size,
                 .nvrtcGetCUBIN = fake_code,
                 .nvrtcGetPTXSize = fake_size,
                 .nvrtcGetPTX = fake_code},
    .driver_version = 13000,
    .compiler_version = 99990, /* no real one: what it leaves in the cache is not for a GPU */
    .device_count = GPUS,
};

static tn__device *open_with(bool graphs)
{
    static tn__device device;
    static void *volatile before[64]; /* devices live as long as the process, with what they hold */
    static size_t count;
    fake_flush();
    libraries.has_graphs = graphs;
    tn__cuda_use(&libraries);
    memset(&fake, 0, sizeof fake);
    fake.memory_left = (size_t)1 << 30;
    fake.words = 4;
    fake.scalars = 2;
    before[count++ % (sizeof before / sizeof *before)] = device.backend_data;
    memset(&device, 0, sizeof device);
    if (tn__plugin_cuda.backend->open(0, &device) != TN_OK)
        return NULL;
    fake_flush();
    memset(&fake.count, 0, sizeof fake.count);
    return &device;
}

void fake_use(void)
{
    libraries.has_graphs = true;
    memset(&fake, 0, sizeof fake);
    fake.memory_left = (size_t)1 << 40;
    tn__cuda_use(&libraries);
}

tn__device *fake_open(void) { return open_with(true); }

tn__device *fake_open_without_graphs(void) { return open_with(false); }
