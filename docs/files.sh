#!/bin/sh
# SPDX-License-Identifier: MIT
# files.sh CHECKOUT: prints docs/files.md, a line a file of src/: the first sentence of the comment that each begins
# with. Rooms come in the order of src/rooms.txt.
set -eu
cd "$1/src"
cat <<'END'
# Files

What each source file holds, by the first sentence of the comment it begins with. Printed by [`files.sh`](files.sh);
`ninja -C build docs` writes it anew. [architecture.md](architecture.md) says how they work together.
END
sed -n 's/^\([a-z/]*\):.*/\1/p' rooms.txt | while read -r room; do
    find "$room" -maxdepth 1 '(' -name '*.[ch]' -o -name '*.cuh' -o -name '*.cl' -o -name '*.def' ')' | LC_ALL=C sort
done | while read -r file; do
    awk -v file="$file" '
        FNR == 1 { next }
        {
            line = $0
            sub(/^ *\/?\*+\/?/, "", line)
            done = line ~ /\*\/ *$/ || $0 ~ /^ *\*\/ *$/
            sub(/ *\*\/ *$/, "", line)
            gsub(/^ +| +$/, "", line)
            if (line == "" && text != "") exit
            if (line != "") text = text (text == "" ? "" : " ") line
            if (done || FNR > 30) exit
        }
        END {
            if (match(text, /\. +[A-Z]/)) text = substr(text, 1, RSTART)
            sub(/:$/, ".", text)
            gsub(/\|/, "\\|", text)
            gsub(/</, "\\&lt;", text)
            print file "\t" text
        }' "$file"
done | awk -F '\t' '
    {
        folder = $1
        sub(/\/[^\/]*$/, "", folder)
        if (folder != last) printf "\n## %s\n\n| file | holds |\n| --- | --- |\n", folder
        last = folder
        name = $1
        sub(/.*\//, "", name)
        printf "| [%s](../src/%s) | %s |\n", name, $1, $2
    }'
