#include "train/report/run_summary.h"

#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/json.h"
#include "train/report/ran_describe.h"

static json_t *describe_ledger(const comm_ledger *ledger, const train_planned *of) {
    static const char *const names[COMM_OPERATIONS] = {"gathered", "reduced",   "control", "sent",
                                                       "received", "exchanged", "summed"};
    const int64_t planned[COMM_OPERATIONS] = {of->gathered, of->reduced,   -1, -1,
                                              of->received, of->exchanged, -1};
    json_t *result = json_object();
    for (int o = 0; o < COMM_OPERATIONS; o++) {
        if (o >= COMM_SEND && !ledger->operation[o].calls) continue; /* a mesh without them */
        json_t *entry = json_pack(
            "{s:I, s:I, s:I, s:f}", "calls", (json_int_t)ledger->operation[o].calls, "bytes",
            (json_int_t)ledger->operation[o].bytes, "crossed",
            (json_int_t)ledger->operation[o].crossed, "seconds", ledger->operation[o].seconds);
        if (planned[o] >= 0)
            json_object_set_new(entry, "planned", json_integer((json_int_t)planned[o]));
        json_object_set_new(result, names[o], entry);
    }
    return result;
}

/* Bytes that steps moved to the first rank; of a mesh also by group. */
static json_t *describe_wire(const train_wire *wire) {
    json_t *result = describe_ledger(&wire->ledger, &wire->planned);
    json_t *groups = json_object();
    for (int i = 0; i < wire->groups; i++)
        json_object_set_new(groups, plan_span_name(wire->of[i].span),
                            describe_ledger(&wire->of[i].ledger, &wire->of[i].planned));
    if (wire->groups > 1) json_object_set(result, "groups", groups);
    json_decref(groups);
    return result;
}

/* Of a rank at the peak of a step. */
static json_t *describe_classes(const train_outcome *o) {
    json_t *classes = json_object();
    for (int c = 0; c < PLAN_CLASSES; c++)
        json_object_set_new(classes, plan_class_name((plan_class)c),
                            json_integer((json_int_t)o->planned_classes[c]));
    return classes;
}

/* A path may be no UTF-8, which JSON cannot hold. */
static json_t *text_or_null(const char *text) {
    json_t *out = json_string(text);
    return out ? out : json_null();
}

/* Of the first rank, in memory: a row each, which add up to process_bytes. Where they are not
 * known, why. */
static int put_resident(json_t *report, const train_resident *of, train_end end) {
    static const char *const early[] = {
        [TRAIN_RUNNING] = "the run has not ended", [TRAIN_FAILED] = "the run failed"};
    const char *why = of->why;
    if (!of->known && !*why) why = early[end] ? early[end] : "the run has not ended";
    if (!of->known) return json_object_set_new(report, "measured_classes_why", text_or_null(why));
    json_t *classes = json_object();
    for (int c = 0; c < PLAN_CLASSES; c++)
        json_object_set_new(classes, plan_class_name((plan_class)c),
                            json_integer((json_int_t)of->classes[c]));
    json_object_set_new(classes, "gaps", json_integer((json_int_t)of->gaps));
    json_object_set_new(classes, "rest", json_integer((json_int_t)of->rest));
    json_object_set_new(report, "process_bytes", json_integer((json_int_t)of->process));
    return json_object_set_new(report, "measured_classes", classes);
}

static json_t *describe(const sifr_config *config, const train_outcome *o, train_end end,
                        const char *why) {
    static const char *const ends[] = {"running", "done", "stopped", "failed"};
    double rate = o->step_seconds > 0 ? (double)o->tokens / o->step_seconds : NAN;
    return json_pack(
        "{s:o, s:s, s:o*, s:I, s:I, s:I, s:o, s:o, s:o, s:I, s:I, s:o, s:o, s:I, s:I, s:I, s:o, "
        "s:i, s:i}",
        "output", text_or_null(config->output), "state", ends[end], "error",
        why ? text_or_null(why) : NULL, "first_step", (json_int_t)o->first_step, "steps",
        (json_int_t)o->steps, "total_steps", (json_int_t)o->total_steps, "loss",
        base_json_finite(o->loss), "eval_loss", base_json_finite(o->eval_loss), "eval_perplexity",
        base_json_finite(o->classifies ? NAN : exp(o->eval_loss)), "tokens", (json_int_t)o->tokens,
        "skipped_steps", (json_int_t)o->skipped, "seconds", base_json_finite(o->seconds),
        "tokens_per_second", base_json_finite(rate), "planned_bytes", (json_int_t)o->planned_bytes,
        "measured_bytes", (json_int_t)o->measured_bytes, "baseline_bytes",
        (json_int_t)o->baseline_bytes, "planned_classes", describe_classes(o), "signal", o->signal,
        "ranks", (int)o->ranks);
}

sifr_status train_summary_text(const sifr_config *config, const train_outcome *outcome,
                               train_end end, const char *why, char **out, sifr_error *error) {
    json_t *report = describe(config, outcome, end, why);
    *out = NULL;
    if (report && put_resident(report, &outcome->resident, end) == 0 &&
        json_object_set_new(report, "ran", train_ran_json(&outcome->ran)) == 0 &&
        json_object_set_new(report, "wire", describe_wire(&outcome->wire)) == 0)
        *out = json_dumps(report, JSON_INDENT(2));
    json_decref(report);
    return *out ? SIFR_OK : base_fail_alloc(error, 4096);
}

/* Where it cannot be written, what an earlier run left goes all the same. */
static sifr_status write_text(const char *output, char *text, sifr_error *error) {
    char path[BASE_PATH_LENGTH];
    size_t size = strlen(text);
    BASE_TRY(base_path_join(path, output, "summary.json", error));
    text[size] = '\n'; /* in the place of the NUL */
    sifr_status status = base_write_file(path, text, size + 1, error);
    if (status != SIFR_OK) unlink(path);
    return status;
}

void train_summary_write(const sifr_config *config, const train_outcome *outcome, train_end end,
                         const char *why, const sifr_log *log) {
    char *text = NULL;
    sifr_error reason = {0};
    sifr_status status = train_summary_text(config, outcome, end, why, &text, &reason);
    if (status == SIFR_OK) status = write_text(config->output, text, &reason);
    if (status != SIFR_OK)
        base_log(log, SIFR_LOG_WARNING, "no summary.json (%s); the run does not need it",
                 reason.message);
    free(text);
}
