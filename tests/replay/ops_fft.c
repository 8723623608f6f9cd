/* SPDX-License-Identifier: MIT */
/* Replaying numpy.fft. */
#include "replay.h"

#include <string.h>

#define NAME(f) (void (*)(void))(f)
/* NumPy 1 leaves out imaginary parts where it expects real numbers. */
static tn_array *input(call *c, const row *r)
{
    tn_array *x = first_inexact(array(c, 0));
    bool real = strstr(r->name, "rfft") && !strstr(r->name, "irfft");
    return numpy_1 && (real || strstr(r->name, "ihfft")) ? tn_real(x) : x;
}

typedef tn_array *transform(const tn_array *x, const tn_fft_opts *opts);

static tn_fft_norm norm(call *c, int i)
{
    const char *word = string(c, i, "backward");
    if (strcmp(word, "ortho") == 0)
        return TN_FFT_ORTHO;
    if (strcmp(word, "forward") == 0)
        return TN_FFT_FORWARD;
    if (strcmp(word, "backward"))
        refuse(c, "no such norm: %s", word);
    return TN_FFT_BACKWARD;
}

static void one(call *c, const row *r)
{
    int axis = (int)integer(c, 2, -1);
    tn_fft_opts opts = {.n = integer(c, 1, 0),
                        .axis = TN_AXES(axis),
                        .norm = norm(c, 3),
                        .out = given(c, 4) ? array(c, 4) : NULL};
    if (given(c, 1) && opts.n < 1)
        opts.n = -1; /* 0 stands for the default */
    give(c, ((transform *)r->function)(input(c, r), &opts));
}

static void several(call *c, const row *r)
{
    tn_fft_opts opts = {.axes = axes(c, 2), .norm = norm(c, 3), .out = given(c, 4) ? array(c, 4) : NULL};
    long long lengths[TN_MAX_NDIM];
    bool two = strstr(r->name, "2") != NULL;
    if (c->slot[2] && !given(c, 2) && two && !given(c, 1)) { /* axes=None: all of them */
        opts.axes.count = tn_ndim(array(c, 0));
        for (int i = 0; i < opts.axes.count; i++)
            opts.axes.axis[i] = i;
    }
    if (given(c, 1) && !c->slot[2] && two && c->slot[1]->kind == LIST && c->slot[1]->list.count != 2)
        refuse(c, "%d lengths for two axes", c->slot[1]->list.count);
    if (given(c, 1)) {
        const value *v = c->slot[1];
        value own[TN_MAX_NDIM], list = {.kind = LIST, .list = {.item = own}};
        for (int i = 0; v->kind == LIST && i < v->list.count && i < TN_MAX_NDIM; i++) /* None: as many as there are */
            own[list.list.count++] = v->list.item[i].kind == NONE ? (value){.kind = INT, .i = -1} : v->list.item[i];
        opts.s.ndim = integers(c, v->kind == LIST && v->list.count <= TN_MAX_NDIM ? &list : v, lengths, TN_MAX_NDIM);
        for (int i = 0; i < opts.s.ndim; i++)
            opts.s.dim[i] = lengths[i];
    }
    tn_array *x = input(c, r);
    if (tn_ndim(x) == 0 && (opts.axes.count || (two && !c->slot[2])))
        refuse(c, "a number has no axes");
    if ((given(c, 2) && opts.axes.count == 0) || (tn_ndim(x) == 0 && !given(c, 1))) { /* along no axes: as it is */
        if (opts.s.ndim || strstr(r->name, "rfft"))
            refuse(c, "axes");
        give(c, x);
        return;
    }
    give(c, ((transform *)r->function)(x, &opts));
}

static void frequencies(call *c, const row *r)
{
    tn_array *(*f)(int64_t, double, const tn_create_opts *) =
        (tn_array * (*)(int64_t, double, const tn_create_opts *)) r->function;
    give(c, f(integer(c, 0, 0), number(c, 1, 1), NULL));
}

static void shift(call *c, const row *r)
{
    tn_array *(*f)(const tn_array *, tn_axes) = (tn_array * (*)(const tn_array *, tn_axes)) r->function;
    bool none = given(c, 1) && axes(c, 1).count == 0; /* axes=(): nothing is shifted; here no axes stand for all */
    if (!given(c, 1) && tn_ndim(array(c, 0)) == 0)
        refuse(c, "a number has no axes");
    give(c, none ? array(c, 0) : f(array(c, 0), axes(c, 1)));
}

#define ONE(name)     {"fft." #name, "a n axis norm out", one, NAME(tn_fft_##name##_with), 0}
#define SEVERAL(name) {"fft." #name, "a s axes norm out", several, NAME(tn_fft_##name##_with), 0}
static const row rows[] = {
    ONE(fft), ONE(ifft), ONE(rfft), ONE(irfft), ONE(hfft), ONE(ihfft),
    SEVERAL(fft2), SEVERAL(ifft2), SEVERAL(rfft2), SEVERAL(irfft2), SEVERAL(fftn), SEVERAL(ifftn), SEVERAL(rfftn),
    SEVERAL(irfftn),
    {"fft.fftfreq", "n d", frequencies, NAME(tn_fft_fftfreq_with), 0},
    {"fft.rfftfreq", "n d", frequencies, NAME(tn_fft_rfftfreq_with), 0},
    {"fft.fftshift", "x axes", shift, NAME((tn_fft_fftshift)), 0},
    {"fft.ifftshift", "x axes", shift, NAME((tn_fft_ifftshift)), 0},
};
REPLAY_ROWS(rows)
