/* SPDX-License-Identifier: MIT */
/* The computation of a reported value as a drawing, made as the value is first reported: later its history is gone. */
#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include <tanso/autograd.h>
#include "io/file.h"
#include "train/ext.h"

#define OPERATION "dump_graph"

extern char **environ;

typedef struct dumping {
    tn__output output;
    char *key, *path;
    int64_t began; /* the iteration that this run goes on from */
    bool done;
} dumping;

/* "cg.png" beside "cg.dot", where there is a program `dot`; it is no error that there is none. */
static void render(const char *path)
{
    const char *dot = strrchr(path, '.'), *slash = strrchr(path, '/');
    int stem = dot && (!slash || dot > slash) ? (int)(dot - path) : (int)strlen(path);
    char *picture = tn__format("%.*s.png", stem, path);
    posix_spawn_file_actions_t actions;
    if (!picture || posix_spawn_file_actions_init(&actions) != 0) {
        tn__free(picture);
        return;
    }
    posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
    char *const arguments[] = {"dot", "-Tpng", "-o", picture, (char *)path, NULL};
    pid_t child;
    int status;
    if (posix_spawnp(&child, "dot", &actions, NULL, arguments, environ) == 0)
        while (waitpid(child, &status, 0) < 0 && errno == EINTR)
            ;
    posix_spawn_file_actions_destroy(&actions);
    tn__free(picture);
}

static tn_status write_graph(const dumping *d, const tn_array *value)
{
    char *temporary;
    tn_status status = tn__file_temporary(OPERATION, d->path, &temporary);
    if (status != TN_OK)
        return status;
    FILE *stream = fopen(temporary, "we");
    status = stream ? tn_graph_dot(value, stream) : tn__fail_errno(OPERATION, "write", d->path, errno);
    if (stream && fclose(stream) != 0 && status == TN_OK)
        status = tn__fail_errno(OPERATION, "write", d->path, errno);
    if (status == TN_OK)
        return tn__file_rename(OPERATION, temporary, d->path);
    tn__file_discard(temporary);
    return status;
}

static void seen(const tn_array *value, void *user)
{
    dumping *d = user;
    if (d->done)
        return;
    d->done = true;
    if (write_graph(d, value) == TN_OK)
        render(d->path);
}

static tn_status initialize(tn_trainer *trainer, void *user)
{
    dumping *d = user;
    tn__free(d->path);
    d->path = tn__output_path(trainer, d->output.file);
    d->began = tn_trainer_iteration(trainer);
    if (!d->path)
        return TN_ERR_MEMORY;
    tn_status status = tn__output_probe(trainer, &d->output, d->path);
    tn_reporter_unwatch(tn_trainer_reporter(trainer), d);
    return status == TN_OK && !d->done ? tn_reporter_watch(tn_trainer_reporter(trainer), d->key, seen, d) : status;
}

static void finalize(tn_trainer *trainer, void *user)
{
    dumping *d = user;
    tn_reporter_unwatch(tn_trainer_reporter(trainer), d);
    if (!d->done && tn_trainer_iteration(trainer) > d->began && !*tn_trainer_error(trainer))
        tn__warn_missing(OPERATION, d->key, tn_trainer_observation(trainer), "there is no graph");
}

static tn_status serialize(const tn_serializer *s, void *user)
{
    return tn_serialize_bool(s, "_done", &((dumping *)user)->done);
}

static void free_dumping(void *user)
{
    dumping *d = user;
    tn__free(d->key);
    tn__free(d->path);
    tn__free(d->output.file);
    tn__free(d);
}

const tn_extension_kind tn__dump_graph_kind = {.name = "dump_graph",
                                               .priority = TN_PRIORITY_READER,
                                               .initialize = initialize,
                                               .finalize = finalize,
                                               .serialize = serialize,
                                               .free = free_dumping};

tn_extension *tn_dump_graph_with(const char *key, const tn_dump_graph_opts *opts)
{
    dumping *d = tn__calloc(1, sizeof *d);
    tn_status status = TN_OK;
    if (d && !key)
        status = tn__fail_null(OPERATION, "a key");
    if (d) {
        d->key = tn__key_option("dump_graph", key, NULL, &status);
        d->output.file = tn__file_option("dump_graph", opts ? opts->file : NULL, "cg.dot", &status);
    }
    return tn__extension_of(&tn__dump_graph_kind, d, status);
}
