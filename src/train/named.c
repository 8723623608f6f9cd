/* SPDX-License-Identifier: MIT */
/*
 * What a run of tn_train may be extended with, by name: a row each, which tn_train, `tanso train --extend` and
 * `--schedule`, and their help share. A row makes its extension of the settings behind its name.
 */
#include <math.h>
#include <string.h>
#include "train/named.h"

/* Steps of a multistep schedule. */
#define STEPS_MOST 32
#define ANY (-INFINITY)

static const char *const modes[] = {"auto", "greater", "less"};
static const char *const scales[] = {"auto", "linear", "log"};

/* The one key among the settings. */
static const char *key_of(tn__making *m, const char *absent)
{
    const char *keys[TN__SETTINGS_MOST], *const usual[] = {absent, NULL};
    int count = tn__settings_keys(m->settings, keys, usual);
    if (count > 1 && m->settings->status == TN_OK)
        m->settings->status = tn__fail(TN_ERR_VALUE, "train", "%s takes one key, not '%s' and '%s'",
                                       m->settings->owner, keys[0], keys[1]);
    return keys[0];
}

/* ---- ends, files, watching ---- */

static bool never(tn_trainer *trainer, void *user)
{
    (void)trainer, (void)user;
    return false;
}

static tn_extension *early_stopping(tn__making *m)
{
    tn__settings *s = m->settings;
    tn_early_stopping_opts opts = {.monitor = key_of(m, "validation/main/loss"),
                                   .patience = (int)tn__settings_count(s, "patience", 3, 1),
                                   .mode = (tn_better)tn__settings_choice(s, "mode", 3, modes),
                                   .check = tn__settings_trigger(s, "every", "1ep"),
                                   .max = tn_trigger_of(never, NULL)};
    m->stop = tn_early_stopping_with(&opts);
    return NULL;
}

static tn_extension *snapshot_interval(tn__making *m)
{
    m->snapshot_every = tn__settings_trigger(m->settings, "every", "1ep");
    return NULL;
}

static tn_status serialize_best(const tn_serializer *s, void *user)
{
    return s->loading ? TN_OK : tn__output_fill_model(user, s->archive);
}

static tn_extension *best_model(tn__making *m)
{
    tn__settings *s = m->settings;
    const char *key = key_of(m, "validation/main/loss");
    const char *file = tn__settings_text(s, "file", "best.safetensors");
    int mode = tn__settings_choice(s, "mode", 3, modes);
    bool greater = mode == TN_BETTER_AUTO ? strstr(key, "accuracy") != NULL : mode == TN_BETTER_GREATER;
    tn_best_value_opts opts = {.check = tn__settings_trigger(s, "every", "1ep")};
    m->trigger = greater ? tn_max_value_with(key, &opts) : tn_min_value_with(key, &opts);
    return tn_snapshot_object_with(serialize_best, m->run, file, NULL);
}

static tn_extension *log_report(tn__making *m)
{
    tn_log_report_opts opts = {.file = tn__settings_text(m->settings, "file", "log"),
                               .every = tn__settings_trigger(m->settings, "every", "1ep")};
    return tn_log_report_with(&opts);
}

static tn_extension *print_report(tn__making *m)
{
    static const char *const usual[] = {"epoch", "main/loss", "validation/main/loss", "elapsed_time", NULL};
    const char *keys[TN__SETTINGS_MOST];
    int count = tn__settings_keys(m->settings, keys, usual);
    tn_print_report_opts opts = {.file = tn__settings_text(m->settings, "file", NULL)};
    return tn_print_report_with(count, keys, &opts);
}

static tn_extension *plot_report(tn__making *m)
{
    static const char *const usual[] = {"main/loss", "validation/main/loss", NULL};
    tn__settings *s = m->settings;
    const char *keys[TN__SETTINGS_MOST];
    int count = tn__settings_keys(s, keys, usual);
    tn_plot_report_opts opts = {.file = tn__settings_text(s, "file", NULL),
                                .x_key = tn__settings_text(s, "x", NULL),
                                .title = tn__settings_text(s, "title", NULL),
                                .every = tn__settings_trigger(s, "every", "1ep"),
                                .scale = (tn_scale)tn__settings_choice(s, "scale", 3, scales)};
    return tn_plot_report_with(count, keys, &opts);
}

static tn_extension *tensorboard(tn__making *m)
{
    (void)m;
    return tn_tensorboard_with(NULL);
}

static tn_extension *observe_lr(tn__making *m)
{
    tn_observe_lr_opts opts = {.key = tn__settings_text(m->settings, "key", NULL)};
    return tn_observe_lr_with(&opts);
}

static tn_extension *micro_average(tn__making *m)
{
    const char *keys[TN__SETTINGS_MOST];
    int count = tn__settings_keys(m->settings, keys, NULL);
    tn_micro_average_opts opts = {.every = tn__settings_trigger(m->settings, "every", "1ep")};
    if (count != 3 && m->settings->status == TN_OK)
        m->settings->status = tn__fail(TN_ERR_VALUE, "train", "%s takes three keys: of what is divided, of what it is "
                                       "divided by, and of the result", m->settings->owner);
    if (m->settings->status == TN_OK)
        return tn_micro_average_with(keys[0], keys[1], keys[2], &opts);
    tn_trigger_free(opts.every);
    return NULL;
}

static tn_extension *fail_on_nan(tn__making *m)
{
    tn_fail_on_nan_opts opts = {.every = (int)tn__settings_count(m->settings, "each", 100, 1)};
    return tn_fail_on_nan_with(&opts);
}

static tn_extension *parameter_statistics(tn__making *m)
{
    tn_parameter_statistics_opts opts = {.prefix = tn__settings_text(m->settings, "prefix", NULL)};
    return tn_parameter_statistics_with(&opts);
}

static tn_extension *variable_statistics_plot(tn__making *m)
{
    tn_variable_statistics_plot_opts opts = {.file = tn__settings_text(m->settings, "file", NULL),
                                             .every = tn__settings_trigger(m->settings, "every", "1ep")};
    int count = m->run ? tn_param_count(m->run->net) : 0;
    tn_array **arrays = count ? tn__alloc((size_t)count * sizeof *arrays) : NULL;
    if (!arrays) {
        if (count)
            m->settings->status = tn__fail_memory("train", (size_t)count * sizeof *arrays);
        tn_trigger_free(opts.every);
        return NULL;
    }
    for (int i = 0; i < count; i++)
        arrays[i] = tn_param(m->run->net, i);
    tn_extension *made = tn_variable_statistics_plot_with(count, arrays, &opts);
    tn__free(arrays);
    return made;
}

static tn_extension *dump_graph(tn__making *m)
{
    const char *key = key_of(m, "main/loss");
    tn_dump_graph_opts opts = {.file = tn__settings_text(m->settings, "file", NULL)};
    return tn_dump_graph_with(key, &opts);
}

static tn_extension *profile(tn__making *m)
{
    tn_profile_opts opts = {.first = tn__settings_count(m->settings, "first", 11, 1),
                            .count = tn__settings_count(m->settings, "count", 10, 1),
                            .file = tn__settings_text(m->settings, "file", NULL)};
    return tn_profile_with(&opts);
}

/* ---- schedules ---- */

static const char *attribute(tn__making *m) { return tn__settings_text(m->settings, "attribute", "lr"); }

/* The settings that all shifts have. */
static tn_shift_opts shift_opts(tn__making *m)
{
    tn_shift_opts opts = {.first = tn__settings_number(m->settings, "first", 0, ANY),
                          .target = tn__settings_number(m->settings, "target", NAN, ANY)};
    bool stops = !isnan(opts.target);
    opts.target = stops ? opts.target : 0;
    opts._ = stops ? ".target" : NULL;
    return opts;
}

static double epochs(const tn__making *m) { return m->run ? m->run->epochs : 1; }

static tn_extension *constant(tn__making *m)
{
    (void)m;
    return NULL;
}

static tn_extension *linear(tn__making *m)
{
    tn__settings *s = m->settings;
    const char *name = attribute(m);
    double now = m->run ? tn_optimizer_get(m->run->optimizer, name) : 0;
    double v1 = tn__settings_number(s, "from", now, ANY), v2 = tn__settings_number(s, "to", 0, ANY);
    double t1 = tn__settings_number(s, "begin", 0, 0), t2 = tn__settings_number(s, "end", fmax(t1, epochs(m)), 0);
    return tn_linear_shift_with(name, v1, v2, t1, t2, NULL);
}

static tn_extension *exponential(tn__making *m)
{
    double rate = tn__settings_number(m->settings, "rate", 0.95, 0);
    tn_shift_opts opts = shift_opts(m);
    return tn_exponential_shift_with(attribute(m), rate, &opts);
}

static tn_extension *inverse(tn__making *m)
{
    double gamma = tn__settings_number(m->settings, "gamma", 1, 0);
    double power = tn__settings_number(m->settings, "power", 1, ANY);
    tn_shift_opts opts = shift_opts(m);
    return tn_inverse_shift_with(attribute(m), gamma, power, &opts);
}

static tn_extension *multistep(tn__making *m)
{
    double steps[STEPS_MOST], gamma = tn__settings_number(m->settings, "gamma", 0.1, ANY);
    int count = tn__settings_numbers(m->settings, "steps", steps, STEPS_MOST);
    tn_shift_opts opts = shift_opts(m);
    if (count == 0 && m->settings->status == TN_OK)
        m->settings->status = tn__fail(TN_ERR_VALUE, "train", "%s needs its steps: %s:steps=30/60",
                                       m->settings->owner, m->settings->owner);
    return count ? tn_multistep_shift_with(attribute(m), gamma, count, steps, &opts) : NULL;
}

static tn_extension *polynomial(tn__making *m)
{
    double power = tn__settings_number(m->settings, "power", 2, ANY);
    double end = tn__settings_number(m->settings, "end", epochs(m), 0);
    tn_shift_opts opts = shift_opts(m);
    return tn_polynomial_shift_with(attribute(m), power, end, &opts);
}

static tn_extension *step(tn__making *m)
{
    double gamma = tn__settings_number(m->settings, "gamma", 0.1, ANY);
    double every = tn__settings_number(m->settings, "step", 10, 0);
    tn_shift_opts opts = shift_opts(m);
    return tn_step_shift_with(attribute(m), gamma, every, &opts);
}

static tn_extension *warmup(tn__making *m)
{
    double start = tn__settings_number(m->settings, "start", 0, ANY);
    double end = tn__settings_number(m->settings, "end", 100, 0);
    tn_shift_opts opts = shift_opts(m);
    return tn_warmup_shift_with(attribute(m), start, end, &opts);
}

static tn_extension *cosine(tn__making *m)
{
    tn_course_opts opts = {.first = tn__settings_number(m->settings, "first", 0, 0),
                           .warmup = tn__settings_number(m->settings, "warmup", 0, 0),
                           .start = tn__settings_number(m->settings, "start", 0, 0),
                           .last = tn__settings_number(m->settings, "last", 0, 0)};
    if (opts.warmup > 0) /* by epochs all of the first one would be at the start, at 0 */
        m->every = "1it";
    return tn_cosine_shift_with(attribute(m), &opts);
}

static tn_extension *one_cycle(tn__making *m)
{
    tn_course_opts opts = {.first = tn__settings_number(m->settings, "first", 0, 0),
                           .rise = tn__settings_number(m->settings, "rise", 0.3, 0),
                           .begin_factor = tn__settings_number(m->settings, "begin_factor", 25, 1),
                           .end_factor = tn__settings_number(m->settings, "end_factor", 1e4, 1)};
    return tn_one_cycle_shift_with(attribute(m), &opts);
}

static tn_extension *plateau(tn__making *m)
{
    tn__settings *s = m->settings;
    const char *key = key_of(m, "validation/main/loss"), *name = attribute(m);
    tn_plateau_opts opts = {.factor = tn__settings_number(s, "factor", 0.1, 0),
                            .patience = (int)tn__settings_count(s, "patience", 10, 0),
                            .mode = (tn_better)tn__settings_choice(s, "mode", 3, modes),
                            .threshold = tn__settings_number(s, "threshold", 1e-4, 0),
                            .cooldown = (int)tn__settings_count(s, "cooldown", 0, 0),
                            .least = tn__settings_number(s, "least", 0, 0),
                            .check = tn__settings_trigger(s, "every", "1ep"),
                            ._ = ".patience .threshold"};
    return tn_reduce_on_plateau_with(name, key, &opts);
}

/* ---- the table ---- */

#define EACH_EPOCH "1ep"
#define SHIFTED ",attribute=lr,first,target,every=1ep"
#define PART(name, settings, text) .part = {name, settings, text, false}
#define SCHEDULE(name, settings, text) .part = {name, settings, text, true}
const tn__named_part tn__named_parts[] = {
    {PART("early-stopping", "KEY,patience=3,mode=auto|greater|less,every=1ep",
          "end when a value (validation/main/loss) has not become better for so many looks"),
     .make = early_stopping, .own_every = true},
    {PART("snapshot", "every=1ep", "save what --resume goes on from so often, not as often as costs little"),
     .make = snapshot_interval, .own_every = true, .writes = true, .gathers = true},
    {PART("best-model", "KEY,file=best.safetensors,mode=auto|greater|less,every=1ep",
          "keep the model that had the best value (validation/main/loss) so far"),
     .make = best_model, .own_every = true, .writes = true},
    {PART("log", "file=log,every=1ep", "means of all that is observed, as a list of JSON objects"),
     .make = log_report, .own_every = true, .writes = true},
    {PART("print", "KEY,...,file", "a table of the log's entries"), .make = print_report, .reads_log = true},
    {PART("plot", "KEY,...,file=plot.svg,x=iteration|epoch|KEY,title,every=1ep,scale=auto|linear|log",
          "a picture of values (main/loss and validation/main/loss)"),
     .make = plot_report, .own_every = true, .writes = true},
    {PART("tensorboard", "", "the log's entries as a file of events for TensorBoard"),
     .make = tensorboard, .writes = true, .reads_log = true},
    {PART("observe-lr", "key=lr,every=1ep", "observe the learning rate, for logs and pictures"), .make = observe_lr},
    {PART("micro-average", "KEY,KEY,RESULT,every=1ep", "observe one value's sum over another's"),
     .make = micro_average, .own_every = true},
    {PART("fail-on-nan", "each=100", "end when a parameter is not finite; on a GPU looked at each so many iterations"),
     .make = fail_on_nan},
    {PART("parameter-statistics", "prefix,every=1ep", "observe mean, deviation, range, percentiles of parameters"),
     .make = parameter_statistics},
    {PART("variable-statistics-plot", "file=statistics.svg,every=1ep", "a picture of all parameters' values"),
     .make = variable_statistics_plot, .own_every = true, .writes = true},
    {PART("dump-graph", "KEY,file=cg.dot", "the first step's computation (of main/loss) as a graph"),
     .make = dump_graph, .writes = true},
    {PART("profile", "first=11,count=10,file=profile", "measure iterations: a table, and a trace for a browser"),
     .make = profile, .writes = true},
    {SCHEDULE("constant", "", "the same throughout"), .make = constant},
    {SCHEDULE("linear", "from,to=0,begin=0,end=EPOCHS,attribute=lr,every=1ep", "along a line"),
     .make = linear, .every = EACH_EPOCH},
    {SCHEDULE("cosine", "warmup=0,start=0,last=0,attribute=lr,first,every=1ep",
              "after so many epochs of warm-up (then every=1it), down along half a cosine"),
     .make = cosine, .every = EACH_EPOCH},
    {SCHEDULE("one-cycle", "rise=0.3,begin_factor=25,end_factor=10000,attribute=lr,first,every=1it",
              "up and down again by cosines"),
     .make = one_cycle, .every = "1it"},
    {SCHEDULE("exponential", "rate=0.95" SHIFTED, "multiplied by the rate each time"),
     .make = exponential, .every = EACH_EPOCH},
    {SCHEDULE("inverse", "gamma=1,power=1" SHIFTED, "first (1 + gamma t)^-power"),
     .make = inverse, .every = EACH_EPOCH},
    {SCHEDULE("polynomial", "power=2,end=EPOCHS" SHIFTED, "first (1 - t/end)^power"),
     .make = polynomial, .every = EACH_EPOCH},
    {SCHEDULE("step", "gamma=0.1,step=10" SHIFTED, "multiplied by gamma each so many times"),
     .make = step, .every = EACH_EPOCH},
    {SCHEDULE("multistep", "steps=A/B/...,gamma=0.1" SHIFTED, "multiplied by gamma at each step"),
     .make = multistep, .every = EACH_EPOCH},
    {SCHEDULE("warmup", "start=0,end=100,attribute=lr,first,target,every=1it", "along a line to its own value"),
     .make = warmup, .every = "1it"},
    {SCHEDULE("plateau", "KEY,factor=0.1,patience=10,mode=auto|greater|less,threshold=0.0001,cooldown=0,least=0,"
              "attribute=lr,every=1ep", "multiplied by a factor when a value (validation/main/loss) gets no better"),
     .make = plateau, .own_every = true},
};
const int tn__named_part_count = sizeof tn__named_parts / sizeof *tn__named_parts;

const tn_train_part *tn_train_part_at(int i)
{
    return i >= 0 && i < tn__named_part_count ? &tn__named_parts[i].part : NULL;
}
