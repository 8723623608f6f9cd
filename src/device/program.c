/* SPDX-License-Identifier: MIT */
/* Programs are made by compile/; whoever holds one frees it here. */
#include "device/program.h"

#include "core/memory.h"

void tn__program_free(tn__program *program)
{
    for (int i = 0; program->step && i < program->step_count; i++) {
        tn__step *step = &program->step[i];
        tn__free(step->operand);
        tn__free(step->scalar);
        tn__free(step->param);
        tn__free((char *)step->kernel);
        tn__free(step->label);
    }
    tn__free(program->step);
    tn__free(program->buffer);
    tn__free(program->scalar_dtype);
    tn__free(program->source);
    *program = (tn__program){0};
}
