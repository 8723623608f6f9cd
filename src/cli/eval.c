/* SPDX-License-Identifier: MIT */
/* tanso eval */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include "cli/command.h"
#include "cli/run_model.h"

static const tn__flag flags[] = {
    {"--dataset", "NAME", "another dataset than the one it was trained on", TN__FLAG_TEXT,
     .offset = offsetof(tn__options, dataset)},
    {"--batch", "N", "samples at a time (default 1000)", TN__FLAG_COUNT, .offset = offsetof(tn__options, batch)},
    {"--device", "NAME", "auto (the default: a GPU if there is one), cpu, cuda:N", TN__FLAG_TEXT,
     .offset = offsetof(tn__options, device)},
};

static tn_status evaluate(tn__run_model *model, const tn__options *options, tn_device device)
{
    const char *name = options->dataset ? options->dataset : model->dataset;
    tn_dataset *test = tn_dataset_named(name, TN_TEST);
    double loss, accuracy;
    tn_status status = tn_dataset_status(test);
    if (status == TN_OK)
        status = tn_evaluate(model->net, test, options->batch, device, &loss, &accuracy);
    if (status == TN_OK) {
        printf("%s, %" PRId64 " test samples: loss %.6g", name, tn_dataset_size(test), loss);
        if (isfinite(accuracy))
            printf(", accuracy %.2f%%", 100 * accuracy);
        putchar('\n');
    }
    tn_dataset_free(test);
    return status;
}

static int run(const tn__options *options)
{
    tn_device device;
    int code = tn__device_option("eval", options->device, &device);
    if (code != TN__EXIT_DONE)
        return code;
    tn__run_model model;
    if (!tn__run_model_open(&model, "eval", options->arguments[0], device))
        code = TN__EXIT_FAILED;
    else if (evaluate(&model, options, device) != TN_OK) {
        code = tn__library_error("eval");
        if (tn_error_code() == TN_ERR_IO && strchr(model.dataset, '/') && !options->dataset)
            fprintf(stderr, "Where the samples have moved: tanso eval %s --dataset FOLDER\n", options->arguments[0]);
    }
    tn__run_model_close(&model);
    return options->dataset || code == TN__EXIT_DONE ? code : TN__EXIT_FAILED; /* what a file says is no wrong usage */
}

const tn__command tn__command_eval = {
    .name = "eval",
    .arguments = "DIR",
    .summary = "measure a trained network on test samples",
    .text = "Prints loss and accuracy of the network in DIR, a folder that 'tanso train' wrote, on the test\n"
            "samples of the dataset it was trained on, or of another.",
    .examples = "  tanso eval runs/digits\n"
                "  tanso eval runs/mnist --dataset fashion-mnist\n",
    .flags = flags,
    .flag_count = TN__COUNT_OF(flags),
    .least = 1,
    .most = 1,
    .run = run,
};
