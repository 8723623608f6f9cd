/* SPDX-License-Identifier: MIT */
/* The arena's layout is the one that looking at all temporaries before each one gives. */
#include <tanso.h>

#include "compile/memory/arena.h"
#include "graphs.h"

static bool meet(const tn__lifetime *a, const tn__lifetime *b) { return a->first <= b->last && b->first <= a->last; }

static size_t aligned(size_t bytes) { return (bytes + TN__ALIGNMENT - 1) / TN__ALIGNMENT * TN__ALIGNMENT; }

/* The lowest offset at which a temporary meets none of those that come before it: larger ones, and equal ones in front
 * of it. */
static size_t lowest(const tn__lifetime *life, int count, int own, bool reuse)
{
    size_t at = 0;
    for (bool moved = true; moved;) {
        moved = false;
        for (int v = 0; v < count; v++) {
            const tn__lifetime *o = &life[v], *l = &life[own];
            bool before = o->temporary && (o->bytes > l->bytes || (o->bytes == l->bytes && v < own));
            if (!before || (reuse && !meet(o, l)) || at >= o->offset + o->bytes || o->offset >= at + aligned(l->bytes))
                continue;
            at = aligned(o->offset + o->bytes);
            moved = true;
        }
    }
    return at;
}

static void test_layouts(void **state)
{
    (void)state;
    enum { MOST = 60 };
    test_random chance = test_random_new();
    for (int round = 0; round < 300; round++) {
        tn__lifetime life[MOST];
        int count = (int)test_random_int(&chance, 0, MOST), steps = (int)test_random_int(&chance, 1, 40);
        int64_t most = test_random_int(&chance, 0, 2000);
        bool reuse = test_random_int(&chance, 0, 3) > 0;
        size_t arena = 12345, end = 0;
        for (int v = 0; v < count; v++) {
            int first = (int)test_random_int(&chance, 0, steps - 1),
                last = (int)test_random_int(&chance, first, steps - 1);
            life[v] = (tn__lifetime){.first = first,
                                     .last = last,
                                     .bytes = (size_t)test_random_int(&chance, 0, most),
                                     .temporary = test_random_int(&chance, 0, 9) > 0};
        }
        assert_true(tn__arena_lay_out(life, count, steps, reuse, &arena));
        for (int v = 0; v < count; v++) {
            if (!life[v].temporary)
                continue;
            assert_int_equal(life[v].offset, life[v].bytes ? lowest(life, count, v, reuse) : 0);
            size_t own = life[v].offset + aligned(life[v].bytes);
            end = own > end ? own : end;
        }
        assert_int_equal(arena, end);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_layouts)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
