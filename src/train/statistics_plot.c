/* SPDX-License-Identifier: MIT */
/*
 * The elements of some arrays over the iterations, as a picture. Looks are rows of numbers; when there are many, every
 * second one goes, and from then on every second look is kept, so that a run of any length has about a thousand.
 */
#include <math.h>
#include <string.h>
#include <tanso/array.h>
#include <tanso/autograd.h>
#include <tanso/engine.h>
#include <tanso/manipulate.h>
#include <tanso/statistics.h>
#include "train/canvas.h"
#include "train/ext.h"
#include "train/plot.h"

#define OPERATION "variable_statistics_plot"
#define MOST_ROWS 1000

/* The outermost two are the least and the greatest element. */
static const double percentiles[] = {0, 0.13, 2.28, 15.87, 50, 84.13, 97.72, 99.87, 100};
enum { PERCENTILES = sizeof percentiles / sizeof *percentiles, BANDS = PERCENTILES / 2 };

/* Columns of a row. */
enum { ITERATION, MEAN, BELOW, ABOVE, FIRST_PERCENTILE, COLUMNS = FIRST_PERCENTILE + PERCENTILES };

typedef struct statistics_plot {
    tn__output output;
    char *path;
    tn_array **arrays;
    int count;
    tn_trigger *every;
    double *rows;
    int64_t row_count, stride, looks; /* each stride-th look is a row */
    bool undrawn;
} statistics_plot;

/* ---- looks ---- */

static tn_status measure(const statistics_plot *p, double row[COLUMNS])
{
    tn_status status = TN_OK;
    TN_SCOPE
        TN_NO_GRAD {
            const tn_array **parts = tn__alloc((size_t)p->count * sizeof *parts);
            for (int i = 0; parts && i < p->count; i++)
                parts[i] = tn_cast(tn_ravel(p->arrays[i]), TN_FLOAT64);
            tn_create_opts there = {.device = tn_device_of(p->arrays[0])};
            tn_array *q = tn_from_host_with(percentiles, (tn_shape){1, {PERCENTILES}}, TN_FLOAT64, &there);
            if (parts) {
                tn_array *x = tn_concatenate(p->count, parts, 0);
                double middle = tn_item(tn_mean_with(x, NULL)), by = tn_item(tn_std_with(x, NULL));
                row[MEAN] = middle;
                row[BELOW] = middle - by;
                row[ABOVE] = middle + by;
                status = tn_to_host(tn_percentile_with(x, q, NULL), &row[FIRST_PERCENTILE], sizeof percentiles);
            } else {
                status = tn__fail_memory(OPERATION, (size_t)p->count * sizeof *parts);
            }
            tn__free(parts);
        }
    return tn__or_latched(status);
}

static void halve(statistics_plot *p)
{
    for (int64_t i = 0; i < p->row_count; i += 2)
        memmove(&p->rows[i / 2 * COLUMNS], &p->rows[i * COLUMNS], COLUMNS * sizeof *p->rows);
    p->row_count = (p->row_count + 1) / 2;
    p->stride *= 2;
}

static tn_status call(tn_trainer *trainer, void *user)
{
    statistics_plot *p = user;
    if (tn_trainer_iteration(trainer) > 0 && !tn_trigger_fire(p->every, trainer))
        return TN_OK;
    if (p->looks++ % p->stride)
        return TN_OK;
    if (p->row_count == MOST_ROWS)
        halve(p);
    if ((p->looks - 1) % p->stride)
        return TN_OK;
    double *row = &p->rows[p->row_count * COLUMNS];
    row[ITERATION] = (double)tn_trainer_iteration(trainer);
    tn_status status = measure(p, row);
    if (status == TN_OK)
        p->row_count++;
    p->undrawn = true;
    return status;
}

/* ---- the picture ---- */

static tn_status draw(statistics_plot *p)
{
    tn__plot_item items[3 + BANDS], *spread = &items[2];
    for (int i = 0; i < 3 + BANDS; i++)
        items[i] = (tn__plot_item){.count = (size_t)p->row_count, .stride = COLUMNS, .x = p->rows, .opacity = 0.16};
    items[0].name = "within one standard deviation"; /* a band alone, so that the axis has room for it */
    items[0].low = &p->rows[BELOW];
    items[0].high = &p->rows[ABOVE];
    items[1].name = "mean";
    items[1].y = &p->rows[MEAN];
    for (int i = 0; i < BANDS; i++) {
        spread[i].low = &p->rows[FIRST_PERCENTILE + i];
        spread[i].high = &p->rows[FIRST_PERCENTILE + PERCENTILES - 1 - i];
    }
    spread[0].name = "all, and one, two, three deviations";
    spread[BANDS].name = "median";
    spread[BANDS].y = &p->rows[FIRST_PERCENTILE + BANDS];
    const tn__panel panels[] = {
        {.x_label = "iteration", .scale = TN__SCALE_LINEAR, .items = items, .item_count = 2},
        {.x_label = "iteration", .scale = TN__SCALE_LINEAR, .items = spread, .item_count = 1 + BANDS}};
    p->undrawn = false;
    return tn__plot_write(&(tn__plot){NULL, panels, 2, 1, 0, 300}, p->path);
}

static void finalize(tn_trainer *trainer, void *user)
{
    (void)trainer;
    statistics_plot *p = user;
    if (p->undrawn)
        draw(p);
}

static tn_status initialize(tn_trainer *trainer, void *user)
{
    statistics_plot *p = user;
    tn__free(p->path);
    p->path = tn__output_path(trainer, p->output.file);
    p->undrawn = p->row_count > 0;
    return p->path ? tn__output_probe(trainer, &p->output, p->path) : TN_ERR_MEMORY;
}

static tn_status serialize(const tn_serializer *s, void *user)
{
    statistics_plot *p = user;
    int64_t numbers = p->row_count * COLUMNS;
    double *rows = s->loading ? NULL : p->rows;
    tn_serialize_trigger(s, "_trigger", p->every);
    tn__serialize_count(s, "_stride", &p->stride);
    tn__serialize_count(s, "_looks", &p->looks);
    tn_status status = tn_serialize_doubles(s, "_rows", &numbers, &rows);
    if (!s->loading || status != TN_OK)
        return status;
    if (numbers % COLUMNS || numbers / COLUMNS > MOST_ROWS || p->stride < 1)
        status = tn__fail(TN_ERR_FORMAT, OPERATION, "the snapshot's %lld numbers are no rows: it is damaged",
                          (long long)numbers);
    else if (numbers)
        memcpy(p->rows, rows, (size_t)numbers * sizeof *rows);
    p->row_count = status == TN_OK ? numbers / COLUMNS : 0;
    tn_serialized_free(rows);
    return status;
}

static void free_plot(void *user)
{
    statistics_plot *p = user;
    tn__trigger_free_taken(p->every);
    tn__free(p->arrays);
    tn__free(p->rows);
    tn__free(p->path);
    tn__free(p->output.file);
    tn__free(p);
}

const tn_extension_kind tn__statistics_plot_kind = {.name = "VariableStatisticsPlot",
                                                    .priority = TN_PRIORITY_READER,
                                                    .initialize = initialize,
                                                    .call = call,
                                                    .finalize = finalize,
                                                    .serialize = serialize,
                                                    .free = free_plot};

tn_extension *tn_variable_statistics_plot_with(int count, tn_array *const *arrays,
                                               const tn_variable_statistics_plot_opts *opts)
{
    static const tn_variable_statistics_plot_opts defaults;
    opts = opts ? opts : &defaults;
    statistics_plot *p = tn__calloc(1, sizeof *p);
    if (!p) {
        tn__trigger_discard(opts->every);
        return tn__extension_of(&tn__statistics_plot_kind, NULL, TN_ERR_MEMORY);
    }
    tn_status status = TN_OK;
    p->every = tn__each_epoch(opts->every, &status);
    p->stride = 1;
    p->output.file = tn__file_option("variable_statistics_plot", opts->file, "statistics.svg", &status);
    p->rows = tn__alloc(MOST_ROWS * COLUMNS * sizeof *p->rows);
    p->arrays = count > 0 ? tn__alloc((size_t)count * sizeof *p->arrays) : NULL;
    if (count < 1 || !arrays)
        status = tn__fail(TN_ERR_VALUE, OPERATION, "expected at least one array, got %d", count);
    else if (!p->rows || !p->arrays)
        status = tn__fail_memory(OPERATION, MOST_ROWS * COLUMNS * sizeof *p->rows);
    if (status == TN_OK) {
        memcpy(p->arrays, arrays, (size_t)count * sizeof *p->arrays);
        p->count = count;
        status = tn__picture_known(p->output.file);
    }
    return tn__extension_of(&tn__statistics_plot_kind, p, status);
}
