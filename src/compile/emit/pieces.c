/* SPDX-License-Identifier: MIT */
/*
 * The text of a program's kernels as pieces: functions of operations, of nests, kernels. A nest's function and a kernel
 * are named by a hash of their text, so that equal ones are one, in this plan or another, and a backend can compile
 * each kernel once, apart from the others.
 */
#include "compile/emit/emit.h"

#include "core/hash.h"
#include "ops/dialect.h"
#include "tn_embed.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- the table ---- */

void tn__piece_name(char name[24], const char *kind, const char *text)
{
    snprintf(name, 24, "%.6s%016" PRIx64, kind, tn__hash(text, strlen(text), 0));
}

/* The slot of the hash table where the piece of that name is, or would go. It has the number plus 1; 0: free. */
static uint32_t *find(const tn__emitter *emitter, const char *name)
{
    uint32_t at = (uint32_t)tn__hash(name, strlen(name), 0) & (emitter->table_size - 1);
    while (emitter->table[at] && strcmp(emitter->piece[emitter->table[at] - 1].name, name) != 0)
        at = (at + 1) & (emitter->table_size - 1);
    return &emitter->table[at];
}

int tn__piece_find(const tn__emitter *emitter, const char *name)
{
    return emitter->table_size ? (int)*find(emitter, name) - 1 : -1;
}

/* Grows the table if one piece more would fill it by more than half. False without memory. */
static bool make_room(tn__emitter *emitter)
{
    if ((uint32_t)emitter->piece_count * 2 + 2 <= emitter->table_size)
        return true;
    uint32_t size = emitter->table_size ? emitter->table_size * 2 : 64;
    uint32_t *table = tn__calloc(size, sizeof *table);
    if (!table)
        return false;
    tn__free(emitter->table);
    emitter->table = table;
    emitter->table_size = size;
    for (int i = 0; i < emitter->piece_count; i++)
        if (*emitter->piece[i].name)
            *find(emitter, emitter->piece[i].name) = (uint32_t)i + 1;
    return true;
}

static void use_one(tn__emitter *emitter, int number)
{
    for (int i = 0; i < emitter->uses.count; i++)
        if (emitter->uses.at[i] == number)
            return;
    if (!tn__numbers_add(&emitter->uses, number))
        emitter->failed = true;
}

void tn__piece_use(tn__emitter *emitter, int number)
{
    const tn__piece *piece = &emitter->piece[number];
    for (int i = 0; i < piece->uses.count; i++)
        use_one(emitter, piece->uses.at[i]);
    use_one(emitter, number);
    emitter->needs |= piece->needs;
}

int tn__piece_add(tn__emitter *emitter, char *text, const tn__piece *like)
{
    bool done = text && make_room(emitter) &&
                tn__grow((void **)&emitter->piece, &emitter->piece_capacity, (size_t)emitter->piece_count + 1,
                         sizeof *emitter->piece);
    if (!done) {
        emitter->failed = true;
        tn__free(text);
        tn__free(like->uses.at);
        return -1;
    }
    int number = emitter->piece_count++;
    emitter->piece[number] = *like;
    emitter->piece[number].text = text;
    if (*like->name)
        *find(emitter, like->name) = (uint32_t)number + 1;
    tn__piece_use(emitter, number);
    return number;
}

/* ---- the whole text ---- */

static const char faults[] =
    "#ifndef TN_FAULT\n"
    "#define TN_FAULT(fault, operand, index) (fault[0] = operand, fault[1] = index)\n"
    "#endif\n";
static const char helpers[] =
    "TN_HOT tn_i64 tn_wrap(tn_i64 i, tn_i64 n) { return i < 0 ? i + n : i; }\n"
    "TN_HOT int tn_in_range(tn_i64 i, tn_i64 n, @memory tn_i64 *fault, int operand)\n"
    "{\n"
    "    int in = i >= -n && i < n;\n"
    "    if (!in)\n"
    "        TN_FAULT(fault, operand, i);\n"
    "    return in;\n"
    "}\n";


/* What comes in front of all pieces, in its order, for those that need any of `needs`; 0: for all. */
typedef struct front {
    uint32_t needs;
    char *text;
} front;
enum { FRONTS = 20 };

typedef struct whole {
    tn__emitter *emitter;
    front front[FRONTS];
    int fronts;
    tn__text text;
    uint32_t needs;    /* of all kernels */
    int *stretch;      /* by piece: the stretch that it is */
    tn__program_text *to;
    size_t capacity;
    bool failed;
} whole;

static void add_front(whole *w, uint32_t needs, char *text)
{
    w->failed |= text == NULL;
    w->front[w->fronts++] = (front){needs, text};
}

static char *dialect(uint32_t parts)
{
    tn__text text = {0};
    tn__dialect_add(&text, parts);
    return tn__text_take(&text);
}

static char *embedded(const unsigned char *bytes, size_t size)
{
    return tn__format("%.*s", (int)size, (const char *)bytes);
}
#define EMBEDDED(part) embedded(tn__embed_##part, tn__embed_##part##_size)

/* What every target has behind its helpers. */
static char *common(const tn__emit_target *target)
{
    tn__text text = {0};
    tn__text_addf(&text, "%s%s", faults, target->rounding);
    tn__words_expand(target, helpers, &text);
    return tn__text_take(&text);
}

static void add_fronts(whole *w)
{
    const tn__emit_target *target = w->emitter->target;
    if (target->prelude)
        add_front(w, 0, tn__strdup(target->prelude));
    add_front(w, 0, dialect(TN__DIALECT_TYPES));
    add_front(w, TN__NEEDS_REAL, tn__strdup("#define TNS_NO_INTEGERS\n"));
    add_front(w, TN__NEEDS_INTEGERS, tn__strdup("#undef TNS_NO_INTEGERS\n"));
    add_front(w, TN__NEEDS_REAL, dialect(TN__DIALECT_REAL | target->functions));
    add_front(w, TN__NEEDS_RANDOM, dialect(TN__DIALECT_RANDOM));
    add_front(w, TN__NEEDS_COMPLEX, dialect(TN__DIALECT_COMPLEX));
    add_front(w, TN__NEEDS_DRAWS, dialect(TN__DIALECT_DRAW));
    add_front(w, 0, tn__strdup(target->helpers));
    add_front(w, TN__NEEDS_RANDOM, tn__strdup(target->random_helpers));
    add_front(w, 0, common(target));
    add_front(w, TN__NEEDS_PRODUCTS, EMBEDDED(product_factors));
    add_front(w, TN__NEEDS_PRODUCTS, EMBEDDED(product));
    add_front(w, TN__NEEDS_TENSOR, EMBEDDED(product_tensor));
    add_front(w, TN__NEEDS_RESIDENT, EMBEDDED(product_resident));
    add_front(w, TN__NEEDS_SKINNY, EMBEDDED(product_skinny));
    add_front(w, TN__NEEDS_USER, dialect(TN__DIALECT_USER));
}

/* The number of a new stretch of the text; -1 without memory. */
static int add_stretch(whole *w, const char *text)
{
    tn__program_text *to = w->to;
    if (!tn__grow((void **)&to->begin, &w->capacity, (size_t)to->stretch_count + 2, sizeof *to->begin)) {
        w->failed = true;
        return -1;
    }
    to->begin[to->stretch_count++] = w->text.length;
    tn__text_add(&w->text, text);
    to->begin[to->stretch_count] = w->text.length;
    return to->stretch_count - 1;
}

static void add_pieces(whole *w, bool functions)
{
    for (int i = 0; i < w->emitter->piece_count; i++)
        if (w->emitter->piece[i].function == functions)
            w->stretch[i] = add_stretch(w, w->emitter->piece[i].text);
}

static int by_number(const void *a, const void *b) { return *(const int *)a - *(const int *)b; }

/* Lists the stretches that a kernel is made of: of the first ones, which lie in front, those that it needs. */
static bool add_kernel(whole *w, const tn__piece *piece, int number, const int *front_at)
{
    tn__kernel_text *kernel = &w->to->kernel[w->to->kernel_count];
    kernel->name = tn__strdup(piece->name);
    kernel->stretch = tn__alloc(sizeof *kernel->stretch * (size_t)(w->fronts + piece->uses.count + 1));
    w->to->kernel_count++;
    if (!kernel->name || !kernel->stretch)
        return false;
    for (int i = 0; i < w->fronts; i++)
        if (front_at[i] >= 0 && (!w->front[i].needs || w->front[i].needs & piece->needs))
            kernel->stretch[kernel->count++] = front_at[i];
    kernel->own = kernel->count;
    for (int i = 0; i < piece->uses.count; i++)
        kernel->stretch[kernel->count++] = w->stretch[piece->uses.at[i]];
    kernel->stretch[kernel->count++] = w->stretch[number];
    qsort(kernel->stretch + kernel->own, (size_t)(kernel->count - kernel->own), sizeof *kernel->stretch, by_number);
    return true;
}

static bool add_kernels(whole *w, const int *front_at)
{
    const tn__emitter *emitter = w->emitter;
    w->to->kernel = tn__calloc((size_t)emitter->piece_count + 1, sizeof *w->to->kernel);
    bool done = w->to->kernel != NULL;
    for (int i = 0; i < emitter->piece_count && done; i++)
        done = !emitter->piece[i].kernel || add_kernel(w, &emitter->piece[i], i, front_at);
    return done;
}

static void free_emitter(tn__emitter *emitter)
{
    for (int i = 0; i < emitter->piece_count; i++) {
        tn__free(emitter->piece[i].text);
        tn__free(emitter->piece[i].uses.at);
    }
    tn__free(emitter->piece);
    tn__free(emitter->uses.at);
    tn__free(emitter->declared);
    tn__free(emitter->table);
    tn__free(emitter->user);
    memset(emitter, 0, sizeof *emitter);
}

bool tn__emit_finish(tn__emitter *emitter, tn__draft *draft)
{
    whole w = {.emitter = emitter, .to = &draft->text, .failed = emitter->failed,
               .stretch = tn__alloc(sizeof(int) * ((size_t)emitter->piece_count + 1))};
    int front_at[FRONTS];
    for (int i = 0; i < emitter->piece_count; i++)
        w.needs |= emitter->piece[i].needs;
    bool done = w.stretch && !w.failed;
    if (done && emitter->piece_count) {
        add_fronts(&w);
        for (int i = 0; i < w.fronts && !w.failed; i++)
            front_at[i] = !w.front[i].needs || w.front[i].needs & w.needs ? add_stretch(&w, w.front[i].text) : -1;
        add_pieces(&w, true);
        add_pieces(&w, false);
        done = !w.failed && add_kernels(&w, front_at);
    }
    for (int i = 0; i < w.fronts; i++)
        tn__free(w.front[i].text);
    tn__free(w.stretch);
    free_emitter(emitter);
    bool empty = !w.text.data && !w.text.failed;
    if (!empty)
        draft->source = tn__text_take(&w.text);
    return done && (empty || draft->source);
}
