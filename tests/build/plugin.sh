#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# plugin.sh COMMAND FOLDER: the command computes on a device of a kind that the library does not know, whose plug-in
# lies beside it: OpenCL's. It does so as well as the CPU. 77 if there is no such device.
set -euo pipefail

command=$1
folder=$2
mkdir -p "$folder"
export TANSO_CACHE_DIR=$folder/cache POCL_CACHE_DIR=$folder/pocl TANSO_OPENCL_OPTIONS=-cl-opt-disable
mkdir -p -m 700 "$TANSO_CACHE_DIR" "$POCL_CACHE_DIR"

# The line of the only epoch: losses and accuracy, the 5th, 8th and 10th of its words.
train() { # device
    "$command" train digits --model linear:10 --epochs 1 --batch 500 --seed 3 --device "$1" --out "$folder/run" \
        >"$folder/log" 2>&1 || {
        cat "$folder/log"
        grep -q 'no OpenCL device' "$folder/log" && exit 77
        exit 1
    }
    grep -q "on $1" "$folder/log"
    grep '^epoch 1/1' "$folder/log"
}

cpu=$(train cpu)
opencl=$(train opencl:0)
printf '%s\n' "$cpu" "$opencl"
# Losses about 2, of a network that both begin with: they differ by the rounding of float32 alone, and what is printed
# has four digits behind the point; of 360 samples one may be on the other side.
awk '{ for (i = 1; i <= 3; i++) value[NR, i] = $(i == 1 ? 5 : i == 2 ? 8 : 10) + 0 }
     function apart(i) { return value[1, i] > value[2, i] ? value[1, i] - value[2, i] : value[2, i] - value[1, i] }
     END { exit !(NR == 2 && value[1, 1] > 1 && apart(1) < 0.001 && apart(2) < 0.001 && apart(3) < 0.6) }' \
    <<<"$cpu"$'\n'"$opencl"
