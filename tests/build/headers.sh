#!/bin/sh
# SPDX-License-Identifier: MIT
# headers.sh INCLUDE CC [CXX]: each public header compiles alone, as strict C11 and as C++17, 20 and 23.
include=$1 cc=$2 cxx=$3 failed=0 count=0

check() { # language, command ...
    language=$1
    shift
    printf '#include <%s>\ntypedef int not_empty;\n' "$header" | "$@" -x "$language" -I"$include" -Wall -Wextra \
        -Werror -pedantic-errors -fsyntax-only - || { echo "FAILED: $header as $language"; failed=1; }
}

for path in "$include"/*.h "$include"/tanso/*.h; do
    header=${path#"$include"/}
    count=$((count + 1))
    check c "$cc" -std=c11
    if [ -n "$cxx" ]; then
        for standard in 17 20 2b; do check c++ "$cxx" -std=c++$standard; done
    fi
done
echo "$count headers"
[ "$failed" = 0 ] && [ "$count" -gt 1 ]
