/* SPDX-License-Identifier: MIT */
/* The table of operations, and binding a call's arguments to a signature as Python does. */
#include "replay.h"

#include <search.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- the table ---- */

static const row *table[4096];
static size_t table_count;
static bool sorted;

void replay_add(const row *rows, size_t count)
{
    for (size_t k = 0; k < count && table_count < sizeof table / sizeof *table; k++)
        table[table_count++] = &rows[k];
    sorted = false;
}

static int by_name(const void *a, const void *b) { return strcmp((*(row *const *)a)->name, (*(row *const *)b)->name); }

const row *replay_find(const char *name)
{
    if (!sorted)
        qsort(table, table_count, sizeof *table, by_name);
    sorted = true;
    static const char *const prefixes[] = {"numpy.", "np.", "ndarray."};
    for (size_t k = 0; k <= sizeof prefixes / sizeof *prefixes; k++) {
        row key = {.name = name};
        const row *wanted = &key, **found = bsearch(&wanted, table, table_count, sizeof *table, by_name);
        if (found)
            return *found;
        if (k < sizeof prefixes / sizeof *prefixes && !strncmp(name, prefixes[k], strlen(prefixes[k])))
            name += strlen(prefixes[k]);
    }
    return NULL;
}

/* ---- signatures ---- */

/* Position i's name in the signature, as its start and length; length 0 behind the last. "|" is no name. */
static const char *name_at(const char *signature, int i, size_t *length)
{
    const char *at = signature;
    for (;; i--) {
        at += strspn(at, " |");
        *length = strcspn(at, " ");
        if (i == 0 || *length == 0)
            return at;
        at += *length;
    }
}

static int slot_of(const char *signature, const char *keyword)
{
    size_t length;
    for (int i = 0;; i++) {
        const char *name = name_at(signature, i, &length);
        if (length == 0)
            return -1;
        if (length == strlen(keyword) && !strncmp(name, keyword, length))
            return i;
    }
}

static bool bind_positional(call *c, const json_t *args, const char *folder, tn_device device)
{
    int slot = 0;
    const char *keywords = strchr(c->row->signature, '|');
    for (size_t i = 0; i < json_array_size(args); i++) {
        const value *v = value_read(c, json_array_get(args, i), folder, device);
        if (!v)
            return false;
        size_t length;
        const char *name = name_at(c->row->signature, slot, &length);
        if (*name == '*' && c->rest_count < MAX_ARGUMENTS) {
            c->rest[c->rest_count++] = v;
        } else if (length == 0 || slot >= MAX_SLOTS || *name == '*' || (keywords && name > keywords)) {
            refuse(c, "%zu positional arguments; the signature is (%s)", json_array_size(args), c->row->signature);
            return false;
        } else {
            c->slot[slot++] = v;
        }
    }
    return true;
}

bool bind_arguments(call *c, const json_t *args, const json_t *kwargs, const char *folder, tn_device device)
{
    if (!bind_positional(c, args, folder, device))
        return false;
    const char *keyword;
    json_t *content;
    json_object_foreach((json_t *)kwargs, keyword, content) {
        int slot = slot_of(c->row->signature, keyword);
        if (slot < 0 || slot >= MAX_SLOTS) {
            refuse(c, "no keyword '%s'; the signature is (%s)", keyword, c->row->signature);
            return false;
        }
        if (c->slot[slot]) {
            refuse(c, "'%s' is given twice", keyword);
            return false;
        }
        c->slot[slot] = value_read(c, content, folder, device);
        if (!c->slot[slot])
            return false;
        c->by_keyword[slot] = true;
        /* NumPy 2.3: an array, never a number */
        if (c->slot[slot]->kind == ELLIPSIS && !strcmp(keyword, "out"))
            c->slot[slot] = NULL;
    }
    return true;
}
