/* SPDX-License-Identifier: MIT */
/*
 * The learning curve as an SVG picture: a panel for the losses, and one for the accuracy where there is one, over
 * epochs. Plain SVG 1.1 with presentation attributes alone, so that every viewer draws it.
 */
#include <math.h>
#include <string.h>
#include "core/error.h"
#include "core/memory.h"
#include "io/file.h"
#include "train/run.h"

/* The layout, in pixels. */
enum {
    PANEL_WIDTH = 440,
    HEIGHT = 340,
    LEFT = 64,
    RIGHT = 20,
    TOP = 64,
    BOTTOM = 52,
    LEGEND_WIDTH = 74,
    LEGEND_GAP = 16
};
#define PLOT_WIDTH  (PANEL_WIDTH - LEFT - RIGHT)
#define PLOT_HEIGHT (HEIGHT - TOP - BOTTOM)

/* About so many ticks an axis; dots on the points up to so many of them; at most so many points drawn a line. */
#define TICKS       5
#define MOST_DOTS   40
#define MOST_POINTS 1000
/* About the width of a character of the title. */
#define TITLE_ADVANCE 8

#define TRAIN_COLOUR "#1c6dd0"
#define TEST_COLOUR  "#d9480f"

typedef struct line {
    const char *name, *colour;
    size_t offset; /* of the figure in tn_epoch */
    double scale;
} line;

typedef struct panel {
    const char *title, *unit;
    line lines[2];
    int line_count;
} panel;

static const panel panels[] = {
    {"loss",
     "",
     {{"train", TRAIN_COLOUR, offsetof(tn_epoch, train_loss), 1},
      {"test", TEST_COLOUR, offsetof(tn_epoch, test_loss), 1}},
     2},
    {"accuracy", "%", {{"test", TEST_COLOUR, offsetof(tn_epoch, test_accuracy), 100}}, 1},
};

/* An axis: from low to high in steps. */
typedef struct axis {
    double low, high, step;
} axis;

static double figure(const tn_epoch *row, const line *l)
{
    return l->scale * *(const double *)((const char *)row + l->offset);
}

/* 1, 2 or 5 times a power of ten, so that about TICKS steps make up the range. */
static double nice_step(double range)
{
    double raw = range / TICKS, power = pow(10, floor(log10(raw))), factor = raw / power;
    return power * (factor < 1.5 ? 1 : factor < 3.5 ? 2 : factor < 7.5 ? 5 : 10);
}

/* Around all finite figures of a panel: losses from 0 on, where that does not flatten the lines; accuracies up to
 * 100. */
static axis value_axis(const tn__history *history, const panel *p, bool percent)
{
    double low = INFINITY, high = -INFINITY;
    for (size_t i = 0; i < history->count; i++)
        for (int j = 0; j < p->line_count; j++) {
            double value = figure(&history->rows[i], &p->lines[j]);
            low = isfinite(value) && value < low ? value : low;
            high = isfinite(value) && value > high ? value : high;
        }
    if (!(low <= high))
        low = 0, high = 1;
    if (percent && high > 100 - (high - low))
        high = 100;
    if (!percent && low >= 0 && low < high / 2)
        low = 0;
    if (high - low < 1e-9 * (fabs(high) + 1e-9))
        low -= fabs(low) / 10 + 0.5, high += fabs(high) / 10 + (percent ? 0 : 0.5);
    axis a = {.step = nice_step(high - low)};
    a.low = a.step * floor(low / a.step + 1e-9);
    a.high = a.step * ceil(high / a.step - 1e-9);
    return a;
}

static axis epoch_axis(const tn__history *history)
{
    double first = history->rows[0].epoch, last = history->rows[history->count - 1].epoch;
    axis a = {.low = first, .high = last > first ? last : first + 1};
    a.step = fmax(1, nice_step(a.high - a.low));
    return a;
}

static double place_x(const axis *a, double epoch) { return LEFT + PLOT_WIDTH * (epoch - a->low) / (a->high - a->low); }
static double place_y(const axis *a, double value)
{
    return TOP + PLOT_HEIGHT * (1 - (value - a->low) / (a->high - a->low));
}

/* A longer text is cut between characters of UTF-8 and ends in dots. */
static void put_escaped(tn__text *svg, const char *text, int most)
{
    int count = 0;
    for (; *text; text++) {
        bool begins = ((unsigned char)*text & 0xc0) != 0x80;
        if (begins && count == most) {
            tn__text_add(svg, "...");
            return;
        }
        count += begins;
        const char *entity = *text == '<' ? "&lt;" : *text == '>' ? "&gt;" : *text == '&' ? "&amp;" : NULL;
        if (entity)
            tn__text_add(svg, entity);
        else if ((unsigned char)*text >= ' ')
            tn__text_addn(svg, text, 1);
    }
}

static void put_axes(tn__text *svg, const panel *p, const axis *x, const axis *y)
{
    int bottom = TOP + PLOT_HEIGHT, right = LEFT + PLOT_WIDTH;
    for (int i = 0; y->low + i * y->step <= y->high + y->step / 2; i++) {
        double value = y->low + i * y->step, at = place_y(y, value);
        tn__text_addf(svg, "<line x1=\"%d\" y1=\"%.1f\" x2=\"%d\" y2=\"%.1f\" stroke=\"#e3e5e8\"/>\n", LEFT, at, right,
                      at);
        tn__text_addf(svg, "<text x=\"%d\" y=\"%.1f\" text-anchor=\"end\">%.6g%s</text>\n", LEFT - 8, at + 4,
                      fabs(value) < y->step * 1e-6 ? 0 : value, p->unit);
    }
    for (double epoch = x->step * ceil(x->low / x->step); epoch <= x->high; epoch += x->step) {
        double at = place_x(x, epoch);
        tn__text_addf(svg, "<line x1=\"%.1f\" y1=\"%d\" x2=\"%.1f\" y2=\"%d\" stroke=\"#495057\"/>\n", at, bottom, at,
                      bottom + 5);
        tn__text_addf(svg, "<text x=\"%.1f\" y=\"%d\" text-anchor=\"middle\">%.0f</text>\n", at, bottom + 20, epoch);
    }
    tn__text_addf(svg, "<path d=\"M%d %dV%dH%d\" fill=\"none\" stroke=\"#495057\"/>\n", LEFT, TOP, bottom, right);
    tn__text_addf(svg, "<text x=\"%d\" y=\"%d\" text-anchor=\"middle\">epoch</text>\n", LEFT + PLOT_WIDTH / 2,
                  bottom + 40);
    tn__text_addf(svg, "<text x=\"%d\" y=\"%d\" font-weight=\"bold\">%s</text>\n", LEFT, TOP - 10, p->title);
}

/* A line with gaps where a figure is not finite. */
static void put_line(tn__text *svg, const tn__history *history, const line *l, const axis *x, const axis *y)
{
    size_t stride = 1 + history->count / MOST_POINTS;
    bool pen_down = false;
    tn__text_addf(svg, "<path fill=\"none\" stroke=\"%s\" stroke-width=\"2\" stroke-linejoin=\"round\" d=\"",
                  l->colour);
    for (size_t i = 0; i < history->count; i++) {
        if (i % stride && i + 1 != history->count)
            continue;
        double value = figure(&history->rows[i], l);
        if (isfinite(value))
            tn__text_addf(svg, "%c%.1f %.1f", pen_down ? 'L' : 'M', place_x(x, history->rows[i].epoch),
                          place_y(y, value));
        pen_down = isfinite(value);
    }
    tn__text_add(svg, "\"/>\n");
    for (size_t i = 0; i < history->count && history->count <= MOST_DOTS; i++) {
        double value = figure(&history->rows[i], l);
        if (isfinite(value))
            tn__text_addf(svg, "<circle cx=\"%.1f\" cy=\"%.1f\" r=\"2.5\" fill=\"%s\"/>\n",
                          place_x(x, history->rows[i].epoch), place_y(y, value), l->colour);
    }
}

/* Above the plot, to the right. */
static void put_legend(tn__text *svg, const panel *p)
{
    for (int j = 0; j < p->line_count; j++) {
        int at = LEFT + PLOT_WIDTH - LEGEND_WIDTH * (p->line_count - j) + LEGEND_GAP;
        tn__text_addf(svg, "<line x1=\"%d\" y1=\"%d\" x2=\"%d\" y2=\"%d\" stroke=\"%s\" stroke-width=\"2\"/>\n", at,
                      TOP - 14, at + 22, TOP - 14, p->lines[j].colour);
        tn__text_addf(svg, "<text x=\"%d\" y=\"%d\">%s</text>\n", at + 28, TOP - 10, p->lines[j].name);
    }
}

static void draw(tn__text *svg, const tn__history *history, int panel_count, const char *title)
{
    int width = panel_count * PANEL_WIDTH;
    tn__text_addf(svg,
                  "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%d\" viewBox=\"0 0 %d %d\" "
                  "font-family=\"Helvetica, Arial, sans-serif\" font-size=\"12\" fill=\"#212529\">\n",
                  width, HEIGHT, width, HEIGHT);
    tn__text_addf(svg, "<rect width=\"%d\" height=\"%d\" fill=\"#ffffff\"/>\n<text x=\"%d\" y=\"24\" font-size=\"14\">",
                  width, HEIGHT, LEFT);
    put_escaped(svg, title, width / TITLE_ADVANCE);
    tn__text_add(svg, "</text>\n");
    axis x = epoch_axis(history);
    for (int i = 0; i < panel_count; i++) {
        const panel *p = &panels[i];
        axis y = value_axis(history, p, *p->unit);
        tn__text_addf(svg, "<g transform=\"translate(%d 0)\">\n", i * PANEL_WIDTH);
        put_axes(svg, p, &x, &y);
        for (int j = 0; j < p->line_count; j++)
            put_line(svg, history, &p->lines[j], &x, &y);
        put_legend(svg, p);
        tn__text_add(svg, "</g>\n");
    }
    tn__text_add(svg, "</svg>\n");
}

tn_status tn__curve_write(const tn__history *history, bool classifies, const char *title, const char *path)
{
    tn__text svg = {0};
    draw(&svg, history, classifies ? 2 : 1, title);
    return tn__file_write_text("train", path, &svg);
}
