/* SPDX-License-Identifier: MIT */
/* Axes of pictures: from where to where, linear or logarithmic, and ticks at round numbers. */
#ifndef TN_TRAIN_AXIS_H
#define TN_TRAIN_AXIS_H

#include <stdbool.h>

typedef struct tn__axis {
    bool log;
    double low, high; /* values at the ends, low < high */
    double step;      /* linear: between two ticks; logarithmic: decades between two */
} tn__axis;

/* Around finite values from low to high (any order of size; low > high: there are none). `ticks`: about so many. */
tn__axis tn__axis_linear(double low, double high, int ticks);
/* The same, whose ends are ticks. */
tn__axis tn__axis_round(double low, double high, int ticks);
/* low > 0. */
tn__axis tn__axis_log(double low, double high, int ticks);
/* 0 to 1 for what lies between the ends, beyond them outside. */
double tn__axis_place(const tn__axis *axis, double value);
/* The value of the i-th tick from 0; false from the end on. */
bool tn__axis_tick(const tn__axis *axis, int i, double *value);
/* A tick's number for people: "0.25", "200k", "2·10⁻⁴". */
void tn__axis_label(const tn__axis *axis, double value, char text[32]);

#endif
