/* SPDX-License-Identifier: MIT */
/* The trained network of a run's folder. */
#ifndef TN_CLI_RUN_MODEL_H
#define TN_CLI_RUN_MODEL_H

#include <tanso.h>

typedef struct tn__run_model {
    tn_archive *archive; /* model.safetensors, whose metadata the words below are */
    tn_layer *net;
    const char *dataset;
    const char *words; /* of the model */
    int64_t inputs;    /* numbers a sample */
    tn_shape input;    /* a sample's shape */
} tn__run_model;

/* Opens DIR/model.safetensors, or a model file itself, and moves the network to a device; false after saying, as
 * `command`, what is wrong. */
bool tn__run_model_open(tn__run_model *model, const char *command, const char *folder, tn_device device);
void tn__run_model_close(tn__run_model *model);

#endif
