/* SPDX-License-Identifier: MIT */
/* What is known of groups and launches while horizontal fusion is decided: horizontal.c keeps it, launches.c decides.
 * `reads` and `takes` matter since a group that overwrites a leaf must not run before one that reads it. */
#ifndef TN_COMPILE_SCHEDULE_HORIZONTAL_H
#define TN_COMPILE_SCHEDULE_HORIZONTAL_H

#include "compile/schedule/groups.h"

/* What is known of a group. */
typedef struct tn__fusion_group_facts {
    tn__numbers reads;      /* values of donatable leaves that it reads */
    tn__numbers takes;      /* of these, the ones that a result of its own may be written over */
    bool fails, overwrites; /* for tn__apart */
    bool shares;            /* may have others in its launch */
    int next;               /* the next group of its launch, -1: none */
} tn__fusion_group_facts;

/* What is known of a launch: a group's number, that group and others. */
typedef struct tn__launch_facts {
    int first; /* the first group in it, others by `next`; -1: none */
    int groups, nests, words;
} tn__launch_facts;

typedef struct tn__horizontal {
    tn__fusion_groups *s;
    tn__fuser *f;
    tn__fusion_group_facts *of;       /* by group */
    tn__launch_facts *launch; /* by the number of its group */
    bool *results;            /* by value: results lie in its memory */
    int *nearest;   /* by value of a leaf: of the groups passed so far, the last one (going back: the first) that reads
                       it or may overwrite it, or that one's launch */
    uint64_t *open; /* a bit a launch: has it room for the smallest group? */
    int least;      /* words of the smallest group */
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
/* The last group that this one needs directly (what it needs through others comes before those), or with by_launch the
 * last launch of one. -1: none. */
int tn__last_needed(const tn__horizontal *h, int group, bool by_launch);

/* Each group in a launch of its own. */
void tn__begin_launches(tn__horizontal *h);
/* Of the launches with room, the last at or before `launch`; the first at or behind it. -1: none. */
int tn__open_before(const tn__horizontal *h, int launch);
int tn__open_behind(const tn__horizontal *h, int launch);
/* Whether a launch has enough room for a group, and no group that overwrites what this one reads, or the other way
 * round. The caller has seen to it that none needs the other. */
bool tn__fits_in_launch(const tn__horizontal *h, int group, int launch);
void tn__put_in_launch(tn__horizontal *h, int group, int launch);

#endif
