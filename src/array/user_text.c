/* SPDX-License-Identifier: MIT */
/* Instances of users' kernels: a part's text as functions of the kernel dialect, for the dtypes of a call. */
#include "array/user.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "core/hash.h"
#include "core/memory.h"

/* C's own bool, whatever is assigned to it or returned as it, is 0 or 1: an array's bytes are to be. */
const char *tn__user_ctype(tn_dtype dtype)
{
    return dtype == TN_BOOL ? "bool" : tn__dtypes[tn__dtypes[dtype].compute].ctype;
}

/* ---- the text ---- */

/* The capital letters as types. */
static void add_letters(tn__text *text, const tn__user *user)
{
    const tn__user_part *part = user->part;
    bool done[26] = {false};
    for (int k = 0; k < part->in_count + part->out_count; k++) {
        bool output = k >= part->in_count;
        char letter = output ? part->out[k - part->in_count].letter : part->in[k].letter;
        if (!letter || done[letter - 'A'])
            continue;
        done[letter - 'A'] = true;
        tn_dtype dtype = output ? user->out[k - part->in_count] : user->in[k];
        tn__text_addf(text, "    typedef %s %c;\n", tn__user_ctype(dtype), letter);
    }
}

static void add_numbers(tn__text *text, const char *owner, const char *name, int count, const char *source)
{
    tn__text_addf(text, "    const tn_i64 %s%s[%d] = {", owner, name, count + 1);
    for (int d = 0; d < count; d++)
        tn__text_addf(text, "%s%s%d, ", owner, source, d);
    tn__text_add(text, "0};\n");
}

static void add_parameter(tn__text *text, const char *type, const char *owner, const char *name, int d)
{
    tn__text_addf(text, "%s%s %s%s", text->length ? ", " : "", type, owner, name);
    if (d >= 0)
        tn__text_addf(text, "%d", d);
}

/* The extras as parameters, in the order in which tn__user_apply gives them, and what the text knows them as. */
static void add_extras(tn__text *params, tn__text *code, const tn__user *user)
{
    const tn__user_part *part = user->part;
    if (part->extras & TN__USER_I)
        add_parameter(params, "tn_i64", "", "i", -1);
    if (part->extras & TN__USER_SIZE)
        add_parameter(params, "tn_i64", "", "size", -1);
    if (part->extras & TN__USER_COUNT)
        add_parameter(params, "tn_i64", "", "_count", -1);
    if (part->extras & TN__USER_IND) {
        for (int d = 0; d < user->ndim; d++)
            add_parameter(params, "tn_i64", "", "_ind", d);
        add_numbers(code, "", "_ind", user->ndim, "_ind");
    }
    if (part->extras & TN__USER_SHAPE) {
        for (int d = 0; d < user->ndim; d++)
            add_parameter(params, "tn_i64", "", "_shape", d);
        add_numbers(code, "", "_shape", user->ndim, "_shape");
    }
    if (part->extras & (TN__USER_SHAPE | TN__USER_IND))
        tn__text_addf(code, "    const int _ndim = %d;\n", user->ndim);
    for (int k = 0; k < part->in_count; k++) {
        const char *name = part->in[k].name;
        if (part->sizes >> k & 1)
            add_parameter(params, "tn_i64", name, "_size", -1);
        if (!(part->shapes >> k & 1))
            continue;
        for (int d = 0; d < user->raw_ndim[k]; d++)
            add_parameter(params, "tn_i64", name, "_shape", d);
        add_numbers(code, name, "_shape", user->raw_ndim[k], "_shape");
        tn__text_addf(code, "    const int %s_ndim = %d;\n", name, user->raw_ndim[k]);
    }
}

/* A user's lines, under their own numbers. */
static void add_lines(tn__text *code, const tn__user_part *part, const char *before, const char *lines,
                      const char *after)
{
    tn__text_addf(code, "%s\n#line 1 \"%s\"\n%s\n#line 1 \"kernels\"\n%s", before, part->title, lines, after);
}

static void add_statements(tn__text *params, tn__text *code, const tn__user *user)
{
    const tn__user_part *part = user->part;
    for (int k = 0; k < part->in_count; k++) {
        if (part->in[k].raw)
            tn__text_addf(params, "%sconst %s *%s", params->length ? ", " : "", tn__user_ctype(user->in[k]),
                          part->in[k].name);
        else
            add_parameter(params, tn__user_ctype(user->in[k]), "", part->in[k].name, -1);
    }
    add_letters(code, user);
    add_extras(params, code, user);
    for (int k = 0; k < part->out_count; k++)
        tn__text_addf(code, "    %s %s = {0};\n", tn__user_ctype(user->out[k]), part->out[k].name);
    if (part->is_expression) {
        tn__text_addf(code, "    %s = (", part->out[0].name);
        add_lines(code, part, "", part->text, "    );\n");
    } else {
        add_lines(code, part, "    {", part->text, "    ;}\n");
    }
}

/* A name that is the same in every process: the user's, and a hash of all that the function is. */
static void name_function(tn__user *user, const char *params, const char *code)
{
    const char *preamble = user->kernel->source;
    uint64_t hash = tn__hash(params, strlen(params), 0);
    hash = tn__hash(code, strlen(code), hash);
    hash = tn__hash(preamble, strlen(preamble), hash);
    for (int k = 0; k < user->out_count; k++)
        hash = tn__hash_mix(hash, (uint64_t)user->out[k]);
    snprintf(user->function, sizeof user->function, "%s_%016llx", user->kernel->name, (unsigned long long)hash);
}

static void add_function(tn__text *text, const tn__user *user, const char *params, const char *code)
{
    const char *name = user->function;
    tn__text_add(text, "typedef struct {");
    for (int k = 0; k < user->out_count; k++)
        tn__text_addf(text, " %s o%d;", tn__user_ctype(user->out[k]), k);
    tn__text_addf(text, " } %s_results;\nTN_HOT %s_results %s(%s)\n{\n%s    %s_results tn_results;\n", name, name, name,
                  *params ? params : "void", code, name);
    for (int k = 0; k < user->out_count; k++)
        tn__text_addf(text, "    tn_results.o%d = %s;\n", k, user->part->out[k].name);
    tn__text_add(text, "    return tn_results;\n}\n");
}

static void add_combination(tn__text *text, const tn__user *user, const char *code, const char *identity)
{
    const char *name = user->function, *type = tn__user_ctype(user->out[0]);
    tn__text_addf(text, "TN_HOT %s %s(%s a, %s b)\n{\n%s}\n", type, name, type, type, code);
    tn__text_addf(text, "TN_HOT %s %s_identity(void)\n{\n%s}\n", type, name, identity);
}

static bool make_text(tn__user *user)
{
    const tn__user_part *part = user->part;
    tn__text params = {0}, code = {0}, identity = {0}, text = {0};
    if (part->identity) {
        add_letters(&code, user);
        add_lines(&code, part, "    return (", part->text, "    );\n");
        add_letters(&identity, user);
        add_lines(&identity, part, "    return (", part->identity, "    );\n");
        tn__text_add(&params, part->identity);
    } else {
        add_statements(&params, &code, user);
    }
    tn__text_add(&params, "");
    bool whole = !params.failed && !code.failed && !identity.failed;
    if (whole) {
        name_function(user, params.data ? params.data : "", code.data);
        if (part->identity)
            add_combination(&text, user, code.data, identity.data);
        else
            add_function(&text, user, params.data ? params.data : "", code.data);
    }
    tn__free(params.data);
    tn__free(code.data);
    tn__free(identity.data);
    text.failed |= !whole;
    user->text = tn__text_take(&text);
    return user->text != NULL;
}

/* ---- the instances of a part ---- */

static bool same(const tn__user *a, const tn__user *b)
{
    return a->in_count == b->in_count && a->ndim == b->ndim && a->raw == b->raw &&
           memcmp(a->in, b->in, sizeof a->in) == 0 && memcmp(a->out, b->out, sizeof a->out) == 0 &&
           memcmp(a->raw_ndim, b->raw_ndim, sizeof a->raw_ndim) == 0;
}

static const tn__user *find(const tn__user_part *part, const tn__user *wanted)
{
    const tn__user *user = atomic_load_explicit(&part->instances, memory_order_acquire);
    while (user && !same(user, wanted))
        user = user->next;
    return user;
}

const tn__user *tn__user_instance(const tn_kernel *kernel, int which, const tn__user *wanted)
{
    tn__user_part *part = (tn__user_part *)&kernel->part[which]; /* only its list of instances changes */
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    static uint32_t last;
    const tn__user *found = find(part, wanted);
    if (found)
        return found;
    tn__user *fresh = tn__alloc(sizeof *fresh);
    if (fresh) {
        *fresh = *wanted;
        fresh->kernel = kernel;
        fresh->part = part;
        fresh->text = NULL;
    }
    if (!fresh || !make_text(fresh)) {
        tn__free(fresh);
        tn__fail_memory(kernel->name, sizeof *fresh);
        return NULL;
    }
    pthread_mutex_lock(&lock);
    if (!(found = find(part, wanted))) {
        fresh->id = ++last;
        fresh->next = atomic_load(&part->instances);
        atomic_store_explicit(&part->instances, fresh, memory_order_release);
        found = fresh;
        fresh = NULL;
    }
    pthread_mutex_unlock(&lock);
    if (fresh) {
        tn__free(fresh->text);
        tn__free(fresh);
    }
    return found;
}

void tn__source_listing(const char *title, const char *lines, tn__text *text)
{
    tn__text_addf(text, "\n%s:", title);
    for (int number = 1; *lines; number++) {
        int length = (int)strcspn(lines, "\n");
        tn__text_addf(text, "\n%6d | %.*s", number, length, lines);
        lines += length + (lines[length] == '\n');
    }
}

void tn__user_listing(const tn__user *user, tn__text *text)
{
    tn__source_listing(user->part->title, user->part->text, text);
    if (user->part->identity)
        tn__source_listing("identity", user->part->identity, text);
    if (*user->kernel->source)
        tn__source_listing("preamble", user->kernel->source, text);
}
