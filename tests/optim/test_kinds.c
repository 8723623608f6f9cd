/* SPDX-License-Identifier: MIT */
/* Every optimizer of the table, and what options do to gradients, against float64 loops over fresh random numbers. */
#include "nn/check.h"
#include "optim/torch_values.h"

enum { ROWS = 5, COLUMNS = 3, A = ROWS * COLUMNS, B = 3, SIZE = A + B, STEPS = 7 };

static tn_array *no_forward(tn_layer *layer, const tn_array *x, void *user)
{
    (void)layer, (void)x, (void)user;
    return NULL;
}

/* Two parameters, a matrix and a vector, and what the reference remembers of each element. */
typedef struct model {
    double p[SIZE], g[SIZE], a[SIZE], b[SIZE], c[SIZE];
} model;

static tn_layer *new_layer(const double *p, tn_dtype dtype)
{
    tn_layer *layer = tn_layer_new("model", no_forward, NULL, NULL);
    TN_SCOPE {
        tn_layer_param(layer, "a", check_array(p, TN_SHAPE(ROWS, COLUMNS), dtype));
        tn_layer_param(layer, "b", check_array(p + A, TN_SHAPE(B), dtype));
    }
    return layer;
}

/* Gives the parameters gradients, by a loss that is linear in them. */
static tn_status give_gradients(const tn_layer *layer, const double *g, int count)
{
    const tn_array *loss = NULL;
    for (int k = 0; k < count; k++) {
        tn_array *p = tn_param(layer, k);
        tn_array *part = tn_sum(tn_multiply(p, check_array(k ? g + A : g, tn_shape_of(p), tn_dtype_of(p))));
        loss = loss ? tn_add(loss, part) : part;
    }
    return tn_backward(loss);
}

static void check_params(const tn_layer *layer, const double *p, double tolerance)
{
    check_near(tn_param(layer, 0), p, A, tolerance);
    check_near(tn_param(layer, 1), p + A, B, tolerance);
}

/* ---- rules, over elements first to first + count, which are one parameter ---- */

typedef struct range {
    int first, count;
    bool matrix;
} range;
static const range ranges[] = {{0, A, true}, {A, B, false}};

typedef void (*rule)(model *q, int i, int t, const tn_optimizer_opts *o);

static double mix(double rate, double old, double now) { return rate * old + (1 - rate) * now; }

static void corrected(model *q, int i, int t, const tn_optimizer_opts *o)
{
    (void)t;
    q->a[i] = o->momentum * q->a[i] - q->g[i];
    q->p[i] += o->lr * q->a[i];
}

static void adagrad(model *q, int i, int t, const tn_optimizer_opts *o)
{
    (void)t;
    q->a[i] += q->g[i] * q->g[i];
    q->p[i] -= o->lr * q->g[i] / (sqrt(q->a[i]) + o->eps);
}

static void adadelta(model *q, int i, int t, const tn_optimizer_opts *o)
{
    (void)t;
    q->a[i] = mix(o->rho, q->a[i], q->g[i] * q->g[i]);
    double d = sqrt((q->b[i] + o->eps) / (q->a[i] + o->eps)) * q->g[i];
    q->b[i] = mix(o->rho, q->b[i], d * d);
    q->p[i] -= o->lr * d;
}

static void rmsprop(model *q, int i, int t, const tn_optimizer_opts *o)
{
    (void)t;
    q->a[i] = mix(o->rho, q->a[i], q->g[i] * q->g[i]);
    q->p[i] -= o->lr * q->g[i] / (sqrt(q->a[i]) + o->eps);
}

static void graves(model *q, int i, int t, const tn_optimizer_opts *o)
{
    (void)t;
    q->a[i] = mix(o->rho, q->a[i], q->g[i] * q->g[i]);
    q->b[i] = mix(o->rho, q->b[i], q->g[i]);
    q->c[i] = o->momentum * q->c[i] - o->lr * q->g[i] / sqrt(q->a[i] - q->b[i] * q->b[i] + o->eps);
    q->p[i] += q->c[i];
}

static void smorms3(model *q, int i, int t, const tn_optimizer_opts *o)
{
    double mem = t == 1 ? 1 : q->c[i], r = 1 / (mem + 1), g = q->g[i];
    q->a[i] = (1 - r) * q->a[i] + r * g;
    q->b[i] = (1 - r) * q->b[i] + r * g * g;
    double x = q->a[i] * q->a[i] / (q->b[i] + o->eps);
    q->p[i] -= g * fmin(x, o->lr) / (sqrt(q->b[i]) + o->eps);
    q->c[i] = 1 + mem * (1 - x);
}

static void moments(model *q, int i, const tn_optimizer_opts *o)
{
    q->a[i] = mix(o->beta1, q->a[i], q->g[i]);
    q->b[i] = mix(o->beta2, q->b[i], q->g[i] * q->g[i]);
}

static double adam_change(const model *q, int i, int t, double v, const tn_optimizer_opts *o)
{
    return o->lr * q->a[i] / (1 - pow(o->beta1, t)) / (sqrt(v / (1 - pow(o->beta2, t))) + o->eps);
}

static void amsgrad(model *q, int i, int t, const tn_optimizer_opts *o)
{
    moments(q, i, o);
    q->c[i] = fmax(q->c[i], q->b[i]);
    q->p[i] -= adam_change(q, i, t, q->c[i], o);
}

static void bound(model *q, int i, int t, double v, const tn_optimizer_opts *o)
{
    double final = o->final_lr, low = final * (1 - 1 / (o->gamma * t + 1)), high = final * (1 + 1 / (o->gamma * t));
    double rate = o->lr * sqrt(1 - pow(o->beta2, t)) / (1 - pow(o->beta1, t)) / (sqrt(v) + o->eps);
    q->p[i] -= fmin(fmax(rate, low), high) * q->a[i];
}

static void adabound(model *q, int i, int t, const tn_optimizer_opts *o)
{
    moments(q, i, o);
    bound(q, i, t, q->b[i], o);
}

static void amsbound(model *q, int i, int t, const tn_optimizer_opts *o)
{
    moments(q, i, o);
    q->c[i] = fmax(q->c[i], q->b[i]);
    bound(q, i, t, q->c[i], o);
}

static void msvag(model *q, int i, int t, const tn_optimizer_opts *o)
{
    double beta = o->beta1, b = pow(beta, t);
    double r = fmin((1 - beta) * (1 - beta) * (1 - b * b) / ((1 - b) * (1 - b) * (1 - beta * beta)), 0.9999);
    q->a[i] = mix(beta, q->a[i], q->g[i]);
    q->b[i] = mix(beta, q->b[i], q->g[i] * q->g[i]);
    double m = q->a[i] / (1 - b), s = (q->b[i] / (1 - b) - m * m) / (1 - r), f = m * m / (m * m + r * s);
    f = isnan(f) ? 0 : fmin(fmax(f, 0), 1);
    q->p[i] -= o->lr * (m * f + o->weight_decay * q->p[i]);
}

static void radam(model *q, int i, int t, const tn_optimizer_opts *o)
{
    double most = 2 / (1 - o->beta2) - 1, b = pow(o->beta2, t), length = most - 2 * t * b / (1 - b);
    moments(q, i, o);
    if (length <= 5) {
        q->p[i] -= o->lr * q->a[i] / (1 - pow(o->beta1, t));
        return;
    }
    double r = sqrt((length - 4) * (length - 2) * most / ((most - 4) * (most - 2) * length));
    q->p[i] -= r * adam_change(q, i, t, q->b[i], o);
}

static void adamax(model *q, int i, int t, const tn_optimizer_opts *o)
{
    q->a[i] = mix(o->beta1, q->a[i], q->g[i]);
    q->b[i] = fmax(o->beta2 * q->b[i], fabs(q->g[i]) + o->eps);
    q->p[i] -= o->lr * q->a[i] / (1 - pow(o->beta1, t)) / q->b[i];
}

static double nadam_weight(int t, const tn_optimizer_opts *o)
{
    return o->beta1 * (1 - pow(0.96, t * o->gamma) / 2);
}

static void nadam(model *q, int i, int t, const tn_optimizer_opts *o)
{
    double product = 1, next = nadam_weight(t + 1, o);
    for (int k = 1; k <= t; k++)
        product *= nadam_weight(k, o);
    moments(q, i, o);
    double above = next * q->a[i] / (1 - product * next) + (1 - nadam_weight(t, o)) * q->g[i] / (1 - product);
    q->p[i] -= o->lr * above / (sqrt(q->b[i] / (1 - pow(o->beta2, t))) + o->eps);
}

static void asgd(model *q, int i, int t, const tn_optimizer_opts *o)
{
    double rate = o->lr / pow(1 + o->gamma * o->lr * (t - 1), o->rho);
    q->p[i] -= rate * (q->g[i] + o->gamma * q->p[i]);
}

static void rprop(model *q, int i, int t, const tn_optimizer_opts *o)
{
    double sign = q->g[i] * q->a[i];
    q->b[i] = (t == 1 ? o->lr : q->b[i]) * (sign > 0 ? 1.2 : sign < 0 ? 0.5 : 1);
    q->b[i] = fmin(fmax(q->b[i], 1e-6), 50);
    q->a[i] = sign < 0 ? 0 : q->g[i];
    q->p[i] -= q->b[i] * ((q->a[i] > 0) - (q->a[i] < 0));
}

static void lion(model *q, int i, int t, const tn_optimizer_opts *o)
{
    (void)t;
    double c = mix(o->beta1, q->a[i], q->g[i]);
    q->p[i] -= o->lr * ((c > 0) - (c < 0) + o->weight_decay * q->p[i]);
    q->a[i] = mix(o->beta2, q->a[i], q->g[i]);
}

/* Those of a whole parameter look at it when they come to its last element. */
static const range *ends_at(int i)
{
    for (int k = 0; k < 2; k++) {
        if (i == ranges[k].first + ranges[k].count - 1)
            return &ranges[k];
    }
    return NULL;
}

static void lamb(model *q, int i, int t, const tn_optimizer_opts *o)
{
    double above = 0, below = 0;
    moments(q, i, o);
    q->c[i] = adam_change(q, i, t, q->b[i], o) / o->lr + o->weight_decay * q->p[i];
    const range *r = ends_at(i);
    for (int k = 0; r && k < r->count; k++) {
        above += q->p[r->first + k] * q->p[r->first + k];
        below += q->c[r->first + k] * q->c[r->first + k];
    }
    for (int k = 0; r && k < r->count; k++)
        q->p[r->first + k] -= o->lr * sqrt(above) / sqrt(below) * q->c[r->first + k];
}

static void adafactor_matrix(model *q, int t, double u[A])
{
    double rate = 1 - pow(t, -0.8), total = 0;
    for (int k = 0; k < ROWS; k++) {
        double mean = 0;
        for (int j = 0; j < COLUMNS; j++)
            mean += q->g[k * COLUMNS + j] * q->g[k * COLUMNS + j] / COLUMNS;
        q->a[k] = mix(rate, q->a[k], mean);
        total += q->a[k] / ROWS;
    }
    for (int j = 0; j < COLUMNS; j++) {
        double mean = 0;
        for (int k = 0; k < ROWS; k++)
            mean += q->g[k * COLUMNS + j] * q->g[k * COLUMNS + j] / ROWS;
        q->b[j] = mix(rate, q->b[j], mean);
    }
    for (int k = 0; k < A; k++)
        u[k] = q->g[k] / sqrt(q->a[k / COLUMNS] * q->b[k % COLUMNS] / total);
}

static void adafactor(model *q, int i, int t, const tn_optimizer_opts *o)
{
    const range *r = ends_at(i);
    double u[A], size = 0, p = 0;
    if (!r)
        return;
    if (r->matrix)
        adafactor_matrix(q, t, u);
    for (int k = 0; k < r->count; k++) {
        int at = r->first + k;
        if (!r->matrix) {
            q->a[at] = mix(1 - pow(t, -0.8), q->a[at], q->g[at] * q->g[at]);
            u[k] = q->g[at] / sqrt(q->a[at]);
        }
        size += u[k] * u[k] / r->count;
        p += q->p[at] * q->p[at] / r->count;
    }
    double rate = fmin(o->lr, 1 / sqrt(t)) * fmax(o->eps, sqrt(p)) / fmax(1, sqrt(size));
    for (int k = 0; k < r->count; k++)
        q->p[r->first + k] = q->p[r->first + k] * (1 - o->lr * o->weight_decay) - rate * u[k];
}

/* The first extent is the larger one. */
static void muon_matrix(model *q, const tn_optimizer_opts *o)
{
    double x[A], y[A], square[COLUMNS][COLUMNS], mixed[COLUMNS][COLUMNS], norm = 0;
    for (int k = 0; k < A; k++) {
        q->a[k] = mix(o->momentum, q->a[k], q->g[k]);
        x[k] = mix(o->momentum, q->a[k], q->g[k]);
        norm += x[k] * x[k];
    }
    for (int k = 0; k < A; k++)
        x[k] /= sqrt(norm);
    for (int step = 0; step < 5; step++) {
        for (int i = 0; i < COLUMNS * COLUMNS; i++) {
            double sum = 0;
            for (int k = 0; k < ROWS; k++)
                sum += x[k * COLUMNS + i / COLUMNS] * x[k * COLUMNS + i % COLUMNS];
            square[i / COLUMNS][i % COLUMNS] = sum;
        }
        for (int i = 0; i < COLUMNS * COLUMNS; i++) {
            double sum = 0;
            for (int k = 0; k < COLUMNS; k++)
                sum += square[i / COLUMNS][k] * square[k][i % COLUMNS];
            mixed[i / COLUMNS][i % COLUMNS] = 2.0315 * sum - 4.775 * square[i / COLUMNS][i % COLUMNS];
        }
        for (int k = 0; k < A; k++) {
            y[k] = 3.4445 * x[k];
            for (int i = 0; i < COLUMNS; i++)
                y[k] += x[k / COLUMNS * COLUMNS + i] * mixed[i][k % COLUMNS];
        }
        memcpy(x, y, sizeof x);
    }
    for (int k = 0; k < A; k++)
        q->p[k] = q->p[k] * (1 - o->lr * o->weight_decay) - o->lr * sqrt((double)ROWS / COLUMNS) * x[k];
}

static void muon(model *q, int i, int t, const tn_optimizer_opts *o)
{
    if (i == A - 1)
        muon_matrix(q, o);
    if (i < A)
        return;
    moments(q, i, o);
    q->p[i] = q->p[i] * (1 - o->lr * o->weight_decay) - adam_change(q, i, t, q->b[i], o);
}

static void sparse_adam(model *q, int i, int t, const tn_optimizer_opts *o)
{
    const range *r = ends_at(i);
    int width = r && r->matrix ? COLUMNS : 1;
    for (int k = 0; r && k < r->count; k += width) {
        bool there = false;
        for (int j = 0; j < width; j++)
            there = there || q->g[r->first + k + j] != 0;
        for (int j = r->first + k; there && j < r->first + k + width; j++) {
            moments(q, j, o);
            q->p[j] -= o->lr * sqrt(1 - pow(o->beta2, t)) / (1 - pow(o->beta1, t)) * q->a[j] / (sqrt(q->b[j]) + o->eps);
        }
    }
}

static const struct kind {
    const char *text;
    rule step;
    tn_optimizer_opts set;
} kinds[] = {
    {"corrected_momentum_sgd:lr=0.1", corrected, {.lr = 0.1, .momentum = 0.9}},
    {"adagrad", adagrad, {.lr = 0.001, .eps = 1e-8}},
    {"adagrad:lr=0.3,eps=0.1", adagrad, {.lr = 0.3, .eps = 0.1}},
    {"adadelta", adadelta, {.lr = 1, .rho = 0.95, .eps = 1e-6}},
    {"adadelta:rho=0.5,eps=0.01", adadelta, {.lr = 1, .rho = 0.5, .eps = 0.01}},
    {"rmsprop", rmsprop, {.lr = 0.01, .rho = 0.99, .eps = 1e-8}},
    {"rmsprop:rho=0,eps=0.5", rmsprop, {.lr = 0.01, .rho = 0, .eps = 0.5}},
    {"rmsprop_graves", graves, {.lr = 1e-4, .rho = 0.95, .momentum = 0.9, .eps = 1e-4}},
    {"rmsprop_graves:lr=0.05,momentum=0.5,eps=0.1", graves, {.lr = 0.05, .rho = 0.95, .momentum = 0.5, .eps = 0.1}},
    {"smorms3", smorms3, {.lr = 0.001, .eps = 1e-16}},
    {"smorms3:lr=0.5", smorms3, {.lr = 0.5, .eps = 1e-16}},
    {"amsgrad:lr=0.1,beta2=0.5", amsgrad, {.lr = 0.1, .beta1 = 0.9, .beta2 = 0.5, .eps = 1e-8}},
    {"adabound", adabound, {.lr = 0.001, .beta1 = 0.9, .beta2 = 0.999, .eps = 1e-8, .final_lr = 0.1, .gamma = 0.001}},
    {"adabound:lr=0.1,gamma=0.3", adabound,
     {.lr = 0.1, .beta1 = 0.9, .beta2 = 0.999, .eps = 1e-8, .final_lr = 0.1, .gamma = 0.3}},
    {"amsbound:lr=0.1,gamma=0.3,beta2=0.5", amsbound,
     {.lr = 0.1, .beta1 = 0.9, .beta2 = 0.5, .eps = 1e-8, .final_lr = 0.1, .gamma = 0.3}},
    {"msvag", msvag, {.lr = 0.1, .beta1 = 0.9}},
    {"msvag:lr=0.05,beta1=0.5,weight_decay=0.1", msvag, {.lr = 0.05, .beta1 = 0.5, .weight_decay = 0.1}},
    {"radam:lr=0.1", radam, {.lr = 0.1, .beta1 = 0.9, .beta2 = 0.999, .eps = 1e-8}},
    {"adamax", adamax, {.lr = 0.002, .beta1 = 0.9, .beta2 = 0.999, .eps = 1e-8}},
    {"adamax:lr=0.1,beta2=0.5,eps=0.1", adamax, {.lr = 0.1, .beta1 = 0.9, .beta2 = 0.5, .eps = 0.1}},
    {"nadam", nadam, {.lr = 0.002, .beta1 = 0.9, .beta2 = 0.999, .eps = 1e-8, .gamma = 0.004}},
    {"nadam:lr=0.1,beta1=0.5,gamma=2", nadam, {.lr = 0.1, .beta1 = 0.5, .beta2 = 0.999, .eps = 1e-8, .gamma = 2}},
    {"asgd", asgd, {.lr = 0.01, .gamma = 1e-4, .rho = 0.75}},
    {"asgd:lr=0.5,gamma=0.3,rho=0.5", asgd, {.lr = 0.5, .gamma = 0.3, .rho = 0.5}},
    {"rprop", rprop, {.lr = 0.01}},
    {"rprop:lr=45", rprop, {.lr = 45}},
    {"rprop:lr=1e-6", rprop, {.lr = 1e-6}},
    {"lion:lr=0.1,weight_decay=0.2", lion, {.lr = 0.1, .beta1 = 0.9, .beta2 = 0.99, .weight_decay = 0.2}},
    {"lamb:lr=0.1,weight_decay=0.2", lamb, {.lr = 0.1, .beta1 = 0.9, .beta2 = 0.999, .eps = 1e-6, .weight_decay = 0.2}},
    {"lamb", lamb, {.lr = 0.001, .beta1 = 0.9, .beta2 = 0.999, .eps = 1e-6}},
    {"adafactor", adafactor, {.lr = 0.01, .eps = 0.001}},
    {"adafactor:lr=0.5,eps=3,weight_decay=0.1", adafactor, {.lr = 0.5, .eps = 3, .weight_decay = 0.1}},
    {"muon", muon, {.lr = 0.001, .momentum = 0.95, .beta1 = 0.9, .beta2 = 0.999, .eps = 1e-7, .weight_decay = 0.1}},
    {"muon:lr=0.1,momentum=0.5,weight_decay=0", muon,
     {.lr = 0.1, .momentum = 0.5, .beta1 = 0.9, .beta2 = 0.999, .eps = 1e-7}},
    {"sparse_adam", sparse_adam, {.lr = 0.001, .beta1 = 0.9, .beta2 = 0.999, .eps = 1e-8}},
    {"sparse_adam:lr=0.1,beta2=0.5", sparse_adam, {.lr = 0.1, .beta1 = 0.9, .beta2 = 0.5, .eps = 1e-8}},
};

/* Away from zero, where signs and quotients jump; for who leaves rows alone, a row of zeros, and one that begins so. */
static void fresh_gradients(double *g, bool sparse)
{
    for (int i = 0; i < SIZE; i++)
        g[i] = (float)(check_uniform(0.1, 1) * (check_bits() % 2 ? 1 : -1));
    int row = (int)(check_bits() % (ROWS - 1));
    for (int i = row * COLUMNS; sparse && i <= (row + 1) * COLUMNS; i++)
        g[i] = 0;
    if (sparse)
        g[A + check_bits() % B] = 0;
}

static void run_kind(const struct kind *k, tn_dtype dtype, double tolerance)
{
    model q = {.p = {0}};
    char context[120];
    check_context = context;
    check_fill(q.p, SIZE, -2, 2);
    tn_layer *layer = new_layer(q.p, dtype);
    tn_optimizer *optimizer = tn_optimizer_parse(k->text, layer);
    for (int t = 1; t <= STEPS; t++) TN_SCOPE {
        snprintf(context, sizeof context, "%s, %s, step %d", k->text, tn_dtype_name(dtype), t);
        fresh_gradients(q.g, k->step == sparse_adam);
        assert_int_equal(give_gradients(layer, q.g, 2), TN_OK);
        assert_int_equal(tn_step(optimizer), TN_OK);
        for (int i = 0; i < SIZE; i++)
            k->step(&q, i, t, &k->set);
        check_params(layer, q.p, tolerance);
    }
    tn_optimizer_free(optimizer);
    tn_layer_free(layer);
    check_fine();
    check_context = "";
}

static void test_kinds(void **state)
{
    (void)state;
    for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++) {
        run_kind(&kinds[k], TN_FLOAT64, 1e-9);
        run_kind(&kinds[k], TN_FLOAT32, 2e-4);
    }
}

/* Chainer 7.8.1's own numbers: p = 1, gradients 1, 0.5, -0.25, each of tn_NAME's options. */
static void test_chainer(void **state)
{
    (void)state;
    const struct {
        const char *text;
        double p[3];
    } rows[] = {
        {"momentum:lr=0.1", {0.9, 0.76, 0.659}},
        {"corrected_momentum_sgd:lr=0.1", {0.9, 0.76, 0.659}},
        {"adam:lr=0.1", {0.9, 0.806782, 0.750416}},
        {"amsgrad:lr=0.1", {0.9, 0.806782, 0.750416}},
        {"adabound:lr=0.1", {0.9, 0.806782, 0.750416}},
        {"adagrad:lr=0.1", {0.9, 0.855279, 0.8771}},
        {"adadelta", {0.995528, 0.992641, 0.99421}},
        {"rmsprop:lr=0.1", {0, -0.449013, -0.228909}},
        {"rmsprop_graves:lr=0.1", {0.541651, -0.084368, -0.543114}},
        {"smorms3:lr=0.1", {0.858579, 0.779522, 0.827787}},
        {"msvag:lr=0.1", {0.9, 0.833941, 0.815008}},
    };
    const double gradients[] = {1, 0.5, -0.25};
    for (size_t k = 0; k < sizeof rows / sizeof *rows; k++) {
        tn_layer *layer = tn_layer_new("one", no_forward, NULL, NULL);
        TN_SCOPE tn_layer_param(layer, "p", check_array((double[]){1}, TN_SHAPE(1), TN_FLOAT64));
        tn_optimizer *optimizer = tn_optimizer_parse(rows[k].text, layer);
        check_context = rows[k].text;
        for (int t = 0; t < 3; t++) TN_SCOPE {
            assert_int_equal(tn_backward(tn_sum(tn_multiply(tn_param(layer, 0), gradients[t]))), TN_OK);
            assert_int_equal(tn_step(optimizer), TN_OK);
            check_near(tn_param(layer, 0), &rows[k].p[t], 1, 1e-6);
        }
        tn_optimizer_free(optimizer);
        tn_layer_free(layer);
    }
    check_context = "";
    check_fine();
}

/* PyTorch's own numbers: see torch_values.py, which has these gradients, too. */
static void test_torch(void **state)
{
    (void)state;
    enum { N = TORCH_ROWS * TORCH_COLUMNS };
    double p[N], g[N];
    for (int i = 0; i < N; i++)
        p[i] = 1;
    for (size_t k = 0; k < sizeof torch_values / sizeof *torch_values; k++) {
        tn_layer *layer = tn_layer_new("one", no_forward, NULL, NULL);
        tn_shape shape = TN_SHAPE(TORCH_ROWS, TORCH_COLUMNS);
        TN_SCOPE tn_layer_param(layer, "p", check_array(p, shape, TN_FLOAT64));
        tn_optimizer *optimizer = tn_optimizer_parse(torch_values[k].text, layer);
        check_context = torch_values[k].text;
        for (int t = 1; t <= TORCH_STEPS; t++) TN_SCOPE {
            for (int i = 0; i < N; i++)
                g[i] = ((7 * t * i + 3 * t + 5 * i) % 11 - 5) / 4.0 + 0.125;
            assert_int_equal(give_gradients(layer, g, 1), TN_OK);
            assert_int_equal(tn_step(optimizer), TN_OK);
        }
        const tn_array *y = torch_values[k].state ? NULL : tn_param(layer, 0);
        for (int i = 0; !y && i < tn_optimizer_state_count(optimizer); i++)
            if (strcmp(tn_optimizer_state_name(optimizer, i), torch_values[k].state) == 0)
                y = tn_optimizer_state(optimizer, i);
        assert_non_null(y);
        check_near(y, torch_values[k].p, N, 1e-9);
        tn_optimizer_free(optimizer);
        tn_layer_free(layer);
    }
    check_context = "";
    check_fine();
}

/* ---- what options do to gradients, seen by plain descent ---- */

static void test_gradient_options(void **state)
{
    (void)state;
    double p[SIZE], g[SIZE], want[SIZE];
    check_fill(p, SIZE, 0.2, 2);
    fresh_gradients(g, false);
    tn_layer *layer = new_layer(p, TN_FLOAT64);
    for (int way = 0; way < 4; way++) {
        const tn_optimizer_opts opts[] = {
            {.lr = 0.5, .lasso = 0.3},
            {.lr = 0.5, .clip_low = -0.2, .clip_high = 0.4},
            {.lr = 0.5, .lars = true, .weight_decay = 0.1},
            {.lr = 0.5, .lars = true, .lars_threshold = 1e6, .weight_decay = 0.1},
        };
        tn_optimizer *optimizer = tn_sgd_with(layer, &opts[way]);
        TN_SCOPE {
            double now[SIZE];
            check_read(tn_param(layer, 0), now, A);
            check_read(tn_param(layer, 1), now + A, B);
            for (int k = 0; k < 2; k++) {
                double size = 0, below = 0;
                for (int i = ranges[k].first; i < ranges[k].first + ranges[k].count; i++)
                    size += now[i] * now[i], below += g[i] * g[i];
                double r = way == 2 ? sqrt(size) / (1e-9 + sqrt(below) + 0.1 * sqrt(size)) : 1;
                for (int i = ranges[k].first; i < ranges[k].first + ranges[k].count; i++) {
                    double changed = way == 0   ? g[i] + 0.3 * ((now[i] > 0) - (now[i] < 0))
                                     : way == 1 ? fmin(fmax(g[i], -0.2), 0.4)
                                                : r * (g[i] + 0.1 * now[i]);
                    want[i] = now[i] - 0.5 * changed;
                }
            }
            assert_int_equal(give_gradients(layer, g, 2), TN_OK);
            assert_int_equal(tn_step(optimizer), TN_OK);
            check_params(layer, want, 1e-10);
        }
        tn_optimizer_free(optimizer);
    }
    tn_layer_free(layer);
    check_fine();
}

/* Noise has the variance eta / t^0.55, and none of it is there without asking. */
static void test_noise(void **state)
{
    (void)state;
    enum { MANY = 20000 };
    tn_layer *layer = tn_layer_new("many", no_forward, NULL, NULL);
    TN_SCOPE tn_layer_param(layer, "p", tn_zeros(TN_SHAPE(MANY), .dtype = TN_FLOAT64));
    tn_optimizer *optimizer = tn_sgd(layer, .lr = 1, .noise = 0.5);
    for (int t = 1; t <= 3; t++) TN_SCOPE {
        tn_array *before = tn_positive(tn_param(layer, 0));
        assert_int_equal(tn_eval(before), TN_OK);
        assert_int_equal(tn_backward(tn_sum(tn_param(layer, 0))), TN_OK);
        assert_int_equal(tn_step(optimizer), TN_OK);
        tn_array *noise = tn_subtract(before, tn_param(layer, 0));
        double variance = 0.5 / pow(t, 0.55);
        assert_float_equal(tn_item(tn_mean(noise)), 1, 6 * sqrt(variance / MANY));
        assert_float_equal(tn_item(tn_var(noise)), variance, 8 * variance / sqrt(MANY));
    }
    tn_optimizer_free(optimizer);
    tn_layer_free(layer);
    check_fine();
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_kinds), cmocka_unit_test(test_chainer),
                                       cmocka_unit_test(test_torch),
                                       cmocka_unit_test(test_gradient_options), cmocka_unit_test(test_noise)};
    return cmocka_run_group_tests_name("kinds", tests, check_seed, NULL);
}
