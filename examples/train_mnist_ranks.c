/* SPDX-License-Identifier: MIT */
/* After ChainerMN's examples/mnist/train_mnist.py: data parallel training by several processes.
 *
 *     mpirun -n 4 train_mnist_ranks [DATASET [EPOCHS [FOLDER [UNITS]]]]
 *
 * Each process takes its share of the samples, gradients are means over all of them, and the first one reports. The GPU
 * of a process is that of its rank on its machine. Without mpirun it is one process. */
#include <stdio.h>
#include <stdlib.h>
#include <tanso.h>

int main(int argc, char **argv)
{
    const char *name = argc > 1 ? argv[1] : "digits";
    double epochs = argc > 2 ? atof(argv[2]) : 20;
    const char *out = argc > 3 ? argv[3] : "result";
    int units = argc > 4 ? atoi(argv[4]) : 1000;

    tn_comm *comm = tn_comm_world();
    bool first = tn_comm_rank(comm) == 0;
    tn_device device = tn_cuda_available() ? tn_cuda(tn_comm_local_rank(comm)) : tn_cpu();
    if (first)
        printf("ranks: %d, units: %d, batch of each: 100, epochs: %g\n", tn_comm_size(comm), units, epochs);

    tn_layer *model = tn_classifier(tn_sequential(tn_linear(units), tn_relu_layer(), tn_linear(units), tn_relu_layer(),
                                                  tn_linear(10)));
    tn_layer_to(model, device);
    tn_optimizer *optimizer = tn_adam(model);
    tn_status status = tn_optimizer_distribute(optimizer, comm);

    tn_dataset *samples = tn_dataset_named(name, TN_TRAIN), *others = tn_dataset_named(name, TN_TEST);
    tn_sampler *share = tn_rank_sampler(tn_dataset_size(samples), comm, .shuffle = true);
    tn_sampler *part = tn_rank_sampler(tn_dataset_size(others), comm, .uneven = true);
    tn_loader *train = tn_loader_new(samples, .batch = 100, .device = device, .sampler = share);
    tn_loader *test = tn_loader_new(others, .batch = 100, .device = device, .sampler = part);

    tn_updater *updater = tn_standard_updater(train, optimizer, .device = device);
    tn_trainer *trainer = tn_trainer_new(updater, .stop = TN_EVERY(epochs, TN_EPOCH), .out = out);
    tn_extend(trainer, tn_evaluator(test, model, .comm = comm));
    if (first) { /* what one process prints and writes */
        tn_extend(trainer, tn_log_report());
        tn_extend(trainer, tn_print_report("epoch", "main/loss", "validation/main/loss", "main/accuracy",
                                           "validation/main/accuracy", "elapsed_time"));
        tn_extend(trainer, tn_progress_bar());
    }
    if (status == TN_OK)
        status = tn_trainer_run(trainer);

    if (status != TN_OK)
        fprintf(stderr, "%s\n", tn_error());
    tn_trainer_free(trainer);
    tn_loader_free(train);
    tn_loader_free(test);
    tn_optimizer_free(optimizer);
    tn_layer_free(model);
    return status != TN_OK;
}
