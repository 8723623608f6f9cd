/* SPDX-License-Identifier: MIT */
/* Cases of torch.npz: see torch.h. */
#include "nn/torch.h"

enum { MOST = 6 };

static tn_archive *values;

tn_archive *torch_open(void) { return values_open("torch.npz"); }

tn_archive *values_open(const char *name)
{
    const char *folder = getenv("TANSO_TEST_DATA");
    char path[4096];
    snprintf(path, sizeof path, "%s/%s", folder ? folder : ".", name);
    FILE *file = fopen(path, "rb");
    if (!file)
        return NULL;
    fclose(file);
    values = tn_archive_load(path);
    assert_int_equal(tn_archive_status(values), TN_OK);
    return values;
}

void torch_close(void) { tn_archive_free(values); }

/* "name.d0", or NULL if the file has none. */
static tn_array *find(const char *name, const char *kind, int i)
{
    char path[128];
    if (i < 0)
        snprintf(path, sizeof path, "%s%s", name, kind);
    else
        snprintf(path, sizeof path, "%s%s%d", name, kind, i);
    for (int k = 0; k < tn_archive_count(values); k++) {
        if (strcmp(tn_archive_name(values, k), path) == 0)
            return tn_to(tn_archive_array(values, k), test_device());
    }
    return NULL;
}

tn_array *torch_value(const char *name)
{
    tn_array *x = find(name, "", -1);
    assert_non_null(x);
    return x;
}

static void same(const char *what, const tn_array *got, const tn_array *want, double tolerance)
{
    char context[160];
    snprintf(context, sizeof context, "%s", what);
    check_context = context;
    assert_string_equal(tn_is_error(got) ? tn_message_of(got) : "", "");
    tn_shape a = tn_shape_of(got), b = tn_shape_of(want);
    if (a.ndim != b.ndim || memcmp(a.dim, b.dim, (size_t)a.ndim * sizeof *a.dim) != 0)
        fail_msg("%s: another shape", what);
    double *expected = malloc((size_t)tn_size(want) * sizeof *expected + 1);
    check_read(want, expected, tn_size(want));
    check_near(got, expected, tn_size(want), tolerance);
    free(expected);
}

typedef struct inputs {
    torch_function f;
    tn_array *t[MOST];
} inputs;

static tn_array *call(int count, tn_array *const *xs, void *user)
{
    (void)count;
    const inputs *in = user;
    return in->f(xs, in->t);
}

static void check_values(const torch_case *c, int count, tn_array *const *xs, const inputs *in)
{
    char what[160];
    tn_array *x[MOST];
    for (int i = 0; i < count; i++)
        x[i] = tn_requires_grad(tn_cast(xs[i], TN_FLOAT32));
    tn_array *y = c->f(x, in->t);
    same(c->name, y, find(c->name, ".y", -1), 2e-5);
    assert_int_equal(tn_dtype_of(y), TN_FLOAT32);
    tn_array *seed = tn_cast(find(c->name, ".g", -1), TN_FLOAT32);
    if (tn_backward(y, .grad = seed) != TN_OK)
        fail_msg("%s: %s", c->name, tn_error());
    for (int i = 0; i < count; i++) {
        snprintf(what, sizeof what, "%s, gradient %d", c->name, i);
        tn_array *grad = tn_has_grad(x[i]) ? tn_grad(x[i]) : tn_zeros_like(x[i]);
        same(what, grad, find(c->name, ".d", i), 5e-5);
    }
}

static void check_case(const torch_case *c)
{
    inputs in = {.f = c->f};
    tn_array *x[MOST];
    int count = 0;
    for (tn_array *value; (value = find(c->name, ".", count));)
        x[count++] = value;
    assert_true(count > 0);
    for (int i = 0; i < MOST; i++)
        in.t[i] = find(c->name, ".i", i);
    check_values(c, count, x, &in);
    if (c->only_values)
        return;
    if (tn_check_backward(call, &in, count, (const tn_array *const *)x, .seed = check_bits()) != TN_OK)
        fail_msg("%s: %s", c->name, tn_error());
    if (tn_check_double_backward(call, &in, count, (const tn_array *const *)x, .seed = check_bits()) != TN_OK)
        fail_msg("%s, second derivatives: %s", c->name, tn_error());
}

void torch_check(int count, const torch_case *cases)
{
    for (int i = 0; i < count; i++)
        TN_SCOPE check_case(&cases[i]);
    check_fine();
}
