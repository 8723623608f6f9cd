/* SPDX-License-Identifier: MIT */
/* tanso train */
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "cli/command.h"
#include "core/log.h"
#include "tn_build_config.h"
#include "train/run.h"

#ifdef TN_HAVE_JANSSON
#define WRITTEN "model, log and learning curve"
#define SAVES   true
#else
#define WRITTEN "log and learning curve"
#define SAVES   false
#endif

#define SNAPSHOT "snapshot.safetensors"

static const tn__flag flags[] = {
    {"--model", "WORDS",
     "layers, as \"linear:1000 sigmoid linear:10\"; words: linear:OUT sigmoid\n"
     "relu tanh gelu softplus leaky_relu:SLOPE dropout:RATIO layer_norm ...;\n"
     "conv:OUT,WINDOW,pad=1 bn maxpool:2 gap residual(...) repeat:N(...); or\n"
     "lenet5 alexnet vgg16 vgg19 vgg_cifar googlenet resnet18 to resnet152 mobilenet_v2\n"
     "unet",
     TN__FLAG_TEXT, .offset = offsetof(tn__options, model)},
    {"--optimizer", "WORDS",
     "sgd, momentum, nesterov, adam, adamw or another of tanso/optim.h's,\n"
     "with settings as \"sgd:lr=0.01,clip_norm=1\"",
     TN__FLAG_TEXT, .offset = offsetof(tn__options, optimizer)},
    {"--lr", "RATE",
     "learning rate: instead of that in --optimizer, or of the dataset's own optimizer",
     TN__FLAG_TEXT, .offset = offsetof(tn__options, rate)},
    {"--schedule", "NAME[:SET]",
     "of the learning rate: constant (the default with --optimizer, or with another by\n"
     "--extend), linear or cosine, which fall to 0 over the epochs, or another of those below",
     TN__FLAG_TEXT, .offset = offsetof(tn__options, schedule)},
    {"--extend", "NAME[:SET]",
     "an extension of those below, as early-stopping:patience=5; may be repeated",
     TN__FLAG_LIST, .offset = offsetof(tn__options, extend)},
    {"--log", "FILE[,SET]", "write means of all that is observed into DIR/FILE: --extend log:file=FILE",
     TN__FLAG_LIST, .offset = offsetof(tn__options, log)},
    {"--plot", "KEYS[,SET]",
     "draw values, as main/loss,validation/main/loss, into DIR/plot.svg: --extend plot:KEYS",
     TN__FLAG_LIST, .offset = offsetof(tn__options, plot)},
    {"--epochs", "N", "rounds through the training samples", TN__FLAG_COUNT, .offset = offsetof(tn__options, epochs)},
    {"--batch", "N", "samples a minibatch", TN__FLAG_COUNT, .offset = offsetof(tn__options, batch)},
    {"--device", "NAMES", "auto (the default: a GPU if there is one), cpu, cuda:N; cuda:0,cuda:1 or all (GPUs): "
     "several, which share each minibatch", TN__FLAG_TEXT,
     .offset = offsetof(tn__options, device)},
    {"--shard", "N",
     "of several ranks (mpirun): 1 shares the optimizer's states and updates out\n"
     "between them, so that each keeps a part, 2 gradients, too, 3 parameters,\n"
     "too; 0 (the default): each keeps all",
     TN__FLAG_NUMBER, .offset = offsetof(tn__options, shard), .most = 3},
    {"--seed", "N", "of first weights, shuffling and dropout (default 0)", TN__FLAG_NUMBER,
     .offset = offsetof(tn__options, seed)},
    {"--out", "DIR", "folder for the results (default runs/DATASET)", TN__FLAG_TEXT,
     .offset = offsetof(tn__options, out)},
    {"--resume", NULL,
     "go on where the run in DIR stopped, bit for bit; settings not given\n"
     "are that run's, --epochs may be raised",
     TN__FLAG_SWITCH, .offset = offsetof(tn__options, resume)},
    {"--synthetic", NULL, "a computed stand-in of the dataset's shape: synthetic:DATASET", TN__FLAG_SWITCH,
     .offset = offsetof(tn__options, synthetic)},
    {"--quiet", NULL, "say only the result", TN__FLAG_SWITCH, .offset = offsetof(tn__options, quiet)},
};

_Static_assert(sizeof flags / sizeof *flags < TN__FLAGS_MOST, "--help needs a place, too");

static volatile sig_atomic_t interrupted;

static void interrupt(int signal_number) { interrupted = signal_number; }

static const int caught[] = {SIGINT, SIGTERM};

/* What signals did before a run. */
typedef struct signals {
    struct sigaction action[TN__COUNT_OF(caught)];
    stack_t stack;
} signals;

/* The first signal ends the run after its step; a second one ends the program as ever. The handler has a stack of its
 * own: oneDNN's products keep their workspace where the stack pointer is, and a signal's frame would be written into
 * it. */
static void catch_signals(signals *before)
{
    static char stack[1 << 16];
    interrupted = 0;
    sigaltstack(&(stack_t){.ss_sp = stack, .ss_size = sizeof stack}, &before->stack);
    struct sigaction action = {.sa_handler = interrupt, .sa_flags = (int)SA_RESETHAND | SA_RESTART | SA_ONSTACK};
    sigemptyset(&action.sa_mask);
    for (int i = 0; i < TN__COUNT_OF(caught); i++)
        sigaction(caught[i], &action, &before->action[i]);
}

/* Behind a run nothing looks at `interrupted`: a signal that comes while the program ends has to end it. */
static void let_signals(const signals *before)
{
    for (int i = 0; i < TN__COUNT_OF(caught); i++)
        sigaction(caught[i], &before->action[i], NULL);
    sigaltstack(&before->stack, NULL);
}

/* runs/DATASET, a folder's own name for a folder. */
static void default_out(const char *dataset, char *out, size_t size)
{
    size_t length = strlen(dataset);
    while (length > 1 && dataset[length - 1] == '/')
        length--;
    size_t start = length;
    while (start > 0 && dataset[start - 1] != '/')
        start--;
    if (start == length || strncmp(dataset + start, "..", length - start) == 0)
        snprintf(out, size, "runs/folder");
    else
        snprintf(out, size, "runs/%.*s", (int)(length - start), dataset + start);
}

static const tn_recipe *recipe_of(const char *dataset)
{
    int i = 0;
    while (tn_train_recipe(i)->dataset[0] != '*' && strcmp(tn_train_recipe(i)->dataset, dataset) != 0)
        i++;
    return tn_train_recipe(i);
}

/* "adam:lr=0.001,beta1=0.5" with another rate, to be freed; NULL: no memory. */
static char *with_rate(const char *words, const char *rate)
{
    size_t name = strcspn(words, ":"), size = strlen(words) + strlen(rate) + sizeof ":lr=,";
    char *text = malloc(size);
    if (!text)
        return NULL;
    int length = snprintf(text, size, "%.*s:lr=%s", (int)name, words, rate);
    for (const char *at = words + name; *at;) {
        size_t setting = strcspn(++at, ",");
        if (setting > 0 && strncmp(at, "lr=", 3) != 0)
            length += snprintf(text + length, size - (size_t)length, ",%.*s", (int)setting, at);
        at += setting;
    }
    return text;
}

/* What --lr says of the optimizer, in place of what --optimizer says or the dataset's recipe has, whose schedule stays
 * unless there is one among the extensions. *optimizer is to be freed. */
static int apply_rate(const tn__options *options, const char *extend, char **optimizer, const char **schedule)
{
    const char *words = options->optimizer;
    *schedule = options->schedule;
    *optimizer = NULL;
    if (!options->rate)
        return TN__EXIT_DONE;
    char *end;
    double rate = strtod(options->rate, &end);
    if (end == options->rate || *end || !(rate >= 0) || isinf(rate) || strpbrk(options->rate, "xX \t"))
        return tn__usage_error("train", "--lr takes a number of 0 or more, not '%s'", options->rate);
    if (!words) {
        const tn_recipe *recipe = recipe_of(options->arguments[0]);
        words = recipe->optimizer;
        if (!*schedule && !tn__named_sets_rate(extend))
            *schedule = recipe->schedule;
    }
    *optimizer = with_rate(words, options->rate);
    return *optimizer ? TN__EXIT_DONE : tn__cli_failure("train", "out of memory");
}

static bool holds(const char *out, const char *name)
{
    char path[4200];
    snprintf(path, sizeof path, "%s/%s", out, name);
    return access(path, F_OK) == 0;
}

/* Results of an earlier run are replaced after the first epoch: time to stop, and to know how to keep them. */
static void tell_of_earlier(const char *out)
{
    if (holds(out, "log.jsonl"))
        fprintf(stderr,
                "%s holds an earlier run, whose files this one replaces (--resume goes on with it, --out names another "
                "folder)\n",
                out);
}

/* Words that make no model or optimizer are wrong usage, said before anything is loaded. */
static int check_words(const tn__options *options)
{
    if (options->out && !*options->out)
        return tn__usage_error("train", "--out needs the name of a folder for the results, not ''");
    static const char fits[] = ":*"; /* what the dataset asks for, which is not known yet: any number stands for it */
    char *model = strdup(options->model ? options->model : "linear:*");
    if (!model)
        return tn__cli_failure("train", "out of memory");
    size_t length = strlen(model), tail = sizeof fits - 1;
    if (length >= tail && strcmp(model + length - tail, fits) == 0)
        model[length - 1] = '1';
    tn_layer *net = tn_layer_parse(model);
    free(model);
    tn_optimizer *optimizer = NULL;
    if (tn_layer_status(net) == TN_OK)
        optimizer = tn_optimizer_parse(options->optimizer ? options->optimizer : "sgd", net);
    const char *flag = !optimizer ? "--model" : tn_optimizer_status(optimizer) != TN_OK ? "--optimizer" : NULL;
    tn_optimizer_free(optimizer);
    tn_layer_free(net);
    if (!flag && tn_train_check(options->schedule, NULL) != TN_OK)
        flag = "--schedule";
    return flag ? tn__config_error("train", flag) : TN__EXIT_DONE;
}

/* Adds what one flag was given, each checked by itself. */
static int add_words(char **words, const char *flag, const char *before, const tn__list *list)
{
    for (int i = 0; i < list->count; i++) {
        const char *value = list->items[i];
        size_t length = *words ? strlen(*words) : 0, size = length + strlen(before) + strlen(value) + 2;
        if (!*value || strchr(value, ' '))
            return tn__usage_error("train", "%s takes words without blanks, not '%s'", flag, value);
        char *longer = realloc(*words, size);
        if (!longer)
            return tn__cli_failure("train", "out of memory");
        *words = longer;
        snprintf(longer + length, size - length, "%s%s%s", length ? " " : "", before, value);
        if (tn_train_check(NULL, longer + length + (length ? 1 : 0)) != TN_OK)
            return tn__config_error("train", flag);
    }
    return TN__EXIT_DONE;
}

/* What --extend, --log and --plot ask for, in *words, to be freed; NULL: nothing. */
static int extension_words(const tn__options *options, char **words)
{
    *words = NULL;
    int code = add_words(words, "--extend", "", &options->extend);
    if (code == TN__EXIT_DONE)
        code = add_words(words, "--log", "log:file=", &options->log);
    return code == TN__EXIT_DONE ? add_words(words, "--plot", "plot:", &options->plot) : code;
}

/* The whole command, with what a snapshot does not know. */
static void say_how_to_go_on(const tn__options *options, const char *out, int ranks)
{
    const char *launched = getenv("TANSO_LAUNCHED") ? getenv("WORLD_SIZE") : NULL;
    fprintf(stderr, "To go on from its last snapshot: ");
    if (ranks > 1)
        fprintf(stderr, "%s -n %d ", launched && atoi(launched) == ranks ? "tanso launch" : "mpirun", ranks);
    fprintf(stderr, "tanso train %s --out %s --resume", options->arguments[0], out);
    if (options->device)
        fprintf(stderr, " --device %s", options->device);
    if (options->shard)
        fprintf(stderr, " --shard %llu", (unsigned long long)options->shard);
    fprintf(stderr, "\n");
}

/* `saved`: the snapshot in the folder is the run's. */
static int stopped(const tn__options *options, const char *out, int ranks, bool saved, int signal_number)
{
    tn__cli_failure("train", "%s", tn__error_text("train"));
    if (SAVES && saved)
        say_how_to_go_on(options, out, ranks);
    else
        fprintf(stderr, "It has made no snapshot to go on from.\n");
    return signal_number == SIGINT ? TN__EXIT_INTERRUPTED : 128 + signal_number;
}

/* Whether 'tanso launch' has begun this run again, which has made a snapshot before. */
static bool begun_again(const char *out)
{
    const char *restarts = getenv("TANSO_RESTARTS"), *launched = getenv("TANSO_LAUNCHED");
    char path[4200];
    struct stat file;
    snprintf(path, sizeof path, "%s/%s", out, SNAPSHOT);
    return restarts && atoi(restarts) > 0 && launched && stat(path, &file) == 0 && file.st_mtime >= atoll(launched);
}

/* The last test's figures are not those of a model that was trained further, within an epoch. */
static void say_result(const tn_epoch *last, const char *out)
{
    if (last->epoch == 0)
        printf("no epoch is done; ");
    else if (isfinite(last->test_accuracy))
        printf("test accuracy %.2f%% after %d epoch%s; ", 100 * last->test_accuracy, last->epoch,
               last->epoch == 1 ? "" : "s");
    else
        printf("test loss %.6g after %d epoch%s; ", last->test_loss, last->epoch, last->epoch == 1 ? "" : "s");
    printf("%s in %s\n", last->epoch ? WRITTEN " are" : "what there is of " WRITTEN " is", out);
    if (SAVES && last->further)
        printf("the model was trained further, %lld step%s into epoch %d: 'tanso eval %s' tests it\n",
               (long long)last->further, last->further == 1 ? "" : "s", last->epoch + 1, out);
}

static int run_with(const tn__options *options, const char *optimizer, const char *schedule, const char *extend)
{
    tn_device devices[TN__DEVICES_MOST + 1];
    char out[4096];
    int code;
    if (options->quiet)
        tn__log_quiet();
    if ((code = tn__devices_option("train", options->device, devices)) != TN__EXIT_DONE)
        return code;
    if (options->out && snprintf(out, sizeof out, "%s", options->out) >= (int)sizeof out)
        return tn__cli_failure("train", "the path '%.60s...' of --out is too long", options->out);
    if (!options->out)
        default_out(options->arguments[0], out, sizeof out);
    tn_comm *comm = tn_comm_world();
    if (tn_comm_status(comm) != TN_OK)
        return tn__library_error("train");
    int ranks = tn_comm_size(comm); /* which one that has failed does not know */
    bool first = tn_comm_rank(comm) == 0; /* which alone writes and speaks */
    if (!getenv("TANSO_THREADS") && tn_comm_local_size(comm) > 1)
        tn_set_threads(tn_threads() > tn_comm_local_size(comm) ? tn_threads() / tn_comm_local_size(comm) : 1);
    if (!options->device && devices[0].kind == TN_DEVICE_CUDA) /* as many as there are take one each */
        devices[0] = tn_cuda(tn_comm_local_rank(comm) % tn_device_count(TN_DEVICE_CUDA));
    bool resume = options->resume || begun_again(out);
    if (!resume && !options->quiet && first)
        tell_of_earlier(out);
    bool earlier = !resume && holds(out, SNAPSHOT); /* stays until an epoch is done */
    signals before;
    catch_signals(&before);
    tn_epoch last = {0};
    /* By hand, as what was not asked for is zero. */
    const tn_train_opts opts = {.model = options->model, .optimizer = optimizer,
                                .schedule = schedule, .extend = extend, .epochs = (int)options->epochs,
                                .batch = options->batch,
                                .seed = options->seed, .devices = devices, .out = out, .resume = resume,
                                .comm = comm, .shard = (int)options->shard,
                                .report = options->quiet ? NULL : stdout, .stop = &interrupted};
    tn_status status = tn_train_with(options->arguments[0], &opts, &last);
    let_signals(&before);
    if (status != TN_OK)
        return interrupted ? stopped(options, out, ranks, holds(out, SNAPSHOT) && (last.epoch || !earlier),
                                     interrupted)
                           : tn__library_error("train");
    if (!first)
        return TN__EXIT_DONE;
    say_result(&last, out);
    return TN__EXIT_DONE;
}

static int run(const tn__options *options)
{
    char *optimizer = NULL, *extend = NULL;
    const char *schedule = NULL;
    int code = check_words(options);
    if (code == TN__EXIT_DONE)
        code = extension_words(options, &extend);
    if (code == TN__EXIT_DONE)
        code = apply_rate(options, extend, &optimizer, &schedule);
    char stand_in[64], *arguments[] = {stand_in};
    tn__options of = *options;
    if (options->synthetic) {
        tn__stand_in(options->arguments[0], stand_in, sizeof stand_in);
        of.arguments = arguments;
    }
    if (code == TN__EXIT_DONE)
        code = run_with(&of, optimizer ? optimizer : options->optimizer, schedule, extend);
    free(optimizer);
    free(extend);
    return code;
}

/* A row a part, with its settings. */
static void parts(bool schedules)
{
    const tn_train_part *part;
    for (int i = 0; (part = tn_train_part_at(i)); i++)
        if (part->schedules == schedules)
            printf("  %-*s%s\n%s%s%s", 26, part->name, part->text, *part->settings ? "      " : "",
                   part->settings, *part->settings ? "\n" : "");
}

static void more_help(void)
{
    printf("\nextensions, with their settings after a colon (KEY: main/loss, main/accuracy, validation/main/loss,\n"
           "validation/main/accuracy, or what another extension observes; every: 500it, 2ep or 30s):\n");
    parts(false);
    printf("\nschedules, also as extensions for another attribute; t counts the calls, by every:\n");
    parts(true);
    printf("\ndefaults:\n");
    const tn_recipe *recipe;
    for (int i = 0; (recipe = tn_train_recipe(i)); i++)
        printf("  %-15s --model \"%s\"\n  %-15s --optimizer %s --schedule %s --epochs %d --batch %lld\n",
               recipe->dataset[0] == '*' ? "a folder" : recipe->dataset, recipe->model, "", recipe->optimizer,
               recipe->schedule, recipe->epochs, (long long)recipe->batch);
    printf("  (a last linear:*, or a model such as resnet18, has as many outputs as there are classes, or values a\n"
           "  target)\n");
}

const tn__command tn__command_train = {
    .name = "train",
    .arguments = "DATASET",
    .summary = "train a network on a dataset",
    .text = "Trains a network and writes model.safetensors, log.jsonl (a line an epoch), curve.svg (the\n"
            "learning curve) and snapshot.safetensors (to resume from) into a folder. DATASET is digits,\n"
            "mnist, fashion-mnist, kmnist, cifar10, cifar100, svhn, ptb (or synthetic:cifar10, a computed\n"
            "stand-in), spiral, sine, or a folder of IDX files named like MNIST's.",
    .examples = "  tanso train digits\n"
                "  mpirun -n 4 tanso train mnist\n"
                "  tanso train mnist --model \"linear:1000 sigmoid linear:10\" --optimizer sgd:lr=0.01\n"
                "  tanso train mnist --lr 0.05\n"
                "  tanso train mnist --epochs 100 --extend early-stopping:patience=5 --extend best-model\n"
                "  tanso train digits --schedule step:gamma=0.5,step=10 --plot main/loss,validation/main/loss\n"
                "  tanso train mnist --epochs 20 --resume\n",
    .flags = flags,
    .flag_count = TN__COUNT_OF(flags),
    .least = 1,
    .most = 1,
    .run = run,
    .more_help = more_help,
};
