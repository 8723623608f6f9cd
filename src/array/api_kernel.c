/* SPDX-License-Identifier: MIT */
/* Making users' kernels from texts. */
#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "array/build_parts.h"
#include "array/user.h"
#include "array/vectorize.h"

/* What a constructor was given. */
typedef struct recipe {
    const char *operation;
    tn__user_kind kind;
    const char *inputs, *outputs;
    const char *map, *reduce, *post, *identity;
    const char *name, *source;
    const tn_kernel_opts *opts;
    tn_scalar_function function;
    const char *neutral; /* a vectorized function's identity */
    const tn__signature *signature;
} recipe;

static bool is_identifier(const char *name)
{
    if (!isalpha((unsigned char)*name) && *name != '_')
        return false;
    while (isalnum((unsigned char)*name) || *name == '_')
        name++;
    return *name == 0;
}

static bool set_name(tn_kernel *kernel, const recipe *r)
{
    if (!is_identifier(r->name) || strlen(r->name) >= sizeof kernel->name)
        return tn__fail(TN_ERR_VALUE, r->operation, "the name \"%s\" is no C identifier of up to %d characters",
                        r->name, TN__USER_NAME - 1),
               false;
    memcpy(kernel->name, r->name, strlen(r->name) + 1);
    return true;
}

/* Copies the texts into memory of the kernel's own. */
static bool set_strings(tn_kernel *kernel, const recipe *r)
{
    const char *texts[] = {r->map,    r->reduce, r->post, r->identity, r->source ? r->source : r->opts->preamble,
                           r->neutral};
    const char *suffix[] = {r->kind == TN__USER_REDUCTION ? " (map)" : "", " (reduce)", " (post)"};
    enum { TEXTS = sizeof texts / sizeof *texts };
    size_t bytes = 3 * (sizeof kernel->name + 16);
    for (int k = 0; k < TEXTS; k++)
        bytes += (texts[k] ? strlen(texts[k]) : 0) + 1;
    char *at = kernel->strings = tn__calloc(1, bytes);
    if (!at)
        return tn__fail_memory(r->operation, bytes), false;
    const char **place[] = {&kernel->part[TN__PART_MAP].text,
                            &kernel->part[TN__PART_COMBINE].text,
                            &kernel->part[TN__PART_POST].text,
                            &kernel->part[TN__PART_COMBINE].identity,
                            &kernel->source,
                            &kernel->identity};
    for (int k = 0; k < TEXTS; k++) {
        *place[k] = strcpy(at, texts[k] ? texts[k] : "");
        at += strlen(at) + 1;
    }
    for (int p = 0; p < TN__USER_PARTS; p++) {
        kernel->part[p].title = strcat(strcpy(at, kernel->name), suffix[p]);
        at += strlen(at) + 1;
    }
    return true;
}

static void set_own(tn__user_param *param, const char *name)
{
    *param = (tn__user_param){.raw = false};
    strcpy(param->name, name);
}

static bool set_accumulator(tn_kernel *kernel, const recipe *r, tn__user_param *param)
{
    const char *type = r->opts->accumulate;
    *param = kernel->part[TN__PART_POST].out[0];
    if (type) {
        *param = (tn__user_param){.letter = type[0] && !type[1] && isupper((unsigned char)type[0]) ? type[0] : 0};
        param->dtype = param->letter ? TN_DTYPE_DEFAULT : tn_dtype_parse(type);
        if (!param->letter && !param->dtype)
            return tn__fail(TN_ERR_VALUE, r->operation,
                            "the accumulator's dtype \"%s\" is neither a capital letter nor a dtype", type),
                   false;
    }
    strcpy(param->name, "a");
    return true;
}

static bool set_parts(tn_kernel *kernel, const recipe *r)
{
    tn__user_part *map = &kernel->part[TN__PART_MAP], *combine = &kernel->part[TN__PART_COMBINE],
                  *post = &kernel->part[TN__PART_POST];
    if (!tn__user_params(r->operation, r->inputs, false, map->in, &map->in_count))
        return false;
    if (r->kind == TN__USER_ELEMENTWISE) {
        combine->identity = NULL;
        if (!tn__user_params(r->operation, r->outputs, true, map->out, &map->out_count))
            return false;
        tn__user_scan(map);
        return true;
    }
    if (!tn__user_params(r->operation, r->outputs, true, post->out, &post->out_count))
        return false;
    if (post->out_count != 1)
        return tn__fail(TN_ERR_VALUE, r->operation, "a reduction has one output, got \"%s\"", r->outputs), false;
    map->is_expression = true;
    map->out_count = post->in_count = 1;
    set_own(&map->out[0], "_mapped");
    set_own(&post->in[0], "a");
    combine->in_count = 2;
    if (!set_accumulator(kernel, r, &combine->in[0]))
        return false;
    combine->in[1] = combine->in[0];
    tn__user_scan(map);
    tn__user_scan(post);
    return true;
}

/* The gradient's own kernel: its text sets g<input> from inputs, outputs and g<output>. */
static bool set_gradient(tn_kernel *kernel, const recipe *r)
{
    const tn__user_part *map = &kernel->part[TN__PART_MAP];
    tn__text inputs = {0}, outputs = {0};
    tn__text_add(&inputs, r->inputs);
    for (int gradient = 0; gradient < 2; gradient++)
        for (int k = 0; k < map->out_count; k++) {
            const tn__user_param *p = &map->out[k];
            char letter[2] = {p->letter, 0};
            tn__text_addf(&inputs, "%s%s %s%s", inputs.length ? ", " : "", p->letter ? letter : tn_dtype_name(p->dtype),
                          gradient ? "g" : "", p->name);
        }
    for (int k = 0; k < map->in_count; k++) {
        const tn__user_param *p = &map->in[k];
        char letter[2] = {p->letter, 0}, name[TN__USER_NAME + 1];
        snprintf(name, sizeof name, "g%s", p->name);
        if (tn__user_mentions(r->opts->gradient, name))
            tn__text_addf(&outputs, "%s%s %s", outputs.length ? ", " : "", p->letter ? letter : tn_dtype_name(p->dtype),
                          name);
    }
    bool done = !inputs.failed && !outputs.failed;
    if (!done)
        tn__fail_memory(r->operation, inputs.length + outputs.length);
    if (done) {
        char name[TN__USER_NAME];
        snprintf(name, sizeof name, "%.*s_gradient", TN__USER_NAME - 10, kernel->name);
        tn_kernel_opts opts = {.preamble = r->opts->preamble};
        kernel->gradient_kernel =
            tn_elementwise_with(inputs.data, outputs.length ? outputs.data : "", r->opts->gradient, name, &opts);
        done = kernel->gradient_kernel->kind != TN__USER_BROKEN;
    }
    tn__free(inputs.data);
    tn__free(outputs.data);
    return done;
}

static bool set_signature(tn_kernel *kernel, const recipe *r)
{
    if (!r->signature)
        return true;
    kernel->signature = tn__alloc(sizeof *r->signature);
    if (!kernel->signature)
        return tn__fail_memory(r->operation, sizeof *r->signature), false;
    *kernel->signature = *r->signature;
    return true;
}

static bool has_all(const recipe *r)
{
    if (r->kind == TN__USER_RAW)
        return r->source;
    bool elementwise = r->inputs && r->outputs && r->map;
    return elementwise && (r->kind == TN__USER_ELEMENTWISE || (r->reduce && r->post && r->identity));
}

static bool fill(tn_kernel *kernel, void *user)
{
    const recipe *r = user;
    if (!has_all(r))
        return tn__fail(TN_ERR_VALUE, r->operation, "a text is NULL: expected strings"), false;
    kernel->kind = r->kind;
    kernel->gradient = r->opts->backward;
    kernel->user = r->opts->user;
    kernel->function = r->function;
    if (!set_name(kernel, r) || !set_strings(kernel, r) || !set_signature(kernel, r))
        return false;
    if (r->kind == TN__USER_RAW)
        return true;
    return set_parts(kernel, r) && (!r->opts->gradient || r->opts->backward || set_gradient(kernel, r));
}

/* All that makes a kernel what it is: lengths keep texts apart. */
static char *key_of(const recipe *r)
{
    const tn_kernel_opts *o = r->opts;
    const char *texts[] = {r->inputs, r->outputs, r->map,      r->reduce,   r->post,      r->identity,
                           r->name,   r->source,  o->preamble, o->gradient, o->accumulate, r->neutral};
    tn__text key = {0};
    tn__text_addf(&key, "%d %jx %jx %jx %d", (int)r->kind, (uintmax_t)(uintptr_t)o->backward,
                  (uintmax_t)(uintptr_t)o->user, (uintmax_t)(uintptr_t)r->function, r->signature != NULL);
    for (size_t k = 0; k < sizeof texts / sizeof *texts; k++)
        if (texts[k])
            tn__text_addf(&key, " %zu:%s", strlen(texts[k]), texts[k]);
        else
            tn__text_add(&key, " -");
    return tn__text_take(&key);
}

static tn_kernel *make(recipe *r)
{
    static const tn_kernel_opts defaults;
    r->opts = r->opts ? r->opts : &defaults;
    if (!r->name)
        r->name = r->kind == TN__USER_RAW ? "" : r->kind == TN__USER_REDUCTION ? "reduction" : "elementwise";
    return tn__kernel_intern(key_of(r), fill, r);
}

tn_kernel *tn_elementwise_with(const char *inputs, const char *outputs, const char *text, const char *name,
                               const tn_kernel_opts *opts)
{
    return make(&(recipe){.operation = "tn_elementwise",
                          .kind = TN__USER_ELEMENTWISE,
                          .inputs = inputs,
                          .outputs = outputs,
                          .map = text,
                          .name = name,
                          .opts = opts});
}

tn_kernel *tn_reduction_with(const char *inputs, const char *output, const char *map, const char *reduce,
                             const char *post, const char *identity, const char *name, const tn_kernel_opts *opts)
{
    return make(&(recipe){.operation = "tn_reduction",
                          .kind = TN__USER_REDUCTION,
                          .inputs = inputs,
                          .outputs = output,
                          .map = map,
                          .reduce = reduce,
                          .post = post,
                          .identity = identity,
                          .name = name,
                          .opts = opts});
}

tn_kernel *tn__kernel_vectorized(const char *inputs, const char *outputs, const char *text, const char *name,
                                 const tn_kernel_opts *opts, tn_scalar_function function, const char *identity,
                                 const tn__signature *signature)
{
    return make(&(recipe){.operation = "tn_vectorize",
                          .kind = TN__USER_ELEMENTWISE,
                          .inputs = inputs,
                          .outputs = outputs,
                          .map = text,
                          .name = name,
                          .opts = opts,
                          .function = function,
                          .neutral = identity,
                          .signature = signature});
}

tn_kernel *tn_raw_kernel(const char *source, const char *name)
{
    return make(&(recipe){.operation = "tn_raw_kernel", .kind = TN__USER_RAW, .source = source, .name = name});
}

tn_status tn_kernel_status(const tn_kernel *kernel)
{
    if (!kernel)
        return TN_ERR_VALUE;
    return kernel->kind == TN__USER_BROKEN ? tn__error_status(kernel->error) : TN_OK;
}

const char *tn_kernel_name(const tn_kernel *kernel) { return kernel ? kernel->name : ""; }
