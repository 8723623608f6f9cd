/* SPDX-License-Identifier: MIT */
/* Round ticks, see axis.h. */
#include "train/axis.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include "core/number.h"

/* 1, 2 or 5 times a power of ten, so that about `ticks` steps make up the range. */
static double round_step(double range, int ticks)
{
    double raw = range / ticks, power = pow(10, floor(log10(raw))), factor = raw / power;
    return power * (factor < 1.5 ? 1 : factor < 3.5 ? 2 : factor < 7.5 ? 5 : 10);
}

/* A range that numbers can tell apart, and whose width is one. */
static void widen(double *low, double *high)
{
    if (!(*low <= *high))
        *low = 0, *high = 1;
    *low = fmax(*low, -1e300);
    *high = fmin(*high, 1e300);
    double size = fmax(fabs(*low), fabs(*high));
    if (*high - *low <= 1e-9 * size || *high - *low < 1e-290) {
        double by = size < 1e-280 ? 0.5 : size / 2;
        *low -= by;
        *high += by;
    }
}

tn__axis tn__axis_linear(double low, double high, int ticks)
{
    widen(&low, &high);
    return (tn__axis){false, low, high, round_step(high - low, ticks)};
}

tn__axis tn__axis_round(double low, double high, int ticks)
{
    tn__axis a = tn__axis_linear(low, high, ticks);
    a.low = a.step * floor(a.low / a.step + 1e-6);
    a.high = a.step * ceil(a.high / a.step - 1e-6);
    return a;
}

tn__axis tn__axis_log(double low, double high, int ticks)
{
    double first = floor(log10(low) + 1e-9), last = ceil(log10(high) - 1e-9);
    last = last > first ? last : first + 1;
    /* No decade is left empty but for the part that a tick of 2 or 5 cuts off. */
    double least = pow(10, first), most = pow(10, last);
    for (int i = 0; i < 2 && last - first < ticks; i++) {
        double start = least * (i ? 2 : 5), end = most / (i ? 2 : 5);
        least = start <= low && least == pow(10, first) && start < high ? start : least;
        most = end >= high && most == pow(10, last) && end > least ? end : most;
    }
    return (tn__axis){true, least, most, fmax(1, ceil((last - first) / ticks))};
}

double tn__axis_place(const tn__axis *a, double value)
{
    return a->log ? log(value / a->low) / log(a->high / a->low) : (value - a->low) / (a->high - a->low);
}

/* Of a logarithmic axis of few decades 2 and 5 are ticks, too. */
static bool log_tick(const tn__axis *a, int i, double *value)
{
    static const double factors[] = {1, 2, 5};
    double decades = log10(a->high / a->low);
    int parts = decades < 3 ? 3 : 1;
    double first = floor(log10(a->low) + 1e-9);
    int before = 0;
    while (before < parts && pow(10, first) * factors[before] < a->low * (1 - 1e-9))
        before++;
    i += before;
    *value = pow(10, first + i / parts * a->step) * factors[i % parts];
    return *value <= a->high * (1 + 1e-9);
}

bool tn__axis_tick(const tn__axis *a, int i, double *value)
{
    if (a->log)
        return log_tick(a, i, value);
    *value = a->step * (ceil(a->low / a->step - 1e-6) + i);
    if (fabs(*value) < a->step * 1e-6)
        *value = 0;
    return *value <= a->high + a->step * 1e-6;
}

/* Significant digits before a power of ten. */
#define POWER_DIGITS 4

/* "2·10⁻⁴" */
static void put_power(double value, char text[32])
{
    static const char *const digits[] = {"⁰", "¹", "²", "³", "⁴", "⁵", "⁶", "⁷", "⁸", "⁹"};
    char plain[32];
    tn__print_into(plain, sizeof plain, "%.*e", POWER_DIGITS - 1, value);
    char *e = strchr(plain, 'e');
    int power = 0;
    sscanf(e + 1, "%d", &power);
    while (e[-1] == '0')
        e--;
    if (e[-1] == '.')
        e--;
    *e = '\0';
    int at = snprintf(text, 32, "%s%s10%s", strcmp(plain, "1") == 0 ? "" : plain, strcmp(plain, "1") == 0 ? "" : "·",
                      power < 0 ? "⁻" : "");
    char number[8];
    snprintf(number, sizeof number, "%d", power < 0 ? -power : power);
    for (const char *d = number; *d; d++)
        at += snprintf(text + at, 32 - (size_t)at, "%s", digits[*d - '0']);
}

void tn__axis_label(const tn__axis *a, double value, char text[32])
{
    static const struct {
        double size;
        const char *letter;
    } letters[] = {{1e9, "G"}, {1e6, "M"}, {1e3, "k"}};
    double most = fmax(fabs(a->low), fabs(a->high)), size = fabs(value);
    /* So many digits tell neighbours apart. */
    int digits = a->log ? POWER_DIGITS : (int)ceil(log10(most / a->step) + 1e-6) + 1;
    digits = digits < 3 ? 3 : digits > 15 ? 15 : digits;
    bool power = a->log ? size < 0.9e-3 || size >= 1e12 : most < 1e-3 || most >= 1e12;
    if (size > 0 && power && digits <= POWER_DIGITS) {
        put_power(value, text);
        return;
    }
    power = power && size > 0;
    for (int i = 0; i < 3 && most >= 1e4 && !power; i++)
        if (size >= letters[i].size * (1 - 1e-9)) {
            tn__print_into(text, 32, "%.*g%s", digits, value / letters[i].size, letters[i].letter);
            return;
        }
    if (a->log || power)
        tn__print_into(text, 32, "%.*g", digits, value);
    else /* neighbours look alike */
        tn__print_into(text, 32, "%.*f", (int)fmax(0, ceil(-log10(a->step) - 1e-6)), value);
}
