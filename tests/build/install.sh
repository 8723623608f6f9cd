#!/bin/sh
# SPDX-License-Identifier: MIT
# install.sh CMAKE BUILD CC SOURCE GENERATOR [CXX]: installs into a fresh folder and builds programs against
# that copy, shared and carried, by pkg-config and by find_package; then moves the copy and runs the command from its
# new place.
set -eu
cmake=$1 build=$2 cc=$3 source=$4 generator=$5 cxx=${6-}
here=$(dirname "$0")
work=$build/tests/install
prefix=$work/prefix
rm -rf "$work"
mkdir -p "$work"

"$cmake" --install "$build" --prefix "$prefix" >"$work/install.log"
libdir=$(dirname "$(find "$prefix" -name libtanso.so)")
[ -f "$prefix/include/tanso.h" ]
[ -n "$(find "$prefix/share" -name LICENSE)" ]

for header in "$source"/include/tanso/*.h; do
    cmp "$header" "$prefix/include/tanso/$(basename "$header")"
done

PKG_CONFIG_PATH=$libdir/pkgconfig
export PKG_CONFIG_PATH
flags=$(pkg-config --cflags --libs tanso)
# shellcheck disable=SC2086 # flags are words
"$cc" -std=c11 -Wall -Wextra -Wshadow -Wconversion -Wcast-qual -Werror "$here/consumer/main.c" \
    -o "$work/by-pkg-config" $flags
LD_LIBRARY_PATH=$libdir "$work/by-pkg-config"
# shellcheck disable=SC2046
"$cc" -std=c11 "$here/consumer/main.c" -o "$work/carries" $(pkg-config --cflags --libs tanso-static)
"$work/carries"

both() { # program, compiler flags ...: one program for C and C++; what it prints goes into a file of its name
    program=$1
    shift
    # shellcheck disable=SC2086
    "$@" -Wall -Wextra -Wshadow -Wconversion -pedantic -Werror "$here/consumer/$program.c" -o "$work/$program" $flags
    LD_LIBRARY_PATH=$libdir "$work/$program" "$work" >"$work/$program.printed"
}
both device_of "$cc" -std=c11
[ -z "$cxx" ] || both device_of "$cxx" -std=c++17 -x c++

# Keyword arguments are the same in both; the program has every function that takes some, optimizers by their list.
grep -hoE '^#define tn_[a-z0-9_]+\(\.\.\.\) +(TN__CALL|TN__TRAIN|TN__VECTORIZE|\\)' "$source"/include/tanso/*.h |
    sed 's/^#define //; s/(.*//' >"$work/with-keywords"
[ "$(wc -l <"$work/with-keywords")" -gt 150 ]
# shellcheck disable=SC2086
"$cc" -std=c11 -E "$here/consumer/keywords.c" $flags |
    awk '/^# [0-9]+ "/ { own = /keywords\.c"/ } own' >"$work/expanded"
while read -r name; do
    grep -q "$name(" "$here/consumer/keywords.c" || grep -qw "${name}_with" "$work/expanded" ||
        { echo "keywords.c has no call of $name" && exit 1; }
done <"$work/with-keywords"
both keywords "$cc" -std=c11
if [ -n "$cxx" ]; then
    mv "$work/keywords.printed" "$work/keywords.c.printed"
    both keywords "$cxx" -std=c++20 -x c++
    cmp "$work/keywords.c.printed" "$work/keywords.printed"
fi

"$cmake" -S "$here/consumer" -B "$work/consumer" -G "$generator" -DCMAKE_C_COMPILER="$cc" \
    -DCMAKE_PREFIX_PATH="$prefix" >"$work/consumer.log"
"$cmake" --build "$work/consumer" >>"$work/consumer.log"
"$work/consumer/consumer"
"$work/consumer/carries"

# As a part of another project: the library and the command, nothing else, and no settings of the project's changed.
"$cmake" -S "$here/consumer" -B "$work/part" -G "$generator" -DCMAKE_C_COMPILER="$cc" -DTANSO_SOURCE="$source" \
    >"$work/part.log"
for folder in tanso/tests tanso/examples tanso/bench tanso/docs generated; do
    if [ -d "$work/part/$folder" ]; then
        echo "$folder is made in a project that Tanso is a part of" && exit 1
    fi
done
if ! grep -q '^CMAKE_BUILD_TYPE:[A-Z]*=$' "$work/part/CMakeCache.txt"; then
    echo "the build type of a project that Tanso is a part of is changed" && exit 1
fi

mv "$prefix" "$work/moved"
if [ -x "$work/moved/bin/tanso" ]; then
    "$work/moved/bin/tanso" --help >/dev/null
fi
flags=$(PKG_CONFIG_PATH=$work/moved${libdir#"$prefix"}/pkgconfig pkg-config --cflags tanso)
case $flags in
*"$work/moved"*) ;;
*) echo "tanso.pc does not move with its prefix: $flags" && exit 1 ;;
esac
