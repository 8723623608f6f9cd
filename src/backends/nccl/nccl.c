/* SPDX-License-Identifier: MIT */
/*
 * libtanso-nccl.so: transfers between the memory of CUDA's GPUs by NCCL, which is opened by name when ranks first have
 * something on GPUs. Its communicators block, since those that do not take four times as long to put a transfer on a
 * stream. A call of such a one returns at once but where it waits for the other ranks, who may never come: when a
 * communicator is made or ends, and in the first transfer of a kind and size, for which NCCL makes its connections. So
 * those are done by a thread of their own, while the library looks around; and what is under way can be called off.
 * What is small between two ranks is a kernel of our own: peers.c.
 */
#include <dlfcn.h>
#include <nccl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "backends/nccl/peers.h"
#include "comm/transport.h"
#include "tn_build_config.h"

#define LIBRARY "libnccl.so.2"
#define OLDEST  NCCL_VERSION(2, 18, 1) /* the oldest version whose communicators can be configured and ended as they
                                          are here */
#define PATIENCE 5.0                   /* seconds for a communicator to come to its end in order */

#define FUNCTIONS(X) \
    X(ncclGetVersion) X(ncclGetUniqueId) X(ncclCommInitRankConfig) X(ncclCommGetAsyncError) X(ncclGetLastError) \
    X(ncclCommFinalize) X(ncclCommDestroy) X(ncclCommAbort) X(ncclGroupStart) X(ncclGroupEnd) X(ncclAllReduce) \
    X(ncclReduce) X(ncclBroadcast) X(ncclAllGather) X(ncclReduceScatter) X(ncclSend) X(ncclRecv)
#define MEMBER(name) __typeof__(&name) name;
#define ENTRY(name) {#name, offsetof(struct functions, name)},

static struct functions { FUNCTIONS(MEMBER) } nccl;
static const struct {
    const char *name;
    size_t offset;
} entries[] = {FUNCTIONS(ENTRY)};

/* What the thread of a link is doing. */
typedef enum errand_state { NONE, GOING, ENDED, GIVEN_UP } errand_state;

struct tn__link {
    ncclComm_t comm;
    int rank, size;
    tn__link_place place;
    tn__peers peers;
    ncclUniqueId id;
    /* The call that a thread of its own is in, of what, and what came of it. Once it is given up, its thread is the
     * link's owner. */
    _Atomic errand_state state;
    ncclResult_t (*errand)(tn__link *link);
    const tn__transfer *transfers;
    int count;
    cudaStream_t stream;
    ncclResult_t result;
    uint64_t begun[TN__TRANSFER_KINDS][TN_DTYPE_COUNT]; /* a bit for each transfer that has been before: bit_of */
};

/* ---- opening ---- */

static tn__link_library fill_in(void *handle, tn__why *why)
{
    int version = 0;
    for (size_t i = 0; i < sizeof entries / sizeof *entries; i++) {
        void *function = dlsym(handle, entries[i].name);
        if (!function) {
            snprintf(why->text, sizeof why->text, LIBRARY " lacks %s: install NCCL %d.%d", entries[i].name, NCCL_MAJOR,
                     NCCL_MINOR);
            return TN__LINK_REFUSED;
        }
        memcpy((char *)&nccl + entries[i].offset, &function, sizeof function);
    }
    if (nccl.ncclGetVersion(&version) == ncclSuccess && version >= OLDEST && version / 10000 == NCCL_MAJOR)
        return TN__LINK_THERE;
    snprintf(why->text, sizeof why->text,
             LIBRARY " is NCCL %d.%d.%d, and tanso was built for %d.%d: expected one of major version %d from 2.18.1 "
             "on",
             version / 10000, version / 100 % 100, version % 100, NCCL_MAJOR, NCCL_MINOR, NCCL_MAJOR);
    return TN__LINK_REFUSED;
}

static tn__link_library open_library(tn__why *why)
{
    static tn__why said;
    static tn__link_library found;
    static bool tried;
    if (!tried) {
        tried = true;
        void *handle = dlopen(LIBRARY, RTLD_NOW | RTLD_LOCAL);
        if (handle)
            found = fill_in(handle, &said);
        else
            snprintf(said.text, sizeof said.text,
                     LIBRARY " cannot be loaded: %.300s; install NCCL, or set LD_LIBRARY_PATH to where it is",
                     dlerror());
    }
    *why = said;
    return found;
}

static bool goes(ncclResult_t result) { return result == ncclSuccess || result == ncclInProgress; }

/* Has a call failed? One that is still in progress has not. */
static bool fails(const tn__link *link, ncclResult_t result, const char *what, tn__why *why)
{
    static const char *const names[] = {"success",         "a call of CUDA's failed", "a call of the system failed",
                                        "internal error",  "invalid argument",       "invalid usage",
                                        "the network, or another rank, failed"};
    if (goes(result))
        return false;
    const char *last = nccl.ncclGetLastError(link ? link->comm : NULL);
    snprintf(why->text, sizeof why->text, "%s: %s%s%.300s", what,
             (size_t)result < sizeof names / sizeof *names ? names[result] : "unknown error", last && *last ? ": " : "",
             last ? last : "");
    return true;
}

/* ---- what it takes ---- */

static const struct row {
    bool real, whole; /* sums and products of it; extremes, too */
    ncclDataType_t type;
    int parts;        /* a complex number is two */
} rows[TN_DTYPE_COUNT] = {
    [TN_BOOL] = {.whole = true, .type = ncclUint8, .parts = 1}, /* 0 or 1: by extremes alone */
    [TN_INT8] = {true, true, ncclInt8, 1},        [TN_INT32] = {true, true, ncclInt32, 1},
    [TN_INT64] = {true, true, ncclInt64, 1},      [TN_UINT8] = {true, true, ncclUint8, 1},
    [TN_UINT32] = {true, true, ncclUint32, 1},    [TN_UINT64] = {true, true, ncclUint64, 1},
    [TN_FLOAT16] = {true, false, ncclFloat16, 1}, [TN_BFLOAT16] = {true, false, ncclBfloat16, 1},
    [TN_FLOAT32] = {true, false, ncclFloat32, 1}, [TN_FLOAT64] = {true, false, ncclFloat64, 1},
    [TN_COMPLEX64] = {true, false, ncclFloat32, 2}, [TN_COMPLEX128] = {true, false, ncclFloat64, 2},
};

static bool takes(tn__transfer_kind kind, tn_comm_op op, tn_dtype dtype)
{
    const struct row *row = &rows[dtype];
    if (kind != TN__ALL_REDUCE && kind != TN__REDUCE && kind != TN__REDUCE_SCATTER)
        return true;
    if (op == TN_COMM_SUM || (op == TN_COMM_PROD && row->parts == 1))
        return row->real || row->whole;
    return row->whole; /* NaN is lost in NCCL's extremes of floating numbers */
}

static ncclRedOp_t op_of(const tn__transfer *t)
{
    static const ncclRedOp_t ops[] = {[TN_COMM_SUM] = ncclSum, [TN_COMM_MAX] = ncclMax, [TN_COMM_MIN] = ncclMin,
                                      [TN_COMM_PROD] = ncclProd},
                             of_bool[] = {[TN_COMM_SUM] = ncclMax, [TN_COMM_MAX] = ncclMax, [TN_COMM_MIN] = ncclMin,
                                          [TN_COMM_PROD] = ncclMin};
    return t->dtype == TN_BOOL ? of_bool[t->op] : ops[t->op];
}

/* ---- errands ---- */

static void *go(void *given)
{
    tn__link *link = given;
    errand_state before = GOING;
    link->result = link->place.enter(link->place.device) ? link->errand(link) : ncclUnhandledCudaError;
    if (!atomic_compare_exchange_strong(&link->state, &before, ENDED))
        free(link);
    return NULL;
}

static bool send_out(tn__link *link, ncclResult_t (*errand)(tn__link *link), tn__why *why)
{
    pthread_attr_t detached;
    pthread_t thread;
    link->errand = errand;
    link->state = GOING;
    pthread_attr_init(&detached);
    pthread_attr_setdetachstate(&detached, PTHREAD_CREATE_DETACHED);
    int failed = pthread_create(&thread, &detached, go, link);
    pthread_attr_destroy(&detached);
    if (!failed)
        return true;
    link->state = NONE;
    snprintf(why->text, sizeof why->text, "no thread can be started: %s", strerror(failed));
    return false;
}

static int test(tn__link *link, tn__why *why)
{
    ncclResult_t state = ncclSuccess;
    if (link->state == GOING)
        return 0;
    if (link->state == ENDED) {
        link->state = NONE;
        if (fails(link, link->result, "starting it", why))
            return -1;
    }
    if (fails(link, nccl.ncclCommGetAsyncError(link->comm, &state), "ncclCommGetAsyncError", why) ||
        fails(link, state, "on the way", why))
        return -1;
    return state == ncclSuccess;
}

/* ---- joining ---- */

static bool make_name(tn__link_name *name, tn__why *why)
{
    ncclUniqueId id;
    _Static_assert(sizeof id == sizeof *name, "a name is an id");
    if (fails(NULL, nccl.ncclGetUniqueId(&id), "ncclGetUniqueId", why))
        return false;
    memcpy(name, &id, sizeof id);
    return true;
}

static ncclResult_t connect_all(tn__link *link)
{
    ncclComm_t made = NULL; /* not the link's before it is whole */
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    config.blocking = 1;
    ncclResult_t result = nccl.ncclCommInitRankConfig(&made, link->size, link->id, link->rank, &config);
    if (result == ncclSuccess)
        link->comm = made;
    return result;
}

static tn__link *join(const tn__link_name *name, int rank, int size, const tn__link_place *place, tn__why *why)
{
    tn__link *link = calloc(1, sizeof *link);
    if (!link) {
        snprintf(why->text, sizeof why->text, "out of memory");
        return NULL;
    }
    link->rank = rank;
    link->size = size;
    link->place = *place;
    memcpy(&link->id, name, sizeof link->id);
    if (send_out(link, connect_all, why))
        return link;
    free(link);
    return NULL;
}

static double seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

/* Until its thread is back, if that takes no longer than patience lasts. */
static bool comes_back(const tn__link *link)
{
    double until = seconds() + PATIENCE;
    while (link->state == GOING && seconds() < until)
        nanosleep(&(struct timespec){.tv_nsec = 100000}, NULL);
    return link->state != GOING;
}

static ncclResult_t end_in_order(tn__link *link)
{
    if (!tn__peers_end(&link->peers))
        return ncclSystemError;
    ncclResult_t result = nccl.ncclCommFinalize(link->comm);
    return result == ncclSuccess ? nccl.ncclCommDestroy(link->comm) : result;
}

/* Ends a communicator. An aborted transfer returns with an error; the making of connections cannot be aborted. */
static void let_go(tn__link *link, bool broken)
{
    tn__why why;
    errand_state before = GOING;
    bool ended = !broken && send_out(link, end_in_order, &why) && comes_back(link) && link->result == ncclSuccess;
    if (broken || link->state == GOING) /* else no sum is under way, and the driver may be gone */
        tn__peers_call_off(&link->peers);
    if (!ended && link->comm) {
        nccl.ncclCommAbort(link->comm);
        comes_back(link);
    }
    if (!atomic_compare_exchange_strong(&link->state, &before, GIVEN_UP))
        free(link);
}

/* ---- the other rank's memory ---- */

static bool show(tn__link *link, tn__link_name *own) { return tn__peers_show(&link->peers, &link->place, own); }

static bool reach(tn__link *link, const tn__link_name *other) { return tn__peers_reach(&link->peers, other); }

static void agree(tn__link *link, bool reached) { tn__peers_agree(&link->peers, reached); }

/* ---- transfers ---- */

/* Bytes from rank to rank: as a group, since all of it has to be under way together. */
typedef struct pieces {
    bool out, in;       /* this rank sends to, receives from */
    bool to_all, from_all; /* every rank, or else the peer */
    bool cut, side;     /* another share for each, side by side from each */
} pieces;

static ncclResult_t move_pieces(const tn__link *link, const tn__transfer *t, const pieces *p, cudaStream_t stream)
{
    size_t bytes = (size_t)t->count * t->itemsize;
    ncclResult_t result = nccl.ncclGroupStart(), end;
    for (int r = 0; r < link->size && goes(result); r++) {
        if (p->out && (p->to_all || r == t->peer))
            result = nccl.ncclSend((const char *)t->from + (p->cut ? (size_t)r * bytes : 0), bytes, ncclUint8, r,
                                   link->comm, stream);
        if (goes(result) && p->in && (p->from_all || r == t->peer))
            result = nccl.ncclRecv((char *)t->to + (p->side ? (size_t)r * bytes : 0), bytes, ncclUint8, r, link->comm,
                                   stream);
    }
    end = nccl.ncclGroupEnd();
    return goes(result) ? end : result;
}

static ncclResult_t put(const tn__link *link, const tn__transfer *t, cudaStream_t stream)
{
    const struct row *row = &rows[t->dtype];
    size_t bytes = (size_t)t->count * t->itemsize, count = (size_t)t->count * (size_t)row->parts;
    bool root = t->peer == link->rank;
    switch (t->kind) {
    case TN__ALL_REDUCE:
        return nccl.ncclAllReduce(t->from, t->to, count, row->type, op_of(t), link->comm, stream);
    case TN__REDUCE:
        return nccl.ncclReduce(t->from, t->to, count, row->type, op_of(t), t->peer, link->comm, stream);
    case TN__REDUCE_SCATTER:
        return nccl.ncclReduceScatter(t->from, t->to, count, row->type, op_of(t), link->comm, stream);
    case TN__BROADCAST:
        return nccl.ncclBroadcast(t->from, t->to, bytes, ncclUint8, t->peer, link->comm, stream);
    case TN__ALL_GATHER:
        return nccl.ncclAllGather(t->from, t->to, bytes, ncclUint8, link->comm, stream);
    case TN__GATHER:
        return move_pieces(link, t, &(pieces){.out = true, .in = root, .from_all = true, .side = true}, stream);
    case TN__SCATTER:
        return move_pieces(link, t, &(pieces){.out = root, .to_all = true, .cut = true, .in = true}, stream);
    case TN__ALL_TO_ALL:
        return move_pieces(link, t,
                           &(pieces){.out = true, .to_all = true, .cut = true, .in = true, .from_all = true,
                                     .side = true},
                           stream);
    default:
        return ncclInvalidUsage; /* messages, and what moves nothing, go by the host */
    }
}

static ncclResult_t put_all(const tn__link *link, const tn__transfer *transfers, int count, cudaStream_t stream)
{
    if (count == 1)
        return put(link, transfers, stream);
    ncclResult_t result = nccl.ncclGroupStart(), end;
    for (int i = 0; i < count && goes(result); i++)
        result = put(link, &transfers[i], stream);
    end = nccl.ncclGroupEnd();
    return goes(result) ? end : result;
}

static ncclResult_t put_first(tn__link *link) { return put_all(link, link->transfers, link->count, link->stream); }

/* What NCCL chooses its connections by: of what goes around all ranks the size, of what goes to or from one which. */
static uint64_t bit_of(const tn__transfer *transfers, int count)
{
    size_t bytes = 1;
    if (transfers->kind == TN__GATHER || transfers->kind == TN__SCATTER)
        return (uint64_t)1 << transfers->peer % 64;
    for (int i = 0; i < count; i++)
        bytes += (size_t)transfers[i].count * transfers[i].itemsize;
    return (uint64_t)1 << (63 - __builtin_clzll(bytes));
}

static bool start(tn__link *link, const tn__transfer *transfers, int count, void *stream, tn__why *why)
{
    if (count == 1 && tn__peers_take(&link->peers, transfers))
        return tn__peers_sum(&link->peers, transfers, stream, why);
    uint64_t *begun = &link->begun[transfers->kind][transfers->dtype], bit = bit_of(transfers, count);
    if (*begun & bit)
        return !fails(link, put_all(link, transfers, count, stream), "starting it", why);
    *begun |= bit;
    link->transfers = transfers;
    link->count = count;
    link->stream = stream;
    return send_out(link, put_first, why);
}

extern __attribute__((visibility("default"))) const tn__link_transport tn__link_plugin;
const tn__link_transport tn__link_plugin = {.version = TN_BUILD_VERSION,
                                            .name = "NCCL",
                                            .kind = TN_DEVICE_CUDA,
                                            .open = open_library,
                                            .takes = takes,
                                            .make_name = make_name,
                                            .join = join,
                                            .show = show,
                                            .reach = reach,
                                            .agree = agree,
                                            .start = start,
                                            .test = test,
                                            .free = let_go};
