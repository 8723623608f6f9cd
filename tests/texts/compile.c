/* SPDX-License-Identifier: MIT */
/*
 * compile_texts FOLDER [--all] [--share K/N]: compiles the kernel texts in FOLDER by NVRTC for three generations, of
 * which none has to be here. compile_texts --there: whether there is an NVRTC that can.
 *
 * Texts with the same prelude become one program, each in a namespace: NVRTC spends 45 ms or more on a prelude, 3 ms on
 * what is behind it, and 25 ms on machine code for a kernel, which is most of it all. So every text is parsed and
 * checked for every generation, and then translated for each but for the parts that a text before it has, too
 * (texts_choose). With --all everything is translated; with --share K/N a part in N, by its hash, for each generation
 * others, and with them the first of each form for one generation: K = 0 to N-1, one after another, make all.
 *
 * Optimised no further than is quick (quickest): cuda.emitted compiles a share as the library does.
 */
#include <dirent.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "backends/cuda/runtime/cuda.h"
#include "core/error.h"
#include "core/memory.h"
#include "texts/parts.h"

#define BYTES_CHECKED    (2 << 20) /* of texts in a program that is only checked */
#define BYTES_TRANSLATED (1 << 18) /* and in one that is translated: some seconds */
#define MOST_WORKERS     64
#define SKIPPED          77

typedef enum depth { CHECKED, CHOSEN, WHOLE, DEPTHS } depth; /* how far a program is compiled, and what of its texts */
static const char *const done[DEPTHS] = {"checked", "translated but for what is there twice", "translated"};

typedef struct program {
    depth depth;
    int generation, first, count; /* texts */
    size_t bytes;
} program;

typedef struct progress { /* shared by the workers */
    atomic_int next, bad;
    _Atomic double seconds[DEPTHS];
} progress;

#define GENERATIONS 3
static const int generations[GENERATIONS] = {80, 90, 100};
static unsigned share, shares = 1; /* of what is translated, which of how many */
static tn__cuda_libraries libraries;
static kernel_text *texts; /* those with one prelude lie together */
static int text_count;
static program *programs;
static int program_count;
static progress *shared;

/* ---- the compiler ---- */

static const char *how_far;
static __typeof__(&nvrtcCompileProgram) nvrtc_compile;

/* In the place of NVRTC's own: what the library compiles by, and more. */
static nvrtcResult compile_with_more(nvrtcProgram p, int count, const char *const *given)
{
    const char *all[32];
    for (int i = 0; i < count; i++)
        all[i] = given[i];
    all[count++] = "-w";
    all[count++] = how_far;
    return nvrtc_compile(p, count, all);
}

/* The option by which a text takes the least time: most of it is for ptxas, which has less to do behind some
 * optimisation; but the generators of random numbers, with no product beside them, take longer to optimise. */
static const char *quickest(depth how, const char *text)
{
    if (how == CHECKED)
        return "--fdevice-syntax-only";
    return strstr(text, "philox") && !strstr(text, "tn_product") ? "--Ofast-compile=max" : "--Ofast-compile=mid";
}

static bool compiles(depth how, int generation, const char *text)
{
    char *image = NULL;
    size_t length = 0;
    struct timespec begin, end;
    how_far = quickest(how, text);
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &begin);
    bool good = tn__cuda_compile(&libraries, generation, text, &image, &length) == TN_OK;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &end);
    double before = shared->seconds[how];
    double took = (double)(end.tv_sec - begin.tv_sec) + 1e-9 * (double)(end.tv_nsec - begin.tv_nsec);
    while (!atomic_compare_exchange_weak(&shared->seconds[how], &before, before + took)) {
    }
    tn__free(image);
    return good;
}

/* ---- programs ---- */

static bool is_for(const kernel_text *text, int generation)
{
    return (generation >= 90 || !text->clusters) && (generation == 90 || text->count || !strstr(text->data, "wgmma"));
}

static bool in_share(uint64_t hash, int generation)
{
    return (hash + (unsigned)generation / 10) % shares == share; /* by 8, 9, 10: others for each */
}

static bool is_chosen(const text_part *part, int generation)
{
    const int forms = generations[(part->hash / shares + share) % GENERATIONS]; /* of all, where all are made anyway */
    return part->wanted && ((part->form && generation == forms) || in_share(part->hash, generation));
}

static size_t chosen_bytes(const kernel_text *text, int generation)
{
    size_t bytes = text->count == 0 && in_share(text->group, generation) ? text->length : 0;
    for (int i = 0; i < text->count; i++)
        bytes += is_chosen(&text->part[i], generation) ? text->part[i].end - text->part[i].begin : 0;
    return bytes;
}

/* Parts that no text before has, with the entry points behind them; loop nests that others call are left empty. */
static void add_chosen(tn__text *to, const kernel_text *text, int generation)
{
    const char *data = text->data;
    bool wanted = false;
    tn__text_addn(to, data + text->prelude, (text->count ? text->part[0].begin : text->length) - text->prelude);
    for (int i = 0; i < text->count; i++) {
        const text_part *part = &text->part[i];
        bool chosen = is_chosen(part, generation);
        wanted |= chosen;
        if (part->entry ? wanted : chosen || !part->body) {
            tn__text_addn(to, data + part->begin, part->end - part->begin);
        } else if (!part->entry) {
            tn__text_addn(to, data + part->begin, part->body - part->begin);
            tn__text_add(to, "{}\n");
        }
        wanted &= !part->entry;
    }
}

/* Other names for a text's entry points, which have no namespace, or an end of that. */
static void rename_entries(tn__text *to, const kernel_text *text, bool begins, int number)
{
    for (int i = 0; i < text->count; i++) {
        const char *name = text->data + text->part[i].name_at;
        int length = (int)text->part[i].name;
        if (text->part[i].entry && begins)
            tn__text_addf(to, "#define %.*s text%d_%.*s\n", length, name, number, length, name);
        else if (text->part[i].entry)
            tn__text_addf(to, "#undef %.*s\n", length, name);
    }
}

/* A text's share of a program, behind the prelude. */
static void add_text(tn__text *to, const kernel_text *text, int number, const program *p)
{
    tn__text_addf(to, "namespace text%d {\n", number);
    rename_entries(to, text, true, number);
    if (p->depth == CHOSEN)
        add_chosen(to, text, p->generation);
    else
        tn__text_addn(to, text->data + text->prelude, text->length - text->prelude);
    rename_entries(to, text, false, number);
    tn__text_add(to, "}\n");
}

static void bad(const char *name, int generation, const char *why)
{
    if (shared->bad++ < 3)
        fprintf(stderr, "%s, sm_%d: %s\n", name, generation, why);
}

/* One by one, each as it is: which of them was it that the compiler says `together` of? */
static void compile_each(const program *p, const char *together)
{
    int before = shared->bad;
    for (int i = p->first; i < p->first + p->count; i++)
        if (is_for(&texts[i], p->generation) && !compiles(p->depth, p->generation, texts[i].data)) {
            bad(texts[i].name, p->generation, tn_error());
            tn_clear_error();
        }
    if (shared->bad == before)
        bad(texts[p->first].name, p->generation, together);
}

static void compile_program(const program *p)
{
    const kernel_text *head = &texts[p->first];
    if (text_is_wrong(head)) { /* is alone */
        if (compiles(CHECKED, p->generation, head->data))
            bad(head->name, p->generation, "a test has made it wrong, and it compiles");
        tn_clear_error();
        return;
    }
    tn__text program = {0};
    bool any = head->count == 0 && is_for(head, p->generation);
    tn__text_addn(&program, head->data, head->prelude);
    for (int i = p->first; i < p->first + p->count; i++)
        if (texts[i].count && is_for(&texts[i], p->generation) &&
            (p->depth != CHOSEN || chosen_bytes(&texts[i], p->generation))) {
            add_text(&program, &texts[i], i, p);
            any = true;
        }
    char *text = tn__text_take(&program);
    if (text == NULL || (any && !compiles(p->depth, p->generation, text))) {
        char *why = strdup(tn_error());
        tn_clear_error();
        compile_each(p, why ? why : "no memory");
        free(why);
    }
    tn__free(text);
}

static bool add_programs(depth how, int generation)
{
    size_t most = how == CHECKED ? BYTES_CHECKED : BYTES_TRANSLATED;
    program *p = NULL;
    for (int i = 0; i < text_count; i++) {
        const kernel_text *text = &texts[i];
        size_t whole = text->length - (text->count ? text->prelude : 0);
        size_t bytes = how == CHOSEN ? chosen_bytes(text, generation) : whole;
        bool wrong = text_is_wrong(text);
        bool translated = text->count == 0 && in_share(text->group, generation); /* wholly, without parts */
        if (how == CHECKED ? translated && !wrong : wrong || bytes == 0)
            continue;
        if (p && !wrong && text->count && texts[p->first].group == text->group && p->bytes + bytes <= most &&
            p->first + p->count <= i) {
            p->count = i + 1 - p->first;
            p->bytes += bytes;
            continue;
        }
        program *more = realloc(programs, (size_t)(program_count + 1) * sizeof *more);
        if (more == NULL)
            return false;
        programs = more;
        p = &programs[program_count++];
        *p = (program){how, generation, i, 1, bytes};
    }
    return true;
}

static int longest_first(const void *a, const void *b)
{
    const program *x = a, *y = b;
    return x->depth != y->depth ? (int)y->depth - (int)x->depth : (x->bytes < y->bytes) - (x->bytes > y->bytes);
}

static void work(void)
{
    for (int i; (i = shared->next++) < program_count;)
        compile_program(&programs[i]);
}

/* By a process a core: the compiler uses one. */
static bool compile_all(void)
{
    long workers = sysconf(_SC_NPROCESSORS_ONLN);
    workers = workers < 1 ? 1 : workers > MOST_WORKERS ? MOST_WORKERS : workers;
    qsort(programs, (size_t)program_count, sizeof *programs, longest_first);
    fflush(NULL);
    for (long w = 0; w < workers; w++)
        if (fork() == 0) {
            work();
            _exit(0);
        }
    int status, lost = 0;
    while (wait(&status) > 0)
        lost += status != 0;
    if (lost)
        fprintf(stderr, "the compiler ended %d of %ld processes\n", lost, workers);
    return lost == 0 && shared->bad == 0;
}

/* ---- the folder ---- */

static char *read_file(const char *folder, const char *name)
{
    char path[4096];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *file = fopen(path, "r");
    if (file == NULL)
        return NULL;
    fseek(file, 0, SEEK_END);
    size_t length = (size_t)ftell(file);
    rewind(file);
    char *data = malloc(length + 1);
    if (data)
        data[fread(data, 1, length, file)] = 0;
    fclose(file);
    return data;
}

static int by_prelude(const void *a, const void *b)
{
    const kernel_text *x = a, *y = b;
    return x->group != y->group ? (x->group < y->group ? -1 : 1) : strcmp(x->name, y->name);
}

static bool read_texts(const char *folder)
{
    DIR *directory = opendir(folder);
    if (directory == NULL)
        return false;
    for (struct dirent *e; (e = readdir(directory));) {
        size_t length = strlen(e->d_name);
        if (length < 3 || strcmp(e->d_name + length - 3, ".cu") != 0)
            continue;
        kernel_text *more = realloc(texts, (size_t)(text_count + 1) * sizeof *more);
        if (more == NULL)
            return false;
        texts = more;
        char *data = read_file(folder, e->d_name);
        if (data == NULL || !text_split(&texts[text_count++], strdup(e->d_name), data))
            return false;
    }
    closedir(directory);
    qsort(texts, (size_t)text_count, sizeof *texts, by_prelude);
    return true;
}

static bool open_compiler(void)
{
    static const char nothing[] = "extern \"C\" __global__ void nothing() {}";
    if (!tn__cuda_open_compiler(&libraries, CUDA_VERSION / 1000)) {
        printf("skipped: libnvrtc is not here\n");
        return false;
    }
    nvrtc_compile = libraries.compiler.nvrtcCompileProgram;
    libraries.compiler.nvrtcCompileProgram = compile_with_more;
    for (int how = 0; how < DEPTHS; how++)
        if (!compiles((depth)how, 90, nothing)) {
            printf("skipped: NVRTC %d.%d does not know %s\n", libraries.compiler_version / 1000,
                   libraries.compiler_version % 1000 / 10, how_far);
            return false;
        }
    return true;
}

static bool read_options(int count, char *const *given, bool *all)
{
    for (int i = 0; i < count; i++) {
        char rest;
        if (strcmp(given[i], "--all") == 0)
            *all = true;
        else if (strcmp(given[i], "--share") != 0 || ++i == count ||
                 sscanf(given[i], "%u/%u%c", &share, &shares, &rest) != 2 || share >= shares)
            return false;
    }
    return true;
}

int main(int argc, char **argv)
{
    bool all = false;
    shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (argc < 2 || shared == MAP_FAILED || !read_options(argc - 2, argv + 2, &all)) {
        fprintf(stderr, "expected: compile_texts --there, or FOLDER [--all] [--share K/N], K from 0 to N - 1\n");
        return 2;
    }
    if (!open_compiler())
        return SKIPPED;
    if (strcmp(argv[1], "--there") == 0)
        return 0;
    if (!read_texts(argv[1]) || !texts_choose(text_count, texts)) {
        fprintf(stderr, "%s: cannot be read\n", argv[1]);
        return 2;
    }
    int parts = 0, wanted = 0, forms = 0;
    for (int i = 0; i < text_count; i++) {
        parts += texts[i].count;
        wanted += texts[i].wanted;
        for (int k = 0; k < texts[i].count; k++)
            forms += texts[i].part[k].form;
    }
    bool fine = true;
    for (int g = 0; g < GENERATIONS; g++)
        fine = fine && add_programs(CHECKED, generations[g]) && add_programs(all ? WHOLE : CHOSEN, generations[g]);
    printf("%d texts with %d loop nests and entry points, %d of which stand for all; %d programs for sm_80, sm_90, "
           "sm_100\n",
           text_count, parts, wanted, program_count);
    if (shares > 1 && !all)
        printf("machine code: share %u of %u (--share %u/%u again), and the first of each of %d forms for one\n",
               share, shares, share, shares, forms);
    fine = fine && text_count > 0 && compile_all();
    for (int how = 0; how < DEPTHS; how++)
        if (shared->seconds[how] >= 1)
            printf("%4.0f s of processor time: %s\n", shared->seconds[how], done[how]);
    printf(fine ? "all compile\n" : "%d do not compile\n", (int)shared->bad);
    return fine ? 0 : 1;
}
