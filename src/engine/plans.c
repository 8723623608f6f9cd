/* SPDX-License-Identifier: MIT */
/*
 * The cache of plans. An entry may hold two loaded plans: one of single operations for the reference evaluator, which
 * needs no compiler and runs a small graph that may never recur, and one of fused kernels, made when the graph recurs
 * in a loop.
 */
#include "engine/plans.h"

#include "engine/users.h"
#include "core/hash.h"
#include "core/log.h"
#include "core/memory.h"
#include "device/allocator.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#define CAPACITY 1024  /* plans kept */
#define MOST_STEPS (1 << 17) /* of all that are kept: one takes about 2 KiB of host memory */
#define BUCKETS 4096
/* A first evaluation of at most this many element operations goes to the reference evaluator: compiling would take
 * longer. */
#define SMALL_WORK (1 << 22)
/* So does one that comes back only now and then, as a test once an epoch does: compiled when another evaluation of the
 * same graph lies at most SOON evaluations back, or when it has done so much work that compiling would have cost no
 * more. */
#define SOON 16
#define PATIENCE (1 << 27)
/* A compiler that would take longer than this has to be worth it first, unless it is for more work at once. */
#define LONG_PAUSE  2000000000 /* ns */
#define MODEST_WORK SMALL_WORK

struct tn__cached {
    uint64_t hash;
    uint64_t *key;
    size_t key_count;
    tn__cached *chain;             /* same bucket */
    tn__cached *newer, *older;     /* by use */
    tn__device *device;
    bool forgotten;                /* out of the table: freed when let go */
    int64_t steps;                 /* of its loaded plans */
    struct {
        int holds;                 /* evaluations that run it now */
        uint64_t last;             /* evaluation that ran it last, counting all */
        int64_t work;              /* element operations of its evaluations so far */
        _Atomic int64_t spent;     /* nanoseconds that they took */
        bool recurs;               /* often enough to be compiled */
    } use;
    bool unused;                   /* a graph has been seen that it could serve, and had a plan of its own */
    pthread_mutex_t build;
    struct {
        tn__plan *plan;            /* of kernels that would take longer to compile than all runs did by now */
        int64_t pause;             /* nanoseconds that it would take */
        _Atomic bool waits;        /* as it does */
        bool failed;               /* the compiler would not: the reference evaluator from now on */
    } compiling;
    tn__loaded operations, kernels;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static tn__cached *bucket[BUCKETS];
static tn__cached *newest, *oldest;
static int plan_count;
static int64_t step_count;
static uint64_t acquisitions; /* of evaluations: their regions count once */

tn__switches tn__engine_switches = {TN_COMPILE_AUTO, true, true, TN_MATMUL_FLOAT32};
tn__counters tn__engine_counters;

/* ---- the table; all under the lock ---- */

static void unlink_use(tn__cached *e)
{
    *(e->newer ? &e->newer->older : &newest) = e->older;
    *(e->older ? &e->older->newer : &oldest) = e->newer;
    e->newer = e->older = NULL;
}

static void link_newest(tn__cached *e)
{
    e->older = newest;
    e->newer = NULL;
    *(newest ? &newest->newer : &oldest) = e;
    newest = e;
}

static void unload(tn__loaded *loaded)
{
    if (loaded->executable)
        loaded->ops->unload(loaded->executable);
    tn__plan_free(loaded->plan);
}

static void destroy(tn__cached *e)
{
    unload(&e->operations);
    unload(&e->kernels);
    tn__plan_free(e->compiling.plan);
    pthread_mutex_destroy(&e->build);
    tn__free(e->key);
    tn__free(e);
}

static void destroy_all(tn__cached *gone)
{
    for (tn__cached *next; gone; gone = next) {
        next = gone->chain;
        destroy(gone);
    }
}

/* Takes an entry off the table; if nobody runs it, onto the list of those to destroy: without the lock, as a device may
 * have to be waited for. */
static void forget(tn__cached *e, tn__cached **gone)
{
    tn__cached **at = &bucket[e->hash % BUCKETS];
    while (*at != e)
        at = &(*at)->chain;
    *at = e->chain;
    unlink_use(e);
    plan_count -= !e->unused;
    step_count -= e->steps;
    e->forgotten = true;
    if (!e->use.holds) {
        e->chain = *gone;
        *gone = e;
    }
}

static bool has_key(const tn__cached *e, const uint64_t *key, size_t count)
{
    return e->key_count == count && memcmp(e->key, key, count * sizeof *key) == 0;
}

static tn__cached *find(const uint64_t *key, size_t count, uint64_t hash)
{
    for (tn__cached *e = bucket[hash % BUCKETS]; e; e = e->chain)
        if (e->hash == hash && has_key(e, key, count))
            return e;
    return NULL;
}

static tn__cached *insert(const tn__collection *c, const uint64_t *words, uint64_t hash, tn__cached **gone)
{
    tn__cached *e = tn__calloc(1, sizeof *e);
    uint64_t *key = tn__alloc(c->key_count * sizeof *key);
    if (!e || !key) {
        tn__free(e);
        tn__free(key);
        return NULL;
    }
    memcpy(key, words, c->key_count * sizeof *key);
    e->key = key;
    e->key_count = c->key_count;
    e->hash = hash;
    e->device = c->device;
    pthread_mutex_init(&e->build, NULL);
    e->chain = bucket[hash % BUCKETS];
    bucket[hash % BUCKETS] = e;
    link_newest(e);
    plan_count++;
    while (plan_count > CAPACITY && oldest != e)
        forget(oldest, gone);
    return e;
}

/* The entry of what has come with other starts, of slices of what is computed, too, if `pending`; NULL: none. */
static tn__cached *find_loose(tn__collection *c, bool pending)
{
    if (!tn__collection_loosen(c, pending))
        return NULL;
    return find(c->loose, c->key_count, tn__hash(c->loose, c->key_count * sizeof *c->loose, 0));
}

/* Notes that such a graph has come. It takes no plan's place, and goes with the one that comes behind it, so there has
 * to be one; without memory it is noted the next time. */
static void note(tn__collection *c, bool pending, tn__cached **gone)
{
    if (!tn__collection_loosen(c, pending))
        return;
    uint64_t hash = tn__hash(c->loose, c->key_count * sizeof *c->loose, 0);
    tn__cached *e = find(c->loose, c->key_count, hash); /* there already, where nothing that is computed has windows */
    if (!e && (e = insert(c, c->loose, hash, gone))) {
        e->unused = true;
        plan_count--;
    }
}

/*
 * A graph that has no plan yet, but windows whose starts are in its key. Where it has come before with other starts,
 * the entry of all of them, whose runs tell them; else NULL, and it is noted that it has come. So what always has the
 * same starts keeps a plan that knows them; and what is a window of what the plan itself computes, if only the others
 * begin elsewhere.
 */
static tn__cached *find_moving(tn__collection *c, tn__cached **gone)
{
    tn__cached *e = find_loose(c, false);
    e = e ? e : find_loose(c, true);
    c->moves = e != NULL;
    for (int pending = 0; pending < 2 && !e; pending++)
        note(c, pending, gone);
    return e;
}

/* A plan has come to the entry, which is in use: where all are too many steps now, those go that were used longest
 * ago. */
static void count_steps(tn__cached *e, int64_t steps)
{
    tn__cached *gone = NULL;
    pthread_mutex_lock(&lock);
    if (!e->forgotten) {
        e->steps += steps;
        step_count += steps;
    }
    while (step_count > MOST_STEPS && oldest != newest && oldest != e)
        forget(oldest, &gone);
    pthread_mutex_unlock(&lock);
    destroy_all(gone);
}

/* ---- building ---- */

tn__plan *tn__plan_make(const tn__collection *c, bool kernels, const char *operation)
{
    tn__graph graph;
    if (!tn__collection_graph(c, &graph)) {
        tn__fail_memory(operation, 0);
        return NULL;
    }
    const tn__compile_options options = {.kernels = kernels,
                                         .fusion = tn__engine_switches.fusion,
                                         .plan_memory = tn__engine_switches.plan_memory,
                                         .precision = tn__engine_switches.precision};
    tn__plan *plan = tn__compile(&graph, c->device, &options);
    tn__graph_free(&graph);
    return plan;
}

static bool build(const tn__collection *c, tn__cached *e, bool kernels, tn__loaded *loaded)
{
    tn__plan *plan = kernels && e->compiling.plan ? e->compiling.plan : tn__plan_make(c, kernels, "eval");
    if (kernels)
        e->compiling.plan = NULL;
    if (!plan)
        return false;
    tn__executable *executable = NULL;
    if (c->device->ops->load(c->device, &plan->program, &executable) != TN_OK) {
        tn__plan_free(plan);
        if (c->users)
            tn__users_explain(c);
        return false;
    }
    loaded->plan = plan;
    loaded->executable = executable;
    static _Atomic uint64_t made;
    loaded->number = atomic_fetch_add(&made, 1) + 1;
    __atomic_store_n(&loaded->ops, c->device->ops, __ATOMIC_RELEASE);
    count_steps(e, plan->program.step_count);
    return true;
}

static bool wants_kernels(const tn__collection *c, const tn__cached *e, bool recurs)
{
    int mode = tn__engine_switches.compile;
    if (e->compiling.failed || c->device->capabilities.target == TN__TARGET_NONE)
        return false;
    if (!c->device->capabilities.operations || c->users) /* kernels are the only way there is, whatever the mode */
        return true;
    return mode == TN_COMPILE_ALWAYS || (mode != TN_COMPILE_NEVER && (recurs || tn__collection_work(c) > SMALL_WORK));
}

/* A compiler's failure on one line, without the place of the call, which has no part in it. */
static void tell_failure(const char *message)
{
    char text[900];
    snprintf(text, sizeof text, "%.*s", tn__without_place(message), message);
    for (char *at = text; (at = strchr(at, '\n'));)
        *at = ' ';
    tn__log(TN__LOG_WARN, "engine", "%s; going on with the slower reference evaluator", text);
}

/* A compiler that fails is no error where operations can run one by one. */
static bool fall_back(const tn__collection *c, tn__cached *e)
{
    if (tn__error_status(tn__error_last()) != TN_ERR_COMPILE || !c->device->capabilities.operations || c->users)
        return false;
    static _Atomic bool told;
    if (!atomic_exchange(&told, true))
        tell_failure(tn__error_message(tn__error_last()));
    e->compiling.failed = true;
    return true;
}

/* A long pause for a compiler is made only when all runs without kernels have taken as long: so a graph that does not
 * come again often takes twice as long at most. Not where the reference evaluator might want much more memory. */
static bool rather_waits(const tn__collection *c, tn__cached *e)
{
    if (tn__engine_switches.compile != TN_COMPILE_AUTO || !c->device->capabilities.operations || c->users ||
        !c->device->ops->pause || tn__collection_work(c) > MODEST_WORK)
        return false;
    if (!e->compiling.plan) {
        bool clean = !tn__latched();
        e->compiling.plan = tn__plan_make(c, true, "eval");
        if (!e->compiling.plan && clean) /* whoever builds it meets the same */
            tn_clear_error();
        e->compiling.pause = e->compiling.plan ? c->device->ops->pause(c->device, &e->compiling.plan->program) : 0;
    }
    e->compiling.waits = e->compiling.pause > LONG_PAUSE && e->compiling.pause > e->use.spent;
    return e->compiling.waits;
}

static const tn__loaded *loaded_for(const tn__collection *c, tn__cached *e, bool recurs)
{
    tn__loaded *loaded = NULL;
    pthread_mutex_lock(&e->build);
    bool waits = wants_kernels(c, e, recurs) && !e->kernels.plan && rather_waits(c, e);
    if (!waits && wants_kernels(c, e, recurs)) {
        bool clean = !tn__latched();
        if (e->kernels.plan || build(c, e, true, &e->kernels))
            loaded = &e->kernels;
        else if (fall_back(c, e) && clean)
            tn_clear_error();
    }
    if (!loaded && (waits || e->compiling.failed || !wants_kernels(c, e, recurs)) &&
        (e->operations.plan || build(c, e, false, &e->operations)))
        loaded = &e->operations;
    pthread_mutex_unlock(&e->build);
    return loaded;
}

const tn__loaded *tn__plans_acquire(tn__collection *c, tn__cached **held)
{
    tn__cached *gone = NULL;
    pthread_mutex_lock(&lock);
    /* as in a loop: no hash is needed to see that */
    tn__cached *e = newest && has_key(newest, c->key, c->key_count) ? newest : NULL;
    uint64_t hash = e ? e->hash : tn__hash(c->key, c->key_count * sizeof *c->key, 0);
    e = e ? e : find(c->key, c->key_count, hash);
    e = !e && c->windows ? find_moving(c, &gone) : e;
    atomic_fetch_add_explicit(e && !e->unused ? &tn__engine_counters.plan_hits : &tn__engine_counters.plan_misses, 1,
                              memory_order_relaxed);
    if (!e) {
        e = insert(c, c->key, hash, &gone);
    } else if (e != newest) {
        unlink_use(e);
        link_newest(e);
    }
    bool recurs = false;
    acquisitions += !c->further;
    if (e) {
        e->use.holds++;
        plan_count += e->unused;
        e->unused = false;
        e->use.recurs |= (e->use.last && acquisitions - e->use.last <= SOON) || e->use.work > PATIENCE;
        e->use.last = acquisitions;
        recurs = e->use.recurs;
        if (!recurs)
            e->use.work += tn__collection_work(c);
    }
    pthread_mutex_unlock(&lock);
    destroy_all(gone);
    if (!e) {
        tn__fail_memory("eval", sizeof *e);
        return NULL;
    }
    *held = e;
    /* Without the build lock: a plan that is there stays there, and most evaluations find theirs. */
    if (__atomic_load_n(&e->kernels.ops, __ATOMIC_ACQUIRE) && wants_kernels(c, e, recurs))
        return &e->kernels;
    const tn__loaded *loaded = loaded_for(c, e, recurs);
    if (!loaded)
        tn__plans_release(e);
    return loaded;
}

bool tn__plans_wait(const tn__cached *e) { return e->compiling.waits; }

void tn__plans_spent(tn__cached *e, int64_t nanoseconds) { e->use.spent += nanoseconds; }

void tn__plans_release(tn__cached *e)
{
    pthread_mutex_lock(&lock);
    bool last = --e->use.holds == 0 && e->forgotten;
    pthread_mutex_unlock(&lock);
    if (last)
        destroy(e);
}

void tn__plans_clear(void)
{
    tn__cached *gone = NULL;
    pthread_mutex_lock(&lock);
    while (oldest)
        forget(oldest, &gone);
    pthread_mutex_unlock(&lock);
    destroy_all(gone);
}

bool tn__plans_drop_idle(tn__device *device)
{
    if (pthread_mutex_trylock(&lock) != 0)
        return false;
    tn__cached *gone = NULL;
    for (tn__cached *e = oldest, *next; e; e = next) {
        next = e->newer;
        if (e->device == device && !e->use.holds)
            forget(e, &gone);
    }
    bool any = gone != NULL;
    pthread_mutex_unlock(&lock);
    destroy_all(gone);
    return any;
}

/* A child by fork has none of the other threads: what they were building is not there and never will be, and their
 * locks are nobody's. Fork waits for the table, which is never locked for long, not for what is being built. */
static void hold_table(void) { pthread_mutex_lock(&lock); }

static void let_table_go(void) { pthread_mutex_unlock(&lock); }

static void drop_half_built(tn__loaded *loaded)
{
    if (!loaded->ops)
        *loaded = (tn__loaded){0};
}

static void forget_builders(void)
{
    for (tn__cached *e = oldest; e; e = e->newer) {
        pthread_mutex_init(&e->build, NULL);
        drop_half_built(&e->operations);
        drop_half_built(&e->kernels);
    }
    let_table_go();
}

void tn__plans_watch_forks(void)
{
    (void)!pthread_atfork(hold_table, let_table_go, forget_builders); /* without memory: no child while others build */
}

__attribute__((destructor)) static void free_plans(void) { tn__plans_clear(); }
