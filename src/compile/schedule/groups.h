/* SPDX-License-Identifier: MIT */
/*
 * Fusion groups: what one thread block (on a CPU: one call of a kernel) runs one after another. schedule.c makes them
 * of the fuser's items and emits them; in between, launches.c lets several share a launch, as different blocks of it.
 */
#ifndef TN_COMPILE_SCHEDULE_GROUPS_H
#define TN_COMPILE_SCHEDULE_GROUPS_H

#include "compile/fuse/fuse.h"

#define TN__MOST_NESTS 16  /* of a kernel */
#define TN__MOST_WORDS 480 /* of a kernel's parameters, on a GPU: 4 KiB, with what the backend adds */

/* Small nests that one block runs one after another, or a single nest over many blocks, or an operation. */
typedef struct tn__fusion_group {
    tn__nest *nest[TN__MOST_NESTS];
    int count;
    int words;  /* estimate of its kernel's parameters, in 8 bytes */
    int value;  /* what the operation computes; -1: the group is of nests */
    bool small; /* its nests run in one block */
    int launch; /* the number of its launch, which is that of the first group in it */
} tn__fusion_group;

typedef struct tn__fusion_groups {
    tn__fuser *fuser;
    tn__emitter *emitter;
    tn__fusion_group *group;
    int count;
    size_t capacity;
    int *member, *first; /* filled in by tn__list_launches */
} tn__fusion_groups;

/* Has the group no room for another nest in its kernel? */
bool tn__fusion_group_is_full(const tn__fuser *fuser, const tn__fusion_group *group, const tn__nest *nest);
/* Whether a nest of the group and this one must not share a kernel: tn__apart. */
bool tn__fusion_group_apart(const tn__fuser *fuser, const tn__fusion_group *group, const tn__nest *nest);
/* Multiplications of a group that is a matrix product; 0 of others. */
int64_t tn__fusion_group_work(const tn__fusion_group *group);

/* Lists the groups of each launch in their order: member[first[launch]] to member[first[launch + 1]]. False without
 * memory. */
bool tn__list_launches(tn__fusion_groups *groups);

/* launches.c: gives each group its launch, and products their tiles in it; a group may become a part of another. On a
 * GPU only. False without memory. */
bool tn__fuse_horizontally(tn__fusion_groups *groups);

#endif
