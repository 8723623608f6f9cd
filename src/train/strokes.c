/* SPDX-License-Identifier: MIT */
/*
 * An alphabet of lines. A letter is runs of points, a blank between two runs; a point is its column '0' ... '6' and its
 * row 'a' (under the baseline) 'd' (on it) 'i' (height of small letters) 'l' (of capitals).
 */
#include "train/strokes.h"

#include <stdint.h>
#include <string.h>

/* Of the size of the text: a column or a row, and the columns between two letters. */
#define UNIT         0.088
#define GAP          1.9
#define SPACE        1.6
/* Small figures above the line. */
#define RAISED_SCALE 0.62
#define RAISED_BY    4.2

static const char *const letters[] = {
    /* blank to / */
    "", "0d0e 0g0l", "0j0l 2j2l", "1d2l 3d4l 0f5f 0i5i", "4k1k0j0i1h3h4g4f3e0e 2l2d",
    "5l0d 1l0k0j1i2j2k1l 4h3g3e4d5e5g4h", "5d1j1k2l3k3j0g0e1d3d5g", "0j0l", "2l0j0e2c", "0l2j2e0c", "0g4i 0i4g 2j2f",
    "0g4g 2e2i", "1e0b", "0g3g", "0d0e", "0c4l",
    /* 0 to 9 */
    "1d0f0j1l3l4j4f3d1d", "1j2l2d", "0j1l3l4j4i0d4d", "0k1l3l4k4i3h1h 3h4g4e3d1d0e", "3d3l0f4f", "4l0l0h1i3i4g4f3d1d0e",
    "4l2l0i0f1d3d4f4g3i1i0g", "0l4l1d", "1h0i0k1l3l4k4i3h1h0g0e1d3d4e4g3h", "4i3g1g0i0j1l3l4j4g2d0d",
    /* : to @ */
    "0d0e 0h0i", "1e0b 1h1i", "4j0g4d", "0f4f 0h4h", "0j4g0d", "0j1l3l4j4i2g2f 2d2e", "4f3e2e2h4h4e5f5j4l1l0j0e1d4d",
    /* A to Z */
    "0d2l4d 1g3g", "0d0l3l4k4i3h0h 3h4g4e3d0d", "4k3l1l0j0f1d3d4e", "0d0l2l4j4f2d0d", "4d0d0l4l 0h3h", "0d0l4l 0h3h",
    "4k3l1l0j0f1d3d4f4h2h", "0d0l 4d4l 0h4h", "0d0l", "3l3f2d1d0e", "0d0l 4l0g 1h4d", "0l0d4d", "0d0l3f6l6d",
    "0d0l4d4l", "2d0f0j2l3l5j5f3d2d", "0d0l3l4k4h3g0g", "2d0f0j2l3l5j5f3d2d 3f5c", "0d0l3l4k4i3h0h 2h4d",
    "4k3l1l0k0i1h3h4g4e3d1d0e", "0l4l 2l2d", "0l0f1d3d4f4l", "0l2d4l", "0l2d3j4d6l", "0l4d 0d4l", "0l2h4l 2h2d",
    "0l4l0d4d",
    /* [ to ` */
    "2l0l0c2c", "0l4c", "0l2l2c0c", "0i2l4i", "0c5c", "0l1j",
    /* a to z */
    "0h1i3i4h4d 4g1g0f0e1d3d4e", "0l0d 0h1i3i4h4e3d1d0e", "4h3i1i0h0e1d3d4e", "4l4d 4h3i1i0h0e1d3d4e",
    "0g4g4h3i1i0h0e1d3d4e", "3l2l1k1d 0i3i", "4i4b3a1a0b 4h3i1i0h0e1d3d4e", "0l0d 0h1i3i4h4d", "0d0i 0k0l",
    "1i1b0a 1k1l", "0l0d 3i0f 1g3d", "0l0d", "0d0i 0h1i2i3h3d 3h4i5i6h6d", "0d0i 0h1i3i4h4d", "1d0e0h1i3i4h4e3d1d",
    "0i0a 0h1i3i4h4e3d1d0e", "4i4a 4h3i1i0h0e1d3d4e", "0d0i 0g1i3i", "4h3i1i0h1g3g4f4e3d1d0e", "1l1e2d3d 0i3i",
    "0i0e1d3d4e 4i4d", "0i2d4i", "0i2d3h4d6i", "0i4d 0d4i", "0i2d 4i1a0a", "0i4i0d4d",
    /* { to ~ */
    "3l2k2h0g2f2d3c", "0l0c", "0l1k1h3g1f1d0c", "0g1h3f4g"};
enum { FIRST = ' ', LETTERS = sizeof letters / sizeof *letters };

/* What plots need beyond ASCII. */
static const struct {
    uint32_t code;
    const char *letter;
    int raised; /* 0, or the letter that stands above the line */
} others[] = {{0xb7, "0g0h", 0},   {0xd7, "0e3h 0h3e", 0}, {0xb1, "0g4g 2e2i 0d4d", 0}, {0x207b, NULL, '-'},
              {0x2070, NULL, '0'}, {0xb9, NULL, '1'},      {0xb2, NULL, '2'},           {0xb3, NULL, '3'},
              {0x2074, NULL, '4'}, {0x2075, NULL, '5'},    {0x2076, NULL, '6'},         {0x2077, NULL, '7'},
              {0x2078, NULL, '8'}, {0x2079, NULL, '9'}};

/* Takes a character of UTF-8; of bytes that are none, one. */
static uint32_t next_code(const char **text)
{
    const unsigned char *t = (const unsigned char *)*text;
    int more = t[0] >= 0xf0 ? 3 : t[0] >= 0xe0 ? 2 : t[0] >= 0xc0 ? 1 : 0;
    uint32_t code = more ? t[0] & (0x3fu >> more) : t[0];
    (*text)++;
    for (; more > 0 && (**text & 0xc0) == 0x80; more--)
        code = code << 6 | (uint32_t)(*(*text)++ & 0x3f);
    return code;
}

static const char *letter_of(uint32_t code, int *raised)
{
    *raised = 0;
    if (code >= FIRST && code < FIRST + LETTERS)
        return letters[code - FIRST];
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        if (others[i].code == code) {
            *raised = others[i].raised;
            return others[i].letter ? others[i].letter : letters[others[i].raised - FIRST];
        }
    return "0d0l4l4d0d";
}

double tn__strokes(const char *text, double size, tn__stroke put, void *user)
{
    double unit = UNIT * size, x = 0;
    while (*text) {
        int raised;
        const char *letter = letter_of(next_code(&text), &raised);
        double scale = unit * (raised ? RAISED_SCALE : 1), foot = raised ? unit * RAISED_BY : 0;
        int widest = 0;
        for (const char *at = letter; *at; at += at[2] == ' ' ? 3 : 2) {
            widest = at[0] - '0' > widest ? at[0] - '0' : widest;
            if (put && at[2] && at[2] != ' ')
                put(x + scale * (at[0] - '0'), foot + scale * (at[1] - 'd'), x + scale * (at[2] - '0'),
                    foot + scale * (at[3] - 'd'), user);
        }
        x += scale * (widest + GAP + (*letter ? 0 : SPACE));
    }
    return x > 0 ? x - unit * GAP : 0;
}
