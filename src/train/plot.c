/* SPDX-License-Identifier: MIT */
/* Drawing curves, see plot.h. */
#include "train/plot.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include "core/error.h"
#include "core/memory.h"
#include "train/axis.h"
#include "train/canvas.h"

/* The layout, in pixels. */
enum {
    WIDTH = 720,
    HEIGHT = 420,
    RIGHT = 24,
    TOP = 22,
    TITLE = 24,
    LEGEND = 22,
    BOTTOM = 32,
    X_LABEL = 20,
    SAMPLE = 22,
    ENTRY_GAP = 18,
    INDENT = 50
};
#define FONT       12.0
#define TITLE_FONT 14.0
#define TICK_GAP   8.0
/* About one tick in so many pixels. */
#define X_SPACING  90
#define Y_SPACING  66
/* Dots on the points of a curve of at most so many. */
#define MOST_DOTS  40
/* The longest name in a legend, in characters. */
#define MOST_NAME  56
/* From this ratio of the largest to the smallest on, a scale is logarithmic by itself. */
#define LOG_RATIO  500.0

/* Of the range behind a line. */
#define RANGE_OPACITY 0.18

#define INK   0x212529u
#define FRAME 0x495057u
#define GRID  0xe6e8ebu

/* Told apart by those who do not see red and green, and in grey. */
static const uint32_t palette[] = {0x1c6dd0, 0xd9480f, 0x2b8a3e, 0x9c36b5, 0x0c8599, 0xe8a100, 0x5f3dc4, 0x868e96};
enum { COLOURS = sizeof palette / sizeof *palette };

/* A panel while it is drawn. */
typedef struct frame {
    tn__canvas *canvas;
    const tn__panel *panel;
    tn__axis x, y;
    double left, top, right, bottom;
} frame;

static uint32_t colour_of(const tn__plot_item *item) { return palette[item->colour % COLOURS]; }
static double dash_of(const tn__plot_item *item) { return 4.0 * (item->colour / COLOURS); }

/* ---- axes ---- */

typedef struct range {
    double low, high;
} range;

static void reach(range *r, double value, bool positive)
{
    if (!isfinite(value) || (positive && value <= 0))
        return;
    r->low = value < r->low ? value : r->low;
    r->high = value > r->high ? value : r->high;
}

/* Of what is drawn as lines. A band behind a line may be cut: a single point far off would flatten all others. */
static range value_range(const tn__panel *p, bool positive)
{
    range r = {INFINITY, -INFINITY};
    for (int i = 0; i < p->item_count; i++) {
        const tn__plot_item *item = &p->items[i];
        for (size_t k = 0; k < item->count; k++) {
            if (item->y)
                reach(&r, item->y[k * item->stride], positive);
            else
                reach(&r, item->low[k * item->stride], positive), reach(&r, item->high[k * item->stride], positive);
        }
    }
    return r;
}

static tn__axis value_axis(const tn__panel *p, int ticks)
{
    range r = value_range(p, p->scale == TN__SCALE_LOG);
    bool some = r.low <= r.high;
    if (p->scale != TN__SCALE_LINEAR && some && r.low > 0 && (p->scale == TN__SCALE_LOG || r.high / r.low > LOG_RATIO))
        return tn__axis_log(r.low, r.high, ticks);
    if (p->most > 0 && some && r.high <= p->most && r.high > p->most - (r.high - r.low))
        r.high = p->most;
    else if (r.low >= 0 && r.low < r.high / 2 && p->most == 0)
        r.low = 0;
    tn__axis axis = tn__axis_round(r.low, r.high, ticks);
    if (p->most > 0 && axis.high > p->most && r.high <= p->most)
        axis.high = p->most;
    return axis;
}

/* What is counted has its ticks at whole numbers. */
static tn__axis x_axis(const tn__panel *p, int ticks)
{
    range r = {INFINITY, -INFINITY};
    bool whole = true;
    for (int i = 0; i < p->item_count; i++)
        for (size_t k = 0; k < p->items[i].count; k++) {
            double x = p->items[i].x[k * p->items[i].stride];
            reach(&r, x, false);
            whole = whole && x == floor(x);
        }
    if (r.low == r.high && r.low > 0)
        r.low = 0;
    tn__axis axis = tn__axis_linear(r.low, r.high, ticks);
    if (whole && axis.step < 1)
        axis.step = 1;
    return axis;
}

static double place_x(const frame *f, double x) { return f->left + (f->right - f->left) * tn__axis_place(&f->x, x); }

/* Within a panel's height or a little beyond it, so that what is cut leaves the panel. */
static double place_y(const frame *f, double y)
{
    double share = f->y.log && y <= 0 ? 0 : tn__axis_place(&f->y, y);
    share = share < 0 ? 0 : share > 1 ? 1 : share;
    return f->bottom - (f->bottom - f->top) * share;
}

static void tick_label(const frame *f, const tn__axis *axis, double value, char text[48])
{
    tn__axis_label(axis, value, text);
    if (axis == &f->y && f->panel->unit)
        strncat(text, f->panel->unit, 8);
}

static void put_line(tn__canvas *c, double x0, double y0, double x1, double y1, uint32_t colour)
{
    const double points[] = {x0, y0, x1, y1};
    c->kind->path(c, points, 2, &(tn__pen){.colour = colour, .width = 1});
}

static void put_axes(const frame *f)
{
    tn__canvas *c = f->canvas;
    char text[48];
    double value, beyond = -INFINITY;
    for (int i = 0; tn__axis_tick(&f->y, i, &value); i++) {
        double at = place_y(f, value);
        put_line(c, f->left, at, f->right, at, GRID);
        tick_label(f, &f->y, value, text);
        c->kind->text(c, f->left - TICK_GAP, at + 4, TN__ANCHOR_END, FONT, false, INK, text);
    }
    for (int i = 0; tn__axis_tick(&f->x, i, &value); i++) {
        double at = place_x(f, value);
        put_line(c, at, f->top, at, f->bottom, GRID);
        put_line(c, at, f->bottom, at, f->bottom + 5, FRAME);
        tick_label(f, &f->x, value, text);
        double half = tn__text_width(text, FONT) / 2;
        if (at - half < beyond)
            continue;
        beyond = at + half + 6;
        c->kind->text(c, at, f->bottom + 19, TN__ANCHOR_MIDDLE, FONT, false, INK, text);
    }
    const double corner[] = {f->left, f->top, f->left, f->bottom, f->right, f->bottom};
    c->kind->path(c, corner, 3, &(tn__pen){.colour = FRAME, .width = 1});
    if (f->panel->x_label)
        c->kind->text(c, (f->left + f->right) / 2, f->bottom + 19 + X_LABEL, TN__ANCHOR_MIDDLE, FONT, false, INK,
                      f->panel->x_label);
}

/* ---- curves ---- */

static bool shown(const frame *f, double y) { return isfinite(y) && (y > 0 || !f->y.log); }

/* The band over the points from `begin` to before `end`, which have both edges. */
static void put_band(const frame *f, const tn__plot_item *item, size_t begin, size_t end, double *points)
{
    size_t count = end - begin;
    for (size_t k = 0; k < count; k++) {
        size_t at = (begin + k) * item->stride;
        double *there = &points[2 * k], *back = &points[2 * (2 * count - 1 - k)];
        there[0] = back[0] = place_x(f, item->x[at]);
        there[1] = place_y(f, item->low[at]);
        back[1] = place_y(f, item->high[at]);
    }
    f->canvas->kind->path(f->canvas, points, 2 * count, &(tn__pen){colour_of(item), 0, item->opacity, 0});
}

static void put_bands(const frame *f, const tn__plot_item *item, double *points)
{
    size_t begin = 0;
    for (size_t k = 0; k <= item->count; k++) {
        size_t at = k * item->stride;
        if (k < item->count && isfinite(item->low[at]) && isfinite(item->high[at]))
            continue;
        if (k > begin + 1)
            put_band(f, item, begin, k, points);
        begin = k + 1;
    }
}

/* A point between two gaps is a dot, since a line of one point cannot be seen. */
static void put_curve(const frame *f, const tn__plot_item *item, double *points)
{
    tn__canvas *c = f->canvas;
    tn__pen pen = {colour_of(item), 2, 1, dash_of(item)};
    size_t run = 0;
    for (size_t k = 0; k <= item->count; k++) {
        double y = k < item->count ? item->y[k * item->stride] : NAN;
        if (shown(f, y)) {
            points[2 * run] = place_x(f, item->x[k * item->stride]);
            points[2 * run + 1] = place_y(f, y);
            run++;
            continue;
        }
        if (run > 1)
            c->kind->path(c, points, run, &pen);
        for (size_t i = 0; i < run && (run == 1 || item->count <= MOST_DOTS); i++)
            c->kind->circle(c, points[2 * i], points[2 * i + 1], item->count == 1 ? 3.5 : 2.5, pen.colour);
        run = 0;
    }
}

/* ---- texts ---- */

/* The first `most` characters of UTF-8, with dots behind them if there are more. */
static void cut(const char *text, int most, char *out, size_t size)
{
    size_t bytes = 0;
    int count = 0;
    while (text[bytes] && bytes + 4 < size) {
        bool begins = ((unsigned char)text[bytes] & 0xc0) != 0x80;
        if (begins && count++ == most)
            break;
        bytes++;
    }
    snprintf(out, size, "%.*s%s", (int)bytes, text, text[bytes] ? "..." : "");
}

/* The end of a long name is what tells it from others. */
static void name_of(const tn__plot_item *item, char out[4 * MOST_NAME + 8])
{
    const char *name = item->name;
    int count = 0;
    for (const char *at = name; *at; at++)
        count += ((unsigned char)*at & 0xc0) != 0x80;
    const char *dots = count > MOST_NAME ? "..." : "";
    for (; count > MOST_NAME; count--)
        do
            name++;
        while (((unsigned char)*name & 0xc0) == 0x80);
    snprintf(out, 4 * MOST_NAME + 8, "%s%s", dots, name);
}

/* Gives its width; without a canvas only that. */
static double legend_entry(tn__canvas *c, const tn__plot_item *item, double x, double y)
{
    char name[4 * MOST_NAME + 8];
    name_of(item, name);
    if (c && item->y) {
        const double points[] = {x, y - 4, x + SAMPLE, y - 4};
        c->kind->path(c, points, 2, &(tn__pen){colour_of(item), 2, 1, dash_of(item)});
    } else if (c) {
        const double points[] = {x, y - 10, x + SAMPLE, y - 10, x + SAMPLE, y + 1, x, y + 1};
        c->kind->path(c, points, 4, &(tn__pen){colour_of(item), 0, item->opacity, 0});
    }
    if (c)
        c->kind->text(c, x + SAMPLE + 6, y, TN__ANCHOR_START, FONT, false, INK, name);
    return SAMPLE + 6 + tn__text_width(name, FONT) + ENTRY_GAP;
}

/* In rows above the plot; gives the number of rows. Without a canvas they are counted. */
static int put_legend(tn__canvas *canvas, const tn__panel *panel, double left, double right, double y)
{
    double x = left;
    int rows = 0;
    for (int i = 0; i < panel->item_count; i++) {
        const tn__plot_item *item = &panel->items[i];
        if (!item->name)
            continue;
        double width = legend_entry(NULL, item, 0, 0);
        if (rows == 0 || x + width > right + ENTRY_GAP) {
            x = left;
            rows++;
        }
        legend_entry(canvas, item, x, y + LEGEND * (rows - 1));
        x += width;
    }
    return rows;
}

/* ---- the whole ---- */

static double label_width(const frame *f)
{
    double width = 0, value;
    char text[48];
    for (int i = 0; tn__axis_tick(&f->y, i, &value); i++) {
        tick_label(f, &f->y, value, text);
        width = fmax(width, tn__text_width(text, FONT));
    }
    return width;
}

static void put_panel(tn__canvas *canvas, const tn__panel *panel, double left, double top, double width, double height,
                      double *points)
{
    frame f = {.canvas = canvas, .panel = panel, .right = left + width - RIGHT};
    f.bottom = top + height - BOTTOM - (panel->x_label ? X_LABEL : 0);
    f.y = value_axis(panel, (int)(height / Y_SPACING));
    f.left = left + fmax(14 + TICK_GAP + label_width(&f), INDENT);
    double above = top + TOP + (panel->title ? 6 : 0);
    if (panel->title)
        canvas->kind->text(canvas, left + INDENT, above, TN__ANCHOR_START, FONT, true, INK, panel->title);
    above += panel->title ? LEGEND : 0;
    f.top = above + LEGEND * put_legend(canvas, panel, left + INDENT, f.right, above) - 6;
    f.x = x_axis(panel, (int)((f.right - f.left) / X_SPACING));
    put_axes(&f);
    for (int i = 0; i < panel->item_count; i++)
        if (panel->items[i].low && panel->items[i].high)
            put_bands(&f, &panel->items[i], points);
    for (int i = 0; i < panel->item_count; i++)
        if (panel->items[i].y)
            put_curve(&f, &panel->items[i], points);
}

tn__plot_item tn__thinned_item(const tn__thinned *curve, const char *name, int colour)
{
    tn__plot_item item = {.name = name, .colour = colour, .count = curve->count, .stride = TN__SPAN_COLUMNS};
    if (curve->count == 0)
        return item;
    item.x = &curve->spans->x;
    item.y = &curve->spans->y;
    if (curve->stride > 1) {
        item.low = &curve->spans->low;
        item.high = &curve->spans->high;
        item.opacity = RANGE_OPACITY;
    }
    return item;
}

/* What a drawing needs beside the plot: the size of a panel, and room for the points of one path. */
typedef struct drawing {
    const tn__plot *plot;
    double width, height, top;
    double *points;
} drawing;

static void draw(tn__canvas *canvas, const void *user)
{
    const drawing *d = user;
    const tn__plot *plot = d->plot;
    if (plot->title) {
        char title[1024];
        cut(plot->title, (int)(canvas->width / tn__text_width("x", TITLE_FONT)) - 6, title, sizeof title);
        canvas->kind->text(canvas, 24, TITLE, TN__ANCHOR_START, TITLE_FONT, true, INK, title);
    }
    for (int i = 0; i < plot->panel_count; i++)
        put_panel(canvas, &plot->panels[i], d->width * (i % plot->columns), d->top + d->height * (i / plot->columns),
                  d->width, d->height, d->points);
}

tn_status tn__plot_write(const tn__plot *plot, const char *path)
{
    size_t most = 1;
    double width = plot->panel_width ? plot->panel_width : WIDTH;
    int legend = 1, rows = (plot->panel_count + plot->columns - 1) / plot->columns;
    for (int i = 0; i < plot->panel_count; i++) {
        int wanted = put_legend(NULL, &plot->panels[i], INDENT, width - RIGHT, 0);
        legend = wanted > legend ? wanted : legend;
        for (int j = 0; j < plot->panels[i].item_count; j++)
            most = plot->panels[i].items[j].count > most ? plot->panels[i].items[j].count : most;
    }
    drawing d = {.plot = plot,
                 .width = width,
                 .height = (plot->panel_height ? plot->panel_height : HEIGHT) + LEGEND * (legend - 1),
                 .top = plot->title ? TITLE : 0,
                 .points = tn__alloc(4 * most * sizeof(double))};
    tn_status status = TN_OK;
    if (d.points)
        status = tn__picture_write(path, (int)width * plot->columns, (int)(d.height * rows + d.top), draw, &d);
    else
        status = tn__fail_memory("plot", 4 * most * sizeof(double));
    tn__free(d.points);
    return status;
}
