/* SPDX-License-Identifier: MIT */
/*
 * Parts of speech by a conditional random field, after Chainer's pos: each word has scores for its tags, each pair of
 * neighbours a cost. The sentences are made up; half of the words may be noun or verb, and only what stands before them
 * tells which. pos [ITERATIONS]
 */
#include <stdio.h>
#include <stdlib.h>
#include <tanso.h>

enum { DETERMINER, ADJECTIVE, NOUN, VERB, TAGS, EACH = 6, WORDS = TAGS * EACH, MOST = 12, ROWS = 20 };

/* A sentence (determiner, adjectives, noun, verb, and so on) in a column of words and tags (MOST, ROWS). */
static int64_t write_sentence(int64_t *words, int64_t *tags, int row)
{
    int64_t length = 4 + rand() % (MOST - 3);
    int tag = DETERMINER;
    for (int i = 0; i < MOST; i++) {
        int kind = tag >= NOUN && rand() % 2 ? NOUN : tag; /* a word that may be both is written as a noun's */
        tags[i * ROWS + row] = i < length ? tag : 0;
        words[i * ROWS + row] = i < length ? kind * EACH + rand() % EACH : 0;
        tag = tag == DETERMINER || tag == ADJECTIVE ? (rand() % 3 ? NOUN : ADJECTIVE) : tag == NOUN ? VERB : DETERMINER;
    }
    return length;
}

static tn_array *scores_of(tn_layer *net, const tn_array *words, void *user)
{
    (void)user;
    return tn_forward(tn_layer_child(net, "scores"), words);
}

int main(int argc, char **argv)
{
    int iterations = argc > 1 ? atoi(argv[1]) : 200;
    double right = 0;
    srand(5);
    tn_layer *net = tn_layer_new("pos", scores_of, NULL, NULL);
    tn_layer_add(net, "scores", tn_embedding(WORDS, TAGS));
    tn_array *cost = tn_layer_param(net, "cost", tn_zeros(TN_SHAPE(TAGS, TAGS))); /* from each tag to the next */
    tn_optimizer *adam = tn_adam(net, .lr = 0.05);
    for (int i = 0; i < iterations && tn_ok(); i++)
        TN_SCOPE {
            int64_t words[MOST * ROWS], tags[MOST * ROWS], length[ROWS], all = 0;
            for (int row = 0; row < ROWS; row++)
                all += length[row] = write_sentence(words, tags, row);
            tn_array *x = tn_forward(net, tn_from_host(words, TN_SHAPE(MOST, ROWS), TN_INT64));
            tn_array *t = tn_from_host(tags, TN_SHAPE(MOST, ROWS), TN_INT64);
            tn_array *lengths = tn_from_host(length, TN_SHAPE(ROWS), TN_INT64);
            tn_array *loss = tn_crf_loss(cost, x, t, .lengths = lengths);
            tn_array *guess = tn_crf_decode(tn_detach(cost), tn_detach(x), lengths, NULL);
            double wrong = tn_item(tn_sum(tn_cast(tn_not_equal(guess, t), TN_FLOAT32)));
            right = 1 - wrong / (double)all;
            if (tn_backward(loss) != TN_OK || tn_step(adam) != TN_OK)
                break;
            if (i % 50 == 49)
                printf("iteration %d, loss %.3f, right %.3f\n", i + 1, tn_item(loss), right);
        }
    if (!tn_ok())
        fprintf(stderr, "%s\n", tn_error());
    tn_optimizer_free(adam);
    tn_layer_free(net);
    return tn_ok() && right > 0.9 ? 0 : 1; /* words alone tell three of four */
}
