/* SPDX-License-Identifier: MIT */
/* Layers to and from files, and as text. */
#include "nn/layer.h"

#include <inttypes.h>
#include <string.h>
#include <tanso/array.h>
#include <tanso/autograd.h>
#include <tanso/device.h>
#include <tanso/engine.h>
#include <tanso/io.h>
#include "core/options.h"

/* ---- saving ---- */

static tn_status archive_slot(tn_layer *layer, tn__slot *slot, const char *path, void *archive)
{
    if (!slot->value)
        return tn__fail(TN_ERR_STATE, "layer_save",
                        "'%s' of the %s has no shape yet: call tn_forward once, or give the input size, before saving",
                        path, tn__layer_name(layer));
    tn_status status = tn__param_is_here("layer_save", slot->value, path);
    return status == TN_OK ? tn_archive_add(archive, path, slot->value) : status;
}

tn_status tn_layer_save(const tn_layer *layer, const char *path)
{
    TN__NO_PLACE();
    if (!layer || !path)
        return tn__fail(TN_ERR_VALUE, "layer_save", "expected a layer and a path, got NULL");
    tn_status status = tn__layer_raise(layer);
    if (status != TN_OK)
        return status;
    tn_archive *archive = tn_archive_new();
    status = tn__visit_slots((tn_layer *)layer, "", archive_slot, archive); /* which changes nothing */
    if (status == TN_OK)
        status = tn_archive_save(archive, path);
    tn_archive_free(archive);
    return status;
}

/* ---- loading: everything is checked and made first, then put in place by steps that can't fail ---- */

typedef struct loaded {
    tn__slot *slot;
    tn_layer *layer;
    tn_array *value; /* of the loading scope, evaluated; its node is shown by no other handle */
    tn_shape shape;
} loaded;

typedef struct loading {
    const tn_archive *archive;
    const char *file;
    const tn_load_opts *opts; /* not NULL */
    loaded *items;
    size_t count, capacity;
    bool partly;      /* what the file does not hold stays as it is */
    bool open, lacks; /* the file has slots that had no shape yet; it lacks some */
} loading;

static const char *slot_shape_text(const tn_shape *shape, char *text)
{
    tn__shape_text(shape->ndim, shape->dim, text);
    for (char *minus = strstr(text, "-1"); minus; minus = strstr(text, "-1")) {
        minus[0] = '?';
        memmove(minus + 1, minus + 2, strlen(minus + 2) + 1);
    }
    return text;
}

static char *name_in_file(const tn_load_opts *opts, const char *path);

static tn_status not_in_file(const loading *load, const tn__slot *slot, const char *path)
{
    char *sought = name_in_file(load->opts, path);
    bool otherwise = sought && strcmp(sought, path) != 0;
    int count = tn_archive_count(load->archive);
    const char **names = count > 0 ? tn__alloc((size_t)count * sizeof *names) : NULL;
    for (int i = 0; names && i < count; i++)
        names[i] = tn_archive_name(load->archive, i);
    const char *near = names ? tn__nearest_name(sought ? sought : path, names, count) : NULL;
    char text[TN__SHAPE_TEXT];
    tn_status status =
        tn__fail(TN_ERR_NAME, "layer_load",
                 "%s holds no '%s'%s%s%s (shape %s) among its %d arrays%s%s%s: was it saved from another network?",
                 load->file, path, otherwise ? ", as '" : "", otherwise ? sought : "", otherwise ? "'" : "",
                 slot_shape_text(&slot->shape, text), count, near ? "; the nearest is '" : "", near ? near : "",
                 near ? "'" : "");
    tn__free(names);
    tn__free(sought);
    return status;
}

/* True if a file's shape fits a slot's; the inferred extent must be the same in all slots of the layer. */
static bool shape_fits(const loading *load, const tn_layer *layer, const tn_shape *wanted, const tn_shape *got)
{
    if (wanted->ndim != got->ndim)
        return false;
    int64_t features = -1;
    for (size_t i = 0; i < load->count; i++) {
        const loaded *item = &load->items[i];
        for (int k = 0; item->layer == layer && k < item->shape.ndim; k++)
            features = item->slot->shape.dim[k] < 0 ? item->shape.dim[k] : features;
    }
    for (int k = 0; k < wanted->ndim; k++) {
        int64_t extent = wanted->dim[k] < 0 ? features : wanted->dim[k];
        if (extent >= 0 && extent != got->dim[k])
            return false;
    }
    return true;
}

static void replace_all(char *text, char what, char by)
{
    for (char *at = text; (at = strchr(at, what));)
        *at = by;
}

bool tn__load_turns(const tn_load_opts *opts, const tn_layer *layer, const tn__slot *slot, const char *path,
                    tn_status *status)
{
    const char *transposed = opts->chainer || opts->torch ? layer->kind->transposed : NULL;
    bool known = transposed && strcmp(transposed, slot->name) == 0;
    return known || tn__patterns_match("layer_load", opts->transpose, path, status);
}

/* What stands for a name in "W=weight b=bias", ended by a blank; NULL: nothing. */
static const char *renamed(const char *words, const char *name)
{
    size_t length = strlen(name);
    for (const char *word = words; word && *word; word += strcspn(word, " ")) {
        word += strspn(word, " ");
        if (strncmp(word, name, length) == 0 && word[length] == '=')
            return word + length + 1;
    }
    return NULL;
}

/* Whether each word is NAME=OTHER. */
static tn_status check_renaming(const char *words)
{
    for (const char *word = words; word && *word; word += strspn(word, " ")) {
        size_t length = strcspn(word, " "), name = strcspn(word, "= ");
        if (length && (name == 0 || name + 1 >= length))
            return tn__fail(TN_ERR_VALUE, "layer_load", "expected words as W=weight for .rename, got '%.*s'",
                            (int)length, word);
        word += length;
    }
    return TN_OK;
}

/* The path with its last name as the file has it, after the prefix; NULL without memory. */
static char *name_in_file(const tn_load_opts *opts, const char *path)
{
    static const char torch[] =
        "W=weight b=bias gamma=weight beta=bias avg_mean=running_mean avg_var=running_var N=num_batches_tracked";
    const char *dot = strrchr(path, '.'), *last = dot ? dot + 1 : path, *prefix = opts->prefix ? opts->prefix : "";
    const char *instead = renamed(opts->rename, last);
    if (!instead && opts->torch)
        instead = renamed(torch, last);
    if (!instead)
        return tn__format("%s%s", prefix, path);
    return tn__format("%s%.*s%.*s", prefix, (int)(last - path), path, (int)strcspn(instead, " "), instead);
}

/* What the file has under a name: an array or NULL; *is_open: what was saved had no shape yet. */
static tn_array *find_named(const loading *load, const char *name, bool *is_open)
{
    tn_array *stored = tn_archive_find(load->archive, name);
    const char *text = stored ? NULL : tn_archive_text(load->archive, name);
    *is_open = text && strcmp(text, TN__TO_INFER) == 0;
    return stored;
}

/* The same under a path, with dots between names or with slashes, in the prefix, too, whichever that is written with:
 * first as it stands, then with slashes behind the prefix, then with slashes or dots everywhere. */
static tn_array *find_stored(const loading *load, const char *path, bool *is_open)
{
    char *name = name_in_file(load->opts, path);
    size_t before = load->opts->prefix ? strlen(load->opts->prefix) : 0;
    if (!name)
        return tn__fail_memory("layer_load", strlen(path) + 1), tn__failed_array();
    tn_array *stored = find_named(load, name, is_open);
    const struct {
        size_t from;
        char what, by;
    } other[] = {{before, '.', '/'}, {0, '.', '/'}, {0, '/', '.'}};
    for (int i = 0; i < 3 && !stored && !*is_open; i++) {
        replace_all(name + other[i].from, other[i].what, other[i].by);
        stored = find_named(load, name, is_open);
    }
    tn__free(name);
    return stored;
}

/* What Chainer calls otherwise, by the layer's kind; NULL: the file has none of it. */
static tn_array *from_chainer(const loading *load, const tn_layer *layer, const tn__slot *slot, const char *path)
{
    if (!load->opts->chainer || !layer->kind->from_chainer)
        return NULL;
    const char *dot = strrchr(path, '.');
    char *before = tn__format("%s%.*s", load->opts->prefix ? load->opts->prefix : "", dot ? (int)(dot + 1 - path) : 0,
                              path);
    if (!before)
        return tn__fail_memory("layer_load", strlen(path) + 1), tn__failed_array();
    replace_all(before, '.', '/');
    tn_array *stored = layer->kind->from_chainer(layer, slot, load->archive, before);
    tn__free(before);
    return stored;
}

/* The array for a slot as the file has it, transposed where that was asked for. */
static tn_array *stored_for(const loading *load, const tn_layer *layer, const tn__slot *slot, const char *path,
                            bool *is_open)
{
    tn_status status = TN_OK;
    tn_array *stored = from_chainer(load, layer, slot, path);
    if (stored)
        return stored;
    stored = find_stored(load, path, is_open);
    bool transposed = stored && !tn_is_error(stored) && tn__load_turns(load->opts, layer, slot, path, &status);
    if (status != TN_OK)
        return tn__failed_array();
    if (transposed && tn_ndim(stored) != 2) {
        tn__fail(TN_ERR_SHAPE, "layer_load", "'%s' is to be transposed and has %d axes in %s, expected 2", path,
                 tn_ndim(stored), load->file);
        return tn__failed_array();
    }
    return transposed ? tn_transpose(stored, (tn_axes){0}) : stored;
}

static tn_status load_slot(tn_layer *layer, tn__slot *slot, const char *path, void *user)
{
    loading *load = user;
    tn_status status = TN_OK;
    if (tn__patterns_match("layer_load", load->opts->ignore, path, &status) || status != TN_OK)
        return status;
    bool is_open = false;
    tn_array *stored = stored_for(load, layer, slot, path, &is_open);
    load->open = load->open || is_open;
    if (is_open)
        return TN_OK; /* it stays as it is: to be inferred, or with its first weights */
    if (!stored) {
        load->lacks = true;
        return load->partly ? TN_OK : not_in_file(load, slot, path);
    }
    if (tn_is_error(stored))
        return tn_status_of(stored);
    tn_shape shape = tn_shape_of(stored);
    char wanted[TN__SHAPE_TEXT], got[TN__SHAPE_TEXT];
    bool turned = tn__load_turns(load->opts, layer, slot, path, &status);
    if (!shape_fits(load, layer, &slot->shape, &shape))
        return tn__fail(TN_ERR_SHAPE, "layer_load",
                        "'%s' has shape %s in %s%s, and the network's is %s: it was saved from another one%s", path,
                        tn__shape_text(shape.ndim, shape.dim, got), load->file, turned ? " once it is transposed" : "",
                        slot_shape_text(&slot->shape, wanted), turned ? ", or is not to be transposed" : "");
    if (!slot->persistent && !tn_dtype_is_float(tn_dtype_of(stored)))
        return tn__fail(TN_ERR_DTYPE, "layer_load", "'%s' is %s in %s, and parameters are floating", path,
                        tn_dtype_name(tn_dtype_of(stored)), load->file);
    if (!tn__grow((void **)&load->items, &load->capacity, load->count + 1, sizeof *load->items))
        return tn__fail_memory("layer_load", sizeof *load->items);
    tn_array *value = tn_to(tn_cast(stored, slot->dtype), slot->value ? tn_device_of(slot->value) : layer->device);
    status = tn_eval(value);
    /* A leaf has a node of its own. */
    if (status == TN_OK && !slot->persistent && !tn_needs_grad(tn_requires_grad(value)))
        status = tn__fail_memory("layer_load", sizeof(tn__var));
    load->items[load->count++] = (loaded){.slot = slot, .layer = layer, .value = value, .shape = shape};
    return status;
}

static void put_in_place(const loading *load)
{
    for (size_t i = 0; i < load->count; i++) {
        const loaded *item = &load->items[i];
        if (item->slot->value && item->slot->persistent) {
            tn__state_point(item->slot->value, tn__array_node(item->value));
        } else if (item->slot->value) {
            tn__param_point(item->slot->value, tn__array_node(item->value));
        } else {
            item->slot->value = tn__array_keep(item->value);
            item->slot->shape = item->shape;
            if (!item->slot->persistent) {
                tn__handle_of(item->value)->var->param = true;
                tn__slot_freeze(item->slot, item->slot->frozen);
            }
            tn__layer_changed(item->layer);
        }
    }
}

tn_status tn__layer_load_from(tn_layer *layer, const tn_archive *archive, const char *file, const tn_load_opts *opts)
{
    static const tn_load_opts none;
    tn_status status = tn__layer_raise(layer);
    if (status == TN_OK)
        status = tn_archive_status(archive);
    if (status == TN_OK && opts)
        status = check_renaming(opts->rename);
    if (status != TN_OK)
        return status;
    tn__scope_guard scope = tn__scope_enter();
    loading load = {.archive = archive, .file = file, .opts = opts ? opts : &none};
    load.partly = !load.opts->strict && tn__option_written(load.opts->_, "strict");
    status = tn__visit_slots(layer, "", load_slot, &load);
    if (status == TN_OK && load.lacks && !load.count && !load.open) { /* nothing at all: told as the first that lacks */
        load.partly = false;
        status = tn__visit_slots(layer, "", load_slot, &load);
    }
    if (status == TN_OK)
        put_in_place(&load);
    tn__scope_leave(&scope);
    tn__free(load.items);
    return status;
}

tn_status tn_layer_load_with(tn_layer *layer, const char *path, const tn_load_opts *opts)
{
    if (!layer || !path)
        return tn__fail(TN_ERR_VALUE, "layer_load", "expected a layer and a path, got NULL");
    tn_status status = tn__layer_raise(layer);
    if (status != TN_OK)
        return status;
    if (opts)
        status = tn__patterns_check("layer_load", " of .ignore", opts->ignore, layer);
    if (opts && status == TN_OK)
        status = tn__patterns_check("layer_load", " of .transpose", opts->transpose, layer);
    if (status != TN_OK)
        return status;
    tn_archive *archive = tn_archive_load(path);
    status = tn__layer_load_from(layer, archive, path, opts);
    tn_archive_free(archive);
    return status;
}

/* ---- as text ---- */

static void describe(const tn_layer *layer, const char *name, int indent, tn__text *text)
{
    char shape[TN__SHAPE_TEXT];
    tn__text_addf(text, "%*s%s%s%s", 2 * indent, "", name, *name ? ": " : "", tn__layer_name(layer));
    if (layer->kind->describe)
        layer->kind->describe(layer, text);
    for (size_t i = 0; i < layer->slot_count; i++) {
        const tn__slot *slot = &layer->slots[i];
        tn__text_addf(text, "%s%s %s %s", i ? ", " : "  ", slot->name, slot_shape_text(&slot->shape, shape),
                      tn_dtype_name(slot->dtype));
    }
    if (layer->error)
        tn__text_addf(text, "  %s", tn__error_message(layer->error));
    tn__text_add(text, "\n");
    for (size_t i = 0; i < layer->child_count; i++)
        describe(layer->children[i].layer, layer->children[i].name, indent + 1, text);
}

char *tn_layer_string(const tn_layer *layer)
{
    tn__text text = {0};
    if (layer)
        describe(layer, "", 0, &text);
    else
        tn__text_add(&text, "no layer\n");
    char *string = tn__text_take(&text);
    if (!string)
        tn__fail_memory("layer_string", text.capacity);
    return string;
}
