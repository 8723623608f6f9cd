#!/bin/sh
# SPDX-License-Identifier: MIT
# lost.sh TANSO PROGRAM FOLDER: on the driver in FOLDER, which loses its GPU: commands and programs that wait for it end
# with a status that is not zero and the error, which names what was under way; of others, stderr tells when they end.
set -eu
tanso=$1 program=$2 folder=$3
unset CUDA_HOME CUDA_PATH
export TANSO_LOG=error LD_LIBRARY_PATH="$folder" TANSO_CACHE_DIR="$folder/cache"
mkdir -p -m 700 "$folder/cache"

fail() {
    echo "$1"
    exit 1
}

# AFTER STATUS COMMAND...: leaves what the command says in $said.
run() {
    after=$1 expected=$2
    shift 2
    status=0
    said=$(TANSO_LOSE_AFTER=$after "$@" 2>&1) || status=$?
    [ "$status" -eq "$expected" ] || fail "$*, lost after $after launches: status $status, expected $expected: $said"
}

# TEXT: a basic regular expression that must be in what was said, so many times.
says() {
    found=$(echo "$said" | grep -c -e "$1" || true)
    [ "$found" -eq "$2" ] || fail "expected $2 times '$1', got: $said"
}

for after in 1 3 40; do
    run "$after" 1 "$tanso" train digits --epochs 1 --device cuda:0 --out "$folder/out"
    says "cuda:0 is lost after .*; the work under way was plan [0-9]*: const.*, TANSO_CUDA_BLOCKING=1 tells" 1
done
says "plan [0-9]*: k_[0-9a-f]* random_uniform .*, and [0-9]* more steps (started last)" 1
run 0 0 "$tanso" train digits --epochs 1 --device cuda:0 --out "$folder/out"
says "is lost" 0

run 1 1 "$program" asks
says "cuda:0 is lost after .*; the work under way was kernel stomp, TANSO_CUDA_BLOCKING=1 tells" 1
run 2 1 "$program" asks
says "cuda:0 is lost after .*; the work under way was kernel stomp; plan 1 (cubin [0-9a-f]*): k_[0-9a-f]* exp" 1
run 1 0 "$program"
says "^tanso: error: cuda: cuda:0 is lost after .* was kernel stomp, .*; no call has waited for it" 1
run 0 0 "$program"
[ -z "$said" ] || fail "expected silence, got: $said"
rm -rf "$folder/cache" "$folder/out"
echo "8 programs"
