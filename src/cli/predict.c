/* SPDX-License-Identifier: MIT */
/* tanso predict */
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "cli/command.h"
#include "cli/picture.h"
#include "cli/run_model.h"

static const tn__flag flags[] = {
    {"--invert", "WHEN", "auto (the default: when the background is light), yes, no; of pictures", TN__FLAG_TEXT,
     .offset = offsetof(tn__options, invert)},
    {"--device", "NAME", "auto (the default: a GPU if there is one), cpu, cuda:N", TN__FLAG_TEXT,
     .offset = offsetof(tn__options, device)},
};

/* What the classes of a dataset are, where their numbers do not say it. */
static const struct {
    const char *dataset;
    const char *names[10];
} class_names[] = {
    {"fashion-mnist",
     {"T-shirt/top", "trouser", "pullover", "dress", "coat", "sandal", "shirt", "sneaker", "bag", "ankle boot"}},
};

typedef struct predictor {
    tn__run_model model;
    const tn__framing *framing;
    tn__invert invert;
    int width, height; /* 0: unknown, a picture must have as many pixels as the network has inputs */
    tn_device device;
} predictor;

/* Images at a time. */
#define CHUNK 1000

static void print_class(const predictor *p, int64_t label, double probability)
{
    const char *name = NULL;
    for (int i = 0; i < TN__COUNT_OF(class_names); i++)
        if (strcmp(class_names[i].dataset, p->model.dataset) == 0 && label >= 0 && label < 10)
            name = class_names[i].names[label];
    printf("%" PRId64 "%s%s%s  %.1f%%\n", label, name ? " (" : "", name ? name : "", name ? ")" : "",
           100 * probability);
}

/* Where the network's pictures have no width of their own, a file's. */
static bool take_size(predictor *p, int64_t width, int64_t height, const char *path)
{
    if (p->width == 0) {
        if (width * height != p->model.inputs) {
            tn__cli_failure("predict",
                        "'%s' has %" PRId64 " x %" PRId64 " pixels: expected %" PRId64
                        " in all, as the network has inputs, which make no square",
                        path, width, height, p->model.inputs);
            return false;
        }
        p->width = (int)width;
        p->height = (int)height;
    }
    return true;
}

/* Prints a line an image; images from number `first` on of a file of many, or of one of its own (first < 0). */
static tn_status classify(const predictor *p, const float *images, int64_t count, const char *path, int64_t first)
{
    tn_status status = TN_OK;
    TN_SCOPE
        TN_NO_GRAD {
            tn_shape shape = {1 + p->model.input.ndim, {count}};
            memcpy(&shape.dim[1], p->model.input.dim, sizeof(int64_t) * (TN_MAX_NDIM - 1));
            tn_array *x = tn_from_host(images, shape, TN_FLOAT32, .device = p->device);
            tn_array *scores = tn_softmax(tn_forward(p->model.net, x), -1);
            tn_array *best = tn_to(tn_argmax(scores, .axis = TN_AXES(-1)), tn_cpu());
            tn_array *certainty = tn_to(tn_cast(tn_max(scores, .axis = TN_AXES(-1)), TN_FLOAT64), tn_cpu());
            const int64_t *label = tn_data(best);
            const double *probability = tn_data(certainty);
            for (int64_t i = 0; label && probability && i < count; i++) {
                if (first < 0)
                    printf("%s: ", path);
                else
                    printf("%s[%" PRId64 "]: ", path, first + i);
                print_class(p, label[i], probability[i]);
            }
            status = tn_error_code();
        }
    return status;
}

static bool predict_picture(predictor p, const char *path)
{
    char did[256];
    tn__picture picture;
    if (!tn__picture_read(path, &picture)) {
        tn__library_error("predict");
        return false;
    }
    if (!take_size(&p, picture.width, picture.height, path)) {
        tn__picture_free(&picture);
        return false;
    }
    float *pixels = malloc((size_t)p.model.inputs * sizeof *pixels);
    bool done = pixels && tn__picture_fit(&picture, p.framing, p.invert, p.width, p.height, pixels, did, sizeof did);
    if (!done)
        tn__cli_failure("predict", "no memory for '%s' of %d x %d pixels", path, picture.width, picture.height);
    else if (*did)
        fprintf(stderr, "%s: %d x %d pixels, %s\n", path, picture.width, picture.height, did);
    if (done && classify(&p, pixels, 1, path, -1) != TN_OK) {
        tn__library_error("predict");
        done = false;
    }
    free(pixels);
    tn__picture_free(&picture);
    return done;
}

/* ---- IDX ---- */

/* The values of a file of bytes are 0 to 255; those of digits may be the set's own 0 to 16. */
static double idx_scale(const predictor *p, const float *values, int64_t count, tn_dtype dtype)
{
    float most = 0;
    for (int64_t i = 0; i < count; i++)
        most = fmaxf(most, values[i]);
    if (strcmp(p->model.dataset, "digits") == 0 && most > 1 && most <= 16)
        return 1.0 / 16;
    return dtype == TN_UINT8 ? 1.0 / 255 : 1;
}

/* Images of another size are made to fit, one by one. */
static bool refit(const predictor *p, float *images, int64_t count, int width, int height, float *out)
{
    char did[256];
    for (int64_t i = 0; i < count; i++) {
        tn__picture picture = {width, height, images + i * width * height};
        if (!tn__picture_fit(&picture, p->framing, TN__INVERT_NO, p->width, p->height, out + i * p->model.inputs, did,
                             sizeof did))
            return false;
        if (i == 0 && *did)
            fprintf(stderr, "images of %d x %d: %s\n", width, height, did);
    }
    return true;
}

/* The images of an array: (n, height, width), (n, numbers of a sample), or one (height, width). */
static bool idx_layout(const predictor *p, const tn_array *x, int64_t *count, int64_t *width, int64_t *height)
{
    tn_shape s = tn_shape_of(x);
    bool single = s.ndim == 2 && s.dim[1] != p->model.inputs;
    *count = single ? 1 : s.dim[0];
    *height = s.ndim == 3 ? s.dim[1] : single ? s.dim[0] : p->width ? p->height : 1;
    *width = s.ndim == 3 ? s.dim[2] : single ? s.dim[1] : p->width ? p->width : p->model.inputs;
    return (s.ndim == 2 || s.ndim == 3) && *width > 0 && *height > 0;
}

static bool predict_images(predictor *p, const tn_array *x, float *values, const char *path)
{
    int64_t count, width, height;
    idx_layout(p, x, &count, &width, &height);
    if (!take_size(p, width, height, path))
        return false;
    double scale = idx_scale(p, values, tn_size(x), tn_dtype_of(x));
    for (int64_t i = 0; i < tn_size(x); i++)
        values[i] = (float)(values[i] * scale);
    float *fitted = NULL;
    bool done = true;
    if (width * height != p->model.inputs || width != p->width) {
        fitted = malloc((size_t)(count * p->model.inputs) * sizeof *fitted + 1);
        done = fitted && refit(p, values, count, (int)width, (int)height, fitted);
        if (!done)
            tn__cli_failure("predict", "no memory for the %" PRId64 " images of '%s'", count, path);
    }
    const float *images = fitted ? fitted : values;
    for (int64_t first = 0; done && first < count; first += CHUNK) {
        int64_t some = count - first < CHUNK ? count - first : CHUNK;
        done = classify(p, images + first * p->model.inputs, some, path, first) == TN_OK;
        if (!done)
            tn__library_error("predict");
    }
    free(fitted);
    return done;
}

/* True unless the file begins as no IDX file does, gzipped or not. */
static bool may_be_idx(const char *path)
{
    unsigned char begin[2];
    FILE *file = fopen(path, "rb");
    size_t count = file ? fread(begin, 1, sizeof begin, file) : 0;
    if (file)
        fclose(file);
    return count < sizeof begin || (begin[0] == 0 && begin[1] == 0) || (begin[0] == 0x1f && begin[1] == 0x8b);
}

static bool predict_idx(predictor p, const char *path)
{
    if (access(path, R_OK) != 0) {
        tn__cli_failure("predict", "cannot read '%s': %s", path, strerror(errno));
        return false;
    }
    bool done = false;
    TN_SCOPE {
        tn_array *x = tn_load_idx(path);
        int64_t count, width, height;
        size_t bytes = (size_t)tn_size(x) * sizeof(float);
        float *values = malloc(bytes + 1);
        if (tn_is_error(x))
            tn__library_error("predict");
        else if (!idx_layout(&p, x, &count, &width, &height))
            tn__cli_failure("predict", "'%s' holds an array of %d axes: expected images, (count, height, width)", path,
                        tn_ndim(x));
        else if (!values)
            tn__cli_failure("predict", "no memory for the %" PRId64 " images of '%s'", count, path);
        else if (tn_to_host(tn_cast(x, TN_FLOAT32), values, bytes) != TN_OK)
            tn__library_error("predict");
        else
            done = predict_images(&p, x, values, path);
        free(values);
    }
    return done;
}

/* ---- the command ---- */

/* The height and width that the network's inputs stand for. */
static bool find_size(predictor *p)
{
    const tn_shape *input = &p->model.input;
    int64_t side = llround(sqrt((double)p->model.inputs));
    if (input->ndim == 2) {
        p->height = (int)input->dim[0];
        p->width = (int)input->dim[1];
    } else if (side * side == p->model.inputs) {
        p->height = p->width = (int)side;
    }
    if (p->model.inputs <= 3)
        tn__cli_failure("predict", "the network takes %" PRId64 " number%s a sample: no picture", p->model.inputs,
                    p->model.inputs == 1 ? "" : "s");
    return p->model.inputs > 3;
}

static bool read_invert(const char *text, tn__invert *invert)
{
    static const char *const names[] = {"auto", "yes", "no"};
    for (int i = 0; i < TN__COUNT_OF(names); i++)
        if (!text || strcmp(text, names[i]) == 0) {
            *invert = (tn__invert)i;
            return true;
        }
    tn__usage_error("predict", "--invert takes auto, yes or no, not '%s'", text);
    return false;
}

static int run(const tn__options *options)
{
    predictor p = {0};
    if (!read_invert(options->invert, &p.invert))
        return TN__EXIT_USAGE;
    int code = tn__device_option("predict", options->device, &p.device);
    if (code != TN__EXIT_DONE)
        return code;
    bool done = tn__run_model_open(&p.model, "predict", options->arguments[0], p.device) && find_size(&p);
    if (done)
        p.framing = tn__framing_of(p.model.dataset);
    /* Every file is tried, though one before may have failed. */
    for (int i = 1; i < options->count && p.framing; i++) {
        const char *path = options->arguments[i];
        done = (may_be_idx(path) ? predict_idx(p, path) : predict_picture(p, path)) && done;
        tn_clear_error();
    }
    tn__run_model_close(&p.model);
    return done ? TN__EXIT_DONE : TN__EXIT_FAILED;
}

const tn__command tn__command_predict = {
    .name = "predict",
    .arguments = "DIR IMAGES...",
    .summary = "tell what pictures show",
    .text = "Prints the most likely class and its probability for each image, a line each. DIR is a folder\n"
            "that 'tanso train' wrote. Images are PNG or JPEG files of any size and colours, made grey,\n"
            "inverted where the background is light, and scaled to the network's input (what was done is\n"
            "said on standard error), or IDX files of any number of images, gzipped or not.",
    .examples = "  tanso predict runs/mnist seven.png\n"
                "  tanso predict runs/mnist t10k-images-idx3-ubyte.gz | head\n",
    .flags = flags,
    .flag_count = TN__COUNT_OF(flags),
    .least = 2,
    .most = 1 << 30,
    .run = run,
};
