/* SPDX-License-Identifier: MIT */
/* Sets to 0 the imaginary part of the first number of each row, and of number `last` unless `last` is 0. */
extern "C" __global__ void ends(R *numbers, i64 rows, i64 distance, i64 last)
{
    for EACH(i, rows) {
        numbers[2 * i * distance + 1] = 0;
        if (last)
            numbers[2 * (i * distance + last) + 1] = 0;
    }
}
