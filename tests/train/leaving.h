/* SPDX-License-Identifier: MIT */
/*
 * Every kind of function of a program's that the library calls, and how it is left: test_leaving.c leaves them by
 * longjmp, tests/build/exceptions.cpp, in C++, by an exception. Each case makes what it needs, so that the call that
 * calls the function is the only thing that is left half done, and is a call that works again afterwards.
 */
#ifndef TN_TESTS_LEAVING_H
#define TN_TESTS_LEAVING_H

#include <stdbool.h>
#include <stdint.h>
#include <tanso.h>

/* Does not return while `leaves` says so. */
static bool leaves;
static void leave(void);

/* What a function does before it is left: scopes, arrays, recording off. */
static void begin_something(void)
{
    tn_scope_push();
    tn_no_grad_push();
    (void)tn_square(tn_ones_with(TN_SHAPE(3), NULL));
    leave();
    tn_no_grad_pop();
    tn_scope_pop();
}

typedef struct scene {
    tn_layer *net, *function, *hooked, *several;
    tn_optimizer *optimizer, *own;
    tn_dataset *dataset, *source;
    tn_loader *loader, *made;
    tn_updater *updater, *usual;
    tn_trainer *trainer;
    tn_trigger *trigger;
    tn_extension *evaluator;
    tn_reporter *reporter;
    tn_observation *observation;
    tn_kernel *kernel;
    tn_array *x;
} scene;

/* ---- the functions ---- */

static void gradient(const tn_gradient_call *call)
{
    begin_something();
    call->result[0] = tn_multiply(call->gradients[0], tn_multiply(call->inputs[0], tn_weak_int(2)));
}

static tn_array *forward(const tn_array *x, void *user)
{
    (void)user;
    begin_something();
    return tn_square(x);
}

static tn_status flow(tn_layer *layer, const tn_flow *arrays, void *user)
{
    (void)layer, (void)user;
    begin_something();
    arrays->out[0] = tn_multiply(arrays->in[0], arrays->in[1]);
    return TN_OK;
}

static tn_status hook(tn_layer *layer, bool after, void *user)
{
    (void)layer, (void)after, (void)user;
    begin_something();
    return TN_OK;
}

static tn_status gradient_hook(tn_optimizer *optimizer, tn_layer *layer, void *user)
{
    (void)optimizer, (void)layer, (void)user;
    begin_something();
    return TN_OK;
}

static tn_array *update(const tn_update *u, const tn_array *p, const tn_array *g, tn_array **state)
{
    (void)u, (void)state;
    begin_something();
    return tn_subtract(p, g);
}

static tn_status sample(void *user, int64_t i, tn_generator *generator, void *x, void *t)
{
    (void)user, (void)generator;
    begin_something();
    for (int k = 0; k < 3; k++)
        ((float *)x)[k] = (float)i;
    *(float *)t = 0;
    return TN_OK;
}

static tn_array *loss(tn_layer *model, const tn_batch *batch, void *user)
{
    begin_something();
    return tn_usual_loss(model, batch, user);
}

static bool fire(tn_trainer *trainer, void *user)
{
    (void)trainer, (void)user;
    begin_something();
    return false;
}

static tn_status extension(tn_trainer *trainer, void *user)
{
    (void)trainer, (void)user;
    begin_something();
    return TN_OK;
}

static tn_status visit(const tn_layer_part *part, void *user)
{
    (void)part, (void)user;
    begin_something();
    return TN_OK;
}

static void seen(const tn_array *value, void *user)
{
    (void)value, (void)user;
    begin_something();
}

static tn_array *checked(int count, tn_array *const *xs, void *user)
{
    (void)count, (void)user;
    begin_something();
    return tn_square(xs[0]);
}

static tn_status every_iteration(tn_updater *updater, void *user)
{
    (void)updater, (void)user;
    begin_something();
    return TN_OK;
}

static bool sometimes(tn_trainer *trainer, void *user)
{
    (void)user;
    return tn_trainer_iteration(trainer) >= 4;
}

/* ---- the calls that call them ---- */

static tn_status call_gradient(scene *s)
{
    tn_arg arg = tn__arg_array(s->x);
    tn_args args = {1, &arg};
    return tn_backward_with(tn_call_with(s->kernel, args, NULL), NULL);
}

static tn_status call_gradients(scene *s)
{
    tn_arg arg = tn__arg_array(s->x);
    tn_args args = {1, &arg};
    const tn_array *xs[] = {s->x};
    tn_array *out[1];
    return tn_gradients(tn_call_with(s->kernel, args, NULL), 1, xs, false, out);
}

static tn_status call_function_layer(scene *s) { return tn_status_of(tn_forward(s->function, s->x)); }
static tn_status call_flow(scene *s)
{
    const tn_array *in[] = {s->x, s->x};
    return tn_status_of(tn_forward_of(s->several, 2, in));
}

static tn_status call_hooks(scene *s)
{
    return tn_status_of(tn_forward(s->hooked, tn_ones_with(TN_SHAPE(1, 3), NULL)));
}

static tn_status call_walk(scene *s) { return tn_layer_walk(s->net, visit, NULL); }

/* A step of an optimizer, whose gradients are there. */
static tn_status step(scene *s, tn_optimizer *optimizer)
{
    bool did = leaves;
    leaves = false;
    tn_array *y = tn_forward(s->net, tn_ones_with(TN_SHAPE(1, 3), NULL));
    tn_status status = tn_backward_with(tn_sum_with(y, NULL), NULL);
    leaves = did;
    return status == TN_OK ? tn_step(optimizer) : status;
}

static tn_status call_gradient_hook(scene *s) { return step(s, s->optimizer); }
static tn_status call_update(scene *s) { return step(s, s->own); }

static tn_status call_sample(scene *s)
{
    tn_batch batch;
    return tn_loader_next(s->made, &batch) ? TN_OK : tn_error_code();
}

static tn_status call_source(scene *s)
{
    tn_dataset *all = tn_dataset_slice(s->source, 0, 3);
    tn_status status = tn_status_of(tn_dataset_x(all));
    tn_dataset_free(all);
    return status;
}

static tn_status call_loss(scene *s) { return tn_updater_update(s->usual); }
static tn_status call_update_function(scene *s) { return tn_updater_update(s->updater); }
static tn_status call_trigger(scene *s) { return tn_trigger_fire(s->trigger, s->trainer) ? TN_ERR_VALUE : TN_OK; }
static tn_status call_trainer(scene *s) { return tn_trainer_run(s->trainer); }
static tn_status call_evaluator(scene *s) { return tn_extension_call(s->evaluator, s->trainer); }

static tn_status call_watcher(scene *s)
{
    tn_status status = TN_OK;
    TN_REPORTER (s->reporter, s->observation)
        status = tn_report_with(NULL, "x", tn_sum_with(s->x, NULL), NULL);
    return status;
}

static tn_status call_check(scene *s)
{
    const tn_array *xs[] = {s->x};
    return tn_check_backward_with(checked, NULL, 1, xs, NULL);
}

static const struct {
    const char *name;
    tn_status (*call)(scene *s);
} cases[] = {
    {"a gradient function, by backward", call_gradient},
    {"a gradient function, by gradients", call_gradients},
    {"a layer's function", call_function_layer},
    {"a layer's function of several arrays", call_flow},
    {"a layer's hook", call_hooks},
    {"a visitor of layers", call_walk},
    {"an optimizer's hook", call_gradient_hook},
    {"an update function", call_update},
    {"a function of samples", call_sample},
    {"a function of all samples", call_source},
    {"a loss function", call_loss},
    {"an updating function", call_update_function},
    {"a trigger", call_trigger},
    {"an evaluator's loss", call_evaluator},
    {"a watcher of reports", call_watcher},
    {"a function to be checked", call_check},
    {"an extension", call_trainer},
};
enum { CASES = sizeof cases / sizeof cases[0] };

static scene make_scene(void)
{
    static tn_kernel_opts kernel;
    static tn_sample_type x_type, t_type;
    static tn_loader_opts loader;
    static tn_updater_opts updater;
    static tn_trainer_opts trainer;
    static tn_evaluator_opts evaluator;
    static tn_linear_opts linear;
    static tn_layer_opts several;
    scene s;
    kernel.backward = gradient;
    s.kernel = tn_elementwise_with("float32 x", "float32 y", "y = x * x", "leaving_square", &kernel);
    s.x = tn_own(tn_requires_grad(tn_ones_with(TN_SHAPE(3), NULL)));
    linear.in = 3;
    s.net = tn_linear_with(1, &linear);
    s.hooked = tn_linear_with(2, &linear);
    tn_layer_add_hook(s.hooked, hook, NULL);
    several.inputs = 2;
    s.several = tn_flow_layer_with("several", flow, NULL, NULL, &several);
    s.function = tn_function_layer("function", forward, NULL);
    s.optimizer = tn_sgd_with(s.net, NULL);
    tn_optimizer_add_hook(s.optimizer, gradient_hook, NULL);
    s.own = tn_optimizer_new_with(s.net, "", update, NULL, NULL);
    x_type.dtype = t_type.dtype = TN_FLOAT32;
    x_type.shape = TN_SHAPE(3);
    t_type.shape = TN_SHAPE(1);
    loader.batch = 2;
    loader.no_prefetch = true;
    s.source = tn_dataset_of_with(8, x_type, t_type, sample, NULL, NULL);
    loader.keep_dataset = true;
    s.made = tn_loader_new_with(s.source, &loader);
    s.dataset = tn_dataset_arrays(tn_ones_with(TN_SHAPE(4, 3), NULL), tn_ones_with(TN_SHAPE(4, 1), NULL));
    s.loader = tn_loader_new_with(s.dataset, &loader);
    updater.loss = loss;
    s.usual = tn_standard_updater_with(s.loader, s.own, &updater);
    s.updater = tn_updater_of_with(every_iteration, NULL, NULL, NULL);
    trainer.stop = tn_trigger_of(sometimes, NULL);
    trainer.quiet = true;
    s.trainer = tn_trainer_new_with(tn_updater_of_with(every_iteration, NULL, NULL, NULL), &trainer);
    tn_extend_function_with(s.trainer, extension, NULL, NULL);
    s.trigger = tn_trigger_of(fire, NULL);
    evaluator.loss = loss;
    s.evaluator = tn_evaluator_with(s.loader, s.net, &evaluator);
    s.reporter = tn_reporter_new();
    s.observation = tn_observation_new();
    tn_reporter_watch(s.reporter, "x", seen, NULL);
    return s;
}

static void free_scene(const scene *s)
{
    tn_reporter_free(s->reporter);
    tn_observation_free(s->observation);
    tn_extension_free(s->evaluator);
    tn_trigger_free(s->trigger);
    tn_trainer_free(s->trainer);
    tn_updater_free(s->updater);
    tn_updater_free(s->usual);
    tn_loader_free(s->loader);
    tn_loader_free(s->made);
    tn_dataset_free(s->dataset);
    tn_dataset_free(s->source);
    tn_optimizer_free(s->optimizer);
    tn_optimizer_free(s->own);
    tn_layer_free(s->net);
    tn_layer_free(s->hooked);
    tn_layer_free(s->function);
    tn_layer_free(s->several);
    tn_free(s->x);
}

#endif
