/* SPDX-License-Identifier: MIT */
/* Epochs' figures: in memory, in snapshots, in log.jsonl. */
#include "train/history.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <tanso/array.h>
#include <tanso/device.h>
#include <tanso/engine.h>
#include "core/error.h"
#include "core/memory.h"
#include "io/file.h"

#define ARRAY_NAME "history"

/* The columns, in the order of both files. */
static const struct {
    const char *name;
    size_t offset; /* of a double in tn_epoch */
} columns[] = {
    {"train_loss", offsetof(tn_epoch, train_loss)},
    {"test_loss", offsetof(tn_epoch, test_loss)},
    {"test_accuracy", offsetof(tn_epoch, test_accuracy)},
    {"seconds", offsetof(tn_epoch, seconds)},
    {"samples_per_second", offsetof(tn_epoch, samples_per_second)},
};
enum { COLUMNS = sizeof columns / sizeof *columns, WIDTH = COLUMNS + 1 };

static double *cell(tn_epoch *row, int column) { return (double *)((char *)row + columns[column].offset); }

void tn__history_free(tn__history *history)
{
    tn__free(history->rows);
    *history = (tn__history){0};
}

tn_status tn__history_add(tn__history *history, const tn_epoch *row)
{
    if (!tn__grow((void **)&history->rows, &history->capacity, history->count + 1, sizeof *row))
        return tn__fail_memory("train", sizeof *row);
    history->rows[history->count++] = *row;
    return TN_OK;
}

/* ---- snapshots ---- */

tn_status tn__history_archive(const tn__history *history, tn_archive *archive)
{
    double *table = tn__alloc(history->count * WIDTH * sizeof *table);
    if (!table)
        return tn__fail_memory("train", history->count * WIDTH * sizeof *table);
    for (size_t i = 0; i < history->count; i++) {
        table[i * WIDTH] = history->rows[i].epoch;
        for (int j = 0; j < COLUMNS; j++)
            table[i * WIDTH + 1 + (size_t)j] = *cell(&history->rows[i], j);
    }
    tn_status status;
    tn_create_opts on_cpu = {.device = tn_cpu()};
    tn__scope_guard scope = tn__scope_enter();
    tn_array *array = tn_from_host_with(table, (tn_shape){2, {(int64_t)history->count, WIDTH}}, TN_FLOAT64, &on_cpu);
    status = tn_archive_add(archive, ARRAY_NAME, array);
    tn__scope_leave(&scope);
    tn__free(table);
    return status;
}

tn_status tn__history_restore(tn__history *history, const tn_archive *archive, const char *file)
{
    tn_array *array = tn_archive_find(archive, ARRAY_NAME);
    if (!array || tn_dtype_of(array) != TN_FLOAT64 || tn_ndim(array) != 2 || tn_dim(array, 1) != WIDTH)
        return tn__fail(TN_ERR_FORMAT, "train",
                        "'%s' holds no \"" ARRAY_NAME "\" of %d columns: it is no snapshot of a training "
                        "run; train without resuming",
                        file, WIDTH);
    const double *table = tn_data(array);
    tn_status status = table ? TN_OK : tn_error_code();
    for (int64_t i = 0; i < tn_dim(array, 0) && status == TN_OK; i++) {
        tn_epoch row = {.epoch = (int)(i + 1)};
        if (table[i * WIDTH] != (double)row.epoch)
            return tn__fail(TN_ERR_FORMAT, "train",
                            "'%s': expected row %d of \"" ARRAY_NAME "\" to be of that epoch, found %.17g: it is "
                            "damaged; train without resuming",
                            file, row.epoch, table[i * WIDTH]);
        for (int j = 0; j < COLUMNS; j++)
            *cell(&row, j) = table[i * WIDTH + 1 + j];
        status = tn__history_add(history, &row);
    }
    return status;
}

/* ---- the log ---- */

static void put_row(tn__text *text, const tn_epoch *row)
{
    tn_epoch copy = *row;
    tn__text_addf(text, "{\"epoch\": %d", row->epoch);
    for (int j = 0; j < COLUMNS; j++) {
        double value = *cell(&copy, j);
        if (isfinite(value))
            tn__text_addf(text, ", \"%s\": %.9g", columns[j].name, value);
        else
            tn__text_addf(text, ", \"%s\": null", columns[j].name);
    }
    tn__text_add(text, "}\n");
}

tn_status tn__history_write_log(const tn__history *history, const char *path)
{
    tn__text text = {0};
    for (size_t i = 0; i < history->count; i++)
        put_row(&text, &history->rows[i]);
    return tn__file_write_text("train", path, &text);
}

/* One write of one line: a log cut off in the middle of a line is mended when the run is resumed. */
tn_status tn__history_append_log(const tn__history *history, const char *path)
{
    tn__text text = {0};
    put_row(&text, &history->rows[history->count - 1]);
    tn_status status = TN_OK;
    FILE *file = text.failed ? NULL : fopen(path, "ae");
    if (text.failed)
        status = tn__fail_memory("train", text.capacity);
    else if (!file)
        status = tn__fail_errno("train", "open", path, errno);
    else if (fwrite(text.data, 1, text.length, file) != text.length || fflush(file) != 0)
        status = tn__fail_errno("train", "write", path, errno);
    if (file && fclose(file) != 0 && status == TN_OK)
        status = tn__fail_errno("train", "write", path, errno);
    tn__free(text.data);
    return status;
}
