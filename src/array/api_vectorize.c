/* SPDX-License-Identifier: MIT */
/* Plain C functions as elementwise kernels: by their text, or by their address as one argument more. */
#include <stdio.h>
#include <string.h>

#include "array/build_parts.h"
#include "array/vectorize.h"
#include <tanso/vectorize.h>

/* The parameter list of the kernel. */
static void add_inputs(tn__text *text, const tn__signature *s)
{
    for (int k = 0; k < s->count; k++)
        tn__text_addf(text, "%s%s %s", k ? ", " : "", tn_dtype_name(s->dtype[k]), s->parameter[k]);
    if (!s->body)
        tn__text_add(text, ", uint64 function");
}

static void add_call(tn__text *text, const tn__signature *s)
{
    if (s->body) {
        tn__text_addf(text, "result = %s(", s->name);
    } else {
        tn__text_addf(text, "result = ((%s (*)(", tn__dtypes[s->result].ctype);
        for (int k = 0; k < s->count; k++)
            tn__text_addf(text, "%s%s", k ? ", " : "", tn__dtypes[s->dtype[k]].ctype);
        tn__text_add(text, "))function)(");
    }
    for (int k = 0; k < s->count; k++)
        tn__text_addf(text, "%s%s", k ? ", " : "", s->parameter[k]);
    tn__text_add(text, ")");
}

/* The function's own text: a macro of its name, as for fmin, would spoil the definition. */
static void add_preamble(tn__text *text, const tn__signature *s, const char *definition, const char *before)
{
    tn__text_add(text, before ? before : "");
    if (s->body)
        tn__text_addf(text, "%s#undef %s\n#line 1 \"%s\"\nTN_FN %s\n", before ? "\n" : "", s->name, s->name,
                      definition);
}

static tn_kernel *make(const tn__signature *s, tn_scalar_function function, const char *definition,
                       const tn_vectorize_opts *opts)
{
    tn__text inputs = {0}, call = {0}, preamble = {0};
    char output[64], name[TN__USER_NAME];
    add_inputs(&inputs, s);
    add_call(&call, s);
    add_preamble(&preamble, s, definition, opts->preamble);
    tn__text_add(&preamble, "");
    snprintf(output, sizeof output, "%s result", tn_dtype_name(s->result));
    snprintf(name, sizeof name, "%.*s_ufunc", TN__USER_NAME - 7, s->name);
    tn_kernel_opts kernel_opts = {.preamble = preamble.data, .gradient = opts->gradient, .backward = opts->backward,
                                  .user = opts->user};
    tn_kernel *kernel = NULL;
    if (inputs.failed || call.failed || preamble.failed)
        tn__fail_memory("tn_vectorize", strlen(definition));
    else
        kernel = tn__kernel_vectorized(inputs.data, output, call.data, name, &kernel_opts, s->body ? NULL : function,
                                       opts->identity, s);
    tn__free(inputs.data);
    tn__free(call.data);
    tn__free(preamble.data);
    return kernel ? kernel : tn__kernel_broken();
}

tn_kernel *tn_vectorize_with(tn_scalar_function function, const char *text, const tn_vectorize_opts *opts)
{
    static const tn_vectorize_opts defaults;
    tn__signature signature;
    if (!text) {
        tn__fail(TN_ERR_VALUE, "tn_vectorize", "the text is NULL: expected a definition or a declaration");
        return tn__kernel_broken();
    }
    if (!tn__signature_read(text, &signature))
        return tn__kernel_broken();
    if (!signature.body && !function) {
        tn__fail(TN_ERR_VALUE, "tn_vectorize", "%s has neither a body in its text nor an address", signature.name);
        return tn__kernel_broken();
    }
    return make(&signature, function, text, opts ? opts : &defaults);
}

tn_array *tn_ufunc_outer(const tn_kernel *f, const tn_array *a, const tn_array *b)
{
    tn__call call = tn__enter();
    tn__node *x = tn__node_of(a, "tn_ufunc_outer"), *y = tn__node_of(b, "tn_ufunc_outer");
    if (tn__node_is_error(x) || tn__node_is_error(y))
        return tn__leave_array(call, tn__node_is_error(x) ? x : y);
    tn_shape wide = tn__shape_value(x->shape);
    if (wide.ndim + y->shape->ndim > TN_MAX_NDIM) {
        tn__fail(TN_ERR_SHAPE, "tn_ufunc_outer", "%d and %d axes are more than %d together", wide.ndim, y->shape->ndim,
                 TN_MAX_NDIM);
        return tn__leave_error(call);
    }
    for (int d = 0; d < y->shape->ndim; d++)
        wide.dim[wide.ndim++] = 1;
    tn__node *spread = tn__reshape(x, wide.ndim, wide.dim);
    tn_array *left = tn__array_own_new(spread);
    tn_array *result = tn_call_with(f, (tn_args){2, (tn_arg[]){tn__arg_array(left), tn__arg_array(b)}}, NULL);
    tn__array_free_kept(left);
    tn__leave(call);
    return result;
}
