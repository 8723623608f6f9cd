/* SPDX-License-Identifier: MIT */
/* What triggers, updaters, extensions and the trainer are, and what their files share. */
#ifndef TN_TRAIN_PARTS_H
#define TN_TRAIN_PARTS_H

#include <tanso/trainer.h>
#include "core/error.h"
#include "core/memory.h"
#include "core/number.h"
#include "core/object.h"

/* ---- serializer.c ---- */
/* TN_OK if both are there and nothing has failed so far; what every serializing function begins with. */
tn_status tn__serializer_check(const tn_serializer *s, const char *name, const void *value);
/* The path of a name at a place, "extensions/LogReport/count", for tn__free; NULL with a latched error. */
char *tn__serializer_path(const tn_serializer *s, const char *name);
/* A number of things, to which a run goes on adding: a loaded one that is below 0, or enormous, is TN_ERR_FORMAT. */
tn_status tn__serialize_count(const tn_serializer *s, const char *name, int64_t *value);
/* Keeps an array under a path. */
tn_status tn__serializer_put(const tn_serializer *s, const char *name, const tn_array *x);
/* The array of that name; NULL with a latched error. */
tn_array *tn__serializer_get(const tn_serializer *s, const char *name);
/* The device of a name, where it can be used, else the CPU. */
tn_device tn__device_named(const char *name);

/* ---- fraction.c ---- */
/* A positive number as p / q with a q as small as gives the number up to its rounding: 0.1 is 1 / 10. */
typedef struct tn__fraction {
    int64_t p, q;
} tn__fraction;
bool tn__fraction_of(double value, tn__fraction *fraction);
/* floor(count / (value * size)), exactly. */
int64_t tn__fraction_multiples(tn__fraction value, int64_t count, int64_t size);
/* Whether count >= value * size, exactly. */
bool tn__fraction_reached(tn__fraction value, int64_t count, int64_t size);

/*
 * Taking a part over for `owner`, who frees it by tn__NAME_free_taken, and does so too where it fails itself. The
 * status is TN_ERR_STATE for one that is another's already or has been freed, which stays as it is. NULL is nothing.
 */
#define TN__PART(name) \
    tn_status tn__##name##_take(tn_##name *part, const char *owner); \
    void tn__##name##_free_taken(tn_##name *part)
TN__PART(trigger);
/* Frees a trigger that was to be taken over, unless it is another's or has been freed. */
void tn__trigger_discard(tn_trigger *trigger);
TN__PART(updater);
TN__PART(extension);
#define TN__PART_FUNCTIONS(name) \
    tn_status tn__##name##_take(tn_##name *part, const char *owner) \
    { \
        return !part || part->is_static ? TN_OK : tn__object_take(&objects, &part->object, owner); \
    } \
    void tn__##name##_free_taken(tn_##name *part) \
    { \
        if (part && !part->is_static) \
            part->object.owner = NULL; \
        tn_##name##_free(part); \
    }

/* ---- trigger.c ---- */
struct tn_trigger {
    tn__object object;
    const tn_trigger_kind *kind;
    void *user;
    tn__error *error; /* why it could not be made */
    bool is_static;
    bool calls; /* functions of the program's, perhaps */
};
/* One of a kind of the library's whose functions call none of the program's; takes over `user` in any case. */
tn_trigger *tn__trigger_quiet(const tn_trigger_kind *kind, void *user);
/* An inert one with the last error. */
tn_trigger *tn__trigger_error(void);
/* The status, latched again. */
tn_status tn__trigger_raise(const tn_trigger *trigger);

/* A stop trigger has ended a run: tn_trigger_kind.ended. NULL is ignored. */
void tn__trigger_ended(tn_trigger *trigger);

/* What a trigger of intervals or points remembers of when it was asked last. Epochs are kept undivided, as a trigger is
 * asked each iteration and what it remembers is seldom looked at. */
typedef struct tn__asked {
    int64_t iteration;
    double samples, size; /* size: of an epoch; 0: `samples` are epochs */
} tn__asked;
/* The count of a unit then, in samples for epochs, and now; moves on. */
void tn__asked_move(tn__asked *asked, tn_unit unit, const tn_trainer *trainer, int64_t *before, int64_t *now,
                    int64_t *size);
tn_status tn__asked_serialize(const tn_serializer *s, tn__asked *asked);
/* Nobody knows: it counts as asked in the iteration before the present one, whatever that is. */
void tn__asked_forget(tn__asked *asked);

/* ---- updater.c ---- */
struct tn_updater {
    tn__object object;
    tn__error *error;
    bool is_static;
    tn_status (*update)(tn_updater *updater, void *user);
    tn_named_loader *loaders; /* the main one first; names are owned */
    tn_loader *main;          /* that one; NULL: none is named so */
    int loader_count;
    tn_named_optimizer *optimizers;
    int optimizer_count;
    tn_loss_function loss;
    void *user;
    void (*free_user)(void *user);
    tn_device device; /* of the models and what a loss is computed of; default: they stay where they are */
    int accumulate;
    /* The next minibatch: its losses, and its part of the gradients of the optimizer's layer. */
    tn_status (*minibatch)(tn_updater *updater, tn_optimizer *optimizer);
    tn_device *devices; /* of a parallel updater; the optimizer's layer is on the first */
    int device_count;
    tn_layer **replicas; /* one a device, made when the layer has its parameters; that of the first stays NULL */
    uint64_t copied;     /* the layer's count of changes when they were made */
    bool mean_statistics;
    int64_t iteration, previous_samples;
    bool is_new_epoch;
};
tn_status tn__updater_raise(const tn_updater *updater);
/* ---- iteration.c ---- */
/* What a standard updater does in an iteration; and of it the loss of one minibatch and backward. */
tn_status tn__standard_update(tn_updater *updater, void *user);
tn_status tn__one_minibatch(tn_updater *updater, tn_optimizer *optimizer);
/* The loss of a minibatch, of which what is elsewhere is copied to the device first, unless that is the default one. */
tn_array *tn__loss_on(tn_device device, tn_loss_function loss, tn_layer *model, const tn_batch *batch, void *user);
/* Backward from a loss that the updater's function gave for a part of what an update is made of. */
tn_status tn__updater_backward(const tn_updater *updater, const tn_array *loss, double part);
/* parallel.c: what an updater over several devices has beyond one over one. */
tn_status tn__parallel_fill(tn_updater *updater, const tn_loader *loader, const tn_updater_opts *opts);
void tn__parallel_end(tn_updater *updater);
tn_status tn__parallel_minibatch(tn_updater *updater, tn_optimizer *optimizer);
tn_status tn__updater_serialize(const tn_serializer *s, tn_updater *updater);

/* ---- extension.c ---- */
struct tn_extension {
    tn__object object;
    const tn_extension_kind *kind;
    void *user;
    char *name; /* NULL: the kind's */
    tn__error *error;
    bool is_static;
    bool quiet; /* its `call` calls none of the program's functions, but for triggers */
};
tn_extension *tn__extension_error(void);
/* The extension, marked as quiet. */
tn_extension *tn__extension_quiet(tn_extension *extension);

/* ---- loop.c, trainer.c, trainer_state.c ---- */
typedef struct tn__registered {
    tn_extension *extension;
    tn_trigger *trigger; /* NULL: each iteration */
    int priority;
    bool before_training;
} tn__registered;

/* ---- shifts.c, plateau.c ---- */
/* The name of the schedule that an extension is, if it has begun, and sets this attribute again and again for as long
 * as the run is; else NULL. */
const char *tn__sets_throughout(const tn__registered *r, const tn_optimizer *optimizer, const char *attribute);
/* Whether it lowers the attribute, and has begun. */
bool tn__is_plateau_of(const tn_extension *extension, const tn_optimizer *optimizer, const char *attribute);
/* That of two extensions, by their names, each undoes what the other does. */
tn_status tn__fail_undone(const char *one, const char *other, const char *attribute);

/* meeting.c: where the ranks of one run meet. */
typedef struct tn__meetings {
    tn_comm *comm;      /* NULL: the run is this process's alone */
    int64_t next, last; /* iterations after which they meet next, have met last */
    double at, elapsed; /* the last time: by tn__seconds, and what rank 0 told of its tn_trainer_elapsed_time */
} tn__meetings;

struct tn_trainer {
    tn__object object;
    tn__error *error;
    bool is_static;
    tn_updater *updater;
    tn_trigger *stop; /* NULL: never */
    char *out;
    tn__registered *extensions; /* by falling priority, those of one in order of registration */
    size_t extension_count, extension_capacity;
    tn_reporter *reporter;
    tn_observation *observation;
    volatile const int *stop_flag;
    bool ctrl_c, quiet;
    bool running, done, stopped;
    bool iterates;      /* an iteration of the run has begun */
    bool in_own_folder; /* whoever made it keeps others out of the folder */
    int folder;         /* while it runs: `out`, locked; -1: not */
    int64_t under_way;  /* the iteration that is under way, or the last one */
    uint16_t runner; /* the number of the thread that runs it */
    double began, elapsed_before; /* of tn__seconds; elapsed by earlier runs */
    double now;                   /* of tn__seconds_about in this iteration, 0: not asked */
    tn__error *failure;           /* what ends the run, while extensions are told */
    tn__meetings meetings;
};
tn_status tn__trainer_raise(const tn_trainer *trainer, const char *operation);
/* By tn__seconds_about, read once an iteration: what runs each iteration and asks only whether it is time. */
double tn__trainer_now(tn_trainer *trainer);
/* Whether it is in a run, which has not been left by longjmp. */
bool tn__trainer_runs(const tn_trainer *trainer);
/* What tn_trainer_save writes, into the serializer's archive. */
tn_status tn__trainer_fill(tn_trainer *trainer, const tn_serializer *root);
/* Loads an archive that this library wrote or, unless `own`, Chainer's. */
tn_status tn__trainer_restore(tn_trainer *trainer, tn_archive *archive, const char *path, bool own,
                              const tn_load_opts *opts);

/* ---- meeting.c ---- */
/* At the beginning of a run. */
void tn__meetings_begin(tn_trainer *trainer);
/* Between two iterations: sets `stopped`, where this rank was asked to stop or, with several, any of them. */
tn_status tn__meet_to_stop(tn_trainer *trainer);
/* The elapsed time that triggers go by: the same on all ranks, and so up to a twentieth of a second old. */
double tn__trainer_told_time(const tn_trainer *trainer);

/* ---- interrupts.c ---- */
/* SIGINT and SIGTERM raise a flag of the process from here on, in the thread's own stack for signals. */
typedef struct tn__interrupts tn__interrupts;
tn__interrupts *tn__interrupts_catch(void);
/* Handlers as before. NULL is ignored. */
void tn__interrupts_let(tn__interrupts *interrupts);
bool tn__interrupted(void);

/* Ends of objects that a function holds while it calls the program's: at its end, and by an exception. */
static inline void tn__observation_end(tn_observation **observation) { tn_observation_free(*observation); }
static inline void tn__summary_end(tn_summary **summary) { tn_summary_free(*summary); }
static inline void tn__reporter_end(tn_reporter **reporter) { tn_reporter_free(*reporter); }
static inline void tn__archive_end(tn_archive **archive) { tn_archive_free(*archive); }

/* The status of a function that gives one, or of what it latched. */
static inline tn_status tn__or_latched(tn_status status) { return status != TN_OK ? status : tn_error_code(); }

#endif
