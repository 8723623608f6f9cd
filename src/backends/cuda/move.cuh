/* SPDX-License-Identifier: MIT */
/* A copy between two windows, of elements of any type S of that size. */
extern "C" __global__ void move(const __grid_constant__ walk w, S *to, const S *from,
    const unsigned long long *guard)
{
    STOP_IF_FAILED(guard);
    for EACH(i, w.size) {
        i64 at[3];
        places(w, i, at);
        to[at[0]] = from[at[1]];
    }
}
