/* SPDX-License-Identifier: MIT */
/*
 * The graph. A node is one recorded operation or one evaluated value; a tn_array is a handle to a node.
 *
 * Counting. A pending node (no storage) belongs to the thread that made it and counts its references plainly. Once it
 * has a value it may be shared, and counts atomically. Whoever stores a node pointer holds a reference
 * (tn__node_retain).
 *
 * Temporaries. The builders of build.h return borrowed nodes: each new node is put on the thread's list of temporaries
 * and dropped when the public call that made it ends (tn__leave), unless something else holds it by then. So rules and
 * composites may nest builders freely and release nothing.
 */
#ifndef TN_ARRAY_NODE_H
#define TN_ARRAY_NODE_H

#include "core/dtype.h"
#include "core/error.h"
#include "core/shape.h"
#include "device/device.h"
#include "device/engine_calls.h"
#include "ops/ops.h"

#define TN__MAX_ARITY 3   /* inputs of a row of ops.def */
#define TN__MAX_INPUTS 20 /* of a node: users' own operations may have that many */

struct tn__user;

typedef union tn__attr {
    uint64_t raw[2];
    struct {
        uint32_t axes;           /* REDUCE, SOFTMAX, LOG_SOFTMAX, DEVIATIONS: bit i set: along axis i */
        uint32_t output;         /* USER: which of its outputs this is */
        const struct tn__user *user; /* USER, USER_REDUCE */
    };
    struct {
        const struct tn_kernel *kernel; /* CUSTOM: whose output this is; NULL: input 0 tied to others, see tn__tied */
        int64_t output;
    } custom;
    uint8_t perm[TN_MAX_NDIM]; /* PERMUTE: result axis i is input axis perm[i] */
    const tn__ints *ints;   /* SLICE, UPDATE: start, step an axis; steps may be negative */
    struct {
        int32_t axis;       /* GATHER, SCATTER_ADD */
        int32_t known;      /* GATHER: positions are known to be in range and not negative: nothing looks */
        int64_t below;      /* of that, a VALUE, a TRANSFER: elements are known to lie in 0..below-1; 0: not known */
    };
    struct {
        uint32_t comm;      /* COLLECTIVE: the communicator's number */
        uint16_t kind, op;  /* tn__transfer_kind, tn_comm_op */
        int32_t peer, tag;
    } collective;
    tn__scalar scalar;      /* CONST: an element of the node's dtype */
    struct {
        uint64_t key, offset;
    } random;               /* RANDOM_*: the k and o of the expression */
} tn__attr;

enum {
    TN__NODE_NEEDS_GRAD = 1, /* backward through it reaches a leaf that wants a gradient */
    TN__NODE_LEAF_VAR = 2,   /* such a leaf: backward stops here */
    TN__NODE_BACKWARD = 4,   /* backward was called on it: computed along with the next step */
    TN__NODE_RELEASED = 8,   /* consumed by an optimizer's step: can no longer be computed */
    TN__NODE_WEAK = 16,      /* a weak scalar: promotes by class only */
    TN__NODE_RETAIN_GRAD = 32, /* backward gives it, though no leaf, a gradient: to its var */
    TN__NODE_SPENT = 64,     /* backward went through it for the last time: its inputs go as soon as it has a value;
                              * of a leaf: its handle has gone on to another value, so nobody would get a gradient */
    TN__NODE_TEMPORARY = 128, /* in the list of temporaries, which holds one reference */
    TN__NODE_WIDE = 256,     /* of the larger kind, with room for TN__MAX_INPUTS inputs */
    TN__NODE_LOOKS = 512,    /* pending, and it or what it depends on looks at indices while it runs, which may fail */
    TN__NODE_AWAY = 1024,    /* a parameter's, of its shape alone: the value is in parts elsewhere */
    TN__NODE_CUT = 2048,     /* what tn_detach gave: no gradient goes on to what it was made of */
    TN__NODE_NO_GRAD = 4096, /* recorded while nothing is for gradients: to them it is a constant, see list_paths */
    TN__NODE_SLICE = 8192,   /* a value that is a part of another one, taken while gradients are recorded */
};

typedef struct tn__node tn__node;
struct tn__node {
    uint32_t references;
    uint16_t op;
    uint8_t dtype;
    uint8_t arity;
    uint16_t flags;          /* TN__NODE_... */
    uint16_t owner;          /* the recording thread's number, for pending nodes */
    uint32_t depth;          /* 1 + the deepest pending input */
    uint64_t mark; /* scratch of traversals: stamp << 32 | index, valid while the stamp is the traversal's own */
    const tn__shape *shape;
    tn__device *device;
    tn__attr attr;
    tn__storage *storage;    /* the value, else NULL */
    int64_t offset;          /* of element 0 in the storage, in elements */
    const tn__ints *strides; /* in elements; NULL: C order */
    tn__error *error;        /* of ERROR and RELEASED nodes */
    struct tn__var *var;     /* gradient record of a marked node, else NULL; weak */
    struct tn__node *plain;  /* of a strided value that tn_data was asked for: a copy in C order; NULL: none yet */
    tn__node *in[];          /* room for TN__MAX_ARITY, or TN__MAX_INPUTS in a wide node */
};

/* The gradient record of one handle (a leaf, or an array that retains its gradient). */
typedef struct tn__var {
    tn__node *grad;     /* NULL: none */
    tn_array *handle;   /* what tn_grad returned, owned */
    char *name;
    bool param;         /* a layer frees the handle */
    bool final;         /* the graph that the gradient is from was let go: nothing else will be computed from it */
    struct tn__var *previous, *next; /* among those that were given a gradient still to be computed */
    uint32_t giver;     /* 1 + the number of the thread that gave it; 0: not among them */
} tn__var;

/* Of a handle: the program has written into it, and it is counted among its thread's pending ones that are so; an
 * object frees it, as a layer its parameters. Above these, how often it was written into while it was pending, up to
 * TN__MAX_WRITES. */
enum { TN__WRITTEN = 1, TN__WRITTEN_COUNTED = 2, TN__KEPT = 4, TN__WRITE = 8 };

/*
 * A handle. What programs and the other rooms hold, a tn_array *, is not its address alone: it also says which life of
 * the place it means, since places are used again. The low bits, which are zero in the address of what lies on a cache
 * line of its own, and those above any address of a program's, hold the generation, which goes up when a handle is
 * freed. So a use after that is told from one of the handle that has come to lie there (tn__handle_is_live).
 */
typedef struct tn__handle tn__handle;
struct tn__handle {
    tn__node *node;
    tn__var *var;                  /* NULL until something needs it */
    struct tn__scope *scope;       /* NULL: owned by the caller */
    tn__handle *previous, *next;   /* in the scope's list */
    tn__handle *posted;            /* the next of those that other threads ask their owner to free */
    uint32_t pending;              /* 1 + position in the thread's list of pending handles; 0: not in it */
    uint16_t owner;                /* the thread whose lists it is in */
    uint8_t is_static;             /* the out-of-memory error array: never freed */
    uint8_t written;               /* by tn_assign and its kin, see tn__array_write; TN__WRITTEN... */
    /* These stay when the handle is freed and its place used again. */
    uint32_t generation;           /* of the handle, or of the next one, see TN__GENERATION */
    uint32_t died;                 /* the place where the generation before was freed: see array/places.h */
};

#define TN__HANDLE_ALIGNMENT 64
#define TN__GENERATIONS_LOW  6  /* bits below an address */
#define TN__ADDRESS_BITS     48
#if UINTPTR_MAX > UINT32_MAX
#define TN__GENERATIONS_HIGH 16 /* bits above an address */
#define TN__ADDRESS_MASK ((((uintptr_t)1 << TN__ADDRESS_BITS) - 1) & ~(uintptr_t)(TN__HANDLE_ALIGNMENT - 1))
#else
#define TN__GENERATIONS_HIGH 0
#define TN__ADDRESS_MASK (~(uintptr_t)(TN__HANDLE_ALIGNMENT - 1))
#endif
/* A handle's generation is the lower half of its array's bits rotated left by so many, so that one comparison tells a
 * live one: the bits of generations are at its top, where counting in steps of TN__GENERATION runs over, and what is
 * below them is the address's. */
#define TN__TURN       (32 - TN__GENERATIONS_LOW)
#define TN__GENERATION ((uint32_t)1 << (TN__TURN - TN__GENERATIONS_HIGH))

/* Where the handle of an array lies; of one that has been freed, too. Never of NULL. */
static inline tn__handle *tn__handle_of(const tn_array *x)
{
    return (tn__handle *)((uintptr_t)x & TN__ADDRESS_MASK);
}
static inline uint32_t tn__generation_of(const tn_array *x)
{
    uintptr_t bits = (uintptr_t)x;
    bits = bits << TN__TURN | bits >> (8 * sizeof bits - TN__TURN);
    __asm__("" : "+r"(bits)); /* else two shifts and an or make the half that is wanted, for one turn */
    return (uint32_t)bits;
}
/* Not freed yet. Never of NULL. */
static inline bool tn__handle_is_live(const tn_array *x)
{
    return tn__handle_of(x)->generation == tn__generation_of(x);
}
/* The array of a live handle. */
static inline tn_array *tn__handle_array(const tn__handle *handle)
{
    uintptr_t bits = handle->generation;
    return (tn_array *)((uintptr_t)handle | bits >> TN__TURN | bits << (8 * sizeof bits - TN__TURN));
}
/* What the array of a live handle points to. */
static inline tn__node *tn__array_node(const tn_array *x) { return tn__handle_of(x)->node; }

/* Marks of traversals. Those of several threads may meet at a value that they share: what one thread reads there is its
 * own mark, or not its own. */
static inline uint64_t tn__node_mark(const tn__node *node) { return __atomic_load_n(&node->mark, __ATOMIC_RELAXED); }
static inline void tn__node_set_mark(tn__node *node, uint64_t mark)
{
    __atomic_store_n(&node->mark, mark, __ATOMIC_RELAXED);
}

/* What all elements of a node are known to lie below, being whole and not negative; 0: nothing. */
static inline int64_t tn__elements_below(const tn__node *node)
{
    while (tn__ops[node->op].kind == TN__KIND_VIEW && node->arity > 0)
        node = node->in[0];
    bool known = node->op == TN__OP_VALUE || node->op == TN__OP_TRANSFER ||
                 (node->op == TN__OP_GATHER && node->attr.known);
    return known ? node->attr.below : 0;
}

/* Has no value yet and may still get one, as constants may: it belongs to the thread that recorded it. */
static inline bool tn__node_pending(const tn__node *node) { return !node->storage && !node->error; }

/* ---- reference counts ---- */
static inline tn__node *tn__node_retain(tn__node *node)
{
    if (tn__node_pending(node))
        node->references++;
    else
        __atomic_fetch_add(&node->references, 1, __ATOMIC_RELAXED);
    return node;
}
void tn__node_free(tn__node *node);
static inline void tn__node_release(tn__node *node)
{
    uint32_t left = tn__node_pending(node) ? --node->references
                                           : __atomic_sub_fetch(&node->references, 1, __ATOMIC_ACQ_REL);
    if (left == 0)
        tn__node_free(node);
}

/* Of values, too, while the thread that has computed one lets its inputs go, which changes its operation. */
static inline bool tn__node_is_error(const tn__node *node)
{
    return __atomic_load_n(&node->op, __ATOMIC_RELAXED) == TN__OP_ERROR;
}
/* Flags of values that others may be reading are not written: only what this thread has just made is temporary. */
static inline void tn__node_not_temporary(tn__node *node)
{
    if (node->flags & TN__NODE_TEMPORARY)
        node->flags &= (uint16_t)~TN__NODE_TEMPORARY;
}
static inline bool tn__node_contiguous(const tn__node *node) { return node->strides == NULL; }

/* ---- making nodes ---- */
/* A new node on the list of temporaries; checks nothing. Retains its inputs. On no memory: the static error node. */
tn__node *tn__node_new(tn__op op, tn_dtype dtype, const tn__shape *shape, tn__device *device, int arity,
                       tn__node *const *in, tn__attr attr);
/* A VALUE node holding a window of a storage (retains the storage). strides NULL: C order. */
tn__node *tn__node_value(tn__storage *storage, tn_dtype dtype, const tn__shape *shape, int64_t offset,
                         const tn__ints *strides);
/* An ERROR node; takes over one reference to the record. */
tn__node *tn__node_error(tn__error *error);
/* Has each operation that any thread records from now on told to a function; NULL: nobody. */
typedef void (*tn__recording_hook)(const tn__node *node);
void tn__watch_recording(tn__recording_hook hook);
/* The failure last latched in this thread, as an error node. */
tn__node *tn__failed(void);
/* Holds a node until the public call ends, like the builders' own. */
tn__node *tn__node_borrow(tn__node *node);
/* Turns a pending node into a value in place: retains the storage; drops inputs when no backward can need
 * them (drop_inputs). */
void tn__node_set_value(tn__node *node, tn__storage *storage, int64_t offset, const tn__ints *strides,
                        bool drop_inputs);
/* Makes a node that has a value and inputs a plain VALUE. */
void tn__node_drop_inputs(tn__node *node);
/* Drops the inputs of a value, and changes nothing else of it, as others may be reading it. */
void tn__node_let_go(tn__node *node);
/* Marks a pending node as released by a step: it becomes an error when next used. Takes over one reference to the
 * record; drops the inputs. */
void tn__node_set_released(tn__node *node, tn__error *error);

/* ---- calls and handles ---- */
/* Every public function that makes nodes runs between tn__enter and tn__leave*. */
typedef size_t tn__call;
tn__call tn__enter(void);
void tn__leave(tn__call call);
/* A handle to `node` in the innermost scope; then leaves. Never NULL. */
tn_array *tn__leave_array(tn__call call, tn__node *node);
/* Leaves with several results, handles for all that are wanted (not NULL); all are the error if one is. */
tn_status tn__give_all(tn__call call, int count, tn__node *const *node, tn_array **const *out);
/* Leaves with a failure latched by tn__fail as an error array. */
tn_array *tn__leave_error(tn__call call);
/* The same outside a call. */
static inline tn_array *tn__failed_array(void) { return tn__leave_error(tn__enter()); }
/* A handle owned by no scope, freed by tn__array_free_kept: for objects that own arrays. */
tn_array *tn__array_own_new(tn__node *node);
/* Makes x such a one; returns it. Programs see these arrays, and may not free them. */
tn_array *tn__array_keep(tn_array *x);
/* NULL is ignored. */
void tn__array_free_kept(tn_array *x);
/* The node of an operand: NULL, handles that have been freed and nodes pending in another thread become error nodes.
 * Borrowed. */
tn__node *tn__node_of(const tn_array *x, const char *operation);
/* Whether a call may go on with x: else, of one that has been freed, latches TN_ERR_STATE. Not of NULL. */
bool tn__array_lives(const tn_array *x, const char *operation);
/* Points a handle at another node (retains it; carries the gradient mark over when the handle is a leaf). */
void tn__array_set(tn_array *x, tn__node *node);
/*
 * The same for a value that the program writes into an array of its own. Such arrays are what a loop carries from round
 * to round: every evaluation computes those that are pending along with what it was asked for, since a loop that reads
 * something else would compute all its rounds so far again each time, by a plan that is new each time. One that was
 * written into TN__MAX_WRITES times since it had a value, and whose recording has grown TN__MAX_WRITTEN_DEPTH deep, is
 * computed here, at the same place of every so many rounds, so that the plan comes again. (Caches of a deep network, or
 * its running statistics, are each written once a round: to compute them here would be to compute what lies between two
 * of them for each of the two.) TN_OK, or what that evaluation failed with.
 *
 * Where failures are known at once, the indices that the value depends on are looked at before: with one of them out of
 * range x stays as it is, and the status says so.
 */
#define TN__MAX_WRITTEN_DEPTH 128
#define TN__MAX_WRITES        8
tn_status tn__array_write(tn_array *x, tn__node *node);
/* The gradient record of a handle, made on demand; NULL without memory. */
tn__var *tn__array_var(tn_array *x);

/* Notes that a record holds another gradient now; NULL: none. */
void tn__var_hold(tn__var *var, tn__node *grad);
/* The gradients that this thread has recorded and not computed, into nodes[0 .. room-1]; how many there are. */
int tn__pending_gradients(tn__node **nodes, int room);

/* The thread's pending handles, for the engine: those whose node still has to be computed. */
int tn__pending_handles(tn__handle *const **handles);
/* Has the program written into any of them? */
bool tn__any_written(void);
/* Drops handles from that list whose nodes have values by now, at times. */
void tn__pending_sweep(void);
/* Takes a handle of this thread off that list: nothing computes its node but who asks for it. For a node that depends
 * on nothing that a step overwrites, so that it can be computed later as well. */
void tn__pending_leave(const tn_array *x);

/* The number of this thread. */
uint16_t tn__thread_number(void);
/* A fresh stamp for marks in traversals of this thread. */
uint32_t tn__stamp(void);

/* How deep a recording gets before its inputs are computed first: far deeper than a network's step, as what is computed
 * so is forgotten but for its results, and computed again by what needs more of it; only a recording that nobody ever
 * asks for a value of gets there. Tests set less. */
#define TN__MAX_DEPTH 65536
extern uint32_t tn__depth_limit __attribute__((visibility("hidden"))); /* so that it is read without a detour */
static inline uint32_t tn__max_depth(void) { return __atomic_load_n(&tn__depth_limit, __ATOMIC_RELAXED); }
void tn__set_max_depth(uint32_t depth);

#endif
