/* SPDX-License-Identifier: MIT */
/* How processes without MPI find each other: by RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT, as `tanso launch` and
 * schedulers set them. */
#ifndef TN_COMM_MEET_H
#define TN_COMM_MEET_H

#include "comm/transport.h"

#define TN__HOST_NAME 64

typedef struct tn__meeting {
    int rank, size;
    int *socket;                 /* by rank, connected and nonblocking; the own one is -1 */
    char (*host)[TN__HOST_NAME]; /* by rank: the machine it runs on */
} tn__meeting;

/* Waits for all of them, for so many seconds at most; false with why. */
bool tn__meet(tn__meeting *meeting, double seconds, tn__why *why);
/* Closes what is open. */
void tn__meeting_end(tn__meeting *meeting);

#endif
