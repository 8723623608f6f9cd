/* SPDX-License-Identifier: MIT */
/* A picture of observed values over a run. Points are added by a trigger; the picture is drawn as often as costs little
 * of the time, and at the end. */
#include <string.h>
#include "train/canvas.h"
#include "train/chainer.h"
#include "train/ext.h"
#include "train/late.h"
#include "train/observation.h"
#include "train/pace.h"
#include "train/plot.h"

#define OPERATION "plot_report"
/* Seconds that a picture is put off for what it costs; the first one, which a short run draws at its end. */
#define LONGEST_DELAY 60.0
#define FIRST_DELAY   1.0

typedef struct plot_report {
    tn__output output;
    tn__keys keys;
    char *x_key, *title, *path;
    tn_trigger *every;
    tn_scale scale;
    tn_summary *summary;
    tn__late late;       /* of the last points, if they are not there yet */
    tn__thinned *curves; /* one a key */
    bool undrawn;        /* there are points that are not in the picture */
    tn__pace pace;       /* of drawing */
} plot_report;

static tn_status draw(plot_report *p)
{
    double began = tn__seconds();
    tn__plot_item *items = tn__alloc((size_t)p->keys.count * sizeof *items);
    if (!items)
        return tn__fail_memory(OPERATION, (size_t)p->keys.count * sizeof *items);
    int count = 0;
    for (int i = 0; i < p->keys.count; i++)
        if (p->curves[i].count)
            items[count++] = tn__thinned_item(&p->curves[i], p->keys.names[i], i);
    tn__panel panel = {.x_label = p->x_key, .scale = (tn__scale)p->scale, .items = items, .item_count = count};
    tn_status status = tn__plot_write(&(tn__plot){p->title, &panel, 1, 1, 0, 0}, p->path);
    tn__free(items);
    p->undrawn = false;
    tn__pace_note(&p->pace, began);
    return status;
}

static double x_of(const plot_report *p, tn_summary *means, const tn__place *place)
{
    if (strcmp(p->x_key, "iteration") == 0)
        return place->iteration;
    if (strcmp(p->x_key, "epoch") == 0)
        return place->epoch;
    return tn_summary_mean(means, p->x_key);
}

static tn_status add_points(plot_report *p, tn_summary *means, const tn__place *place)
{
    double x = x_of(p, means, place);
    tn_status status = tn_error_code();
    for (int i = 0; i < p->keys.count && status == TN_OK && x == x; i++)
        if (tn_summary_has(means, p->keys.names[i])) {
            status = tn__thinned_add(&p->curves[i], x, tn_summary_mean(means, p->keys.names[i]));
            status = tn__or_latched(status);
            p->undrawn = true;
        }
    return status;
}

static tn_status add_late(plot_report *p, bool wait)
{
    bool come;
    tn_status status = tn__late_come(&p->late, wait, &come);
    if (status == TN_OK && come)
        status = add_points(p, p->late.means, &p->late.place);
    if (come)
        tn__late_end(&p->late);
    return status;
}

/* Asked of each key in each iteration: most names differ in the first letter. */
static inline bool is_same(const char *a, const char *b) { return *a == *b && strcmp(a, b) == 0; }

static bool is_shown(const plot_report *p, const char *key)
{
    for (int i = 0; i < p->keys.count; i++)
        if (is_same(p->keys.names[i], key))
            return true;
    return is_same(p->x_key, key);
}

static tn_status sum_up(plot_report *p, const tn_observation *seen)
{
    tn_status status = TN_OK;
    tn__observed one;
    for (int i = 0; status == TN_OK && tn__observation_at(seen, i, &one); i++)
        if (is_shown(p, one.key))
            status = one.array ? tn_summary_add(p->summary, one.key, one.array, 0)
                               : tn_summary_add_number(p->summary, one.key, one.number, 0);
    return status;
}

static tn_status call(tn_trainer *trainer, void *user)
{
    plot_report *p = user;
    tn_status status = sum_up(p, tn_trainer_observation(trainer));
    bool due = tn_trainer_iteration(trainer) == 0 || tn_trigger_fire(p->every, trainer);
    if (status == TN_OK && p->late.pending)
        status = add_late(p, due);
    if (status == TN_OK && due)
        status = tn__late_begin(&p->late, &p->summary, trainer);
    if (status != TN_OK || !due)
        return status;
    if (!p->late.pending) {
        tn__place place = tn__place_of(trainer);
        status = add_points(p, p->summary, &place);
        tn_summary_clear(p->summary);
    }
    if (status == TN_OK && p->undrawn && tn__pace_due(&p->pace, LONGEST_DELAY, tn__trainer_now(trainer)))
        status = draw(p);
    return status;
}

static void finalize(tn_trainer *trainer, void *user)
{
    plot_report *p = user;
    add_late(p, true);
    if (p->undrawn)
        draw(p);
    bool whole = tn_trainer_iteration(trainer) > 0 && !*tn_trainer_error(trainer);
    const tn_observation *last = tn_trainer_observation(trainer);
    bool counted = strcmp(p->x_key, "iteration") == 0 || strcmp(p->x_key, "epoch") == 0;
    bool any = counted || tn_observation_has(last, p->x_key);
    for (int i = 0; i < p->keys.count; i++)
        any = any || p->curves[i].count;
    if (whole && !any) /* whatever the keys are */
        tn__warn_missing(OPERATION, p->x_key, last, "there is no curve over it");
    for (int i = 0; i < p->keys.count && whole && any; i++)
        if (!p->curves[i].count && !tn_summary_has(p->summary, p->keys.names[i]))
            tn__warn_missing(OPERATION, p->keys.names[i], last, "it has no curve");
}

static tn_status initialize(tn_trainer *trainer, void *user)
{
    plot_report *p = user;
    tn__free(p->path);
    p->path = tn__output_path(trainer, p->output.file);
    for (int i = 0; i < p->keys.count; i++)
        p->undrawn = p->undrawn || p->curves[i].count; /* of a run that is resumed */
    tn__pace_begin(&p->pace, FIRST_DELAY);
    return p->path ? tn__output_probe(trainer, &p->output, p->path) : TN_ERR_MEMORY;
}

static tn_status take_point(void *curve, double x, double y) { return tn__thinned_add(curve, x, y); }

/* Points alone: what was observed since the last ones is not in its files. */
static tn_status take_chainer_curves(const tn_serializer *s, plot_report *p)
{
    tn_status status = TN_OK;
    tn_summary_clear(p->summary);
    for (int i = 0; i < p->keys.count && status == TN_OK; i++) {
        tn__thinned_free(&p->curves[i]);
        status = tn__chainer_curve(s, p->keys.names[i], take_point, &p->curves[i]);
    }
    return status;
}

static tn_status serialize(const tn_serializer *s, void *user)
{
    plot_report *p = user;
    if (tn__of_chainer(s)) {
        tn_status taken = tn_serialize_trigger(s, "_trigger", p->every);
        return taken == TN_OK ? take_chainer_curves(s, p) : taken;
    }
    tn_serializer points = tn_serializer_in(s, "_points");
    tn_status status = tn_serialize_trigger(s, "_trigger", p->every);
    if (status == TN_OK)
        status = tn_serialize_summary(s, "_summary", p->summary);
    if (status == TN_OK)
        status = tn__late_serialize(s, &p->late);
    for (int i = 0; i < p->keys.count && status == TN_OK; i++)
        status = tn__thinned_serialize(&points, p->keys.names[i], &p->curves[i]);
    return status;
}

static void free_report(void *user)
{
    plot_report *p = user;
    for (int i = 0; p->curves && i < p->keys.count; i++)
        tn__thinned_free(&p->curves[i]);
    tn__free(p->curves);
    tn__keys_free(&p->keys);
    tn__trigger_free_taken(p->every);
    tn_summary_free(p->summary);
    tn__late_free(&p->late);
    tn__free(p->x_key);
    tn__free(p->title);
    tn__free(p->path);
    tn__free(p->output.file);
    tn__free(p);
}

const tn_extension_kind tn__plot_report_kind = TN__REPORT_KIND("PlotReport");

tn_extension *tn_plot_report_with(int count, const char *const *keys, const tn_plot_report_opts *opts)
{
    static const tn_plot_report_opts defaults;
    opts = opts ? opts : &defaults;
    plot_report *p = tn__calloc(1, sizeof *p);
    if (!p) {
        tn__trigger_discard(opts->every);
        return tn__extension_of(&tn__plot_report_kind, NULL, TN_ERR_MEMORY);
    }
    tn_status status = TN_OK;
    p->every = tn__each_epoch(opts->every, &status);
    p->scale = opts->scale;
    p->summary = tn_summary_new_with(NULL);
    p->x_key = tn__key_option("plot_report", opts->x_key, "iteration", &status);
    p->title = tn__shown_option("plot_report", "the title", opts->title, NULL, &status);
    p->output.file = tn__file_option("plot_report", opts->file, "plot.svg", &status);
    if (status == TN_OK)
        status = tn__keys_copy(&p->keys, OPERATION, count, keys);
    if (status == TN_OK)
        status = tn__picture_known(p->output.file);
    if (status == TN_OK && !(p->curves = tn__calloc((size_t)count, sizeof *p->curves)))
        status = tn__fail_memory(OPERATION, (size_t)count * sizeof *p->curves);
    return tn__extension_quiet(tn__extension_of(&tn__plot_report_kind, p, status));
}
