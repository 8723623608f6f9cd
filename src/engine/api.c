/* SPDX-License-Identifier: MIT */
/* Switches and counters. */
#include "engine/plans.h"

#include "core/error.h"
#include "core/memory.h"
#include "device/kernel_cache.h"

#include <tanso/engine.h>

tn_engine_counters tn_engine_stats(void)
{
    return (tn_engine_counters){.evaluations = tn__engine_counters.evaluations,
                                .plan_hits = tn__engine_counters.plan_hits,
                                .plan_misses = tn__engine_counters.plan_misses,
                                .compilations = tn__kernels_compiled,
                                .kernel_hits = tn__kernels_found,
                                .kernels = tn__engine_counters.kernels};
}

void tn_set_compile(tn_compile_mode mode)
{
    if (mode < TN_COMPILE_AUTO || mode > TN_COMPILE_NEVER) {
        tn__fail(TN_ERR_VALUE, "set_compile", "expected a tn_compile_mode from %d to %d, got %d", TN_COMPILE_AUTO,
                 TN_COMPILE_NEVER, (int)mode);
        return;
    }
    tn__engine_switches.compile = mode;
    tn__plans_clear();
}

void tn_set_fusion(bool on)
{
    tn__engine_switches.fusion = on;
    tn__plans_clear();
}

void tn_set_memory_planning(bool on)
{
    tn__engine_switches.plan_memory = on;
    tn__plans_clear();
}

void tn_set_matmul_precision(tn_matmul_precision precision)
{
    if (precision < TN_MATMUL_FLOAT32 || precision > TN_MATMUL_TF32X3) {
        tn__fail(TN_ERR_VALUE, "set_matmul_precision", "expected a tn_matmul_precision from %d to %d, got %d",
                 TN_MATMUL_FLOAT32, TN_MATMUL_TF32X3, (int)precision);
        return;
    }
    if ((int)precision == tn__engine_switches.precision)
        return;
    tn__engine_switches.precision = precision;
    tn__plans_clear();
}

tn_matmul_precision tn_get_matmul_precision(void) { return (tn_matmul_precision)tn__engine_switches.precision; }

void tn_string_free(char *string) { tn__free(string); }
