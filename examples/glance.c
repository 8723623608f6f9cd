/* SPDX-License-Identifier: MIT */
/* After Chainer's examples/glance: which mushrooms are poisonous, learned from a table of words.
 * glance TABLE [EPOCHS [FOLDER]]: UCI's mushrooms.csv, whose first column is the class; or mushrooms.csv beside this
 * file, a small table of the same form. */
#include <stdio.h>
#include <stdlib.h>
#include <tanso.h>

static tn_array *binary_accuracy(const tn_array *y, const tn_array *t)
{
    return tn_mean(tn_equal(tn_greater_equal(y, 0), t));
}

int main(int argc, char **argv)
{
    double epochs = argc > 2 ? atof(argv[2]) : 50;
    tn_dataset *train_set = NULL, *test_set = NULL;
    tn_table *table = tn_load_table(argc > 1 ? argv[1] : "mushrooms.csv");
    TN_SCOPE {
        tn_array *x = tn_table_array(table, 1, TN_TABLE_END, TN_FLOAT32), *t = tn_table_array(table, 0, 1, TN_INT64);
        tn_dataset *all = tn_dataset_arrays(x, t);
        if (tn_dataset_split(all, tn_dataset_size(all) * 7 / 10, &train_set, &test_set, .shuffle = true) != TN_OK)
            fprintf(stderr, "%s\n", tn_error());
        tn_dataset_free(all);
    }
    tn_loader *train = tn_loader_new(train_set, .batch = 100, .shuffle = true, .keep_dataset = true);
    tn_loader *test = tn_loader_new(test_set, .batch = 100, .keep_dataset = true);

    tn_layer *hidden = tn_layer_repeat(tn_sequential(tn_linear(44), tn_relu_layer()), 2);
    tn_layer *model = tn_classifier(tn_sequential(hidden, tn_linear(1)), .loss = tn_sigmoid_cross_entropy,
                                    .accuracy = binary_accuracy);
    tn_optimizer *optimizer = tn_sgd(model);
    tn_updater *updater = tn_standard_updater(train, optimizer);
    tn_trainer *trainer = tn_trainer_new(updater, .stop = TN_EVERY(epochs, TN_EPOCH),
                                         .out = argc > 3 ? argv[3] : "result");
    tn_extend(trainer, tn_evaluator(test, model));
    tn_extend(trainer, tn_dump_graph("main/loss"));
    tn_extend(trainer, tn_snapshot(), .trigger = TN_EVERY(20, TN_EPOCH));
    tn_extend(trainer, tn_log_report());
    tn_extend(trainer, tn_plot_report(TN_KEYS_OF("main/loss", "validation/main/loss"), .file = "loss.svg"));
    tn_extend(trainer, tn_plot_report(TN_KEYS_OF("main/accuracy", "validation/main/accuracy"), .file = "accuracy.svg"));
    tn_extend(trainer, tn_print_report("epoch", "main/loss", "validation/main/loss", "main/accuracy",
                                       "validation/main/accuracy", "elapsed_time"));
    tn_status status = tn_trainer_run(trainer);

    if (status == TN_OK) TN_SCOPE {
        tn_array *x = tn_slice_axis(tn_dataset_x(test_set), 0, 0, 1, 1), *t = tn_dataset_t(test_set);
        const char *kinds[] = {"edible", "poisonous"};
        printf("predicted %s, actual %s\n", kinds[tn_item(tn_forward(model, x)) >= 0],
               kinds[tn_item_int(tn_slice_axis(t, 0, 0, 1, 1))]);
    }
    tn_trainer_free(trainer);
    tn_optimizer_free(optimizer);
    tn_layer_free(model);
    tn_loader_free(train);
    tn_loader_free(test);
    tn_dataset_free(train_set);
    tn_dataset_free(test_set);
    tn_table_free(table);
    return status != TN_OK;
}
