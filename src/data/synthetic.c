/* SPDX-License-Identifier: MIT */
/* Toy sets computed from a seed, and stand-ins of the published ones. */
#include <math.h>
#include <string.h>
#include "core/hash.h"
#include "data/dataset.h"
#include "ops/scalar.h"

#define ARMS 3

enum { STREAM_NOISE = 1, STREAM_ORDER, STREAM_X, STREAM_CLASSES, STREAM_WORDS };

static tn_status check_count(const char *operation, int64_t count)
{
    if (count >= 0)
        return TN_OK;
    return tn__fail(TN_ERR_VALUE, operation, "expected a number of points of 0 or more, got %lld", (long long)count);
}

static tn_status allocate(const char *operation, int64_t count, int64_t features, tn__values *x, tn_dtype t_dtype,
                          tn_shape t_shape, tn__values *t)
{
    tn_status status = tn__values_new(operation, x, TN_FLOAT32, (tn_shape){2, {count, features}});
    return status == TN_OK ? tn__values_new(operation, t, t_dtype, t_shape) : status;
}

/* Point i of arm j, at radius r = i / per_class, lies at the angle 4 j + 4 r + 0.2 N(0, 1) (DeZero's get_spiral). */
static tn_status fill_spiral(int64_t per_class, uint64_t seed, tn__values *x, tn__values *t)
{
    int64_t count = ARMS * per_class;
    tn__values order = {0};
    tn_status status = tn__values_new("spiral", &order, TN_INT64, (tn_shape){1, {count}});
    if (status != TN_OK)
        return status;
    int64_t *place = tn__values_data(&order);
    tn__permutation(tn__hash_mix(seed, STREAM_ORDER), count, place);
    uint64_t key = tn__hash_mix(seed, STREAM_NOISE);
    float *point = tn__values_data(x);
    int64_t *label = tn__values_data(t);
    for (int64_t i = 0; i < count; i++) {
        int64_t arm = i / per_class;
        double radius = (double)(i % per_class) / (double)per_class;
        double angle = 4.0 * (double)arm + 4.0 * radius + 0.2 * tns_random_normal_f64(key, 0, (tn_u64)i);
        point[2 * place[i]] = (float)(radius * sin(angle));
        point[2 * place[i] + 1] = (float)(radius * cos(angle));
        label[place[i]] = arm;
    }
    tn__values_free(&order);
    return TN_OK;
}

tn_dataset *tn_spiral(int64_t per_class, uint64_t seed)
{
    tn__values x = {0}, t = {0};
    int64_t count;
    tn_status status = check_count("spiral", per_class);
    if (status == TN_OK && __builtin_mul_overflow(per_class, (int64_t)ARMS, &count))
        status =
            tn__fail(TN_ERR_VALUE, "spiral", "%lld points a class are more than memory holds", (long long)per_class);
    if (status == TN_OK)
        status = allocate("spiral", count, 2, &x, TN_INT64, (tn_shape){1, {count}}, &t);
    if (status == TN_OK)
        status = fill_spiral(per_class, seed, &x, &t);
    return tn__dataset_make("spiral", status, &x, &t);
}

tn_dataset *tn_sine(int64_t n, uint64_t seed)
{
    tn__values x = {0}, t = {0};
    tn_status status = check_count("sine", n);
    if (status == TN_OK)
        status = allocate("sine", n, 1, &x, TN_FLOAT32, (tn_shape){2, {n, 1}}, &t);
    if (status == TN_OK) {
        uint64_t x_key = tn__hash_mix(seed, STREAM_X), noise_key = tn__hash_mix(seed, STREAM_NOISE);
        float *at = tn__values_data(&x), *value = tn__values_data(&t);
        for (int64_t i = 0; i < n; i++) {
            at[i] = tns_random_uniform_f32(x_key, 0, (tn_u64)i);
            value[i] = (float)(sin(2 * M_PI * at[i]) + tns_random_uniform_f64(noise_key, 0, (tn_u64)i));
        }
    }
    return tn__dataset_make("sine", status, &x, &t);
}

/* ---- stand-ins of published sets ---- */

/* The shape of a sample and the number of classes, a row a set. */
static const struct stand_in {
    const char *name;
    tn_shape sample;
    int64_t classes;
} stand_ins[] = {
    {"mnist", {1, {784}}, 10},         {"fashion-mnist", {1, {784}}, 10},   {"kmnist", {1, {784}}, 10},
    {"cifar10", {3, {3, 32, 32}}, 10}, {"cifar100", {3, {3, 32, 32}}, 100}, {"svhn", {3, {3, 32, 32}}, 10},
};
enum { STAND_INS = sizeof stand_ins / sizeof *stand_ins };

/* Samples of the two splits. */
static const int64_t stand_in_count[2] = {2000, 500};

static const struct stand_in *find_stand_in(const char *name)
{
    for (int i = 0; name && i < STAND_INS; i++)
        if (strcmp(name, stand_ins[i].name) == 0)
            return &stand_ins[i];
    return NULL;
}

/* Pixel j of sample i, of class c, is 0.5 + 0.1 P(c, j) + 0.2 N(i, j), cut to [0, 1], with P and N normal: every class
 * has a picture of its own, under noise. Classes come by turns. */
static void fill_stand_in(const struct stand_in *set, bool test, int64_t pixels, float *x, int64_t *t)
{
    uint64_t key = tn__hash_mix(STREAM_CLASSES, (uint64_t)(set - stand_ins));
    uint64_t noise = tn__hash_mix(key, STREAM_NOISE + (uint64_t)test);
    for (int64_t i = 0; i < stand_in_count[test]; i++) {
        t[i] = i % set->classes;
        for (int64_t j = 0; j < pixels; j++) {
            double picture = tns_random_normal_f64(key, 0, (tn_u64)(t[i] * pixels + j));
            double value = 0.5 + 0.1 * picture + 0.2 * tns_random_normal_f64(noise, 0, (tn_u64)(i * pixels + j));
            *x++ = (float)(value < 0 ? 0 : value > 1 ? 1 : value);
        }
    }
}

/* Words of the Penn Treebank's stand-in, and of its parts. */
#define PTB_WORDS 10000
static const int64_t ptb_count[2] = {20000, 5000};

/* Word w is about as frequent as 1 / (w + 1): so the words of texts are, in their order (G. Zipf, 1949). */
static int64_t zipf(uint64_t key, int64_t i)
{
    int64_t word = (int64_t)pow(PTB_WORDS, tns_random_uniform_f64(key, 0, (tn_u64)i));
    return (word < PTB_WORDS ? word : PTB_WORDS) - 1;
}

/* A word is followed by one that it has for itself, but every fourth time by any. */
static tn_dataset *ptb_stand_in(bool test)
{
    tn__values x = {0}, t = {0};
    uint64_t key = tn__hash_mix(STREAM_WORDS, test), next = tn__hash_mix(STREAM_WORDS, 2);
    tn_shape shape = {1, {ptb_count[test]}};
    tn_status status = tn__values_new("dataset_synthetic", &x, TN_INT64, shape);
    if (status == TN_OK)
        status = tn__values_new("dataset_synthetic", &t, TN_INT64, shape);
    int64_t word = zipf(key, 0);
    for (int64_t i = 0; i < shape.dim[0] && status == TN_OK; i++) {
        ((int64_t *)tn__values_data(&x))[i] = word;
        bool any = tns_random_below_u64(key, 1, (tn_u64)i, 4) == 0;
        word = any ? zipf(key, i + 1) : zipf(next, word);
        ((int64_t *)tn__values_data(&t))[i] = word;
    }
    tn_dataset *dataset = tn__dataset_make("dataset_synthetic", status, &x, &t);
    if (tn_dataset_status(dataset) == TN_OK)
        dataset->classes = PTB_WORDS;
    return dataset;
}

tn_dataset *tn_dataset_synthetic(const char *name, tn_split_kind split)
{
    tn__values x = {0}, t = {0};
    const struct stand_in *set = find_stand_in(name);
    bool test = split == TN_TEST;
    tn_status status = TN_OK;
    if (name && strcmp(name, "ptb") == 0)
        return ptb_stand_in(test);
    if (!set) {
        const char *names[STAND_INS + 1] = {"ptb"};
        for (int i = 0; i < STAND_INS; i++)
            names[i + 1] = stand_ins[i].name;
        const char *near = name ? tn__nearest_name(name, names, STAND_INS + 1) : NULL;
        status = tn__fail(TN_ERR_NAME, "dataset_synthetic",
                          "there is a stand-in of mnist, fashion-mnist, kmnist, cifar10, cifar100, svhn and ptb, and "
                          "none of '%s'%s%s%s",
                          name ? name : "NULL", near ? ": did you mean '" : "", near ? near : "", near ? "'?" : "");
        return tn__dataset_make("dataset_synthetic", status, &x, &t);
    }
    tn_shape shape = {set->sample.ndim + 1, {stand_in_count[test]}};
    int64_t pixels = 1;
    for (int i = 0; i < set->sample.ndim; i++)
        pixels *= shape.dim[i + 1] = set->sample.dim[i];
    status = tn__values_new("dataset_synthetic", &x, TN_FLOAT32, shape);
    if (status == TN_OK)
        status = tn__values_new("dataset_synthetic", &t, TN_INT64, (tn_shape){1, {stand_in_count[test]}});
    if (status == TN_OK)
        fill_stand_in(set, test, pixels, tn__values_data(&x), tn__values_data(&t));
    return tn__dataset_make("dataset_synthetic", status, &x, &t);
}
