/* SPDX-License-Identifier: MIT */
/* The life of triggers, and the simplest ones: a function, once, by time. */
#include <math.h>
#include "array/guard.h"
#include "train/chainer.h"

static tn_trigger memory_trigger = {.is_static = true};

static tn__object_kind objects = TN__OBJECT_KIND(tn_trigger, "trigger");

static void free_user(const tn_trigger_kind *kind, void *user)
{
    if (kind && kind->free)
        kind->free(user);
}

tn_trigger *tn__trigger_error(void)
{
    tn_trigger *trigger = tn__object_new(&objects);
    if (!trigger)
        return &memory_trigger;
    trigger->error = tn__error_retain(tn__error_last());
    return trigger;
}

tn_trigger *tn_trigger_new(const tn_trigger_kind *kind, void *user)
{
    if (!kind || !kind->fire) {
        tn__fail(TN_ERR_VALUE, "trigger_new", "expected a kind of trigger with a function `fire`, got %s",
                 kind ? "none" : "NULL");
        free_user(kind, user);
        return tn__trigger_error();
    }
    tn_trigger *trigger = tn__object_new(&objects);
    if (!trigger) {
        tn__fail_memory("trigger_new", sizeof *trigger);
        free_user(kind, user);
        return &memory_trigger;
    }
    trigger->kind = kind;
    trigger->user = user;
    trigger->calls = true;
    return trigger;
}

tn_trigger *tn__trigger_quiet(const tn_trigger_kind *kind, void *user)
{
    tn_trigger *trigger = tn_trigger_new(kind, user);
    if (!trigger->is_static)
        trigger->calls = false;
    return trigger;
}

void tn_trigger_free(tn_trigger *trigger)
{
    if (!trigger || trigger->is_static || !tn__object_may_go(&objects, &trigger->object) ||
        tn__at_work(trigger, "trigger"))
        return;
    free_user(trigger->kind, trigger->user);
    tn__error_release(trigger->error);
    tn__object_end(&objects, &trigger->object);
}

TN__PART_FUNCTIONS(trigger)

void tn__trigger_discard(tn_trigger *trigger)
{
    if (trigger && tn__object_is_free(&trigger->object))
        tn_trigger_free(trigger);
}

tn_status tn_trigger_status(const tn_trigger *trigger)
{
    if (!trigger || trigger->is_static)
        return trigger ? TN_ERR_MEMORY : TN_ERR_VALUE;
    return trigger->error ? tn__error_status(trigger->error) : TN_OK;
}

tn_status tn__trigger_raise(const tn_trigger *trigger)
{
    if (trigger->is_static)
        return tn__fail_memory("trigger", sizeof *trigger);
    return trigger->error ? tn__error_raise(trigger->error) : TN_OK;
}

bool tn_trigger_fire(tn_trigger *trigger, tn_trainer *trainer)
{
    if (!trigger)
        return false;
    if (!trainer) {
        tn__fail_null("trigger_fire", "a trainer");
        return false;
    }
    if (tn__trigger_raise(trigger) != TN_OK)
        return false;
    if (!trigger->calls)
        return trigger->kind->fire(trainer, trigger->user);
    TN__GUARD_OF("trigger_fire", trigger);
    return trigger->kind->fire(trainer, trigger->user);
}

void tn__trigger_ended(tn_trigger *trigger)
{
    if (trigger && trigger->kind && trigger->kind->ended)
        trigger->kind->ended(trigger->user);
}

tn_length tn_trigger_length(const tn_trigger *trigger)
{
    if (!trigger || !trigger->kind || !trigger->kind->length)
        return (tn_length){0};
    return trigger->kind->length(trigger->user);
}

/* ---- a plain function ---- */

typedef struct plain {
    bool (*fire)(tn_trainer *trainer, void *user);
    void *user;
} plain;

static bool plain_fire(tn_trainer *trainer, void *user)
{
    plain *p = user;
    return p->fire(trainer, p->user);
}

static void free_state(void *user) { tn__free(user); }

static const tn_trigger_kind plain_kind = {.name = "function", .fire = plain_fire, .free = free_state};

/* A trigger whose state is `bytes` bytes, copied from `state`. */
static tn_trigger *with_state(const tn_trigger_kind *kind, const void *state, size_t bytes)
{
    void *copy = tn__alloc(bytes);
    if (!copy) {
        tn__fail_memory(kind->name, bytes);
        return tn__trigger_error();
    }
    __builtin_memcpy(copy, state, bytes);
    return tn_trigger_new(kind, copy);
}

tn_trigger *tn_trigger_of(bool (*fire)(tn_trainer *trainer, void *user), void *user)
{
    if (!fire) {
        tn__fail_null("trigger_of", "a function");
        return tn__trigger_error();
    }
    return with_state(&plain_kind, &(plain){fire, user}, sizeof(plain));
}

/* ---- once ---- */

typedef struct once {
    bool first;   /* saved: still to come */
    bool resumed; /* not saved: to come after resuming */
} once;

static bool once_fire(tn_trainer *trainer, void *user)
{
    (void)trainer;
    once *o = user;
    bool fires = o->first || o->resumed;
    *o = (once){false, false};
    return fires;
}

static tn_status once_serialize(const tn_serializer *s, void *user)
{
    once *o = user;
    return tn_serialize_bool(s, tn__of_chainer(s) ? "_flag_first" : "first", &o->first);
}

static void once_ended(void *user) { ((once *)user)->first = true; }

static const tn_trigger_kind once_kind = {
    .name = "once", .fire = once_fire, .serialize = once_serialize, .free = free_state, .ended = once_ended};

tn_trigger *tn_once_with(const tn_once_opts *opts)
{
    return with_state(&once_kind, &(once){.first = true, .resumed = opts && opts->on_resume}, sizeof(once));
}

/* ---- by time ---- */

typedef struct timed {
    double period, next;
} timed;

static bool timed_fire(tn_trainer *trainer, void *user)
{
    timed *t = user;
    if (!(t->next < tn__trainer_told_time(trainer)))
        return false;
    t->next += t->period;
    return true;
}

static tn_status timed_serialize(const tn_serializer *s, void *user)
{
    timed *t = user;
    return tn_serialize_double(s, "next_time", &t->next);
}

static void timed_ended(void *user)
{
    timed *t = user;
    t->next -= t->period;
}

static const tn_trigger_kind timed_kind = {
    .name = "every_seconds", .fire = timed_fire, .serialize = timed_serialize, .free = free_state,
    .ended = timed_ended};

tn_trigger *tn_every_seconds(double seconds)
{
    if (!(seconds > 0) || !isfinite(seconds)) {
        tn__fail(TN_ERR_VALUE, "every_seconds", "expected more than 0 seconds, got %g", seconds);
        return tn__trigger_error();
    }
    return with_state(&timed_kind, &(timed){seconds, seconds}, sizeof(timed));
}
