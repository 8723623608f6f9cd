/* SPDX-License-Identifier: MIT */
/* Memory and convolutions described to oneDNN, of version 2 or 3. */
#include "tn_build_config.h"

#ifdef TN_HAVE_DNNL
#include "backends/cpu/convolution/dnnl.h"

#include <pthread.h>

/* The process's engine. It is never freed: at the end of the process there may still be primitives, which need it. */
static dnnl_engine_t engine;
static pthread_once_t engine_made = PTHREAD_ONCE_INIT;

static void make_engine(void)
{
    if (dnnl_engine_create(&engine, dnnl_cpu, 0) != dnnl_success)
        engine = NULL;
}

dnnl_engine_t tn__dnnl_engine(void)
{
    pthread_once(&engine_made, make_engine);
    return engine;
}

int tn__dnnl_argument(tn__dnnl_way way, int tensor)
{
    static const int argument[][TN__DNNL_TENSORS] = {
        [TN__DNNL_RESULT] = {DNNL_ARG_SRC, DNNL_ARG_WEIGHTS, DNNL_ARG_DST},
        [TN__DNNL_DATA] = {DNNL_ARG_DIFF_SRC, DNNL_ARG_WEIGHTS, DNNL_ARG_DIFF_DST},
        [TN__DNNL_WEIGHTS] = {DNNL_ARG_SRC, DNNL_ARG_DIFF_WEIGHTS, DNNL_ARG_DIFF_DST}};
    return argument[way][tensor];
}

/* ---- descriptions of memory ---- */

typedef dnnl_memory_desc_t owned; /* version 2: the description itself; version 3: a pointer that owns one */

static bool describe(owned *d, const tn__dnnl_problem *p, int tensor, bool any)
{
    int ndim = p->tensor[tensor].ndim;
#if DNNL_VERSION_MAJOR >= 3
    *d = NULL;
    return (any ? dnnl_memory_desc_create_with_tag(d, ndim, p->tensor[tensor].dim, dnnl_f32, dnnl_format_tag_any)
                : dnnl_memory_desc_create_with_strides(d, ndim, p->tensor[tensor].dim, dnnl_f32,
                                                       p->tensor[tensor].stride)) == dnnl_success;
#else
    return (any ? dnnl_memory_desc_init_by_tag(d, ndim, p->tensor[tensor].dim, dnnl_f32, dnnl_format_tag_any)
                : dnnl_memory_desc_init_by_strides(d, ndim, p->tensor[tensor].dim, dnnl_f32,
                                                   p->tensor[tensor].stride)) == dnnl_success;
#endif
}

static tn__dnnl_view view_of(const owned *d)
{
#if DNNL_VERSION_MAJOR >= 3
    return *d;
#else
    return d;
#endif
}

static void drop(owned *d)
{
#if DNNL_VERSION_MAJOR >= 3
    if (*d)
        dnnl_memory_desc_destroy(*d);
    *d = NULL;
#else
    (void)d;
#endif
}

bool tn__dnnl_lies(const tn__dnnl_problem *problem, int tensor, tn__dnnl_view view)
{
    owned plain;
    bool lies = describe(&plain, problem, tensor, false) && dnnl_memory_desc_equal(view_of(&plain), view);
    drop(&plain);
    return lies;
}

/* ---- primitives ---- */

/* Attributes for primitives whose temporary memory the caller provides: the library's own would be shared by all
 * threads. NULL if refused. */
static dnnl_primitive_attr_t attributes(void)
{
    dnnl_primitive_attr_t attr = NULL;
    if (dnnl_primitive_attr_create(&attr) == dnnl_success)
        dnnl_primitive_attr_set_scratchpad_mode(attr, dnnl_scratchpad_mode_user);
    return attr;
}

#define WINDOW(p) (p)->step, (p)->spread, (p)->before, (p)->behind

#if DNNL_VERSION_MAJOR >= 3
static dnnl_primitive_desc_t forward(const tn__dnnl_problem *p, tn__dnnl_view x, tn__dnnl_view w, tn__dnnl_view y,
                                     dnnl_primitive_attr_t attr)
{
    dnnl_primitive_desc_t made = NULL;
    return dnnl_convolution_forward_primitive_desc_create(&made, tn__dnnl_engine(), dnnl_forward_training,
                                                          dnnl_convolution_direct, x, w, NULL, y, WINDOW(p),
                                                          attr) == dnnl_success
               ? made
               : NULL;
}
static dnnl_primitive_desc_t backward(const tn__dnnl_problem *p, tn__dnnl_view x, tn__dnnl_view w, tn__dnnl_view y,
                                      dnnl_primitive_attr_t attr, dnnl_primitive_desc_t hint)
{
    dnnl_primitive_desc_t made = NULL;
    dnnl_status_t status =
        p->way == TN__DNNL_DATA
            ? dnnl_convolution_backward_data_primitive_desc_create(&made, tn__dnnl_engine(), dnnl_convolution_direct,
                                                                   x, w, y, WINDOW(p), hint, attr)
            : dnnl_convolution_backward_weights_primitive_desc_create(&made, tn__dnnl_engine(),
                                                                      dnnl_convolution_direct, x, w, NULL, y,
                                                                      WINDOW(p), hint, attr);
    return status == dnnl_success ? made : NULL;
}
#else
static dnnl_primitive_desc_t forward(const tn__dnnl_problem *p, tn__dnnl_view x, tn__dnnl_view w, tn__dnnl_view y,
                                     dnnl_primitive_attr_t attr)
{
    dnnl_primitive_desc_t made = NULL;
    dnnl_convolution_desc_t d;
    return dnnl_dilated_convolution_forward_desc_init(&d, dnnl_forward_training, dnnl_convolution_direct, x, w, NULL,
                                                      y, WINDOW(p)) == dnnl_success &&
                   dnnl_primitive_desc_create(&made, &d, attr, tn__dnnl_engine(), NULL) == dnnl_success
               ? made
               : NULL;
}
static dnnl_primitive_desc_t backward(const tn__dnnl_problem *p, tn__dnnl_view x, tn__dnnl_view w, tn__dnnl_view y,
                                      dnnl_primitive_attr_t attr, dnnl_primitive_desc_t hint)
{
    dnnl_primitive_desc_t made = NULL;
    dnnl_convolution_desc_t d;
    dnnl_status_t status = p->way == TN__DNNL_DATA
                               ? dnnl_dilated_convolution_backward_data_desc_init(&d, dnnl_convolution_direct, x, w, y,
                                                                                  WINDOW(p))
                               : dnnl_dilated_convolution_backward_weights_desc_init(&d, dnnl_convolution_direct, x, w,
                                                                                     NULL, y, WINDOW(p));
    return status == dnnl_success &&
                   dnnl_primitive_desc_create(&made, &d, attr, tn__dnnl_engine(), hint) == dnnl_success
               ? made
               : NULL;
}
#endif

dnnl_primitive_desc_t tn__dnnl_convolution(const tn__dnnl_problem *problem)
{
    owned d[TN__DNNL_TENSORS] = {0};
    dnnl_primitive_attr_t attr = attributes();
    dnnl_primitive_desc_t made = NULL;
    bool done = attr && tn__dnnl_engine();
    for (int t = 0; t < TN__DNNL_TENSORS; t++)
        done = done && describe(&d[t], problem, t, true);
    tn__dnnl_view x = view_of(&d[TN__DNNL_X]), w = view_of(&d[TN__DNNL_W]), y = view_of(&d[TN__DNNL_Y]);
    if (done)
        made = forward(problem, x, w, y, attr);
    if (made && problem->way != TN__DNNL_RESULT) {
        dnnl_primitive_desc_t hint = made;
        made = backward(problem, x, w, y, attr, hint);
        dnnl_primitive_desc_destroy(hint);
    }
    for (int t = 0; t < TN__DNNL_TENSORS; t++)
        drop(&d[t]);
    if (attr)
        dnnl_primitive_attr_destroy(attr);
    return made;
}

dnnl_primitive_desc_t tn__dnnl_reorder(const tn__dnnl_problem *problem, int tensor, tn__dnnl_view other, bool from)
{
    owned plain;
    dnnl_primitive_attr_t attr = attributes();
    dnnl_primitive_desc_t made = NULL;
    if (describe(&plain, problem, tensor, false) && attr) {
        tn__dnnl_view lies = view_of(&plain);
        if (dnnl_reorder_primitive_desc_create(&made, from ? lies : other, tn__dnnl_engine(), from ? other : lies,
                                               tn__dnnl_engine(), attr) != dnnl_success)
            made = NULL;
    }
    drop(&plain);
    if (attr)
        dnnl_primitive_attr_destroy(attr);
    return made;
}
#else
typedef int tn__no_dnnl;
#endif
