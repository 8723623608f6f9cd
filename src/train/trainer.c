/* SPDX-License-Identifier: MIT */
/* tn_train_with: sets a run up, anew or from its snapshot, and goes through its epochs. */
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <string.h>
#include <unistd.h>
#include <tanso/array.h>
#include <tanso/autograd.h>
#include <tanso/device.h>
#include "core/clock.h"
#include "core/error.h"
#include "core/memory.h"
#include "train/run.h"
#include "train/snapshot.h"

#define TEST_BATCH 1000

/* ---- setting up ---- */

static tn_status describe_dataset(tn__run *run, const tn_dataset *dataset)
{
    char input[128] = "";
    tn_shape shape = tn_shape_of(tn_dataset_x(dataset));
    for (int i = 1, length = 0; i < shape.ndim; i++)
        length += snprintf(input + length, sizeof input - (size_t)length, "%s%" PRId64, i > 1 ? "," : "", shape.dim[i]);
    tn_status status = tn__words_set(&run->words, TN__WORD_INPUT, "%s", input);
    return status == TN_OK ? tn__words_set(&run->words, TN__WORD_SAMPLES, "%" PRId64, tn_dataset_size(dataset))
                           : status;
}

/* The snapshot to go on from; NULL if there is none (or on an error, which is latched). */
static tn_archive *open_snapshot(const tn__run *run, const tn_train_opts *opts)
{
    if (!opts->resume)
        return NULL;
    if (!run->out) {
        tn__fail(TN_ERR_VALUE, "train", "resuming needs the folder of the run, and `out` is NULL");
        return NULL;
    }
    if (access(run->snapshot_path, F_OK) != 0 && errno == ENOENT)
        return NULL;
    tn_archive *archive = tn_archive_load(run->snapshot_path);
    if (tn_archive_status(archive) == TN_OK)
        return archive;
    tn_archive_free(archive);
    return NULL;
}

/* A first forward, not evaluated, which makes the parameters and shows whether the outputs suit the targets. */
static tn_status try_forward(tn__run *run, const tn_dataset *dataset, int64_t outputs)
{
    tn_status status = TN_OK;
    TN_SCOPE
        TN_NO_GRAD {
            tn_array *x = tn_to(tn_slice_axis(tn_dataset_x(dataset), 0, 0, 1, 1), run->device);
            tn_layer_train(run->net, false);
            tn_array *y = tn_forward(run->net, x);
            tn_layer_train(run->net, true);
            if (tn_is_error(y))
                status = tn_status_of(y);
            else if (tn_ndim(y) != 2 || (run->classifies ? tn_dim(y, 1) < outputs : tn_dim(y, 1) != outputs))
                status = tn__fail(TN_ERR_SHAPE, "train",
                                  "the model \"%s\" gives %" PRId64 " outputs a sample, and %s has %" PRId64
                                  " %s: let the model end in linear:%" PRId64,
                                  run->words.text[TN__WORD_MODEL], tn_ndim(y) == 2 ? tn_dim(y, 1) : tn_size(y),
                                  run->words.text[TN__WORD_DATASET], outputs,
                                  run->classifies ? "classes" : "values a target", outputs);
        }
    return status;
}

static tn_status make_net(tn__run *run, const tn_dataset *dataset, int64_t outputs)
{
    tn_seed(tn__words_number(&run->words, TN__WORD_SEED));
    run->net = tn_layer_parse(run->words.text[TN__WORD_MODEL]);
    tn_status status = tn_layer_status(run->net);
    if (status == TN_OK)
        status = tn_layer_to(run->net, run->device);
    if (status == TN_OK)
        status = try_forward(run, dataset, outputs);
    if (status == TN_OK && tn_param_total(run->net) == 0)
        status =
            tn__fail(TN_ERR_VALUE, "train",
                     "the model \"%s\" has no parameters to train: give it a layer that has, such as linear:%" PRId64,
                     run->words.text[TN__WORD_MODEL], outputs);
    if (status != TN_OK)
        return status;
    run->optimizer = tn_optimizer_parse(run->words.text[TN__WORD_OPTIMIZER], run->net);
    run->first_rate = tn_optimizer_lr(run->optimizer);
    run->schedule = tn__schedule_find(run->words.text[TN__WORD_SCHEDULE]);
    status = tn_optimizer_status(run->optimizer);
    return status == TN_OK && !run->schedule ? TN_ERR_NAME : status;
}

/* Both loaders; the training one owns its dataset, the test one too. */
static tn_status make_loaders(tn__run *run, tn_dataset *train, tn_dataset *test)
{
    tn_loader_opts shuffled = {.batch = (int64_t)tn__words_number(&run->words, TN__WORD_BATCH),
                               .seed = tn__words_number(&run->words, TN__WORD_SEED),
                               .shuffle = true,
                               .device = run->device};
    tn_loader_opts ordered = {.batch = TEST_BATCH, .device = run->device};
    run->train = tn_loader_new_with(train, &shuffled);
    run->test = tn_loader_new_with(test, &ordered);
    run->loss = tn_meter_new(run->device);
    tn_status status = tn_loader_status(run->train);
    return status == TN_OK ? tn_loader_status(run->test) : status;
}

static tn_status restore(tn__run *run, const tn_archive *snapshot)
{
    tn_status status = tn__snapshot_restore(snapshot, run->snapshot_path, run->net, run->optimizer, run->train);
    if (status == TN_OK)
        status = tn__history_restore(&run->history, snapshot, run->snapshot_path);
    if (status != TN_OK)
        return status;
    int64_t epoch = tn_loader_epoch(run->train);
    if (epoch > INT_MAX || (size_t)epoch != run->history.count)
        return tn__fail(TN_ERR_FORMAT, "train",
                        "'%s' is of epoch %" PRId64 " and holds the figures of %zu: it is damaged; train without "
                        "resuming",
                        run->snapshot_path, epoch, run->history.count);
    run->snapshot_epoch = (int)epoch;
    return tn__output_resumed(run);
}

static void say_what(tn__run *run, const tn_dataset *train, const tn_dataset *test)
{
    char **text = run->words.text;
    char threads[32] = "", classes[48] = "";
    if (run->device.kind == TN_DEVICE_CPU)
        snprintf(threads, sizeof threads, " (%d thread%s)", tn_threads(), tn_threads() == 1 ? "" : "s");
    if (run->classifies)
        snprintf(classes, sizeof classes, ", %" PRId64 " classes", tn_dataset_classes(train));
    tn__report_line(&run->report, "%s: %" PRId64 " training samples, %" PRId64 " test samples%s",
                    text[TN__WORD_DATASET], tn_dataset_size(train), tn_dataset_size(test), classes);
    tn__report_line(&run->report, "%s: %" PRId64 " parameters; %s, %s rate, batch %s, seed %s, on %s%s",
                    text[TN__WORD_MODEL], tn_param_total(run->net), text[TN__WORD_OPTIMIZER], text[TN__WORD_SCHEDULE],
                    text[TN__WORD_BATCH], text[TN__WORD_SEED], tn_device_name(run->device), threads);
}

static tn_status check_datasets(const tn__run *run, const tn_dataset *train, const tn_dataset *test)
{
    tn_status status = tn_dataset_status(train);
    if (status == TN_OK)
        status = tn_dataset_status(test);
    if (status == TN_OK && (tn_dataset_size(train) == 0 || tn_dataset_size(test) == 0))
        status = tn__fail(TN_ERR_VALUE, "train",
                          "'%s' holds %" PRId64 " training and %" PRId64 " test samples: both are needed",
                          run->words.text[TN__WORD_DATASET], tn_dataset_size(train), tn_dataset_size(test));
    return status;
}

/* Everything that a run needs; what was made so far is run_free's on failure. */
static tn_status set_up(tn__run *run, const tn_train_opts *opts, tn_dataset *train, tn_dataset *test)
{
    run->classifies = !tn_dtype_is_float(tn_dtype_of(tn_dataset_t(train)));
    int64_t train_classes = tn_dataset_classes(train), test_classes = tn_dataset_classes(test);
    const tn_array *t = tn_dataset_t(train);
    int64_t outputs =
        run->classifies ? (train_classes > test_classes ? train_classes : test_classes) : tn_size(t) / tn_dim(t, 0);
    tn_status status = describe_dataset(run, train);
    if (status == TN_OK)
        status = tn__words_fit(&run->words, outputs);
    tn_archive *snapshot = status == TN_OK ? open_snapshot(run, opts) : NULL;
    if (status == TN_OK)
        status = tn_error_code();
    if (status == TN_OK && snapshot)
        status = tn__words_resume(&run->words, snapshot, run->snapshot_path);
    if (status == TN_OK)
        status = tn__words_default(&run->words, outputs);
    if (status == TN_OK)
        status = make_net(run, train, outputs);
    tn_status made = make_loaders(run, train, test); /* in any case: they own the datasets */
    status = status == TN_OK ? made : status;
    if (status == TN_OK && snapshot)
        status = restore(run, snapshot);
    tn_archive_free(snapshot);
    if (status != TN_OK)
        return status;
    run->epochs = (int)tn__words_number(&run->words, TN__WORD_EPOCHS);
    tn__report_begin(&run->report, opts->report, run->epochs, tn_dataset_size(train));
    say_what(run, train, test);
    if (run->snapshot_epoch)
        tn__report_line(&run->report, "resumed after epoch %d", run->snapshot_epoch);
    else if (opts->resume)
        tn__report_line(&run->report, "%s does not exist: starting from the beginning", run->snapshot_path);
    return TN_OK;
}

/* ---- the epochs ---- */

static tn_status one_epoch(tn__run *run, int epoch)
{
    tn_epoch row = {.epoch = epoch};
    double began = tn__seconds();
    tn__report_epoch_begins(&run->report);
    tn_optimizer_set_lr(run->optimizer, run->first_rate * run->schedule->factor((epoch - 1.0) / run->epochs));
    tn_status status = tn__run_updates(run, epoch, &row.train_loss);
    double trained = tn__seconds();
    if (status == TN_OK)
        status =
            tn__evaluate_loader(run->net, run->test, run->classifies, run->device, &row.test_loss, &row.test_accuracy);
    if (status != TN_OK)
        return status;
    row.seconds = tn__seconds() - began;
    row.samples_per_second = (double)run->report.done / (trained - began);
    status = tn__history_add(&run->history, &row);
    if (status != TN_OK)
        return status;
    tn__report_epoch(&run->report, &row);
    return tn__output_epoch(run, epoch == run->epochs);
}

static tn_status go_through(tn__run *run)
{
    int done = (int)run->history.count;
    if (done >= run->epochs)
        tn__report_line(&run->report, "%d epoch%s done already; ask for more --epochs to go on", done,
                        done == 1 ? " is" : "s are");
    tn_status status = TN_OK;
    for (int epoch = done + 1; epoch <= run->epochs && status == TN_OK; epoch++)
        status = one_epoch(run, epoch);
    tn__report_end(&run->report);
    return status;
}

static void run_free(tn__run *run)
{
    tn_meter_free(run->loss);
    tn_loader_free(run->train);
    tn_loader_free(run->test);
    tn_optimizer_free(run->optimizer);
    tn_layer_free(run->net);
    tn__history_free(&run->history);
    tn__words_free(&run->words);
    tn__free(run->snapshot_path);
    tn__output_close(run);
}

static tn_status start(tn__run *run, const char *dataset, const tn_train_opts *opts)
{
    tn_status status = tn__words_given(&run->words, dataset, opts);
    const char *why = NULL;
    if (status == TN_OK && run->device.kind == TN_DEVICE_NULL)
        status = tn__fail(TN_ERR_DEVICE, "train",
                          "null computes nothing, so that nothing is learnt there; use cpu or cuda:0");
    if (status == TN_OK && !tn_device_available(run->device, &why))
        status = tn__fail(TN_ERR_DEVICE, "train", "%s cannot be used: %s", tn_device_name(run->device), why ? why : "");
    if (status == TN_OK)
        status = tn__output_open(run);
    if (status != TN_OK)
        return status;
    tn_dataset *train = tn_dataset_named(dataset, TN_TRAIN);
    tn_dataset *test = tn_dataset_status(train) == TN_OK ? tn_dataset_named(dataset, TN_TEST) : NULL;
    status = test ? check_datasets(run, train, test) : tn_dataset_status(train);
    if (status == TN_OK)
        return set_up(run, opts, train, test);
    tn_dataset_free(train);
    tn_dataset_free(test);
    return status;
}

tn_status tn_train_with(const char *dataset, const tn_train_opts *opts, tn_epoch *last)
{
    static const tn_train_opts defaults;
    opts = opts ? opts : &defaults;
    if (last)
        *last = (tn_epoch){0};
    if (!tn_ok())
        return tn_error_code();
    tn_generator before = *tn_default_generator();
    tn__run run = {.out = opts->out,
                   .folder = -1,
                   .stop = opts->stop,
                   .device = opts->device.kind == TN_DEVICE_DEFAULT ? tn_device_best() : opts->device};
    tn_status status = TN_OK;
    TN_SCOPE {
        status = start(&run, dataset, opts);
        if (status == TN_OK)
            status = go_through(&run);
        if (last && run.history.count)
            *last = run.history.rows[run.history.count - 1];
        run_free(&run);
    }
    *tn_default_generator() = before;
    return status;
}
