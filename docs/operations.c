/* SPDX-License-Identifier: MIT */
/* Prints docs/operations.md: the table of operations, src/ops/ops.def, as a page for readers. */
#include <stdio.h>
#include <string.h>

/* The words of the columns, as flags or as text. */
enum {
    TN_COMMUTATIVE = 1,
    TN_EXPENSIVE = 2,
    TN_CONDITION = 4,
    TN_ARG = 8,
    TN_ORDERED = 16,
    TN_REAL = 32,
    TN_PARTS = 64,
    TN_WIDENED = 128
};

typedef struct row {
    const char *name, *types, *result, *grad, *expression, *doc;
    int arity, props;
} row;

static const row maps[] = {
#define TN_MAP(ID, name, arity, TYPES, RESULT, grad, props, EXPR, doc) \
    {#name, #TYPES, #RESULT, #grad, #EXPR, doc, arity, props},
#include "ops/ops.def"
};

static const row reductions[] = {
#define TN_REDUCE(ID, name, TYPES, RESULT, grad, props, IDENTITY, COMBINE, doc) \
    {#name, #TYPES, #RESULT, #grad, #COMBINE, doc, 1, props},
#include "ops/ops.def"
};

static const row generators[] = {
#define TN_GENERATE(ID, name, TYPES, EXPR, doc) {#name, #TYPES, "SAME", "none", #EXPR, doc, 0, 0},
#include "ops/ops.def"
};

static const row others[] = {
#define TN_OTHER(ID, name, arity, KIND, grad, props, doc) {#name, #KIND, "", #grad, "", doc, arity, props},
#include "ops/ops.def"
};

#define COUNT(table) ((int)(sizeof table / sizeof *table))

/* The public functions that record an operation, where they are not tn_<name>. */
static const char *const recorded_by[][2] = {
    {"copy", "(inside: a value of its own)"},
    {"iota", "`tn_arange`, `tn_linspace`, `tn_eye`, `tn_one_hot`"},
    {"random_uniform", "`tn_random_uniform`, `tn_random_bernoulli`, dropout"},
    {"random_normal", "`tn_random_normal`, `tn_initialize`"},
    {"random_bits", "`tn_random_integers`"},
    {"draw_gamma", "`tn_random_gamma`, `tn_random_chisquare` and others"},
    {"draw_log_gamma", "`tn_random_beta`"},
    {"draw_poisson", "`tn_random_poisson`, `tn_random_negative_binomial`"},
    {"draw_binomial", "`tn_random_binomial`, `tn_random_multinomial`"},
    {"imaginary", "`tn_imag`"},
    {"pack", "`tn_complex`"},
    {"error", "every failed check"},
    {"value", "`tn_from_host`, the readers of files, evaluation"},
    {"const", "`tn_zeros`, `tn_ones`, `tn_full`, `tn_scalar`, C numbers given as operands"},
    {"reshape", "`tn_reshape`, `tn_flatten`, `tn_squeeze`, `tn_expand_dims`"},
    {"permute", "`tn_transpose`, `tn_swapaxes`"},
    {"expand", "`tn_broadcast_to`, and broadcasting in every elementwise function"},
    {"slice", "`tn_slice`, `tn_slice_axis`, `tn_index`, `tn_flip`, `tn_split`"},
    {"update", "`tn_slice_update`, `tn_concatenate`, `tn_stack`"},
    {"gather", "`tn_take`, `tn_take_along_axis`, embedding, `tn_softmax_cross_entropy`"},
    {"transfer", "`tn_to`, `tn_layer_to`"},
    {"deviations", "`tn_var`, `tn_std`"},
    {"first_max", "`tn_max_pool`"},
    {"conv", "`tn_conv`, layers of convolution"},
    {"conv_data", "`tn_conv_transpose`, gradients"},
    {"conv_weights", "gradients"},
    {"convolve", "the compiler"},
    {"convolve_data", "the compiler"},
    {"convolve_weights", "the compiler"},
    {"sort", "`tn_sort`, `tn_partition`, `tn_median`, `tn_unique`"},
    {"argsort", "`tn_argsort`, `tn_topk`, `tn_lexsort`, and `tn_sort` where a gradient is wanted"},
    {"largest", "`tn_topk` on a GPU"},
    {"nonzero", "`tn_nonzero`, masks as indices"},
    {"search_left", "`tn_searchsorted`"},
    {"histogram", "`tn_histogram`, `tn_bincount`"},
    {"search_right", "`tn_searchsorted`, `tn_digitize`, `tn_interp`"},
    {"scatter_set", "`tn_scatter_set`, `tn_setitem`, `tn_put`, `tn_put_along_axis`"},
    {"cumsum", "`tn_cumsum`"},
};

static const char *const composites[][2] = {
    {"tn_mean(x)", "`sum(x) / count`; of integers in float64, of float16 and bfloat16 in float32"},
    {"tn_var(x), tn_std(x)",
     "sum of `(x - mean(x))²` over `count - ddof`; its square root. On a GPU, much float32 is read once for both"},
    {"tn_softmax(x, axis)", "`exp(x - m) / sum(exp(x - m))`, `m` the largest along the axis, a constant for backward"},
    {"tn_logsumexp(x)", "`log(sum(exp(x - m))) + m`, `m` the largest, or 0 where that is infinite"},
    {"tn_log_softmax(x, axis)", "`(x - m) - log(sum(exp(x - m)))`"},
    {"tn_clip(x, low, high)", "`minimum(maximum(x, low), high)`"},
    {"tn_one_hot(i, count)", "`i == iota` along a new last axis, cast"},
};

static const char intro[] =
    "# Operations\n"
    "\n"
    "Everything that Tanso computes is a graph of the operations below. This page is printed from their one table,\n"
    "[`src/ops/ops.def`](../src/ops/ops.def), by [`operations.c`](operations.c); `ninja -C build docs` writes it\n"
    "anew, and a test fails when the page and the table differ. [architecture.md](architecture.md) says how to add a\n"
    "row.\n"
    "\n"
    "The columns:\n"
    "\n"
    "- **dtypes**: what the operation computes in. *all*: every dtype. *numbers*: integers and floats; bool is\n"
    "  treated as NumPy does it (`+` is or, `*` is and, other arithmetic is of int8 or refused). *floats*: floats;\n"
    "  integers and bool become floats first, as in NumPy (int8 → float16, int16 → float32, wider → float64; true\n"
    "  division: always float64). *integers*: integers and bool, floats are refused. *bools*: operands are cast to\n"
    "  bool. float16 and bfloat16 are computed in float32 and rounded once at the end.\n"
    "- **result**: the dtype of the result: the one computed in, or bool, or int64.\n"
    "- **gradient**: *yes*: has a gradient rule, which is made of these operations again, so that every order works.\n"
    "  *stops*: a constant as far as differentiation goes.\n";

static const char *lower(const char *word)
{
    static char text[32];
    size_t i = 0;
    for (; word[i] && i + 1 < sizeof text; i++)
        text[i] = word[i] >= 'A' && word[i] <= 'Z' ? (char)(word[i] + 'a' - 'A') : word[i];
    text[i] = 0;
    return text;
}

static const char *result_of(const row *r)
{
    return strcmp(r->result, "BOOL") == 0 ? "bool" : strcmp(r->result, "INT64") == 0 ? "int64" : "same";
}

static const char *gradient_of(const row *r) { return strcmp(r->grad, "none") == 0 ? "stops" : "yes"; }

static void print_text(const char *text) /* in a cell of a table */
{
    for (; *text; text++)
        printf(*text == '|' ? "\\|" : "%c", *text);
}

static void print_recorded_by(const char *name)
{
    for (int i = 0; i < COUNT(recorded_by); i++) {
        if (strcmp(recorded_by[i][0], name) == 0) {
            printf("%s", recorded_by[i][1]);
            return;
        }
    }
    printf("`tn_%s`", name);
}

static void print_notes(const row *r)
{
    static const struct {
        int prop;
        const char *word;
    } words[] = {{TN_COMMUTATIVE, "commutative"}, {TN_EXPENSIVE, "expensive"}, {TN_CONDITION, "a is bool"},
                 {TN_ARG, "a position"}, {TN_REAL, "real"}, {TN_ORDERED, "order matters"}};
    const char *comma = "";
    for (int i = 0; i < COUNT(words); i++) {
        if (r->props & words[i].prop) {
            printf("%s%s", comma, words[i].word);
            comma = ", ";
        }
    }
}

static void print_maps(int arity, const char *title)
{
    printf("\n## %s\n\n"
           "| function | value | dtypes | result | gradient | notes |\n| --- | --- | --- | --- | --- | --- |\n",
           title);
    for (int i = 0; i < COUNT(maps); i++) {
        if (maps[i].arity != arity)
            continue;
        printf("| ");
        print_recorded_by(maps[i].name);
        printf(" | ");
        print_text(maps[i].doc);
        printf(" | %s | %s | %s | ", lower(maps[i].types), result_of(&maps[i]), gradient_of(&maps[i]));
        print_notes(&maps[i]);
        printf(" |\n");
    }
}

static void print_reductions(void)
{
    printf("\n## Reductions\n\n"
           "Over any set of axes (`.axis`, default all; `.keepdims`); positions over one axis or the flat array. The\n"
           "order in which elements combine depends on the shape alone, see `src/device/order.h`.\n\n"
           "| function | value | dtypes | result | gradient | notes |\n| --- | --- | --- | --- | --- | --- |\n");
    for (int i = 0; i < COUNT(reductions); i++) {
        printf("| `tn_%s` | ", reductions[i].name);
        print_text(reductions[i].doc);
        printf(" | %s | %s | %s | ", lower(reductions[i].types), result_of(&reductions[i]),
               gradient_of(&reductions[i]));
        print_notes(&reductions[i]);
        printf(" |\n");
    }
}

static void print_generators(void)
{
    printf("\n## Fresh values\n\n"
           "Functions of an element's position and, for random numbers, of two run-time scalars (Philox 4x32-10).\n\n"
           "| operation | value | dtypes | recorded by |\n| --- | --- | --- | --- |\n");
    for (int i = 0; i < COUNT(generators); i++) {
        printf("| %s | ", generators[i].name);
        print_text(generators[i].doc);
        printf(" | %s | ", lower(generators[i].types));
        print_recorded_by(generators[i].name);
        printf(" |\n");
    }
}

static void print_others(void)
{
    printf("\n## Leaves, views, products, indexing\n\n"
           "| operation | kind | inputs | value | gradient | recorded by |\n| --- | --- | --- | --- | --- | --- |\n");
    for (int i = 0; i < COUNT(others); i++) {
        printf("| %s | %s | %d | ", others[i].name, lower(others[i].types), others[i].arity);
        print_text(others[i].doc);
        printf(" | %s | ", others[i].arity ? gradient_of(&others[i]) : "");
        print_recorded_by(others[i].name);
        printf(" |\n");
    }
}

static void print_composites(void)
{
    printf("\n## Functions made of several operations\n\n"
           "These have no row of their own; the compiler fuses what they are made of.\n\n"
           "| function | is |\n| --- | --- |\n");
    for (int i = 0; i < COUNT(composites); i++)
        printf("| `%s` | %s |\n", composites[i][0], composites[i][1]);
}

int main(void)
{
    fputs(intro, stdout);
    print_maps(1, "Elementwise, one operand");
    print_maps(2, "Elementwise, two operands");
    print_maps(3, "Elementwise, three operands");
    print_reductions();
    print_generators();
    print_others();
    print_composites();
    return ferror(stdout) != 0;
}
