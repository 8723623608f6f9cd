#!/bin/sh
# SPDX-License-Identifier: MIT
# snippets.sh CHECKOUT WORK CC LIBDIR [CXX]: every ```c block (with CXX, every ```cpp block too) of the
# documentation that has a main compiles and links as printed. One marked ```c run is also run, in WORK: it must
# exit with 0 and print what the ```text block that follows it shows, if one does before the next block. And the
# README's first program is examples/mnist.c.
set -eu
checkout=$1 work=$2 cc=$3 libdir=$4 cxx=${5-} failed=0 count=0 runs=0
rm -rf "$work"
mkdir -p "$work"

pages=$(find "$checkout/docs" "$checkout/README.md" -name '*.md' 2>/dev/null || true)
[ -n "$pages" ] || exit 77
# shellcheck disable=SC2086 # one page a word: no page of ours has a space in its name
awk -v work="$work" '
    FNR == 1 { file = ""; shown = ""; page = FILENAME; gsub(/.*\//, "", page); sub(/\.md$/, "", page) }
    /^```/ && file != "" { close(file); file = ""; next }
    /^```(c|cpp)( run)?$/ {
        name = work "/" page "-" FNR
        file = name (/cpp/ ? ".cpp" : ".c")
        printf "" > file
        shown = ""
        if (/ run$/) { shown = name ".shown"; printf "" > (name ".run") }
        next
    }
    /^```text$/ && shown != "" { file = shown; shown = ""; printf "" > file; next }
    /^```/ { file = "/dev/null"; shown = ""; next }
    file != "" { print > file }
' $pages

compile() { # file program
    case $1 in
    *.cpp) "$cxx" -std=c++20 -Wall -Wextra -pedantic -Werror -I"$checkout/include" "$1" -o "$2" -L"$libdir" -ltanso ;;
    *) "$cc" -std=gnu11 -Wall -Werror -I"$checkout/include" "$1" -o "$2" -L"$libdir" -ltanso -lm ;;
    esac
}

LD_LIBRARY_PATH=$libdir
export LD_LIBRARY_PATH
for file in "$work"/*.c "$work"/*.cpp; do
    name=${file%.*}
    grep -q 'int main(' "$file" 2>/dev/null || continue
    case $file in
    *.cpp) [ -n "$cxx" ] || continue ;;
    esac
    count=$((count + 1))
    compile "$file" "$name" || { echo "FAILED to compile: $file"; failed=1; continue; }
    [ -e "$name.run" ] || continue
    runs=$((runs + 1))
    (cd "$work" && timeout 60 "$name") >"$name.printed" ||
        { echo "FAILED with status $?: $file"; failed=1; continue; }
    if [ -e "$name.shown" ]; then
        diff -u "$name.shown" "$name.printed" || { echo "FAILED: $file prints something else"; failed=1; }
    fi
done

first=$(find "$work" -name 'README-*.c' | sort -t- -k2n | head -n 1)
sed -n '/^#include/,$p' "$checkout/examples/mnist.c" | diff -u "$first" - ||
    { echo "FAILED: the README's program is not examples/mnist.c"; failed=1; }

echo "$count snippets compiled, $runs run"
exit $failed
