/* SPDX-License-Identifier: MIT */
/* Plans in readable form: what each step is, reads and writes. */
#include "compile/compile.h"

#include "core/memory.h"

#include <inttypes.h>

static const char *const buffer_kinds[] = {"input", "output", "donated", "temporary"};

static void print_operand(const tn__program *p, const tn__operand *o, tn__text *text)
{
    char shape[TN__SHAPE_TEXT];
    tn__text_addf(text, " %c%d:%s%s", buffer_kinds[p->buffer[o->buffer].kind][0], o->buffer, tn_dtype_name(o->dtype),
                  tn__shape_text(o->ndim, o->dim, shape));
}

/* Operands and work of a step, or of one of its phases. */
static void print_work(const tn__program *p, const tn__operand *operand, const tn__phase *work, tn__text *text)
{
    tn__text_add(text, "     writes");
    for (int k = 0; k < work->output_count; k++)
        print_operand(p, &operand[k], text);
    tn__text_add(text, "\n     reads ");
    for (int k = work->output_count; k < work->operand_count; k++)
        print_operand(p, &operand[k], text);
    tn__text_addf(text, "\n     %" PRId64 " bytes, %" PRId64 " operations\n", work->bytes, work->operations);
}

static void print_step(const tn__program *p, const tn__step *s, int number, tn__text *text)
{
    const char *name = s->kind == TN__STEP_KERNEL ? s->kernel : tn__ops[s->op].name;
    const tn__operand *operand = s->operand;
    if (!s->phase_count) {
        tn__text_addf(text, "  %2d %-8s %s\n", number, name, s->label ? s->label : "");
        print_work(p, operand, &(tn__phase){s->operand_count, s->output_count, s->bytes, s->operations, NULL}, text);
    }
    for (int i = 0; i < s->phase_count; operand += s->phase[i++].operand_count) {
        tn__text_addf(text, "  %2d %s %d  %s\n", number, name, i + 1, s->phase[i].label);
        print_work(p, operand, &s->phase[i], text);
    }
}

void tn__plan_print(const tn__plan *plan, tn__text *text)
{
    const tn__program *p = &plan->program;
    int64_t bytes = 0, operations = 0;
    for (int i = 0; i < p->step_count; i++) {
        bytes += p->step[i].bytes;
        operations += p->step[i].operations;
    }
    tn__text_addf(text, "plan: %d steps, %" PRId64 " bytes moved, %" PRId64 " operations, %zu bytes of temporaries\n",
                  p->step_count, bytes, operations, p->arena_bytes);
    for (int i = 0; i < p->step_count; i++)
        print_step(p, &p->step[i], i + 1, text);
    for (int b = 0; b < p->buffer_count; b++)
        if (p->buffer[b].kind == TN__BUFFER_DONATED)
            tn__text_addf(text, "  buffer %d takes over input %d\n", b, p->buffer[b].donor);
}
