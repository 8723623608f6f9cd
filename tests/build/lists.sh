#!/bin/sh
# SPDX-License-Identifier: MIT
# lists.sh INCLUDE CC [CXX]: options that are lists, or other structures, take no bare number in C, with each compiler
# that there is, whether the headers are the system's or not; in C++ a number and braces are lists.
include=$1 failed=0 tried=0
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

calls='
tn_sum(x);
tn_sum(x, .axis = TN_AXES(1));
tn_sum(x, .axis = TN_AXES(0, n), .keepdims = true);
tn_sum(x, .axis = axes);
tn_sum(tn_mean(x, .axis = TN_AXES(0)), .axis = TN_AXES(tn_ndim(tn_max(x, .axis = axes))));
tn_fft_fftn(x, .s = TN_SHAPE(4, 5), .axes = TN_AXES(0, 1));
tn_fft_fftn(x, .s = shape);
tn_zeros(TN_SHAPE(3), .device = tn_cpu());
tn_transpose(x, axes);'
# What another macro of ours must not have changed behind it.
lax='(void)(int[2][2]){1, 2, 3, 4}; tn_sum(x, .axis = axes); (void)(int[2][2]){1, 2, 3, 4};'

numbers='
tn_sum(x, .axis = 1);
tn_sum(x, .axis = 0);
tn_sum(x, .axis = -1);
tn_sum(x, .axis = n);
tn_sum(x, .axis = 1, .keepdims = true);
tn_sum(x, .axis = {1});
tn_sum(x, .axis = {0});
tn_sum(x, .axis = {0, 1});
tn_fft_fftn(x, .s = 4);
tn_fft_fftn(x, .s = {4});
tn_fft_fftn(x, .axes = 0);
tn_median(x, .axis = 0);
tn_sort(x, .axis = 0);
tn_unique(x, .axis = 0);
tn_linalg_norm(x, .axis = 1);
tn_cross(x, w, .result = 0);
tn_take_any(x, w, .axis = 0);'

compile() { # language, statements, command ...
    printf '#include <tanso.h>\nextern tn_array *x, *w;\nextern tn_axes axes;\nextern tn_shape shape;\n%s\n%s\n' \
        'extern int n;' "void f(void); void f(void) { $2 }" >"$folder/program"
    language=$1
    shift 2
    tried=$((tried + 1))
    "$@" -x "$language" -fsyntax-only "$folder/program" >"$folder/said" 2>&1
}

takes() {
    compile "$@" || { echo "FAILED: $*"; cat "$folder/said"; failed=1; }
}

refuses() { # language, statements of which each alone is refused, command ...
    language=$1 statements=$2
    shift 2
    echo "$statements" >"$folder/statements"
    while IFS= read -r statement; do
        [ -n "$statement" ] || continue
        compile "$language" "$statement" "$@" && { echo "FAILED: is taken: $statement by $*"; failed=1; }
    done <"$folder/statements"
}

in_c() { # command ...
    takes c "$calls $lax" "$@"
    takes c "$calls tn_transpose(x, (tn_axes){0});" "$@" -Wall -Wextra -Werror -pedantic-errors
    refuses c "$numbers
tn_zeros(TN_SHAPE(3), .device = 1);" "$@"
}

in_cxx() {
    takes c++ "$calls $numbers" "$@"
    takes c++ 'tn_zeros_with({2, 3}, NULL); tn_zeros(3); tn_transpose(x, {}); tn_squeeze(x, 0);' "$@"
    takes c++ 'static_assert(sizeof(tn_axes) == 9 * sizeof(int) && sizeof(tn_shape) == 72, "as in C");' "$@"
}

case $("$2" --version) in
*clang*) other=gcc other_cxx=g++ ;;
*) other=clang other_cxx=clang++ ;;
esac
compilers=$2 cxx_compilers=$3
command -v $other >/dev/null && compilers="$compilers $other"
[ -n "$3" ] && command -v $other_cxx >/dev/null && cxx_compilers="$cxx_compilers $other_cxx"
for cc in $compilers; do
    for standard in c11 c2x; do
        in_c "$cc" -std=$standard -I"$include"
        in_c "$cc" -std=$standard -isystem "$include"
    done
done
for cxx in $cxx_compilers; do
    for standard in c++11 c++17 c++20; do in_cxx "$cxx" -std=$standard -I"$include"; done
    takes c++ "$calls $numbers" "$cxx" -std=c++20 -I"$include" -Wall -Wextra -Werror -pedantic-errors
done
echo "$tried compilations by $compilers $cxx_compilers"
[ "$failed" = 0 ] && [ "$tried" -gt 40 ]
