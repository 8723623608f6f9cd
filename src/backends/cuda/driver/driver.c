/* SPDX-License-Identifier: MIT */
/* Finding and opening CUDA's libraries. */
#include "backends/cuda/driver/driver.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/log.h"
#include "core/signals.h"

#define OLDEST_DRIVER 12000

static tn__cuda_libraries opened;
static const tn__cuda_libraries *libraries;
static char why_absent[512];

#define TEXT_OF(name) #name
#define EXPANDED_TEXT(name) TEXT_OF(name)
#define DRIVER_ENTRY(name) {EXPANDED_TEXT(name), offsetof(tn__cuda_libraries, driver.name)},
#define GRAPHS_ENTRY(name) {EXPANDED_TEXT(name), offsetof(tn__cuda_libraries, graphs.name)},
#define COMPILER_ENTRY(name) {EXPANDED_TEXT(name), offsetof(tn__cuda_libraries, compiler.name)},
#define BLAS_ENTRY(name) {EXPANDED_TEXT(name), offsetof(tn__cuda_libraries, blas.name)},

static const tn__cuda_entry driver_entries[] = {TN__CUDA_DRIVER(DRIVER_ENTRY)};
static const tn__cuda_entry graphs_entries[] = {TN__CUDA_GRAPHS(GRAPHS_ENTRY)};
static const tn__cuda_entry compiler_entries[] = {TN__CUDA_COMPILER(COMPILER_ENTRY)};
static const tn__cuda_entry blas_entries[] = {TN__CUDA_BLAS(BLAS_ENTRY)};

#define COUNT(table) (int)(sizeof(table) / sizeof *(table))

/* ---- opening by name ---- */

/* Does dlopen's message mean that the library itself is absent? That a library which it needs is absent is a different
 * error. */
static bool not_there(const char *path, const char *why)
{
    size_t length = strlen(path);
    return strncmp(why, path, length) == 0 && why[length] == ':' && strstr(why, "No such file") != NULL;
}

static _Thread_local char why_not[256]; /* why the last library that tn__cuda_open_versioned found could not be
                                           loaded; "": none */

/* Opens a library; one that is there but cannot be loaded is reported in why_not. */
static void *open_file(const char *path)
{
    void *handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    const char *why = handle ? NULL : dlerror();
    if (why && !not_there(path, why)) {
        snprintf(why_not, sizeof why_not, "%s", why);
        tn__log(TN__LOG_WARN, "cuda", "%s cannot be loaded: %s", path, why);
    }
    return handle;
}

void *tn__cuda_open_versioned(const char *stem, int newest, int oldest)
{
    static const char *const places[] = {"", "/usr/local/cuda/lib64/", "/usr/local/cuda/lib/"};
    const char *root = getenv("CUDA_HOME");
    char path[1024];
    why_not[0] = 0;
    for (int major = newest; major >= oldest; major--) {
        if (root && *root) {
            snprintf(path, sizeof path, "%.900s/lib64/%s.%d", root, stem, major);
            void *handle = open_file(path);
            if (handle)
                return handle;
        }
        for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
            snprintf(path, sizeof path, "%s%s.%d", places[i], stem, major);
            void *handle = open_file(path);
            if (handle)
                return handle;
        }
    }
    return NULL;
}

const char *tn__cuda_find_functions(void *handle, const tn__cuda_entry *entries, int count, void *to)
{
    for (int i = 0; i < count; i++) {
        void *function = dlsym(handle, entries[i].name);
        if (function == NULL)
            return entries[i].name;
        memcpy((char *)to + entries[i].offset, &function, sizeof function);
    }
    return NULL;
}

/* ---- what must be there ---- */

static bool absent(const char *format, ...) __attribute__((format(printf, 1, 2)));
static bool absent(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    vsnprintf(why_absent, sizeof why_absent, format, args);
    va_end(args);
    return false;
}

/* ---- what need not be there ---- */

static char missing[TN__CUDA_PARTS][512];

static void miss(tn__cuda_part part, tn__log_level level, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
static void miss(tn__cuda_part part, tn__log_level level, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    vsnprintf(missing[part], sizeof missing[part], format, args);
    va_end(args);
    tn__log(level, "cuda", "%s", missing[part]);
}

const char *tn__cuda_missing_part(tn__cuda_part part)
{
    return missing[part];
}

#define GET(what)   "install " what ", or set LD_LIBRARY_PATH to where it is"
#define GET_TOOLKIT GET("CUDA's toolkit")
#define NOT_OPENED  *why_not ? "cannot be loaded: " : "not found", why_not

static const struct {
    const char *stem, *costs;
    tn__log_level level;
    const char *get, *newer;
} parts[TN__CUDA_PARTS] = {
    [TN__CUDA_BLAS_PART] = {"libcublasLt.so",
                            "large products of matrices, and all of float16 and bfloat16, are computed by a plain "
                            "kernel, many times slower",
                            TN__LOG_WARN, GET_TOOLKIT, "toolkit"},
    [TN__CUDA_FFT_PART] = {"libcufft.so", "Fourier transforms are computed on the CPU", TN__LOG_INFO,
                           GET_TOOLKIT, "toolkit"},
    [TN__CUDA_SOLVER_PART] = {"libcusolver.so",
                              "decompositions of matrices and systems of equations are computed on the CPU",
                              TN__LOG_INFO, GET_TOOLKIT, "toolkit"},
    [TN__CUDA_DNN_PART] = {"libcudnn.so",
                           "convolutions are computed as products of windows, slower and with more memory",
                           TN__LOG_INFO, GET("cuDNN 9"), "cuDNN 9"},
};

bool tn__cuda_open_part(tn__cuda_part part, int newest, int oldest, const tn__cuda_entry *entries, int count, void *to)
{
    void *handle = tn__cuda_open_versioned(parts[part].stem, newest, oldest);
    const char *lacks = handle ? tn__cuda_find_functions(handle, entries, count, to) : NULL;
    if (handle == NULL)
        miss(part, parts[part].level, "%s.%d %s%s: %s; %s", parts[part].stem, newest, NOT_OPENED, parts[part].costs,
             parts[part].get);
    else if (lacks)
        miss(part, parts[part].level, "%s.%d lacks %s: %s; install a newer %s", parts[part].stem, newest, lacks,
             parts[part].costs, parts[part].newer);
    return handle && lacks == NULL;
}

/* ---- opening all ---- */

static bool open_driver(void)
{
    void *handle = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    const char *why = handle ? NULL : dlerror();
    if (why && not_there("libcuda.so.1", why))
        return absent("libcuda.so.1 not found: NVIDIA's driver is not installed");
    if (handle == NULL)
        return absent("NVIDIA's driver cannot be loaded: %s", why ? why : "libcuda.so.1");
    int (*version)(int *) = NULL;
    void *symbol = dlsym(handle, "cuDriverGetVersion");
    memcpy(&version, &symbol, sizeof version);
    int result = version ? version(&opened.driver_version) : CUDA_ERROR_NOT_FOUND;
    if (result != CUDA_SUCCESS)
        return absent("libcuda.so.1 does not tell its version (error %d)%s", result,
                      result == CUDA_ERROR_STUB_LIBRARY ? ": it is the toolkit's stub, not NVIDIA's driver" : "");
    int major = opened.driver_version / 1000, minor = opened.driver_version % 1000 / 10;
    if (opened.driver_version < OLDEST_DRIVER)
        return absent("the driver is too old: it serves CUDA %d.%d, and %d.%d or newer is needed", major, minor,
                      OLDEST_DRIVER / 1000, OLDEST_DRIVER % 1000 / 10);
    const char *lacks = tn__cuda_find_functions(handle, driver_entries, COUNT(driver_entries), &opened);
    if (lacks)
        return absent("the driver, which serves CUDA %d.%d, lacks %s: install a newer one", major, minor, lacks);
    lacks = tn__cuda_find_functions(handle, graphs_entries, COUNT(graphs_entries), &opened);
    opened.has_graphs = lacks == NULL;
    if (lacks)
        miss(TN__CUDA_GRAPHS_PART, TN__LOG_INFO,
             "the driver lacks %s: programs are launched step by step, and small ones wait for the host; install a "
             "newer driver",
             lacks);
    return true;
}

static bool count_devices(void)
{
    const char *text = "unknown";
    CUresult result = opened.driver.cuInit(0);
    if (result == CUDA_SUCCESS)
        result = opened.driver.cuDeviceGetCount(&opened.device_count);
    if (result == CUDA_ERROR_NO_DEVICE || (result == CUDA_SUCCESS && opened.device_count == 0))
        return absent("there is a driver, but no GPU that it may use (CUDA_VISIBLE_DEVICES hides GPUs, too)");
    if (result != CUDA_SUCCESS) {
        opened.driver.cuGetErrorString(result, &text);
        return absent("the driver does not start: error %d, %s", (int)result, text);
    }
    return true;
}

/* Opens NVRTC of at most this major version: the driver does not run code of a newer compiler. */
bool tn__cuda_open_compiler(tn__cuda_libraries *to, int major)
{
    int found = 0, minor = 0;
    void *handle = tn__cuda_open_versioned("libnvrtc.so", major, OLDEST_DRIVER / 1000);
    if (handle == NULL && tn__cuda_open_versioned("libnvrtc.so", major + 1, major + 1))
        return absent("the driver is too old: it serves CUDA %d, and the toolkit here (libnvrtc.so.%d) needs %d.0",
                      major, major + 1, major + 1);
    if (handle == NULL)
        return absent("libnvrtc.so.%d %s%s, and no kernel can be compiled for a GPU without it: " GET_TOOLKIT, major,
                      NOT_OPENED);
    const char *lacks = tn__cuda_find_functions(handle, compiler_entries, COUNT(compiler_entries), to);
    if (lacks)
        return absent("libnvrtc.so.%d lacks %s", major, lacks);
    if (to->compiler.nvrtcVersion(&found, &minor) != NVRTC_SUCCESS)
        return absent("libnvrtc does not tell its version");
    to->compiler_version = 1000 * found + 10 * minor;
    return true;
}

static void open_all(void)
{
    sigset_t before;
    tn__signals_hold(&before);
    if (libraries == NULL && open_driver() && count_devices() &&
        tn__cuda_open_compiler(&opened, opened.driver_version / 1000)) {
        opened.has_blas = tn__cuda_open_part(TN__CUDA_BLAS_PART, opened.driver_version / 1000, OLDEST_DRIVER / 1000,
                                             blas_entries, COUNT(blas_entries), &opened);
        opened.has_others = true;
        libraries = &opened;
    }
    tn__signals_let(&before);
}

const tn__cuda_libraries *tn__cuda_open(const char **why)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, open_all);
    if (libraries == NULL && why)
        *why = why_absent;
    return libraries;
}

void tn__cuda_use(const tn__cuda_libraries *given)
{
    libraries = given;
}
