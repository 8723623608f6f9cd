/* SPDX-License-Identifier: MIT */
/* Programs are made by compile/; whoever holds one frees it here. */
#include "device/program.h"

#include "core/memory.h"

void tn__step_free(tn__step *step)
{
    tn__free(step->operand);
    tn__free(step->scalar);
    tn__free(step->param);
    tn__free((char *)step->kernel);
    tn__free(step->label);
    for (int i = 0; i < step->phase_count; i++)
        tn__free(step->phase[i].label);
    tn__free(step->phase);
}

void tn__program_free(tn__program *program)
{
    for (int i = 0; program->step && i < program->step_count; i++)
        tn__step_free(&program->step[i]);
    tn__free(program->step);
    tn__free(program->buffer);
    tn__free(program->scalar_dtype);
    tn__free(program->source);
    *program = (tn__program){0};
}
