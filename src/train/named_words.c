/* SPDX-License-Identifier: MIT */
/* Words that name extensions and schedules, looked up in the table of named.c and given to a run's trainer. */
#include <string.h>
#include "train/named.h"

#define OPERATION "train"

static bool fits(const tn__named_part *row, bool schedule) { return !schedule || row->part.schedules; }

static tn_status unknown(const char *name, bool schedule)
{
    const char *names[64];
    int count = 0;
    tn__text all = {0};
    for (int i = 0; i < tn__named_part_count; i++)
        if (fits(&tn__named_parts[i], schedule)) {
            tn__text_addf(&all, "%s%s", count ? ", " : "", tn__named_parts[i].part.name);
            names[count++] = tn__named_parts[i].part.name;
        }
    const char *near = tn__nearest_name(name, names, count);
    tn_status status = tn__fail(TN_ERR_NAME, OPERATION, "there is no %s '%s'%s%s%s are %s",
                                schedule ? "schedule" : "extension", name, near ? ": did you mean '" : "",
                                near ? near : "", near ? "'? There" : "; there", all.data ? all.data : "");
    tn__free(all.data);
    return status;
}

static const tn__named_part *find(const char *name, bool schedule)
{
    for (int i = 0; i < tn__named_part_count; i++)
        if (strcmp(tn__named_parts[i].part.name, name) == 0 && fits(&tn__named_parts[i], schedule))
            return &tn__named_parts[i];
    return NULL;
}

/* ---- one word ---- */

static tn_status check_extension(const tn_extension *made)
{
    if (!made || tn_extension_status(made) == TN_OK)
        return TN_OK;
    return made->is_static ? tn__fail_memory(OPERATION, sizeof *made) : tn__error_raise(made->error);
}

static tn_status check_trigger(const tn_trigger *trigger) { return trigger ? tn__trigger_raise(trigger) : TN_OK; }

static tn_status take_stop(tn__run *run, tn__making *m)
{
    if (!m->stop)
        return TN_OK;
    if (run->stopper_count == TN__STOPPERS_MOST)
        return tn__fail(TN_ERR_VALUE, OPERATION, "%s is given more than %d times", m->settings->owner,
                        TN__STOPPERS_MOST);
    run->stoppers[run->stopper_count++] = m->stop;
    m->stop = NULL;
    return TN_OK;
}

static tn_status take_snapshot(tn__run *run, tn__making *m)
{
    if (!m->snapshot_every)
        return TN_OK;
    if (run->snapshot_every)
        return tn__fail(TN_ERR_VALUE, OPERATION, "%s is given twice", m->settings->owner);
    run->snapshot_every = m->snapshot_every;
    m->snapshot_every = NULL;
    return TN_OK;
}

/* Gives the run what was made; takes the extension and its trigger over in any case. */
static tn_status take(tn__run *run, tn__making *m, tn_extension *made)
{
    tn_status status = take_stop(run, m);
    if (status == TN_OK)
        status = take_snapshot(run, m);
    if (!made || status != TN_OK) {
        tn_extension_free(made);
        tn_trigger_free(m->trigger);
        return status;
    }
    tn_extend_opts opts = {.trigger = m->trigger};
    return tn_extend_with(run->trainer, made, &opts);
}

static tn_status check_file(const tn__run *run, const tn__named_part *row, tn__settings *s)
{
    const char *file = row->writes ? tn__settings_text(s, "file", NULL) : NULL;
    if (row->writes && run && !run->out)
        return tn__fail(TN_ERR_VALUE, OPERATION, "%s writes into the folder of the run, and `out` is NULL", s->owner);
    if (file && tn__output_reserved(file))
        return tn__fail(TN_ERR_VALUE, OPERATION, "%s: '%s' is a file that each run has: name another one", s->owner,
                        file);
    return TN_OK;
}

/* Makes what a row says of these settings; a NULL run only checks them. */
static tn_status add_row(tn__run *run, const tn__named_part *row, const char *settings)
{
    tn__settings s;
    tn__making m = {.run = run, .settings = &s};
    tn__settings_read(&s, row->part.name, settings);
    tn_extension *made = row->make(&m);
    if (!row->own_every && (row->every || strstr(row->part.settings, "every")))
        m.trigger = tn__settings_trigger(&s, "every", m.every ? m.every : row->every);
    tn_status status = tn__settings_done(&s);
    if (status == TN_OK)
        status = check_file(run, row, &s);
    if (status == TN_OK)
        status = check_extension(made);
    if (status == TN_OK)
        status = check_trigger(m.trigger);
    if (status == TN_OK)
        status = check_trigger(m.stop);
    if (status == TN_OK && run) {
        status = take(run, &m, made);
    } else {
        tn_extension_free(made);
        tn_trigger_free(m.trigger);
    }
    tn_trigger_free(m.stop);
    tn_trigger_free(m.snapshot_every);
    tn__settings_free(&s);
    return status;
}

static tn_status add_word(tn__run *run, char *word, bool schedule)
{
    char *settings = strchr(word, ':');
    if (settings)
        *settings++ = '\0';
    const tn__named_part *row = find(word, schedule);
    if (row && run && run->follows && (row->writes || row->reads_log) && !row->gathers)
        return TN_OK; /* files and lines are another rank's */
    return row ? add_row(run, row, settings) : unknown(word, schedule);
}

/* ---- lists of words ---- */

/* Whether the next word of a list is of a row. */
static bool is_word(const char *word, const char *name)
{
    size_t length = strlen(name);
    return strncmp(word, name, length) == 0 && (word[length] == ':' || word[length] == ' ' || !word[length]);
}

static bool names_log(const char *word) { return is_word(word, "log"); }

static bool reads_log(const char *word)
{
    bool reads = false;
    for (int i = 0; i < tn__named_part_count; i++)
        reads |= tn__named_parts[i].reads_log && is_word(word, tn__named_parts[i].part.name);
    return reads;
}

/* A schedule of the learning rate, not of another attribute. */
static bool sets_rate(const char *word)
{
    bool schedules = false;
    for (int i = 0; i < tn__named_part_count; i++)
        schedules |= tn__named_parts[i].part.schedules && is_word(word, tn__named_parts[i].part.name);
    static const char setting[] = "attribute=";
    const char *of = memmem(word, strcspn(word, " "), setting, strlen(setting));
    of = of ? of + strlen(setting) : "lr";
    return schedules && strcspn(of, ", ") == 2 && strncmp(of, "lr", 2) == 0;
}

/* How many of a list's words are such. */
static int count_words(const char *list, bool (*is)(const char *word))
{
    int count = 0;
    for (const char *at = list; *(at += strspn(at, " ")); at += strcspn(at, " "))
        count += is(at);
    return count;
}

/* Logs, or all words but them: what reads a log needs that to be there. */
static tn_status add_words(tn__run *run, const char *list, bool logs)
{
    tn_status status = TN_OK;
    for (const char *at = list; status == TN_OK && *(at += strspn(at, " ")); at += strcspn(at, " ")) {
        if (names_log(at) != logs)
            continue;
        char *word = tn__format("%.*s", (int)strcspn(at, " "), at);
        status = word ? add_word(run, word, false) : tn__fail_memory(OPERATION, strlen(at));
        tn__free(word);
    }
    return status;
}

tn_status tn__named_extend(tn__run *run, const char *schedule, const char *extend)
{
    char *word = tn__strdup(schedule ? schedule : "constant");
    tn_status status = word ? add_word(run, word, true) : tn__fail_memory(OPERATION, 64);
    tn__free(word);
    const char *list = extend ? extend : "";
    if (status == TN_OK)
        status = add_words(run, list, true);
    tn_log_report_opts unwritten = {.file = ""};
    if (status == TN_OK && run && count_words(list, reads_log) && !count_words(list, names_log))
        status = tn_extend_with(run->trainer, tn_log_report_with(&unwritten), NULL);
    return status == TN_OK ? add_words(run, list, false) : status;
}

bool tn__named_sets_rate(const char *extend) { return extend && count_words(extend, sets_rate); }

tn_status tn_train_check(const char *schedule, const char *extend)
{
    TN__NO_PLACE();
    return tn__named_extend(NULL, schedule, extend);
}
