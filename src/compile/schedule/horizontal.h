/* SPDX-License-Identifier: MIT */
/* What is known of groups and launches while they are shared out: between horizontal.c, which keeps it, and
 * launches.c. */
#ifndef TN_COMPILE_SCHEDULE_HORIZONTAL_H
#define TN_COMPILE_SCHEDULE_HORIZONTAL_H

#include "compile/schedule/groups.h"

/* What is known of a group. */
typedef struct tn__fusion_group_facts {
    tn__numbers reads;      /* leaves whose memory results may take over, that it reads */
    tn__numbers takes;      /* of these, which results of its own may take over */
    bool fails, overwrites; /* for tn__apart */
    bool shares;            /* may have others in its launch */
    int next;               /* the next group of its launch, -1: none */
} tn__fusion_group_facts;

/* What is known of a launch: a group's number, that group and others. */
typedef struct tn__launch_facts {
    int first; /* group in it, -1: none */
    int groups, nests, words;
} tn__launch_facts;

typedef struct tn__horizontal {
    tn__fusion_groups *s;
    tn__fuser *f;
    tn__fusion_group_facts *of;       /* by group */
    tn__launch_facts *launch; /* by the number of its group */
    bool *results;            /* by value: results lie in its memory */
    int *nearest;   /* by value: the nearest group that reads it, or takes it over; or the last launch of those */
    uint64_t *open; /* bits: launches with room for a group */
    int least;      /* words of a group */
} tn__horizontal;

/* Notes what groups read and may take over. False without memory. */
bool tn__note_fusion_groups(tn__horizontal *h);
bool tn__fusion_group_facts_join(tn__fusion_group_facts *to, const tn__fusion_group_facts *from);
void tn__fusion_group_facts_free(tn__fusion_group_facts *of);
/* Have the two lists a number in common? */
bool tn__numbers_meet(const tn__numbers *a, const tn__numbers *b);
bool tn__fusion_group_is_operation(const tn__horizontal *h, int group);
/* Must two groups not lie in one launch? tn__apart of nests. */
bool tn__fusion_groups_apart(const tn__horizontal *h, int a, int b);
/* The items of a group, one after another. */
int tn__fusion_group_items(const tn__horizontal *h, int group);
tn__item *tn__fusion_group_item(const tn__horizontal *h, int group, int k);
/* The last group before that this one needs, or the last launch of one. What it needs through others comes before
 * these. -1: none. */
int tn__last_needed(const tn__horizontal *h, int group, bool by_launch);

/* Each group in a launch of its own. */
void tn__begin_launches(tn__horizontal *h);
/* The last launch with room up to this one; the first from it on. -1: none. */
int tn__open_before(const tn__horizontal *h, int launch);
int tn__open_behind(const tn__horizontal *h, int launch);
/* Whether a launch with room has enough for a group, and none in it that the group, or that, would have to come before:
 * by what they overwrite, since those that need one another are not asked about. */
bool tn__fits_in_launch(const tn__horizontal *h, int group, int launch);
void tn__put_in_launch(tn__horizontal *h, int group, int launch);

#endif
