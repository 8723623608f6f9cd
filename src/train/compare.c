/* SPDX-License-Identifier: MIT */
/*
 * Runs beside one another in one picture: a panel a figure, a curve a run. Figures are read from what runs write into
 * their folders: log.jsonl of tn_train and, what is not in there, the log of a log report. Both are JSON objects of
 * numbers by name, one after another; whatever stands between them, and an entry that a crash has cut off, is passed
 * over.
 */
#include <errno.h>
#include <math.h>
#include <string.h>
#include <unistd.h>
#include <tanso/train.h>
#include "core/error.h"
#include "core/log.h"
#include "core/memory.h"
#include "core/number.h"
#include "core/options.h"
#include "io/file.h"
#include "train/canvas.h"
#include "train/plot.h"

#define OPERATION "plot_runs"
#define LOG_LIMIT ((uint64_t)1 << 30)
#define PANELS_MOST 8

enum { PANEL_WIDTH = 440, PANEL_HEIGHT = 320 };

/* What is shown unless keys are given, by the names that both kinds of log have for it. */
static const struct {
    const char *key, *other;
} usual[] = {{"train_loss", "main/loss"},
             {"test_loss", "validation/main/loss"},
             {"test_accuracy", "validation/main/accuracy"}};
enum { USUAL = sizeof usual / sizeof *usual };

/* ---- reading a log ---- */

typedef struct reader {
    const char *at;
    char key[128];
    double value;
} reader;

/* Behind the next `"key": number` of this object; false at its end, or where it is no such. */
static bool next_number(reader *r)
{
    r->at += strcspn(r->at, "\"}");
    if (*r->at != '"')
        return false;
    const char *start = r->at + 1, *end = start;
    while (*end && *end != '"')
        end += *end == '\\' && end[1] ? 2 : 1;
    if (!*end || (size_t)(end - start) >= sizeof r->key)
        return false;
    memcpy(r->key, start, (size_t)(end - start));
    r->key[end - start] = '\0';
    r->at = end + 1 + strspn(end + 1, " \t\r\n");
    if (*r->at != ':')
        return false;
    r->at += 1 + strspn(r->at + 1, " \t\r\n");
    char *rest;
    r->value = tn__read_double(r->at, &rest);
    if (rest == r->at) { /* null, or what is no number */
        r->value = NAN;
        rest += strcspn(rest, ",}");
    }
    r->at = rest;
    return true;
}

/* The figures of one entry: x, and y of each panel, NaN where there is none. */
typedef struct entry {
    double x, y[PANELS_MOST];
} entry;

static bool is_key(const char *key, const char *wanted)
{
    for (int i = 0; i < USUAL; i++)
        if (strcmp(wanted, usual[i].key) == 0 && strcmp(key, usual[i].other) == 0)
            return true;
    return strcmp(key, wanted) == 0;
}

/* The next whole object's that has anything; false at the end of the text. */
static bool next_entry(reader *r, const char *x_key, int count, const char *const *keys, entry *read)
{
    while ((r->at = strchr(r->at, '{'))) {
        *read = (entry){.x = NAN};
        for (int i = 0; i < count; i++)
            read->y[i] = NAN;
        bool any = false;
        for (r->at++; next_number(r); any = true) {
            if (strcmp(r->key, x_key) == 0)
                read->x = r->value;
            for (int i = 0; i < count; i++)
                if (is_key(r->key, keys[i]))
                    read->y[i] = r->value;
        }
        if (*r->at == '}' && any)
            return true;
    }
    return false;
}

/* ---- a run's curves ---- */

/* NULL, and no error, where there is no such file. */
static tn_status read_log(const char *folder, const char *name, uint8_t **text)
{
    char *path = tn__format("%s/%s", folder, name);
    size_t size;
    tn_status status = !path                    ? tn__fail_memory(OPERATION, strlen(folder))
                       : access(path, F_OK) == 0 ? tn__file_read(OPERATION, path, LOG_LIMIT, text, &size)
                                                 : TN_OK;
    tn__free(path);
    return status;
}

/* What a log has of the curves that are `wanted`. */
static tn_status add_points(const char *text, const char *x_key, int count, const char *const *keys,
                            const bool *wanted, tn__thinned *curves)
{
    tn_status status = TN_OK;
    reader r = {.at = text};
    for (entry e; status == TN_OK && next_entry(&r, x_key, count, keys, &e);)
        for (int i = 0; i < count && status == TN_OK && isfinite(e.x); i++)
            if (wanted[i] && isfinite(e.y[i]))
                status = tn__thinned_add(&curves[i], e.x, e.y[i]);
    return status;
}

static bool has_entries(const char *text)
{
    entry e;
    return text && next_entry(&(reader){.at = text}, "", 0, NULL, &e);
}

/* Whether an entry of one evaluation has another loss than the line of its epoch, which has 9 digits. */
static bool differs(const entry *e, const entry *line)
{
    double a = e->y[0], b = line->y[0];
    return isfinite(a) && isfinite(b) && fabs(a - b) > 1e-6 * fmax(fabs(a), fabs(b));
}

/* Whether a log report's list can be of the run that wrote these lines, one an epoch: a folder that was trained in
 * again may have the list of an earlier run. It has no epochs that the lines lack, and the same losses of the test
 * samples. */
static bool is_of_one_run(const char *lines, const char *list)
{
    static const char *const loss[] = {"test_loss"};
    reader from = {.at = lines}, r = {.at = list};
    entry line = {.x = -INFINITY}, e;
    for (double before = 0; next_entry(&r, "epoch", 1, loss, &e); before = isfinite(e.x) ? e.x : before) {
        while (isfinite(e.x) && !(line.x >= e.x))
            if (!next_entry(&from, "epoch", 1, loss, &line))
                return false;
        if (line.x == e.x && e.x - before <= 1 && differs(&e, &line)) /* else a mean of several epochs */
            return false;
    }
    return true;
}

enum { LINES, LIST, LOGS };
static const char *const log_names[LOGS] = {[LINES] = "log.jsonl", [LIST] = "log"};

/* Leaves out what can't be used, and says so. */
static tn_status sift(const char *folder, uint8_t *text[LOGS])
{
    bool good[LOGS];
    for (int k = 0; k < LOGS; k++)
        good[k] = has_entries((const char *)text[k]);
    if (!text[LINES] && !text[LIST])
        return tn__fail(TN_ERR_IO, OPERATION,
                        "'%s' holds no log.jsonl, as 'tanso train' writes, nor a log of a log report: name the folder "
                        "of a run", folder);
    if (!good[LINES] && !good[LIST])
        return tn__fail(TN_ERR_FORMAT, OPERATION, "the log of '%s' holds no whole entry: it is no JSON of a run",
                        folder);
    for (int k = 0; k < LOGS; k++)
        if (text[k] && *text[k] && !good[k])
            tn__log(TN__LOG_WARN, OPERATION, "'%s/%s' holds no whole entry: it is no JSON of a run", folder,
                    log_names[k]);
    if (!good[LINES] || !good[LIST] || is_of_one_run((const char *)text[LINES], (const char *)text[LIST]))
        return TN_OK;
    tn__log(TN__LOG_WARN, OPERATION, "'%s/log' does not agree with log.jsonl beside it, as of another run: it is left "
            "out", folder);
    tn__free(text[LIST]);
    text[LIST] = NULL;
    return TN_OK;
}

/* A figure is taken from the first of the two that has it. */
static tn_status read_curves(const char *folder, const char *x_key, int count, const char *const *keys,
                             tn__thinned *curves)
{
    uint8_t *text[LOGS] = {NULL};
    tn_status status = TN_OK;
    for (int k = 0; k < LOGS && status == TN_OK; k++)
        status = read_log(folder, log_names[k], &text[k]);
    if (status == TN_OK)
        status = sift(folder, text);
    for (int k = 0; k < LOGS && status == TN_OK; k++) {
        bool wanted[PANELS_MOST];
        for (int i = 0; i < count; i++)
            wanted[i] = curves[i].count == 0;
        if (text[k])
            status = add_points((const char *)text[k], x_key, count, keys, wanted, curves);
    }
    for (int k = 0; k < LOGS; k++)
        tn__free(text[k]);
    return status;
}

/* ---- the picture ---- */

/* Panels of figures that no run has are left out; of those that were asked for this is said. */
static tn_status draw(int runs, const char *const *folders, int count, const char *const *keys, bool asked,
                      const char *x_key, const tn__thinned *curves, const char *path)
{
    tn__panel panels[PANELS_MOST];
    tn__plot_item *items = tn__calloc((size_t)(runs * count), sizeof *items);
    if (!items)
        return tn__fail_memory(OPERATION, (size_t)(runs * count) * sizeof *items);
    int shown = 0;
    for (int i = 0; i < count; i++) {
        tn__plot_item *own = items + (size_t)(i * runs);
        int found = 0;
        for (int k = 0; k < runs; k++)
            if (curves[k * count + i].count)
                own[found++] = tn__thinned_item(&curves[k * count + i], folders[k], k);
        if (found)
            panels[shown++] = (tn__panel){.title = keys[i], .x_label = x_key, .items = own, .item_count = found};
    }
    for (int i = 0; i < count && asked && shown; i++)
        if (!items[i * runs].count)
            tn__log(TN__LOG_WARN, OPERATION, "no run has a finite value of '%s' over '%s': it has no panel", keys[i],
                    x_key);
    tn_status status = TN_OK;
    if (shown == 0)
        status = tn__fail(TN_ERR_VALUE, OPERATION, "no run has a finite value of '%s'%s over '%s'", keys[0],
                          count > 1 ? " or of the other keys" : "", x_key);
    else
        status = tn__plot_write(&(tn__plot){NULL, panels, shown, shown > 3 ? 2 : shown, PANEL_WIDTH, PANEL_HEIGHT},
                                path);
    tn__free(items);
    return status;
}

/* How many runs have a curve; the others are told of. */
static int count_drawn(int runs, const char *const *folders, int count, const tn__thinned *curves)
{
    int drawn = 0;
    for (int k = 0; k < runs; k++) {
        bool any = false;
        for (int i = 0; i < count; i++)
            any |= curves[k * count + i].count > 0;
        drawn += any;
        if (!any)
            tn__log(TN__LOG_WARN, OPERATION, "'%s' has no finite value of what is drawn: it has no curve", folders[k]);
    }
    return drawn;
}

static tn_status check(int runs, const char *const *folders, const char *path, const tn_plot_runs_opts *opts)
{
    if (runs < 1 || !folders || !path)
        return tn__fail(TN_ERR_VALUE, OPERATION, "expected folders of runs and the path of a picture, got %s",
                        runs < 1 ? "no folder" : "NULL");
    for (int k = 0; k < runs; k++)
        if (!folders[k])
            return tn__fail(TN_ERR_VALUE, OPERATION, "expected %d folders, and number %d is NULL", runs, k + 1);
    int count = 0;
    while (opts->keys && opts->keys[count])
        count++;
    if (opts->keys && (count < 1 || count > PANELS_MOST))
        return tn__fail(TN_ERR_VALUE, OPERATION, "expected 1 to %d keys, got %d", PANELS_MOST, count);
    return tn__picture_known(path);
}

tn_status tn_plot_runs_with(int count, const char *const *folders, const char *path, const tn_plot_runs_opts *opts)
{
    static const tn_plot_runs_opts defaults;
    TN__NO_PLACE();
    opts = opts ? opts : &defaults;
    tn_status status = check(count, folders, path, opts);
    if (status != TN_OK)
        return status;
    const char *keys[PANELS_MOST], *x_key = opts->x_key ? opts->x_key : "epoch";
    int panels = 0;
    for (; opts->keys ? opts->keys[panels] != NULL : panels < USUAL; panels++)
        keys[panels] = opts->keys ? opts->keys[panels] : usual[panels].key;
    tn__thinned *curves = tn__calloc((size_t)(count * panels), sizeof *curves);
    if (!curves)
        return tn__fail_memory(OPERATION, (size_t)(count * panels) * sizeof *curves);
    for (int k = 0; k < count && status == TN_OK; k++)
        status = read_curves(folders[k], x_key, panels, keys, curves + (size_t)(k * panels));
    if (status == TN_OK)
        status = draw(count, folders, panels, keys, opts->keys != NULL, x_key, curves, path);
    int drawn = status == TN_OK ? count_drawn(count, folders, panels, curves) : 0;
    if (opts->drawn)
        *opts->drawn = drawn;
    for (int i = 0; i < count * panels; i++)
        tn__thinned_free(&curves[i]);
    tn__free(curves);
    return status;
}
