/* SPDX-License-Identifier: MIT */
/* Words with settings, "plot:main/loss,file=loss.svg,every=100it": what a part of a run is called by, and what it is
 * told. Who reads them asks for each setting by its name; what nobody asked for is an error. */
#ifndef TN_TRAIN_SETTINGS_H
#define TN_TRAIN_SETTINGS_H

#include <tanso/trainer.h>

/* Settings of a word, and names that a part knows. */
#define TN__SETTINGS_MOST 24

typedef struct tn__setting {
    const char *name; /* NULL: a bare value */
    const char *value;
    bool used;
} tn__setting;

typedef struct tn__settings {
    const char *owner; /* in messages: the word before the colon; borrowed */
    char *text;        /* owned, cut into pieces */
    tn__setting items[TN__SETTINGS_MOST];
    int count;
    const char *known[TN__SETTINGS_MOST]; /* names that were asked for */
    int known_count;
    tn_status status; /* the first failure */
} tn__settings;

/* `text` is what follows the colon, NULL for nothing. */
void tn__settings_read(tn__settings *s, const char *owner, const char *text);
void tn__settings_free(tn__settings *s);

/* The value of a setting, or `absent`. A number must be finite, and `least` or more. */
const char *tn__settings_text(tn__settings *s, const char *name, const char *absent);
double tn__settings_number(tn__settings *s, const char *name, double absent, double least);
int64_t tn__settings_count(tn__settings *s, const char *name, int64_t absent, int64_t least);
/* "500it", "2ep" or "30s", to be owned; NULL if the setting and `absent` are not there. */
tn_trigger *tn__settings_trigger(tn__settings *s, const char *name, const char *absent);
/* The place of the value among names, 0 if the setting is not there. */
int tn__settings_choice(tn__settings *s, const char *name, int count, const char *const *choices);
/* Numbers with slashes between them; how many were written, `most` at most. */
int tn__settings_numbers(tn__settings *s, const char *name, double *numbers, int most);
/* The bare values, all of them taken; those of `absent`, a list ended by NULL, if there are none. */
int tn__settings_keys(tn__settings *s, const char *keys[TN__SETTINGS_MOST], const char *const *absent);
/* Whether all went well; a setting that nobody has asked for is TN_ERR_NAME. */
tn_status tn__settings_done(tn__settings *s);

#endif
