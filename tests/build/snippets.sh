#!/bin/sh
# SPDX-License-Identifier: MIT
# snippets.sh CHECKOUT WORK CC LIBDIR: every ```c block of the documentation that has a main compiles and links
# as printed. One marked ```c run is also run, in WORK: it must exit with 0 and print what the ```text block
# that follows it shows, if one does before the next block.
set -eu
checkout=$1 work=$2 cc=$3 libdir=$4 failed=0 count=0 runs=0
rm -rf "$work"
mkdir -p "$work"

pages=$(find "$checkout/docs" "$checkout/README.md" -name '*.md' 2>/dev/null || true)
[ -n "$pages" ] || exit 77
# shellcheck disable=SC2086 # one page a word: no page of ours has a space in its name
awk -v work="$work" '
    FNR == 1 { file = ""; shown = ""; page = FILENAME; gsub(/.*\//, "", page); sub(/\.md$/, "", page) }
    /^```/ && file != "" { close(file); file = ""; next }
    /^```c( run)?$/ {
        file = work "/" page "-" FNR ".c"
        printf "" > file
        shown = ""
        if (/run/) { shown = work "/" page "-" FNR ".shown"; printf "" > (work "/" page "-" FNR ".run") }
        next
    }
    /^```text$/ && shown != "" { file = shown; shown = ""; printf "" > file; next }
    /^```/ { file = "/dev/null"; shown = ""; next }
    file != "" { print > file }
' $pages

LD_LIBRARY_PATH=$libdir
export LD_LIBRARY_PATH
for file in "$work"/*.c; do
    name=${file%.c}
    if ! grep -q 'int main(' "$file" 2>/dev/null; then
        continue
    fi
    count=$((count + 1))
    "$cc" -std=gnu11 -Wall -Werror -I"$checkout/include" "$file" -o "$name" -L"$libdir" -ltanso -lm ||
        { echo "FAILED to compile: $file"; failed=1; continue; }
    [ -e "$name.run" ] || continue
    runs=$((runs + 1))
    (cd "$work" && timeout 60 "$name") >"$name.printed" ||
        { echo "FAILED with status $?: $file"; failed=1; continue; }
    if [ -e "$name.shown" ]; then
        diff -u "$name.shown" "$name.printed" || { echo "FAILED: $file prints something else"; failed=1; }
    fi
done
echo "$count snippets compiled, $runs run"
exit $failed
