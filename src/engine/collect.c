/* SPDX-License-Identifier: MIT */
/* Collecting the pending graph under some roots, and making its key. */
#include "engine/collect.h"

#include "array/user.h"
#include "core/memory.h"

/* ---- finding entries ---- */

static tn_status no_memory(void) { return tn__fail_memory("eval", 0); }

/* What is said, without a message, where values of another device are needed. */
#define CROSSES TN_ERR_DEVICE

static struct tn__leaf_slot *find_slot(const tn__collection *c, const void *what)
{
    size_t mask = c->table_size - 1, at = ((uintptr_t)what >> 4) * 0x9E3779B97F4A7C15u >> 20 & mask;
    while (c->table[at].stamp == c->stamp && c->table[at].what != what)
        at = (at + 1) & mask;
    return &c->table[at];
}

static bool is_shared(const tn__storage *storage) { return atomic_load(&storage->references) != 1; }

/* Notes a leaf, and that it is the first one in its storage, if it is. */
static void note_leaf(tn__collection *c, int leaf)
{
    const tn__node *node = c->entry[c->leaf[leaf]].node;
    *find_slot(c, node) = (struct tn__leaf_slot){node, c->stamp, c->leaf[leaf]};
    struct tn__leaf_slot *slot = is_shared(node->storage) ? find_slot(c, node->storage) : NULL;
    if (slot && slot->stamp != c->stamp)
        *slot = (struct tn__leaf_slot){node->storage, c->stamp, leaf};
}

/* Room for a leaf and its storage more. */
static bool grow_table(tn__collection *c)
{
    if (c->leaf_count * 4 + 4 < c->table_size)
        return true;
    size_t size = c->table_size ? c->table_size * 2 : 64;
    void *table = tn__calloc(size, sizeof *c->table);
    if (!table)
        return false;
    tn__free(c->table);
    c->table = table;
    c->table_size = size;
    for (size_t i = 0; i < c->leaf_count; i++)
        note_leaf(c, (int)i);
    return true;
}

static __attribute__((noinline)) int leaf_entry(const tn__collection *c, const tn__node *node)
{
    struct tn__leaf_slot *slot = find_slot(c, node);
    return slot->stamp == c->stamp ? slot->entry : -1;
}

/* The entry of a node, or -1 if it has none yet. */
static inline int entry_of(const tn__collection *c, const tn__node *node)
{
    if (node->storage)
        return leaf_entry(c, node);
    uint64_t mark = tn__node_mark(node);
    return mark >> 32 == c->stamp ? (int)((uint32_t)mark & ~TN__COLLECTED) : -1;
}

int tn__collection_find(const tn__collection *c, const tn__node *node) { return entry_of(c, node); }

int32_t tn__collection_far_input(const tn__collection *c, const tn__entry *e, int i)
{
    return entry_of(c, e->node->in[i]);
}

/* ---- the key ---- */

/* Words of one entry at most: operation, inputs, attribute; the number of many inputs and those beyond the third. */
#define ENTRY_WORDS (4 + TN__MAX_INPUTS)

static uint64_t attribute_word(const tn__node *n, tn__attribute attribute)
{
    switch (attribute) {
    case TN__ATTRIBUTE_AXES:
        return n->attr.axes | (uint64_t)(n->op == TN__OP_USER_REDUCE ? n->attr.user->id : 0) << 32;
    case TN__ATTRIBUTE_OUTPUT:
        return (uint64_t)n->attr.user->id << 4 | n->attr.output; /* TN__USER_PARAMS outputs at most */
    case TN__ATTRIBUTE_PLACES:
        return (uint64_t)n->attr.axis | (uint64_t)n->attr.known << 32;
    case TN__ATTRIBUTE_AXIS:
        return (uint64_t)n->attr.axis;
    case TN__ATTRIBUTE_LIST:
        return n->op == TN__OP_PERMUTE ? n->attr.raw[0] : n->attr.ints ? n->attr.ints->id : 0;
    case TN__ATTRIBUTE_NONE:
        break;
    }
    return 0;
}

static uint64_t first_word(int op, const tn__node *n)
{
    return (uint64_t)op | (uint64_t)n->dtype << 16 | (uint64_t)n->shape->id << 32;
}

int32_t tn__collection_storage(const tn__collection *c, int leaf)
{
    const tn__storage *storage = c->entry[c->leaf[leaf]].node->storage;
    const struct tn__leaf_slot *slot = is_shared(storage) ? find_slot(c, storage) : NULL;
    return slot && slot->stamp == c->stamp ? slot->entry : leaf;
}

/* ---- adding entries ---- */

static bool add_scalars(tn__collection *c, const tn__node *node, int count)
{
    if (!tn__grow((void **)&c->scalar, &c->scalar_capacity, c->scalar_count + 2, sizeof *c->scalar))
        return false;
    for (int i = 0; i < count; i++)
        c->scalar[c->scalar_count++] = node->attr.raw[i];
    return true;
}

static __attribute__((noinline)) bool grow_entries(tn__collection *c)
{
    return tn__grow((void **)&c->entry, &c->capacity, c->count + 1, sizeof *c->entry) &&
           tn__grow((void **)&c->key, &c->key_capacity, c->key_count + ENTRY_WORDS, sizeof *c->key);
}

/* The next entry, with room for its words in the key; NULL without memory. */
static inline tn__entry *begin_entry(tn__collection *c, tn__node *node)
{
    bool full = c->count == c->capacity || c->key_count + ENTRY_WORDS > c->key_capacity;
    if (__builtin_expect(full, 0) && !grow_entries(c))
        return NULL;
    tn__entry *e = &c->entry[c->count];
    e->node = node;
    e->leaf = e->scalar = -1;
    e->edges = 0;
    e->root = e->depends = e->survives = e->released = e->again = e->overwritten = false;
    return e;
}

/* The number of a new entry for a node that has a value; -1 without memory. */
static int add_leaf(tn__collection *c, tn__node *node)
{
    tn__entry *e = begin_entry(c, node);
    if (!e || !tn__grow((void **)&c->leaf, &c->leaf_capacity, c->leaf_count + 1, sizeof *c->leaf) || !grow_table(c))
        return -1;
    int entry = (int)c->count++, leaf = (int)c->leaf_count++;
    e->leaf = leaf;
    c->leaf[leaf] = entry;
    note_leaf(c, leaf);
    uint64_t *k = c->key + c->key_count;
    k[0] = first_word(TN__OP_VALUE, node);
    k[1] = (uint64_t)(node->strides ? node->strides->id + 1 : 0) << 32 | (uint32_t)tn__collection_storage(c, leaf);
    c->key_count += 2;
    return entry;
}

/* The inputs beyond the third of a new entry, which are few, and seldom there. */
static __attribute__((noinline)) uint64_t *add_wide(tn__collection *c, tn__entry *e, uint64_t *k)
{
    *k++ = e->node->arity;
    for (int i = TN__MAX_ARITY; i < e->node->arity; i++) {
        int32_t in = tn__collection_input(c, e, i);
        c->entry[in].edges++;
        *k++ = (uint64_t)in;
    }
    return k;
}

/* The number of a new entry for a pending node, whose first inputs have the entries `in`; -1 without memory, or, noted
 * in c->crosses, where its value comes from another device. */
static inline int add_pending(tn__collection *c, tn__node *node, const int32_t *in)
{
    tn__entry *e = begin_entry(c, node);
    if (__builtin_expect(!e, 0))
        return -1;
    int entry = (int)c->count, kind = tn__ops[node->op].kind, arity = node->arity;
    if (__builtin_expect(tn__node_mark(node) != 0, 0)) /* a new node has none */
        c->again |= e->again = tn__was_collected(node);
    tn__node_set_mark(node, (uint64_t)c->stamp << 32 | TN__COLLECTED | (uint32_t)entry);
    for (int i = 0; i < arity && i < TN__MAX_ARITY; i++) {
        e->in[i] = in[i];
        c->entry[in[i]].edges++;
    }
    uint64_t *k = c->key + c->key_count;
    *k++ = first_word(node->op, node);
    if (arity)
        *k++ = (uint64_t)(uint32_t)in[0] << 32 | (arity > 1 ? (uint32_t)in[1] : 0);
    c->count++;
    if (__builtin_expect(kind == TN__KIND_MAP && arity < 3, 1)) { /* has no attribute */
        c->key_count = (size_t)(k - c->key);
        return entry;
    }
    tn__attribute attribute = (tn__attribute)tn__attribute_of[kind];
    if (arity >= 3 || attribute != TN__ATTRIBUTE_NONE)
        *k++ = attribute_word(node, attribute) ^ (uint64_t)(arity >= 3 ? (uint32_t)in[2] : 0) << 32;
    if (arity > TN__MAX_ARITY)
        k = add_wide(c, e, k);
    c->key_count = (size_t)(k - c->key);
    if (kind != TN__KIND_MAP) {
        if (kind == TN__KIND_TRANSFER) {
            c->crosses = true;
            return -1;
        }
        c->users |= node->op == TN__OP_USER || node->op == TN__OP_USER_REDUCE;
        c->windows |= node->op == TN__OP_SLICE || node->op == TN__OP_UPDATE;
        if (kind == TN__KIND_CONST || (kind == TN__KIND_GENERATE && node->op != TN__OP_IOTA)) {
            e->scalar = (int32_t)c->scalar_count;
            if (!add_scalars(c, node, kind == TN__KIND_CONST ? 1 : 2))
                return -1;
        }
    }
    return entry;
}

tn_status tn__refuse(const tn__node *node)
{
    return node->error ? tn__error_raise(node->error)
                       : tn__fail(TN_ERR_INTERNAL, "eval", "an error array without a record; please report this");
}

/* Such a node: it is no value, as those are leaves. */
static inline bool is_refused(const tn__node *node)
{
    return __builtin_expect(node->error || node->op == TN__OP_ERROR, 0);
}

/* Puts a node on the stack of those whose inputs are being visited; NULL without memory. */
static inline struct tn__frame *push(tn__collection *c, size_t depth, tn__node *node)
{
    if (__builtin_expect(depth == c->stack_capacity, 0) &&
        !tn__grow((void **)&c->stack, &c->stack_capacity, depth + 1, sizeof *c->stack))
        return NULL;
    struct tn__frame *at = &c->stack[depth];
    at->node = node;
    at->next = 0;
    return at;
}

/* Depth first from one root, which is not refused; inputs get their entries before what uses them. */
static tn_status visit(tn__collection *c, tn__node *root)
{
    if (entry_of(c, root) >= 0)
        return TN_OK;
    size_t depth = 0;
    for (struct tn__frame *at = push(c, 0, root); at;) {
        tn__node *node = at->node, *unseen = NULL;
        for (int i = at->next; i < node->arity; i++) {
            tn__node *input = node->in[i];
            int entry = entry_of(c, input);
            if (entry < 0 && !input->storage) {
                at->next = i;
                unseen = input;
                break;
            }
            if (entry < 0 && (entry = add_leaf(c, input)) < 0)
                return no_memory();
            if (i < TN__MAX_ARITY)
                at->in[i] = entry;
        }
        if (unseen) {
            if (is_refused(unseen))
                return tn__refuse(unseen);
            at = push(c, ++depth, unseen);
            continue;
        }
        int entry = add_pending(c, node, at->in);
        if (__builtin_expect(entry < 0, 0))
            return c->crosses ? CROSSES : no_memory();
        if (!depth)
            return TN_OK;
        at = &c->stack[--depth];
        if (at->next < TN__MAX_ARITY)
            at->in[at->next] = entry;
        at->next++;
    }
    return no_memory();
}

tn_status tn__collection_add_root(tn__collection *c, int entry)
{
    if (c->entry[entry].root)
        return TN_OK;
    c->entry[entry].root = true;
    if (!tn__grow((void **)&c->root, &c->root_capacity, c->root_count + 1, sizeof *c->root))
        return no_memory();
    c->root[c->root_count++] = entry;
    return TN_OK;
}

tn_status tn__collection_add_node(tn__collection *c, tn__node *node)
{
    if (node->storage) /* nothing to compute, but what computed it may have failed since */
        return tn__storage_check(node->storage);
    if (is_refused(node))
        return tn__refuse(node);
    if (c->device && node->device != c->device) {
        c->crosses = true;
        return CROSSES;
    }
    c->device = node->device;
    tn_status status = visit(c, node);
    return status == TN_OK ? tn__collection_add_root(c, entry_of(c, node)) : status;
}

/* ---- collecting ---- */

/* Whoever asked for a step holds what it replaces until it is known to have succeeded. That does not keep memory from
 * being reused by the step itself: it counts as a reference from an entry. */
static void count_old(tn__collection *c)
{
    for (int i = 0; i < c->old_count; i++) {
        int entry = entry_of(c, c->old[i]);
        if (entry >= 0)
            c->entry[entry].edges++;
    }
}

/* Ends the key: the entries' words are there; now the roots, and a bit a leaf that may be donated. */
static bool finish_key(tn__collection *c)
{
    size_t words = c->root_count + c->leaf_count / 64 + 1;
    if (!tn__grow((void **)&c->key, &c->key_capacity, c->key_count + words, sizeof *c->key))
        return false;
    c->key[0] = (uint64_t)c->device->number << 32 | c->count;
    uint64_t *k = c->key + c->key_count;
    for (size_t r = 0; r < c->root_count; r++)
        *k++ = (uint64_t)c->root[r];
    for (size_t leaf = 0; leaf < c->leaf_count; leaf++) {
        if (leaf % 64 == 0)
            *k++ = 0;
        k[-1] |= (uint64_t)tn__collection_donatable(c, (int)leaf) << leaf % 64;
    }
    c->key_count = (size_t)(k - c->key);
    return true;
}

static tn_status collect(tn__collection *c, int count, tn__node *const *roots, tn__collect_mode mode)
{
    bool step = mode == TN__COLLECT_STEP;
    c->device = NULL;
    c->count = c->leaf_count = c->root_count = c->scalar_count = 0;
    c->key_count = 1; /* the first word is written last */
    c->users = c->again = c->windows = c->moves = false;
    c->crosses = c->begun = false;
    c->stamp = tn__stamp();
    if (!c->table && !grow_table(c))
        return no_memory();
    /* The loss before the updates: an index out of range is found before anything overwrites a parameter. */
    if (step && count > 0 && roots[0]->device) {
        c->device = roots[0]->device;
        tn_status status = tn__collection_add_handles(c, mode);
        if (status == TN_OK)
            status = tn__collection_add_gradients(c);
        if (status != TN_OK)
            return status;
    }
    for (int i = 0; i < count; i++) {
        tn_status status = tn__collection_add_node(c, roots[i]);
        if (status != TN_OK)
            return status;
    }
    if (!c->root_count)
        return TN_OK;
    c->asked = c->root_count;
    if (mode == TN__COLLECT_PART) {
        tn_status status = tn__collection_add_shared(c);
        if (status != TN_OK)
            return status;
    } else if (!step && mode != TN__COLLECT_ONLY) {
        tn_status status = tn__collection_add_handles(c, mode);
        if (status == TN_OK && c->again && mode != TN__COLLECT_WRITTEN)
            status = tn__collection_add_built_on(c);
        if (status != TN_OK)
            return status;
    }
    if (step)
        count_old(c);
    tn__collection_survivors(c, step);
    return finish_key(c) ? TN_OK : no_memory();
}

tn_status tn__collect(tn__collection *c, int count, tn__node *const *roots, tn__collect_mode mode)
{
    bool clean = !tn__latched(), alone = mode == TN__COLLECT_ONLY || mode == TN__COLLECT_STEP;
    tn_status status = collect(c, count, roots, mode);
    if (status != TN_OK && !c->crosses && !alone) {
        if (clean) /* what nobody asked for may be what failed */
            tn_clear_error();
        status = collect(c, count, roots, TN__COLLECT_ONLY);
    }
    if (c->crosses)
        tn__collection_forget(c);
    return status;
}
