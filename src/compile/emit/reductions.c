/* SPDX-License-Identifier: MIT */
/*
 * What a nest's reductions are in a text: their functions, what they start from, the types of their accumulators, and
 * what makes a result of one. A reduction may go on in twice the precision (wide), or be about the mean.
 */
#include "compile/emit/emit.h"

#include <stdio.h>

const char *tn__emit_identity(tn__printer *p, int r)
{
    const tn__reduction *red = &p->nest->reduction[r];
    if (red->user) {
        snprintf(p->name[1], sizeof p->name[1], "%s_identity()", tn__user_function(p, red->user));
        return p->name[1];
    }
    return red->about_mean ? "tn_deviations()" : tn__identity(p, red->op, red->dtype);
}

const char *tn__emit_function(tn__printer *p, int r)
{
    const tn__reduction *red = &p->nest->reduction[r];
    return red->about_mean ? "tn_deviate"
           : red->user     ? tn__user_function(p, red->user)
                           : tn__function(p, red->op, red->dtype);
}

const char *tn__emit_type(const tn__printer *p, int r)
{
    const tn__reduction *red = &p->nest->reduction[r];
    return red->about_mean ? "tn_deviations" : tn__emit_variable_type(red->dtype);
}

const char *tn__emit_result_type(const tn__printer *p, int r)
{
    return tn__emit_variable_type(p->nest->reduction[r].dtype);
}

static tn_dtype wide_dtype(const tn__printer *p, int r)
{
    tn_dtype dtype = p->nest->reduction[r].dtype;
    return tn__nest_widens(p->nest, r) ? tn__dtype_wide(dtype) : dtype;
}

const char *tn__emit_wide_identity(tn__printer *p, int r)
{
    bool widens = tn__nest_widens(p->nest, r);
    return widens ? tn__identity(p, p->nest->reduction[r].op, wide_dtype(p, r)) : tn__emit_identity(p, r);
}

const char *tn__emit_wide_function(tn__printer *p, int r)
{
    bool widens = tn__nest_widens(p->nest, r);
    return widens ? tn__function(p, p->nest->reduction[r].op, wide_dtype(p, r)) : tn__emit_function(p, r);
}

const char *tn__emit_wide_type(const tn__printer *p, int r)
{
    return tn__nest_widens(p->nest, r) ? tn__emit_variable_type(wide_dtype(p, r)) : tn__emit_type(p, r);
}

const char *tn__emit_widening(tn__printer *p, int r)
{
    bool complex = wide_dtype(p, r) == TN_COMPLEX128 && tn__nest_widens(p->nest, r);
    p->emitter->needs |= complex ? TN__NEEDS_COMPLEX : 0;
    return complex ? "tns_cast_c128_c64" : "";
}

/* What makes a result of a finished accumulator. */
const char *tn__emit_rounding(const tn__printer *p, int r)
{
    const tn__reduction *red = &p->nest->reduction[r];
    return red->about_mean               ? "tn_squares"
           : red->dtype == TN_FLOAT16    ? "tn_round_f16"
           : red->dtype == TN_BFLOAT16   ? "tn_round_bf16"
                                         : "";
}

const char *tn__emit_narrowing(const tn__printer *p, int r)
{
    const char *rounding = tn__emit_rounding(p, r);
    bool complex = tn_dtype_is_complex(p->nest->reduction[r].dtype);
    return *rounding || !tn__nest_widens(p->nest, r) ? rounding : complex ? "tns_cast_c64_c128" : "(tn_f32)";
}

void tn__emit_extent(tn__printer *p)
{
    tn__text text = {0};
    for (int l = 0; l < p->nest->loop_count; l++)
        if (p->nest->reduced >> l & 1)
            tn__text_addf(&text, " * n[%d]", TN__EXTENT(l));
    tn__line(p, "const tn_i64 R = 1%s;", text.data ? text.data : "");
    p->text->failed |= text.failed;
    tn__free(text.data);
}
