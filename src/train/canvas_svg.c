/* SPDX-License-Identifier: MIT */
/* Pictures as SVG 1.1 with presentation attributes alone, so that every viewer draws them. */
#include <string.h>
#include "core/number.h"
#include "train/canvas.h"

typedef struct svg {
    tn__canvas canvas;
    tn__text *out;
} svg;

static tn__text *out_of(tn__canvas *canvas) { return ((svg *)canvas)->out; }

static void put_path(tn__canvas *canvas, const double *points, size_t count, const tn__pen *pen)
{
    tn__text *out = out_of(canvas);
    if (pen->width > 0)
        tn__text_addf(out, "<path fill=\"none\" stroke=\"#%06x\" stroke-width=\"%.6g\"%s", (unsigned)pen->colour,
                      pen->width, count > 2 ? " stroke-linejoin=\"round\"" : "");
    else
        tn__text_addf(out, "<path fill=\"#%06x\" fill-opacity=\"%.6g\"", (unsigned)pen->colour, pen->opacity);
    if (pen->dash > 0)
        tn__text_addf(out, " stroke-dasharray=\"%.6g\"", pen->dash);
    tn__text_add(out, " d=\"");
    for (size_t i = 0; i < 2 * count; i++) {
        char number[TN__BRIEF_TEXT];
        tn__print_brief(number, points[i]);
        tn__text_add(out, i % 2 ? " " : i ? "L" : "M");
        tn__text_add(out, number);
    }
    tn__text_add(out, pen->width > 0 ? "\"/>\n" : "Z\"/>\n");
}

static void put_circle(tn__canvas *canvas, double x, double y, double radius, uint32_t colour)
{
    tn__text_addf(out_of(canvas), "<circle cx=\"%.1f\" cy=\"%.1f\" r=\"%.6g\" fill=\"#%06x\"/>\n", x, y, radius,
                  (unsigned)colour);
}

static void put_escaped(tn__text *out, const char *text)
{
    for (; *text; text++) {
        const char *entity = *text == '<' ? "&lt;" : *text == '>' ? "&gt;" : *text == '&' ? "&amp;" : NULL;
        if (entity)
            tn__text_add(out, entity);
        else if ((unsigned char)*text >= ' ')
            tn__text_addn(out, text, 1);
    }
}

static void put_text(tn__canvas *canvas, double x, double y, tn__anchor anchor, double size, bool bold, uint32_t colour,
                     const char *text)
{
    static const char *const anchors[] = {"", " text-anchor=\"middle\"", " text-anchor=\"end\""};
    tn__text *out = out_of(canvas);
    tn__text_addf(out, "<text x=\"%.1f\" y=\"%.1f\"%s font-size=\"%.6g\"%s fill=\"#%06x\">", x, y, anchors[anchor],
                  size, bold ? " font-weight=\"bold\"" : "", (unsigned)colour);
    put_escaped(out, text);
    tn__text_add(out, "</text>\n");
}

void tn__svg_write(tn__text *out, int width, int height, tn__drawing draw, const void *user)
{
    static const tn__canvas_kind kind = {put_path, put_circle, put_text};
    svg s = {{&kind, width, height}, out};
    tn__text_addf(
        out,
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%d\" viewBox=\"0 0 %d %d\" "
        "font-family=\"Helvetica, Arial, sans-serif\">\n<rect width=\"%d\" height=\"%d\" fill=\"#ffffff\"/>\n",
        width, height, width, height, width, height);
    draw(&s.canvas, user);
    tn__text_add(out, "</svg>\n");
}
