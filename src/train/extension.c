/* SPDX-License-Identifier: MIT */
/* The life of extensions, and plain functions as extensions. */
#include "array/guard.h"
#include "train/parts.h"

static tn_extension memory_extension = {.is_static = true};

static tn__object_kind objects = TN__OBJECT_KIND(tn_extension, "extension");

static void free_user(const tn_extension_kind *kind, void *user)
{
    if (kind && kind->free)
        kind->free(user);
}

tn_extension *tn__extension_error(void)
{
    tn_extension *extension = tn__object_new(&objects);
    if (!extension)
        return &memory_extension;
    extension->error = tn__error_retain(tn__error_last());
    return extension;
}

tn_extension *tn_extension_new(const tn_extension_kind *kind, void *user)
{
    if (!kind || !kind->name || !*kind->name) {
        tn__fail(TN_ERR_VALUE, "extension_new", "expected a kind of extension with a name, got %s",
                 kind ? "none" : "NULL");
        free_user(kind, user);
        return tn__extension_error();
    }
    tn_extension *extension = tn__object_new(&objects);
    if (!extension) {
        tn__fail_memory("extension_new", sizeof *extension);
        free_user(kind, user);
        return &memory_extension;
    }
    extension->kind = kind;
    extension->user = user;
    return extension;
}

void tn_extension_free(tn_extension *extension)
{
    if (!extension || extension->is_static || !tn__object_may_go(&objects, &extension->object) ||
        tn__at_work(extension, "extension"))
        return;
    free_user(extension->kind, extension->user);
    tn__error_release(extension->error);
    tn__free(extension->name);
    tn__object_end(&objects, &extension->object);
}

TN__PART_FUNCTIONS(extension)

tn_status tn_extension_status(const tn_extension *extension)
{
    if (!extension || extension->is_static)
        return extension ? TN_ERR_MEMORY : TN_ERR_VALUE;
    return extension->error ? tn__error_status(extension->error) : TN_OK;
}

const char *tn_extension_name(const tn_extension *extension)
{
    if (!extension)
        return "";
    return extension->name ? extension->name : extension->kind ? extension->kind->name : "";
}

void *tn_extension_user(const tn_extension *extension) { return extension ? extension->user : NULL; }

const tn_extension_kind *tn_extension_kind_of(const tn_extension *extension)
{
    return extension ? extension->kind : NULL;
}

tn_status tn_extension_call(tn_extension *extension, tn_trainer *trainer)
{
    if (!extension)
        return tn__fail_null("extension_call", "an extension");
    if (extension->is_static)
        return tn__fail_memory("extension", sizeof *extension);
    if (extension->error)
        return tn__error_raise(extension->error);
    if (!extension->kind->call)
        return TN_OK;
    if (extension->quiet && extension->object.owner) /* who owns it sees to it that it is not freed meanwhile */
        return tn__or_latched(extension->kind->call(trainer, extension->user));
    TN__GUARD_OF("extension_call", extension);
    return tn__or_latched(extension->kind->call(trainer, extension->user));
}

tn_extension *tn__extension_quiet(tn_extension *extension)
{
    if (!extension->is_static)
        extension->quiet = true;
    return extension;
}

/* ---- plain functions ---- */

typedef struct plain {
    tn_status (*function)(tn_trainer *trainer, void *user);
    void *user;
} plain;

static tn_status plain_call(tn_trainer *trainer, void *user)
{
    plain *p = user;
    return p->function(trainer, p->user);
}

static void plain_free(void *user) { tn__free(user); }

static const tn_extension_kind plain_kind = {
    .name = "function", .priority = TN_PRIORITY_READER, .call = plain_call, .free = plain_free};

static tn_extension *plain_new(tn_status (*function)(tn_trainer *trainer, void *user), void *user)
{
    plain *p = function ? tn__alloc(sizeof *p) : NULL;
    if (!p) {
        if (function)
            tn__fail_memory("extend_function", sizeof *p);
        else
            tn__fail_null("extend_function", "a function");
        return tn__extension_error();
    }
    *p = (plain){function, user};
    return tn_extension_new(&plain_kind, p);
}

tn_status tn_extend_function_with(tn_trainer *trainer, tn_status (*function)(tn_trainer *trainer, void *user),
                                  void *user, const tn_extend_opts *opts)
{
    return tn_extend_with(trainer, plain_new(function, user), opts);
}
