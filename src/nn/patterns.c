/* SPDX-License-Identifier: MIT */
/* Patterns of the shell for paths of parameters, by which some of a layer's are frozen, loaded otherwise, or updated
 * otherwise. One that matches none of them is a slip of the pen, and told with the names there are. */
#include "nn/layer.h"

#include <fnmatch.h>
#include <string.h>

#define MOST_NAMED 8 /* in a message */

bool tn__path_matches(const char *pattern, const char *path)
{
    return fnmatch(pattern, path, 0) == 0 ||
           (strncmp(pattern, "*.", 2) == 0 && fnmatch(pattern + 2, path, 0) == 0);
}

typedef struct seeking {
    const char *pattern;
    bool persistent, found;
    int count;
    tn__text names;
} seeking;

static tn_status seek(tn_layer *layer, tn__slot *slot, const char *path, void *user)
{
    (void)layer;
    seeking *s = user;
    if (slot->persistent && !s->persistent)
        return TN_OK;
    s->found = s->found || tn__path_matches(s->pattern, path);
    if (s->count < MOST_NAMED)
        tn__text_addf(&s->names, "%s%s", s->count ? ", " : "", path);
    s->count++;
    return TN_OK;
}

tn_status tn__pattern_check(const char *operation, const char *option, const char *pattern, const tn_layer *layer,
                            bool persistent)
{
    seeking s = {.pattern = pattern, .persistent = persistent};
    tn_status status = tn__visit_slots((tn_layer *)layer, "", seek, &s); /* which changes nothing */
    char *names = s.count ? tn__text_take(&s.names) : NULL;
    if (status == TN_OK && !s.found)
        status = tn__fail(TN_ERR_NAME, operation, "no parameter of the layer matches '%s'%s: there %s %s%s", pattern,
                          option, s.count == 1 ? "is" : "are", names ? names : "none",
                          s.count > MOST_NAMED ? ", ..." : "");
    tn__free(names);
    return status;
}

/* ---- several, with spaces between ---- */

/* A copy to be cut into words, with dots for slashes; NULL: there is none, or no memory. */
static char *dotted(const char *operation, const char *patterns, tn_status *status)
{
    char *copy = patterns ? tn__strdup(patterns) : NULL;
    if (patterns && !copy)
        *status = tn__fail_memory(operation, strlen(patterns) + 1);
    for (char *at = copy; at && (at = strchr(at, '/'));)
        *at = '.';
    return copy;
}

bool tn__patterns_match(const char *operation, const char *patterns, const char *path, tn_status *status)
{
    char *copy = dotted(operation, patterns, status), *rest;
    bool found = false;
    for (char *word = copy ? strtok_r(copy, " ", &rest) : NULL; word && !found; word = strtok_r(NULL, " ", &rest))
        found = tn__path_matches(word, path);
    tn__free(copy);
    return found;
}

tn_status tn__patterns_check(const char *operation, const char *option, const char *patterns, const tn_layer *layer)
{
    tn_status status = TN_OK;
    char *copy = dotted(operation, patterns, &status), *rest;
    for (char *word = copy ? strtok_r(copy, " ", &rest) : NULL; word && status == TN_OK;
         word = strtok_r(NULL, " ", &rest))
        status = tn__pattern_check(operation, option, word, layer, true);
    tn__free(copy);
    return status;
}

/* ---- of a load into several layers ---- */

enum { NOTED = 64 };

static const char *patterns_of(const tn_load_opts *opts, int which) { return which ? opts->ignore : opts->transpose; }

tn_status tn__load_patterns_note(const tn_load_opts *opts, const tn_layer *layer, unsigned long long *met)
{
    tn_status status = TN_OK;
    for (int which = 0; which < TN__LOAD_PATTERNS && status == TN_OK; which++) {
        char *copy = dotted("trainer_load", patterns_of(opts, which), &status), *rest;
        int at = 0;
        for (char *word = copy ? strtok_r(copy, " ", &rest) : NULL; word && at < NOTED && status == TN_OK;
             word = strtok_r(NULL, " ", &rest), at++) {
            seeking s = {.pattern = word, .persistent = true, .count = MOST_NAMED}; /* no names are asked for */
            status = tn__visit_slots((tn_layer *)layer, "", seek, &s);
            met[which] |= (unsigned long long)s.found << at;
        }
        tn__free(copy);
    }
    return status;
}

tn_status tn__load_patterns_check(const char *operation, const tn_load_opts *opts, const unsigned long long *met)
{
    tn_status status = TN_OK;
    for (int which = 0; which < TN__LOAD_PATTERNS && status == TN_OK; which++) {
        char *copy = dotted(operation, patterns_of(opts, which), &status), *rest;
        int at = 0;
        for (char *word = copy ? strtok_r(copy, " ", &rest) : NULL; word && at < NOTED && status == TN_OK;
             word = strtok_r(NULL, " ", &rest), at++)
            if (!(met[which] >> at & 1))
                status = tn__fail(TN_ERR_NAME, operation, "no parameter of any layer matches '%s' of .%s", word,
                                  which ? "ignore" : "transpose");
        tn__free(copy);
    }
    return status;
}
