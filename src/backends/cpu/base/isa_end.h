/* SPDX-License-Identifier: MIT */
/* Takes back the names of isa_avx512.h or isa_avx2.h. */
#undef TARGET
#undef ISA
#undef V
#undef MASK
#undef WIDTH
#undef ZERO
#undef SPREAD
#undef FMA
#undef FIRST
#undef LOAD
#undef STORE
#undef LOAD_ALL
#undef STORE_ALL
#undef FOURS
#undef LOW
#undef HIGH
#undef LOW_PAIRS
#undef HIGH_PAIRS
