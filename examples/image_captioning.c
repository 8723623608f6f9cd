/* SPDX-License-Identifier: MIT */
/*
 * Captions of pictures, after Chainer's image_captioning, for pictures that are made up: what a convolutional network
 * sees is the first input of an LSTM, whose later ones are the caption's words, each of which it has to tell from those
 * before. image_captioning [ITERATIONS]
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tanso.h>

enum { BEGIN, END, BRIGHT, SQUARE, CROSS, BAR, LEFT, RIGHT, WORDS };
enum { ROWS = 64, SIDE = 12, LENGTH = 6, UNITS = 48, PAST = -1 };
static const char *const words[] = {"", ".", "bright", "square", "cross", "bar", "left", "right"};

typedef struct batch {
    float picture[ROWS][SIDE][SIDE];
    int64_t word[LENGTH][ROWS]; /* PAST behind the ends */
} batch;

/* Five by five pixels of one of three shapes, on one side. */
static void draw(batch *b, int row, int shape, bool bright, bool right)
{
    int top = rand() % (SIDE - 5), left = rand() % 2 + (right ? SIDE / 2 : 0);
    for (int i = 0; i < 5; i++)
        for (int j = 0; j < 5; j++)
            if (shape == SQUARE || (shape == CROSS && (i == 2 || j == 2)) || (shape == BAR && j == 2))
                b->picture[row][top + i][left + j] = bright ? 1 : 0.5f;
}

static void make(batch *b)
{
    memset(b->picture, 0, sizeof b->picture);
    for (int row = 0; row < ROWS; row++) {
        int shape = SQUARE + rand() % 3, bright = rand() % 2, right = rand() % 2, at = 0;
        int64_t caption[LENGTH] = {BEGIN};
        draw(b, row, shape, bright, right);
        if (bright)
            caption[++at] = BRIGHT;
        caption[++at] = shape;
        caption[++at] = right ? RIGHT : LEFT;
        caption[++at] = END;
        for (int i = 0; i < LENGTH; i++)
            b->word[i][row] = i <= at ? caption[i] : PAST;
    }
}

/* The LSTM forgets, and sees the pictures. */
static void look(tn_layer *net, const tn_array *pictures)
{
    tn_layer *lstm = tn_layer_child(net, "lstm");
    (void)!tn_layer_reset_state(lstm); /* a failure is latched */
    tn_forward(lstm, tn_forward(tn_layer_child(net, "see"), pictures));
}

/* The scores of what follows a word. */
static tn_array *step(tn_layer *net, const tn_array *word)
{
    tn_array *h = tn_forward(tn_layer_child(net, "lstm"), tn_forward(tn_layer_child(net, "embed"), word));
    return tn_forward(tn_layer_child(net, "out"), h);
}

/* Of pictures and captions (LENGTH, ROWS) the loss: the mean over steps of that of the words there are. */
static tn_status loss_of(tn_layer *net, const tn_flow *flow, void *user)
{
    (void)user;
    look(net, flow->in[0]);
    tn_array *loss = NULL;
    for (int i = 0; i + 1 < LENGTH; i++) {
        tn_array *y = step(net, tn_maximum(tn_index(flow->in[1], i), 0)); /* any word where there is none */
        tn_array *one = tn_softmax_cross_entropy(y, tn_index(flow->in[1], i + 1), .ignore_index = PAST);
        loss = loss ? tn_add(loss, one) : one;
    }
    flow->out[0] = tn_divide(loss, LENGTH - 1);
    return TN_OK;
}

/* Captions word by word, each the likeliest; how many are right, and the first of them. */
static int describe(tn_layer *net, const batch *b)
{
    int64_t said[LENGTH][ROWS] = {{BEGIN}};
    int right = 0;
    TN_SCOPE TN_NO_GRAD {
        look(net, tn_from_host(b->picture, TN_SHAPE(ROWS, 1, SIDE, SIDE), TN_FLOAT32));
        for (int i = 1; i < LENGTH && tn_ok(); i++) {
            tn_array *y = step(net, tn_from_host(said[i - 1], TN_SHAPE(ROWS), TN_INT64));
            (void)!tn_to_host(tn_argmax(y, .axis = TN_AXES(1)), said[i], sizeof said[i]);
        }
    }
    for (int row = 0; row < ROWS; row++) {
        bool same = true;
        for (int i = 1; i < LENGTH && b->word[i][row] != PAST; i++)
            same = same && said[i][row] == b->word[i][row];
        right += same;
    }
    for (int i = 1; i < LENGTH; i++) {
        printf("%s ", words[said[i][0]]);
        if (said[i][0] == END)
            break;
    }
    return right;
}

int main(int argc, char **argv)
{
    int iterations = argc > 1 ? atoi(argv[1]) : 150;
    static batch b;
    srand(3);
    tn_layer *net = tn_flow_layer("captions", loss_of, NULL, NULL, .inputs = 2);
    tn_layer_add(net, "see", tn_layer_parse("conv:8,5 relu maxpool:2 flatten linear:48"));
    tn_layer_add(net, "embed", tn_embedding(WORDS, UNITS));
    tn_layer_add(net, "lstm", tn_rnn_step(TN_RNN_LSTM, UNITS, .forget_bias = 1));
    tn_layer_add(net, "out", tn_linear(WORDS));
    tn_optimizer *adam = tn_adam(net, .lr = 0.005);
    for (int i = 1; i <= iterations && tn_ok(); i++) TN_SCOPE {
        make(&b);
        tn_array *pictures = tn_from_host(b.picture, TN_SHAPE(ROWS, 1, SIDE, SIDE), TN_FLOAT32);
        tn_array *loss = tn_forward(net, pictures, tn_from_host(b.word, TN_SHAPE(LENGTH, ROWS), TN_INT64));
        if (tn_backward(loss) != TN_OK || tn_step(adam) != TN_OK)
            break;
        if (i % 25 == 0 || i == iterations)
            printf("%d: loss %.4f\n", i, tn_item(loss));
    }
    make(&b);
    int right = describe(net, &b);
    printf("\n%.0f%% of the captions are right\n", 100.0 * right / ROWS);
    tn_optimizer_free(adam);
    tn_layer_free(net);
    if (!tn_ok())
        fprintf(stderr, "%s\n", tn_error());
    return tn_ok() && right > ROWS * 8 / 10 ? 0 : 1;
}
