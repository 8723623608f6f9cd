/* SPDX-License-Identifier: MIT */
/*
 * Programs as graphs on a fake driver: which runs find their graph, patch one or capture one, that each run's kernels
 * get that run's addresses and scalars, and which runs are launched together; transfers through pinned memory; telling
 * of waits.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include <cmocka.h>
#include <tanso/base.h>

#include "cuda/fake.h"
#include "ops/ops.h"
#include "support/random.h"

enum { BUFFERS = 3, STEPS = 2 };

/* k0 reads buffer 0 and writes 1, then k1 (or a copy) reads 1 and writes 2. Both get a scalar of their own. */
typedef struct two_steps {
    tn__program program;
    tn__step step[STEPS];
    tn__operand operand[STEPS][2];
    tn__buffer buffer[BUFFERS];
    int64_t param;
    int slot[STEPS];
    tn_dtype dtype[STEPS];
    char source[64];
    tn__executable *executable;
} two_steps;

static tn__device *device;

static void load(two_steps *t, bool copies, bool overwrites)
{
    static int texts;
    memset(t, 0, sizeof *t);
    for (int i = 0; i < STEPS; i++) {
        for (int k = 0; k < 2; k++)
            t->operand[i][k] = (tn__operand){.buffer = i + 1 - k, .dtype = TN_FLOAT32, .ndim = 1, .dim = {4},
                                             .stride = {1}};
        t->slot[i] = i;
        t->dtype[i] = TN_UINT64;
        t->step[i] = (tn__step){.kind = TN__STEP_KERNEL,
                                .kernel = {.name = i ? "k1" : "k0", .launch = {.blocks = 1, .threads = 32}},
                                .operand_count = 2,
                                .output_count = 1,
                                .operand = t->operand[i], .param_count = 1, .param = &t->param, .scalar_count = 1,
                                .scalar = &t->slot[i], .label = "work"};
    }
    if (copies)
        t->step[1] = (tn__step){.kind = TN__STEP_OP, .op = TN__OP_COPY, .operand_count = 2, .output_count = 1,
                                .operand = t->operand[1]};
    if (overwrites)
        t->buffer[2].kind = TN__BUFFER_DONATED;
    snprintf(t->source, sizeof t->source, "k0 k1 %ld %d %ld", (long)getpid(), texts++, (long)time(NULL));
    t->program = (tn__program){.buffer_count = BUFFERS, .buffer = t->buffer, .scalar_count = STEPS,
                               .scalar_dtype = t->dtype, .step_count = STEPS, .step = t->step, .source = t->source};
    assert_int_equal(device->ops->load(device, &t->program, &t->executable), TN_OK);
}

/* ---- what the kernels saw ---- */

typedef struct launch {
    int64_t to, from;
    uint64_t scalar;
    bool guarded;
} launch;
static launch seen[2048];
static int seen_count;

static void note(const char *name, const int64_t *words, const uint64_t *scalars, const tn__cuda_failure *failure)
{
    (void)name;
    seen[seen_count++] = (launch){words[0], words[1], scalars[0], failure->guard != 0};
}

static int setup(void **state)
{
    (void)state;
    device = fake_open();
    fake.words = 3;
    fake.scalars = 1;
    fake.kernel_runs = note;
    seen_count = 0;
    return device == NULL;
}

static char memory[TN__CUDA_GRAPHS_KEPT + 8][64];

/* Asks for a run with buffers number b, b + 1, b + 2, which may be held back. */
static void ask(two_steps *t, int b, uint64_t scalar)
{
    void *buffers[BUFFERS] = {memory[b], memory[b + 1], memory[b + 2]};
    assert_int_equal(device->ops->run(t->executable, buffers, (uint64_t[]){scalar, 2 * scalar}), TN_OK);
}

/* What the kernels of such a run got, from launch number `at` on. */
static void check(const two_steps *t, int at, int b, uint64_t scalar)
{
    int count = t->step[1].kind == TN__STEP_OP ? 1 : 2;
    assert_true(at + count <= seen_count);
    for (int i = 0; i < count; i++) {
        assert_int_equal(seen[at + i].to, (intptr_t)memory[b + i + 1]);
        assert_int_equal(seen[at + i].from, (intptr_t)memory[b + i]);
        assert_int_equal(seen[at + i].scalar, i ? 2 * scalar : scalar);
    }
}

/* Both, of a run that is launched by itself. */
static void run(two_steps *t, int b, uint64_t scalar)
{
    seen_count = 0;
    ask(t, b, scalar);
    assert_int_equal(tn__cuda_flush(tn__cuda_of(device)), TN_OK);
    fake_flush();
    assert_int_equal(seen_count, t->step[1].kind == TN__STEP_OP ? 1 : 2);
    check(t, 0, b, scalar);
}

static void finish(two_steps *t)
{
    device->ops->unload(t->executable);
    assert_int_equal(fake.count.graphs, fake.count.graphs_gone);
}

/* ---- graphs ---- */

/* Each is made, then instantiated. */
static int graphs_made(void) { return fake.count.graphs / 2; }

static void test_steady_loop(void **state)
{
    (void)state;
    two_steps t;
    load(&t, false, false);
    for (int i = 0; i < 40; i++)
        run(&t, i % 3, 5);
    assert_int_equal(graphs_made(), 3); /* results that alternate between places have a graph each */
    assert_int_equal(fake.count.captures, 0);
    assert_int_equal(fake.roots, 1);
    assert_int_equal(fake.edges, 1);
    assert_int_equal(fake.count.graph_launches, 39);
    assert_int_equal(fake.count.patches, 0);
    for (int i = 0; i < 10; i++)
        run(&t, 0, 100 + i);
    assert_int_equal(fake.count.patches, 20); /* new scalars are put in place */
    assert_int_equal(graphs_made(), 3);
    finish(&t);
}

/* Runs that differ in one buffer, whichever it is, differ. */
static void test_each_buffer_counts(void **state)
{
    (void)state;
    two_steps t;
    load(&t, false, false);
    for (int i = 0; i < 24; i++) {
        void *buffers[BUFFERS];
        for (int k = 0; k < BUFFERS; k++)
            buffers[k] = memory[k == i % (BUFFERS + 1) ? 10 + k : k];
        seen_count = 0;
        assert_int_equal(device->ops->run(t.executable, buffers, (uint64_t[]){1, 2}), TN_OK);
        assert_int_equal(tn__cuda_flush(tn__cuda_of(device)), TN_OK);
        fake_flush();
        assert_int_equal(seen_count, 2);
        for (int k = 0; k < 2; k++) {
            assert_int_equal(seen[k].to, (intptr_t)buffers[k + 1]);
            assert_int_equal(seen[k].from, (intptr_t)buffers[k]);
        }
    }
    assert_int_equal(graphs_made(), BUFFERS + 1);
    finish(&t);
}

/* A trainer's step with sums has some two dozen sets of addresses, which do not always come in the same order. */
static void test_places_by_turns(void **state)
{
    (void)state;
    enum { PLACES = 24 };
    two_steps t;
    load(&t, false, false);
    static const int stride[] = {1, 5, 7, 1, 11};
    for (int k = 0; k < 5; k++)
        for (int i = 0; i < PLACES; i++)
            run(&t, i * stride[k] % PLACES, 5);
    assert_int_equal(graphs_made(), PLACES);
    assert_int_equal(fake.count.patches, 0);
    finish(&t);
}

static void test_many_places(void **state)
{
    (void)state;
    two_steps t;
    load(&t, false, false);
    for (int i = 0; i < 180; i++)
        run(&t, (i * 5) % (TN__CUDA_GRAPHS_KEPT + 5), i);
    assert_int_equal(graphs_made(), TN__CUDA_GRAPHS_KEPT); /* the rest by patching */
    finish(&t);
}

/* A copy by the driver has its addresses for good. */
static void test_opaque_steps(void **state)
{
    (void)state;
    two_steps t;
    load(&t, true, false);
    for (int i = 0; i < 20; i++)
        run(&t, i % 2, i);
    assert_int_equal(fake.count.captures, 2);
    int captures = fake.count.captures;
    for (int i = 0; i < 20; i++)
        run(&t, i % 20, i);
    assert_true(fake.count.captures > captures + 10);
    finish(&t);
}

static void test_no_capture(void **state)
{
    (void)state;
    two_steps t;
    fake.no_capture = true;
    for (int copies = 0; copies < 2; copies++) {
        load(&t, copies, false);
        for (int i = 0; i < 10; i++)
            run(&t, i % 3, i);
        assert_int_equal(fake.count.captures, copies); /* asked once */
        assert_int_equal(fake.count.graph_launches, 0);
        assert_string_equal(tn_error(), "");
        finish(&t);
    }
}

/* Once some program may fail, those that overwrite look at the latch; their graphs learn it. */
static void test_guards(void **state)
{
    (void)state;
    two_steps t, other;
    load(&t, false, true);
    for (int i = 0; i < 4; i++)
        run(&t, 0, 1);
    assert_false(seen[0].guarded || seen[1].guarded);
    load(&other, false, false);
    device->ops->unload(other.executable);
    other.step[0].kernel.may_fail = true;
    assert_int_equal(device->ops->load(device, &other.program, &other.executable), TN_OK);
    for (int i = 0; i < 4; i++) {
        run(&t, 0, 1);
        assert_false(seen[0].guarded);
        assert_true(seen[1].guarded);
    }
    device->ops->unload(other.executable);
    finish(&t);
}

/* ---- runs that are launched together ---- */

/* As if the last run had been a moment ago, or long ago: the tests must not depend on the machine's speed. */
static void soon(void) { tn__cuda_of(device)->held.last = UINT64_MAX / 2; }
static void late(void) { tn__cuda_of(device)->held.last = 0; }

static int held(void) { return tn__cuda_of(device)->held.count; }

/* A graph for each of some places, none of which is patched; nothing is held back. */
static void begin(two_steps *t, int places)
{
    load(t, false, false);
    for (int i = 0; i < 2 * places; i++)
        run(t, i % places, 5);
    fake.count.graph_launches = fake.count.patches = 0;
    seen_count = 0;
}

/* Asks for runs in places 0, 1, ... of so many, by turns, and checks all that the kernels got. */
static void ask_many(two_steps *t, int runs, int places)
{
    int before = seen_count;
    for (int i = 0; i < runs; i++) {
        soon();
        ask(t, i % places, 5);
    }
    fake_flush();
    assert_int_equal(seen_count - before, 2 * (runs - held()));
    for (int i = 0; i < runs - held(); i++)
        check(t, before + 2 * i, i % places, 5);
}

static void test_together(void **state)
{
    (void)state;
    for (int places = 1; places <= 3; places++) {
        two_steps t;
        begin(&t, places);
        ask_many(&t, 4 + 4 + 64 + 64, places); /* each series is launched one by one first, then together */
        int launches = fake.count.graph_launches;
        assert_int_equal(launches, places == 3 ? 4 + 4 + 64 + 64 : 4 + 1 + 64 + 1);
        ask_many(&t, 4 + 4 + 64 + 64, places); /* few at first, as the GPU has nothing to do */
        assert_int_equal(fake.count.graph_launches, launches + 4);
        assert_int_equal(held(), 0);
        assert_int_equal(fake.count.patches, 0);
        finish(&t);
        seen_count = 0;
    }
}

static void test_held_back(void **state)
{
    (void)state;
    two_steps t, other;
    char byte;
    begin(&other, 1);
    begin(&t, 1);
    for (int way = 0; way < 5; way++) {
        ask_many(&t, TN__CUDA_FEW - 1, 1);
        assert_int_equal(held(), TN__CUDA_FEW - 1);
        void *there = NULL;
        switch (way) {
        case 0: assert_int_equal(device->ops->synchronize(device), TN_OK); break;
        case 1: assert_int_equal(device->ops->read(device, &byte, memory[0], 1), TN_OK); break;
        case 2: assert_int_equal(device->ops->write(device, memory[0], &byte, 1), TN_OK); break;
        case 3: soon(), ask(&other, 0, 5); break;                /* whose own run is held back instead */
        case 4:
            there = device->ops->allocate(device, 8);
            assert_int_equal(held(), TN__CUDA_FEW - 1);
            device->ops->release(device, there, 8);
            break;
        }
        fake_flush();
        assert_int_equal(seen_count, 2 * (TN__CUDA_FEW - 1));
        assert_int_equal(held(), way == 3);
        assert_int_equal(tn__cuda_flush(tn__cuda_of(device)), TN_OK);
        fake_flush();
        seen_count = 0;
    }
    soon(), ask(&t, 0, 5);
    device->ops->unload(t.executable); /* its run is done nevertheless */
    assert_int_equal(seen_count, 2);
    device->ops->unload(other.executable);
}

/* What comes slowly, what is patched, and what others may wait for is launched at once. */
static void test_not_held_back(void **state)
{
    (void)state;
    two_steps t;
    begin(&t, 1);
    for (int i = 0; i < 9; i++) {
        late();
        ask(&t, 0, 5);
        assert_int_equal(held(), 0);
    }
    soon(), ask(&t, 0, 5);
    assert_int_equal(held(), 1);
    seen_count = 0;
    soon(), ask(&t, 0, 6); /* behind the one that was held back, which gets its own scalar */
    assert_int_equal(held(), 0);
    fake_flush();
    assert_int_equal(seen_count, 4 + 2 * 9);
    check(&t, seen_count - 4, 0, 5);
    check(&t, seen_count - 2, 0, 6);
    int graphs = graphs_made();
    for (int i = 0; i < 16; i++) {
        assert_int_equal(held(), 0);
        assert_int_equal(graphs_made(), graphs);
        soon(), ask(&t, 0, 6);
    }
    assert_int_equal(graphs_made(), graphs + 1); /* right so often that it was made again */
    assert_int_equal(held(), 1);
    device->lent = true;
    soon(), ask(&t, 0, 6);
    assert_int_equal(held(), 0);
    device->lent = false;
    finish(&t);
}

/* A series goes with any graph of it, and what the driver cannot put together stays apart. */
static void test_series_end(void **state)
{
    (void)state;
    two_steps t;
    begin(&t, 2);
    ask_many(&t, 4 + 4 + 64 + 64, 2);
    assert_int_equal(fake.count.graph_launches, 4 + 1 + 64 + 1);
    ask_many(&t, 4 + 4 + 6, 2);
    assert_int_equal(held(), 6);
    assert_int_equal(tn__cuda_flush(tn__cuda_of(device)), TN_OK); /* 4 and 2 of them; two have not come yet */
    fake_flush();
    assert_int_equal(fake.count.graph_launches, 4 + 1 + 64 + 1 + 2 + 1 + 2);
    run(&t, 1, 9); /* patches the graph of place 1 */
    run(&t, 0, 5);
    int launches = fake.count.graph_launches;
    ask_many(&t, 16, 2);
    assert_int_equal(fake.count.graph_launches, launches + 16);
    finish(&t);
    fake.most_nodes = STEPS;
    begin(&t, 1);
    ask_many(&t, 5 * TN__CUDA_TOGETHER, 1);
    assert_int_equal(fake.count.graph_launches, 5 * TN__CUDA_TOGETHER);
    assert_int_equal(held(), 0);
    assert_string_equal(tn_error(), "");
    device->ops->unload(t.executable);
    assert_int_equal(fake.count.graphs, fake.count.graphs_gone);
}

/* A run of a series is started early if the first step then reads nothing that the last one may still be writing. */
static void test_overlap(void **state)
{
    (void)state;
    static const struct {
        bool first_late, last_late, donated;
        int place[2], result[2]; /* of the runs by turns: which buffers, and which one the last step writes */
        int early;               /* runs that start so */
        int behind;              /* bytes that the first buffer begins behind its place: one element has four */
    } cases[] = {
        {true, true, false, {0, 0}, {2, 2}, TN__CUDA_TOGETHER - 1, 0},
        {true, true, false, {0, 4}, {2, 6}, TN__CUDA_TOGETHER - 1, 0},
        {false, true, false, {0, 0}, {2, 2}, 0, 0},
        {true, false, false, {0, 0}, {2, 2}, 0, 0},
        /* every other one reads the result of the one before; its last element alone; what lies behind it */
        {true, true, false, {0, 4}, {4, 6}, TN__CUDA_TOGETHER / 2, 0},
        {true, true, false, {0, 4}, {4, 6}, TN__CUDA_TOGETHER / 2, 12},
        {true, true, false, {0, 4}, {4, 6}, TN__CUDA_TOGETHER - 1, 16},
        {true, true, false, {0, 0}, {0, 0}, 0, 0},
        {true, true, true, {0, 0}, {0, 0}, TN__CUDA_TOGETHER - 1, 0}, /* its kernel knows */
    };
    for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
        two_steps t;
        load(&t, false, cases[c].donated);
        t.step[0].kernel.launch.late_trigger = cases[c].first_late;
        t.step[1].kernel.launch.late_trigger = cases[c].last_late;
        for (int i = 0; i < 6 * TN__CUDA_TOGETHER; i++) {
            int at = cases[c].place[i % 2];
            void *buffers[BUFFERS] = {memory[at] + cases[c].behind, memory[at + 1], memory[cases[c].result[i % 2]]};
            soon();
            assert_int_equal(device->ops->run(t.executable, buffers, (uint64_t[]){5, 10}), TN_OK);
        }
        assert_int_equal(fake.roots, 1);
        assert_int_equal(fake.edges, 2 * TN__CUDA_TOGETHER - 1);
        assert_int_equal(fake.early, TN__CUDA_TOGETHER + cases[c].early);
        device->ops->unload(t.executable);
        fake_flush();
        seen_count = 0;
    }
}

/* ---- what waits for what ---- */

enum { LONG = 20, PLACES = 9 };

static bool meet(const tn__program *p, const tn__step *a, const tn__step *b)
{
    for (int i = 0; i < 3; i++)
        for (int k = 0; k < 3; k++) {
            const tn__buffer *x = &p->buffer[a->operand[i].buffer], *y = &p->buffer[b->operand[k].buffer];
            if (i && k) /* operand 0 is written */
                continue;
            if (x == y || (x->kind == TN__BUFFER_DONATED && &p->buffer[x->donor] == y) ||
                (y->kind == TN__BUFFER_DONATED && &p->buffer[y->donor] == x))
                return true;
            if (x->kind == TN__BUFFER_TEMPORARY && y->kind == TN__BUFFER_TEMPORARY)
                for (size_t at = x->offset; at < x->offset + x->bytes; at++)
                    if (at >= y->offset && at < y->offset + y->bytes)
                        return true;
        }
    return false;
}

/* Random programs: whoever touches what another writes comes after it, and nobody waits twice for the same. */
static void test_order(void **state)
{
    (void)state;
    srand((unsigned)test_seed_new());
    for (int round = 0; round < 300; round++) {
        tn__buffer buffer[PLACES] = {{.kind = TN__BUFFER_INPUT}, {.kind = TN__BUFFER_INPUT},
                                     {.kind = TN__BUFFER_OUTPUT}, {.kind = TN__BUFFER_DONATED, .donor = 1}};
        tn__operand operand[LONG][3];
        tn__step part[LONG];
        tn__program program = {.buffer_count = PLACES, .buffer = buffer, .step_count = LONG, .step = part};
        tn__cuda_step step[LONG];
        uint64_t waits[LONG], after[LONG];
        int count = 1 + rand() % LONG;
        for (int b = 4; b < PLACES; b++)
            buffer[b] = (tn__buffer){.kind = TN__BUFFER_TEMPORARY, .offset = (size_t)(rand() % 8) * 64,
                                     .bytes = (size_t)(1 + rand() % 128)};
        for (int i = 0; i < count; i++) {
            for (int k = 0; k < 3; k++)
                operand[i][k] = (tn__operand){.buffer = k ? rand() % PLACES : 2 + rand() % (PLACES - 2)};
            part[i] = (tn__step){.kind = rand() % 6 ? TN__STEP_KERNEL : TN__STEP_OP, .operand_count = 3,
                                 .output_count = 1, .operand = operand[i]};
            step[i] = (tn__cuda_step){.step = &part[i], .program = &program, .may_fail = rand() % 9 == 0,
                                      .overwrites = operand[i][0].buffer == 3};
        }
        tn__cuda_order(step, count, waits);
        for (int i = 0; i < count; i++) {
            after[i] = 0;
            assert_int_equal(waits[i] >> i, 0);
            for (int k = 0; k < i; k++)
                if (waits[i] >> k & 1)
                    after[i] |= after[k];
            assert_int_equal(after[i] & waits[i], 0);
            after[i] |= waits[i];
            for (int k = 0; k < i; k++)
                if (meet(&program, &part[k], &part[i]) || (step[k].may_fail && step[i].overwrites) ||
                    (part[i].kind == TN__STEP_OP && part[k].kind == TN__STEP_OP))
                    assert_true(after[i] >> k & 1);
        }
    }
}

/* ---- transfers ---- */

static void test_transfers(void **state)
{
    (void)state;
    size_t sizes[] = {1, 1000, (1 << 20) - 1, 1 << 20, (1 << 20) + 1, (5 << 20) + 77, (19 << 20) + 3};
    for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++) {
        unsigned char *from = malloc(sizes[s]), *back = malloc(sizes[s]),
                      *there = device->ops->allocate(device, sizes[s]);
        assert_true(from && back && there);
        for (size_t i = 0; i < sizes[s]; i++)
            from[i] = (unsigned char)(i * 31 + i / 1000 + s);
        int waits = fake.count.event_waits;
        assert_int_equal(device->ops->write(device, there, from, sizes[s]), TN_OK);
        if (sizes[s] < 32 << 20)
            assert_int_equal(fake.count.event_waits, waits); /* the GPU may fetch it when it likes */
        memset(back, 0, sizes[s]);
        assert_int_equal(device->ops->read(device, back, there, sizes[s]), TN_OK);
        assert_memory_equal(back, from, sizes[s]);
        memset(from, 0xee, sizes[s]); /* the caller's again */
        assert_int_equal(device->ops->read(device, back, there, sizes[s]), TN_OK);
        assert_int_equal(back[sizes[s] - 1], (unsigned char)((sizes[s] - 1) * 31 + (sizes[s] - 1) / 1000 + s));
        device->ops->release(device, there, sizes[s]);
        free(from);
        free(back);
    }
}

/* A caller may change what it has written at once, and write again, before the GPU has fetched any of it. */
static void test_writes_in_a_row(void **state)
{
    (void)state;
    char *there = device->ops->allocate(device, 100 * 8);
    for (uint64_t i = 0; i < 100; i++) {
        uint64_t word = i * i;
        assert_int_equal(device->ops->write(device, there + 8 * i, &word, 8), TN_OK);
    }
    uint64_t back[100];
    assert_int_equal(device->ops->read(device, back, there, sizeof back), TN_OK);
    for (uint64_t i = 0; i < 100; i++)
        assert_int_equal(back[i], i * i);
    device->ops->release(device, there, 100 * 8);
}

static void test_waits(void **state)
{
    (void)state;
    two_steps t;
    load(&t, false, false);
    tn__cuda_device *cuda = tn__cuda_of(device);
    cuda->waits = TN__CUDA_WAITS_FORBIDDEN;
    for (int i = 0; i < 20; i++)
        run(&t, i % 2, i);
    unsigned long long before = cuda->wait_count;
    char byte = 1;
    assert_int_equal(device->ops->write(device, memory[0], &byte, 1), TN_OK);
    assert_int_equal(cuda->wait_count, before);
    assert_int_equal(device->ops->read(device, &byte, memory[0], 1), TN_ERR_STATE);
    assert_non_null(strstr(tn_error(), "a value is read"));
    assert_non_null(strstr(tn_error(), "TANSO_CUDA_SYNC"));
    tn_clear_error();
    assert_int_equal(device->ops->synchronize(device), TN_ERR_STATE);
    tn_clear_error();
    cuda->waits = TN__CUDA_WAITS_ALLOWED;
    assert_int_equal(device->ops->read(device, &byte, memory[0], 1), TN_OK);
    finish(&t);
}

/* What CUDA waits for by itself where memory and programs go, which no call can leave out: told of where the GPU is at
 * work. */
static void test_waits_at_the_end(void **state)
{
    (void)state;
    two_steps t;
    load(&t, false, false);
    tn__cuda_device *cuda = tn__cuda_of(device);
    void *more = device->ops->allocate(device, 64);
    assert_int_equal(device->ops->synchronize(device), TN_OK);
    cuda->waits = TN__CUDA_WAITS_FORBIDDEN;
    device->ops->release(device, more, 64);
    assert_true(tn_ok()); /* nothing is under way */
    more = device->ops->allocate(device, 64);
    ask(&t, 0, 1);
    unsigned long long before = cuda->wait_count;
    device->ops->release(device, more, 64);
    assert_int_equal(cuda->wait_count, before + 1);
    assert_non_null(strstr(tn_error(), "memory goes back to the driver"));
    tn_clear_error();
    ask(&t, 0, 2);
    ask(&t, 0, 2);
    device->ops->unload(t.executable);
    assert_int_equal(cuda->wait_count, before + 2);
    assert_non_null(strstr(tn_error(), "a program that has run is let go"));
    assert_int_equal(tn_error_code(), TN_ERR_STATE);
    tn_clear_error();
    cuda->waits = TN__CUDA_WAITS_ALLOWED;
}

/* A device that is lost: the message tells what the steps of the program were, and stays. */
static void test_device_fault(void **state)
{
    (void)state;
    two_steps t;
    load(&t, false, false);
    t.step[1].label = "more work";
    for (int i = 0; i < 3; i++)
        ask(&t, 0, 1);
    fake.next_wait = CUDA_ERROR_ILLEGAL_ADDRESS;
    assert_int_equal(device->ops->synchronize(device), TN_ERR_DEVICE);
    fake.next_wait = CUDA_SUCCESS;
    assert_non_null(strstr(tn_error(), ": k0 work, k1 more work, TANSO_CUDA_BLOCKING=1 tells"));
    tn_clear_error();
    char byte;
    assert_int_equal(device->ops->read(device, &byte, memory[0], 1), TN_ERR_DEVICE);
    assert_non_null(strstr(tn_error(), ": k0 work, k1 more work"));
    tn_clear_error();
    t.step[1].label = "work";
    device->ops->unload(t.executable);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(test_steady_loop, setup),
        cmocka_unit_test_setup(test_places_by_turns, setup),
        cmocka_unit_test_setup(test_many_places, setup),
        cmocka_unit_test_setup(test_each_buffer_counts, setup),
        cmocka_unit_test_setup(test_opaque_steps, setup),
        cmocka_unit_test_setup(test_no_capture, setup),
        cmocka_unit_test_setup(test_guards, setup),
        cmocka_unit_test(test_order),
        cmocka_unit_test_setup(test_together, setup),
        cmocka_unit_test_setup(test_held_back, setup),
        cmocka_unit_test_setup(test_not_held_back, setup),
        cmocka_unit_test_setup(test_series_end, setup),
        cmocka_unit_test_setup(test_overlap, setup),
        cmocka_unit_test_setup(test_transfers, setup),
        cmocka_unit_test_setup(test_writes_in_a_row, setup),
        cmocka_unit_test_setup(test_waits, setup),
        cmocka_unit_test_setup(test_waits_at_the_end, setup),
        cmocka_unit_test_setup(test_device_fault, setup),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
