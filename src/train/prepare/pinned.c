#include "train/prepare/pinned.h"

#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "engine/check/step_order.h"
#include "train/prepare/fingerprint.h"
#include "train/report/notices.h"

static const char key[] = "step_order";
/* Of a step with one micro batch, which is the same list in both orders. */
static const char either[] = "either";

static void read_order(const json_t *manifest, train_pinned *out) {
    const json_t *state = json_object_get(manifest, "state");
    const char *name = json_string_value(json_object_get(state, key));
    out->step = json_integer_value(json_object_get(manifest, "step"));
    out->is_written = name != NULL;
    for (int o = SIFR_STEP_BATCH; name && o <= SIFR_STEP_UNIT; o++) {
        if (strcmp(name, engine_order_name((sifr_step_order)o)) != 0) continue;
        out->has_order = true;
        out->order = (sifr_step_order)o;
    }
}

/* 0: there are none, or memory ran out. */
static uint64_t hash_sums(const json_t *sums) {
    char *text = sums ? json_dumps(sums, JSON_ENCODE_ANY | JSON_COMPACT | JSON_SORT_KEYS) : NULL;
    uint64_t hash = text ? base_hash(text, strlen(text)) : 0;
    free(text);
    return hash;
}

static void read_sums(const json_t *manifest, train_pinned *out) {
    const json_t *may_differ = json_object_get(manifest, "notes");
    out->sums = hash_sums(json_object_get(may_differ, TRAIN_FINGERPRINT_SUMS));
    out->has_sums = out->sums != 0;
}

sifr_status train_pinned_read(train_state *t, train_pinned *out, sifr_error *error) {
    json_t *manifest = NULL;
    sifr_status status = SIFR_OK;
    *out = (train_pinned){.step = -1};
    if (!t->config->resume) return SIFR_OK;
    if (t->first) status = checkpoint_peek(t->config->output, &manifest, error);
    if (manifest) read_order(manifest, out), read_sums(manifest, out);
    json_decref(manifest);
    BASE_TRY(train_agree(t, status, error));
    return comm_broadcast(t->group, 0, out, sizeof *out, error);
}

bool train_pinned_put(json_t *state, const plan_settings *settings) {
    bool one = settings->step.gradient_accumulation_steps == 1;
    const char *name = one ? either : engine_order_name(settings->step.step_order);
    return json_object_set_new(state, key, json_string(name)) == 0;
}

static bool sums_with(const train_pinned *pinned, const plan_settings *settings,
                      sifr_step_order order) {
    plan_settings one = *settings;
    one.step.step_order = order;
    json_t *sums = pinned->has_sums ? train_fingerprint_sums(&one) : NULL;
    bool same = sums && hash_sums(sums) == pinned->sums;
    json_decref(sums);
    return same;
}

bool train_pinned_same_sums(const train_pinned *pinned, const plan_settings *settings) {
    return sums_with(pinned, settings, settings->step.step_order);
}

bool train_pinned_order(const train_pinned *pinned, const plan_settings *settings,
                        sifr_step_order *out) {
    bool batch = sums_with(pinned, settings, SIFR_STEP_BATCH);
    bool unit = sums_with(pinned, settings, SIFR_STEP_UNIT);
    *out = pinned->order;
    if (batch == unit) return pinned->has_order;
    *out = batch ? SIFR_STEP_BATCH : SIFR_STEP_UNIT;
    return true;
}

void train_pinned_say_other(const train_host *host, const train_pinned *pinned,
                            const plan_settings *settings) {
    bool one = settings->step.gradient_accumulation_steps == 1;
    sifr_step_order order = settings->step.step_order, other;
    if (one || !train_pinned_order(pinned, settings, &other) || other == order) return;
    if (train_pinned_same_sums(pinned, settings) || !sums_with(pinned, settings, other)) return;
    base_log(host->log, SIFR_LOG_WARNING,
             "step_order %s adds gradients otherwise than the run of checkpoint-%lld did; "
             "step_order %s has that run's bits",
             engine_order_name(order), (long long)pinned->step, engine_order_name(other));
}

void train_pinned_say_unknown(const train_host *host, const train_pinned *pinned,
                              const plan_settings *settings) {
    plan_settings other = *settings;
    bool unit = settings->step.step_order == SIFR_STEP_UNIT;
    other.step.step_order = unit ? SIFR_STEP_BATCH : SIFR_STEP_UNIT;
    bool one = settings->step.gradient_accumulation_steps == 1,
         alike = train_bits_are_anywhere(settings) && train_bits_are_anywhere(&other);
    if (pinned->step < 0 || pinned->is_written || one || train_pinned_same_sums(pinned, settings))
        return;
    const char *name = engine_order_name(settings->step.step_order);
    if (alike)
        train_say(host,
                  "step_order %s: checkpoint-%lld does not say which it had; both have the same "
                  "bits here",
                  name, (long long)pinned->step);
    else
        base_log(host->log, SIFR_LOG_WARNING,
                 "step_order %s: checkpoint-%lld does not say which it had; if that was %s, "
                 "results will differ from an unchanged run",
                 name, (long long)pinned->step, engine_order_name(other.step.step_order));
}
