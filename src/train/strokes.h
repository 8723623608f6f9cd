/* SPDX-License-Identifier: MIT */
/* Letters as straight lines, for pictures that are painted without a library of fonts. */
#ifndef TN_TRAIN_STROKES_H
#define TN_TRAIN_STROKES_H

/* A line of a letter, from the foot of the text's first letter on, y upwards. */
typedef void (*tn__stroke)(double x0, double y0, double x1, double y1, void *user);
/* Gives `put` (NULL: nobody) the lines of a text in UTF-8; returns the text's width. What there is no letter for is a
 * box. */
double tn__strokes(const char *text, double size, tn__stroke put, void *user);

#endif
