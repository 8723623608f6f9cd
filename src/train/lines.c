/* SPDX-License-Identifier: MIT */
/* Progress for people as lines of text, see lines.h. */
#include "train/lines.h"

#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <unistd.h>
#include "core/clock.h"
#include "core/number.h"
#include "train/bar.h"

/* Between two lines within an epoch. */
#define PLAIN_SECONDS 10.0

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

void tn__lines_begin(tn__lines *lines, FILE *stream, int epochs, int64_t samples)
{
    *lines = (tn__lines){.stream = stream, .epochs = epochs, .samples = samples};
    lines->terminal = stream && isatty(fileno(stream));
    lines->next = tn__seconds() + PLAIN_SECONDS;
}

void tn__lines_say(tn__lines *lines, const char *format, ...)
{
    if (!lines->stream)
        return;
    if (lines->terminal)
        fputs(TN__WIPE, lines->stream);
    va_list args;
    va_start(args, format);
    locale_t before = tn__c_locale_enter();
    vfprintf(lines->stream, format, args);
    tn__c_locale_leave(before);
    va_end(args);
    fputc('\n', lines->stream);
    fflush(lines->stream);
}

void tn__line_within(tn__lines *lines, int epoch, int64_t done, int64_t here, double spent)
{
    if (!lines->stream || lines->terminal || spent <= 0 || here <= 0)
        return;
    double now = tn__seconds();
    if (now < lines->next)
        return;
    lines->next = now + PLAIN_SECONDS;
    double rate = (double)here / spent, whole = (double)lines->samples / rate;
    double an_epoch = lines->pace > 0 ? lines->pace : whole;
    double left = an_epoch * (lines->epochs - epoch) + (double)(lines->samples - done) / rate;
    char samples[40], time[40];
    tn__lines_say(lines, "epoch %d/%d: %d%%, %s samples/s, %s left", epoch, lines->epochs,
             (int)(100 * (double)done / (double)lines->samples), grouped(rate, samples), as_time(left, time));
}

void tn__line_of_epoch(tn__lines *lines, const tn_epoch *figures)
{
    lines->pace = figures->seconds;
    lines->next = tn__seconds() + PLAIN_SECONDS;
    if (!lines->stream)
        return;
    char total[16], accuracy[40] = "", rate[40];
    int width = snprintf(total, sizeof total, "%d", lines->epochs);
    if (isfinite(figures->test_accuracy))
        tn__print_into(accuracy, sizeof accuracy, "  accuracy %5.2f%%", 100 * figures->test_accuracy);
    tn__lines_say(lines, "epoch %*d/%s  train loss %.4f  test loss %.4f%s  %.*f s  %s samples/s", width, figures->epoch,
             total, figures->train_loss, figures->test_loss, accuracy, figures->seconds < 1 ? 3 : 2, figures->seconds,
             grouped(figures->samples_per_second, rate));
}
