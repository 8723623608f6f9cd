#!/bin/sh
# SPDX-License-Identifier: MIT
# drivers.sh TANSO CC FOLDER: what `tanso info` says of drivers that are too old, broken or without a GPU, each made
# here as a libcuda.so.1 that is looked into first; and that a program that asks for cuda:0 is told the same.
set -eu
tanso=$1 cc=$2 folder=$3
rm -rf "$folder"
mkdir -p "$folder"
unset CUDA_HOME

# NAME VERSION RESULT COUNT LACKS: a driver whose cuInit gives RESULT.
driver() {
    mkdir -p "$folder/$1"
    {
        echo "int cuDriverGetVersion(int *version) { *version = $2; return $2 ? 0 : 34; }"
        echo "int cuInit(unsigned flags) { return flags ? 1 : $3; }"
        echo "int cuDeviceGetCount(int *count) { *count = $4; return 0; }"
        echo "int cuGetErrorString(int result, const char **text) { *text = \"its own words\"; return result; }"
        for name in cuGetErrorName cuDeviceGet cuDeviceGetName cuDeviceGetAttribute cuDeviceTotalMem_v2 \
            cuDevicePrimaryCtxRetain cuDevicePrimaryCtxRelease_v2 cuCtxSetCurrent cuStreamCreate cuStreamDestroy_v2 \
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
    said=$(LD_LIBRARY_PATH=$folder/$1 "$tanso" info 2>&1) || { echo "$1: info failed: $said"; exit 1; }
    echo "$said" | grep -q "^ *cuda  *absent: $2" || { echo "$1: expected '$2', got: $said"; exit 1; }
    echo "$said" | grep -q "^default  *cpu" || { echo "$1: the default is not the CPU: $said"; exit 1; }
    if said=$(LD_LIBRARY_PATH=$folder/$1 "$tanso" train digits --epochs 1 --device cuda:0 2>&1); then
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
rm -rf "$folder"
