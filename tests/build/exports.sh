#!/bin/sh
# SPDX-License-Identifier: MIT
# exports.sh NM LIBRARY: every symbol that the shared library exports starts with tn_.
symbols=$("$1" -D --defined-only --format=posix "$2" | cut -d' ' -f1) || exit 1
foreign=$(printf '%s\n' "$symbols" | grep -v '^tn_')
if [ -n "$foreign" ]; then
    printf 'exported, but not named tn_...:\n%s\n' "$foreign"
    exit 1
fi
printf '%s\n' "$symbols" | grep -c '^tn_'
