/* SPDX-License-Identifier: MIT */
/* What is known of units and launches while they are shared out: between horizontal.c, which keeps it, and
 * launches.c. */
#ifndef TN_COMPILE_SCHEDULE_HORIZONTAL_H
#define TN_COMPILE_SCHEDULE_HORIZONTAL_H

#include "compile/schedule/groups.h"

/* What is known of a unit. */
typedef struct tn__unit_facts {
    tn__numbers reads;      /* leaves whose memory results may take over, that it reads */
    tn__numbers takes;      /* of these, which results of its own may take over */
    bool fails, overwrites; /* for tn__apart */
    bool shares;            /* may have others in its launch */
    int next;               /* the next unit of its launch, -1: none */
} tn__unit_facts;

/* What is known of a launch: a unit's number, that unit and others. */
typedef struct tn__launch_facts {
    int first; /* unit in it, -1: none */
    int units, nests, words;
} tn__launch_facts;

typedef struct tn__sharer {
    tn__units *s;
    tn__fuser *f;
    tn__unit_facts *of;       /* by unit */
    tn__launch_facts *launch; /* by the number of its unit */
    bool *results;            /* by value: results lie in its memory */
    int *nearest;   /* by value: the nearest unit that reads it, or takes it over; or the last launch of those */
    uint64_t *open; /* bits: launches with room for a unit */
    int least;      /* words of a unit */
} tn__sharer;

/* Notes what units read and may take over. False without memory. */
bool tn__note_units(tn__sharer *h);
bool tn__unit_facts_join(tn__unit_facts *to, const tn__unit_facts *from);
void tn__unit_facts_free(tn__unit_facts *of);
/* Have the two lists a number in common? */
bool tn__numbers_meet(const tn__numbers *a, const tn__numbers *b);
bool tn__unit_is_operation(const tn__sharer *h, int unit);
/* Must two units not lie in one launch? tn__apart of nests. */
bool tn__units_apart(const tn__sharer *h, int a, int b);
/* The items of a unit, one after another. */
int tn__unit_items(const tn__sharer *h, int unit);
tn__item *tn__unit_item(const tn__sharer *h, int unit, int k);
/* The last unit before that this one needs, or the last launch of one. What it needs through others comes before these.
 * -1: none. */
int tn__last_needed(const tn__sharer *h, int unit, bool by_launch);

/* Each unit in a launch of its own. */
void tn__begin_launches(tn__sharer *h);
/* The last launch with room up to this one; the first from it on. -1: none. */
int tn__open_before(const tn__sharer *h, int launch);
int tn__open_behind(const tn__sharer *h, int launch);
/* Whether a launch with room has enough for a unit, and none in it that the unit, or that, would have to come before:
 * by what they overwrite, since those that need one another are not asked about. */
bool tn__fits_beside(const tn__sharer *h, int unit, int launch);
void tn__put_in_launch(tn__sharer *h, int unit, int launch);

#endif
