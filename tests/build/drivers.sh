#!/bin/sh
# SPDX-License-Identifier: MIT
# drivers.sh TANSO CC FOLDER SOURCES DRIVER: what `tanso info` says of drivers that are too old, broken or without a
# GPU, each made here as a libcuda.so.1 that is looked into first; and that a program that asks for cuda:0 is told the
# same. Then, with a GPU, which DRIVER (of the tests, with its compiler) has: what it says where libraries of the
# toolkit are not there (dlopen is made not to find them, whatever this machine has), and what a first run says of its
# pause.
set -eu
tanso=$1 cc=$2 folder=$3 sources=$4 good=$5
rm -rf "$folder"
mkdir -p "$folder"
unset CUDA_HOME
export ASAN_OPTIONS="${ASAN_OPTIONS-}:verify_asan_link_order=0" # which else insists on being preloaded first
hide='' # beginnings of names, or of paths, that dlopen is not to find
with() {
    LD_LIBRARY_PATH=$folder/$1 HIDE=$hide LD_PRELOAD=${hide:+$folder/hide.so} "$tanso" $2 2>&1
}

# NAME VERSION RESULT COUNT LACKS: a driver whose cuInit gives RESULT.
driver() {
    mkdir -p "$folder/$1"
    {
        echo "int cuDriverGetVersion(int *version) { *version = $2; return $2 ? 0 : 34; }"
        echo "int cuInit(unsigned flags) { return flags ? 1 : $3; }"
        echo "int cuDeviceGetCount(int *count) { *count = $4; return 0; }"
        echo "int cuGetErrorString(int result, const char **text) { *text = \"its own words\"; return result; }"
        for name in cuGetErrorName cuDeviceGet cuDeviceGetName cuDeviceGetAttribute cuDeviceTotalMem_v2 \
            cuDevicePrimaryCtxRetain cuDevicePrimaryCtxRelease_v2 cuCtxSetCurrent cuDeviceCanAccessPeer \
            cuCtxEnablePeerAccess cuMemcpyPeerAsync cuStreamCreate cuStreamDestroy_v2 \
            cuStreamSynchronize cuStreamQuery cuStreamWaitEvent cuEventCreate cuEventDestroy_v2 cuEventRecord \
            cuEventSynchronize cuEventQuery cuEventElapsedTime cuEventElapsedTime_v2 cuMemGetInfo_v2 \
            cuDeviceGetPCIBusId cuMemAlloc_v2 cuMemFree_v2 cuMemAllocHost_v2 cuMemFreeHost cuMemcpyHtoDAsync_v2 \
            cuMemcpyDtoHAsync_v2 cuMemcpyDtoDAsync_v2 cuMemsetD8Async cuModuleLoadData cuModuleUnload \
            cuModuleGetFunction cuFuncGetAttribute cuFuncSetAttribute cuLaunchKernel; do
            [ "$name" = "$5" ] || echo "int $name(void) { return 999; }"
        done
    } >"$folder/$1/driver.c"
    "$cc" -shared -fPIC -w -o "$folder/$1/libcuda.so.1" "$folder/$1/driver.c"
}

# NAME TEXT: with it, cuda is absent for this reason.
says() {
    said=$(with "$1" info) || { echo "$1: info failed: $said"; exit 1; }
    echo "$said" | grep -q "^ *cuda  *absent: $2" || { echo "$1: expected '$2', got: $said"; exit 1; }
    echo "$said" | grep -q "^default  *cpu" || { echo "$1: the default is not the CPU: $said"; exit 1; }
    if said=$(with "$1" "train digits --epochs 1 --device cuda:0"); then
        echo "$1: training on cuda:0 did not fail"
        exit 1
    fi
    echo "$said" | grep -q "cuda:0 is not available: $2" || { echo "$1: expected '$2', got: $said"; exit 1; }
}

driver old 11080 0 1 none
says old "the driver is too old: it serves CUDA 11.8, and 12.0 or newer is needed"
driver lacks 13000 0 1 cuMemsetD8Async
says lacks "the driver, which serves CUDA 13.0, lacks cuMemsetD8Async: install a newer one"
driver hidden 13000 100 0 none
says hidden "there is a driver, but no GPU that it may use"
driver empty 13000 0 0 none
says empty "there is a driver, but no GPU that it may use"
driver broken 13000 803 0 none
says broken "the driver does not start: error 803, its own words"
driver stub 0 34 0 none
says stub "libcuda.so.1 does not tell its version (error 34): it is the toolkit's stub, not NVIDIA's driver"
mkdir -p "$folder/junk"
echo "no library" >"$folder/junk/libcuda.so.1"
says junk "NVIDIA's driver cannot be loaded: .*libcuda.so.1"
echo "7 drivers"

# ---- with a driver, without libraries of the toolkit ----

if ! [ -e "$good" ]; then
    rm -rf "$folder"
    echo "no driver of the tests: the toolkit's libraries are not looked at"
    exit 0
fi
cat >"$folder/hide.c" <<'END'
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
static char hidden[1100];
static void *(*next_open)(const char *, int);
static char *(*next_error)(void);
__attribute__((constructor)) static void find(void)
{
    *(void **)&next_open = dlsym(RTLD_NEXT, "dlopen");
    *(void **)&next_error = dlsym(RTLD_NEXT, "dlerror"); /* now: a search forgets the error */
}
void *dlopen(const char *path, int flags)
{
    const char *name = path && strrchr(path, '/') ? strrchr(path, '/') + 1 : path;
    char words[200];
    hidden[0] = 0;
    snprintf(words, sizeof words, "%s", getenv("HIDE"));
    for (char *word = strtok(words, " "); path && word; word = strtok(NULL, " "))
        if (strncmp(name, word, strlen(word)) == 0 || strncmp(path, word, strlen(word)) == 0)
            snprintf(hidden, sizeof hidden, "%s: cannot open shared object file: No such file or directory", path);
    return hidden[0] || !next_open ? NULL : next_open(path, flags);
}
char *dlerror(void)
{
    return hidden[0] ? hidden : next_error ? next_error() : NULL; /* a sanitizer asks before find() has run */
}
END
"$cc" -shared -fPIC -w -o "$folder/hide.so" "$folder/hide.c" -ldl

# FILE STEM SOURCE: a library with all functions of that stem that the source names.
library() {
    grep -o "\<$2[A-Z][A-Za-z0-9_]*" "$sources/$3" | sort -u | sed 's/.*/int &(void) { return 999; }/' >"$folder/stub.c"
    "$cc" -shared -fPIC -w -o "$folder/$1" "$folder/stub.c"
}
mkdir -p "$folder/whole"
cp -L "$good" "$folder/whole/libcuda.so.1"
for major in 12 13 14 15; do
    ln -s libcuda.so.1 "$folder/whole/libnvrtc.so.$major"
done
major=$(with whole info | sed -n 's/.*driver for CUDA \([0-9]*\)\..*/\1/p' | head -n 1)
fft=libcufft.so.$((major - 1)) solver=libcusolver.so.$((major - 1)) blas=libcublasLt.so.$major
library "whole/$blas" cublasLt driver/driver.h
library "whole/$fft" cufft linalg/library_open.c
library "whole/$solver" cusolver linalg/library_open.c
library whole/libcudnn.so.9 cudnn convolution/open.c

# NAME COUNT TEXT: a GPU is there, and so many things are missing; one of them is what the text says.
misses() {
    said=$(with "$1" info) || { echo "$1 without '$hide': info failed: $said"; exit 1; }
    echo "$said" | grep -q '^ *cuda:0 .*compute capability' || { echo "$1 without '$hide': no cuda:0: $said"; exit 1; }
    said=$(echo "$said" | grep -v '^tanso: ') # its log
    [ "$(echo "$said" | grep -c 'libcu.*\(install\|CPU\)')" = "$2" ] ||
        { echo "$1 without '$hide': expected $2 missing, got: $said"; exit 1; }
    [ "$2" = 0 ] || echo "$said" | grep -q "  $3" || { echo "$1 without '$hide': expected '$3', got: $said"; exit 1; }
}
toolkit="install CUDA's toolkit, or set LD_LIBRARY_PATH to where it is"

misses whole 0
hide=libnvrtc
says whole "libnvrtc.so.$major not found, and no kernel can be compiled for a GPU without it: $toolkit"
hide=libcublasLt
misses whole 1 "missing    $blas not found: large products of matrices, and all of float16.*many times slower; $toolkit"
hide=libcufft
misses whole 1 "missing    $fft not found: Fourier transforms are computed on the CPU; $toolkit"
hide=libcusolver
misses whole 1 "missing    $solver not found: decompositions of matrices and systems.* on the CPU; $toolkit"
hide=libcudnn
misses whole 1 "missing    libcudnn.so.9 not found: convolutions .* products of windows.*; install cuDNN 9, or set LD"
hide='libcublasLt libcufft libcusolver'
for text in "missing    $blas not found" " $fft not found" " $solver not found"; do
    misses whole 3 "$text"
done
cp -R "$folder/whole" "$folder/parts"
echo 'int cufftCreate(void) { return 999; }' >"$folder/stub.c"
"$cc" -shared -fPIC -w -o "$folder/parts/$fft" "$folder/stub.c"
echo "no library" >"$folder/parts/$solver"
hide="/usr/local/cuda libcusolver.so.$((major - 2))"
misses parts 2 "missing    $fft lacks cufftDestroy: Fourier transforms are computed on the CPU; install a newer toolkit"
misses parts 2 "$solver cannot be loaded: .*$solver: .*: decompositions of matrices"
hide=''
echo "9 sets of libraries"

# ---- the first run's pause ----

# TIMES WHAT TEXT: so many lines say that kernels are compiled, on standard error alone; this text is in them.
pauses() {
    LD_LIBRARY_PATH=$folder/whole "$tanso" train digits --epochs 1 --device cuda:0 --out "$folder/run" $3 \
        >"$folder/out" 2>"$folder/said" || { echo "$2: training failed: $(cat "$folder/out" "$folder/said")"; exit 1; }
    [ "$(grep -c 'compiling for' "$folder/said")" = "$1" ] && ! grep -q 'compiling for' "$folder/out" &&
        { [ "$1" = 0 ] || grep -q "^tanso: note: kernels: compiling for Fake 0, .*$4" "$folder/said"; } ||
        { echo "$2: expected $1 lines with '$4', got: $(cat "$folder/said")"; exit 1; }
}
unset TANSO_LOG
export TANSO_CACHE_DIR="$folder/cache"
pauses 1 "first run" "" "kept in $folder/cache/kernels\$"
pauses 0 "second run" ""
rm -rf "$folder/cache"
pauses 0 "quiet first run" "--quiet"
rm -rf "$folder/cache"
TANSO_LOG=warn pauses 0 "first run with warnings only" ""
rm -rf "$folder/cache"
TANSO_LOG=info pauses 1 "quiet first run with TANSO_LOG=info" "--quiet" "kept in $folder/cache/kernels\$"
mkdir -p "$folder/open/kernels"
chmod 777 "$folder/open" "$folder/open/kernels"
TANSO_CACHE_DIR=$folder/open pauses 1 "run without a cache" "" "not kept, so the next run waits, too"
echo "6 first and later runs"
rm -rf "$folder"
