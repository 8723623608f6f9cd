/* SPDX-License-Identifier: MIT */
/*
 * libcuda.so.1 and libnvrtc (cuda/library.h) of a GPU of the generation TANSO_TEXTS_GPU (80, 90, 100) whose kernels do
 * nothing; each text that it would run is kept as $TANSO_TEXTS_FOLDER/<hash>.cu. See tests/kernel_texts.
 *
 * With TANSO_TEXTS_COMPILER=/usr/local/cuda/lib64/libnvrtc.so.13 that compiler, too, translates every text, and what it
 * makes is dropped: the time that compiling takes is seen where there is no GPU (bench/first).
 */
#define MOST_NODES 8192 /* of a graph: steps of deep and recurrent networks have thousands */
#include "cuda/library.h"

#include "core/hash.h"

#include <dlfcn.h>
#include <unistd.h>

/* The machine code of that compiler is the text. Several processes may meet the same one: each writes a file of its
 * own. */
static CUresult keep(CUmodule *module, const void *image)
{
    const char *folder = getenv("TANSO_TEXTS_FOLDER"), *text = image;
    char path[4096], written[4120];
    uint64_t hash = tn__hash(text, strlen(text), 0);
    snprintf(path, sizeof path, "%s/%016llx.cu", folder ? folder : ".", (unsigned long long)hash);
    snprintf(written, sizeof written, "%s.%ld", path, (long)getpid());
    if (folder && access(path, F_OK) != 0) {
        FILE *file = fopen(written, "w");
        if (file == NULL || fputs(text, file) < 0 || fclose(file) != 0 || rename(written, path) != 0) {
            perror(written);
            abort();
        }
    }
    return fake_module(module, image);
}

/* ---- a real compiler beside ---- */

static tn__cuda_compiler real;

#define FOUND(name) \
    void *found_##name = dlsym(handle, #name); \
    memcpy(&real.name, &found_##name, sizeof real.name);

/* Not before the library has opened its own compiler: the loader would give it this one, of the same name. */
static void open_real(void)
{
    void *handle = dlopen(getenv("TANSO_TEXTS_COMPILER"), RTLD_NOW | RTLD_LOCAL);
    if (handle == NULL) {
        fprintf(stderr, "%s\n", dlerror());
        abort();
    }
    TN__CUDA_COMPILER(FOUND)
}

static nvrtcResult compile_twice(nvrtcProgram program, int count, const char *const *options)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    nvrtcProgram twin;
    pthread_once(&once, open_real);
    nvrtcResult result = real.nvrtcCreateProgram(&twin, (const char *)program, "kernels.cu", 0, NULL, NULL);
    if (result != NVRTC_SUCCESS)
        return result;
    result = real.nvrtcCompileProgram(twin, count, options);
    real.nvrtcDestroyProgram(&twin);
    return result == NVRTC_SUCCESS ? fake_compile(program, count, options) : result;
}

__attribute__((constructor)) static void prepare(void)
{
    const char *generation = getenv("TANSO_TEXTS_GPU");
    library_prepare();
    library_choose(generation ? atoi(generation) : 90);
    libraries.driver.cuModuleLoadData = keep;
    if (getenv("TANSO_TEXTS_COMPILER"))
        libraries.compiler.nvrtcCompileProgram = compile_twice;
}
