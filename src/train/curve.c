/* SPDX-License-Identifier: MIT */
/* The learning curve of a run: a panel for the losses, and one for the accuracy where there is one, over epochs. */
#include <math.h>
#include "core/error.h"
#include "core/memory.h"
#include "train/plot.h"
#include "train/run.h"

enum { PANEL_WIDTH = 440, PANEL_HEIGHT = 320 };

enum { LOSS_PANEL, ACCURACY_PANEL };
static const struct {
    const char *name;
    size_t offset; /* of the figure in tn_epoch */
    double scale;
    int panel, colour;
} lines[] = {{"train", offsetof(tn_epoch, train_loss), 1, LOSS_PANEL, 0},
             {"test", offsetof(tn_epoch, test_loss), 1, LOSS_PANEL, 1},
             {"test", offsetof(tn_epoch, test_accuracy), 100, ACCURACY_PANEL, 1}};
enum { LINES = sizeof lines / sizeof *lines };

static tn_status fill(const tn__history *history, tn__thinned curves[LINES])
{
    for (size_t i = 0; i < history->count; i++)
        for (int j = 0; j < LINES; j++) {
            double y = lines[j].scale * *(const double *)((const char *)&history->rows[i] + lines[j].offset);
            if (tn__thinned_add(&curves[j], history->rows[i].epoch, y) != TN_OK)
                return TN_ERR_MEMORY;
        }
    return TN_OK;
}

static tn_status draw(const tn__thinned curves[LINES], bool classifies, const char *title, const char *path)
{
    tn__plot_item items[LINES];
    for (int j = 0; j < LINES; j++)
        items[j] = tn__thinned_item(&curves[j], lines[j].name, lines[j].colour);
    const tn__panel panels[] = {{.title = "loss", .x_label = "epoch", .items = items, .item_count = 2},
                                {.title = "accuracy",
                                 .x_label = "epoch",
                                 .unit = "%",
                                 .most = 100,
                                 .scale = TN__SCALE_LINEAR,
                                 .items = &items[2],
                                 .item_count = 1}};
    int count = classifies ? 2 : 1;
    return tn__plot_write(&(tn__plot){title, panels, count, count, PANEL_WIDTH, PANEL_HEIGHT}, path);
}

tn_status tn__curve_write(const tn__history *history, bool classifies, const char *title, const char *path)
{
    tn__thinned curves[LINES] = {0};
    tn_status status = fill(history, curves);
    if (status == TN_OK)
        status = draw(curves, classifies, title, path);
    for (int j = 0; j < LINES; j++)
        tn__thinned_free(&curves[j]);
    return status;
}
