/* SPDX-License-Identifier: MIT */
/* Definitions of users' kernels: reading parameter lists, what texts mention, and the table of all definitions. */
#include "array/user.h"

#include <ctype.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "core/hash.h"
#include "core/memory.h"

/* ---- words ---- */

static bool starts_word(char c) { return isalpha((unsigned char)c) || c == '_'; }
static bool goes_on(char c) { return isalnum((unsigned char)c) || c == '_'; }

/* The next identifier at or behind `at`: its begin, with its length; NULL at the end. Strings and comments are not told
 * apart: a word too many costs an unused input. */
static const char *next_word(const char *at, size_t *length)
{
    while (*at && !starts_word(*at))
        for (bool number = isalnum((unsigned char)*at); *at && (at++, number && goes_on(*at));)
            ;
    *length = 0;
    while (goes_on(at[*length]))
        ++*length;
    return *length ? at : NULL;
}

bool tn__user_mentions(const char *text, const char *word)
{
    size_t length, wanted = strlen(word);
    for (const char *at = text; (at = next_word(at, &length)); at += length)
        if (length == wanted && memcmp(at, word, length) == 0)
            return true;
    return false;
}

/* ---- parameter lists ---- */

static const char reserved[][8] = {"i", "size", "raw", "const"};

static bool bad(const char *operation, const char *list, const char *what, const char *at)
{
    tn__fail(TN_ERR_VALUE, operation,
             "parameters \"%s\": %s at character %d; expected a list such as \"T x, raw float32 y\"", list, what,
             (int)(at - list));
    return false;
}

static bool read_type(const char *operation, const char *list, const char *at, size_t length, tn__user_param *param)
{
    char name[16];
    if (length == 1 && isupper((unsigned char)*at)) {
        param->letter = *at;
        return true;
    }
    if (length < sizeof name) {
        memcpy(name, at, length);
        name[length] = 0;
        param->dtype = tn_dtype_parse(name);
    }
    return param->dtype || bad(operation, list, "neither a capital letter nor a dtype", at);
}

static bool read_param(const char *operation, const char *list, const char **at, bool outputs, tn__user_param *param)
{
    size_t length;
    *param = (tn__user_param){.name = ""};
    for (int word = 0; word < 2;) {
        *at += strspn(*at, " \t\n");
        if (!starts_word(**at))
            return bad(operation, list, word ? "no name" : "no type", *at);
        for (length = 0; goes_on((*at)[length]);)
            length++;
        if (word == 0 && !param->raw && length == 3 && memcmp(*at, "raw", 3) == 0) {
            param->raw = true;
        } else if (word++ == 0) {
            if (!read_type(operation, list, *at, length, param))
                return false;
        } else if (length >= sizeof param->name) {
            return bad(operation, list, "a name that is too long", *at);
        } else {
            memcpy(param->name, *at, length);
        }
        *at += length;
    }
    *at += strspn(*at, " \t\n");
    for (size_t k = 0; k < sizeof reserved / sizeof *reserved; k++)
        if (strcmp(param->name, reserved[k]) == 0 || param->name[0] == '_')
            return bad(operation, list, "a name with a meaning of its own (i, size, raw, const, _...)", *at);
    if (outputs && param->raw)
        return bad(operation, list, "an output that is raw: write it by a raw kernel (tn_raw_kernel)", *at);
    return true;
}

bool tn__user_params(const char *operation, const char *list, bool outputs, tn__user_param *param, int *count)
{
    const char *at = list;
    *count = 0;
    at += strspn(at, " \t\n");
    while (*at) {
        if (*count == TN__USER_PARAMS)
            return bad(operation, list, "more than 16 parameters", at);
        if (!read_param(operation, list, &at, outputs, &param[*count]))
            return false;
        for (int k = 0; k < *count; k++)
            if (strcmp(param[k].name, param[*count].name) == 0)
                return bad(operation, list, "a name that is there already", at);
        ++*count;
        if (*at && *at++ != ',')
            return bad(operation, list, "no comma", at - 1);
        if (at[-1] == ',' && at[strspn(at, " \t\n")] == 0)
            return bad(operation, list, "nothing behind the comma", at);
    }
    return !outputs || *count > 0 || bad(operation, list, "no output", at);
}

void tn__user_scan(tn__user_part *part)
{
    static const struct {
        const char *word;
        unsigned extra;
    } words[] = {{"i", TN__USER_I},         {"size", TN__USER_SIZE},   {"_ind", TN__USER_IND},
                 {"_shape", TN__USER_SHAPE}, {"_ndim", TN__USER_SHAPE}, {"_count", TN__USER_COUNT}};
    for (size_t k = 0; k < sizeof words / sizeof *words; k++)
        part->extras |= tn__user_mentions(part->text, words[k].word) ? words[k].extra : 0;
    for (int k = 0; k < part->in_count; k++) {
        if (!part->in[k].raw)
            continue;
        char word[TN__USER_NAME + 8];
        snprintf(word, sizeof word, "%s_size", part->in[k].name);
        part->sizes |= (uint32_t)tn__user_mentions(part->text, word) << k;
        snprintf(word, sizeof word, "%s_shape", part->in[k].name);
        bool shape = tn__user_mentions(part->text, word);
        snprintf(word, sizeof word, "%s_ndim", part->in[k].name);
        part->shapes |= (uint32_t)(shape || tn__user_mentions(part->text, word)) << k;
    }
    part->plain = part->in_count > 0 && !part->extras && part->in[0].letter;
    for (int k = 0; k < part->in_count; k++)
        part->plain = part->plain && !part->in[k].raw && part->in[k].letter == part->in[0].letter;
    for (int k = 0; k < part->out_count; k++)
        part->plain = part->plain && part->out[k].letter == part->in[0].letter;
}

/* ---- the table ---- */

#define BUCKETS 256

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static tn_kernel *bucket[BUCKETS];

/* What a definition without memory is. */
static tn_kernel no_memory = {.kind = TN__USER_BROKEN, .name = "kernel"};

static tn_kernel *without_memory(char *key)
{
    tn__free(key);
    tn__fail_memory("kernel", sizeof(tn_kernel));
    no_memory.error = tn__error_no_memory(); /* every thread stores the same */
    return &no_memory;
}

static tn_kernel *find(uint64_t hash, const char *key)
{
    tn_kernel *kernel = bucket[hash % BUCKETS];
    while (kernel && (kernel->hash != hash || strcmp(kernel->key, key) != 0))
        kernel = kernel->chain;
    return kernel;
}

/* Frees a definition; its gradient's is in the table itself. */
static void free_kernel(tn_kernel *kernel)
{
    for (int p = 0; p < TN__USER_PARTS; p++)
        for (tn__user *user = kernel->part[p].instances, *next; user; user = next) {
            next = user->next;
            tn__free(user->text);
            tn__free(user);
        }
    if (kernel->error)
        tn__error_release(kernel->error);
    tn__free(kernel->key);
    tn__free(kernel->strings);
    tn__free(kernel->signature);
    tn__free(kernel);
}

tn_kernel *tn__kernel_intern(char *key, bool (*fill)(tn_kernel *, void *), void *user)
{
    if (!key)
        return without_memory(NULL);
    uint64_t hash = tn__hash(key, strlen(key), 0);
    pthread_mutex_lock(&lock);
    tn_kernel *found = find(hash, key);
    pthread_mutex_unlock(&lock);
    if (found) {
        tn__free(key);
        if (found->kind == TN__USER_BROKEN)
            tn__error_raise(found->error);
        return found;
    }
    tn_kernel *fresh = tn__calloc(1, sizeof *fresh);
    if (!fresh)
        return without_memory(key);
    fresh->hash = hash;
    fresh->key = key;
    if (!fill(fresh, user)) {
        tn__error *error = tn__error_last();
        if (tn__error_status(error) == TN_ERR_MEMORY) {
            free_kernel(fresh);
            return without_memory(NULL);
        }
        fresh->kind = TN__USER_BROKEN;
        fresh->error = tn__error_retain(error);
    }
    pthread_mutex_lock(&lock);
    if (!(found = find(hash, key))) { /* else another thread was first */
        fresh->chain = bucket[hash % BUCKETS];
        bucket[hash % BUCKETS] = found = fresh;
    }
    pthread_mutex_unlock(&lock);
    if (found != fresh)
        free_kernel(fresh);
    return found;
}

static bool fail(tn_kernel *kernel, void *user)
{
    (void)kernel, (void)user;
    return false;
}

tn_kernel *tn__kernel_broken(void)
{
    return tn__kernel_intern(tn__format("broken: %s", tn__error_message(tn__error_last())), fail, NULL);
}

/* Behind the plans, which the engine frees without an order. */
__attribute__((destructor(TN__EXIT_DEVICE))) static void free_all(void)
{
    for (int b = 0; b < BUCKETS; b++)
        for (tn_kernel *kernel = bucket[b], *next; kernel; kernel = next) {
            next = kernel->chain;
            free_kernel(kernel);
        }
    memset(bucket, 0, sizeof bucket);
}
