/* SPDX-License-Identifier: MIT */
/* The backend's own kernels compile for every generation of GPUs that is served, which needs the compiler but no
 * GPU. */
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include <cmocka.h>
#include <tanso/base.h>

#include "backends/cuda/linalg/library.h"
#include "backends/cuda/ops/sort_scan.h"
#include "compile/emit/gpu/gemm/product.h"
#include "core/dtype.h"
#include "core/memory.h"
#include "core/signals.h"
#include "support/slice.h"
#include "tn_embed.h"

static tn__cuda_libraries libraries;

static void compiles(int architecture, char *text, const char *kernel)
{
    char *image = NULL;
    size_t length = 0;
    assert_non_null(text);
    if (!test_in_slice()) {
        tn__free(text);
        return;
    }
    tn_status status = tn__cuda_compile(&libraries, architecture, text, &image, &length);
    if (status != TN_OK)
        fail_msg("sm_%d: %s", architecture, tn_error());
    assert_true(length > 4 && memcmp(image, "\177ELF", 4) == 0);
    assert_non_null(memmem(image, length, kernel, strlen(kernel)));
    tn__free(image);
    tn__free(text);
}

static const int scans[] = {TN__OP_CUMSUM, TN__OP_CUMPROD, TN__OP_CUMMAX, TN__OP_CUMMIN};

static void test_every_dtype(void **state)
{
    (void)state;
    for (int dtype = TN_DTYPE_DEFAULT + 1; dtype < TN_DTYPE_COUNT; dtype++) {
        if (!tn_dtype_is_complex((tn_dtype)dtype))
            compiles(90, tn__cuda_text_matmul((tn_dtype)dtype), "matmul");
        compiles(90, tn__cuda_text_scatter((tn_dtype)dtype), "in_order");
        if (!tn__cuda_has_order((tn_dtype)dtype))
            continue;
        compiles(90, tn__cuda_text_histogram((tn_dtype)dtype), dtype % 2 ? "histogram" : "histogram_many");
        compiles(90, tn__cuda_text_sort((tn_dtype)dtype, dtype % 2, dtype % 3 == 0), "sort_move");
        compiles(90, tn__cuda_text_largest_few((tn_dtype)dtype, 1 + dtype), "largest_few");
        compiles(90, tn__cuda_text_sort_rows((tn_dtype)dtype, dtype % 2, 16, 64, 128), "sort_rows");
        compiles(90, tn__cuda_text_search((tn_dtype)dtype, dtype % 3 == 0), "search");
        compiles(90, tn__cuda_text_scan((tn_dtype)dtype, scans[dtype % 4], 0), "scan_clear");
    }
    for (size_t size = 1; size <= 16; size *= 2)
        compiles(90, tn__cuda_text_copy(size, size == 4 ? 508 : 96), "move");
    for (int extent = 4; extent <= TN__CUDA_SMALL_MATRIX; extent *= 2) { /* their shared memory is what counts */
        compiles(90, tn__cuda_text_jacobi(TN_COMPLEX128, TN__OP_EIGH, extent, extent), "eigh");
        compiles(90, tn__cuda_text_jacobi(TN_COMPLEX128, TN__OP_SVD, TN__CUDA_SMALL_MATRIX, extent), "svd");
    }
    compiles(90, tn__cuda_text_nonzero(), "nonzero");
    compiles(90, tn__cuda_text_split_product(), "split_product"); /* for this generation alone */
}

/* What matmul/tall.c makes of 20 x 20 elements, the second factor along k; matmul/tiny.c, of 5 x 8 by 8 x 16. */
static const char tall[] = "constexpr int ROWS = 20, COLUMNS = 20, SLICES = 28, POSITIONS = 4;\n"
                           "constexpr int SHARED = 3 * (4 * 5 * 112 + 8 + 4 * 29 * 24) * 4;\n"
                           "constexpr bool A_ALONG = false, B_ALONG = true;\n";
static const char tiny[] = "constexpr int M = 5, N = 16, K = 8, GROUP = 12, ROWS_EACH = 1, COLUMNS_EACH = 8;\n"
                           "constexpr bool A_ACROSS = true, B_ACROSS = false;\n";

static void test_every_generation(void **state)
{
    (void)state;
    static const int architectures[] = {80, 90, 100};
    for (int i = 0; i < 3; i++) {
        compiles(architectures[i], tn__cuda_text_matmul(TN_FLOAT16), "matmul");
        compiles(architectures[i], tn__cuda_text_scatter(TN_BFLOAT16), "in_order");
        compiles(architectures[i], tn__cuda_text_copy(4, 96), "move");
        compiles(architectures[i], tn__cuda_text_solver(i ? TN_COMPLEX128 : TN_FLOAT64), "small_solve");
        compiles(architectures[i], tn__cuda_text_decompose(i ? TN_COMPLEX128 : TN_FLOAT64), "lay_real");
        compiles(architectures[i], tn__cuda_text_jacobi(TN_FLOAT64, TN__OP_EIGH, 8 << i, 8 << i), "eigh");
        compiles(architectures[i], tn__cuda_text_jacobi(TN_FLOAT64, TN__OP_SVD, 32, 4 << i), "svd");
        compiles(architectures[i], tn__cuda_text_fft(i > 0), "ends");
        compiles(architectures[i], tn__cuda_text_sort(TN_FLOAT32, true, false), "sort_move");
        compiles(architectures[i], tn__cuda_text_largest_few(TN_FLOAT32, 32), "largest_few");
        compiles(architectures[i], tn__cuda_text_sort_rows(i ? TN_FLOAT64 : TN_FLOAT32, i != 1, 4 << i, 8, 128),
                 "sort_rows");
        compiles(architectures[i], tn__cuda_text_scan(TN_FLOAT16, TN__OP_CUMSUM, 4 << 3 * i), "scan_short");
        compiles(architectures[i], tn__cuda_text_scan(TN_FLOAT64, TN__OP_CUMSUM, 0), "scan_row");
        compiles(architectures[i], tn__cuda_text_products(TN_FLOAT32, tall, tn__embed_cuda_tall_product), "tall_sum");
        compiles(architectures[i],
                 tn__cuda_text_products(i ? TN_FLOAT64 : TN_FLOAT32, tiny, tn__embed_cuda_tiny_products),
                 "tiny_products");
    }
}

/* A kernel for each tile of products: the prelude of every text, the cores, an entry that calls one. */
static char *text_of_tiles(const char *type, int first, int count, int step)
{
    tn__text text = {0};
    tn__text_addn(&text, (const char *)tn__embed_scalar_base, tn__embed_scalar_base_size);
    tn__text_addn(&text, (const char *)tn__embed_product_factors, tn__embed_product_factors_size);
    tn__text_addn(&text, (const char *)tn__embed_product, tn__embed_product_size);
    tn__text_addn(&text, (const char *)tn__embed_product_tensor, tn__embed_product_tensor_size);
    tn__text_addn(&text, (const char *)tn__embed_product_resident, tn__embed_product_resident_size);
    tn__text_addn(&text, (const char *)tn__embed_product_skinny, tn__embed_product_skinny_size);
    for (int i = first; i < count; i += step) {
        tn__product_tile t = tn__product_tile_of(i);
        if (t.main_loop == TN__MAIN_LOOP_TENSOR && strcmp(type, "tn_f32"))
            continue;
        bool quads = t.step % 4 == 0;
        bool whole = quads && t.main_loop == TN__MAIN_LOOP_PLAIN && t.columns == 32 && t.threads == 32 * t.slices;
        bool a_along = quads && (i % 2 || whole), b_along = quads && i / 2 % 2 && !whole;
        tn__text_addf(
            &text,
            "extern \"C\" __global__ void tile%d(const %s *a, const %s *b, %s *c, tn_i64 m, tn_i64 n, tn_i64 k)\n{\n"
            "    %s *const tile = (%s *)tn_shared;\n    typedef ",
            i, type, type, type, type, type);
        if (t.main_loop == TN__MAIN_LOOP_TENSOR)
            tn__text_addf(&text, "tn_tensor_product<%d, %d, %d, %d, %d, %d, %d, %d, %d> main_loop;\n", t.rows,
                          t.columns, t.rows_each, t.columns_each, t.slices, t.step, t.stages, a_along, b_along);
        else if (t.main_loop == TN__MAIN_LOOP_SKINNY)
            tn__text_addf(&text, "tn_skinny_product<%s, %d, %d, %d, %d, %d> main_loop;\n", type, t.rows,
                          i % 2 ? 10 : 16, t.slices, i / 2 % 2, i % 2);
        else if (t.main_loop == TN__MAIN_LOOP_SHORT)
            tn__text_addf(&text, "tn_short_product<%s, %d, %d, %d, %d> main_loop;\n", type, t.rows, t.columns,
                          t.threads, i % 2 ? 10 : 7);
        else if (whole)
            tn__text_addf(&text, "tn_resident_product<%s, %d, %d, %d, %d, %d, %d, %d, %d> main_loop;\n", type, t.rows,
                          t.columns, t.rows_each, t.columns_each, t.lanes_down, t.slices, t.step, t.stages);
        else
            tn__text_addf(&text,
                          "tn_product<%s, %d, %d, %d, %d, %d, %d, %d, %d, %d, %d, false, false, %d> main_loop;\n", type,
                          t.rows, t.columns, t.rows_each, t.columns_each, t.lanes_down, t.slices, t.step, t.stages,
                          a_along, b_along, i % 3 == 0);
        tn__text_addf(&text,
                      "    const auto x = tn_factor_of<%s, %d>(a, k, 1, k, tn_within(m, main_loop::ROWS), m);\n"
                      "    const auto y = tn_factor_of<%s, %d>(b, 1, n, k, tn_within(n, main_loop::COLUMNS), n);\n",
                      type, a_along, type, b_along);
        tn__text_add(
            &text,
            whole ? "    main_loop::bring_a(tile, x, k);\n    main_loop::bring_b(tile, y, k);\n    "
                    "main_loop::run(tile, x, y, k);\n"
            : t.main_loop == TN__MAIN_LOOP_SKINNY
                ? "    main_loop::registers in_registers;\n    main_loop::load_registers(in_registers, tile, y, k);\n  "
                  "  main_loop::take(in_registers, tile, y, k);\n"
                  "    main_loop::aim(in_registers, x);\n    main_loop::run(tile, x, y, k, in_registers);\n"
            : t.main_loop == TN__MAIN_LOOP_SHORT
                ? "    main_loop::registers in_registers;\n    main_loop::load_registers(in_registers, y, threadIdx.x "
                  "% main_loop::COLUMNS);\n"
                : "    tn_start<main_loop, true, true, true>(tile, x, y, k);\n    main_loop::run(tile, x, y, k);\n");
        tn__text_addf(&text, "    c[threadIdx.x] = main_loop::at(%s);\n",
                      t.main_loop == TN__MAIN_LOOP_SHORT ? "x, in_registers, threadIdx.x % main_loop::ROWS"
                                               : "tile, threadIdx.x % main_loop::ROWS, 0");
        int own = t.columns_each * (strcmp(type, "tn_f32") ? 8 : 4);
        if (t.main_loop == TN__MAIN_LOOP_PLAIN && own % (16 * t.slices) == 0) /* the same by way of registers */
            tn__text_addf(
                &text,
                "    %s sum[main_loop::EACH];\n    main_loop::fetch<false>(sum, c, (int)n, 1, (int)m, (int)n);\n"
                "    tn_start<main_loop, true, true, true>(tile, x, y, k);\n    main_loop::run(sum, tile, x, y, k);\n"
                "    main_loop::put(sum, c, (int)n, 1, (int)m, (int)n);\n",
                type);
        tn__text_add(&text, "}\n");
    }
    return tn__text_take(&text);
}

static void test_tiles(void **state)
{
    (void)state;
    int count = tn__product_tile_count();
    compiles(90, text_of_tiles("tn_f32", 0, count, 1), "tile0");
    compiles(80, text_of_tiles("tn_f32", 1, count, 5), "tile1");
    compiles(100, text_of_tiles("tn_f32", 2, count, 5), "tile2");
    compiles(90, text_of_tiles("tn_f64", 0, count, 5), "tile0");
}

static void test_unknown_generation(void **state)
{
    (void)state;
    char *image = NULL, *text = tn__cuda_text_copy(2, 508);
    size_t length = 0;
    assert_int_equal(tn__cuda_compile(&libraries, 999, text, &image, &length), TN_OK);
    assert_non_null(memmem(image, length, ".target", 7)); /* PTX, which its driver compiles */
    assert_int_equal(image[length - 1], 0);
    tn__free(image);
    tn__free(text);
}

static void test_error(void **state)
{
    (void)state;
    char *image = NULL;
    size_t length = 0;
    assert_int_equal(tn__cuda_compile(&libraries, 90, "__global__ void k() { carbon = 6; }", &image, &length),
                     TN_ERR_COMPILE);
    assert_non_null(strstr(tn_error(), "carbon"));
    tn_clear_error();
}

/* While NVRTC compiles, which ends the program at a SIGINT in handlers of its own. */
static pthread_t compiling, impatient;
static atomic_int interruptions, seen, done;

static void interrupted(int number)
{
    (void)number;
    seen++;
}

static void *interrupt(void *unused)
{
    (void)unused;
    for (const struct timespec nap = {0, 1000000}; !done; nanosleep(&nap, NULL)) {
        pthread_kill(compiling, SIGINT);
        interruptions++;
    }
    return NULL;
}

static void test_interrupt(void **state)
{
    (void)state;
    struct sigaction action = {.sa_handler = interrupted, .sa_flags = SA_RESTART | SA_ONSTACK}, old, after;
    sigset_t before;
    char *image = NULL, *text = text_of_tiles("tn_f32", 0, 1, 1);
    size_t length = 0;
    assert_non_null(text);
    assert_int_equal(sigaction(SIGINT, &action, &old), 0);
    compiling = pthread_self();
    tn__signals_hold(&before);
    assert_int_equal(pthread_create(&impatient, NULL, interrupt, NULL), 0);
    tn__signals_let(&before);
    while (!interruptions)
        sched_yield();
    assert_int_equal(tn__cuda_compile(&libraries, 90, text, &image, &length), TN_OK);
    done = 1;
    pthread_join(impatient, NULL);
    assert_true(seen > 0); /* by the program's own handler */
    sigaction(SIGINT, &old, &after);
    assert_ptr_equal(after.sa_handler, interrupted);
    assert_int_equal(after.sa_flags & (SA_RESTART | SA_ONSTACK), SA_RESTART | SA_ONSTACK);
    tn__free(image);
    tn__free(text);
}

int main(void)
{
    /* The interruption comes first: NVRTC takes signals over while it compiles a process's first text. */
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_interrupt), cmocka_unit_test(test_every_dtype), cmocka_unit_test(test_every_generation),
        cmocka_unit_test(test_tiles),     cmocka_unit_test(test_unknown_generation), cmocka_unit_test(test_error),
    };
    if (!tn__cuda_open_compiler(&libraries, CUDA_VERSION / 1000)) {
        printf("libnvrtc is not here\n");
        return 77;
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}
