/* SPDX-License-Identifier: MIT */
/*
 * Rows about the trainer: the same training by a loop of one's own, which measures what the trainer does (losses and
 * accuracies of minibatches, and each epoch those of the test samples), and by a trainer with everything that one
 * usually has: evaluator, log, table, plot, progress bar, and a snapshot each epoch. Both take turns, each first in
 * every other one, so that a busy machine is busy for both; the row is the trainer's, and its note what it takes more:
 * the median of the ratios of one turn's two times, as these are next to one another where the machine's speed wanders,
 * and the ratio of the least times. A run ends when its last snapshot is on the disk, once however long it is; so on a
 * GPU, which does an epoch of MNIST in 20 ms, there are 20 of them, as in Chainer's example.
 */
#include <sys/stat.h>
#include <unistd.h>
#include "measure.h"

typedef struct job {
    tn_layer *net;
    tn_optimizer *optimizer;
    tn_loader *batches, *tests;
    tn_dataset *test;
    int epochs; /* a call */
    const char *folder;
    FILE *silent;
    tn_device device;
} job;

static void by_hand(job *j)
{
    tn_meter *mean = tn_meter_new(j->device), *share = tn_meter_new(j->device);
    tn_loader_set_epoch(j->batches, 0); /* a trainer leaves it at the end of an epoch */
    for (int epoch = 0; epoch < j->epochs && tn_ok(); epoch++) {
        double loss, accuracy;
        for (tn_batch b; tn_loader_next(j->batches, &b);) TN_SCOPE {
            tn_array *y = tn_forward(j->net, b.x), *value = tn_softmax_cross_entropy(y, b.t);
            tn_array *right = tn_accuracy(y, b.t);
            tn_backward(value);
            tn_step(j->optimizer);
            tn_meter_add(mean, value, (double)b.size);
            tn_meter_add(share, right, (double)b.size);
        }
        tn_meter_take(mean);
        tn_meter_take(share);
        if (tn_evaluate(j->net, j->test, 1000, j->device, &loss, &accuracy) != TN_OK)
            break;
    }
    tn_meter_free(mean);
    tn_meter_free(share);
}

static void by_trainer(job *j)
{
    tn_updater *updater = tn_standard_updater(j->batches, j->optimizer);
    tn_trainer *trainer = tn_trainer_new(updater, .stop = TN_EVERY(j->epochs, TN_EPOCH), .out = j->folder);
    tn_loader_set_epoch(j->batches, 0);
    tn_extend(trainer, tn_evaluator(j->tests, j->net));
    tn_extend(trainer, tn_snapshot(.keep = 1));
    tn_extend(trainer, tn_log_report());
    tn_extend(trainer, tn_print_report_of(TN_KEYS_OF("epoch", "main/loss", "validation/main/loss"),
                                            .stream = j->silent));
    tn_extend(trainer, tn_plot_report(TN_KEYS_OF("main/loss", "validation/main/loss")));
    tn_extend(trainer, tn_progress_bar(.stream = j->silent));
    if (tn_trainer_run(trainer) != TN_OK)
        fprintf(stderr, "%s\n", tn_error());
    tn_trainer_free(trainer);
}

/* What the trainer takes more than the loop by hand, in per cent. */
typedef struct surplus {
    double median; /* of the turns */
    double least;  /* of the least times */
} surplus;

static double time_of(void (*run)(job *j), job *j)
{
    double start = now();
    run(j);
    return now() - start;
}

/* By turns; the trainer's time. */
static timing measure_turns(const bench *b, job *j, surplus *more)
{
    double hand[MOST_REPETITIONS], trainer[MOST_REPETITIONS], ratio[MOST_REPETITIONS];
    int count = 0;
    by_hand(j);
    by_trainer(j);
    double began = now();
    while (tn_ok() && count < MOST_REPETITIONS && (count < 3 || now() - began < 2 * b->budget)) {
        if (count % 2)
            trainer[count] = time_of(by_trainer, j);
        hand[count] = time_of(by_hand, j);
        if (count % 2 == 0)
            trainer[count] = time_of(by_trainer, j);
        ratio[count] = trainer[count] / hand[count];
        count++;
    }
    if (!count)
        return (timing){0};
    timing time = timing_of(trainer, count);
    *more = (surplus){.median = 100 * (timing_of(ratio, count).median - 1),
                      .least = 100 * (time.best / timing_of(hand, count).best - 1)};
    return time;
}

static void run_row(const bench *b, const char *row, const char *work, job *j, const char *data)
{
    char note[160], folder[] = "/tmp/tanso-bench-XXXXXX", command[64];
    surplus more = {0};
    j->device = b->device;
    j->folder = mkdtemp(folder);
    j->silent = fopen("/dev/null", "w");
    tn_layer_to(j->net, b->device);
    j->tests = tn_loader_new(j->test, .batch = 1000, .device = b->device, .keep_dataset = true);
    timing time = measure_turns(b, j, &more);
    snprintf(note, sizeof note, "%.1f%% more than the loop by hand, by the least times %.1f%%%s%s", more.median,
             more.least, *data ? "; " : "", data);
    report(b, (row_facts){.row = row, .work = work, .note = note}, time);
    fclose(j->silent);
    snprintf(command, sizeof command, "rm -rf '%s'", folder);
    if (system(command) != 0)
        fprintf(stderr, "%s stays\n", folder);
    tn_loader_free(j->tests);
    tn_loader_free(j->batches);
    tn_dataset_free(j->test);
    tn_optimizer_free(j->optimizer);
    tn_layer_free(j->net);
}

/* Random numbers of MNIST's shape: what they are takes no time. */
static tn_dataset *mnist_like(int64_t samples)
{
    tn_dataset *data = NULL;
    TN_SCOPE data = tn_dataset_arrays(tn_random_uniform(TN_SHAPE(samples, 784)),
                                      tn_random_integers(0, 10, TN_SHAPE(samples)));
    return data;
}

static void mnist_run(const bench *b)
{
    if (!wanted(b, "mnist-trainer"))
        return;
    job j = {.net = tn_sequential(tn_linear(1000, .in = 784), tn_sigmoid_layer(), tn_linear(10)),
             .epochs = b->device.kind == TN_DEVICE_CPU ? 2 : 20};
    char work[80];
    snprintf(work, sizeof work, "%d epochs of mnist-epoch's network by a trainer, with test", j.epochs);
    j.optimizer = tn_sgd(j.net, .lr = 0.01);
    j.batches = tn_loader_new(mnist_like(60000), .batch = 100, .shuffle = true, .device = b->device);
    j.test = mnist_like(10000);
    run_row(b, "mnist-trainer", work, &j, "random data of MNIST's shape");
}

static void digits_run(const bench *b)
{
    if (!wanted(b, "digits-trainer"))
        return;
    job j = {.net = tn_sequential(tn_linear(30, .in = 64), tn_relu_layer(), tn_linear(10)), .epochs = 300};
    j.optimizer = tn_sgd(j.net, .lr = 0.03);
    j.batches = tn_loader_new(tn_digits(TN_TRAIN), .batch = 32, .shuffle = true, .device = b->device);
    j.test = tn_digits(TN_TEST);
    run_row(b, "digits-trainer", "300 epochs of digits' network by a trainer, with test", &j, "");
}

int main(int argc, char **argv)
{
    bench b = bench_flags(argc, argv);
    tn_seed(1);
    mnist_run(&b);
    digits_run(&b);
    return 0;
}
