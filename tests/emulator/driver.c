/* SPDX-License-Identifier: MIT */
/*
 * libcuda.so.1 and libnvrtc (cuda/library.h) of a GPU of sm_80 whose kernels run on the processor at hand: their texts
 * are compiled by translate.py, into $TANSO_EMULATOR_FOLDER/<hash>.so. See tests/emulated.
 */
#include "cuda/library.h"

#include "core/hash.h"
#include "emulator/block.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

/* ---- the compiler: its machine code is the text, beside which the library lies ---- */

static _Thread_local char *compiler_log; /* of this thread's last program */

static void path_of(const char *text, char *path, size_t size)
{
    const char *folder = getenv("TANSO_EMULATOR_FOLDER");
    snprintf(path, size, "%s/%016llx.so", folder ? folder : ".", (unsigned long long)tn__hash(text, strlen(text), 0));
}

/* What the compiler says goes to a file. */
static bool run(char *const *command, const char *says)
{
    posix_spawn_file_actions_t actions;
    pid_t child;
    int status = -1;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, says, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    bool begun = posix_spawnp(&child, command[0], &actions, NULL, command, environ) == 0;
    posix_spawn_file_actions_destroy(&actions);
    return begun && waitpid(child, &status, 0) == child && status == 0;
}

static void read_log(const char *path)
{
    FILE *file = fopen(path, "r");
    free(compiler_log);
    compiler_log = calloc(1, 1 << 14);
    if (file && compiler_log)
        compiler_log[fread(compiler_log, 1, (1 << 14) - 1, file)] = 0;
    if (file)
        fclose(file);
}

static bool compile(const char *text)
{
    char library[4096], source[4200], says[4200];
    path_of(text, library, sizeof library);
    if (access(library, F_OK) == 0)
        return true;
    snprintf(source, sizeof source, "%s.%ld.cu", library, (long)getpid());
    snprintf(says, sizeof says, "%s.%ld.log", library, (long)getpid());
    FILE *file = fopen(source, "w");
    bool done = file != NULL && fputs(text, file) >= 0;
    done = file != NULL && fclose(file) == 0 && done;
    char *command[] = {"python3", "-B", TANSO_EMULATOR_TRANSLATE, source, library, NULL};
    done = done && run(command, says);
    read_log(says);
    remove(source);
    remove(says);
    return done;
}

static nvrtcResult compile_program(nvrtcProgram program, int count, const char *const *options)
{
    nvrtcResult result = fake_compile(program, count, options);
    return result != NVRTC_SUCCESS || compile((const char *)program) ? result : NVRTC_ERROR_COMPILATION;
}

static nvrtcResult log_size(nvrtcProgram program, size_t *size)
{
    (void)program;
    *size = compiler_log ? strlen(compiler_log) + 1 : 1;
    return NVRTC_SUCCESS;
}

static nvrtcResult log_text(nvrtcProgram program, char *log)
{
    (void)program;
    strcpy(log, compiler_log ? compiler_log : "");
    return NVRTC_SUCCESS;
}

/* ---- modules ---- */

static CUresult load(CUmodule *module, const void *image)
{
    char path[4096];
    path_of(image, path, sizeof path);
    *module = compile(image) ? dlopen(path, RTLD_NOW | RTLD_LOCAL) : NULL; /* again, if the text was in a cache */
    if (*module == NULL)
        fprintf(stderr, "emulator: %s: %s\n", path, compiler_log ? compiler_log : dlerror());
    return *module ? CUDA_SUCCESS : CUDA_ERROR_INVALID_IMAGE;
}

/* What waits in streams may still run its kernels: a library stays. */
static CUresult unload(CUmodule module) { return (void)module, CUDA_SUCCESS; }

static CUresult function_of(CUfunction *function, CUmodule module, const char *name)
{
    char symbol[128];
    snprintf(symbol, sizeof symbol, "emulated_%s", name);
    *function = dlsym(module, symbol);
    return *function ? CUDA_SUCCESS : CUDA_ERROR_NOT_FOUND;
}

/* ---- launches ---- */

#define MOST_ARGUMENTS 32

/* A kernel with its arguments, whose values follow it; it lives as long as the process, as streams and graphs may run
 * it at any time. */
typedef struct closure {
    const emulated_kernel *kernel;
    emulated_launch launch;
    void *argument[MOST_ARGUMENTS];
} closure;

static _Thread_local emulated_launch launch; /* of what is being launched, or put into a graph */

static const void *close_over(CUfunction function, void **params)
{
    const emulated_kernel *kernel = (const emulated_kernel *)function;
    size_t bytes = sizeof(closure);
    int count = 0;
    while (kernel->sizes[count])
        bytes += (kernel->sizes[count++] + 15) & ~(size_t)15;
    closure *c = aligned_alloc(64, (bytes + 63) & ~(size_t)63);
    if (c == NULL || count > MOST_ARGUMENTS)
        abort();
    c->kernel = kernel;
    c->launch = launch;
    char *at = (char *)(c + 1);
    for (int i = 0; i < count; i++) {
        c->argument[i] = memcpy(at, params[i], kernel->sizes[i]);
        at += (kernel->sizes[i] + 15) & ~(size_t)15;
    }
    return c;
}

static void call(const void *given)
{
    const closure *c = given;
    emulated_run(c->kernel, &c->launch, c->argument);
}

static CUresult put(CUfunction function, unsigned x, unsigned y, unsigned z, unsigned tx, unsigned ty, unsigned tz,
                    unsigned shared, CUstream stream, void **params, void **extra)
{
    launch = (emulated_launch){x, tx, shared};
    return fake_launch(function, x, y, z, tx, ty, tz, shared, stream, params, extra);
}

static CUresult add(CUgraphNode *node, CUgraph to, const CUgraphNode *wait, size_t waits,
                    const CUDA_KERNEL_NODE_PARAMS *params)
{
    launch = (emulated_launch){params->gridDimX, params->blockDimX, params->sharedMemBytes};
    return fake_add_node(node, to, wait, waits, params);
}

static CUresult change(CUgraphExec exec, CUgraphNode node, const CUDA_KERNEL_NODE_PARAMS *params)
{
    launch = (emulated_launch){params->gridDimX, params->blockDimX, params->sharedMemBytes};
    return fake_patch(exec, node, params);
}

/* For libraries of the tests' own (tests/nccl): what goes on elsewhere, and is done when `goes` says so. */
__attribute__((visibility("default"))) CUresult emulated_put(CUstream stream, bool (*goes)(const void *call),
                                                             const void *call)
{
    return fake_put(stream, &(fake_work){.kind = FAKE_CALL, .goes = goes, .call = call});
}

/* How often a stream was told to wait for an event of another one. */
__attribute__((visibility("default"))) int emulated_follows(void) { return fake.count.follows; }

/* ---- memory of other processes, whose handles are known here, but which cannot be reached ---- */

__attribute__((visibility("default"))) CUresult cuIpcGetMemHandle(CUipcMemHandle *handle, CUdeviceptr memory)
{
    const uint64_t words[] = {(uint64_t)getpid(), memory};
    memset(handle, 0, sizeof *handle);
    memcpy(handle, words, sizeof words);
    return CUDA_SUCCESS;
}

__attribute__((visibility("default"))) CUresult cuIpcOpenMemHandle(CUdeviceptr *memory, CUipcMemHandle handle,
                                                                   unsigned flags)
{
    uint64_t words[2];
    (void)flags;
    memcpy(words, &handle, sizeof words);
    *memory = words[1];
    return words[0] == (uint64_t)getpid() ? CUDA_SUCCESS : CUDA_ERROR_MAP_FAILED;
}

__attribute__((visibility("default"))) CUresult cuIpcCloseMemHandle(CUdeviceptr memory)
{
    return memory ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

__attribute__((constructor)) static void prepare(void)
{
    library_prepare();
    library_choose(80);
    fake.most_nodes = MOST_NODES;
    fake.closes = close_over;
    fake.calls = call;
    libraries.driver.cuModuleLoadData = load;
    libraries.driver.cuModuleUnload = unload;
    libraries.driver.cuModuleGetFunction = function_of;
    libraries.driver.cuLaunchKernel = put;
    libraries.compiler.nvrtcCompileProgram = compile_program;
    libraries.compiler.nvrtcGetProgramLogSize = log_size;
    libraries.compiler.nvrtcGetProgramLog = log_text;
    libraries.graphs.cuGraphAddKernelNode = add;
    libraries.graphs.cuGraphExecKernelNodeSetParams = change;
}
