/* SPDX-License-Identifier: MIT */
/*
 * What a sentence's tree makes of its words, after Chainer's sentiment: a tree-structured LSTM puts each node's two
 * children together, all nodes of a level at once. The trees are made up, of eight words each: good, bad or plain ones,
 * and "not", which turns what stands beside it on the right. sentiment [ITERATIONS]
 */
#include <stdio.h>
#include <stdlib.h>
#include <tanso.h>

enum { WORDS = 12, NOT = 9, LEAVES = 8, ROWS = 64, UNITS = 24 }; /* 0-2 bad, 3-5 plain, 6-8 good, 9-11 not */

/* -1, 0, 1, or 2 for "not". */
static int meaning(int64_t word) { return word >= NOT ? 2 : (int)(word / 3) - 1; }

static int together(int left, int right)
{
    int sum = left + right;
    return left == 2 ? (right == 2 ? 0 : -right) : right == 2 ? left : sum > 0 ? 1 : sum < 0 ? -1 : 0;
}

static void write_trees(int64_t *words, int64_t *labels)
{
    for (int row = 0; row < ROWS; row++) {
        int node[LEAVES];
        for (int i = 0; i < LEAVES; i++) {
            words[row * LEAVES + i] = rand() % WORDS;
            node[i] = meaning(words[row * LEAVES + i]);
        }
        for (int count = LEAVES / 2; count > 0; count /= 2)
            for (int i = 0; i < count; i++)
                node[i] = together(node[2 * i], node[2 * i + 1]);
        labels[row] = node[0] == 2 ? 1 : node[0] + 1;
    }
}

/* Leaves are of their words, the nodes above of their children alone: x is 0 there. */
static tn_array *scores(tn_layer *net, const tn_array *words, void *user)
{
    (void)user;
    tn_array *x = tn_forward(tn_layer_child(net, "words"), words);
    tn_layer *tree = tn_layer_child(net, "tree");
    tn_array *h, *c;
    tn_forward_all(tree, TN_ARRAYS(x), TN_RESULTS(&h, &c));
    for (int count = LEAVES / 2; count > 0; count /= 2) {
        tn_shape pairs = TN_SHAPE(ROWS * count, 2, UNITS);
        tn_forward_all(tree, TN_ARRAYS(tn_zeros(TN_SHAPE(ROWS * count, UNITS)), tn_reshape(h, pairs),
                                       tn_reshape(c, pairs)), TN_RESULTS(&h, &c));
    }
    return tn_forward(tn_layer_child(net, "out"), h);
}

int main(int argc, char **argv)
{
    int iterations = argc > 1 ? atoi(argv[1]) : 200;
    int64_t words[ROWS * LEAVES], labels[ROWS];
    double right = 0;
    srand(8);
    tn_layer *net = tn_layer_new("sentiment", scores, NULL, NULL);
    tn_layer_add(net, "words", tn_embedding(WORDS, UNITS));
    tn_layer_add(net, "tree", tn_tree_lstm(UNITS, 2, UNITS));
    tn_layer_add(net, "out", tn_linear(3, .in = UNITS));
    tn_optimizer *adam = tn_adam(net, .lr = 0.01);
    for (int i = 0; i < iterations && tn_ok(); i++)
        TN_SCOPE {
            write_trees(words, labels);
            tn_array *t = tn_from_host(labels, TN_SHAPE(ROWS), TN_INT64);
            tn_array *y = tn_forward(net, tn_from_host(words, TN_SHAPE(ROWS * LEAVES), TN_INT64));
            tn_array *loss = tn_softmax_cross_entropy(y, t);
            if (tn_backward(loss) != TN_OK || tn_step(adam) != TN_OK)
                break;
            right += (tn_item(tn_accuracy(y, t)) - right) / 20; /* of the last few */
            if (i % 100 == 99)
                printf("iteration %d, loss %.3f, right %.3f\n", i + 1, tn_item(loss), right);
        }
    if (!tn_ok())
        fprintf(stderr, "%s\n", tn_error());
    tn_optimizer_free(adam);
    tn_layer_free(net);
    return tn_ok() && right > 0.7 ? 0 : 1; /* the commonest of three: some 0.4 */
}
