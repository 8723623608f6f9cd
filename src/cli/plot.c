/* SPDX-License-Identifier: MIT */
/* tanso plot */
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "cli/command.h"

#define MOST_KEYS 64

static const tn__flag flags[] = {
    {"--out", "FILE", "the picture, .svg or .png (default plot.svg)", TN__FLAG_TEXT,
     .offset = offsetof(tn__options, out)},
    {"--keys", "KEYS",
     "figures with commas between them, a panel each\n"
     "(default train_loss,test_loss,test_accuracy)",
     TN__FLAG_TEXT, .offset = offsetof(tn__options, keys)},
    {"--x", "KEY", "what they are drawn over (default epoch)", TN__FLAG_TEXT, .offset = offsetof(tn__options, x)},
};

static int draw(const tn__options *options, const char *out, const char *const *keys)
{
    int drawn;
    const tn_plot_runs_opts opts = {.keys = keys, .x_key = options->x, .drawn = &drawn};
    tn_status status = tn_plot_runs_with(options->count, (const char *const *)options->arguments, out, &opts);
    if (status != TN_OK)
        return tn__cli_failure("plot", "%s", tn__error_text("plot_runs"));
    printf("%d run%s in %s\n", drawn, drawn == 1 ? "" : "s", out);
    return TN__EXIT_DONE;
}

static int run(const tn__options *options)
{
    const char *out = options->out ? options->out : "plot.svg", *keys[MOST_KEYS + 1] = {NULL};
    char *text = strdup(options->keys ? options->keys : ""), *rest = NULL;
    int count = 0;
    if (!text)
        return tn__cli_failure("plot", "out of memory");
    for (char *key = strtok_r(text, ",", &rest); key && count < MOST_KEYS; key = strtok_r(NULL, ",", &rest))
        keys[count++] = key;
    int code = options->keys && !count ? tn__usage_error("plot", "--keys needs the names of figures, not '%s'",
                                                         options->keys)
                                       : draw(options, out, count ? keys : NULL);
    free(text);
    return code;
}

const tn__command tn__command_plot = {
    .name = "plot",
    .arguments = "DIR...",
    .summary = "compare runs in one picture",
    .text = "Draws the figures of one or more runs beside one another: a panel a figure, a curve a run. DIR\n"
            "is a folder that 'tanso train' wrote (its log.jsonl), or one of a trainer with a log report (its\n"
            "log). Of a folder that has both, a figure is taken from log.jsonl, and from log what is not in\n"
            "there: --keys main/loss. A log that does not agree with log.jsonl, as of an earlier run, is left\n"
            "out.",
    .examples = "  tanso plot runs/digits runs/other\n"
                "  tanso plot runs/* --keys test_loss --out losses.png\n",
    .flags = flags,
    .flag_count = TN__COUNT_OF(flags),
    .least = 1,
    .most = INT_MAX,
    .run = run,
};
