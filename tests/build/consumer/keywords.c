/* SPDX-License-Identifier: MIT */
/*
 * Every function with keyword arguments, once without and once with some, and every kind of list: one program, as
 * strict C11 and as C++20, that prints the same in both. Keywords stand in the order of their struct's fields, as C++
 * asks.
 */
#include <stdio.h>
#include <string.h>
#include <tanso.h>

TN_UFUNC(double, twice_and, (double a, double b), { return 2 * a + b; })

static int failed;

/* What both languages must print. */
static void show(const char *name, const tn_array *x)
{
    printf("%s ", name);
    tn_print(x);
}

static void check(const char *name, bool holds)
{
    printf("%s %d\n", name, holds);
    failed |= !holds;
}

static void done(const char *name, tn_status status)
{
    printf("%s %s\n", name, tn_status_name(status));
    failed |= status != TN_OK;
}

#define SHOW(x)  show(#x, x)
#define CHECK(x) check(#x, x)
#define DONE(x)  done(#x, x)

static void creation(void)
{
    static const float values[] = {1, 2, 3};
    SHOW(tn_zeros(TN_SHAPE(2)));
    SHOW(tn_zeros(TN_SHAPE(2), .dtype = TN_INT64, .device = tn_cpu()));
    SHOW(tn_ones(TN_SHAPE(2, 2), .dtype = TN_BOOL));
    SHOW(tn_full(TN_SHAPE(2), 0.5));
    SHOW(tn_full(TN_SHAPE(2), 0.5, .dtype = TN_FLOAT64));
    SHOW(tn_arange(0, 6, 2, .dtype = TN_FLOAT16));
    SHOW(tn_arange_int64(5, 0, -2));
    SHOW(tn_linspace(0, 1, 3, .dtype = TN_FLOAT64));
    SHOW(tn_linspace_arrays(0, tn_ones(TN_SHAPE(2)), 2, .open = true));
    SHOW(tn_logspace(0, 2, 3, .base = 2));
    SHOW(tn_geomspace(1, 4, 3, .dtype = TN_FLOAT32));
    SHOW(tn_eye(2, -1, .dtype = TN_INT8));
    SHOW(tn_identity(2));
    SHOW(tn_tri(2, 3, 0, .dtype = TN_INT32));
    SHOW(tn_scalar(3));
    SHOW(tn_from_host(values, TN_SHAPE(3), TN_FLOAT32, .device = tn_cpu()));
    SHOW(tn_empty(TN_SHAPE(1)));
    SHOW(tn_empty_like(tn_ones(TN_SHAPE(2)), .dtype = TN_INT64));
    SHOW(tn_full_like(tn_ones(TN_SHAPE(2)), 7));
    SHOW(tn_indices(TN_SHAPE(2, 2), .dtype = TN_INT32));
    SHOW(tn_bartlett(3)), SHOW(tn_blackman(3)), SHOW(tn_hamming(3)), SHOW(tn_hanning(3, .dtype = TN_FLOAT64));
    SHOW(tn_kaiser(3, 2));
    SHOW(tn_fft_fftfreq(4, 0.5)), SHOW(tn_fft_rfftfreq(4, 0.5, .dtype = TN_FLOAT32));
    tn_array *grid[2];
    DONE(tn_meshgrid(TN_ARRAYS(tn_arange(0, 2, 1), tn_arange(0, 3, 1)), grid, .ij = true, .sparse = true));
    SHOW(grid[0]);
}

static void reductions(void)
{
    tn_array *x = tn_reshape(tn_arange(0, 6, 1, .dtype = TN_FLOAT64), TN_SHAPE(2, 3)), *m = tn_greater(x, 1);
    tn_array *hole = tn_where(m, x, tn_scalar(0.0 / tn_item(tn_scalar(0)))), *total = NULL, *edges[2] = {NULL, NULL};
    SHOW(tn_sum(x)), SHOW(tn_sum(x, .axis = TN_AXES(1), .keepdims = true, .dtype = TN_FLOAT32, .where = m));
    SHOW(tn_sum(tn_sum(x, .axis = TN_AXES(1))));
    SHOW(tn_prod(x, .axis = TN_AXES(0), .initial = tn_scalar(2)));
    SHOW(tn_mean(x, .axis = TN_AXES(-1))), SHOW(tn_var(x, .ddof = 1)), SHOW(tn_std(x, .axis = TN_AXES(0, 1)));
    SHOW(tn_max(x)), SHOW(tn_min(x, .keepdims = true)), SHOW(tn_any(x)), SHOW(tn_all(x, .axis = TN_AXES(0)));
    SHOW(tn_argmax(x)), SHOW(tn_argmin(x, .axis = TN_AXES(1))), SHOW(tn_logsumexp(x, .axis = TN_AXES(0)));
    SHOW(tn_median(x)), SHOW(tn_ptp(x, .axis = TN_AXES(1))), SHOW(tn_count_nonzero(x, .axis = TN_AXES(0)));
    SHOW(tn_quantile(x, 0.5)), SHOW(tn_percentile(x, 25, .axis = TN_AXES(1), .keepdims = true, .method = "lower"));
    SHOW(tn_nanquantile(hole, 0.5)), SHOW(tn_nanpercentile(hole, 50, .method = "higher"));
    SHOW(tn_average(x, NULL, NULL)), SHOW(tn_average(x, x, &total, .axis = TN_AXES(1))), SHOW(total);
    SHOW(tn_nansum(hole)), SHOW(tn_nanprod(hole, .dtype = TN_FLOAT32)), SHOW(tn_nanmean(hole)), SHOW(tn_nanvar(hole));
    SHOW(tn_nanstd(hole, .ddof = 1)), SHOW(tn_nanmax(hole)), SHOW(tn_nanmin(hole)), SHOW(tn_nanmedian(hole));
    SHOW(tn_nanargmax(hole)), SHOW(tn_nanargmin(hole)), SHOW(tn_nancumsum(hole)), SHOW(tn_nancumprod(hole));
    SHOW(tn_histogram(x, &edges[0], .bins = 3, .density = true)), SHOW(edges[0]);
    SHOW(tn_histogram_bin_edges(x, .bins = 2, .low = 0, .high = 4));
    SHOW(tn_histogramdd(x, NULL)), SHOW(tn_histogram2d(tn_index(x, 0), tn_index(x, 1), edges, .density = true));
    SHOW(tn_cumsum(x, .axis = TN_AXES(1))), SHOW(tn_cumprod(x)), SHOW(tn_cummax(x, .axis = TN_AXES(0)));
    SHOW(tn_cummin(x)), SHOW(tn_linalg_norm(x, .ord = TN_FRO, .axis = TN_AXES(0, 1), .keepdims = true));
}

static void order(void)
{
    const double values[] = {3, 1, 2, 3};
    tn_array *x = tn_from_doubles(values, 4), *positions = NULL, *counts = NULL, *inverse = NULL;
    SHOW(tn_sort(x)), SHOW(tn_argsort(x, .axis = TN_AXES(0)));
    SHOW(tn_partition(x, TN_INTS(1))), SHOW(tn_argpartition(x, TN_INTS(0, -1), .axis = TN_AXES(-1)));
    SHOW(tn_topk(x, 2, &positions)), SHOW(positions);
    SHOW(tn_lexsort(TN_ARRAYS(tn_arange(4, 0, -1), x)));
    SHOW(tn_searchsorted(tn_sort(x), 2)), SHOW(tn_searchsorted(tn_sort(x), 3.0, .right = true));
    SHOW(tn_digitize(x, tn_arange(0, 4, 1), .right = true));
    SHOW(tn_unique(x)), SHOW(tn_unique(x, .inverse = &inverse, .counts = &counts)), SHOW(inverse), SHOW(counts);
    SHOW(tn_take_any(x, -1)), SHOW(tn_take_any(x, 9, .axis = TN_AXES(0), .mode = "clip"));
}

static void arithmetic(void)
{
    tn_array *x = tn_arange(1, 4, 1, .dtype = TN_FLOAT64), *y = tn_zeros(TN_SHAPE(3), .dtype = TN_FLOAT64);
    const int64_t width[1][2] = {{1, 2}};
    const double ends[1][2] = {{7, 8}};
    SHOW(tn_unary(tn_exp, x)), SHOW(tn_binary(tn_add, x, 1, .out = y, .where = tn_greater(x, 1))), SHOW(y);
    SHOW(tn_isclose(x, y)), CHECK(!tn_allclose(x, 1, .rtol = 0.1, .atol = 0.1)), CHECK(tn_allclose(x, x));
    SHOW(tn_cross(x, x)), SHOW(tn_cross(x, y, .a = TN_AXES(0)));
    SHOW(tn_pad(x, width)), SHOW(tn_pad(x, width, .mode = "constant", .values = ends));
    SHOW(tn_polyfit(x, x, 1)), SHOW(tn_round(tn_polyfit(x, y, 1, .weights = x), 3));
    SHOW(tn_add(x, 2.5L)), SHOW(tn_multiply(2, x)), SHOW(tn_subtract(true, x));
}

static void lists(void)
{
    tn_array *a = tn_arange(0, 3, 1), *b = tn_arange(3, 6, 1), *parts[2], *out = tn_zeros(TN_SHAPE(6));
    SHOW(tn_concatenate(TN_ARRAYS(a, b), 0)), SHOW(tn_stack(TN_ARRAYS(a, b, tn_add(a, b)), 1));
    SHOW(tn_concatenate_with(TN_ARRAYS(a, b), 0, TN_OPTS(tn_out_opts, .out = out))), SHOW(out);
    SHOW(tn_vstack(TN_ARRAYS(a, b))), SHOW(tn_hstack(TN_ARRAYS(a, b))), SHOW(tn_dstack(TN_ARRAYS(a)));
    SHOW(tn_column_stack(TN_ARRAYS(a, b))), SHOW(tn_einsum("i,i->", TN_ARRAYS(a, b)));
    SHOW(tn_linalg_multi_dot(TN_ARRAYS(tn_eye(2, -1), tn_ones(TN_SHAPE(2, 2)), tn_eye(2, -1))));
    SHOW(tn_choose(tn_greater(a, 1), TN_ARRAYS(a, b), "raise"));
    SHOW(tn_ravel_multi_index(TN_ARRAYS(tn_arange(0, 2, 1), tn_arange(0, 2, 1)), TN_SHAPE(2, 3), "raise"));
    DONE(tn_broadcast_arrays(TN_ARRAYS(a, tn_ones(TN_SHAPE(2, 1))), parts)), SHOW(parts[0]);
    DONE(tn_eval_all(TN_ARRAYS(a, b)));
    CHECK(tn_result_type(TN_ARRAYS(a, tn_ones(TN_SHAPE(1)))) == TN_FLOAT64);
    SHOW(tn_insert(a, TN_INTS(1, 2), 9, TN_AXES(0))), SHOW(tn_delete(a, TN_INTS(-1), TN_AXES(0)));
    SHOW(tn_roll(a, TN_INTS(1), TN_AXES(0)));
    DONE(tn_split_at(b, TN_INTS(1), 0, parts)), SHOW(parts[1]);
    SHOW(tn_index_add(a, b, TN_KEYS(TN_DOTS))), SHOW(tn_get(b, TN_RANGE(1, TN_NONE, 1))), SHOW(tn_get(b, TN_WHOLE));
    SHOW(tn_get(b, TN_NEWAXIS, TN_PICK(tn_greater(b, 3))));
    DONE(tn_set(b, 7, TN_I(0))), DONE(tn_add_at(b, a, TN_KEYS(TN_PICK(a)))), SHOW(b);
}

static void matrices(void)
{
    const double values[] = {4, 1, 1, 3};
    tn_array *a = tn_from_host(values, TN_SHAPE(2, 2), TN_FLOAT64), *b = tn_index(a, 0), *p, *q, *r, *s;
    SHOW(tn_linalg_solve(a, b)), SHOW(tn_linalg_inv(a)), SHOW(tn_linalg_pinv(a, .rcond = 1e-10));
    SHOW(tn_linalg_matrix_rank(a, .tol = 1)), SHOW(tn_linalg_cholesky(a)), SHOW(tn_linalg_cholesky(a, .upper = true));
    DONE(tn_linalg_qr(a, &q, &r, .mode = TN_QR_COMPLETE)), SHOW(r);
    DONE(tn_linalg_svd(a, &p, &s, &q, .reduced = true)), SHOW(s);
    DONE(tn_linalg_eigh(a, &p, NULL)), SHOW(p), SHOW(tn_linalg_eigvalsh(a, .upper = true));
    DONE(tn_linalg_lstsq(a, b, &p, NULL, NULL, NULL, .rcond = 1e-10)), SHOW(p);
    SHOW(tn_linalg_norm(a)), SHOW(tn_linalg_norm(a, .ord = TN_ORD(1))), SHOW(tn_linalg_cond(a, TN_ORD(2)));
}

static void transforms(void)
{
    tn_array *x = tn_reshape(tn_arange(0, 6, 1, .dtype = TN_FLOAT64), TN_SHAPE(2, 3));
    SHOW(tn_fft_fft(x, .n = 2, .axis = TN_AXES(0), .norm = TN_FFT_ORTHO)), SHOW(tn_fft_ifft(x)), SHOW(tn_fft_rfft(x));
    SHOW(tn_fft_irfft(x, .n = 4)), SHOW(tn_fft_hfft(x)), SHOW(tn_fft_ihfft(x)), SHOW(tn_fft_fftshift(x, TN_AXES(1)));
    SHOW(tn_fft_fftn(x, .s = TN_SHAPE(2, 2), .axes = TN_AXES(0, 1))), SHOW(tn_fft_ifftn(x)), SHOW(tn_fft_rfftn(x));
    SHOW(tn_fft_irfftn(x)), SHOW(tn_fft_fft2(x)), SHOW(tn_fft_ifft2(x)), SHOW(tn_fft_rfft2(x)), SHOW(tn_fft_irfft2(x));
}

static void draws(void)
{
    const double thirds[] = {0.25, 0.75};
    tn_generator own = {42, 0};
    tn_array *p = tn_from_doubles(thirds, 2), *x = tn_arange(0, 5, 1);
    const tn_shape two = TN_SHAPE(2);
    tn_seed(7);
    SHOW(tn_random_uniform(two)), SHOW(tn_random_uniform(two, .low = -1, .high = 1, .generator = &own));
    SHOW(tn_random_normal(two, .loc = 1, .scale = 2, .dtype = TN_FLOAT64)), SHOW(tn_random_integers(0, 9, two));
    SHOW(tn_random_permutation(4, .generator = &own)), SHOW(tn_random_bernoulli(0.5, two, .dtype = TN_INT8));
    SHOW(tn_random_exponential(2, two)), SHOW(tn_random_exponential(p, TN_FIT)), SHOW(tn_random_chisquare(2.0, two));
    SHOW(tn_random_standard_t(3, two)), SHOW(tn_random_rayleigh(1, two)), SHOW(tn_random_weibull(1, two));
    SHOW(tn_random_pareto(1, two)), SHOW(tn_random_power(2, two)), SHOW(tn_random_geometric(0.5, two));
    SHOW(tn_random_poisson(3, two, .dtype = TN_INT32)), SHOW(tn_random_gamma(2, 0.5, two)),
        SHOW(tn_random_beta(1, 2, two));
    SHOW(tn_random_f(2, 3, two)), SHOW(tn_random_lognormal(0, 1, two)), SHOW(tn_random_laplace(0, 1, two));
    SHOW(tn_random_logistic(0, 1, two)), SHOW(tn_random_gumbel(0, 1, two)), SHOW(tn_random_cauchy(0, 1, two));
    SHOW(tn_random_wald(1, 1, two)), SHOW(tn_random_vonmises(0, 1, two)), SHOW(tn_random_binomial(9, 0.5, two));
    SHOW(tn_random_negative_binomial(2, 0.5, two)), SHOW(tn_random_triangular(0, 1, 2, two));
    SHOW(tn_random_hypergeometric(5, 5, 3, two)), SHOW(tn_random_multinomial(9, p, two)),
        SHOW(tn_random_dirichlet(p, two));
    SHOW(tn_random_multivariate_normal(p, tn_eye(2, -1), two));
    SHOW(tn_random_choice(2, two, .p = p)), SHOW(tn_random_choice(9, two, .once = true, .generator = &own));
    SHOW(tn_random_permuted(x)), DONE(tn_random_shuffle(x, .axis = 0)), SHOW(x);
}

static void kernels(void)
{
    const short k = 3;
    tn_array *x = tn_arange(1, 4, 1, .dtype = TN_FLOAT64), *out[1] = {NULL};
    const tn_kernel *add = tn_elementwise("T x, T y", "T z", "z = x + y", "add");
    const tn_kernel *sine = tn_elementwise("T x", "T z", "z = sin(x)", "sine", .gradient = "gx = gz * cos(x)");
    const tn_kernel *sum = tn_reduction("T x", "T y", "x", "a + b", "y = a", "0", "sum_of", .accumulate = "T");
    const tn_kernel *fold = tn_vectorize(twice_and), *scan = tn_vectorize(twice_and, .identity = "0");
    SHOW(tn_call(add, TN_ARGS(x, 2))), SHOW(tn_call(sine, TN_ARGS(x))),
        SHOW(tn_call(sum, TN_ARGS(x), .keepdims = true));
    DONE(tn_call_into(add, TN_ARGS(x, x), 1, out)), SHOW(out[0]);
    SHOW(tn_ufunc_reduce(fold, x)), SHOW(tn_ufunc_accumulate(scan, x, .axis = 0)), SHOW(tn_ufunc_outer(fold, x, x));
    tn_kernel *raw = tn_raw_kernel("void fill(double *y, short k, unsigned char m) { y[0] = k + m; }", "fill");
    DONE(tn_launch(raw, TN_ARGS(TN_WRITES(x), k, (unsigned char)4), .grid = {1}, .block = {64})), SHOW(x);
    raw = tn_raw_kernel("void nothing(void) { }", "nothing");
    DONE(tn_launch(raw, TN_NO_ARGS));
}

static tn_array *product(int count, tn_array *const *xs, void *user)
{
    (void)count, (void)user;
    return tn_tanh(tn_matmul(xs[0], xs[1]));
}

static tn_array *descend(const tn_update *update, const tn_array *p, const tn_array *g, tn_array **state)
{
    state[0] = tn_add(tn_multiply(state[0], 0.5), g);
    return tn_subtract(p, tn_multiply(state[0], update->set->lr));
}

typedef struct lesson {
    tn_layer *net;
    tn_array *x;
} lesson;

static tn_array *missed(void *user)
{
    lesson *l = TN__CAST(lesson *, user);
    return tn_mean(tn_square(tn_forward(l->net, l->x)));
}

static void training(void)
{
    tn_array *x = tn_requires_grad(tn_full(TN_SHAPE(2), 3)), *y = tn_sum(tn_multiply(x, tn_square(x))), *two[2];
    DONE(tn_backward(y, .create_graph = true)), SHOW(tn_grad(x));
    DONE(tn_gradients(y, TN_ARRAYS(x), false, two)), SHOW(two[0]);
    DONE(tn_check_backward(product, NULL, TN_ARRAYS(tn_eye(2, -1), tn_ones(TN_SHAPE(2, 2)))));
    DONE(tn_check_double_backward(product, NULL, TN_ARRAYS(tn_eye(2, -1), x), .eps = 1e-3, .rtol = 1e-3));

    tn_seed(3);
    tn_layer *net = tn_sequential(tn_linear(4, .in = 2, .weight = {.kind = TN_INIT_HE_NORMAL, .gain = 1}),
                                  tn_relu_layer(), tn_linear(3, .no_bias = true));
#define PLAIN(name) tn_##name(net),
    tn_optimizer *opts[] = {
        tn_sgd(net, .lr = 0.1), tn_momentum_sgd(net, .momentum = 0.8), tn_adam(net, .lr = 0.01, .beta1 = 0.8),
        tn_adamw(net, .weight_decay = 0.1, .clip_norm = 1), tn_rmsprop(net, .lr = 0.001, .rho = 0.9),
        tn_adabound(net, .final_lr = 0.01), tn_msvag(net, .lr = 0.01), TN_OPTIMIZER_KINDS(PLAIN)
        tn_optimizer_new(net, "h", descend, NULL, .lr = 0.01)};
    int count = (int)(sizeof opts / sizeof *opts);
    DONE(tn_optimizer_for(opts[0], "*.b", .lr = 0, .weight_decay = 0.1));
    DONE(tn_optimizer_distribute(opts[0], tn_comm_self(), .shard = 1, .bucket = 1 << 20));
    DONE(tn_optimizer_gather(opts[0]));
    lesson searched = {tn_sequential(tn_linear(2, .in = 2)), x};
    double missed_by = 0;
    DONE(tn_sequential_insert(searched.net, 0, tn_relu_layer()));
    tn_layer_free(tn_sequential_pop(searched.net, 0));
    tn_lbfgs *lbfgs = tn_lbfgs(searched.net, .lr = 0.5, .iterations = 3, .evaluations = 4, .gradient_tolerance = 0,
                               .change_tolerance = 0, .history = 2, .strong_wolfe = true);
    DONE(tn_lbfgs_step(lbfgs, missed, &searched, &missed_by));
    tn_lbfgs_free(lbfgs);
    tn_layer_free(searched.net);
    tn_dataset *all = tn_spiral(5, 1), *first, *rest;
    DONE(tn_dataset_split(all, 4, &first, &rest, .shuffle = true, .seed = 1));
    tn_dataset_free(first);
    tn_dataset_free(rest);
    tn_dataset_free(tn_dataset_part(all, 3, 0, .shuffle = true));
    tn_dataset_free(tn_dataset_fold(all, 3, 0, TN_TEST, .shuffle = true, .seed = 2));
    tn_dataset_free(all);
    const tn_sample_type sample = {TN_FLOAT32, TN_SHAPE(2)};
    tn_dataset_free(tn_dataset_of(3, sample, sample, NULL, NULL, .classes = 2)); /* which has no function */
    tn_dataset_free(tn_image_files(0, NULL, NULL, .channels = 1, .height = 8, .width = 8));
    tn_dataset_free(tn_image_folder("no folder", .channels = 1));
    tn_free(tn_load_image("no file", .channels = 1));
    tn_clear_error();
    tn_dataset_free(tn_dataset_images(NULL, .pad = 4, .crop_height = 32, .flip = true));
    tn_dataset_free(tn_dataset_transform(NULL, sample, sample, NULL, NULL, .classes = 2));
    tn_clear_error();
    tn_array *three = tn_ones(TN_SHAPE(3)), *counts = tn_full(TN_SHAPE(3), 1, .dtype = TN_INT64);
    tn_dataset *named = tn_dataset_fields({"a", three}, {"b", counts}, {"c", three});
    CHECK(tn_dataset_field_count(named) == 3);
    tn_dataset *both = tn_dataset_zip(named, named);
    CHECK(tn_dataset_field_count(both) == 6);
    tn_dataset_free(both);
    tn_dataset_free(named);
    tn_dataset_free(tn_dataset_ragged(three, counts, three));
    tn_dataset_free(tn_dataset_ragged(three, counts, three, .padding = -1, .multiple = 2));
    SHOW(tn_concat_examples(TN_ARRAYS(three, three)));
    SHOW(tn_concat_examples(TN_ARRAYS(three, tn_ones(TN_SHAPE(2))), .padding = -1));
    tn_words *words = tn_words_new();
    SHOW(tn_encode("a b a", words));
    SHOW(tn_encode("c b\n", words, .end = "a", .unknown = "a"));
    tn_load_encoded("no file", words, .end = "a");
    tn_words_free(words);
    tn_words_free(tn_load_lines("no file", .keep = NULL, .user = NULL));
    tn_table_free(tn_load_table("no file", .delimiter = ';', .types = TN_COLUMN_TYPES({"a", TN_WORDS})));
    tn_clear_error();
    const double weights[] = {1, 2};
    const int64_t lengths[] = {3, 4};
    tn_sampler_free(tn_weighted_sampler(2, weights, .samples = 5));
    tn_sampler_free(tn_length_sampler(2, lengths, .window = 3));
    tn_sampler_free(tn_rank_sampler(2, tn_comm_self(), .shuffle = true, .uneven = true));
    tn_sampler_free(tn_sampler_of(2, NULL, NULL, .free_user = NULL));
    tn_clear_error();
    tn_loader *loader = tn_loader_new(tn_spiral(5, 1), .batch = 8, .shuffle = true, .seed = 2, .drop_last = true);
    tn_batch b;
    for (int i = 0; i < count; i++) {
        CHECK(tn_loader_next(loader, &b) || tn_loader_next(loader, &b));
        DONE(tn_backward(tn_softmax_cross_entropy(tn_forward(net, b.x), b.t, .ignore_index = -1,
                                                  .label_smoothing = 0.1)));
        DONE(tn_step(opts[i]));
        tn_optimizer_free(opts[i]);
    }
    SHOW(tn_param_named(net, "0.W"));
    tn_loader_free(loader);
    tn_layer_free(net);
    tn_epoch last = {0, 0, 0, 0, 0, 0, 0};
    DONE(tn_train("spiral", NULL, .model = "linear:3", .epochs = 1, .batch = 100, .device = tn_cpu()));
    DONE(tn_train("spiral", &last, .model = "linear:3", .epochs = 2, .seed = 1, .device = tn_cpu()));
    printf("%d %.6f\n", last.epoch, last.train_loss);
    DONE(tn_train("spiral", NULL, .model = "linear:3", .schedule = "step", .extend = "early-stopping", .epochs = 1,
                  .device = tn_cpu(), .out = "compared"));
    const char *const compared[] = {"compared"}, *const keys[] = {"train_loss", NULL};
    DONE(tn_plot_runs(1, compared, "compared.svg"));
    DONE(tn_plot_runs(1, compared, "compared.svg", .keys = keys, .x_key = "epoch"));
}

static tn_status object(const tn_serializer *s, void *net)
{
    return tn_serialize_layer(s, "net", (tn_layer *)net);
}

static bool greater(double best, double value, void *user)
{
    (void)user;
    return value > best;
}

static tn_status nothing(tn_updater *updater, void *user)
{
    (void)updater, (void)user;
    return TN_OK;
}

static tn_status seen(tn_trainer *all, void *user)
{
    (void)all, (void)user;
    return TN_OK;
}

typedef struct factor {
    double by;
} factor;

static tn_array *scaled(tn_layer *layer, const tn_array *x, void *user)
{
    return tn_multiply(tn_forward(tn_layer_child(layer, "inner"), x), TN__CAST(factor *, user)->by);
}

static tn_status swapped(tn_layer *layer, const tn_flow *flow, void *user)
{
    (void)layer, (void)user;
    flow->out[0] = tn_add(flow->in[1], 0), flow->out[1] = tn_add(flow->in[0], 0);
    return TN_OK;
}

static void own_layers(void)
{
    factor half = {0.5};
    tn_layer *own = tn_layer_new("scale", scaled, &half, NULL, .size = sizeof half);
    tn_layer *both = tn_flow_layer("swap", swapped, NULL, NULL, .inputs = 2, .outputs = 2);
    DONE(tn_layer_add(own, "inner", tn_relu_layer()));
    tn_array *x = tn_arange(0, 3, 1), *a = NULL, *b = NULL;
    SHOW(tn_forward(own, x)), SHOW(tn_forward(both, x, tn_forward(own, x)));
    DONE(tn_forward_all(both, TN_ARRAYS(x, tn_ones(TN_SHAPE(1))), TN_RESULTS(&a, &b)));
    SHOW(a), SHOW(b), CHECK(tn_layer_user(own, "scale") != &half);
    tn_layer *plain = tn_linear(2, .in = 2), *tied = tn_layer_copy(plain, .mode = TN_COPY_SHARE);
    tn_layer *three = tn_layer_repeat(tn_layer_copy(plain), 3, .mode = TN_COPY_VALUES);
    DONE(tn_spectral_norm(plain, .weight = "W", .axis = 0)),
        DONE(tn_weight_norm_hook(plain, .weight = "W")), DONE(tn_weight_standardization(plain, .axis = 0)),
        DONE(tn_spectral_norm(tn_layer_child(three, "0")));
    tn_layer_free(plain);
    tn_layer_free(tied);
    tn_layer_free(three);
    tn_layer_free(own);
    tn_layer_free(both);
}

/* Made, and not run. */
static void trainers(void)
{
    tn_layer *net = tn_linear(2, .in = 2);
    tn_optimizer *sgd = tn_sgd(net, .lr = 0.1);
    tn_loader *loader = tn_loader_new(tn_spiral(5, 1), .batch = 8);
    tn_report(net, "loss", tn_scalar(1), .weight = 2), tn_report_number(net, "loss", 1);
    tn_trainer *idle = tn_trainer_new(tn_updater_of(nothing, loader, sgd, .accumulate = 1));
    tn_trainer_free(idle);
    tn_trainer *all = tn_trainer_new(tn_standard_updater(loader, sgd), .stop = TN_EVERY(2, TN_EPOCH), .out = "result",
                                     .comm = tn_comm_self());
    DONE(tn_extend(all, tn_evaluator(loader, net, .name = "main")));
    CHECK(tn_trainer_load(all, "nowhere.npz", .transpose = "*.W") == TN_ERR_IO);
    tn_clear_error();
    DONE(tn_extend_function(all, seen, NULL, .name = "seen", .trigger = tn_max_value("main/accuracy")));
    DONE(tn_extend(all, tn_snapshot_layer(net, "net_{iteration}", .keep = 1), .trigger = tn_min_value("main/loss")));
    DONE(tn_extend(all, tn_snapshot_object(object, net, "object_{iteration}", .keep = 1),
                   .trigger = tn_best_value("main/loss", greater, NULL)));
    DONE(tn_extend(all, tn_log_report(.file = "log")));
    DONE(tn_extend(all, tn_print_report("epoch", "main/loss")));
    DONE(tn_extend(all, tn_print_report_of(TN_KEYS_OF("epoch", "main/loss"), .file = "table", .log = "LogReport")));
    DONE(tn_extend(all, tn_plot_report(TN_KEYS_OF("main/loss", "lr"), .file = "plot.svg", .scale = TN_SCALE_LOG)));
    DONE(tn_extend(all, tn_progress_bar(.every = 10)));
    DONE(tn_extend(all, tn_micro_average("right", "all", "ratio")));
    DONE(tn_extend(all, tn_dump_graph("main/loss", .file = "graph.dot")));
    tn_array *params[] = {tn_param(net, 0)};
    DONE(tn_extend(all, tn_variable_statistics_plot(1, params, .file = "w.svg")));
    DONE(tn_extend(all, tn_parameter_statistics(.prefix = "p")));
    DONE(tn_extend(all, tn_exponential_shift("lr", 0.5, .first = 1, .target = 0)));
    DONE(tn_extend(all, tn_inverse_shift("lr", 0.1, 0.5)));
    DONE(tn_extend(all, tn_linear_shift("lr", 1, 0.2, 2, 6)));
    DONE(tn_extend(all, tn_multistep_shift("lr", 0.1, TN_POINTS(3, 5))));
    DONE(tn_extend(all, tn_polynomial_shift("lr", 2, 5)));
    DONE(tn_extend(all, tn_step_shift("lr", 0.1, 3)));
    DONE(tn_extend(all, tn_warmup_shift("lr", 0.1, 4)));
    DONE(tn_extend(all, tn_cosine_shift("lr", .length = {20, TN_EPOCH}, .warmup = 1)));
    DONE(tn_extend(all, tn_one_cycle_shift("lr", .rise = 0.2)));
    DONE(tn_extend(all, tn_reduce_on_plateau("lr", "main/loss", .patience = 0)));
    tn_trainer_free(all);
    tn_loader_free(loader);
    tn_optimizer_free(sgd);
    tn_layer_free(net);
}

static void files(const char *folder)
{
    char path[4096];
    static double memory[2] = {1, 2};
    const int64_t backwards[] = {-8};
    SHOW(tn_wrap(memory, TN_SHAPE(2), TN_FLOAT64)),
        SHOW(tn_wrap(memory + 1, TN_SHAPE(2), TN_FLOAT64, .strides = backwards));
    tn_archive *archive = tn_archive_new();
    DONE(tn_archive_add(archive, "x", tn_ones(TN_SHAPE(2))));
    snprintf(path, sizeof path, "%s/keywords.npz", folder);
    DONE(tn_archive_save(archive, path, .compressed = true)), DONE(tn_archive_save(archive, path));
    tn_archive_free(archive);
    archive = tn_archive_load(path, .limit = 1 << 20);
    SHOW(tn_archive_array(archive, 0));
    tn_archive_free(archive);
    archive = tn_archive_load(path);
    CHECK(tn_archive_count(archive) == 1);
    tn_archive_free(archive);
    snprintf(path, sizeof path, "%s/keywords.csv", folder);
    DONE(tn_save_csv(tn_eye(2, -1), path, .header = "a,b", .digits = 3));
    SHOW(tn_load_csv(path, .skip = 1, .dtype = TN_INT64)), DONE(tn_save_csv(tn_eye(2, -1), path)),
        SHOW(tn_load_csv(path));
    tn_layer *model = tn_classifier(tn_linear(1, .in = 2, .no_bias = true), .loss = tn_mean_squared_error),
             *other = tn_classifier(tn_linear(1, .in = 2));
    snprintf(path, sizeof path, "%s/model.npz", folder);
    DONE(tn_layer_save(model, path));
    DONE(tn_layer_load(model, path));
    DONE(tn_layer_load(other, path, .strict = false));
    tn_layer_free(model);
    tn_layer_free(other);
}

/* An option that is written counts, zero too. */
static void zeros(void)
{
    tn_layer *net = tn_linear(2, .in = 2, .no_bias = true);
    tn_optimizer *still[] = {tn_sgd(net, .lr = 0), tn_adam(net, .lr = 0, .beta1 = 0),
                             tn_momentum_sgd(net, .lr = 0, .momentum = 0), tn_adam(net, .beta1 = 0)};
    for (int i = 0; i < 4; i++) {
        tn_array *before = tn_positive(tn_param(net, 0));
        DONE(tn_backward(tn_sum(tn_forward(net, tn_ones(TN_SHAPE(3, 2))))));
        DONE(tn_step(still[i]));
        CHECK(tn_array_equal(before, tn_param(net, 0), false) == (i < 3));
        tn_optimizer_free(still[i]);
    }
    tn_layer_free(net);
    tn_loader *none = tn_loader_new(tn_spiral(5, 1), .batch = 0);
    CHECK(tn_error_code() == TN_ERR_VALUE);
    tn_clear_error();
    tn_loader_free(none);
    tn_array *x = tn_scalar(1, .dtype = TN_FLOAT64), *y = tn_scalar(1 + 1e-7, .dtype = TN_FLOAT64);
    CHECK(tn_allclose(x, y) && !tn_allclose(x, y, .rtol = 0, .atol = 0));
    SHOW(tn_random_normal(TN_SHAPE(2), .loc = 3, .scale = 0));
}

/* The trainer's. */
static tn_status no_update(tn_updater *updater, void *user)
{
    (void)updater, (void)user;
    return TN_OK;
}

static tn_status no_call(tn_trainer *trainer, void *user)
{
    (void)trainer, (void)user;
    return TN_OK;
}

static void trainer_parts(void)
{
    tn_layer *net = tn_linear(3);
    tn_optimizer *optimizer = tn_sgd(net);
    tn_loader *loader = tn_loader_new(tn_spiral(5, 1), .batch = 5);
    tn_updater_free(tn_standard_updater(loader, optimizer));
    const tn_device devices[] = {tn_cpu(), {TN_DEVICE_DEFAULT, 0}};
    tn_updater_free(tn_parallel_updater(loader, optimizer, .devices = devices, .mean_statistics = true));
    tn_updater *updater = tn_updater_of(no_update, loader, NULL, .accumulate = 1);
    tn_trainer *trainer = tn_trainer_new(updater, .stop = tn_early_stopping(.patience = 2), .out = "consumed");
    DONE(tn_extend(trainer, tn_evaluator(loader, net, .name = "net"), .trigger = tn_at_points(TN_EPOCH, 1, 2.5)));
    DONE(tn_extend(trainer, tn_snapshot(), .trigger = tn_max_value("a", .check = tn_once(.on_resume = true))));
    DONE(tn_extend(trainer, tn_snapshot_layer(net, "model_{epoch}", .keep = 1), .trigger = tn_min_value("a")));
    DONE(tn_extend_function(trainer, no_call, NULL, .trigger = TN_EVERY(0.5, TN_EPOCH), .priority = 0));
    tn_trainer_free(trainer);
    tn_summary *means = tn_summary_new(.deviations = true);
    DONE(tn_report_number(NULL, "a", 1, .weight = 2));
    tn_summary_free(means);
    tn_loader_free(loader);
    tn_optimizer_free(optimizer);
    tn_layer_free(net);
}

static void losses(void)
{
    tn_array *x = tn_full(TN_SHAPE(2, 3), 0.5), *w = tn_ones(TN_SHAPE(4, 3)), *two = tn_full(TN_SHAPE(2), 1.0);
    tn_array *t = tn_full(TN_SHAPE(2), 1, .dtype = TN_INT64), *steps = tn_ones(TN_SHAPE(3, 2, 3));
    tn_array *samples = tn_full(TN_SHAPE(2, 2), 2, .dtype = TN_INT64), *lengths = tn_add(t, 1);
    SHOW(tn_mean_squared_error(x, x));
    SHOW(tn_mean_squared_error(x, x, .reduction = TN_REDUCTION_SUM));
    SHOW(tn_sigmoid_cross_entropy(x, x, .weight = tn_ones(TN_SHAPE(3)), .reduction = TN_REDUCTION_SUM));
    SHOW(tn_mean_absolute_error(x, x, .reduction = TN_REDUCTION_NONE));
    SHOW(tn_huber_loss(x, x, 1, .reduction = TN_REDUCTION_SUM));
    SHOW(tn_smooth_l1_loss(x, x, 1));
    SHOW(tn_gaussian_nll(x, x, x, .reduction = TN_REDUCTION_SUM));
    SHOW(tn_bernoulli_nll(x, x, .reduction = TN_REDUCTION_SUM));
    SHOW(tn_poisson_nll(x, x));
    SHOW(tn_gaussian_kl_divergence(x, x));
    SHOW(tn_kl_divergence(x, x, .log_target = true, .batch_mean = true));
    SHOW(tn_nll_loss(x, t, .ignore_index = 0));
    SHOW(tn_hinge_loss(x, t, .squared = true));
    SHOW(tn_multi_margin_loss(x, t, .margin = 0.5, .p = 2));
    SHOW(tn_soft_margin_loss(x, x));
    SHOW(tn_hinge_embedding_loss(x, x, 1));
    SHOW(tn_margin_ranking_loss(x, x, x, 0.5));
    SHOW(tn_contrastive_loss(x, x, two, 1));
    SHOW(tn_cosine_embedding_loss(x, x, two, 0, .reduction = TN_REDUCTION_NONE));
    SHOW(tn_triplet_loss(x, x, x, .margin = 0.5, .p = 0, .swap = true));
    SHOW(tn_negative_sampling(x, t, w, samples));
    SHOW(tn_black_out(x, t, w, samples, .reduction = TN_REDUCTION_SUM));
    tn_array *paths, *codes;
    DONE(tn_huffman_tree(tn_arange(0, 3, 1), &paths, &codes));
    SHOW(tn_hierarchical_softmax(x, t, w, paths, codes));
    SHOW(tn_hierarchical_softmax(x, t, w, paths, codes, .reduction = TN_REDUCTION_SUM));
    SHOW(tn_ctc_loss(steps, samples, .blank = 0, .label_lengths = t));
    tn_array *mean = tn_zeros(TN_SHAPE(3));
    SHOW(tn_batch_norm_function(x, NULL, NULL, .axis = 0));
    SHOW(tn_fixed_batch_norm(x, NULL, NULL, mean, tn_ones(TN_SHAPE(3)), .eps = 0));
    tn_layer *layers[] = {tn_batch_norm(3, .momentum = 0.5, .no_beta = true), tn_instance_norm(2, .affine = true)};
    SHOW(tn_forward(layers[0], x));
    SHOW(tn_forward(layers[1], steps));
    tn_layer_free(layers[0]), tn_layer_free(layers[1]);
    tn_layer *nets[] = {tn_lstm(2, .forget_bias = 1), tn_gru(2, .layers = 2), tn_rnn(TN_RNN_TANH, 2, .no_bias = true),
                        tn_rnn_step(TN_RNN_GRU, 2, .in = 3), tn_multihead_attention(3, 1, .causal = true)};
    for (int i = 0; i < 5; i++) {
        CHECK(tn_ok() && tn_ndim(tn_forward(nets[i], i == 3 ? x : steps)) == (i == 3 ? 2 : 3));
        tn_layer_free(nets[i]);
    }
    tn_array *classes = tn_subtract(t, t);
    SHOW(tn_class_accuracy(x, classes, .top = 2));
    SHOW(tn_confusion_matrix(x, classes));
    SHOW(tn_precision(x, classes, .ignore_index = 1));
    SHOW(tn_recall(classes, classes, .classes = 1));
    SHOW(tn_support(classes, classes, .classes = 1));
    SHOW(tn_f_score(classes, classes, .classes = 1, .beta = 2));
    SHOW(tn_embedding_bag(w, samples, .mode = TN_BAG_SUM));
    SHOW(tn_embedding_function(w, samples, .padding_index = 1));
    tn_layer_free(tn_embedding(3, 2, .padding_index = 0));
    SHOW(tn_scaled_dot_product_attention(x, x, x, .causal = true));
    SHOW(tn_crf_loss(tn_ones(TN_SHAPE(3, 3)), steps, tn_ones(TN_SHAPE(3, 2), .dtype = TN_INT64), .lengths = lengths));
}

static void windows(void)
{
    tn_array *x = tn_ones(TN_SHAPE(1, 4, 4, 4)), *w = tn_ones(TN_SHAPE(2, 4, 3, 3)), *v = tn_ones(TN_SHAPE(4, 2, 2, 2));
    CHECK(tn_dim(tn_conv(x, w), 2) == 2);
    CHECK(tn_dim(tn_conv(x, w, .stride = TN_SHAPE(2), .pad = TN_SHAPE(1, 1)), 2) == 2);
    CHECK(tn_dim(tn_conv_transpose(x, v), 2) == 5);
    CHECK(tn_dim(tn_conv_transpose(x, v, .stride = TN_SHAPE(2), .groups = 2), 1) == 4);
    SHOW(tn_max_pool(x, TN_SHAPE(4)));
    CHECK(tn_dim(tn_max_pool(x, TN_SHAPE(2), .stride = TN_SHAPE(1)), 2) == 3);
    CHECK(tn_dim(tn_average_pool(x, TN_SHAPE(2)), 2) == 2);
    CHECK(tn_dim(tn_average_pool(x, TN_SHAPE(2), .exclude_pad = true), 2) == 2);
    CHECK(tn_dim(tn_sum_pool(x, TN_SHAPE(2), .ceil = true), 2) == 2);
    CHECK(tn_dim(tn_lp_pool(x, 2, TN_SHAPE(2), .stride = TN_SHAPE(2)), 2) == 2);
    CHECK(tn_dim(tn_max_pool_indices(x, TN_SHAPE(2), .stride = TN_SHAPE(2)), 2) == 2);
    CHECK(tn_dim(tn_unpool(x, TN_SHAPE(2), .stride = TN_SHAPE(2)), 2) == 8);
    tn_array *columns = tn_unfold(x, TN_SHAPE(2), .stride = TN_SHAPE(2));
    CHECK(tn_dim(tn_fold(columns, TN_SHAPE(4, 4), TN_SHAPE(2), .stride = TN_SHAPE(2)), 1) == 4);
    CHECK(tn_dim(tn_interpolate(x, TN_SHAPE(8), .mode = "linear", .align_corners = true), 3) == 8);
    tn_array *places = tn_affine_grid(tn_zeros(TN_SHAPE(1, 2, 3)), TN_SHAPE(3, 2), true);
    tn_array *box = tn_ones(TN_SHAPE(1, 5));
    CHECK(tn_dim(tn_grid_sample(x, places), 3) == 2);
    CHECK(tn_dim(tn_grid_sample(x, places, .mode = "nearest", .align_corners = true), 2) == 3);
    CHECK(tn_dim(tn_roi_align(x, tn_subtract(box, 1), TN_SHAPE(2)), 0) == 1);
    CHECK(tn_dim(tn_roi_pool(x, tn_subtract(box, 1), TN_SHAPE(2), .scale = 0.5, .average = true), 3) == 2);
    CHECK(tn_dim(tn_spatial_pyramid_pool(x, 2), 1) == 20);
    CHECK(tn_dim(tn_depth_to_space(x, 2, .depth_first = true), 1) == 1);
    CHECK(tn_dim(tn_space_to_depth(x, 2), 1) == 16);
    CHECK(tn_dim(tn_local_response_norm(x, .size = 3, .beta = 0.5), 1) == 4);
    tn_layer *net = tn_sequential(tn_conv2d(3, TN_SHAPE(3), .pad = TN_SHAPE(1)), tn_max_pool_layer(TN_SHAPE(2)),
                                  tn_conv_transpose2d(2, TN_SHAPE(2), .stride = TN_SHAPE(2)),
                                  tn_average_pool_layer(TN_SHAPE(2), .ceil = true),
                                  tn_depthwise_conv2d(1, TN_SHAPE(1), .in = 2));
    CHECK(tn_dim(tn_forward(net, x), 1) == 2);
    tn_layer_free(net);
    net = tn_sequential(tn_conv1d(3, TN_SHAPE(3), .no_bias = true), tn_conv_transpose1d(2, TN_SHAPE(2), .in = 3));
    CHECK(tn_dim(tn_forward(net, tn_ones(TN_SHAPE(1, 2, 6))), 2) == 5);
    tn_layer_free(net);
    net = tn_sequential(tn_mlp_conv2d(TN_SHAPE(2, 3), TN_SHAPE(1), NULL, .in = 4), tn_inception(1, 1, 1, 1, 1, 1),
                        tn_inception_bn(0, 1, 1, 1, 1), tn_inception_bn(1, 1, 1, 1, 1, .proj_pool = 2));
    CHECK(tn_dim(tn_forward(net, x), 1) == 5);
    tn_layer_free(net);
    net = tn_sequential(tn_transformer_encoder_layer(4, 2), tn_transformer_encoder_layer(4, 2, .hidden = 3));
    CHECK(tn_dim(tn_forward(net, tn_ones(TN_SHAPE(1, 2, 4))), 1) == 2);
    tn_layer_free(net);
    net = tn_sequential(tn_conv3d(3, TN_SHAPE(1), .in = 2), tn_conv_transpose3d(2, TN_SHAPE(1), .groups = 1));
    CHECK(tn_dim(tn_forward(net, tn_ones(TN_SHAPE(1, 2, 2, 2, 2))), 1) == 2);
    tn_layer_free(net);
}

static void models(void)
{
    tn_layer *const made[] = {tn_lenet5(10), tn_lenet5(10, .width = 0.5), tn_alexnet(10, .width = 0.1), tn_vgg16(10),
                              tn_vgg19(10, .width = 0.1), tn_vgg_cifar(10, .width = 0.25),
                              tn_googlenet(10), tn_resnet18(10, .stem = "cifar"), tn_resnet34(10), tn_resnet50(10),
                              tn_resnet101(10), tn_resnet152(10, .width = 2), tn_mobilenet_v2(10), tn_unet(2),
                              tn_residual(tn_relu_layer(), NULL, NULL), tn_concat_layer(1, tn_relu_layer())};
    for (size_t i = 0; i < sizeof made / sizeof *made; i++) {
        CHECK(tn_layer_status(made[i]) == TN_OK);
        tn_layer_free(made[i]);
    }
}

int main(int argc, char **argv)
{
    TN_SCOPE {
        creation(), reductions(), order(), arithmetic(), lists(), matrices(), transforms(), draws(), kernels(),
            windows(), models(), training(), own_layers(), losses(), trainers(), trainer_parts(), zeros();
        files(argc > 1 ? argv[1] : ".");
    }
    if (!tn_ok())
        fprintf(stderr, "%s\n", tn_error()), failed = 1;
    TN_SCOPE {
        const char *here = tn_message_of(tn_sum(tn_ones(TN_SHAPE(2)), .axis = TN_AXES(3)));
        CHECK(strstr(here, "keywords.c:") != NULL); /* the caller's place */
        tn_clear_error();
    }
    return failed;
}
