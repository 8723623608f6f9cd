/* SPDX-License-Identifier: MIT */
/*
 * libtanso-mpi.so: communicators over MPI. All transfers are MPI's nonblocking ones, so that the library can look
 * around while it waits; elements are combined by the library's functions, as MPI knows neither float16 nor NaN.
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <limits.h>

#include "comm/transport.h"
#include "tn_build_config.h"

struct tn__group {
    MPI_Comm comm;
    tn__comm_place place;
};

#define NOTE_TAG 32768 /* above the tags that the program may use */

static MPI_Datatype types[TN_DTYPE_COUNT];
static MPI_Op ops[TN__COMBINES];
static tn__combine *const (*combines)[TN_DTYPE_COUNT];
static tn__group everybody;
static bool begun; /* MPI was initialized here, not by the program */

static int fails(int code, const char *what, tn__why *why)
{
    char text[MPI_MAX_ERROR_STRING] = "";
    int length;
    if (code == MPI_SUCCESS)
        return 0;
    MPI_Error_string(code, text, &length);
    snprintf(why->text, sizeof why->text, "%s: %.400s", what, text);
    return 1;
}

/* ---- how elements are combined ---- */

static void combine(tn_comm_op op, const void *from, void *to, const int *count, const MPI_Datatype *type)
{
    for (int d = 1; d < TN_DTYPE_COUNT; d++) {
        if (types[d] == *type) {
            combines[op][d](to, from, *count);
            return;
        }
    }
}

static void sum(void *from, void *to, int *n, MPI_Datatype *type) { combine(TN_COMM_SUM, from, to, n, type); }
static void most(void *from, void *to, int *n, MPI_Datatype *type) { combine(TN_COMM_MAX, from, to, n, type); }
static void least(void *from, void *to, int *n, MPI_Datatype *type) { combine(TN_COMM_MIN, from, to, n, type); }
static void product(void *from, void *to, int *n, MPI_Datatype *type) { combine(TN_COMM_PROD, from, to, n, type); }

/* Each dtype is a type of MPI's own, by which `combine` tells it: as many bytes, or parts, of a plain one. */
static int make_types(tn__why *why)
{
    static const struct {
        tn_dtype dtype;
        int size;
        MPI_Datatype of;
    } rows[] = {{TN_BOOL, 1, MPI_BYTE},       {TN_INT8, 1, MPI_BYTE},      {TN_INT16, 1, MPI_INT16_T},
                {TN_INT32, 1, MPI_INT32_T},   {TN_INT64, 1, MPI_INT64_T},  {TN_UINT8, 1, MPI_BYTE},
                {TN_UINT16, 1, MPI_UINT16_T}, {TN_UINT32, 1, MPI_UINT32_T}, {TN_UINT64, 1, MPI_UINT64_T},
                {TN_FLOAT16, 1, MPI_INT16_T}, {TN_BFLOAT16, 1, MPI_INT16_T}, {TN_FLOAT32, 1, MPI_FLOAT},
                {TN_FLOAT64, 1, MPI_DOUBLE},  {TN_COMPLEX64, 2, MPI_FLOAT}, {TN_COMPLEX128, 2, MPI_DOUBLE}};
    int failed = 0;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        failed |= fails(MPI_Type_contiguous(rows[i].size, rows[i].of, &types[rows[i].dtype]), "a type", why) ||
                  fails(MPI_Type_commit(&types[rows[i].dtype]), "a type", why);
    }
    failed |= fails(MPI_Op_create(sum, 1, &ops[TN_COMM_SUM]), "an operation", why) ||
              fails(MPI_Op_create(most, 1, &ops[TN_COMM_MAX]), "an operation", why) ||
              fails(MPI_Op_create(least, 1, &ops[TN_COMM_MIN]), "an operation", why) ||
              fails(MPI_Op_create(product, 1, &ops[TN_COMM_PROD]), "an operation", why);
    return failed;
}

/* ---- groups ---- */

static int find_place(tn__group *group, tn__why *why)
{
    tn__comm_place *p = &group->place;
    MPI_Comm local;
    MPI_Comm_rank(group->comm, &p->rank);
    MPI_Comm_size(group->comm, &p->size);
    if (fails(MPI_Comm_split_type(group->comm, MPI_COMM_TYPE_SHARED, p->rank, MPI_INFO_NULL, &local), "ranks", why))
        return 1;
    MPI_Comm_rank(local, &p->local_rank);
    MPI_Comm_size(local, &p->local_size);
    int first = p->local_rank == 0, before = 0;
    int failed = fails(MPI_Allreduce(&first, &p->nodes, 1, MPI_INT, MPI_SUM, group->comm), "nodes", why) ||
                 fails(MPI_Exscan(&first, &before, 1, MPI_INT, MPI_SUM, group->comm), "nodes", why);
    p->node = p->rank == 0 ? 0 : before;
    failed = failed || fails(MPI_Bcast(&p->node, 1, MPI_INT, 0, local), "nodes", why);
    MPI_Comm_free(&local);
    return failed;
}

/* A group of its own over a communicator of the program's, or of a part. */
static int set_up(tn__group *group, tn__why *why)
{
    return fails(MPI_Comm_set_errhandler(group->comm, MPI_ERRORS_RETURN), "errors", why) || find_place(group, why);
}

static tn__group *world(tn__combine *const (*combine)[TN_DTYPE_COUNT], tn__why *why)
{
    int started = 0, level;
    combines = combine;
    MPI_Initialized(&started);
    if (!started && fails(MPI_Init_thread(NULL, NULL, MPI_THREAD_SERIALIZED, &level), "MPI_Init_thread", why))
        return NULL;
    begun = !started;
    /* What a nonblocking collective fails with is told to the world's handler (Open MPI 4). */
    if (begun && fails(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN), "errors", why))
        return NULL;
    if (make_types(why) || fails(MPI_Comm_dup(MPI_COMM_WORLD, &everybody.comm), "MPI_Comm_dup", why) ||
        set_up(&everybody, why))
        return NULL;
    return &everybody;
}

/* Notes on their way, from the newest: their memory is MPI's until they have gone. */
typedef struct sending {
    tn__note note;
    MPI_Request request;
    struct sending *next;
} sending;
static sending *under_way;

static void drop_sent(void)
{
    for (sending **at = &under_way; *at;) {
        sending *s = *at;
        int done = 0;
        if (MPI_Test(&s->request, &done, MPI_STATUS_IGNORE) == MPI_SUCCESS && !done) {
            at = &s->next;
            continue;
        }
        *at = s->next;
        free(s);
    }
}

static void finish(void)
{
    int ended = 1;
    if (begun)
        MPI_Finalized(&ended);
    if (ended)
        return;
    drop_sent();
    MPI_Finalize();
}

static tn__comm_place place(const tn__group *group) { return group->place; }

static tn__group *split(tn__group *group, int color, int key, tn__why *why)
{
    tn__group *part = calloc(1, sizeof *part);
    MPI_Comm comm = MPI_COMM_NULL;
    if (fails(MPI_Comm_split(group->comm, color < 0 ? MPI_UNDEFINED : color, key, &comm), "MPI_Comm_split", why) ||
        !part || comm == MPI_COMM_NULL) {
        if (!part)
            snprintf(why->text, sizeof why->text, "out of memory");
        if (comm != MPI_COMM_NULL)
            MPI_Comm_free(&comm);
        free(part);
        return NULL;
    }
    part->comm = comm;
    if (set_up(part, why) == 0)
        return part;
    MPI_Comm_free(&part->comm);
    free(part);
    return NULL;
}

static void let_go(tn__group *group, bool broken)
{
    int ended = 1;
    MPI_Finalized(&ended);
    if (!broken && !ended && group != &everybody)
        MPI_Comm_free(&group->comm);
    if (group != &everybody)
        free(group);
}

/* ---- transfers ---- */

static int start_reduction(MPI_Comm comm, const tn__transfer *t, MPI_Request *request)
{
    int n = (int)t->count;
    MPI_Datatype type = types[t->dtype];
    MPI_Op op = ops[t->op];
    if (t->kind == TN__ALL_REDUCE)
        return MPI_Iallreduce(t->from, t->to, n, type, op, comm, request);
    if (t->kind == TN__REDUCE)
        return MPI_Ireduce(t->from, t->to, n, type, op, t->peer, comm, request);
    return MPI_Ireduce_scatter_block(t->from, t->to, n, type, op, comm, request);
}

static int start_copies(MPI_Comm comm, const tn__transfer *t, MPI_Request *request)
{
    int n = (int)t->count;
    MPI_Datatype type = types[t->dtype];
    switch (t->kind) {
    case TN__ALL_GATHER:
        return MPI_Iallgather(t->from, n, type, t->to, n, type, comm, request);
    case TN__GATHER:
        return MPI_Igather(t->from, n, type, t->to, n, type, t->peer, comm, request);
    case TN__SCATTER:
        return MPI_Iscatter(t->from, n, type, t->to, n, type, t->peer, comm, request);
    case TN__ALL_TO_ALL:
        return MPI_Ialltoall(t->from, n, type, t->to, n, type, comm, request);
    case TN__SEND:
        return MPI_Isend(t->from, n, type, t->peer, t->tag, comm, request);
    case TN__RECEIVE:
        return MPI_Irecv(t->to, n, type, t->peer, t->tag, comm, request);
    default:
        return MPI_Ibarrier(comm, request);
    }
}

/* The root's elements go out of its own array, and are its result, too. */
static int start_broadcast(const tn__group *group, const tn__transfer *t, MPI_Request *request)
{
    bool root = t->peer == group->place.rank;
    if (root && t->to != t->from)
        MPI_Sendrecv(t->from, (int)t->count, types[t->dtype], 0, 0, t->to, (int)t->count, types[t->dtype], 0, 0,
                     MPI_COMM_SELF, MPI_STATUS_IGNORE);
    return MPI_Ibcast(t->to, (int)t->count, types[t->dtype], t->peer, group->comm, request);
}

static void *start(tn__group *group, const tn__transfer *t, tn__why *why)
{
    MPI_Request *request = malloc(sizeof *request);
    if (!request || t->count > INT_MAX) {
        snprintf(why->text, sizeof why->text, "%s",
                 request ? "MPI takes at most 2^31 - 1 elements at once: do it in parts" : "out of memory");
        free(request);
        return NULL;
    }
    int code = t->kind == TN__BROADCAST ? start_broadcast(group, t, request)
               : t->kind == TN__ALL_REDUCE || t->kind == TN__REDUCE || t->kind == TN__REDUCE_SCATTER
                   ? start_reduction(group->comm, t, request)
                   : start_copies(group->comm, t, request);
    if (!fails(code, "starting it", why))
        return request;
    free(request);
    return NULL;
}

static int test(tn__group *group, void *pointer, tn__why *why)
{
    MPI_Request *request = pointer;
    int done = 0;
    (void)group;
    bool failed = fails(MPI_Test(request, &done, MPI_STATUS_IGNORE), "on the way", why);
    if (done || failed)
        free(request);
    return failed ? -1 : done;
}

/* ---- notes ---- */

static void send_note(int to, const tn__note *note)
{
    drop_sent();
    sending *s = malloc(sizeof *s);
    if (!s)
        return;
    s->note = *note;
    if (MPI_Isend(&s->note, sizeof s->note, MPI_BYTE, to, NOTE_TAG, everybody.comm, &s->request) != MPI_SUCCESS) {
        free(s);
        return;
    }
    s->next = under_way;
    under_way = s;
}

static bool take_note(tn__note *note)
{
    int there = 0;
    if (MPI_Iprobe(MPI_ANY_SOURCE, NOTE_TAG, everybody.comm, &there, MPI_STATUS_IGNORE) != MPI_SUCCESS || !there)
        return false;
    return MPI_Recv(note, sizeof *note, MPI_BYTE, MPI_ANY_SOURCE, NOTE_TAG, everybody.comm, MPI_STATUS_IGNORE) ==
           MPI_SUCCESS;
}

extern __attribute__((visibility("default"))) const tn__transport tn__transport_plugin;
const tn__transport tn__transport_plugin = {.version = TN_BUILD_VERSION,
                                            .name = "MPI",
                                            .world = world,
                                            .finish = finish,
                                            .place = place,
                                            .split = split,
                                            .free = let_go,
                                            .start = start,
                                            .test = test,
                                            .send_note = send_note,
                                            .take_note = take_note};
