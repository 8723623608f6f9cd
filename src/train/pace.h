/* SPDX-License-Identifier: MIT */
/* Work beside the training that may be put off: a picture, a list written anew, a snapshot. It is done as often as
 * takes no more than one part in 1,000 of the time, epochs of small networks taking less than it does. */
#ifndef TN_TRAIN_PACE_H
#define TN_TRAIN_PACE_H

#include <math.h>
#include <stdbool.h>
#include "core/clock.h"

#define TN__TIME_FOR_EACH_COST 1000

typedef struct tn__pace {
    double ended, cost; /* of the last time, by tn__seconds; 0: it was not done yet */
} tn__pace;

/* Whether it is time again (tn__trainer_now), and so in any case after `longest` seconds: one that took long as the
 * machine was asleep says nothing about the next. */
static inline bool tn__pace_due(const tn__pace *pace, double longest, double now)
{
    return pace->ended == 0 || now - pace->ended > fmin(TN__TIME_FOR_EACH_COST * pace->cost, longest);
}

/* Not before `delay` seconds are over: what ends sooner does it once, at its end. */
static inline void tn__pace_begin(tn__pace *pace, double delay)
{
    *pace = (tn__pace){tn__seconds(), delay / TN__TIME_FOR_EACH_COST};
}

/* It has been done, from `began` to now. */
static inline void tn__pace_note(tn__pace *pace, double began)
{
    pace->ended = tn__seconds();
    pace->cost = pace->ended - began;
}

#endif
