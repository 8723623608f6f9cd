/* SPDX-License-Identifier: MIT */
/* Reading words with settings, see settings.h. */
#include "train/settings.h"

#include <math.h>
#include <string.h>
#include "core/error.h"
#include "core/memory.h"
#include "core/number.h"

#define OPERATION "train"

static void fail(tn__settings *s, tn_status status)
{
    if (s->status == TN_OK)
        s->status = status;
}

static void add(tn__settings *s, char *piece)
{
    if (s->count == TN__SETTINGS_MOST) {
        fail(s, tn__fail(TN_ERR_VALUE, OPERATION, "%s has more than %d settings", s->owner, TN__SETTINGS_MOST));
        return;
    }
    char *equals = strchr(piece, '=');
    if (equals)
        *equals = '\0';
    tn__setting made = {equals ? piece : NULL, equals ? equals + 1 : piece, false};
    for (int i = 0; i < s->count && made.name; i++)
        if (s->items[i].name && strcmp(s->items[i].name, made.name) == 0)
            fail(s, tn__fail(TN_ERR_VALUE, OPERATION, "%s: %s is given twice", s->owner, made.name));
    if (!*made.value)
        fail(s, tn__fail(TN_ERR_VALUE, OPERATION, "%s: expected values and name=value with commas between them, and "
                         "%s%s is empty", s->owner, made.name ? "the value of " : "one of them",
                         made.name ? made.name : ""));
    s->items[s->count++] = made;
}

void tn__settings_read(tn__settings *s, const char *owner, const char *text)
{
    *s = (tn__settings){.owner = owner};
    if (!text)
        return;
    s->text = tn__strdup(text);
    if (!s->text) {
        fail(s, tn__fail_memory(OPERATION, strlen(text)));
        return;
    }
    for (char *piece = s->text, *end; piece; piece = end) {
        end = strchr(piece, ',');
        if (end)
            *end++ = '\0';
        add(s, piece);
    }
}

void tn__settings_free(tn__settings *s)
{
    tn__free(s->text);
    *s = (tn__settings){0};
}

const char *tn__settings_text(tn__settings *s, const char *name, const char *absent)
{
    if (s->known_count < TN__SETTINGS_MOST)
        s->known[s->known_count++] = name;
    for (int i = 0; i < s->count; i++)
        if (s->items[i].name && strcmp(s->items[i].name, name) == 0) {
            s->items[i].used = true;
            return s->items[i].value;
        }
    return absent;
}

double tn__settings_number(tn__settings *s, const char *name, double absent, double least)
{
    const char *text = tn__settings_text(s, name, NULL);
    if (!text)
        return absent;
    char *end;
    double value = tn__read_double(text, &end);
    if (end != text && !*end && isfinite(value) && value >= least)
        return value;
    if (isfinite(least))
        fail(s, tn__fail(TN_ERR_VALUE, OPERATION, "%s: %s takes a number of %g or more, not '%s'", s->owner, name,
                         least, text));
    else
        fail(s, tn__fail(TN_ERR_VALUE, OPERATION, "%s: %s takes a number, not '%s'", s->owner, name, text));
    return absent;
}

int64_t tn__settings_count(tn__settings *s, const char *name, int64_t absent, int64_t least)
{
    double value = tn__settings_number(s, name, (double)absent, (double)least);
    if (value == floor(value) && value <= INT32_MAX)
        return (int64_t)value;
    fail(s, tn__fail(TN_ERR_VALUE, OPERATION, "%s: %s takes a whole number, not %g", s->owner, name, value));
    return absent;
}

static tn_trigger *by_iterations(double count) { return tn_every(count, TN_ITERATION); }
static tn_trigger *by_epochs(double count) { return tn_every(count, TN_EPOCH); }

/* Latches its error in the words that a user knows. */
static tn_trigger *make_trigger(const tn__settings *s, const char *name, const char *text)
{
    static const struct {
        const char *unit;
        tn_trigger *(*make)(double count);
    } rows[] = {{"it", by_iterations}, {"ep", by_epochs}, {"s", tn_every_seconds}};
    char *unit;
    double count = tn__read_double(text, &unit);
    for (size_t i = 0; unit != text && i < sizeof rows / sizeof *rows; i++)
        if (strcmp(unit, rows[i].unit) == 0)
            return rows[i].make(count);
    tn__fail(TN_ERR_VALUE, OPERATION,
             "%s: %s takes a number of iterations, epochs or seconds, as 500it, 2ep or 30s, not '%s'", s->owner, name,
             text);
    return NULL;
}

tn_trigger *tn__settings_trigger(tn__settings *s, const char *name, const char *absent)
{
    const char *text = tn__settings_text(s, name, absent);
    if (!text)
        return NULL;
    tn_trigger *trigger = make_trigger(s, name, text);
    if (trigger && tn_trigger_status(trigger) == TN_OK)
        return trigger;
    fail(s, tn_error_code());
    tn_trigger_free(trigger);
    return NULL;
}

int tn__settings_choice(tn__settings *s, const char *name, int count, const char *const *choices)
{
    const char *text = tn__settings_text(s, name, choices[0]);
    tn__text all = {0};
    for (int i = 0; i < count; i++) {
        if (strcmp(text, choices[i]) == 0) {
            tn__free(all.data);
            return i;
        }
        tn__text_addf(&all, "%s%s", i == 0 ? "" : i + 1 < count ? ", " : " or ", choices[i]);
    }
    fail(s, tn__fail(TN_ERR_VALUE, OPERATION, "%s: %s is %s, not '%s'", s->owner, name, all.data ? all.data : "",
                     text));
    tn__free(all.data);
    return 0;
}

int tn__settings_numbers(tn__settings *s, const char *name, double *numbers, int most)
{
    const char *text = tn__settings_text(s, name, NULL);
    int count = 0;
    for (const char *at = text; at;) {
        char *end;
        double value = tn__read_double(at, &end);
        if (end == at || (*end && *end != '/') || !isfinite(value) || count == most) {
            fail(s, tn__fail(TN_ERR_VALUE, OPERATION, "%s: %s takes up to %d numbers with slashes between them, as "
                             "30/60, not '%s'", s->owner, name, most, text));
            return count;
        }
        numbers[count++] = value;
        at = *end ? end + 1 : NULL;
    }
    return count;
}

int tn__settings_keys(tn__settings *s, const char *keys[TN__SETTINGS_MOST], const char *const *absent)
{
    int count = 0;
    for (int i = 0; i < s->count; i++)
        if (!s->items[i].name) {
            s->items[i].used = true;
            keys[count++] = s->items[i].value;
        }
    if (count == 0)
        while (absent && absent[count]) {
            keys[count] = absent[count];
            count++;
        }
    return count;
}

static tn_status unknown(const tn__settings *s, const tn__setting *item)
{
    tn__text all = {0};
    for (int i = 0; i < s->known_count; i++)
        tn__text_addf(&all, "%s%s", i ? ", " : "", s->known[i]);
    const char *near = item->name ? tn__nearest_name(item->name, s->known, s->known_count) : NULL;
    tn_status status =
        tn__fail(TN_ERR_NAME, OPERATION, "%s has no use for '%s'%s%s%s takes %s", s->owner,
                 item->name ? item->name : item->value, near ? ": did you mean '" : "", near ? near : "",
                 near ? "'? It" : "; it", all.data ? all.data : "no settings");
    tn__free(all.data);
    return status;
}

tn_status tn__settings_done(tn__settings *s)
{
    for (int i = 0; i < s->count && s->status == TN_OK; i++)
        if (!s->items[i].used)
            s->status = unknown(s, &s->items[i]);
    return s->status;
}
