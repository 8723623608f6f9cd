/* SPDX-License-Identifier: MIT */
/* Loops over several threads. */
#include "backends/cpu/base/parallel.h"

#include <tanso/device.h>

#include "backends/cpu/base/pool.h"

#ifdef _OPENMP
#include <omp.h>
#endif

/* More pieces than threads: if a thread starts late, or is descheduled, it leaves less work undone. */
#define PIECES_A_THREAD 4
#define MOST_PIECES     65536

typedef struct loop {
    tn__cpu_body body;
    void *context;
    int64_t items, pieces;
} loop;

static void piece(void *context, int number)
{
    const loop *l = context;
    int64_t share = l->items / l->pieces, rest = l->items % l->pieces;
    int64_t begin = number * share + (number < rest ? number : rest);
    l->body(l->context, begin, begin + share + (number < rest));
}

int tn__cpu_team(int64_t items, int64_t cost)
{
    if (items < 2 || (double)items * (double)cost < TN__CPU_PARALLEL_WORK)
        return 1;
    int team = tn_threads();
    return items < team ? (int)items : team;
}

static void run(int team, int64_t items, int64_t pieces, tn__cpu_body body, void *context)
{
    loop l = {body, context, items, items < pieces ? items : pieces};
    if (items > 0 && (team == 1 || !tn__pool_run(team, (int)l.pieces, piece, &l)))
        body(context, 0, items);
}

void tn__cpu_for(int64_t items, int64_t cost, tn__cpu_body body, void *context)
{
    int team = tn__cpu_team(items, cost);
    run(team, items, (int64_t)team * PIECES_A_THREAD, body, context);
}

void tn__cpu_share(int team, int64_t items, tn__cpu_body body, void *context)
{
    run(team, items, MOST_PIECES, body, context);
}

int tn__cpu_library_threads(int count)
{
#ifdef _OPENMP
    int before = omp_get_max_threads();
    if (before != count)
        omp_set_num_threads(count);
    return before;
#else
    return count;
#endif
}
