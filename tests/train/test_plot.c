/* SPDX-License-Identifier: MIT */
/* Pictures of curves: round ticks, curves of any number of points in constant memory, gaps, bands, both kinds of files.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <math.h>
#include "support/folder.h"
#include "support/fresh_folder.h"
#include "support/latched.h"
#include "support/random.h"
#include "support/svg.h"
#include "tn_build_config.h"
#include "train/axis.h"
#include "train/canvas.h"
#include "train/plot.h"
#include "train/strokes.h"

static test_random chance;

/* ---- axes ---- */

static bool is_round(double value)
{
    if (value == 0)
        return true;
    double factor = fabs(value) / pow(10, floor(log10(fabs(value)) - 1 + 1e-9));
    return fabs(factor - round(factor)) < 1e-6 * factor;
}

static void assert_axis(tn__axis a, double low, double high, int most)
{
    double value, before = -INFINITY;
    char text[32], last[32] = "";
    int count = 0;
    assert_true(a.low < a.high);
    for (; tn__axis_tick(&a, count, &value); count++) {
        double place = tn__axis_place(&a, value);
        assert_true(value > before && place > -1e-6 && place < 1 + 1e-6);
        assert_true(is_round(a.log ? value : a.step));
        tn__axis_label(&a, value, text);
        assert_string_not_equal(text, last);
        strcpy(last, text);
        before = value;
    }
    if (count < 1 || count > most)
        fail_msg("%d ticks from %g to %g", count, low, high);
    assert_true(tn__axis_place(&a, low) > -1e-6 && tn__axis_place(&a, high) < 1 + 1e-6);
}

static void test_axes(void **state)
{
    (void)state;
    for (int round = 0; round < 2000; round++) {
        double size = pow(10, (double)test_random_int(&chance, -200, 200));
        double low = size * (test_random_double(&chance) - 0.5), high = low + size * test_random_double(&chance);
        if (round % 5 == 0)
            high = low;
        if (round % 7 == 0)
            low = high *= 1e-3, high += fabs(low) * 1e-4; /* far from zero */
        int ticks = (int)test_random_int(&chance, 3, 10);
        assert_axis(tn__axis_linear(low, high, ticks), low, high, 2 * ticks + 2);
        assert_axis(tn__axis_round(low, high, ticks), low, high, 2 * ticks + 2);
        low = size;
        high = size * pow(10, 30 * test_random_double(&chance) * test_random_double(&chance));
        assert_axis(tn__axis_log(low, high, ticks), low, high, 3 * ticks + 6);
    }
}

static void test_labels(void **state)
{
    (void)state;
    static const struct {
        double low, high, value;
        const char *text;
    } known[] = {{0, 1, 0.2, "0.2"},        {0, 1, 0, "0.0"},           {0.9, 0.91, 0.902, "0.902"},
                 {0, 10, 2, "2"},           {0, 8000, 2000, "2000"},    {0, 20000, 5000, "5k"},
                 {0, 1e6, 200000, "200k"},  {0, 1e6, 1e6, "1M"},        {0, 3e9, 2.5e9, "2.5G"},
                 {0, 5e-5, 2e-5, "2·10⁻⁵"}, {0, 1e-12, 1e-12, "10⁻¹²"}, {-1, 1, -0.5, "-0.5"}};
    char text[32];
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        tn__axis a = tn__axis_round(known[i].low, known[i].high, 5);
        tn__axis_label(&a, known[i].value, text);
        if (strcmp(text, known[i].text))
            fail_msg("%g from %g to %g: expected %s, got %s", known[i].value, known[i].low, known[i].high,
                     known[i].text, text);
    }
    tn__axis a = tn__axis_log(1e-7, 1, 6);
    tn__axis_label(&a, 1e-6, text);
    assert_string_equal(text, "10⁻⁶");
    tn__axis_label(&a, 0.01, text);
    assert_string_equal(text, "0.01");
}

/* ---- curves ---- */

static void test_thinned(void **state)
{
    (void)state;
    static const int counts[] = {0, 1, 2, 3, 1023, 1024, 1025, 2047, 2049, 100003};
    for (size_t c = 0; c < sizeof counts / sizeof *counts; c++) {
        tn__thinned curve = {0}, copy = {0};
        double least = INFINITY, most = -INFINITY, sum = 0;
        int count = counts[c], finite = 0, half = (int)test_random_int(&chance, 0, count);
        for (int i = 0; i < count; i++) {
            double y = test_random_bits(&chance) % 10 ? test_random_double(&chance) : NAN;
            assert_int_equal(tn__thinned_add(&curve, i, y), TN_OK);
            if (i + 1 == half)
                assert_int_equal(tn__thinned_restore(&copy, (double *)curve.spans, curve.count), TN_OK);
            if (i >= half)
                assert_int_equal(tn__thinned_add(&copy, i, y), TN_OK);
            if (isnan(y))
                continue;
            least = fmin(least, y);
            most = fmax(most, y);
            sum += y;
            finite++;
        }
        /* Nothing is lost in the sums, and a curve that was saved half way goes on as the other. */
        double low = INFINITY, high = -INFINITY, mean = 0, points = 0, before = -1;
        for (size_t i = 0; i < curve.count; i++) {
            const tn__span *s = &curve.spans[i];
            assert_true(s->x > before);
            before = s->x;
            points += s->points;
            low = fmin(low, s->low);
            high = fmax(high, s->high);
            mean += s->finite ? s->y * s->finite : 0;
        }
        assert_true(curve.count <= TN__THINNED_MOST &&
                    (count < 1025 ? curve.count == (size_t)count : curve.count >= 512));
        assert_true(points == count && (!finite || (low == least && high == most)));
        assert_true(fabs(mean - sum) <= 1e-9 * (count + 1));
        assert_true(half == 0 || (copy.count == curve.count &&
                                  memcmp(copy.spans, curve.spans, curve.count * sizeof(tn__span)) == 0));
        tn__thinned_free(&curve);
        tn__thinned_free(&copy);
    }
    tn__thinned curve = {0};
    const double none[] = {1, 2, 2, 2, 3, 1};
    assert_int_equal(tn__thinned_restore(&curve, none, 1), TN_ERR_FORMAT);
    assert_failed(TN_ERR_FORMAT, "damaged");
    tn__thinned_free(&curve);
}

/* ---- pictures ---- */

static char *draw(const tn__panel *panels, int count, int columns)
{
    const char *path = test_path(folder, "plot.svg");
    tn__plot plot = {.title = "a <title>", .panels = panels, .panel_count = count, .columns = columns};
    if (tn__plot_write(&plot, path) != TN_OK)
        fail_msg("%s", tn_error());
    char *svg = test_read(path, NULL);
    test_well_formed(svg);
    return svg;
}

/* All that is drawn lies on the picture. */
static void assert_inside(const char *svg)
{
    double width, height, x, y;
    assert_int_equal(sscanf(strstr(svg, "width="), "width=\"%lf\" height=\"%lf\"", &width, &height), 2);
    for (const char *at = svg; (at = strpbrk(at, "ML")); at++) {
        if (sscanf(at + 1, "%lf %lf", &x, &y) != 2)
            continue;
        if (!(x >= 0 && x <= width && y >= 0 && y <= height))
            fail_msg("%g %g outside %g %g", x, y, width, height);
    }
    for (const char *at = svg; (at = strstr(at, "<circle")); at++) {
        assert_int_equal(sscanf(at, "<circle cx=\"%lf\" cy=\"%lf\"", &x, &y), 2);
        assert_true(x >= 0 && x <= width && y >= 0 && y <= height);
    }
}

static void test_any_curves(void **state)
{
    (void)state;
    static const char *const names[] = {
        "main/loss", "validation/main/loss", "lr", "<&>",
        "a very long name of a key, longer than what a legend has room for, with an end"};
    for (int round = 0; round < 60; round++) {
        tn__thinned curves[12] = {0};
        tn__plot_item items[12];
        int count = (int)test_random_int(&chance, 1, 12);
        double size = pow(10, (double)test_random_int(&chance, -300, 300)), x = 0;
        for (int i = 0; i < count; i++) {
            int points = (int)test_random_int(&chance, 0, round % 10 ? 100 : 5000);
            for (int k = 0; k < points; k++) {
                double y = size * (test_random_double(&chance) - (round % 2) * 0.5);
                x += test_random_double(&chance);
                assert_int_equal(tn__thinned_add(&curves[i], x, test_random_bits(&chance) % 9 ? y : -INFINITY), TN_OK);
            }
            items[i] = tn__thinned_item(&curves[i], names[i % 5], i);
        }
        tn__panel panels[3];
        for (int i = 0; i < 3; i++)
            panels[i] = (tn__panel){.title = i ? "panel" : NULL,
                                    .x_label = i < 2 ? "iteration" : NULL,
                                    .scale = (tn__scale)i,
                                    .items = items,
                                    .item_count = count};
        char *svg = draw(panels, 3, 1 + round % 3);
        assert_inside(svg);
        assert_int_equal(test_count(svg, ">iteration<"), 2);
        assert_int_equal(test_count(svg, ">lr<"), count > 7 ? 6 : count > 2 ? 3 : 0);
        assert_int_equal(test_count(svg, "&lt;&amp;&gt;"), count > 8 ? 6 : count > 3 ? 3 : 0);
        free(svg);
        for (int i = 0; i < count; i++)
            tn__thinned_free(&curves[i]);
    }
}

/* One point is a dot; a gap parts a line; a million points are a small picture with a band. */
static void test_shapes(void **state)
{
    (void)state;
    tn__thinned curve = {0};
    tn__plot_item item;
    tn__panel panel = {.items = &item, .item_count = 1};
    assert_int_equal(tn__thinned_add(&curve, 600, 0.5), TN_OK);
    item = tn__thinned_item(&curve, "loss", 0);
    char *svg = draw(&panel, 1, 1);
    assert_int_equal(test_count(svg, "<circle"), 1);
    free(svg);
    for (int i = 1; i < 10; i++)
        assert_int_equal(tn__thinned_add(&curve, 600 + i, i == 5 ? NAN : 0.5), TN_OK);
    item = tn__thinned_item(&curve, "loss", 0);
    svg = draw(&panel, 1, 1);
    assert_int_equal(test_count(svg, "<circle"), 9);
    assert_int_equal(test_count(svg, "stroke-width=\"2\""), 3); /* two parts and the legend */
    free(svg);
    for (int i = 0; i < 1000000; i++)
        assert_int_equal(tn__thinned_add(&curve, 610 + i, 0.5 + test_random_double(&chance)), TN_OK);
    item = tn__thinned_item(&curve, "loss", 0);
    svg = draw(&panel, 1, 1);
    assert_true(strlen(svg) < 150000);
    assert_int_equal(test_count(svg, "<circle"), 0);
    assert_true(test_count(svg, "fill-opacity") >= 1);
    assert_int_equal(test_count(svg, ">1M<"), 1);
    free(svg);
    tn__thinned_free(&curve);
}

/* A large range has decades, unless asked otherwise; one with a zero in it has not. */
static void test_scales(void **state)
{
    (void)state;
    for (int round = 0; round < 4; round++) {
        tn__thinned curve = {0};
        for (int i = 0; i < 50; i++)
            assert_int_equal(tn__thinned_add(&curve, i, round == 3 && i == 49 ? 0 : 2.3 * pow(10, -i / 10.0)), TN_OK);
        tn__plot_item item = tn__thinned_item(&curve, "loss", 0);
        tn__panel panel = {.items = &item,
                           .item_count = 1,
                           .scale = round == 1   ? TN__SCALE_LINEAR
                                    : round == 2 ? TN__SCALE_LOG
                                                 : TN__SCALE_AUTO};
        char *svg = draw(&panel, 1, 1);
        assert_int_equal(test_count(svg, ">0.001<"), round == 0 || round == 2);
        assert_int_equal(test_count(svg, ">2.0<"), round == 1 || round == 3);
        free(svg);
        tn__thinned_free(&curve);
    }
}

static void keep_length(double x0, double y0, double x1, double y1, void *user)
{
    *(double *)user += hypot(x1 - x0, y1 - y0);
    assert_true(y0 > -6 && y1 < 14 && x0 >= 0 && x1 >= 0);
}

/* Every letter is something, and bytes that are no UTF-8 end. */
static void test_letters(void **state)
{
    (void)state;
    for (int c = ' ' + 1; c < 127; c++) {
        double length = 0;
        assert_true(tn__strokes((const char[]){(char)c, 0}, 12, keep_length, &length) >= 0);
        assert_true(length > 0);
    }
    for (int round = 0; round < 2000; round++) {
        char bytes[9] = "";
        for (int i = 0; i < 8; i++)
            bytes[i] = (char)test_random_int(&chance, 1, 255);
        double length = 0;
        assert_true(tn__strokes(bytes, 12, keep_length, &length) >= 0);
    }
    assert_true(tn__strokes("", 12, NULL, NULL) == 0);
}

static void test_png(void **state)
{
    (void)state;
    const char *path = test_path(folder, "plot.PNG");
    tn__thinned curve = {0};
    for (int i = 0; i < 5000; i++)
        assert_int_equal(tn__thinned_add(&curve, i, test_random_double(&chance)), TN_OK);
    tn__plot_item items[10];
    for (int i = 0; i < 10; i++)
        items[i] = tn__thinned_item(&curve, "loss", i);
    tn__panel panel = {.title = "10⁻³ · é", .items = items, .item_count = 10};
    tn__plot plot = {.panels = &panel, .panel_count = 1, .columns = 1};
#ifdef TN_HAVE_PNG
    assert_int_equal(tn__plot_write(&plot, path), TN_OK);
    size_t size;
    char *data = test_read(path, &size);
    assert_true(size > 10000 && memcmp(data, "\x89PNG\r\n\x1a\n", 8) == 0);
    assert_memory_equal(data + 16, "\0\0\5\xa0", 4); /* 1440 pixels wide */
    free(data);
#else
    assert_int_equal(tn__plot_write(&plot, path), TN_ERR_UNSUPPORTED);
    assert_failed(TN_ERR_UNSUPPORTED, "libpng");
#endif
    assert_int_equal(tn__plot_write(&plot, test_path(folder, "plot.jpeg")), TN_ERR_VALUE);
    assert_failed(TN_ERR_VALUE, ".svg or .png");
    tn__thinned_free(&curve);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_axes),
        cmocka_unit_test(test_labels),
        cmocka_unit_test(test_thinned),
        cmocka_unit_test_setup_teardown(test_any_curves, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_shapes, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_scales, set_up, tear_down),
        cmocka_unit_test(test_letters),
        cmocka_unit_test_setup_teardown(test_png, set_up, tear_down),
    };
    chance = test_random_new();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
