/* SPDX-License-Identifier: MIT */
/*
 * libnccl.so.2 for GPUs that are not there: those of a driver of the tests' own, whose memory is the host's. Ranks meet
 * in shared memory, where each two have a box for each direction. Its communicators block: who makes one waits for all,
 * and so does the first transfer of each, as connections are made then; later ones are put on the stream. A thread asks
 * that how it is going, again and again, since transfers go on without anybody's waiting for them.
 *
 * TANSO_FAKE_NCCL_VERSION says which version it is, TANSO_FAKE_NCCL_FAILS after how many transfers the network fails,
 * TANSO_FAKE_NCCL_DIES which rank is killed while it connects.
 */
#include <dlfcn.h>
#include <fcntl.h>
#include <nccl.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <time.h>
#include <unistd.h>

#include "ops/scalar.h"

#define API __attribute__((visibility("default")))
#define BOX ((size_t)1 << 16) /* bytes at once */

typedef struct box {
    _Atomic uint64_t posted, taken;
    size_t bytes;
    char data[BOX];
} box;

typedef struct meeting {
    _Atomic int joined, connected;
    box boxes[]; /* from rank, to rank */
} meeting;

typedef struct piece {
    struct piece *next;
    bool out;
    int peer;
    char *at;
    size_t left;
} piece;

/* What is combined when all pieces have come. */
typedef struct sum {
    struct sum *next;
    char *parts; /* of all ranks, one behind the other */
    void *to;
    size_t count, itemsize;
    ncclDataType_t type;
    ncclRedOp_t op;
} sum;

struct ncclComm {
    meeting *at;
    size_t size_of;
    char name[128];
    int rank, size, transfers;
    _Atomic int under_way; /* transfers that are on a stream */
    _Atomic bool aborted;
};

typedef struct transfer {
    ncclComm_t comm;
    cudaStream_t stream;
    piece *pieces;
    sum *sums;
} transfer;

static int depth;
static transfer *group; /* what is being asked for as one */

/* ---- numbers ---- */

#define EACH(T, expression) \
    { \
        T *a = to; \
        const T *b = from; \
        for (size_t i = 0; i < n; i++) \
            a[i] = (T)(expression); \
        break; \
    }
#define BY_OP(T) \
    switch (op) { \
    case ncclSum: \
        EACH(T, a[i] + b[i]) \
    case ncclProd: \
        EACH(T, a[i] * b[i]) \
    case ncclMax: \
        EACH(T, a[i] < b[i] ? b[i] : a[i]) \
    default: \
        EACH(T, b[i] < a[i] ? b[i] : a[i]) \
    } \
    break;

static float half_of(float a, float b, ncclRedOp_t op)
{
    return op == ncclSum ? a + b : op == ncclProd ? a * b : op == ncclMax ? (a < b ? b : a) : (b < a ? b : a);
}

#define HALVES(s) \
    { \
        tn_##s *a = to; \
        const tn_##s *b = from; \
        for (size_t i = 0; i < n; i++) \
            a[i] = tns_cast_##s##_f32(half_of(tns_cast_f32_##s(a[i]), tns_cast_f32_##s(b[i]), op)); \
        break; \
    }

static void combine(void *to, const void *from, size_t n, ncclDataType_t type, ncclRedOp_t op)
{
    switch (type) {
    case ncclInt8:
        BY_OP(int8_t)
    case ncclUint8:
        BY_OP(uint8_t)
    case ncclInt32:
        BY_OP(uint32_t) /* whose sums wrap; tests have no negative numbers */
    case ncclUint32:
        BY_OP(uint32_t)
    case ncclInt64:
        BY_OP(uint64_t)
    case ncclUint64:
        BY_OP(uint64_t)
    case ncclFloat32:
        BY_OP(float)
    case ncclFloat64:
        BY_OP(double)
    case ncclFloat16:
        HALVES(f16)
    case ncclBfloat16:
        HALVES(bf16)
    default:
        break;
    }
}

static size_t size_of(ncclDataType_t type)
{
    static const size_t sizes[] = {1, 1, 4, 4, 8, 8, 2, 4, 8, 2};
    return sizes[type];
}

/* ---- pieces ---- */

static void finish(const transfer *t)
{
    for (const sum *s = t->sums; s; s = s->next) {
        size_t bytes = s->count * s->itemsize;
        for (int r = 1; r < t->comm->size; r++)
            combine(s->parts, s->parts + (size_t)r * bytes, s->count, s->type, s->op);
        memcpy(s->to, s->parts, bytes);
    }
}

static void move(ncclComm_t c, piece *p)
{
    box *b = &c->at->boxes[p->out ? c->rank * c->size + p->peer : p->peer * c->size + c->rank];
    while (p->left && (p->out ? b->posted == b->taken : b->posted > b->taken)) {
        size_t bytes = !p->out ? b->bytes : p->left < BOX ? p->left : BOX;
        bytes = bytes < p->left ? bytes : p->left;
        memcpy(p->out ? b->data : p->at, p->out ? p->at : b->data, bytes);
        b->bytes = p->out ? bytes : b->bytes;
        atomic_fetch_add(p->out ? &b->posted : &b->taken, 1);
        p->at += bytes;
        p->left -= bytes;
    }
}

static void forget(transfer *t)
{
    while (t->pieces) {
        piece *next = t->pieces->next;
        free(t->pieces);
        t->pieces = next;
    }
    while (t->sums) {
        sum *next = t->sums->next;
        free(t->sums->parts);
        free(t->sums);
        t->sums = next;
    }
    atomic_fetch_sub(&t->comm->under_way, 1);
    free(t);
}

/* Whether all is done. Of several pieces one way, to or from one rank, the first comes first. */
static bool goes(const void *given)
{
    transfer *t = (transfer *)given;
    for (piece **at = &t->pieces; *at && !t->comm->aborted;) {
        piece *p = *at, *before = t->pieces;
        while (before != p && (before->peer != p->peer || before->out != p->out))
            before = before->next;
        if (before == p)
            move(t->comm, p);
        if (p->left) {
            at = &p->next;
            continue;
        }
        *at = p->next;
        free(p);
    }
    if (t->pieces && !t->comm->aborted)
        return false;
    if (!t->comm->aborted)
        finish(t);
    forget(t);
    return true;
}

static void add(transfer *t, bool out, int peer, const void *at, size_t bytes)
{
    piece **last = &t->pieces, *new = calloc(1, sizeof *new);
    while (*last)
        last = &(*last)->next;
    *new = (piece){.out = out, .peer = peer, .at = (char *)at, .left = bytes};
    *last = new;
}

static void rest(void) { nanosleep(&(struct timespec){.tv_nsec = 100000}, NULL); }

/* A transfer to be filled in; NULL: it was called off while this rank waited for the others. */
static transfer *begin(ncclComm_t c, cudaStream_t stream)
{
    if (group)
        return group;
    if (c->transfers++ == 0)
        atomic_fetch_add(&c->at->connected, 1);
    while (c->at->connected < c->size && !c->aborted)
        rest();
    transfer *t = c->aborted ? NULL : calloc(1, sizeof *t);
    if (!t)
        return NULL;
    atomic_fetch_add(&c->under_way, 1);
    *t = (transfer){.comm = c, .stream = stream};
    group = depth ? t : NULL;
    return t;
}

static void *symbol(const char *name)
{
    void *driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
    return driver ? dlsym(driver, name) : NULL;
}

#define STREAMS 8
static _Atomic(void *) used[STREAMS];

static void *ask_on(void *ask)
{
    for (;; rest())
        for (int i = 0; i < STREAMS; i++)
            if (used[i])
                ((int (*)(void *))ask)(used[i]);
    return NULL;
}

static void ask(void)
{
    pthread_t thread;
    void *function = symbol("cuStreamQuery");
    if (function && pthread_create(&thread, NULL, ask_on, function) == 0)
        pthread_detach(thread);
}

/* What is filled in goes on its stream. */
static ncclResult_t end(transfer *t)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    int (*put)(void *, bool (*)(const void *), const void *) = NULL, at = 0;
    if (depth)
        return ncclSuccess;
    while (at < STREAMS - 1 && used[at] && used[at] != (void *)t->stream)
        at++;
    used[at] = t->stream;
    pthread_once(&once, ask);
    put = (int (*)(void *, bool (*)(const void *), const void *))symbol("emulated_put");
    return put && put(t->stream, goes, t) == 0 ? ncclSuccess : ncclUnhandledCudaError;
}

static void reduce(transfer *t, void *to, size_t count, ncclDataType_t type, ncclRedOp_t op)
{
    size_t bytes = count * size_of(type);
    int size = t->comm->size;
    sum *s = malloc(sizeof *s);
    *s = (sum){.next = t->sums, .parts = malloc((size_t)size * bytes), .to = to, .count = count,
               .itemsize = size_of(type), .type = type, .op = op};
    t->sums = s;
    for (int r = 0; r < size; r++)
        add(t, false, r, s->parts + (size_t)r * bytes, bytes);
}

/* ---- NCCL ---- */

API ncclResult_t ncclGetVersion(int *version)
{
    const char *given = getenv("TANSO_FAKE_NCCL_VERSION");
    *version = given ? atoi(given) : NCCL_VERSION_CODE;
    return ncclSuccess;
}

API ncclResult_t ncclGetUniqueId(ncclUniqueId *id)
{
    uint64_t number;
    if (getrandom(&number, sizeof number, 0) != (ssize_t)sizeof number)
        return ncclSystemError;
    snprintf(id->internal, sizeof id->internal, "/tanso-%016llx", (unsigned long long)number);
    return ncclSuccess;
}

API ncclResult_t ncclCommInitRankConfig(ncclComm_t *comm, int size, ncclUniqueId id, int rank, ncclConfig_t *config)
{
    const char *dies = getenv("TANSO_FAKE_NCCL_DIES");
    struct ncclComm *c = calloc(1, sizeof *c);
    if (config->blocking != 1 || !c)
        return ncclInvalidUsage;
    if (dies && atoi(dies) == rank)
        raise(SIGKILL);
    snprintf(c->name, sizeof c->name, "%s", id.internal);
    c->rank = rank;
    c->size = size;
    c->size_of = sizeof(meeting) + (size_t)(size * size) * sizeof(box);
    int file = shm_open(c->name, O_RDWR | O_CREAT, 0600);
    if (file < 0 || ftruncate(file, (off_t)c->size_of) != 0)
        return ncclSystemError;
    c->at = mmap(NULL, c->size_of, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    close(file);
    if (c->at == MAP_FAILED)
        return ncclSystemError;
    atomic_fetch_add(&c->at->joined, 1);
    while (c->at->joined < size)
        rest();
    shm_unlink(c->name);
    *comm = c;
    return ncclSuccess;
}

API ncclResult_t ncclCommGetAsyncError(ncclComm_t c, ncclResult_t *state)
{
    const char *most = getenv("TANSO_FAKE_NCCL_FAILS");
    *state = most && c->transfers > atoi(most) ? ncclRemoteError : ncclSuccess;
    return ncclSuccess;
}

API const char *ncclGetLastError(ncclComm_t c)
{
    (void)c;
    return "as the test says";
}

/* Waits, as it blocks, for what is under way. */
API ncclResult_t ncclCommFinalize(ncclComm_t c)
{
    while (c->under_way)
        rest();
    return ncclSuccess;
}

/* What is on a stream mentions it until the stream's turn comes. */
API ncclResult_t ncclCommAbort(ncclComm_t c)
{
    c->aborted = true;
    return ncclSuccess;
}

API ncclResult_t ncclCommDestroy(ncclComm_t c)
{
    munmap(c->at, c->size_of);
    free(c);
    return ncclSuccess;
}

API ncclResult_t ncclGroupStart(void)
{
    depth++;
    return ncclSuccess;
}

API ncclResult_t ncclGroupEnd(void)
{
    transfer *t = --depth ? NULL : group;
    if (!t)
        return ncclSuccess;
    group = NULL;
    return end(t);
}

API ncclResult_t ncclSend(const void *from, size_t count, ncclDataType_t type, int peer, ncclComm_t c, cudaStream_t s)
{
    transfer *t = begin(c, s);
    if (!t)
        return ncclInternalError;
    add(t, true, peer, from, count * size_of(type));
    return end(t);
}

API ncclResult_t ncclRecv(void *to, size_t count, ncclDataType_t type, int peer, ncclComm_t c, cudaStream_t s)
{
    transfer *t = begin(c, s);
    if (!t)
        return ncclInternalError;
    add(t, false, peer, to, count * size_of(type));
    return end(t);
}

API ncclResult_t ncclAllReduce(const void *from, void *to, size_t count, ncclDataType_t type, ncclRedOp_t op,
                               ncclComm_t c, cudaStream_t s)
{
    transfer *t = begin(c, s);
    if (!t)
        return ncclInternalError;
    for (int r = 0; r < c->size; r++)
        add(t, true, r, from, count * size_of(type));
    reduce(t, to, count, type, op);
    return end(t);
}

API ncclResult_t ncclReduce(const void *from, void *to, size_t count, ncclDataType_t type, ncclRedOp_t op, int root,
                            ncclComm_t c, cudaStream_t s)
{
    transfer *t = begin(c, s);
    if (!t)
        return ncclInternalError;
    add(t, true, root, from, count * size_of(type));
    if (root == c->rank)
        reduce(t, to, count, type, op);
    return end(t);
}

API ncclResult_t ncclReduceScatter(const void *from, void *to, size_t count, ncclDataType_t type, ncclRedOp_t op,
                                   ncclComm_t c, cudaStream_t s)
{
    transfer *t = begin(c, s);
    if (!t)
        return ncclInternalError;
    for (int r = 0; r < c->size; r++)
        add(t, true, r, (const char *)from + (size_t)r * count * size_of(type), count * size_of(type));
    reduce(t, to, count, type, op);
    return end(t);
}

API ncclResult_t ncclBroadcast(const void *from, void *to, size_t count, ncclDataType_t type, int root, ncclComm_t c,
                               cudaStream_t s)
{
    transfer *t = begin(c, s);
    if (!t)
        return ncclInternalError;
    for (int r = 0; r < c->size && root == c->rank; r++)
        add(t, true, r, from, count * size_of(type));
    add(t, false, root, to, count * size_of(type));
    return end(t);
}

API ncclResult_t ncclAllGather(const void *from, void *to, size_t count, ncclDataType_t type, ncclComm_t c,
                               cudaStream_t s)
{
    transfer *t = begin(c, s);
    if (!t)
        return ncclInternalError;
    for (int r = 0; r < c->size; r++) {
        add(t, true, r, from, count * size_of(type));
        add(t, false, r, (char *)to + (size_t)r * count * size_of(type), count * size_of(type));
    }
    return end(t);
}
