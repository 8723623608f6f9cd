/* SPDX-License-Identifier: MIT */
/*
 * From recorded nodes to a key: the pending graph under some roots, its leaves, scalars and what may be donated, in
 * vectors that a thread keeps and reuses, so that a step of a loop allocates nothing here.
 */
#ifndef TN_ENGINE_COLLECT_H
#define TN_ENGINE_COLLECT_H

#include "array/node.h"
#include "compile/ir/graph.h"

/* What of a node's attribute says what it computes, by the kind of its operation; scalars apart, which are run-time
 * arguments. It goes into the key and into the compiler's graph. */
typedef enum tn__attribute {
    TN__ATTRIBUTE_NONE,
    TN__ATTRIBUTE_AXES,   /* reduced axes; USER_REDUCE: the user's definition, too */
    TN__ATTRIBUTE_OUTPUT, /* the user's definition, and which of its outputs */
    TN__ATTRIBUTE_PLACES, /* an axis, and whether positions along it are known to be in range */
    TN__ATTRIBUTE_AXIS,
    TN__ATTRIBUTE_LIST    /* a permutation, or a list of integers, which may be absent */
} tn__attribute;
static const uint8_t tn__attribute_of[] = {
    [TN__KIND_REDUCE] = TN__ATTRIBUTE_AXES,   [TN__KIND_USER] = TN__ATTRIBUTE_OUTPUT,
    [TN__KIND_GATHER] = TN__ATTRIBUTE_PLACES, [TN__KIND_SCATTER] = TN__ATTRIBUTE_AXIS,
    [TN__KIND_VIEW] = TN__ATTRIBUTE_LIST,     [TN__KIND_UPDATE] = TN__ATTRIBUTE_LIST,
    [TN__KIND_PART] = TN__ATTRIBUTE_NONE, /* no node is one */
    [TN__KIND_LIBRARY] = TN__ATTRIBUTE_LIST,  [TN__KIND_SORT_SCAN] = TN__ATTRIBUTE_LIST,
    [TN__KIND_CUSTOM] = TN__ATTRIBUTE_NONE,   [TN__KIND_TIED] = TN__ATTRIBUTE_LIST,
    [TN__KIND_CONVOLVE] = TN__ATTRIBUTE_LIST,
    [TN__KIND_RECURRENCE] = TN__ATTRIBUTE_LIST, /* the last kind */
};

typedef struct tn__entry {
    tn__node *node;
    int32_t leaf;       /* number among leaves, or -1 */
    int32_t scalar;     /* first scalar slot, or -1 */
    uint32_t edges;     /* references from other entries */
    int32_t in[TN__MAX_ARITY]; /* entries of the first inputs, looked up once */
    bool root;
    bool depends;       /* on a leaf that may be donated */
    bool survives;      /* still needed after the evaluation */
    bool released;      /* given up by an optimizer's step */
    bool again;         /* an earlier evaluation computed it and did not keep it */
    bool overwritten;   /* moving.c: an UPDATE replaces a part of it */
    uint8_t slices;     /* the same: of a pending one, how many there are of it, as far as counted */
} tn__entry;

/* A window of a collection whose start is a run-time value (moving.c). */
typedef struct tn__moving {
    int32_t entry;      /* a SLICE, or an UPDATE; of pending values it may be several windows in a row */
    int32_t base;       /* the entry that it is a window of; UPDATE: itself */
    int32_t leaf;       /* a leaf's window: its number; else -1 */
    int64_t offset;     /* elements to its first one from the leaf's; else from where it lies if all its starts are as
                           small as they can be */
    const tn__ints *list; /* SLICE: strides, NULL for C order; UPDATE: the window with those starts */
} tn__moving;

typedef struct tn__collection {
    tn__device *device;
    tn__entry *entry;   /* topological order */
    size_t count, capacity;
    int32_t *leaf;      /* entries that are leaves */
    size_t leaf_count, leaf_capacity;
    int32_t *root;      /* entries to compute, no duplicates */
    size_t root_count, root_capacity;
    size_t asked;       /* roots that were asked for; those behind them are computed along. Not of a step */
    tn__node **gradient; /* scratch */
    size_t gradient_capacity;
    uint64_t *scalar;
    size_t scalar_count, scalar_capacity;
    uint64_t *key;
    size_t key_count, key_capacity;
    bool windows;       /* has slices, or updates of them */
    bool moves;         /* the starts of those in `moving` are run-time values, not part of the plan */
    tn__moving *moving; /* by entry */
    size_t moving_count, moving_capacity;
    uint64_t *loose;    /* the key without those starts, of as many words */
    size_t loose_capacity;
    bool users;         /* has operations of a user's own, which only a compiler can run */
    bool again;         /* some entry is computed again */
    tn__node **refused; /* of whoever evaluates: what a step does not compute along, as it can't be computed */
    size_t refused_count;
    tn__node *const *old; /* of whoever evaluates: what a step replaces, and goes back to if it fails */
    int old_count;
    tn__node *const *together; /* of whoever evaluates: roots whose values are to lie side by side */
    int together_count;
    bool crosses;       /* it needs values of another device: not collected, see regions.c */
    bool further;       /* a region of an evaluation that has run others before */
    bool begun;         /* its run has begun, as there was memory and it reads nothing poisoned, and not ended */
    /* scratch */
    struct tn__frame {
        tn__node *node;
        int32_t next;
        int32_t in[TN__MAX_ARITY]; /* entries of the first inputs, as far as visited */
    } *stack;
    size_t stack_capacity;
    struct tn__leaf_slot {
        const void *what; /* a leaf's node, or a storage that others may hold, too */
        uint32_t stamp;
        int32_t entry;    /* of the node; of a storage the first leaf in it, by its number */
    } *table;             /* leaves may be shared by threads, so they are not marked but looked up */
    size_t table_size;
    uint32_t stamp;
    struct tn__collection *next; /* for another device of the same step; NULL: none yet */
} tn__collection;

/* This thread's collection; NULL without memory. */
tn__collection *tn__collection_get(void);
/* The one behind another, made on demand. */
tn__collection *tn__collection_next(tn__collection *c);
/* In the low half of a node's mark, beside its number: a collection that was evaluated made it. Backward's marks have
 * it, too, in the two greatest numbers. */
#define TN__COLLECTED 0x80000000u
/* Was it in an earlier collection, whose evaluation gave it no value? */
static inline bool tn__was_collected(const tn__node *node)
{
    uint32_t low = (uint32_t)tn__node_mark(node);
    return low >= TN__COLLECTED && low < UINT32_MAX - 1;
}
typedef enum tn__collect_mode {
    TN__COLLECT_ONLY,  /* the roots alone */
    TN__COLLECT_REGION, /* and what something new was built on, as below */
    TN__COLLECT_WRITTEN, /* and pending arrays that the program writes into, unless one of them can't be computed */
    TN__COLLECT_ALONG, /* and what something new was built on, if it would be computed again */
    TN__COLLECT_DEEP,  /* the same where a recording is as deep as may be: and arrays that are almost as deep */
    TN__COLLECT_PART,  /* a part of such a step, see tn__evaluate_part */
    TN__COLLECT_STEP   /* an optimizer's step, see tn__evaluate_step */
} tn__collect_mode;
/* Collects what `roots` need. Roots that have values are skipped. Where they need, or are, values of several devices,
 * only `crosses` is set: the call fails, with nothing latched. */
tn_status tn__collect(tn__collection *c, int count, tn__node *const *roots, tn__collect_mode mode);
/* What was collected is not evaluated: it does not count as computed before. */
void tn__collection_forget(const tn__collection *c);
/* The entry of a node, or -1; and makes one a root. */
int tn__collection_find(const tn__collection *c, const tn__node *node);
tn_status tn__collection_add_root(tn__collection *c, int entry);
/* The same of a node that may have no entry yet, with what it needs: nothing where it has a value. */
tn_status tn__collection_add_node(tn__collection *c, tn__node *node);
/* What is computed along in a mode (collect_along.c): pending arrays of this thread, those that the program writes into
 * and more of them by a step, or of a deep recording; gradients of others than a step's own parameters; and what new
 * values were built on. */
tn_status tn__collection_add_handles(tn__collection *c, tn__collect_mode mode);
tn_status tn__collection_add_gradients(tn__collection *c);
tn_status tn__collection_add_built_on(tn__collection *c);
/* Of a part of a step: makes roots of what the rest of it needs (part.c). */
tn_status tn__collection_add_shared(tn__collection *c);
/* Fails for a node that can't be computed: an error, or one that a step released. */
tn_status tn__refuse(const tn__node *node);
/* Is a pending handle's node, on that device, computed along with what is asked for in a mode? */
bool tn__computed_along(const tn__handle *handle, const tn__device *device, tn__collect_mode mode);
/* Entry of an entry's input. Those beyond the third are looked up. */
int32_t tn__collection_far_input(const tn__collection *c, const tn__entry *e, int i);
static inline int32_t tn__collection_input(const tn__collection *c, const tn__entry *e, int i)
{
    return i < TN__MAX_ARITY ? e->in[i] : tn__collection_far_input(c, e, i);
}
/* The number of a leaf's storage: that of the first leaf that shares it. */
int32_t tn__collection_storage(const tn__collection *c, int leaf);
/* Finds what depends on leaves that nobody outside this evaluation holds, and what is still needed after it, which
 * speaks against donating them. step: what is held and depends on them is released instead. */
void tn__collection_survivors(tn__collection *c, bool step);
/* Is a pending entry's node held by anything that was not collected? */
bool tn__entry_is_held(const tn__entry *e);
/* Marks what is still needed after the evaluation, for `survives`. */
void tn__collection_mark_survivors(tn__collection *c, bool step);
/* May a result take over the leaf's memory? */
static inline bool tn__collection_donatable(const tn__collection *c, int leaf)
{
    const tn__entry *e = &c->entry[c->leaf[leaf]];
    return e->depends && !e->survives;
}
/* Does a root keep its inputs when it gets its value, for a later backward? */
static inline bool tn__keeps_inputs(const tn__node *node)
{
    return node->flags & TN__NODE_NEEDS_GRAD && !(node->flags & (TN__NODE_LEAF_VAR | TN__NODE_SPENT));
}
/* After a run that met an index out of range, and latched that: says of which of the user's indices it is. What was
 * collected is gone then. */
void tn__collection_name_index(tn__collection *c);
/* Element operations, about: what the reference evaluator would do. */
int64_t tn__collection_work(const tn__collection *c);
/* Finds the windows whose starts may be run-time values, and makes the key without them: of leaves and of what is
 * written over, or, with `pending`, of what the plan computes, too. False if there are none, or without memory. */
bool tn__collection_loosen(tn__collection *c, bool pending);
/* Notes the windows that a slice consists of, at the end of `moving`; false, with some noted, if it can't move, or
 * without memory (sliced.c). */
bool tn__slice_note(tn__collection *c, int entry, bool pending);
/* What the slice is whose windows begin with number `*window`, which becomes that of the next one's: values added to
 * the graph, where entries are the values `number`. That of the slice itself, -1 without memory. */
int tn__slice_values(const tn__collection *c, size_t *window, const int *number, tn__graph *graph);
/* An entry as the compiler's graph has it, without its inputs where it is a leaf. */
void tn__collection_value(const tn__collection *c, const tn__entry *e, tn__value *v);
/* The collected graph for the compiler. False without memory. */
bool tn__collection_graph(const tn__collection *c, tn__graph *graph);

#endif
