/* SPDX-License-Identifier: MIT */
/* Building a network anew from what its file says of it. */
#include "cli/run_model.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include "cli/command.h"

/* "28,28" as a shape; false if it is none. */
static bool read_shape(const char *text, tn_shape *shape)
{
    *shape = (tn_shape){0};
    while (*text) {
        char *end;
        long long extent = strtoll(text, &end, 10);
        if (end == text || extent < 1 || extent > INT32_MAX || shape->ndim == TN_MAX_NDIM || (*end && *end != ','))
            return false;
        shape->dim[shape->ndim++] = extent;
        text = *end ? end + 1 : end;
    }
    return true;
}

static bool not_a_run(const char *command, const char *path, const char *key)
{
    tn__cli_failure(command, "'%s' does not say its \"%s\": it was not written by 'tanso train'", path, key);
    return false;
}

static bool build(tn__run_model *model, const char *command, const char *path, tn_device device)
{
    model->dataset = tn_archive_text(model->archive, "tanso.dataset");
    model->words = tn_archive_text(model->archive, "tanso.model");
    const char *input = tn_archive_text(model->archive, "tanso.input");
    if (!model->dataset || !model->words)
        return not_a_run(command, path, model->dataset ? "tanso.model" : "tanso.dataset");
    if (!input || !read_shape(input, &model->input))
        return not_a_run(command, path, "tanso.input");
    model->inputs = 1;
    for (int i = 0; i < model->input.ndim; i++)
        if (__builtin_mul_overflow(model->inputs, model->input.dim[i], &model->inputs))
            return not_a_run(command, path, "tanso.input");
    model->net = tn_layer_parse(model->words);
    tn_status status = tn_layer_status(model->net);
    if (status == TN_OK)
        status = tn_layer_to(model->net, device);
    if (status == TN_OK)
        status = tn_layer_load_with(model->net, path, NULL);
    tn_layer_train(model->net, false);
    if (status != TN_OK)
        tn__library_error(command);
    return status == TN_OK;
}

bool tn__run_model_open(tn__run_model *model, const char *command, const char *folder, tn_device device)
{
    *model = (tn__run_model){0};
    char path[PATH_MAX];
    struct stat info;
    if (!*folder) {
        tn__cli_failure(command, "expected the name of a folder that 'tanso train' wrote, got ''");
        return false;
    }
    bool is_file = stat(folder, &info) == 0 && S_ISREG(info.st_mode);
    if (snprintf(path, sizeof path, is_file ? "%s" : "%s/model.safetensors", folder) >= (int)sizeof path) {
        tn__cli_failure(command, "the path '%.60s...' is too long", folder);
        return false;
    }
    model->archive = tn_archive_load(path);
    if (tn_archive_status(model->archive) == TN_OK)
        return build(model, command, path, device);
    tn__library_error(command);
    return false;
}

void tn__run_model_close(tn__run_model *model)
{
    tn_layer_free(model->net);
    tn_archive_free(model->archive);
    *model = (tn__run_model){0};
}
