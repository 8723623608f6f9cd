/* SPDX-License-Identifier: MIT */
/* One value in all elements of a window. */
extern "C" __global__ void fill(const __grid_constant__ walk w, S *to, S value, const unsigned long long *guard)
{
    STOP_IF_FAILED(guard);
    for EACH(i, w.size) {
        i64 at[3];
        places(w, i, at);
        to[at[0]] = value;
    }
}
