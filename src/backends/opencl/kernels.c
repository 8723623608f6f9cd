/* SPDX-License-Identifier: MIT */
/* Compiled kernels, which a device keeps by their names, and starting them. An OpenCL that caches what it compiles, as
 * most do, keeps them beyond the process. */
#include "backends/opencl/opencl.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/dtype.h"
#include "core/error.h"
#include "core/memory.h"
#include "tn_embed.h"

/* Replaces `long long` by `long`, the 64-bit type of OpenCL C, which reserves `long long` for 128 bits. */
static void respell(char *text)
{
    for (char *at = text; (at = strstr(at, "long long")); at += 9)
        memset(at + 4, ' ', 5);
    for (char *at = text; (at = strstr(at, "ll")); at += 2) { /* at the end of a number: 0ll, 0x1full */
        const char *word = at;
        while (word > text && (isalnum((unsigned char)word[-1]) || word[-1] == '_'))
            word--;
        if (isdigit((unsigned char)*word) && !isalnum((unsigned char)at[2]) && at[2] != '_')
            at[1] = ' ';
    }
}

static tn_status build_failed(tn__cl_device *device, cl_program program)
{
    size_t size = 0;
    clGetProgramBuildInfo(program, device->id, CL_PROGRAM_BUILD_LOG, 0, NULL, &size);
    char *log = tn__calloc(size + 1, 1);
    if (log)
        clGetProgramBuildInfo(program, device->id, CL_PROGRAM_BUILD_LOG, size, log, NULL);
    tn_status status = tn__fail(TN_ERR_COMPILE, device->name, "a kernel cannot be compiled: %.2000s", log ? log : "");
    tn__free(log);
    return status;
}

static tn_status build(tn__cl_device *device, char *text, const char *own, cl_program *program)
{
    cl_int error;
    char options[400];
    const char *source = text, *given = getenv("TANSO_OPENCL_OPTIONS");
    snprintf(options, sizeof options, "-w -cl-std=CL1.2 -cl-fp32-correctly-rounded-divide-sqrt%s %.200s", own,
             given ? given : "");
    respell(text);
    *program = clCreateProgramWithSource(device->context, 1, &source, NULL, &error);
    if (error != CL_SUCCESS)
        return tn__cl_check(device, error, "making a program");
    error = clBuildProgram(*program, 1, &device->id, options, NULL, NULL);
    if (error == CL_SUCCESS)
        return TN_OK;
    tn_status status = error == CL_BUILD_PROGRAM_FAILURE ? build_failed(device, *program)
                                                         : tn__cl_check(device, error, "compiling a kernel");
    clReleaseProgram(*program);
    return status;
}

static tn__cl_kernel *find(const tn__cl_device *device, const char *name)
{
    tn__cl_kernel *at = device->kernels;
    while (at && strcmp(at->name, name) != 0)
        at = at->next;
    return at;
}

/* Keeps kernel `entry` of a program under a name. */
static tn_status add(tn__cl_device *device, cl_program program, const char *entry, const char *name)
{
    cl_int error;
    tn__cl_kernel *made = tn__calloc(1, sizeof *made);
    if (made == NULL)
        return tn__fail_memory(device->name, sizeof *made);
    snprintf(made->name, sizeof made->name, "%s", name);
    made->kernel = clCreateKernel(program, entry, &error);
    if (error != CL_SUCCESS) {
        tn__free(made);
        return tn__cl_check(device, error, "making a kernel");
    }
    made->next = device->kernels;
    device->kernels = made;
    return TN_OK;
}

static tn_status compile(tn__cl_device *device, const tn__program *program, int count, const int *number)
{
    cl_program built;
    char *text = tn__program_text_of(program, count, number);
    tn_status status = text ? build(device, text, "", &built) : tn__fail_memory(device->name, 0);
    tn__free(text);
    if (status != TN_OK)
        return status;
    for (int i = 0; i < count && status == TN_OK; i++)
        status = add(device, built, program->text.kernel[number[i]].name, program->text.kernel[number[i]].name);
    clReleaseProgram(built); /* its kernels keep it alive */
    return status;
}

tn_status tn__cl_program_kernels(tn__cl_device *device, const tn__program *program, cl_kernel *kernel)
{
    const tn__program_text *text = &program->text;
    int *number = tn__calloc((size_t)text->kernel_count + 1, sizeof *number), count = 0;
    if (number == NULL)
        return tn__fail_memory(device->name, sizeof *number);
    pthread_mutex_lock(&device->lock);
    for (int i = 0; i < text->kernel_count; i++)
        if (!find(device, text->kernel[i].name))
            number[count++] = i;
    tn_status status = count ? compile(device, program, count, number) : TN_OK;
    for (int i = 0; i < text->kernel_count && status == TN_OK; i++)
        kernel[i] = find(device, text->kernel[i].name)->kernel;
    pthread_mutex_unlock(&device->lock);
    tn__free(number);
    return status;
}

tn_status tn__cl_operation_kernel(tn__cl_device *device, const char *name, tn_dtype dtype, cl_kernel *kernel)
{
    char unique[40], own[40];
    cl_program built;
    tn_status status = TN_OK;
    snprintf(unique, sizeof unique, "%s_%s", name, tn__dtypes[dtype].suffix);
    snprintf(own, sizeof own, " -DSIZE=%d -DOF_%s", (int)tn__dtypes[dtype].size, tn__dtypes[dtype].suffix);
    pthread_mutex_lock(&device->lock);
    if (!find(device, unique)) {
        char *text = tn__strdup((const char *)tn__embed_opencl_operations);
        status = text ? build(device, text, own, &built) : tn__fail_memory(device->name, 0);
        tn__free(text);
        if (status == TN_OK) {
            status = add(device, built, name, unique);
            clReleaseProgram(built);
        }
    }
    if (status == TN_OK)
        *kernel = find(device, unique)->kernel;
    pthread_mutex_unlock(&device->lock);
    return status;
}

tn_status tn__cl_start(tn__cl_device *device, const tn__cl_launch *l, int64_t *fault)
{
    size_t global = l->blocks * l->threads, threads = l->threads;
    if (global == 0)
        return TN_OK;
    cl_int error = clSetKernelArgSVMPointer(l->kernel, 0, l->words);
    if (error == CL_SUCCESS)
        error = clSetKernelArgSVMPointer(l->kernel, 1, fault);
    if (error == CL_SUCCESS)
        error = clSetKernelArg(l->kernel, 2, l->shared ? l->shared : 16, NULL);
    if (error == CL_SUCCESS && l->reached_count)
        error = clSetKernelExecInfo(l->kernel, CL_KERNEL_EXEC_INFO_SVM_PTRS,
                                    (size_t)l->reached_count * sizeof *l->reached, l->reached);
    if (error == CL_SUCCESS)
        error = clEnqueueNDRangeKernel(device->queue, l->kernel, 1, NULL, &global, &threads, 0, NULL, NULL);
    return tn__cl_check(device, error, "starting a kernel");
}
