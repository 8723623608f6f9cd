/* SPDX-License-Identifier: MIT */
/* Toy sets computed from a seed. */
#include <math.h>
#include "array/scalar.h"
#include "core/hash.h"
#include "data/dataset.h"

#define ARMS 3

enum { STREAM_NOISE = 1, STREAM_ORDER, STREAM_X };

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
