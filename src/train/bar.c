/* SPDX-License-Identifier: MIT */
/* Drawing the progress bar, see bar.h. The layout is that of Chainer's. */
#include "train/bar.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>
#include "core/number.h"

#define USUAL_LENGTH 50
/* Of a line beside its bar: "this epoch [] 100.00%", and a column that stays free, as a line that reaches the edge
 * would not be drawn over, but below itself. */
#define BESIDE       22

void tn__bar_begin(tn__bar *bar, FILE *stream, int length)
{
    stream = stream ? stream : stdout;
    *bar = (tn__bar){.stream = isatty(fileno(stream)) ? stream : NULL, .length = length ? length : USUAL_LENGTH};
}

static void put_bar(tn__text *out, const char *name, double share, int width)
{
    share = share < 0 ? 0 : share > 1 ? 1 : share;
    int full = (int)(share * width);
    tn__text_addf(out, "%s [", name);
    for (int i = 0; i < width; i++)
        tn__text_add(out, i < full ? "#" : ".");
    tn__text_addf(out, "]%6.2f%%\n", 100 * share);
}

/* "2 days, 1:02:03" */
static void put_time(tn__text *out, double seconds)
{
    int64_t whole = seconds > 0 && seconds < 1e15 ? (int64_t)seconds : 0, days = whole / 86400;
    if (days)
        tn__text_addf(out, "%" PRId64 " day%s, ", days, days == 1 ? "" : "s");
    tn__text_addf(out, "%" PRId64 ":%02" PRId64 ":%02" PRId64, whole / 3600 % 24, whole / 60 % 60, whole % 60);
}

/* From the oldest drawing that is remembered to now, which is remembered in turn; infinite while nothing is known. */
static double speed_of(tn__bar *bar, int64_t iteration, double now)
{
    int64_t first = bar->drawings > TN__BAR_MEMORY ? bar->drawings - TN__BAR_MEMORY : 0;
    double began = bar->drawn[first % TN__BAR_MEMORY].at;
    int64_t since = bar->drawn[first % TN__BAR_MEMORY].iteration;
    double speed = bar->drawings && now > began ? (double)(iteration - since) / (now - began) : INFINITY;
    bar->drawn[bar->drawings % TN__BAR_MEMORY].at = now;
    bar->drawn[bar->drawings % TN__BAR_MEMORY].iteration = iteration;
    bar->drawings++;
    return speed;
}

void tn__bar_text(tn__bar *bar, const tn__standing *where, double now, int columns, tn__text *out)
{
    double speed = speed_of(bar, where->iteration, now);
    double done = where->epochs ? where->epoch_detail : (double)where->iteration;
    int width = columns - BESIDE < bar->length ? columns - BESIDE : bar->length;
    bool known = where->total > 0;
    if (known && width > 0) {
        put_bar(out, "     total", done / where->total, width);
        put_bar(out, "this epoch", where->epoch_detail - floor(where->epoch_detail), width);
    }
    tn__text_addf(out, "%10" PRId64 " iter, %.0f epoch", where->iteration, floor(where->epoch_detail));
    if (known)
        tn__text_addf(out, " / %.6g %s", where->total, where->epochs ? "epochs" : "iterations");
    tn__text_add(out, "\n");
    if (isfinite(speed))
        tn__text_addf(out, "%10.5g iters/sec.", speed);
    if (known && isfinite(speed)) {
        double left = done > 0 ? ((where->total - done) * (double)where->iteration / done) / speed : 0;
        tn__text_add(out, " Estimated time to finish: ");
        put_time(out, left);
        tn__text_add(out, ".");
    }
    tn__text_add(out, "\n");
}

/* The lines, cut where the terminal ends, and the cursor back on the first one. */
static void put_lines(FILE *stream, const char *text, int columns)
{
    int lines = 0;
    fputs(TN__WIPE, stream);
    for (const char *end; (end = strchr(text, '\n')); text = end + 1, lines++) {
        int length = (int)(end - text);
        fprintf(stream, "%.*s\n", length < columns ? length : columns > 1 ? columns - 1 : 0, text);
    }
    fprintf(stream, "\033[%dA", lines);
    fflush(stream);
}

void tn__bar_draw(tn__bar *bar, const tn__standing *where, double now)
{
    if (!bar->stream)
        return;
    struct winsize window;
    bool told = ioctl(fileno(bar->stream), TIOCGWINSZ, &window) == 0 && window.ws_col;
    int columns = told ? window.ws_col : 80;
    tn__text text = {0};
    tn__bar_text(bar, where, now, columns, &text);
    if (!text.failed && text.data)
        put_lines(bar->stream, text.data, columns);
    tn__free(text.data);
}

void tn__bar_wipe(tn__bar *bar)
{
    if (!bar->stream)
        return;
    fputs(TN__WIPE, bar->stream);
    fflush(bar->stream);
}
