/* SPDX-License-Identifier: MIT */
/* Plans of random graphs never let live memory be overwritten, and the verifier finds faults planted in a plan. */
#include <tanso.h>

#include "graphs.h"

static const char *context = "";

/* One that nobody runs anything on. */
static tn__device gpu = {.capabilities = {.target = TN__TARGET_CUDA, .threads = 132, .multiprocessors = 132,
                                          .shared_memory = 227 << 10}};

static tn__plan *compile(const tn__graph *graph, const tn__device *device, tn__compile_options options)
{
    tn__plan *plan = tn__compile(graph, device, &options);
    if (!plan)
        fail_msg("%s: %s", context, tn_error());
    return plan;
}

/* ---- random graphs ---- */

/* Does a write to buffer a change bytes of buffer b? Results and inputs are storages of their own, but for donated
 * ones. */
static bool overlap(const tn__program *p, int a, int b)
{
    const tn__buffer *x = &p->buffer[a], *y = &p->buffer[b];
    if (a == b || x->donor == b || y->donor == a)
        return true;
    return x->kind == TN__BUFFER_TEMPORARY && y->kind == TN__BUFFER_TEMPORARY && x->offset < y->offset + y->bytes &&
           y->offset < x->offset + x->bytes;
}

/* Runs the plan in thought: every buffer that is read must hold what was last written to it, and results at the end
 * too. */
static void check_run(const tn__plan *plan)
{
    const tn__program *p = &plan->program;
    bool *intact = calloc((size_t)p->buffer_count + 1, sizeof *intact);
    assert_non_null(intact);
    for (int b = 0; b < p->buffer_count; b++)
        intact[b] = p->buffer[b].kind == TN__BUFFER_INPUT;
    for (int i = 0; i < p->step_count; i++) {
        const tn__step *s = &p->step[i];
        for (int k = s->output_count; k < s->operand_count; k++) {
            bool own = false; /* what the step itself writes before it reads it */
            for (int w = 0; w < s->output_count; w++)
                own = own || s->operand[w].buffer == s->operand[k].buffer;
            if (!own && !intact[s->operand[k].buffer])
                fail_msg("%s: step %d reads buffer %d, which holds something else", context, i, s->operand[k].buffer);
        }
        for (int k = 0; k < s->output_count; k++)
            for (int b = 0; b < p->buffer_count; b++)
                if (overlap(p, s->operand[k].buffer, b))
                    intact[b] = false;
        for (int k = 0; k < s->output_count; k++)
            intact[s->operand[k].buffer] = true;
    }
    for (int r = 0; r < plan->result_count; r++)
        if (!intact[plan->result[r].buffer])
            fail_msg("%s: result %d is overwritten or missing", context, r);
    free(intact);
}

static void check_apart(const tn__program *p)
{
    for (int a = 0; a < p->buffer_count; a++) {
        assert_int_not_equal(p->buffer[a].kind, TN__BUFFER_DONATED);
        for (int b = 0; b < a; b++)
            if (p->buffer[a].bytes && p->buffer[b].bytes && overlap(p, a, b))
                fail_msg("%s: buffers %d and %d overlap, though nothing is to be reused", context, a, b);
    }
}

static void test_random_graphs(void **state)
{
    (void)state;
    test_random chance = test_random_new();
    static const struct {
        const char *name;
        tn__compile_options options;
        const tn__device *device; /* NULL: the CPU */
    } variants[] = {
        {"operations", {.plan_memory = true}, NULL},
        {"operations, nothing reused", {0}, NULL},
        {"kernels", {.kernels = true, .fusion = true, .plan_memory = true}, NULL},
        {"kernels, nothing reused", {.kernels = true, .fusion = true}, NULL},
        {"kernels without fusion", {.kernels = true, .plan_memory = true}, NULL},
        {"on a GPU", {.kernels = true, .fusion = true, .plan_memory = true}, &gpu},
        {"on a GPU, nothing reused", {.kernels = true, .fusion = true}, &gpu},
        {"on a GPU, without fusion", {.kernels = true, .plan_memory = true}, &gpu},
    };
    int reused = 0, donated = 0;
    for (int round = 0; round < 300; round++) {
        tn__graph graph = {0};
        graph_random(&graph, &chance);
        size_t arena[2] = {0};
        for (size_t i = 0; i < sizeof variants / sizeof *variants; i++) {
            context = variants[i].name;
            const tn__device *device = variants[i].device;
            tn__plan *plan = compile(&graph, device ? device : tn__device_get(tn_cpu()), variants[i].options);
            check_run(plan);
            if (!variants[i].options.plan_memory)
                check_apart(&plan->program);
            if (i < 2)
                arena[i] = plan->program.arena_bytes;
            for (int b = 0; b < plan->program.buffer_count; b++)
                donated += plan->program.buffer[b].kind == TN__BUFFER_DONATED;
            tn__plan_free(plan);
        }
        assert_true(arena[0] <= arena[1]);
        reused += arena[0] < arena[1];
        tn__graph_free(&graph);
    }
    assert_true(reused > 100 && donated > 20);
}

/* ---- planted faults ---- */

/* exp(x) is needed to the end, with two products between; p is updated in place after its last use. */
static tn__plan *example(void)
{
    tn__graph graph = {0};
    const tn__shape *s = shape(2, 6, 6);
    int x = graph_leaf(&graph, s, false), p = graph_leaf(&graph, s, true);
    int exp = graph_op(&graph, TN__OP_EXP, s, x, -1);
    int product = graph_op(&graph, TN__OP_MATMUL, s, exp, p);
    int last = graph_op(&graph, TN__OP_ADD, s, graph_op(&graph, TN__OP_SQRT, s, product, -1), exp);
    graph_result(&graph, last);
    graph_result(&graph, graph_op(&graph, TN__OP_NEGATIVE, s, p, -1));
    context = "the example";
    tn__plan *plan = compile(&graph, tn__device_get(tn_cpu()), (tn__compile_options){.plan_memory = true});
    tn__graph_free(&graph);
    assert_null(tn__plan_verify(plan));
    return plan;
}

static int step_of(const tn__plan *plan, tn__op op)
{
    for (int i = 0; i < plan->program.step_count; i++)
        if (plan->program.step[i].op == (int)op)
            return i;
    fail_msg("the plan has no %s", tn__ops[op].name);
    return -1;
}

static int output_of(const tn__plan *plan, tn__op op)
{
    return plan->program.step[step_of(plan, op)].operand[0].buffer;
}

/* Moves the step of one operation in front of that of an earlier one. */
static void hasten(tn__plan *plan, tn__op later, tn__op earlier)
{
    tn__step *s = plan->program.step, moved = s[step_of(plan, later)];
    int from = step_of(plan, later), to = step_of(plan, earlier);
    assert_true(to < from);
    memmove(&s[to + 1], &s[to], sizeof *s * (size_t)(from - to));
    s[to] = moved;
}

static void share_memory(tn__plan *plan)
{
    tn__buffer *buffer = plan->program.buffer;
    buffer[output_of(plan, TN__OP_MATMUL)].offset = buffer[output_of(plan, TN__OP_EXP)].offset;
}

static void shrink_arena(tn__plan *plan) { plan->program.arena_bytes -= 64; }

static void consume_first(tn__plan *plan) { hasten(plan, TN__OP_MATMUL, TN__OP_EXP); }

static void read_late(tn__plan *plan) { hasten(plan, TN__OP_NEGATIVE, TN__OP_MATMUL); }

static void skip_result(tn__plan *plan)
{
    tn__step *s = &plan->program.step[step_of(plan, TN__OP_ADD)];
    s->operand[0].buffer = output_of(plan, TN__OP_EXP);
}

static void write_input(tn__plan *plan)
{
    tn__step *s = &plan->program.step[step_of(plan, TN__OP_EXP)];
    s->operand[0].buffer = s->operand[1].buffer;
}

static void reach_behind(tn__plan *plan) { plan->program.step[step_of(plan, TN__OP_ADD)].operand[1].offset = 1; }

static void reach_before(tn__plan *plan) { plan->program.step[step_of(plan, TN__OP_ADD)].operand[1].stride[0] = -6; }

static void no_buffer(tn__plan *plan) { plan->program.step[0].operand[0].buffer = plan->program.buffer_count; }

static void donate_nothing(tn__plan *plan)
{
    tn__program *p = &plan->program;
    for (int b = 0; b < p->buffer_count; b++)
        if (p->buffer[b].kind == TN__BUFFER_DONATED)
            p->buffer[b].donor = output_of(plan, TN__OP_ADD);
}

static void test_planted_faults(void **state)
{
    (void)state;
    static const struct {
        void (*plant)(tn__plan *plan);
        const char *found;
    } faults[] = {
        {share_memory, "two live temporaries overlap"},
        {shrink_arena, "a temporary lies outside the arena"},
        {consume_first, "what no step has written yet is read"},
        {read_late, "a donated input is read after it is overwritten"},
        {skip_result, "a result that no step writes"},
        {write_input, "a step writes to an input"},
        {reach_behind, "an operand reaches outside its buffer"},
        {reach_before, "an operand reaches outside its buffer"},
        {no_buffer, "an operand without a buffer"},
        {donate_nothing, "a donation from what is no input"},
    };
    for (size_t i = 0; i < sizeof faults / sizeof *faults; i++) {
        tn__plan *plan = example();
        faults[i].plant(plan);
        const char *wrong = tn__plan_verify(plan);
        assert_non_null(wrong);
        assert_string_equal(wrong, faults[i].found);
        tn__plan_free(plan);
    }
}

static void test_no_memory(void **state)
{
    (void)state;
    tn__plan *plan = example();
    tn__fail_allocation_after(0);
    const char *wrong = tn__plan_verify(plan);
    tn__fail_allocation_after(-1);
    assert_ptr_equal(wrong, tn__verify_no_memory);
    tn__plan_free(plan);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_random_graphs),
        cmocka_unit_test(test_planted_faults),
        cmocka_unit_test(test_no_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
