/* SPDX-License-Identifier: MIT */
/* Programs are made by compile/; whoever holds one frees it here. */
#include "device/program.h"

#include "core/memory.h"

void tn__program_text_free(tn__program_text *text)
{
    for (int i = 0; text->kernel && i < text->kernel_count; i++) {
        tn__free(text->kernel[i].name);
        tn__free(text->kernel[i].stretch);
    }
    tn__free(text->kernel);
    tn__free(text->begin);
    *text = (tn__program_text){0};
}

char *tn__program_text_of(const tn__program *program, int count, const int *kernel)
{
    const tn__program_text *from = &program->text;
    tn__text text = {0};
    bool *wanted = tn__calloc((size_t)from->stretch_count + 1, sizeof *wanted);
    if (!wanted)
        return NULL;
    for (int k = 0; k < count; k++)
        for (int i = 0; i < from->kernel[kernel[k]].count; i++)
            wanted[from->kernel[kernel[k]].stretch[i]] = true;
    for (int i = 0; i < from->stretch_count; i++)
        if (wanted[i])
            tn__text_addn(&text, program->source + from->begin[i], from->begin[i + 1] - from->begin[i]);
    tn__free(wanted);
    return tn__text_take(&text);
}

void tn__program_free(tn__program *program)
{
    for (int i = 0; program->step && i < program->step_count; i++) {
        tn__step *step = &program->step[i];
        tn__free(step->operand);
        tn__free(step->scalar);
        tn__free(step->param);
        if (step->kind == TN__STEP_KERNEL)
            tn__free((char *)step->kernel.name);
        tn__free(step->label);
    }
    tn__free(program->step);
    tn__free(program->buffer);
    tn__free(program->scalar_dtype);
    tn__free(program->source);
    tn__program_text_free(&program->text);
    *program = (tn__program){0};
}
