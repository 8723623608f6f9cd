/* SPDX-License-Identifier: MIT */
/*
 * Data of one's own: a table of numbers as CSV, read, normalized, split, and learned by a small network with a falling
 * learning rate, clipped gradients and a test loss each epoch. The training stops half way and goes on from its
 * snapshot, with the same bits as if it had not; the network goes into a file, from which a second one is made that
 * predicts.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <tanso.h>

enum { ROWS = 600, TRAINED = 500, EPOCHS = 40 };

typedef struct run {
    tn_layer *net;
    tn_optimizer *optimizer;
    tn_loader *loader;
} run;

static run run_new(const tn_array *x, const tn_array *t)
{
    tn_seed(7); /* of the first weights */
    run r = {.net = tn_layer_parse("linear:32 tanh linear:32 tanh linear:1")};
    r.optimizer = tn_adam(r.net, .clip_norm = 1);
    r.loader = tn_loader_new(tn_dataset_arrays(x, t), .batch = 50, .shuffle = true, .seed = 7);
    return r;
}

static void run_free(run r)
{
    tn_loader_free(r.loader); /* and its dataset */
    tn_optimizer_free(r.optimizer);
    tn_layer_free(r.net);
}

/* Epochs first to last, from 0; gives the last mean training loss. */
static double train(run r, int first, int last, tn_dataset *test)
{
    tn_meter *mean = tn_meter_new(tn_cpu());
    double loss = NAN, test_loss = NAN;
    for (int epoch = first; epoch <= last; epoch++) {
        tn_optimizer_set_lr(r.optimizer, 0.005 * (1 + cos(3.141592653589793 * epoch / EPOCHS)));
        TN_EACH(b, r.loader) {
            tn_array *error = tn_mean_squared_error(tn_forward(r.net, b.x), b.t);
            tn_backward(error);
            tn_step(r.optimizer);
            tn_meter_add(mean, error, (double)b.size);
        }
        loss = tn_meter_take(mean);
        if (tn_evaluate(r.net, test, 0, tn_cpu(), &test_loss, NULL) != TN_OK)
            break;
        if (epoch % 10 == 9)
            printf("epoch %d, loss %.5f, test loss %.5f\n", epoch + 1, loss, test_loss);
    }
    tn_meter_free(mean);
    return loss;
}

/* y = x0^2 - x1, as a program or an instrument might write it. */
static bool write_table(const char *path)
{
    FILE *file = fopen(path, "w");
    if (!file)
        return false;
    fprintf(file, "x0,x1,y\n");
    srand(1);
    for (int i = 0; i < ROWS; i++) {
        double a = 4.0 * rand() / RAND_MAX - 2, b = 4.0 * rand() / RAND_MAX - 2;
        fprintf(file, "%.4f,%.4f,%.4f\n", a, b, a * a - b);
    }
    return fclose(file) == 0;
}

int main(void)
{
    if (!write_table("regression.csv"))
        return perror("regression.csv"), 1;
    double whole = 0, resumed = 0, wrong = NAN;
    TN_SCOPE {
        tn_array *table = tn_load_csv("regression.csv", .skip = 1);
        tn_array *x = tn_get(table, TN_WHOLE, TN_RANGE(0, 2, 1)), *y = tn_get(table, TN_WHOLE, TN_RANGE(2, 3, 1));
        tn_array *center = tn_mean(x, .axis = TN_AXES(0)), *width = tn_std(x, .axis = TN_AXES(0));
        x = tn_divide(tn_subtract(x, center), width);
        tn_array *train_x = tn_slice_axis(x, 0, 0, TRAINED, 1), *train_y = tn_slice_axis(y, 0, 0, TRAINED, 1);
        tn_dataset *test =
            tn_dataset_arrays(tn_slice_axis(x, 0, TRAINED, ROWS, 1), tn_slice_axis(y, 0, TRAINED, ROWS, 1));

        run r = run_new(train_x, train_y);
        train(r, 0, EPOCHS / 2 - 1, test);
        if (tn_snapshot_save("regression.snapshot.safetensors", r.net, r.optimizer, r.loader, NULL) == TN_OK)
            whole = train(r, EPOCHS / 2, EPOCHS - 1, test);
        run_free(r);

        r = run_new(train_x, train_y);
        if (tn_snapshot_load("regression.snapshot.safetensors", r.net, r.optimizer, r.loader) == TN_OK)
            resumed = train(r, EPOCHS / 2, EPOCHS - 1, test);
        printf("went on with the same bits: %s\n", whole == resumed ? "yes" : "no");
        tn_status saved = tn_layer_save(r.net, "regression.safetensors");
        run_free(r);
        tn_dataset_free(test);

        tn_layer *net = tn_layer_parse("linear:32 tanh linear:32 tanh linear:1");
        if (saved == TN_OK && tn_layer_load(net, "regression.safetensors") == TN_OK) TN_NO_GRAD {
            tn_layer_train(net, false);
            tn_array *asked = tn_from_host(((float[]){1, 1, -1, 0.5f, 0, -1}), TN_SHAPE(3, 2), TN_FLOAT32);
            tn_array *answer = tn_forward(net, tn_divide(tn_subtract(asked, center), width));
            tn_array *truth = tn_from_host(((float[]){0, 0.5f, 1}), TN_SHAPE(3, 1), TN_FLOAT32);
            tn_print(answer);
            wrong = tn_item(tn_max(tn_abs(tn_subtract(answer, truth))));
        }
        tn_layer_free(net);
    }
    if (!tn_ok())
        fprintf(stderr, "%s\n", tn_error());
    return tn_ok() && whole == resumed && wrong < 0.2 ? 0 : 1;
}
