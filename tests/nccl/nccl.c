/* SPDX-License-Identifier: MIT */
/*
 * libnccl.so.2 for GPUs that are not there: those of a driver of the tests' own, whose memory is the host's. Ranks meet
 * in shared memory, where each two have a box for each direction. What is asked for is done bit by bit when somebody
 * asks how it is going, as NCCL's communicators do that do not block; what the stream was asked before is done first.
 *
 * TANSO_FAKE_NCCL_VERSION says which version it is, TANSO_FAKE_NCCL_FAILS after how many transfers the network fails.
 */
#include <dlfcn.h>
#include <fcntl.h>
#include <nccl.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
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
    _Atomic int joined;
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
    char *parts; /* of all ranks, one behind the other; NULL: nothing */
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
    piece *pieces;
    sum sum;
};

static int depth;

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

static void finish(ncclComm_t c)
{
    sum *s = &c->sum;
    size_t bytes = s->count * s->itemsize;
    if (!s->parts)
        return;
    for (int r = 1; r < c->size; r++)
        combine(s->parts, s->parts + (size_t)r * bytes, s->count, s->type, s->op);
    memcpy(s->to, s->parts, bytes);
    free(s->parts);
    s->parts = NULL;
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

/* Whether all is done. Of several pieces one way, to or from one rank, the first comes first. */
static bool go_on(ncclComm_t c)
{
    for (piece **at = &c->pieces; *at;) {
        piece *p = *at, *before = c->pieces;
        while (before != p && (before->peer != p->peer || before->out != p->out))
            before = before->next;
        if (before == p)
            move(c, p);
        if (p->left) {
            at = &p->next;
            continue;
        }
        *at = p->next;
        free(p);
    }
    if (!c->pieces)
        finish(c);
    return !c->pieces;
}

static void add(ncclComm_t c, bool out, int peer, const void *at, size_t bytes)
{
    piece **last = &c->pieces, *new = calloc(1, sizeof *new);
    while (*last)
        last = &(*last)->next;
    *new = (piece){.out = out, .peer = peer, .at = (char *)at, .left = bytes};
    *last = new;
}

/* The stream comes to where it is asked for this. */
static void arrive(ncclComm_t c, cudaStream_t stream)
{
    void *driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
    int (*wait)(void *) = driver ? (int (*)(void *))dlsym(driver, "cuStreamSynchronize") : NULL;
    if (wait)
        wait(stream);
    c->transfers++;
}

static void reduce(ncclComm_t c, void *to, size_t count, ncclDataType_t type, ncclRedOp_t op)
{
    size_t bytes = count * size_of(type);
    c->sum = (sum){.parts = malloc((size_t)c->size * bytes), .to = to, .count = count, .itemsize = size_of(type),
                   .type = type, .op = op};
    for (int r = 0; r < c->size; r++)
        add(c, false, r, c->sum.parts + (size_t)r * bytes, bytes);
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
    struct ncclComm *c = calloc(1, sizeof *c);
    if (config->blocking != 0 || !c)
        return ncclInvalidUsage;
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
    *comm = c;
    return ncclInProgress;
}

API ncclResult_t ncclCommGetAsyncError(ncclComm_t c, ncclResult_t *state)
{
    const char *most = getenv("TANSO_FAKE_NCCL_FAILS");
    if (c->at->joined == c->size)
        shm_unlink(c->name);
    *state = most && c->transfers > atoi(most)                ? ncclRemoteError
             : c->at->joined == c->size && go_on(c) ? ncclSuccess
                                                    : ncclInProgress;
    return ncclSuccess;
}

API const char *ncclGetLastError(ncclComm_t c)
{
    (void)c;
    return "as the test says";
}

API ncclResult_t ncclCommFinalize(ncclComm_t c)
{
    (void)c;
    return ncclSuccess;
}

API ncclResult_t ncclCommAbort(ncclComm_t c)
{
    shm_unlink(c->name);
    munmap(c->at, c->size_of);
    while (c->pieces) {
        piece *next = c->pieces->next;
        free(c->pieces);
        c->pieces = next;
    }
    free(c->sum.parts);
    free(c);
    return ncclSuccess;
}

API ncclResult_t ncclCommDestroy(ncclComm_t c) { return ncclCommAbort(c); }

API ncclResult_t ncclGroupStart(void)
{
    depth++;
    return ncclSuccess;
}

API ncclResult_t ncclGroupEnd(void) { return --depth ? ncclSuccess : ncclInProgress; }

API ncclResult_t ncclSend(const void *from, size_t count, ncclDataType_t type, int peer, ncclComm_t c, cudaStream_t s)
{
    arrive(c, s);
    add(c, true, peer, from, count * size_of(type));
    return ncclInProgress;
}

API ncclResult_t ncclRecv(void *to, size_t count, ncclDataType_t type, int peer, ncclComm_t c, cudaStream_t s)
{
    arrive(c, s);
    add(c, false, peer, to, count * size_of(type));
    return ncclInProgress;
}

API ncclResult_t ncclAllReduce(const void *from, void *to, size_t count, ncclDataType_t type, ncclRedOp_t op,
                               ncclComm_t c, cudaStream_t s)
{
    arrive(c, s);
    for (int r = 0; r < c->size; r++)
        add(c, true, r, from, count * size_of(type));
    reduce(c, to, count, type, op);
    return ncclInProgress;
}

API ncclResult_t ncclReduce(const void *from, void *to, size_t count, ncclDataType_t type, ncclRedOp_t op, int root,
                            ncclComm_t c, cudaStream_t s)
{
    arrive(c, s);
    add(c, true, root, from, count * size_of(type));
    if (root == c->rank)
        reduce(c, to, count, type, op);
    return ncclInProgress;
}

API ncclResult_t ncclReduceScatter(const void *from, void *to, size_t count, ncclDataType_t type, ncclRedOp_t op,
                                   ncclComm_t c, cudaStream_t s)
{
    arrive(c, s);
    for (int r = 0; r < c->size; r++)
        add(c, true, r, (const char *)from + (size_t)r * count * size_of(type), count * size_of(type));
    reduce(c, to, count, type, op);
    return ncclInProgress;
}

API ncclResult_t ncclBroadcast(const void *from, void *to, size_t count, ncclDataType_t type, int root, ncclComm_t c,
                               cudaStream_t s)
{
    arrive(c, s);
    for (int r = 0; r < c->size && root == c->rank; r++)
        add(c, true, r, from, count * size_of(type));
    add(c, false, root, to, count * size_of(type));
    return ncclInProgress;
}

API ncclResult_t ncclAllGather(const void *from, void *to, size_t count, ncclDataType_t type, ncclComm_t c,
                               cudaStream_t s)
{
    arrive(c, s);
    for (int r = 0; r < c->size; r++) {
        add(c, true, r, from, count * size_of(type));
        add(c, false, r, (char *)to + (size_t)r * count * size_of(type), count * size_of(type));
    }
    return ncclInProgress;
}
