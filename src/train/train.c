/* SPDX-License-Identifier: MIT */
/* tn_train_with: sets a trainer up over a named dataset, anew or from its snapshot, and runs it. */
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <string.h>
#include <unistd.h>
#include <tanso/array.h>
#include <tanso/autograd.h>
#include <tanso/comm.h>
#include <tanso/device.h>
#include <tanso/sampler.h>
#include "core/error.h"
#include "core/memory.h"
#include "nn/layer.h"
#include "train/parts.h"
#include "train/run.h"

#define TEST_BATCH 1000

/* ---- setting up ---- */

static tn_status describe_dataset(tn__run *run, const tn_dataset *dataset)
{
    char input[128] = "";
    tn_shape shape = tn_shape_of(tn_dataset_x(dataset));
    for (int i = 1, length = 0; i < shape.ndim; i++)
        length += snprintf(input + length, sizeof input - (size_t)length, "%s%" PRId64, i > 1 ? "," : "", shape.dim[i]);
    tn_status status = tn__config_set(&run->config, TN__CONFIG_INPUT, "%s", input);
    return status == TN_OK ? tn__config_set(&run->config, TN__CONFIG_SAMPLES, "%" PRId64, tn_dataset_size(dataset))
                           : status;
}

/* The snapshot to go on from; NULL if there is none (or on an error, which is latched). */
static tn_archive *open_snapshot(const tn__run *run, const tn_train_opts *opts)
{
    if (!opts->resume)
        return NULL;
    if (!run->snapshot_path) {
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
                                  run->config.text[TN__CONFIG_MODEL], tn_ndim(y) == 2 ? tn_dim(y, 1) : tn_size(y),
                                  run->config.text[TN__CONFIG_DATASET], outputs,
                                  run->classifies ? "classes" : "values a target", outputs);
        }
    return status;
}

/* The model's text, where ranks have gradients or parameters in parts. */
static void mark_layers(tn__run *run)
{
    if (!run->comm || run->shard < 2)
        return;
    for (size_t i = 0; i < run->net->child_count; i++)
        tn_layer_shard(run->net->children[i].layer);
    if (run->net->child_count == 0)
        tn_layer_shard(run->net);
}

static tn_status make_net(tn__run *run, const tn_dataset *dataset, int64_t outputs)
{
    tn_seed(tn__config_number(&run->config, TN__CONFIG_SEED));
    run->net = tn_layer_parse(run->config.text[TN__CONFIG_MODEL]);
    tn_status status = tn_layer_status(run->net);
    if (status == TN_OK)
        status = tn_layer_to(run->net, run->device);
    if (status == TN_OK)
        status = try_forward(run, dataset, outputs);
    if (status == TN_OK && tn_param_total(run->net) == 0)
        status =
            tn__fail(TN_ERR_VALUE, "train",
                     "the model \"%s\" has no parameters to train: give it a layer that has, such as linear:%" PRId64,
                     run->config.text[TN__CONFIG_MODEL], outputs);
    if (status != TN_OK)
        return status;
    mark_layers(run);
    run->optimizer = tn_optimizer_parse(run->config.text[TN__CONFIG_OPTIMIZER], run->net);
    status = tn_optimizer_status(run->optimizer);
    const tn_distribute_opts shared = {.shard = run->shard};
    return status == TN_OK && run->comm ? tn_optimizer_distribute_with(run->optimizer, run->comm, &shared) : status;
}

/* Which part of a minibatch is this rank's. */
static tn_status divide_batch(tn__run *run)
{
    int64_t batch = (int64_t)tn__config_number(&run->config, TN__CONFIG_BATCH), ranks = 1;
    if (run->comm)
        ranks = tn_comm_size(run->comm);
    run->share = batch / ranks;
    if (batch % ranks == 0)
        return TN_OK;
    return tn__fail(TN_ERR_VALUE, "train",
                    "%" PRId64 " ranks cannot divide minibatches of %" PRId64 " sample%s evenly: ask for %" PRId64
                    " of a new run, or start as many ranks as divide them",
                    ranks, batch, batch == 1 ? "" : "s", (batch / ranks + 1) * ranks);
}

/* Samples of a minibatch of tests. All ranks have as many of these where each forward is a call of all. */
static tn_status choose_test_batch(const tn__run *run, int64_t samples, int64_t *batch)
{
    int64_t ranks = run->comm ? tn_comm_size(run->comm) : 1, most = (samples + ranks - 1) / ranks;
    int64_t batches = (most + TEST_BATCH - 1) / TEST_BATCH;
    *batch = TEST_BATCH;
    if (ranks == 1 || run->shard < 3)
        return TN_OK;
    *batch = (most + batches - 1) / batches;
    if (samples >= ranks)
        return TN_OK;
    return tn__fail(TN_ERR_VALUE, "train",
                    "%" PRId64 " ranks have parameters in parts (shard = 3), and so each needs a test sample, of which "
                    "there are %" PRId64,
                    ranks, samples);
}

/* Both loaders; the training one owns its dataset, the test one too. */
static tn_status make_loaders(tn__run *run, tn_dataset *train, tn_dataset *test)
{
    tn_loader_opts shuffled = {.batch = run->share,
                               .seed = tn__config_number(&run->config, TN__CONFIG_SEED),
                               .shuffle = true,
                               .device = run->device};
    tn_loader_opts ordered = {.device = run->device};
    tn_status status = choose_test_batch(run, tn_dataset_size(test), &ordered.batch);
    if (run->comm) {
        shuffled.sampler = tn_rank_sampler_with(tn_dataset_size(train), run->comm,
                                                &(tn_rank_sampler_opts){.shuffle = true});
        ordered.sampler = tn_rank_sampler_with(tn_dataset_size(test), run->comm,
                                               &(tn_rank_sampler_opts){.uneven = true});
    }
    run->train = tn_loader_new_with(train, &shuffled);
    run->test = tn_loader_new_with(test, &ordered);
    if (status == TN_OK)
        status = tn_loader_status(run->train);
    return status == TN_OK ? tn_loader_status(run->test) : status;
}

/* The trainer with all that the run has of it. */
static tn_status make_trainer(tn__run *run, const tn_train_opts *opts)
{
    run->epochs = (int)tn__config_number(&run->config, TN__CONFIG_EPOCHS);
    FILE *report = run->follows ? NULL : opts->report;
    tn__lines_begin(&run->lines, report, run->epochs, tn_loader_samples(run->train));
    tn_trainer_opts trainer_opts = {.stop = tn__stop_new(run),
                                    .out = run->out && !run->follows ? run->out : ".", /* where nothing is made */
                                    .stop_flag = opts->stop,
                                    .comm = run->comm,
                                    .quiet = true};
    tn_evaluator_opts evaluating = {.comm = run->comm};
    tn_updater_opts updating = {.loss = tn__record_loss, .user = run, .devices = run->devices};
    tn_updater *updater = run->devices ? tn_parallel_updater_with(run->train, run->optimizer, &updating)
                                       : tn_standard_updater_with(run->train, run->optimizer, &updating);
    run->trainer = tn_trainer_new_with(updater, &trainer_opts);
    if (tn_trainer_status(run->trainer) == TN_OK)
        run->trainer->in_own_folder = run->folder >= 0;
    tn_status status = tn_extend_with(run->trainer, tn__record_new(run), NULL);
    if (status == TN_OK)
        status = tn_extend_with(run->trainer, tn_evaluator_with(run->test, run->net, &evaluating), NULL);
    if (status == TN_OK)
        status = tn__named_extend(run, run->config.text[TN__CONFIG_SCHEDULE], run->config.text[TN__CONFIG_EXTEND]);
    tn_progress_bar_opts bar = {.stream = report};
    if (status == TN_OK && run->lines.terminal)
        status = tn_extend_with(run->trainer, tn_progress_bar_with(&bar), NULL);
    return status == TN_OK ? tn__output_extend(run) : status;
}

static tn_status restore(tn__run *run, tn_archive *snapshot)
{
    tn_status status = tn__trainer_restore(run->trainer, snapshot, run->snapshot_path, true, NULL);
    if (status != TN_OK)
        return status;
    int64_t epoch = tn_trainer_epoch(run->trainer);
    if (epoch > INT_MAX || (size_t)epoch != run->history.count)
        return tn__fail(TN_ERR_FORMAT, "train",
                        "'%s' is of epoch %" PRId64 " and holds the figures of %zu: it is damaged; train without "
                        "resuming",
                        run->snapshot_path, epoch, run->history.count);
    run->resumed = tn_trainer_iteration(run->trainer);
    int64_t batch = run->share, done = tn_loader_position(run->train);
    int64_t expected = tn_loader_epoch(run->train) * tn_loader_length(run->train) + (done + batch - 1) / batch;
    if (run->resumed != expected)
        return tn__fail(TN_ERR_FORMAT, "train",
                        "'%s' is of iteration %" PRId64 " (updater/iteration), and its samples are those of %" PRId64
                        ": it is damaged; train without resuming", run->snapshot_path, run->resumed, expected);
    return TN_OK;
}

/* The names of the devices, as many as there is room for. */
static void name_devices(const tn__run *run, char *names, size_t room)
{
    size_t length = (size_t)snprintf(names, room, "%s", tn_device_name(run->device));
    for (int i = 1; run->devices && run->devices[i].kind != TN_DEVICE_DEFAULT && length + 1 < room; i++)
        length += (size_t)snprintf(names + length, room - length, ", %s", tn_device_name(run->devices[i]));
}

static void say_what(tn__run *run, const tn_dataset *train, const tn_dataset *test, bool resume)
{
    char **text = run->config.text;
    char threads[32] = "", classes[48] = "", devices[256];
    name_devices(run, devices, sizeof devices);
    if (run->device.kind == TN_DEVICE_CPU)
        snprintf(threads, sizeof threads, " (%d thread%s)", tn_threads(), tn_threads() == 1 ? "" : "s");
    if (run->classifies)
        snprintf(classes, sizeof classes, ", %" PRId64 " classes", tn_dataset_classes(train));
    tn__lines_say(&run->lines, "%s: %" PRId64 " training samples, %" PRId64 " test samples%s", text[TN__CONFIG_DATASET],
             tn_dataset_size(train), tn_dataset_size(test), classes);
    tn__lines_say(&run->lines, "%s: %" PRId64 " parameters; %s, %s rate, batch %s, seed %s, on %s%s",
             text[TN__CONFIG_MODEL], tn_param_total(run->net), text[TN__CONFIG_OPTIMIZER], text[TN__CONFIG_SCHEDULE],
             text[TN__CONFIG_BATCH], text[TN__CONFIG_SEED], devices, threads);
    static const char *const in_parts[] = {"", "; states are shared out", "; states and gradients are shared out",
                                           "; states, gradients and parameters are shared out"};
    if (run->comm)
        tn__lines_say(&run->lines, "by %d ranks, with %" PRId64 " samples of each batch%s", tn_comm_size(run->comm),
                      run->share, in_parts[run->shard]);
    if (*text[TN__CONFIG_EXTEND])
        tn__lines_say(&run->lines, "with %s", text[TN__CONFIG_EXTEND]);
    if (run->resumed >= 0)
        tn__lines_say(&run->lines, "resumed after %s", tn__run_place(run, run->resumed).text);
    else if (resume)
        tn__lines_say(&run->lines, "%s does not exist: starting from the beginning", run->snapshot_path);
}

static tn_status check_datasets(const tn__run *run, const tn_dataset *train, const tn_dataset *test)
{
    tn_status status = tn_dataset_status(train);
    if (status == TN_OK)
        status = tn_dataset_status(test);
    if (status == TN_OK && (tn_dataset_size(train) == 0 || tn_dataset_size(test) == 0))
        status = tn__fail(TN_ERR_VALUE, "train",
                          "'%s' holds %" PRId64 " training and %" PRId64 " test samples: both are needed",
                          run->config.text[TN__CONFIG_DATASET], tn_dataset_size(train), tn_dataset_size(test));
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
        status = tn__config_fit(&run->config, outputs);
    tn_archive *snapshot = status == TN_OK ? open_snapshot(run, opts) : NULL;
    if (status == TN_OK)
        status = tn_error_code();
    if (status == TN_OK && snapshot)
        status = tn__config_resume(&run->config, snapshot, run->snapshot_path);
    if (status == TN_OK)
        status = tn__config_default(&run->config, outputs);
    if (status == TN_OK && run->comm)
        status = tn__config_compare(&run->config, run->shard, snapshot != NULL, run->comm);
    if (status == TN_OK)
        status = make_net(run, train, outputs);
    if (status == TN_OK)
        status = divide_batch(run);
    tn_status made = make_loaders(run, train, test); /* in any case: they own the datasets */
    status = status == TN_OK ? made : status;
    if (status == TN_OK)
        status = make_trainer(run, opts);
    if (status == TN_OK && snapshot)
        status = restore(run, snapshot);
    tn_archive_free(snapshot);
    if (status == TN_OK)
        say_what(run, train, test, opts->resume);
    if (status == TN_OK && run->out && !run->follows)
        tn__output_tell_others(run);
    return status;
}

/* ---- running ---- */

static tn_status stopped(const tn__run *run)
{
    int64_t iteration = tn_trainer_iteration(run->trainer);
    if (iteration == 0)
        return tn__fail(TN_ERR_STATE, "train", "stopped before the first step, as asked");
    return tn__fail(TN_ERR_STATE, "train", "stopped after %s, as asked", tn__run_place(run, iteration).text);
}

static tn_status go(tn__run *run)
{
    size_t done = run->history.count;
    bool ended = run->stopped_early;
    if ((int64_t)done >= run->epochs)
        tn__lines_say(&run->lines, "%zu epoch%s done already; ask for more --epochs to go on", done,
                 done == 1 ? " is" : "s are");
    tn_status status = tn_trainer_run(run->trainer);
    if (status == TN_OK && tn_trainer_stopped(run->trainer))
        status = stopped(run);
    if (status == TN_OK && run->stopped_early && (int64_t)run->history.count < run->epochs)
        tn__lines_say(&run->lines, "%s early, after %s", ended ? "was stopped" : "stopped",
                 tn__run_place(run, tn_trainer_iteration(run->trainer)).text);
    return status;
}

static void run_free(tn__run *run)
{
    tn_trainer_free(run->trainer);
    for (int i = 0; i < run->stopper_count; i++)
        tn_trigger_free(run->stoppers[i]);
    tn_trigger_free(run->snapshot_every);
    tn_summary_free(run->losses);
    tn__free(run->rank_losses);
    tn_loader_free(run->train);
    tn_loader_free(run->test);
    tn_optimizer_free(run->optimizer);
    tn_layer_free(run->net);
    tn__history_free(&run->history);
    tn__config_free(&run->config);
    tn__free(run->snapshot_path);
    tn__output_close(run);
}

static tn_status start(tn__run *run, const char *dataset, const tn_train_opts *opts)
{
    tn_status status = tn__config_given(&run->config, dataset, opts);
    const char *why = NULL;
    if (status == TN_OK && run->device.kind == TN_DEVICE_NULL)
        status = tn__fail(TN_ERR_DEVICE, "train",
                          "null computes nothing, so that nothing is learnt there; use cpu or cuda:0");
    if (status == TN_OK && !tn_device_available(run->device, &why))
        status = tn__fail(TN_ERR_DEVICE, "train", "%s cannot be used: %s", tn_device_name(run->device), why ? why : "");
    if (status == TN_OK)
        status = tn_train_check(opts->schedule, opts->extend);
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
    if (tn__latched())
        return tn_error_code();
    tn_generator before = *tn_default_generator();
    tn_device device = opts->devices ? opts->devices[0] : opts->device;
    bool several = opts->devices && opts->devices[0].kind != TN_DEVICE_DEFAULT &&
                   opts->devices[1].kind != TN_DEVICE_DEFAULT;
    tn__run run = {.out = opts->out,
                   .folder = -1,
                   .resumed = -1,
                   .written = -1,
                   .devices = several ? opts->devices : NULL,
                   .device = device.kind == TN_DEVICE_DEFAULT ? tn_device_best() : device,
                   .shard = opts->shard};
    int ranks = opts->comm ? tn_comm_size(opts->comm) : 1;
    tn_status status = ranks < 0 ? tn_comm_status(opts->comm) : TN_OK;
    run.comm = ranks > 1 ? opts->comm : NULL;
    run.follows = run.comm && tn_comm_rank(run.comm) != 0;
    if (run.comm && several)
        status = tn__fail(TN_ERR_UNSUPPORTED, "train",
                          "%d ranks train together, each on one device: start as many as there are devices", ranks);
    TN_SCOPE {
        if (status == TN_OK)
            status = start(&run, dataset, opts);
        if (status == TN_OK)
            status = go(&run);
        if (last && run.history.count)
            *last = run.history.rows[run.history.count - 1];
        if (last && run.trainer)
            last->further = tn_trainer_iteration(run.trainer) % tn_loader_length(run.train);
        run_free(&run);
    }
    *tn_default_generator() = before;
    return status;
}
