/* SPDX-License-Identifier: MIT */
/* tanso warm: a round through a stand-in of each dataset, so that the kernels of its training are in the cache. */
#include <stdio.h>
#include <string.h>
#include "cli/command.h"

static const tn__flag flags[] = {
    {"--model", "WORDS", "layers, as for 'tanso train'", TN__FLAG_TEXT, .offset = offsetof(tn__options, model)},
    {"--optimizer", "WORDS", "optimizer, as for 'tanso train'", TN__FLAG_TEXT,
     .offset = offsetof(tn__options, optimizer)},
    {"--batch", "N", "samples a minibatch", TN__FLAG_COUNT, .offset = offsetof(tn__options, batch)},
    {"--device", "NAMES", "auto (the default), cpu, cuda:N, several or all, as for 'tanso train'", TN__FLAG_TEXT,
     .offset = offsetof(tn__options, device)},
    {"--quiet", NULL, "say nothing but errors", TN__FLAG_SWITCH, .offset = offsetof(tn__options, quiet)},
};

void tn__stand_in(const char *dataset, char *name, size_t size)
{
    static const char *const computed[] = {"digits", "spiral", "sine"};
    const char *before = strncmp(dataset, "synthetic:", strlen("synthetic:")) == 0 ? "" : "synthetic:";
    for (int i = 0; i < TN__COUNT_OF(computed); i++)
        if (strcmp(dataset, computed[i]) == 0)
            before = "";
    snprintf(name, size, "%s%s", before, dataset);
}

/* NULL after saying what is wrong with it. */
static const tn_recipe *recipe_named(const char *dataset)
{
    enum { MOST = 32 };
    const char *names[MOST];
    const tn_recipe *recipe;
    int count = 0;
    for (; count < MOST && (recipe = tn_train_recipe(count)) && recipe->dataset[0] != '*'; count++) {
        names[count] = recipe->dataset;
        if (strcmp(dataset, recipe->dataset) == 0)
            return recipe;
    }
    const char *near = tn_nearest_name(dataset, names, count);
    tn__usage_error("warm", "there is no dataset '%s'%s%s%s", dataset, near ? ": did you mean '" : "", near ? near : "",
                    near ? "'?" : "");
    return NULL;
}

static int warm(const tn__options *options, const tn_recipe *recipe, const tn_device *devices)
{
    char name[64];
    tn_engine_counters before = tn_engine_stats();
    tn__stand_in(recipe->dataset, name, sizeof name);
    /* What a run settles on without options of its own is the real set's recipe, not that of its stand-in. */
    const tn_train_opts opts = {.model = options->model ? options->model : recipe->model,
                                .optimizer = options->optimizer ? options->optimizer : recipe->optimizer,
                                .schedule = recipe->schedule,
                                .batch = options->batch ? options->batch : recipe->batch,
                                .epochs = 1,
                                .devices = devices};
    if (tn_train_with(name, &opts, NULL) != TN_OK)
        return tn__library_error("warm");
    tn_engine_counters after = tn_engine_stats();
    unsigned long long compiled = after.compilations - before.compilations;
    if (!options->quiet && compiled)
        printf("%s: %llu kernels compiled\n", recipe->dataset, compiled);
    else if (!options->quiet)
        printf("%s: all kernels are there\n", recipe->dataset);
    return TN__EXIT_DONE;
}

static int run(const tn__options *options)
{
    tn_device devices[TN__DEVICES_MOST + 1];
    int code = tn__devices_option("warm", options->device, devices);
    for (int i = 0; i < options->count && code == TN__EXIT_DONE; i++) /* a wrong name is said before anything is made */
        code = recipe_named(options->arguments[i]) ? TN__EXIT_DONE : TN__EXIT_USAGE;
    tn_set_compile(TN_COMPILE_ALWAYS); /* what a longer run would compile once it has seen that it recurs */
    const tn_recipe *recipe;
    for (int i = 0; !options->count && code == TN__EXIT_DONE && (recipe = tn_train_recipe(i)); i++)
        code = recipe->dataset[0] == '*' ? code : warm(options, recipe, devices);
    for (int i = 0; i < options->count && code == TN__EXIT_DONE; i++)
        code = warm(options, recipe_named(options->arguments[i]), devices);
    tn_set_compile(TN_COMPILE_AUTO);
    char *folder = code == TN__EXIT_DONE && !options->quiet ? tn_kernel_cache() : NULL;
    if (folder)
        printf("kernels are in %s\n", folder);
    tn_string_free(folder);
    return code;
}

const tn__command tn__command_warm = {
    .name = "warm",
    .arguments = "[DATASET...]",
    .summary = "compile kernels before they are needed",
    .text = "Trains for one round on a small stand-in of each dataset (default: all that 'tanso train' has\n"
            "settings for), so that the first steps of later runs, of the same model and optimizer on the\n"
            "same kind of device, find their kernels compiled. Needs no dataset's files, and writes nothing\n"
            "but the folder of kernels, which 'tanso info' names.",
    .examples = "  tanso warm\n"
                "  tanso warm mnist --model \"lenet5\" --device cuda:0\n",
    .flags = flags,
    .flag_count = TN__COUNT_OF(flags),
    .least = 0,
    .most = 1 << 30,
    .run = run,
};
