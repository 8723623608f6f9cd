/* SPDX-License-Identifier: MIT */
/*
 * An end-to-end memory network (Sukhbaatar et al. 2015), after Chainer's memnn, for stories like the first of the bAbI
 * tasks, made up here: "Mary goes to the kitchen", ..., "where is Mary?" What a sentence says is the sum of its words'
 * vectors and of one for its place; the answer is what the last sentence about the person said. memnn [ITERATIONS]
 */
#include <stdio.h>
#include <stdlib.h>
#include <tanso.h>

enum { PEOPLE = 4, PLACES = 6, WORDS = PEOPLE + PLACES, SENTENCES = 6, ROWS = 64, UNITS = 20, HOPS = 2 };

typedef struct story {
    int64_t person[ROWS * SENTENCES], place[ROWS * SENTENCES], question[ROWS], answer[ROWS];
} story;

static void write_stories(story *s)
{
    for (int row = 0; row < ROWS; row++) {
        int64_t *person = s->person + row * SENTENCES, *place = s->place + row * SENTENCES;
        for (int i = 0; i < SENTENCES; i++) {
            person[i] = rand() % PEOPLE;
            place[i] = rand() % PLACES;
        }
        s->question[row] = person[rand() % SENTENCES];
        for (int i = 0; i < SENTENCES; i++)
            s->answer[row] = person[i] == s->question[row] ? place[i] : s->answer[row];
    }
}

/* Sentences as vectors (ROWS, SENTENCES, UNITS): words' and places' by one of the network's tables. */
static tn_array *sentences(tn_layer *net, const char *words, const char *when, const tn_flow *story)
{
    tn_layer *table = tn_layer_child(net, words);
    tn_array *sum = tn_add(tn_forward(table, story->in[0]), tn_forward(table, tn_add(story->in[1], PEOPLE)));
    return tn_add(sum, tn_param(tn_layer_child(net, when), 0));
}

/* Of persons and places (ROWS, SENTENCES) and questions (ROWS, 1) the scores of the places. */
static tn_status answer(tn_layer *net, const tn_flow *story, void *user)
{
    (void)user;
    tn_array *m = sentences(net, "a", "ta", story), *c = sentences(net, "c", "tc", story);
    tn_array *u = tn_forward(tn_layer_child(net, "b"), story->in[2]);
    for (int i = 0; i < HOPS; i++)
        u = tn_add(u, tn_scaled_dot_product_attention(u, m, c, .scale = 1));
    story->out[0] = tn_forward(tn_layer_child(net, "w"), tn_reshape(u, TN_SHAPE(ROWS, UNITS)));
    return TN_OK;
}

int main(int argc, char **argv)
{
    int iterations = argc > 1 ? atoi(argv[1]) : 200;
    double right = 0;
    static story s;
    srand(2);
    tn_layer *net = tn_flow_layer("memnn", answer, NULL, NULL, .inputs = 3);
    static const char *const names[] = {"a", "b", "c", "ta", "tc"};
    for (int i = 0; i < 5; i++) {
        tn_layer *table = tn_embedding(i < 3 ? WORDS : SENTENCES, UNITS);
        TN_SCOPE tn_assign(tn_param(table, 0), tn_multiply(tn_param(table, 0), 0.1));
        tn_layer_add(net, names[i], table);
    }
    tn_layer_add(net, "w", tn_linear(PLACES, .in = UNITS));
    tn_optimizer *adam = tn_adam(net, .lr = 0.01);
    for (int i = 0; i < iterations && tn_ok(); i++)
        TN_SCOPE {
            write_stories(&s);
            tn_shape each = TN_SHAPE(ROWS, SENTENCES);
            tn_array *y = tn_forward(net, tn_from_host(s.person, each, TN_INT64), tn_from_host(s.place, each, TN_INT64),
                                     tn_from_host(s.question, TN_SHAPE(ROWS, 1), TN_INT64));
            tn_array *t = tn_from_host(s.answer, TN_SHAPE(ROWS), TN_INT64);
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
    return tn_ok() && right > 0.8 ? 0 : 1;
}
