/* SPDX-License-Identifier: MIT */
/* A language's words in lines of kernel text (compile/emit/words.c). */
#include "graphs.h"

#include "compile/emit/emit.h"

static const tn__word words[] = {
    {"thread", "get_local_id(0)"}, {"memory", ""},           {"barrier", "wait()"}, {"vector", "pack<$1, $2>"},
    {"threads", "size(0)"},        {"turned", "[$2 of $1]"}, {NULL, NULL},
};
static const tn__emit_target target = {.words = words}, wordless = {.words = NULL};

static void expect(const tn__emit_target *of, const char *line, const char *expected)
{
    tn__text text = {0};
    tn__words_expand(of, line, &text);
    char *got = tn__text_take(&text);
    assert_string_equal(got, expected);
    tn__free(got);
}

static void test_words(void **state)
{
    (void)state;
    expect(&target, "", "");
    expect(&target, "x[i] = y;", "x[i] = y;");
    expect(&target, "@barrier;", "wait();");
    expect(&target, "int i = @thread + @threads * (ix)@thread;", /* the longer name is not taken for the shorter */
           "int i = get_local_id(0) + size(0) * (ix)get_local_id(0);");
    expect(&target, "const @memory float *const p = (const @memory float *)q;",
           "const float *const p = (const float *)q;");
    expect(&target, "@vector(tn_f32, 4) c0[2];", "pack<tn_f32, 4> c0[2];");
    expect(&target, "f(@vector(int, 8), @turned(a, b));", "f(pack<int, 8>, [b of a]);");
    expect(&target, "a @memory(4)", "a "); /* arguments that the language has no use for */
    expect(&target, "a @nothing b", "a @nothing b");
    expect(&wordless, "a @thread", "a @thread");
    assert_string_equal(tn__word_of(&target, "vector"), "pack<$1, $2>");
    assert_null(tn__word_of(&target, "vect"));
    assert_null(tn__word_of(&wordless, "vector"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_words)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
