/* SPDX-License-Identifier: MIT */
/* Plans in readable form: what each step is, reads and writes. */

#include "compile/ir/graph.h"
#include "compile/ir/plan.h"
#include "core/memory.h"

#include <inttypes.h>
#include <stdio.h>

static const char *const buffer_kinds[] = {"input", "output", "donated", "temporary", "shifted"};

static void print_operand(const tn__program *p, const tn__operand *o, tn__text *text)
{
    char shape[TN__SHAPE_TEXT];
    tn__text_addf(text, " %c%d:%s%s", buffer_kinds[p->buffer[o->buffer].kind][0], o->buffer, tn_dtype_name(o->dtype),
                  tn__shape_text(o->ndim, o->dim, shape));
}

void tn__plan_print(const tn__plan *plan, tn__text *text)
{
    const tn__program *p = &plan->program;
    int64_t bytes = 0, operations = 0;
    for (int i = 0; i < p->step_count; i++) {
        bytes += p->step[i].bytes;
        operations += p->step[i].operations;
    }
    tn__text_addf(text, "plan: %d step%s, %" PRId64 " bytes moved, %" PRId64 " operations, %zu bytes of temporaries\n",
                  p->step_count, p->step_count == 1 ? "" : "s", bytes, operations, p->arena_bytes);
    for (int i = 0; i < p->step_count; i++) {
        const tn__step *s = &p->step[i];
        char number[16];
        snprintf(number, sizeof number, "k%d", s->kind == TN__STEP_KERNEL ? s->kernel.code : 0);
        tn__text_addf(text, "  %2d %-8s %s\n", i + 1, s->kind == TN__STEP_KERNEL ? number : tn__ops[s->op].name,
                      s->label ? s->label : "");
        tn__text_add(text, "     writes");
        for (int k = 0; k < s->output_count; k++)
            print_operand(p, &s->operand[k], text);
        tn__text_add(text, "\n     reads ");
        for (int k = s->output_count; k < s->operand_count; k++)
            print_operand(p, &s->operand[k], text);
        tn__text_addf(text, "\n     %" PRId64 " bytes, %" PRId64 " operations\n", s->bytes, s->operations);
    }
    for (int b = 0; b < p->buffer_count; b++)
        if (p->buffer[b].kind == TN__BUFFER_DONATED)
            tn__text_addf(text, "  buffer %d takes over input %d\n", b, p->buffer[b].donor);
}
