/* SPDX-License-Identifier: MIT */
/* Progress for people, see report.h. */
#include "train/report.h"

#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>
#include "core/clock.h"
#include "core/number.h"
#include "train/run.h"

/* Seconds between two drawings of the bar, and between two plain lines within an epoch. */
#define REDRAW_SECONDS 0.1
#define PLAIN_SECONDS  10.0
#define LONGEST_BAR    40

/* 1234567 as "1,234,567". */
static const char *grouped(double value, char text[40])
{
    char digits[32];
    int length = snprintf(digits, sizeof digits, "%.0f", value > 0 && value < 1e18 ? value : 0), put = 0;
    for (int i = 0; i < length; i++) {
        if (i > 0 && (length - i) % 3 == 0)
            text[put++] = ',';
        text[put++] = digits[i];
    }
    text[put] = 0;
    return text;
}

/* 75 as "1:15", 3675 as "1:01:15". */
static const char *as_time(double seconds, char text[40])
{
    long whole = seconds > 0 && seconds < 1e9 ? lround(seconds) : 0;
    if (whole >= 3600)
        snprintf(text, 40, "%ld:%02ld:%02ld", whole / 3600, whole / 60 % 60, whole % 60);
    else
        snprintf(text, 40, "%ld:%02ld", whole / 60, whole % 60);
    return text;
}

static void erase_bar(tn__report *report)
{
    if (report->bar_shown)
        fputs("\r\033[K", report->stream);
    report->bar_shown = false;
}

void tn__report_begin(tn__report *report, FILE *stream, int epochs, int64_t samples)
{
    *report = (tn__report){.stream = stream, .epochs = epochs, .samples = samples};
    report->terminal = stream && isatty(fileno(stream));
}

void tn__report_line(tn__report *report, const char *format, ...)
{
    if (!report->stream)
        return;
    erase_bar(report);
    va_list args;
    va_start(args, format);
    locale_t before = tn__c_locale_enter();
    vfprintf(report->stream, format, args);
    tn__c_locale_leave(before);
    va_end(args);
    fputc('\n', report->stream);
    fflush(report->stream);
}

void tn__report_epoch_begins(tn__report *report)
{
    report->done = 0;
    report->epoch_began = tn__seconds();
    report->next_draw = report->epoch_began + (report->terminal ? REDRAW_SECONDS : PLAIN_SECONDS);
}

static void draw_bar(tn__report *report, int epoch, double share, const char *figures)
{
    struct winsize window;
    char head[48], bar[LONGEST_BAR + 1];
    int columns = ioctl(fileno(report->stream), TIOCGWINSZ, &window) == 0 && window.ws_col ? window.ws_col : 80;
    int head_length = snprintf(head, sizeof head, "epoch %d/%d ", epoch, report->epochs);
    int room = columns - head_length - 10; /* a line that reaches the edge would not be drawn over, but below itself */
    if (room < 0)
        return;
    if ((int)strlen(figures) > room) /* half a number would be another one */
        figures = "";
    int width = room - (int)strlen(figures);
    width = width > LONGEST_BAR ? LONGEST_BAR : width;
    int full = (int)(share * width);
    memset(bar, '-', (size_t)width);
    memset(bar, '#', (size_t)full);
    bar[width] = 0;
    fprintf(report->stream, "\r\033[K%s[%s] %3d%%  %s", head, bar, (int)(100 * share), figures);
    report->bar_shown = true;
}

void tn__report_step(tn__report *report, int epoch, int64_t size)
{
    report->done += size;
    if (!report->stream)
        return;
    double now = tn__seconds();
    if (now < report->next_draw)
        return;
    report->next_draw = now + (report->terminal ? REDRAW_SECONDS : PLAIN_SECONDS);

    double spent = now - report->epoch_began, share = (double)report->done / (double)report->samples;
    double an_epoch = report->pace > 0 ? report->pace : spent / share;
    double left = an_epoch * (report->epochs - epoch) + spent / share - spent;
    char figures[128], rate[40], time[40];
    snprintf(figures, sizeof figures, "%s samples/s, %s left", grouped((double)report->done / spent, rate),
             as_time(left, time));
    if (report->terminal)
        draw_bar(report, epoch, share, figures);
    else
        fprintf(report->stream, "epoch %d/%d: %d%%, %s\n", epoch, report->epochs, (int)(100 * share), figures);
    fflush(report->stream);
}

void tn__report_epoch(tn__report *report, const tn_epoch *figures)
{
    report->pace = figures->seconds;
    if (!report->stream)
        return;
    char total[16], accuracy[40] = "", rate[40];
    int width = snprintf(total, sizeof total, "%d", report->epochs);
    if (isfinite(figures->test_accuracy))
        tn__print_into(accuracy, sizeof accuracy, "  accuracy %5.2f%%", 100 * figures->test_accuracy);
    tn__report_line(report, "epoch %*d/%s  train loss %.4f  test loss %.4f%s  %.*f s  %s samples/s", width,
                    figures->epoch, total, figures->train_loss, figures->test_loss, accuracy,
                    figures->seconds < 1 ? 3 : 2, figures->seconds, grouped(figures->samples_per_second, rate));
}

void tn__report_end(tn__report *report)
{
    if (!report->stream)
        return;
    erase_bar(report);
    fflush(report->stream);
}
