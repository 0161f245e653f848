#include "api/api_run_report.h"

#include <jansson.h>
#include <math.h>

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

static json_t *describe(const sifr_config *config, const train_outcome *o) {
    return json_pack(
        "{s:s, s:I, s:I, s:I, s:o, s:o, s:o, s:I, s:I, s:o, s:o, s:I, s:I, s:I, s:i, s:i}",
        "output", config->output, "first_step", (json_int_t)o->first_step, "steps",
        (json_int_t)o->steps, "total_steps", (json_int_t)o->total_steps, "loss",
        base_json_finite(o->loss), "eval_loss", base_json_finite(o->eval_loss), "eval_perplexity",
        base_json_finite(o->classifies ? NAN : exp(o->eval_loss)), "tokens", (json_int_t)o->tokens,
        "skipped_steps", (json_int_t)o->skipped, "seconds", base_json_finite(o->seconds),
        "tokens_per_second", base_json_finite((double)o->tokens / o->step_seconds), "planned_bytes",
        (json_int_t)o->planned_bytes, "measured_bytes", (json_int_t)o->measured_bytes,
        "baseline_bytes", (json_int_t)o->baseline_bytes, "signal", o->signal, "ranks",
        (int)o->ranks);
}

sifr_status api_run_report(const sifr_config *config, const train_outcome *outcome, char **out,
                           sifr_error *error) {
    json_t *report = describe(config, outcome);
    *out = NULL;
    if (report && json_object_set_new(report, "ran", train_ran_json(&outcome->ran)) == 0 &&
        json_object_set_new(report, "wire", describe_wire(&outcome->wire)) == 0)
        *out = json_dumps(report, JSON_INDENT(2));
    json_decref(report);
    return *out ? SIFR_OK : base_fail_alloc(error, 4096);
}
