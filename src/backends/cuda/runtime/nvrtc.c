/* SPDX-License-Identifier: MIT */
/* NVRTC: texts compiled to machine code for the GPU that is there. */
#include <stdio.h>
#include <string.h>

#include "backends/cuda/runtime/cuda.h"
#include "core/error.h"
#include "core/memory.h"

/* No fused multiply-add, so that the CPU computes the same bits; division, square roots and small numbers are
 * IEEE's. */
static const char *const options[] = {"--fmad=false", "--ftz=false", "--prec-div=true", "--prec-sqrt=true",
                                      "--std=c++17",  "-default-device"};
enum { OPTIONS = sizeof options / sizeof *options };

static tn_status compiler_failed(const tn__cuda_compiler *compiler, nvrtcResult result)
{
    return tn__fail(result == NVRTC_ERROR_OUT_OF_MEMORY ? TN_ERR_MEMORY : TN_ERR_COMPILE, "kernels", "NVRTC: %s",
                    compiler->nvrtcGetErrorString(result));
}

/* Suffix of the architecture. Machine code need only run on this GPU: from compute capability 9.0 on it may use the
 * instructions that only this architecture has. */
static const char *features(int architecture) { return architecture >= 90 ? "a" : ""; }

/* The architecture to compile for: the GPU's own, or the newest one before it that the compiler knows. */
static int known_architecture(const tn__cuda_compiler *compiler, int wanted)
{
    int list[64], count = 0, best = 0;
    if (compiler->nvrtcGetNumSupportedArchs(&count) != NVRTC_SUCCESS || count > 64 ||
        compiler->nvrtcGetSupportedArchs(list) != NVRTC_SUCCESS)
        return wanted;
    for (int i = 0; i < count; i++)
        if (list[i] <= wanted && list[i] > best)
            best = list[i];
    return best ? best : wanted;
}

static tn_status show_log(const tn__cuda_compiler *compiler, nvrtcProgram program, nvrtcResult result)
{
    size_t length = 0;
    compiler->nvrtcGetProgramLogSize(program, &length);
    char *log = tn__calloc(1, length + 1);
    if (log)
        compiler->nvrtcGetProgramLog(program, log);
    tn_status status = tn__fail(TN_ERR_COMPILE, "kernels", "NVRTC: %s\n%s", compiler->nvrtcGetErrorString(result),
                                log ? log : "(no memory for its log)");
    tn__free(log);
    return status;
}

static tn_status take_image(const tn__cuda_compiler *compiler, nvrtcProgram program, bool machine_code, char **code,
                            size_t *length)
{
    nvrtcResult result = machine_code ? compiler->nvrtcGetCUBINSize(program, length)
                                      : compiler->nvrtcGetPTXSize(program, length);
    if (result != NVRTC_SUCCESS)
        return compiler_failed(compiler, result);
    *code = tn__alloc(*length);
    if (*code == NULL)
        return tn__fail_memory("kernels", *length);
    result = machine_code ? compiler->nvrtcGetCUBIN(program, *code) : compiler->nvrtcGetPTX(program, *code);
    if (result == NVRTC_SUCCESS)
        return TN_OK;
    tn__free(*code);
    return compiler_failed(compiler, result);
}

tn_status tn__cuda_compile(const tn__cuda_libraries *libraries, int architecture, const char *source, char **code,
                           size_t *length)
{
    const tn__cuda_compiler *compiler = &libraries->compiler;
    nvrtcProgram program;
    nvrtcResult result = compiler->nvrtcCreateProgram(&program, source, "kernels.cu", 0, NULL, NULL);
    if (result != NVRTC_SUCCESS)
        return compiler_failed(compiler, result);
    int known = known_architecture(compiler, architecture);
    const char *all[OPTIONS + 1];
    char target[40];
    snprintf(target, sizeof target, "--gpu-architecture=%s_%d%s", known == architecture ? "sm" : "compute", known,
             known == architecture ? features(architecture) : "");
    memcpy(all, options, sizeof options);
    all[OPTIONS] = target;
    result = tn__cuda_compile_program(compiler, program, OPTIONS + 1, all);
    tn_status status = result == NVRTC_SUCCESS
                           ? take_image(compiler, program, known == architecture, code, length)
                           : show_log(compiler, program, result);
    compiler->nvrtcDestroyProgram(&program);
    return status;
}

void tn__cuda_add_identity(const tn__cuda_device *device, tn__text *key)
{
    tn__text_addf(key, "tanso cuda kernels 2\nNVRTC %d, sm_%d%s\n", device->libraries->compiler_version,
                  device->architecture, features(device->architecture));
    for (int i = 0; i < OPTIONS; i++)
        tn__text_addf(key, "%s\n", options[i]);
}
