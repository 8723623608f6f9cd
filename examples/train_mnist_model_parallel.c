/* SPDX-License-Identifier: MIT */
/* After ChainerMN's examples/mnist/train_mnist_model_parallel.py: a network of which each of two processes has a half.
 *
 *     mpirun -n 2 train_mnist_model_parallel [DATASET [EPOCHS [UNITS]]]
 *
 * Rank 0 has the samples' first layer, sends what it gives to rank 1, and gets back what two further layers make of it;
 * gradients go the other way. */
#include <stdio.h>
#include <stdlib.h>
#include <tanso.h>

enum { FORTH, BACK }; /* tags of messages */

/* Rank 0's side: a layer here, layers there, a layer here. */
static tn_array *model_0(tn_comm *comm, tn_layer *first, tn_layer *last, const tn_array *x)
{
    tn_array *sent = tn_comm_send(comm, tn_relu(tn_forward(first, x)), 1, FORTH);
    return tn_forward(last, tn_comm_receive(comm, 1, BACK, sent));
}

/* Rank 1's side: what it gives back is of no elements here, and backward begins from it. */
static tn_array *model_1(tn_comm *comm, tn_layer *middle)
{
    tn_array *h = tn_comm_receive(comm, 0, FORTH, NULL);
    return tn_comm_send(comm, tn_relu(tn_forward(middle, h)), 0, BACK);
}

static double accuracy_of(tn_comm *comm, tn_layer *first, tn_layer *second, tn_loader *batches)
{
    double right = 0, samples = 0;
    TN_NO_GRAD
    TN_EACH (batch, batches) {
        if (tn_comm_rank(comm) == 0)
            right += tn_item(tn_accuracy(model_0(comm, first, second, batch.x), batch.t)) * (double)batch.size;
        else
            model_1(comm, second);
        samples += (double)batch.size;
    }
    return right / samples;
}

int main(int argc, char **argv)
{
    const char *name = argc > 1 ? argv[1] : "digits";
    int epochs = argc > 2 ? atoi(argv[2]) : 20, units = argc > 3 ? atoi(argv[3]) : 1000;
    tn_comm *comm = tn_comm_world();
    if (tn_comm_status(comm) != TN_OK || tn_comm_size(comm) != 2) {
        printf("skipped: two processes are needed: mpirun -n 2 train_mnist_model_parallel\n");
        return 77;
    }
    int rank = tn_comm_rank(comm);
    tn_device device = tn_cuda_available() ? tn_cuda(tn_comm_local_rank(comm)) : tn_cpu();
    tn_status status = tn_set_device(device);

    tn_layer *first = rank == 0 ? tn_linear(units) : NULL; /* of rank 0 alone */
    tn_layer *second = rank == 0 ? tn_linear(10) : tn_sequential(tn_linear(units), tn_relu_layer(), tn_linear(units));
    tn_layer *own = rank == 0 ? tn_sequential(first, second) : second;
    tn_optimizer *optimizer = tn_adam(own);
    /* Both go through the same minibatches: rank 1 needs to know how many there are. */
    tn_loader *train = tn_loader_new(tn_dataset_named(name, TN_TRAIN), .batch = 100, .shuffle = true, .seed = 1,
                                     .device = device);
    tn_loader *test = tn_loader_new(tn_dataset_named(name, TN_TEST), .batch = 100, .device = device);

    for (int epoch = 1; epoch <= epochs && status == TN_OK && tn_ok(); epoch++) {
        TN_EACH (batch, train) {
            tn_array *y = rank == 0 ? model_0(comm, first, second, batch.x) : model_1(comm, second);
            status = tn_backward(rank == 0 ? tn_softmax_cross_entropy(y, batch.t) : y);
            if (status == TN_OK)
                status = tn_step(optimizer);
        }
        double accuracy = accuracy_of(comm, first, second, test);
        if (rank == 0)
            printf("epoch %d, accuracy %.4f\n", epoch, accuracy);
    }

    if (!tn_ok())
        fprintf(stderr, "rank %d: %s\n", rank, tn_error());
    tn_loader_free(train);
    tn_loader_free(test);
    tn_optimizer_free(optimizer);
    tn_layer_free(own);
    return tn_ok() ? 0 : 1;
}
