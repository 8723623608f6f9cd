/* SPDX-License-Identifier: MIT */
#include "emulator/block.h"

#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <ucontext.h>

#define MOST_THREADS 1024
#define STACK        (256 << 10)

/* Runs threads of a block, one after another, until one of them waits: then that one is its own. */
typedef struct emulated_fiber {
    jmp_buf at;
    ucontext_t first;
    void *stack;
} fiber;

static struct {
    const emulated_kernel *kernel;
    void *const *arguments;
    emulated_block block;
    emulated_thread thread[MOST_THREADS];
    int count, begun, done;
    size_t dynamic; /* shared memory that this launch asks for */
    bool backwards; /* warps and lanes begin in the other order */
    int vote, voted;
    jmp_buf scheduler;
    fiber *idle[MOST_THREADS];
    int idle_count;
    fiber *running;
} now;

static void run_thread(emulated_thread *t)
{
    *now.kernel->now = t;
    t->fiber = now.running;
    t->state = EMULATED_READY;
    now.kernel->apply(now.arguments);
    /* Another thread may have run on this fiber's account meanwhile: the one that ends here is this fiber's. */
    (*now.kernel->now)->state = EMULATED_DONE;
    now.done++;
}

static emulated_thread *next_new(void)
{
    int k = now.begun++;
    return &now.thread[now.backwards ? now.count - 1 - k : k];
}

static void fiber_main(void)
{
    for (;;) {
        fiber *self = now.running;
        while (now.begun < now.count)
            run_thread(next_new());
        now.idle[now.idle_count++] = self;
        if (_setjmp(self->at) == 0)
            _longjmp(now.scheduler, 1);
    }
}

static fiber *new_fiber(void)
{
    fiber *made = calloc(1, sizeof *made);
    void *stack = mmap(NULL, STACK, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (made == NULL || stack == MAP_FAILED) {
        fprintf(stderr, "emulator: no memory for a thread's stack\n");
        abort();
    }
    made->stack = stack;
    getcontext(&made->first);
    made->first.uc_stack.ss_sp = stack;
    made->first.uc_stack.ss_size = STACK;
    makecontext(&made->first, fiber_main, 0);
    return made;
}

/* From the scheduler into a fiber, until it waits or has nothing to do. */
static void enter(fiber *f, bool begins)
{
    now.running = f;
    if (_setjmp(now.scheduler) == 0) {
        if (begins)
            setcontext(&f->first);
        else
            _longjmp(f->at, 1);
    }
}

static void enter_another(void)
{
    if (now.idle_count)
        enter(now.idle[--now.idle_count], false);
    else
        enter(new_fiber(), true);
}

/* The running thread lets others run until it is ready. */
static void wait(emulated_thread *t)
{
    if (_setjmp(t->fiber->at) == 0)
        _longjmp(now.scheduler, 1);
}

/* Lets them go on if all threads that have not ended wait for one another. */
static bool wake_all(void)
{
    int waiting = 0;
    for (int i = 0; i < now.count; i++)
        waiting += now.thread[i].state == EMULATED_WAITS_ALL;
    if (waiting != now.count - now.done)
        return false;
    for (int i = 0; i < now.count; i++)
        if (now.thread[i].state == EMULATED_WAITS_ALL)
            now.thread[i].state = EMULATED_READY;
    now.voted = now.vote;
    now.vote = 0;
    return true;
}

static int all_meet(int vote)
{
    emulated_thread *t = *now.kernel->now;
    now.vote |= vote;
    t->state = EMULATED_WAITS_ALL;
    wait(t);
    return now.voted;
}

static void lanes_meet(unsigned lanes)
{
    emulated_thread *t = *now.kernel->now, *warp = t - t->lane;
    int in_warp = now.count - (int)(warp - now.thread);
    t->state = EMULATED_WAITS_LANES;
    t->waits_for = lanes;
    int last = in_warp < 32 ? in_warp - 1 : 31;
    for (int i = 0; i <= last; i++) {
        int k = now.backwards ? i : last - i; /* those that come last first */
        if (lanes >> k & 1 && warp[k].state != EMULATED_DONE &&
            (warp[k].state != EMULATED_WAITS_LANES || warp[k].waits_for != lanes)) {
            wait(t);
            return;
        }
    }
    for (int k = 0; k <= last; k++)
        if (lanes >> k & 1 && warp[k].state != EMULATED_DONE)
            warp[k].state = EMULATED_READY;
}

static const emulated_host host = {all_meet, lanes_meet};

/* False if none was. */
static bool run_ready(void)
{
    bool some = false;
    for (int i = 0; i < now.count; i++) {
        emulated_thread *t = &now.thread[now.backwards ? now.count - 1 - i : i];
        if (t->state != EMULATED_READY)
            continue;
        some = true;
        *now.kernel->now = t;
        enter(t->fiber, false);
    }
    return some;
}

static void stuck(void)
{
    static const char *const does[] = {"has not begun", "is ready", "waits for lanes", "waits for all", "has ended"};
    fprintf(stderr, "emulator: %s: threads of block %u wait for others that never come:", now.kernel->name,
            now.block.index.x);
    for (int i = 0; i < now.count && i < 64; i++)
        fprintf(stderr, " %d %s (%08x),", i, does[now.thread[i].state], now.thread[i].waits_for);
    fprintf(stderr, "\n");
    abort();
}

static void run_block(unsigned index)
{
    now.block.index = (emulated_extent){index, 0, 0};
    now.begun = now.done = now.vote = 0;
    now.backwards = index % 2;
    for (int i = 0; i < now.count; i++)
        now.thread[i] = (emulated_thread){
            .thread = {(unsigned)i, 0, 0}, .lane = (unsigned)i % 32, .block = &now.block, .state = EMULATED_NEW};
    memset(now.kernel->dynamic, 0xff, now.dynamic); /* NaN: what nobody wrote shows */
    while (now.begun < now.count)
        enter_another();
    while (now.done < now.count)
        if (!run_ready() && !wake_all())
            stuck();
}

void emulated_run(const emulated_kernel *kernel, const emulated_launch *launch, void *const *arguments)
{
    if (launch->threads > MOST_THREADS || launch->dynamic > kernel->dynamic_size) {
        fprintf(stderr, "emulator: %s: %u threads a block, %u bytes of shared memory\n", kernel->name, launch->threads,
                launch->dynamic);
        abort();
    }
    now.kernel = kernel;
    now.arguments = arguments;
    now.count = (int)launch->threads;
    now.dynamic = launch->dynamic;
    now.block = (emulated_block){.threads = {launch->threads, 1, 1}, .blocks = {launch->blocks, 1, 1}};
    *kernel->host = &host;
    for (unsigned b = 0; b < launch->blocks; b++)
        run_block(b);
}
