#!/bin/sh
# SPDX-License-Identifier: MIT
# exceptions.sh CHECKOUT WORK LIBDIR CXX: a C++ program whose functions throw exceptions through the library's frames.
set -eu
checkout=$1 work=$2 libdir=$3 cxx=$4
mkdir -p "$work"
"$cxx" -std=c++20 -Wall -Wextra -Werror -I"$checkout/include" -I"$checkout/tests/train" \
    "$checkout/tests/build/exceptions.cpp" -o "$work/exceptions" -L"$libdir" -ltanso
LD_LIBRARY_PATH=$libdir "$work/exceptions"
