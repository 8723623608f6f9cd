/* SPDX-License-Identifier: MIT */
/* Messages name the line of the call that failed, in every room, or no line: never that of a call before. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>
#include <tanso.h>

#include "support/scratch.h"

static tn_layer *net;
static tn_optimizer *optimizer;
static tn_loader *loader;
static tn_archive *archive;

/* The error that was latched ends in this line, or, for 0, in none. */
static void told(const char *what, int line)
{
    char place[64];
    snprintf(place, sizeof place, "(test_places.c:%d)", line);
    const char *at = strrchr(tn_error(), '(');
    if (tn_ok() || (line ? !at || strcmp(at, place) != 0 : strstr(tn_error(), "test_places.c") != NULL))
        fail_msg("%s: \"%s\" does not name %s", what, tn_error(), line ? place : "no line");
    tn_clear_error();
}

/* Another call's place is noted before. */
#define NAMES(...) (void)tn_zeros(TN_SHAPE(1)), (void)(__VA_ARGS__), told(#__VA_ARGS__, __LINE__)
#define NAMES_STATUS(...) (void)tn_zeros(TN_SHAPE(1)), (void)!(__VA_ARGS__), told(#__VA_ARGS__, __LINE__)
#define NAMES_NONE(...) \
    do { \
        (void)tn_zeros(TN_SHAPE(1)); \
        if ((__VA_ARGS__) == TN_OK) \
            fail_msg("%s succeeded", #__VA_ARGS__); \
        told(#__VA_ARGS__, 0); \
    } while (0)

static void test_arrays(void **state)
{
    (void)state;
    TN_SCOPE
    {
        const tn_array *x = tn_ones(TN_SHAPE(2)), *p = tn_ones(TN_SHAPE(2, 2));
        NAMES(tn_dim(x, 3));
        NAMES(tn_strides_of(x, NULL));
        NAMES(tn_clip_with(x, NULL, tn_ones(TN_SHAPE(3)), NULL));
        NAMES(tn_cov_with(x, TN_OPTS(tn_cov_opts, .fweights = p)));
        NAMES(tn_set_name(NULL, "x"));
        NAMES(tn_no_grad_pop());
    }
    NAMES(tn_scope_pop());
}

static void test_devices(void **state)
{
    (void)state;
    tn_device none = {TN_DEVICE_VIRTUAL, 99};
    NAMES(tn_memory_stats(none));
    NAMES(tn_memory_reset_peak(none));
    NAMES(tn_memory_trim(none));
    NAMES(tn_stream_native(none));
    TN_ON_DEVICE(none) told("TN_ON_DEVICE", __LINE__);
    tn_event *event = tn_event_new(tn_cpu());
    NAMES(tn_event_elapsed(event, event));
    NAMES_NONE(tn_event_synchronize(event));
    NAMES_NONE(tn_set_device(none));
    NAMES_NONE(tn_memory_limit_parse(tn_cpu(), "lots"));
    tn_event_free(event);
}

static void test_objects(void **state)
{
    (void)state;
    NAMES(tn_optimizer_set_lr(optimizer, -1));
    NAMES(tn_optimizer_set_steps(optimizer, -1));
    NAMES(tn_loader_set_epoch(loader, -1));
    NAMES(tn_archive_name(archive, 3));
    NAMES(tn_archive_set_text(archive, NULL, "x"));
    NAMES(tn_data_cache("no such set"));
}

static void test_trainer(void **state)
{
    (void)state;
    tn_trainer *trainer = tn_trainer_new(tn_standard_updater(loader, optimizer), .stop = TN_EVERY(1, TN_EPOCH));
    const char *model = scratch_path("model.safetensors");
    assert_int_equal(tn_layer_save(net, model), TN_OK);
    NAMES_STATUS(tn_trainer_load(NULL, model));
    NAMES_STATUS(tn_trainer_load(trainer, NULL));
    NAMES_STATUS(tn_trainer_load(trainer, "no such.safetensors"));
    NAMES_STATUS(tn_trainer_load(trainer, "no such.ending"));
    NAMES_STATUS(tn_trainer_load(trainer, model));
    NAMES_NONE(tn_trainer_save(trainer, "no such folder/a.safetensors"));
    tn_trainer_free(trainer);
}

static int set_up(void **state)
{
    (void)state;
    net = tn_linear(2, .in = 3);
    optimizer = tn_sgd(net);
    loader = tn_loader_new(tn_sine(8, 0));
    archive = tn_archive_new();
    return tn_ok() ? 0 : -1;
}

static int tear_down(void **state)
{
    (void)state;
    tn_archive_free(archive);
    tn_loader_free(loader);
    tn_optimizer_free(optimizer);
    tn_layer_free(net);
    return tn_ok() ? 0 : -1;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_arrays),
        cmocka_unit_test(test_devices),
        cmocka_unit_test(test_objects),
        cmocka_unit_test(test_trainer),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
