/* SPDX-License-Identifier: MIT */
/* One line of cases.jsonl: the call, and whether its outcome is NumPy's. */
#include "replay.h"

#include <stdio.h>
#include <string.h>

/* Brings the results to the host: errors of the evaluation count, of which a device may tell only then. */
static void evaluate(call *c)
{
    for (int i = 0; i < c->result_count && !c->refused; i++) {
        if (!tn_is_error(c->result[i]) && tn_eval(c->result[i]) == TN_OK)
            c->result[i] = tn_to(c->result[i], tn_cpu());
        if (tn_is_error(c->result[i]))
            refused_by_tanso(c, tn_message_of(c->result[i]));
        if (!tn_ok())
            refused_by_tanso(c, tn_error());
    }
}

/* Says whose refusal it is. */
static const char *refusal(const call *c)
{
    static const char by_tool[] = "refused by the tool: ";
    char *text = case_memory(sizeof by_tool + sizeof c->message);
    return strcat(strcpy(text, c->by_tool ? by_tool : ""), c->message);
}

static outcome run(call *c, const json_t *line, const char *folder, tn_device device, const char **message)
{
    const json_t *args = json_object_get(line, "args"), *kwargs = json_object_get(line, "kwargs");
    if ((args && !json_is_array(args)) || (kwargs && !json_is_object(kwargs)))
        malformed(c, "args is no list, or kwargs no object");
    bool bound = !c->refused && bind_arguments(c, args, kwargs, folder, device);
    if (bound)
        c->row->run(c, c->row);
    if (!tn_ok())
        refused_by_tanso(c, tn_error());
    evaluate(c);
    *message = refusal(c);
    if (c->malformed)
        return FAILED;
    if (json_is_true(json_object_get(line, "raises"))) {
        *message = "NumPy refuses this, Tanso did not";
        return !c->refused ? FAILED : c->by_tool ? REFUSED : PASSED;
    }
    if (c->refused)
        return FAILED;
    const json_t *rtol = json_object_get(line, "rtol"), *atol = json_object_get(line, "atol");
    *message = compare(c, json_object_get(line, "out"), folder, json_number_value(rtol), json_number_value(atol));
    return *message ? FAILED : PASSED;
}

outcome replay_line(const char *text, const char *folder, tn_device device, const char **message)
{
    json_error_t error;
    json_t *line = json_loads(text, 0, &error);
    const char *operation = json_string_value(json_object_get(line, "op"));
    static char copy[1024];
    outcome result = FAILED;
    *message = "";
    if (!operation) {
        snprintf(copy, sizeof copy, "no JSON object with an operation: %s", error.text);
        *message = copy;
    } else {
        call *c = case_memory(sizeof *c), *again = case_memory(sizeof *again);
        c->row = replay_find(operation);
        if (!c->row) {
            result = UNKNOWN;
        } else {
            TN_SCOPE
            {
                result = run(c, line, folder, device, message);
            }
            snprintf(copy, sizeof copy, "%s", *message ? *message : "");
            *message = copy;
            tn_clear_error();
            for (int i = 1; i < EDITIONS && result == FAILED; i++) {
                const char *other;
                *again = (call){.row = c->row};
                set_edition(i);
                TN_SCOPE
                {
                    outcome one = run(again, line, folder, device, &other);
                    if (one == PASSED || one == REFUSED)
                        result = one == PASSED && (numpy_1 || numpy_2_5) ? PASSED_AS_OTHER : one;
                }
                set_edition(0);
                tn_clear_error();
            }
        }
    }
    json_decref(line);
    case_end();
    return result;
}
