#!/bin/sh
# SPDX-License-Identifier: MIT
# snippets.sh CHECKOUT WORK CC LIBDIR: every ```c block of the documentation that has a main compiles and links
# as printed.
set -eu
checkout=$1 work=$2 cc=$3 libdir=$4 failed=0 count=0
rm -rf "$work"
mkdir -p "$work"

pages=$(find "$checkout/docs" "$checkout/README.md" -name '*.md' 2>/dev/null || true)
[ -n "$pages" ] || exit 77
# shellcheck disable=SC2086 # one page a word: no page of ours has a space in its name
awk -v work="$work" '
    FNR == 1 { inside = 0; page = FILENAME; gsub(/.*\//, "", page); sub(/\.md$/, "", page) }
    /^```/ && inside { inside = 0; close(file); next }
    /^```c$/ { inside = 1; file = work "/" page "-" FNR ".c"; printf "" > file; next }
    inside { print > file }
' $pages

for file in "$work"/*.c; do
    if ! grep -q 'int main(' "$file" 2>/dev/null; then
        continue
    fi
    count=$((count + 1))
    "$cc" -std=gnu11 -Wall -Werror -I"$checkout/include" "$file" -o "${file%.c}" -L"$libdir" -ltanso -lm ||
        { echo "FAILED: $file"; failed=1; }
done
echo "$count snippets"
exit $failed
