/* SPDX-License-Identifier: MIT */
/*
 * Random orthogonal matrices (Saxe, McClelland, Ganguli 2014): orthonormalised normal vectors, computed on the host in
 * float64, so that every device gets the same matrix.
 */
#include "nn/init.h"

#include <math.h>
#include <tanso/array.h>
#include <tanso/engine.h>
#include "core/memory.h"

static double dot(const double *a, const double *b, int64_t n)
{
    double sum = 0;
    for (int64_t i = 0; i < n; i++)
        sum += a[i] * b[i];
    return sum;
}

/* Gram-Schmidt, each projection done twice, which is enough for orthogonality to rounding (Giraud, Langou, Rozloznik
 * 2005). The factor R it leaves out has a positive diagonal, so the result is uniform among orthogonal matrices
 * (Mezzadri 2007). */
static void orthonormalize(double *rows, int64_t count, int64_t length)
{
    for (int64_t i = 0; i < count; i++) {
        double *row = rows + i * length;
        for (int pass = 0; pass < 2; pass++) {
            for (int64_t j = 0; j < i; j++) {
                const double *done = rows + j * length;
                double share = dot(row, done, length);
                for (int64_t k = 0; k < length; k++)
                    row[k] -= share * done[k];
            }
        }
        double norm = sqrt(dot(row, row, length));
        for (int64_t k = 0; k < length && norm > 0; k++)
            row[k] /= norm;
    }
}

static void transpose(const double *from, int64_t rows, int64_t columns, double *to)
{
    for (int64_t i = 0; i < rows; i++) {
        for (int64_t j = 0; j < columns; j++)
            to[j * rows + i] = from[i * columns + j];
    }
}

tn_array *tn__fill_orthogonal(double gain, tn_shape shape, const tn_random_opts *opts)
{
    char text[TN__SHAPE_TEXT];
    if (shape.ndim < 2)
        return tn__error_array(tn__error_new(TN_ERR_SHAPE, "initialize",
                                             "orthogonal: expected at least two axes, got shape %s",
                                             tn__shape_text(shape.ndim, shape.dim, text)));
    /* A matrix (product of all extents but the last, last extent), its shorter side as rows. */
    int64_t columns = shape.dim[shape.ndim - 1], rows = 1;
    for (int i = 0; i < shape.ndim - 1; i++)
        rows *= shape.dim[i];
    int64_t count = rows < columns ? rows : columns, length = rows < columns ? columns : rows;
    tn_random_opts normal = {.dtype = TN_FLOAT64, .device = tn_cpu(), .generator = opts->generator};
    tn_array *random = tn_random_normal_with((tn_shape){2, {count, length}}, &normal);

    size_t bytes = (size_t)(rows * columns) * sizeof(double);
    double *vectors = tn__alloc(2 * bytes + 1);
    if (!vectors) {
        tn__fail_memory("initialize", 2 * bytes);
        return tn__error_array(tn__error_retain(tn__error_last()));
    }
    if (tn_to_host(random, vectors, bytes) != TN_OK) {
        tn__free(vectors);
        return tn__error_array(tn__error_retain(tn__error_last()));
    }
    orthonormalize(vectors, count, length);
    for (int64_t i = 0; i < rows * columns; i++)
        vectors[i] *= gain;
    double *matrix = vectors;
    if (rows > columns) {
        matrix = vectors + rows * columns;
        transpose(vectors, count, length, matrix);
    }
    tn_array *wide = tn_from_host_with(matrix, shape, TN_FLOAT64, &(tn_create_opts){.device = opts->device});
    tn__free(vectors);
    return tn_cast(wide, opts->dtype);
}
