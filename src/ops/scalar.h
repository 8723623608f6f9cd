/* SPDX-License-Identifier: MIT */
/*
 * The scalar functions of the kernel dialect: the one meaning of every elementwise operation. The reference evaluator
 * includes this file; a generated kernel starts with the text of the parts it needs, in this order (scalar_base.h
 * always; scalar_random.h needs scalar_math.h). The parts include nothing, so that their text stands alone.
 *
 * Names are tns_<operation>_<type>: b8 i8 i16 i32 i64 u8 u16 u32 u64 f32 f64 c64 c128. float16 and bfloat16 exist as
 * storage only; arithmetic on them is done in f32.
 *
 * Same bits on every path of a CPU: functions marked TN_HOT use only + - * / sqrt, integers, bit casts, selects, and
 * fused multiply-adds where they say so. Compile without contraction (cc -ffp-contract=off, nvcc -fmad=false, with IEEE
 * division, square root and subnormals) for processors that have these, or that have not, and every build agrees. A
 * GPU's own instructions (scalar_base.h) give float32 functions results that are as exact, but may differ in a last
 * bit; its operations that IEEE defines give the same bits. Functions that call libm (TNS_LIBM) agree to libm's
 * accuracy.
 */
#ifndef TN_OPS_SCALAR_H
#define TN_OPS_SCALAR_H

#include "scalar_base.h"
#include "scalar_cast.h"
#include "scalar_arith.h"
#include "scalar_math.h"
#include "scalar_gpu.h"
#include "scalar_cpu.h"
#include "scalar_random.h"
#include "scalar_reduce.h"
#include "scalar_complex.h"
#include "scalar_draw.h"

#endif
