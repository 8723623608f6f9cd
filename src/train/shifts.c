/* SPDX-License-Identifier: MIT */
/* Schedules as extensions: they count their calls, or look where the run is, and set an attribute of an optimizer. */
#include <math.h>
#include <string.h>
#include "core/log.h"
#include "train/chainer.h"
#include "train/ext.h"
#include "train/parts.h"
#include "train/shift.h"

#define OPERATION "shift"

typedef struct shifting {
    tn__shift shift;
    char *optimizer, *name;
    double *steps;    /* owned */
    tn_length length; /* of the course; as asked for, then as it is */
    bool first_given;
    bool begun; /* in a run, this one or the one that was saved */
    int64_t calls;
    double found;     /* the attribute when the run began */
    double at, value; /* the place that the attribute was last set for, and to what */
    tn_optimizer *target;
    tn_extension_kind kind; /* named by the shift's kind */
} shifting;

static double place(const shifting *s, const tn_trainer *trainer)
{
    if (!s->shift.kind->placed)
        return (double)s->calls;
    return s->length.unit == TN_EPOCH ? tn_trainer_epoch_detail(trainer) : (double)tn_trainer_iteration(trainer);
}

static tn_status set(shifting *s, double at)
{
    double old = tn_optimizer_get(s->target, s->name);
    s->at = at;
    s->value = tn__shift_value(&s->shift, at, old);
    return tn_optimizer_set(s->target, s->name, s->value);
}

/* A course that has become longer since the snapshot has another value where the run is. */
static tn_status set_again(shifting *s)
{
    double value = tn__shift_value(&s->shift, s->at, s->value);
    return isnan(s->value) || value == s->value ? TN_OK : set(s, s->at);
}

static tn_status call(tn_trainer *trainer, void *user)
{
    shifting *s = user;
    s->calls++;
    return set(s, place(s, trainer));
}

static tn_status find_length(shifting *s, const tn_trainer *trainer)
{
    if (s->length.count == 0)
        s->length = tn_trainer_length(trainer);
    s->shift.length = s->length.count;
    if (s->shift.kind == &tn__shift_cosine && s->length.count > 0 && s->shift.c >= s->length.count)
        tn__log(TN__LOG_WARN, s->kind.name,
                "a .warmup of %g in a course of %g %s: '%s' rises to the end and never falls", s->shift.c,
                s->length.count, s->length.unit == TN_EPOCH ? "epochs" : "iterations", s->name);
    if (!s->shift.kind->placed || s->length.count > 0)
        return TN_OK;
    return tn__fail(TN_ERR_VALUE, s->kind.name,
                    "it cannot know how long the training is: give the trainer a stop trigger as TN_EVERY(20, "
                    "TN_EPOCH), or this a .length");
}

/* ---- others of the same attribute ---- */

static void free_shift(void *user);

tn_status tn__fail_undone(const char *one, const char *other, const char *attribute)
{
    return tn__fail(TN_ERR_VALUE, OPERATION,
                    "%s and %s both set '%s' of one optimizer throughout the run, and undo one another: leave one out "
                    "(tn_train and tanso train have a schedule of their own: ask for \"constant\")",
                    one, other, attribute);
}

/* The shift of an extension that is one, has its optimizer already, and sets the same attribute. */
static const shifting *beside(const shifting *s, const tn_extension *extension)
{
    const shifting *other = extension->kind->free == free_shift ? extension->user : NULL;
    return other && other != s && other->target == s->target && strcmp(other->name, s->name) == 0 ? other : NULL;
}

static bool is_warmup(const shifting *s) { return s->shift.kind == &tn__shift_warmup; }

/* Whether it sets the attribute again and again, for as long as the run is: a warm-up leaves it alone at last. */
static bool is_throughout(const shifting *s, const tn_trigger *trigger)
{
    return !is_warmup(s) && (!trigger || tn_trigger_length(trigger).count > 0);
}

const char *tn__sets_throughout(const tn__registered *r, const tn_optimizer *optimizer, const char *attribute)
{
    const shifting *s = r->extension->kind->free == free_shift ? r->extension->user : NULL;
    bool same = s && s->target == optimizer && strcmp(s->name, attribute) == 0;
    return same && is_throughout(s, r->trigger) ? s->kind.name : NULL;
}

/* `other` has begun before. */
static tn_status check_pair(const shifting *s, const shifting *other, bool throughout, double now)
{
    const char *own = s->kind.name, *its = other->kind.name;
    if (is_warmup(other) && !is_warmup(s))
        return s->begun ? TN_OK
                        : tn__fail(TN_ERR_VALUE, OPERATION,
                                   "%s would undo what %s sets '%s' to: extend the trainer with the warm-up behind it",
                                   own, its, s->name);
    if (throughout && !is_warmup(s))
        return tn__fail_undone(its, own, s->name);
    if (!s->begun && !s->first_given && s->shift.kind != &tn__shift_linear && now != other->found)
        return tn__fail(TN_ERR_VALUE, OPERATION,
                        "%s would begin with %g as the first value of '%s', which %s has set, and not with %g: give it "
                        "its own .first, or leave one out", own, now, s->name, its, other->found);
    return TN_OK;
}

/* Each sets a value of its own, and none multiplies what another has set: those whose triggers are for some points may
 * follow one another. */
static tn_status check_others(const shifting *s, const tn_trainer *trainer, double now)
{
    const tn__registered *own = trainer->extensions, *end = own + trainer->extension_count;
    while (own < end && own->extension->user != s)
        own++;
    tn_status status = TN_OK;
    for (const tn__registered *r = trainer->extensions; r < own && own < end && status == TN_OK; r++) {
        const shifting *other = beside(s, r->extension);
        if (other)
            status = check_pair(s, other, is_throughout(s, own->trigger) || is_throughout(other, r->trigger), now);
        else if (is_throughout(s, own->trigger) && tn__is_plateau_of(r->extension, s->target, s->name))
            status = tn__fail_undone(r->extension->kind->name, s->kind.name, s->name);
    }
    return status;
}

/* ---- in a run ---- */

/* A resumed run's attribute came with the optimizer, and may have been changed by another extension since. */
static tn_status initialize(tn_trainer *trainer, void *user)
{
    shifting *s = user;
    s->target = tn_trainer_optimizer(trainer, s->optimizer);
    double now = s->target ? tn_optimizer_get(s->target, s->name) : NAN;
    tn_status status = tn_error_code();
    if (status == TN_OK)
        status = find_length(s, trainer);
    if (status == TN_OK)
        status = check_others(s, trainer, now);
    if (status != TN_OK)
        return status;
    s->found = now;
    if (s->begun)
        return set_again(s);
    if (!s->first_given)
        s->shift.first = now;
    s->begun = true; /* another run of the same trainer goes on */
    return set(s, place(s, trainer));
}

static tn_status serialize(const tn_serializer *s, void *user)
{
    shifting *shift = user;
    tn_status status = tn__serialize_count(s, "_t", &shift->calls);
    if (tn__of_chainer(s)) /* its optimizers have their first values again, and shifts work from these */
        return status;
    bool begun = shift->begun || s->loading; /* files of before had no "_begun" */
    if (status == TN_OK && (!s->loading || tn_serializer_has(s, "_begun")))
        status = tn_serialize_bool(s, "_begun", &begun);
    if (status == TN_OK)
        status = tn_serialize_double(s, "_init", &shift->shift.first);
    if (status == TN_OK)
        status = tn_serialize_double(s, "_at", &shift->at);
    if (status == TN_OK)
        status = tn_serialize_double(s, "_value", &shift->value);
    if (status == TN_OK)
        shift->begun = begun;
    return status;
}

static void free_shift(void *user)
{
    shifting *s = user;
    tn__free(s->optimizer);
    tn__free(s->name);
    tn__free(s->steps);
    tn__free(s);
}

static const tn_extension_kind usual = {
    .priority = TN_PRIORITY_READER, .initialize = initialize, .call = call, .serialize = serialize, .free = free_shift};

/* What all of them are made by; a failure of the caller's checks comes as `status`. */
static tn_extension *make(const tn__shift *shift, const char *attribute, const char *optimizer, bool first_given,
                          tn_length length, tn_status status)
{
    shifting *s = tn__calloc(1, sizeof *s);
    if (!s)
        return tn__extension_of(&usual, NULL, TN_ERR_MEMORY);
    s->shift = *shift;
    s->first_given = first_given;
    s->length = length;
    s->kind = usual;
    s->kind.name = shift->kind->name;
    s->value = NAN; /* not set so far */
    if (status == TN_OK && !attribute)
        status = tn__fail_null(s->kind.name, "the name of an attribute");
    s->name = tn__text_option(attribute, NULL, &status);
    s->optimizer = tn__text_option(optimizer, NULL, &status);
    if (status == TN_OK && shift->step_count > 0) {
        size_t bytes = (size_t)shift->step_count * sizeof *s->steps;
        s->steps = tn__alloc(bytes);
        if (s->steps)
            memcpy(s->steps, shift->steps, bytes);
        else
            status = tn__fail_memory(s->kind.name, bytes);
        s->shift.steps = s->steps;
    }
    return tn__extension_of(&s->kind, s, status);
}

/* A shift by calls. `sound` tells whether its numbers are such; `wanted` says what they should be. */
static tn_extension *by_calls(tn__shift shift, const char *attribute, const tn_shift_opts *opts, bool sound,
                              const char *wanted)
{
    static const tn_shift_opts defaults;
    opts = opts ? opts : &defaults;
    shift.first = opts->first;
    shift.target = TN__GIVEN(opts, target) ? opts->target : NAN;
    tn_status status = TN_OK;
    if (!sound)
        status = tn__fail(TN_ERR_VALUE, shift.kind->name, "expected %s", wanted);
    return make(&shift, attribute, opts->optimizer, TN__GIVEN(opts, first), (tn_length){0}, status);
}

tn_extension *tn_exponential_shift_with(const char *attribute, double rate, const tn_shift_opts *opts)
{
    return by_calls((tn__shift){.kind = &tn__shift_exponential, .a = rate}, attribute, opts, rate >= 0,
                    "a rate of 0 or more");
}

tn_extension *tn_inverse_shift_with(const char *attribute, double gamma, double power, const tn_shift_opts *opts)
{
    return by_calls((tn__shift){.kind = &tn__shift_inverse, .a = gamma, .b = power}, attribute, opts,
                    gamma >= 0 && isfinite(power), "a gamma of 0 or more, and a power");
}

tn_extension *tn_linear_shift_with(const char *attribute, double v1, double v2, double t1, double t2,
                                   const tn_shift_opts *opts)
{
    return by_calls((tn__shift){.kind = &tn__shift_linear, .a = v1, .b = v2, .c = t1, .d = t2}, attribute, opts,
                    t1 <= t2 && isfinite(v1) && isfinite(v2),
                    "two values, and two times of which the first is not later");
}

tn_extension *tn_multistep_shift_with(const char *attribute, double gamma, int count, const double *steps,
                                      const tn_shift_opts *opts)
{
    bool sound = count > 0 && steps && isfinite(gamma);
    for (int i = 1; sound && i < count; i++)
        sound = steps[i - 1] <= steps[i];
    return by_calls(
        (tn__shift){.kind = &tn__shift_multistep, .a = gamma, .steps = steps, .step_count = sound ? count : 0},
        attribute, opts, sound, "a factor, and steps in rising order");
}

tn_extension *tn_polynomial_shift_with(const char *attribute, double rate, double max, const tn_shift_opts *opts)
{
    return by_calls((tn__shift){.kind = &tn__shift_polynomial, .a = rate, .b = max}, attribute, opts,
                    isfinite(rate) && max > 0, "a power, and a number of calls above 0");
}

tn_extension *tn_step_shift_with(const char *attribute, double gamma, double step, const tn_shift_opts *opts)
{
    return by_calls((tn__shift){.kind = &tn__shift_step, .a = gamma, .b = step}, attribute, opts,
                    isfinite(gamma) && step > 0, "a factor, and a number of calls above 0");
}

tn_extension *tn_warmup_shift_with(const char *attribute, double start, double n, const tn_shift_opts *opts)
{
    return by_calls((tn__shift){.kind = &tn__shift_warmup, .a = start, .b = n}, attribute, opts,
                    isfinite(start) && n > 0, "a value to start with, and a number of calls above 0");
}

static tn_extension *by_place(tn__shift shift, const char *attribute, const tn_course_opts *opts, bool sound,
                              const char *wanted)
{
    shift.first = opts->first;
    shift.target = NAN;
    tn_status status = TN_OK;
    if (!sound || !(opts->length.count >= 0))
        status = tn__fail(TN_ERR_VALUE, shift.kind->name, "expected %s", wanted);
    return make(&shift, attribute, opts->optimizer, TN__GIVEN(opts, first), opts->length, status);
}

static const tn_course_opts usual_course;

tn_extension *tn_cosine_shift_with(const char *attribute, const tn_course_opts *opts)
{
    opts = opts ? opts : &usual_course;
    return by_place((tn__shift){.kind = &tn__shift_cosine, .a = opts->start, .b = opts->last, .c = opts->warmup},
                    attribute, opts, opts->warmup >= 0 && opts->start >= 0 && opts->last >= 0,
                    "a warm-up, a start and a last value of 0 or more");
}

tn_extension *tn_one_cycle_shift_with(const char *attribute, const tn_course_opts *opts)
{
    opts = opts ? opts : &usual_course;
    double rise = TN__OPTION(opts, rise, 0.3), begin = TN__OPTION(opts, begin_factor, 25);
    double end = TN__OPTION(opts, end_factor, 1e4);
    return by_place((tn__shift){.kind = &tn__shift_one_cycle, .a = begin, .b = end, .c = rise}, attribute, opts,
                    rise > 0 && rise < 1 && begin > 0 && end > 0, "a .rise between 0 and 1, and factors above 0");
}
