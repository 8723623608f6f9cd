/* SPDX-License-Identifier: MIT */
/* Plans of matrix products for a device with kernels of its own for them: what becomes one kernel, and what does
 * not. */
#include <tanso.h>

#include "compile/emit/gpu/gemm/product.h"
#include "graphs.h"
#include "support/latched.h"

/* A GPU that nobody runs anything on. */
static tn__device gpu = {.capabilities = {.target = TN__TARGET_CUDA, .product_kernels = true, .threads = 132,
                                          .multiprocessors = 132, .shared_memory = 227 << 10}};

static tn__plan *plan_of(tn__graph *graph) { return graph_plan_once(graph, &gpu); }

static int kernels_of(const tn__plan *plan)
{
    int count = 0;
    for (int i = 0; i < plan->program.step_count; i++)
        count += plan->program.step[i].kind == TN__STEP_KERNEL;
    return count;
}

/* sigmoid(x w + b) is one kernel, whatever way w lies. */
static void test_layer(void **state)
{
    (void)state;
    for (int across = 0; across < 2; across++) {
        tn__graph graph = {0};
        const tn__shape *out = shape(2, 100, 1000);
        int x = graph_leaf(&graph, shape(2, 100, 784), false), b = graph_leaf(&graph, shape(2, 1, 1000), false);
        int w = graph_leaf(&graph, across ? shape(2, 1000, 784) : shape(2, 784, 1000), false);
        if (across)
            w = graph_permute(&graph, w, (uint8_t[]){1, 0});
        int product = graph_op(&graph, TN__OP_MATMUL, out, x, w);
        int sum = graph_op(&graph, TN__OP_ADD, out, product, graph_expand(&graph, b, out));
        graph_result(&graph, graph_op(&graph, TN__OP_SIGMOID, out, sum, -1));
        tn__plan *plan = plan_of(&graph);
        assert_int_equal(plan->program.step_count, 1);
        assert_int_equal(plan->program.step[0].kind, TN__STEP_KERNEL);
        assert_int_equal(plan->program.arena_bytes, 0);
        assert_true(plan->program.step[0].kernel.launch.blocks >= 64 && plan->program.step[0].kernel.launch.shared > 0);
        tn__plan_free(plan);
    }
}

/* p - c a^T b in the memory of p. */
static void test_update_in_place(void **state)
{
    (void)state;
    tn__graph graph = {0};
    const tn__shape *out = shape(2, 784, 1000);
    int a = graph_permute(&graph, graph_leaf(&graph, shape(2, 100, 784), false), (uint8_t[]){1, 0});
    int b = graph_leaf(&graph, shape(2, 100, 1000), false), p = graph_leaf(&graph, out, true);
    int step =
        graph_op(&graph, TN__OP_MULTIPLY, out, graph_const(&graph, out), graph_op(&graph, TN__OP_MATMUL, out, a, b));
    graph_result(&graph, graph_op(&graph, TN__OP_SUBTRACT, out, p, step));
    tn__plan *plan = plan_of(&graph);
    assert_int_equal(plan->program.step_count, 1);
    assert_int_equal(plan->program.buffer[plan->program.step[0].operand[0].buffer].kind, TN__BUFFER_DONATED);
    tn__plan_free(plan);
}

/* Two updates and a mean that do not need each other: one launch, each in its parameter's memory. */
static void test_beside(void **state)
{
    (void)state;
    tn__graph graph = {0};
    const tn__shape *first = shape(2, 300, 200), *second = shape(2, 200, 10);
    int x = graph_permute(&graph, graph_leaf(&graph, shape(2, 50, 300), false), (uint8_t[]){1, 0});
    int h = graph_permute(&graph, graph_leaf(&graph, shape(2, 50, 200), false), (uint8_t[]){1, 0});
    int g = graph_leaf(&graph, shape(2, 50, 200), false), k = graph_leaf(&graph, shape(2, 50, 10), false);
    int p = graph_leaf(&graph, first, true), q = graph_leaf(&graph, second, true),
        c = graph_leaf(&graph, shape(1, 50), false);
    graph_result(&graph, graph_op(&graph, TN__OP_SUBTRACT, first, p, graph_op(&graph, TN__OP_MATMUL, first, x, g)));
    graph_result(&graph, graph_op(&graph, TN__OP_SUBTRACT, second, q, graph_op(&graph, TN__OP_MATMUL, second, h, k)));
    graph_result(&graph, graph_reduce(&graph, TN__OP_SUM, c, 1));
    tn__plan *plan = plan_of(&graph);
    assert_int_equal(plan->program.step_count, 1);
    int donated = 0;
    for (int i = 0; i < plan->program.buffer_count; i++)
        donated += plan->program.buffer[i].kind == TN__BUFFER_DONATED;
    assert_int_equal(donated, 2);
    assert_non_null(strstr(plan->program.step[0].label, " | "));
    tn__plan_free(plan);
}

/* What a product reads is not overwritten beside it. */
static void test_not_beside(void **state)
{
    (void)state;
    tn__graph graph = {0};
    const tn__shape *s = shape(2, 96, 80);
    int p = graph_leaf(&graph, s, true), a = graph_leaf(&graph, shape(2, 96, 70), false),
        b = graph_leaf(&graph, shape(2, 70, 80), false);
    int other = graph_leaf(&graph, shape(2, 80, 60), false),
        out = graph_op(&graph, TN__OP_MATMUL, shape(2, 96, 60), p, other);
    graph_result(&graph, out);
    graph_result(&graph, graph_op(&graph, TN__OP_SUBTRACT, s, p, graph_op(&graph, TN__OP_MATMUL, s, a, b)));
    tn__plan *plan = plan_of(&graph);
    assert_int_equal(plan->program.step_count, 2);
    assert_int_equal(plan->program.buffer[plan->program.step[1].operand[0].buffer].kind, TN__BUFFER_DONATED);
    tn__plan_free(plan);
}

/* A factor's memory is not overwritten by blocks that others still read it in. */
static void test_factor_stays(void **state)
{
    (void)state;
    tn__graph graph = {0};
    const tn__shape *out = shape(2, 64, 64);
    int p = graph_leaf(&graph, out, true), b = graph_leaf(&graph, out, false);
    graph_result(&graph, graph_op(&graph, TN__OP_SUBTRACT, out, p, graph_op(&graph, TN__OP_MATMUL, out, p, b)));
    tn__plan *plan = plan_of(&graph);
    assert_int_equal(plan->program.buffer[plan->program.step[0].operand[0].buffer].kind, TN__BUFFER_OUTPUT);
    tn__plan_free(plan);
}

/* Sums over short rows are in the product's kernel, over long ones not; over columns where k is short, too. */
static void test_reductions(void **state)
{
    (void)state;
    static const struct {
        int64_t rows, columns, depth;
        uint32_t axes;
        int kernels;
    } cases[] = {{100, 10, 1000, 2, 1},   {100, 32, 1000, 2, 1}, {100, 33, 1000, 2, 2},
                 {100, 1000, 10, 1, 1},   {129, 1000, 10, 1, 2}, {100, 1000, 65, 1, 2}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        tn__graph graph = {0};
        const tn__shape *out = shape(2, (int)cases[i].rows, (int)cases[i].columns);
        int a = graph_leaf(&graph, shape(2, (int)cases[i].rows, (int)cases[i].depth), false);
        int b = graph_leaf(&graph, shape(2, (int)cases[i].depth, (int)cases[i].columns), false);
        int product = graph_op(&graph, TN__OP_MATMUL, out, a, b);
        graph_result(&graph, graph_reduce(&graph, TN__OP_SUM, graph_op(&graph, TN__OP_SQUARE, out, product, -1),
                                          cases[i].axes));
        graph_result(&graph, product);
        tn__plan *plan = plan_of(&graph);
        assert_int_equal(kernels_of(plan), cases[i].kernels);
        tn__plan_free(plan);
    }
}

/* Two products of one shape are two kernels, and their sum is in the later one. */
static void test_one_product_a_kernel(void **state)
{
    (void)state;
    tn__graph graph = {0};
    const tn__shape *s = shape(2, 48, 48);
    int a = graph_leaf(&graph, s, false), b = graph_leaf(&graph, s, false), c = graph_leaf(&graph, s, false);
    int first = graph_op(&graph, TN__OP_MATMUL, s, a, b), second = graph_op(&graph, TN__OP_MATMUL, s, a, c);
    graph_result(&graph, graph_op(&graph, TN__OP_ADD, s, first, second));
    tn__plan *plan = plan_of(&graph);
    assert_int_equal(kernels_of(plan), 2);
    assert_int_equal(plan->program.step_count, 2);
    tn__plan_free(plan);
}

/* A product of a product's result waits for it, though the shapes agree. */
static void test_chain(void **state)
{
    (void)state;
    tn__graph graph = {0};
    const tn__shape *s = shape(2, 48, 48);
    int a = graph_leaf(&graph, s, false), b = graph_leaf(&graph, s, false);
    int first = graph_op(&graph, TN__OP_RELU, s, graph_op(&graph, TN__OP_MATMUL, s, a, b), -1);
    graph_result(&graph, graph_op(&graph, TN__OP_MATMUL, s, first, b));
    tn__plan *plan = plan_of(&graph);
    assert_int_equal(kernels_of(plan), 2);
    tn__plan_free(plan);
}

static void test_large_products_are_a_librarys(void **state)
{
    (void)state;
    tn__graph graph = {0};
    const tn__shape *s = shape(2, 1024, 1024);
    int a = graph_leaf(&graph, s, false), b = graph_leaf(&graph, s, false);
    graph_result(&graph, graph_op(&graph, TN__OP_MATMUL, s, a, b));
    tn__plan *plan = plan_of(&graph);
    assert_int_equal(kernels_of(plan), 0);
    assert_int_equal(plan->program.step[0].op, TN__OP_MATMUL);
    tn__plan_free(plan);
}

/* Where tensor cores are asked for, the library has the middling ones, too, and is told so; small ones stay float32. */
static void test_precision(void **state)
{
    (void)state;
    for (int n = 64; n <= 512; n *= 8) {
        tn__graph graph = {0};
        const tn__shape *s = shape(2, n, n);
        graph_result(&graph,
                     graph_op(&graph, TN__OP_MATMUL, s, graph_leaf(&graph, s, false), graph_leaf(&graph, s, false)));
        tn__compile_options options = {.kernels = true,
                                       .fusion = true,
                                       .plan_memory = true,
                                       .precision = TN_MATMUL_TF32};
        tn__plan *plan = tn__compile(&graph, &gpu, &options);
        assert_non_null(plan);
        assert_int_equal(kernels_of(plan), n == 64);
        if (n == 512)
            assert_int_equal(plan->program.step[0].product.precision, TN_MATMUL_TF32);
        tn__plan_free(plan);
        tn__graph_free(&graph);
    }
    assert_int_equal(tn_get_matmul_precision(), TN_MATMUL_FLOAT32);
    tn_set_matmul_precision(TN_MATMUL_TF32X3);
    assert_int_equal(tn_get_matmul_precision(), TN_MATMUL_TF32X3);
    tn_set_matmul_precision((tn_matmul_precision)77);
    assert_failed(TN_ERR_VALUE, "got 77");
    assert_int_equal(tn_get_matmul_precision(), TN_MATMUL_TF32X3);
    tn_set_matmul_precision(TN_MATMUL_FLOAT32);
}

/* The text of a layer does not depend on the number of rows, as long as the same tile serves them. */
static void test_text_of_another_batch(void **state)
{
    (void)state;
    char *text[2];
    for (int i = 0; i < 2; i++) {
        tn__graph graph = {0};
        const tn__shape *out = shape(2, 100 - i, 1000);
        int x = graph_leaf(&graph, shape(2, 100 - i, 784), false), w = graph_leaf(&graph, shape(2, 784, 1000), false);
        graph_result(&graph, graph_op(&graph, TN__OP_RELU, out, graph_op(&graph, TN__OP_MATMUL, out, x, w), -1));
        tn__plan *plan = plan_of(&graph);
        text[i] = tn__strdup(plan->program.source);
        tn__plan_free(plan);
    }
    assert_string_equal(text[0], text[1]);
    tn__free(text[0]);
    tn__free(text[1]);
}

/* The text's next appearance of some words, which must be there. */
static const char *next(const char *text, const char *words)
{
    const char *found = strstr(text, words);
    if (!found)
        fail_msg("no more %s", words);
    return found + 1;
}

/* Elements are computed where their sums are, but where b lies along k: a thread's columns are no neighbours there, so
 * that nothing can be read or stored 16 bytes at once. */
static void test_from_sums(void **state)
{
    (void)state;
    for (int along = 0; along < 2; along++) {
        tn__graph graph = {0};
        const tn__shape *out = shape(2, 1437, 100);
        int x = graph_leaf(&graph, shape(2, 1437, 10), false), old = graph_leaf(&graph, out, false);
        int w = graph_leaf(&graph, along ? shape(2, 100, 10) : shape(2, 10, 100), false);
        if (along)
            w = graph_permute(&graph, w, (uint8_t[]){1, 0});
        graph_result(&graph, graph_op(&graph, TN__OP_MULTIPLY, out, graph_op(&graph, TN__OP_MATMUL, out, x, w), old));
        tn__plan *plan = plan_of(&graph);
        assert_int_equal(strstr(plan->program.source, "main_loop::put(kept0") != NULL, !along);
        tn__plan_free(plan);
    }
}

/* What a program is given is fetched before the kernels in front have ended, and what they compute behind that; so are
 * the operands of what is computed around a product. */
static void test_fetched_ahead(void **state)
{
    (void)state;
    tn__graph graph = {0};
    const tn__shape *hidden = shape(2, 64, 500), *out = shape(2, 64, 80);
    int x = graph_leaf(&graph, shape(2, 64, 300), false), w1 = graph_leaf(&graph, shape(2, 300, 500), false);
    int w2 = graph_leaf(&graph, shape(2, 500, 80), false), old = graph_leaf(&graph, out, false);
    int h = graph_op(&graph, TN__OP_RELU, hidden, graph_op(&graph, TN__OP_MATMUL, hidden, x, w1), -1);
    graph_result(&graph, graph_op(&graph, TN__OP_ADD, out, graph_op(&graph, TN__OP_MATMUL, out, h, w2), old));
    tn__plan *plan = plan_of(&graph);
    const char *text =
        next(next(plan->program.source, "void nest_"), "tn_evict_stale<main_loop, true, true>(factor0, factor1);");
    text = next(text, "tn_start<main_loop, false, true, false>");
    text = next(text, "tn_start<main_loop, true, false, true>");
    text = next(text, "tn_await_dependencies();");
    text = next(next(text, "main_loop::run("), "void nest_");
    text = next(text, "tn_start<main_loop, false, true, false>");
    text = next(text, "[u] = v"); /* the old values, which an earlier run may have written */
    text = next(text, "tn_await_dependencies();");
    text = next(text, "tn_start<main_loop, true, false, true>");
    next(text, "main_loop::run(");
    tn__plan_free(plan);
}

/* Whatever the graph: the verifier finds nothing to object to. */
static void test_random_graphs(void **state)
{
    (void)state;
    test_random chance = test_random_new();
    int products = 0;
    for (int i = 0; i < 200; i++) {
        tn__graph graph = {0};
        graph_random(&graph, &chance);
        tn__plan *plan = plan_of(&graph);
        products += strstr(plan->program.source, "_product<") != NULL;
        tn__plan_free(plan);
    }
    assert_true(products > 20);
}

/* A product of few columns, and one of a short k with its sum over the rows: one factor stays in registers, and is
 * there before the kernels in front have ended where the program is given it. */
static void test_factors_in_registers(void **state)
{
    (void)state;
    tn__graph graph = {0};
    const tn__shape *hidden = shape(2, 100, 1000), *out = shape(2, 100, 10);
    int x = graph_leaf(&graph, hidden, false), w = graph_leaf(&graph, shape(2, 1000, 10), false);
    int h = graph_op(&graph, TN__OP_RELU, hidden, x, -1);
    graph_result(&graph, graph_op(&graph, TN__OP_MATMUL, out, h, w));
    int v = graph_permute(&graph, w, (uint8_t[]){1, 0});
    int dh = graph_op(&graph, TN__OP_MATMUL, hidden, graph_leaf(&graph, out, false), v);
    graph_result(&graph, dh);
    graph_result(&graph, graph_reduce(&graph, TN__OP_SUM, dh, 1));
    tn__plan *plan = plan_of(&graph);
    const char *text = next(plan->program.source, "tn_skinny_product<tn_f32, 1, 10, 8, true, true> main_loop;");
    text = next(text, "main_loop::load_registers(in_registers, tile, factor1");
    text = next(text, "main_loop::take(in_registers, tile, factor1");
    text = next(text, "tn_await_dependencies();");
    next(text, "main_loop::run(tile, factor0, factor1");
    text = next(plan->program.source, "tn_short_product<tn_f32, 128, 8, 256, 10> main_loop;");
    text = next(text, "main_loop::load_registers(in_registers, factor1, own_column);");
    text = next(text, "tn_await_dependencies();");
    next(text, "main_loop::at(factor0, in_registers, row)");
    tn__plan_free(plan);
}

enum { BACK, SUMMED, OTHER_FACTOR, LONG, OTHER_ROWS, WAITS, ROW_VALUES, BACKS };

/* A last layer over `hidden` of so many columns, and the gradient of that: one kernel, or what else there is to it. */
static tn__plan *plan_back(int what)
{
    tn__graph graph = {0};
    int64_t columns = what == LONG ? 1028 : 1000;
    const tn__shape *hidden = shape(2, 100, columns), *out = shape(2, 100, 10);
    int h = graph_leaf(&graph, hidden, false), w = graph_leaf(&graph, shape(2, columns, 10), false);
    int z = graph_op(&graph, TN__OP_MATMUL, out, h, w);
    int most = graph_expand(&graph, graph_reduce(&graph, TN__OP_MAX, z, 2), out),
        dy = graph_op(&graph, TN__OP_SUBTRACT, out, z, most);
    int v = what == OTHER_FACTOR ? graph_leaf(&graph, shape(2, columns, 10), false) : w;
    if (what == OTHER_ROWS) {
        int sums = graph_reduce(&graph, TN__OP_SUM, dy, 1);
        dy = graph_op(&graph, TN__OP_MULTIPLY, out, dy, graph_expand(&graph, sums, out));
        graph_result(&graph, dy);
    }
    if (what == ROW_VALUES)
        dy = most;
    int product = graph_op(&graph, TN__OP_MATMUL, hidden, dy, graph_permute(&graph, v, (uint8_t[]){1, 0}));
    int dh = graph_op(&graph, TN__OP_MULTIPLY, hidden, product, h);
    if (what == WAITS)
        dh = graph_op(&graph, TN__OP_MULTIPLY, hidden, dh,
                      graph_expand(&graph, graph_reduce(&graph, TN__OP_SUM, z, 3), hidden));
    graph_result(&graph, dh);
    if (what == SUMMED)
        graph_result(&graph, graph_reduce(&graph, TN__OP_SUM, dh, 1));
    return plan_of(&graph);
}

/* A skinny product's blocks have one row each as long as there are multiprocessors; what b is like, and whether a round
 * takes all of k, is in the text. */
static void test_skinny_tiles(void **state)
{
    (void)state;
    static const struct {
        int64_t rows, depth;
        bool across;
        const char *tile;
        int64_t blocks;
    } of[] = {{100, 1000, false, "1, 10, 8, true, true", 100}, {250, 1000, false, "2, 10, 8, true, true", 125},
              {100, 1028, false, "1, 10, 8, true, false", 100}, {100, 1000, true, "1, 10, 8, false, true", 100}};
    for (int i = 0; i < 4; i++) {
        tn__graph graph = {0};
        char text[64];
        int x = graph_leaf(&graph, shape(2, of[i].rows, of[i].depth), false);
        int w = graph_leaf(&graph, of[i].across ? shape(2, 10, of[i].depth) : shape(2, of[i].depth, 10), false);
        int b = of[i].across ? graph_permute(&graph, w, (uint8_t[]){1, 0}) : w;
        graph_result(&graph, graph_op(&graph, TN__OP_MATMUL, shape(2, of[i].rows, 10), x, b));
        tn__plan *plan = plan_of(&graph);
        snprintf(text, sizeof text, "tn_skinny_product<tn_f32, %s> main_loop;", of[i].tile);
        next(plan->program.source, text);
        assert_int_equal(plan->program.step[0].kernel.launch.blocks, of[i].blocks);
        tn__plan_free(plan);
    }
}

/* The gradient of a last layer goes on to what is in front of it in the same blocks; a sum over all rows waits for all
 * blocks. */
static void test_back_to_back(void **state)
{
    (void)state;
    for (int what = 0; what < BACKS; what++) {
        tn__plan *plan = plan_back(what);
        bool back_to_back = what == BACK || what == SUMMED;
        assert_int_equal(strstr(plan->program.source, "tn_back_product<tn_f32, 1, 256, 10> main_loop;") != NULL,
                         back_to_back);
        assert_int_equal(kernels_of(plan) == 1, what == BACK);
        if (back_to_back) {
            const tn__step *step = &plan->program.step[0];
            assert_int_equal(step->kernel.launch.blocks, 100);
            assert_non_null(strstr(step->label, "; matmul multiply"));
            const char *text = next(plan->program.source, "main_loop::run(tile, factor0, factor1");
            text = next(next(text, "__syncthreads();"), "next(in_registers);");
            next(plan->program.source, "= (in_registers.a["); /* h, which has been multiplied by */
            next(plan->program.source, "tn_store(quad0");
            text = next(text, "__global__"); /* a kernel, which calls the first of the two alone */
            assert_true(what != BACK || !strstr(next(text, "    nest_"), "    nest_"));
        }
        tn__plan_free(plan);
    }
}

/* A result that goes on in the blocks of another product is not written over what other blocks of that read. */
static void test_back_to_back_elsewhere(void **state)
{
    (void)state;
    tn__graph graph = {0};
    const tn__shape *hidden = shape(2, 100, 1000), *out = shape(2, 100, 10);
    int h = graph_leaf(&graph, hidden, true), w = graph_leaf(&graph, shape(2, 1000, 10), false);
    int z = graph_op(&graph, TN__OP_MATMUL, out, h, w);
    int dh = graph_op(&graph, TN__OP_MATMUL, hidden, z, graph_permute(&graph, w, (uint8_t[]){1, 0}));
    graph_result(&graph, z);
    graph_result(&graph, graph_op(&graph, TN__OP_SUBTRACT, hidden, h, dh));
    tn__plan *plan = plan_of(&graph);
    const tn__step *last = &plan->program.step[plan->program.step_count - 1];
    bool donated = plan->program.buffer[last->operand[0].buffer].kind == TN__BUFFER_DONATED;
    assert_int_equal(donated, kernels_of(plan) == 2);
    tn__plan_free(plan);
}

enum { ROWS_OF_DATASET, ROWS_AS_THEY_LIE, OVERWRITTEN, TRANSPOSED, TOO_LONG, WHOLES };

/* A first layer of so many features. */
static tn__plan *plan_first(int what)
{
    tn__graph graph = {0};
    int64_t features = what == TOO_LONG ? 1028 : 784;
    const tn__shape *batch = shape(2, 100, features), *out = shape(2, 100, 1000), *of_w = shape(2, features, 1000);
    int x = graph_leaf(&graph, what == ROWS_OF_DATASET ? shape(2, 600, features) : batch, what == OVERWRITTEN);
    if (what == ROWS_OF_DATASET) {
        int at = graph_leaf(&graph, shape(1, 100), false);
        graph.value[at].dtype = TN_INT64;
        x = graph_op(&graph, TN__OP_GATHER, batch, x, at);
        graph.value[x].attr.known = true;
    }
    int w = graph_leaf(&graph, what == TRANSPOSED ? shape(2, 1000, features) : of_w, true);
    if (what == TRANSPOSED)
        w = graph_permute(&graph, w, (uint8_t[]){1, 0});
    graph_result(&graph, graph_op(&graph, TN__OP_SIGMOID, out, graph_op(&graph, TN__OP_MATMUL, out, x, w), -1));
    return plan_of(&graph);
}

/* Rows that no run overwrites lie whole in shared memory before the kernel waits for those in front of it, where there
 * is room for the last kernel of the run before beside them, in registers too. */
static void test_whole_factor(void **state)
{
    (void)state;
    for (int what = 0; what < WHOLES; what++) {
        tn__plan *plan = plan_first(what);
        const tn__step *step = &plan->program.step[0];
        bool whole = what == ROWS_OF_DATASET || what == ROWS_AS_THEY_LIE;
        assert_int_equal(kernels_of(plan), 1);
        assert_int_equal(strstr(plan->program.source, "tn_resident_product<tn_f32, 28, 32, 7, 4, 4, 8, 20, 2") != NULL,
                         whole);
        assert_int_equal(step->kernel.launch.spread, 1);
        assert_int_equal(strstr(plan->program.source, "void TN_BOUNDS(256, 120) ") != NULL, whole);
        if (whole) {
            assert_int_equal(step->kernel.launch.shared, 5 * 28 * 164 * 4 + 2 * 160 * 36 * 4);
            const char *text = next(plan->program.source, "> main_loop;");
            text = next(next(text, "main_loop::bring_a(tile, factor0"), "tn_await_dependencies();");
            text = next(next(text, "main_loop::bring_b(tile, factor1"), "main_loop::run(");
            next(plan->program.source, "each = 4;"); /* 28 rows for 8 warps: all at once */
        }
        tn__plan_free(plan);
    }
}

/* A minibatch's rows, and their transpose, are read where they lie in the dataset, ahead of the kernels in front, so
 * that there is no kernel that gathers them; of more rows than a block knows places of, the transpose is not. */
static void test_gathered_rows(void **state)
{
    (void)state;
    for (int rows = 100; rows < 200; rows += 60) {
        tn__graph graph = {0};
        const tn__shape *batch = shape(2, rows, 300), *out = shape(2, rows, 200), *w = shape(2, 300, 200);
        int data = graph_leaf(&graph, shape(2, 600, 300), false), at = graph_leaf(&graph, shape(1, rows), false);
        graph.value[at].dtype = TN_INT64;
        int x = graph_op(&graph, TN__OP_GATHER, batch, data, at), p = graph_leaf(&graph, w, true);
        graph.value[x].attr.known = true;
        int y = graph_op(&graph, TN__OP_RELU, out, graph_op(&graph, TN__OP_MATMUL, out, x, p), -1);
        int g = graph_op(&graph, TN__OP_MATMUL, w, graph_permute(&graph, x, (uint8_t[]){1, 0}), y);
        graph_result(&graph, graph_op(&graph, TN__OP_SUBTRACT, w, p, g));
        tn__plan *plan = plan_of(&graph);
        assert_true(strstr(plan->program.source, "true, true> main_loop;") == NULL || rows == 100);
        assert_int_equal(kernels_of(plan), 2);
        assert_int_equal(strstr(plan->program.step[0].label, " | ") == NULL, rows == 100);
        if (rows == 100) {
            const char *text =
                next(next(plan->program.source, "true, true> main_loop;"), "tn_evict_stale<main_loop, true, false>");
            text = next(text, "(tn_load_l2(&p");
            text = next(text, "tn_lines[line] = ");
            text = next(next(text, "__syncthreads();"), "tn_start<main_loop, true, false, false>");
            text = next(text, "tn_await_dependencies();");
            next(text, "tn_start<main_loop, false, true, true>");
        }
        tn__plan_free(plan);
    }
}

/* Beside a large update, what is small makes do with the multiprocessors that the update leaves idle. */
static void test_room(void **state)
{
    (void)state;
    tn__graph graph = {0};
    const tn__shape *first = shape(2, 784, 1000), *second = shape(2, 1000, 10);
    int x = graph_permute(&graph, graph_leaf(&graph, shape(2, 100, 784), false), (uint8_t[]){1, 0});
    int h = graph_permute(&graph, graph_leaf(&graph, shape(2, 100, 1000), false), (uint8_t[]){1, 0});
    int g = graph_leaf(&graph, shape(2, 100, 1000), false), k = graph_leaf(&graph, shape(2, 100, 10), false);
    graph_result(&graph, graph_op(&graph, TN__OP_MATMUL, first, x, g));
    graph_result(&graph, graph_op(&graph, TN__OP_MATMUL, second, h, k));
    graph_result(&graph, graph_reduce(&graph, TN__OP_SUM, g, 1));
    tn__plan *plan = plan_of(&graph);
    assert_int_equal(plan->program.step_count, 1);
    assert_int_equal(plan->program.step[0].kernel.launch.blocks, 112 + 16 + 8);
    tn__plan_free(plan);
}

static void test_tiles(void **state)
{
    (void)state;
    for (int i = 0; i < tn__product_tile_count(); i++) {
        tn__product_tile t = tn__product_tile_of(i);
        assert_true(t.threads % 32 == 0 && t.threads <= 512 && t.threads % t.columns == 0);
        bool tensor = t.main_loop == TN__MAIN_LOOP_TENSOR;
        assert_int_equal(t.rows % (tensor ? t.rows_each : t.rows_each * t.lanes_down), 0);
        assert_int_equal(t.columns % (tensor ? t.columns_each : t.columns_each * 32 / t.lanes_down), 0);
        assert_int_equal(t.step % (tensor ? 8 : 2), 0);
        assert_true(!tensor || (t.rows_each % 16 == 0 && t.columns_each % 8 == 0));
        assert_true(t.stages >= 2);
    }
}

/* Products of very long sums and few elements, and of very many tiny matrices, are operations of the device's own;
 * those of shorter sums, and of fewer matrices, are kernels that others may join. */
static void test_special(void **state)
{
    (void)state;
    static const struct {
        int batch, m, k, n;
        bool special;
    } shapes[] = {{1, 20, 100000, 20, true},  {1, 20, 4000, 20, false},  {1, 128, 8192, 128, true},
                  {1, 784, 100, 1000, false}, {1, 1000, 100, 10, false}, {1, 100, 5000, 10, false},
                  {1, 64, 30000, 10, true},   {1, 300, 9000, 20, false}, {5000, 3, 3, 3, true},
                  {5000, 16, 16, 16, true},   {5000, 3, 3, 17, false},   {1000, 3, 3, 3, false}};
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
        tn__graph graph = {0};
        const tn__shape *out = shape(3, shapes[i].batch, shapes[i].m, shapes[i].n);
        int a = graph_leaf(&graph, shape(3, shapes[i].batch, shapes[i].m, shapes[i].k), false);
        int b = graph_leaf(&graph, shape(3, shapes[i].batch, shapes[i].k, shapes[i].n), false);
        graph_result(&graph, graph_op(&graph, TN__OP_MATMUL, out, a, b));
        tn__plan *plan = plan_of(&graph);
        assert_int_equal(plan->program.step_count, 1);
        assert_int_equal(plan->program.step[0].kind, shapes[i].special ? TN__STEP_PRODUCT : TN__STEP_KERNEL);
        tn__plan_free(plan);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_special), cmocka_unit_test(test_layer),
        cmocka_unit_test(test_update_in_place),
        cmocka_unit_test(test_beside),
        cmocka_unit_test(test_not_beside),
        cmocka_unit_test(test_factor_stays),
        cmocka_unit_test(test_reductions),
        cmocka_unit_test(test_one_product_a_kernel),
        cmocka_unit_test(test_chain),
        cmocka_unit_test(test_large_products_are_a_librarys),
        cmocka_unit_test(test_precision),
        cmocka_unit_test(test_text_of_another_batch),
        cmocka_unit_test(test_from_sums),
        cmocka_unit_test(test_fetched_ahead),
        cmocka_unit_test(test_factors_in_registers),
        cmocka_unit_test(test_skinny_tiles),
        cmocka_unit_test(test_back_to_back),
        cmocka_unit_test(test_back_to_back_elsewhere),
        cmocka_unit_test(test_whole_factor),
        cmocka_unit_test(test_gathered_rows),
        cmocka_unit_test(test_room),
        cmocka_unit_test(test_random_graphs),
        cmocka_unit_test(test_tiles),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
