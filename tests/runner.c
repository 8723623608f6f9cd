/* SPDX-License-Identifier: MIT */
/* The program of a room's tests: `test_<room> SUBJECT` runs those of test_<subject>.c, `test_<room> SUBJECT PATTERN`
 * those of them whose names match, and `test_<room>` lists the subjects. One program a room, as each of them holds the
 * whole library. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#define TEST(subject) int tanso_main_##subject(void);
#include TANSO_TESTS
#undef TEST

static const struct {
    const char *subject;
    int (*run)(void);
} tests[] = {
#define TEST(subject) {#subject, tanso_main_##subject},
#include TANSO_TESTS
};

int main(int argc, char **argv)
{
    const size_t count = sizeof tests / sizeof *tests;
    if (argc > 2)
        cmocka_set_test_filter(argv[2]);
    for (size_t k = 0; argc > 1 && k < count; k++)
        if (strcmp(tests[k].subject, argv[1]) == 0)
            return tests[k].run();
    fprintf(stderr, "usage: %s SUBJECT [PATTERN]; the subjects are:\n", argv[0]);
    for (size_t k = 0; k < count; k++)
        fprintf(stderr, "    %s\n", tests[k].subject);
    return 2;
}
