#include "plan/search.h"

#include "base/checked.h"

/* By how much the order of units must be quicker. */
static const double order_gain = 0.01;

plan_order plan_better_order(const bool fits[2], const double seconds[2]) {
    bool quicker = seconds[PLAN_UNIT] < (1 - order_gain) * seconds[PLAN_BATCH];
    bool unit = fits[PLAN_UNIT] && (quicker || !fits[PLAN_BATCH]);
    return unit ? PLAN_UNIT : PLAN_BATCH;
}

static void take_size(const plan_search *search, const plan_schedule *s, plan_outcome *out) {
    *out = (plan_outcome){.settings = s->settings,
                          .possible = true,
                          .total_bytes = s->total_bytes,
                          .host_bytes = s->host_bytes,
                          .nvme_bytes = s->nvme_bytes};
    bool on_disk = search->disk_bytes == 0 || s->nvme_bytes <= search->disk_bytes;
    bool on_host = search->host_room_bytes == 0 || s->host_bytes <= search->host_room_bytes;
    out->fits = s->total_bytes <= search->room_bytes && on_host && on_disk;
    for (int c = 0; c < PLAN_CLASSES; c++) out->largest_bytes[c] = s->largest_bytes[c];
}

sifr_status plan_assess(const plan_search *search, const plan_schedule *s, plan_outcome *out,
                        sifr_error *error) {
    take_size(search, s, out);
    plan_wire(s, &out->gathered, &out->reduced);
    plan_wire_calls(s, &out->gathers, &out->reductions);
    return plan_predict(s, search->machine, &out->predicted, NULL, error);
}

void plan_limit(const plan_search *search, plan_settings *settings) {
    if (settings->recompute != PLAN_RECOMPUTE_AUTO) return;
    settings->room_bytes = settings->activation_bytes > 0 ? 0 : search->room_bytes;
}

/* Makes *s of settings; NULL where no such step can be planned. */
static sifr_status lower(plan_search *search, const plan_settings *settings, plan_schedule **s,
                         sifr_error *error) {
    sifr_error why = {0};
    *s = NULL;
    search->lowered += settings->micro_batches;
    sifr_status status = plan_lower(search->model, search->dev, settings, s, &why);
    if (status == SIFR_OK || status == SIFR_USAGE) return SIFR_OK;
    return base_fail(error, status, "%s", why.message);
}

/* What is kept within limits takes no less than nothing kept, which is soon planned: where that
 * does not fit, or is all that a size asks, it is the answer. */
static sifr_status try_least(plan_search *search, const plan_settings *settings, plan_outcome *out,
                             bool *enough, sifr_error *error) {
    plan_settings least = *settings;
    plan_schedule *s;
    least.recompute = PLAN_RECOMPUTE_UNIT;
    BASE_TRY(lower(search, &least, &s, error));
    *enough = true;
    if (!s) return SIFR_OK;
    take_size(search, s, out);
    plan_free(s);
    if (settings->activation_bytes == 0) return SIFR_OK;
    out->fits &= out->largest_bytes[PLAN_ACTIVATIONS] <= settings->activation_bytes;
    *enough = !out->fits;
    return SIFR_OK;
}

/* Which steps get their time and their traffic; what they take is all that a size asks. */
typedef enum pricing { PRICE_NONE, PRICE_FITTING, PRICE_ALL } pricing;

static sifr_status try_order(plan_search *search, const plan_settings *settings, pricing priced,
                             plan_outcome *out, sifr_error *error) {
    plan_schedule *s;
    plan_settings one = *settings;
    bool enough = false;
    search->tried++;
    plan_limit(search, &one);
    *out = (plan_outcome){.settings = one, .total_bytes = INT64_MAX};
    if (!priced && one.recompute == PLAN_RECOMPUTE_AUTO)
        BASE_TRY(try_least(search, &one, out, &enough, error));
    if (enough) return SIFR_OK;
    BASE_TRY(lower(search, &one, &s, error));
    if (!s) return SIFR_OK;
    sifr_status status = SIFR_OK;
    take_size(search, s, out);
    if (priced == PRICE_ALL || (priced == PRICE_FITTING && out->fits))
        status = plan_assess(search, s, out, error);
    plan_free(s);
    return status;
}

static sifr_status try_any(plan_search *search, const plan_settings *settings, pricing priced,
                           plan_outcome *out, sifr_error *error) {
    plan_outcome of[2];
    bool fits[2];
    double seconds[2];
    plan_settings one = *settings;
    if (search->any_order) one.order = PLAN_BATCH;
    if (!search->any_order || settings->micro_batches == 1)
        return try_order(search, &one, priced, out, error);
    for (int o = 0; o < 2; o++) {
        one.order = (plan_order)o;
        BASE_TRY(try_order(search, &one, priced, &of[o], error));
        fits[o] = of[o].fits;
        seconds[o] = of[o].predicted.step_seconds;
        if (!priced && fits[o]) break;
    }
    *out = of[priced ? plan_better_order(fits, seconds) : fits[0] ? 0 : 1];
    if (!priced && !out->fits && of[0].total_bytes < out->total_bytes) *out = of[0];
    return SIFR_OK;
}

sifr_status plan_try(plan_search *search, const plan_settings *settings, plan_outcome *out,
                     sifr_error *error) {
    return try_any(search, settings, PRICE_ALL, out, error);
}

sifr_status plan_try_fitting(plan_search *search, const plan_settings *settings, plan_outcome *out,
                             sifr_error *error) {
    return try_any(search, settings, PRICE_FITTING, out, error);
}

sifr_status plan_try_size(plan_search *search, const plan_settings *settings, plan_outcome *out,
                          sifr_error *error) {
    int32_t tried = search->tried;
    sifr_status status = try_any(search, settings, PRICE_NONE, out, error);
    search->tried = tried;
    return status;
}

void plan_set_sequences(plan_settings *settings, int64_t value) {
    settings->sequences = value;
}

void plan_set_length(plan_settings *settings, int64_t value) {
    settings->length = value;
}

/* What a search for the largest value knows: everything up to `fits` does, from `too_large` on
 * nothing does. Of the last values that could be planned, what they take. */
typedef struct plan_bracket {
    int64_t fits, too_large;
    int64_t value[2], bytes[2];
    int points;
} plan_bracket;

static void note_point(plan_bracket *b, int64_t value, int64_t bytes) {
    b->value[0] = b->value[1];
    b->bytes[0] = b->bytes[1];
    b->value[1] = value;
    b->bytes[1] = bytes;
    b->points++;
}

/* Where the line through the last two values meets `room`. Sizes are nearly straight lines, so that
 * is mostly the answer; where it does not help, each other step halves. */
static int64_t next_value(const plan_bracket *b, int64_t room, int step) {
    int64_t half = b->fits + (b->too_large - b->fits) / 2, guess = half;
    double rise = (double)b->bytes[1] - (double)b->bytes[0];
    double run = (double)b->value[1] - (double)b->value[0];
    if (b->points >= 2 && run != 0 && rise / run > 0 && (step < 8 || step % 2)) {
        double at = (double)b->value[1] + ((double)room - (double)b->bytes[1]) * run / rise;
        guess = at < 9e18 ? (int64_t)at : INT64_MAX;
    } else if (b->points < 2 && b->points > 0 && b->fits == b->value[1]) {
        guess = b->fits < INT64_MAX / 2 ? 2 * b->fits : half;
    }
    return base_min_i64(base_max_i64(guess, b->fits + 1), b->too_large - 1);
}

sifr_status plan_largest(plan_search *search, const plan_settings *settings, plan_setter *set,
                         int64_t first, int64_t last, int64_t *out, sifr_error *error) {
    plan_bracket b = {.fits = first - 1, .too_large = last + 1};
    int64_t value = first;
    for (int step = 0; b.too_large - b.fits > 1; step++) {
        plan_settings one = *settings;
        plan_outcome outcome;
        set(&one, value);
        BASE_TRY(try_any(search, &one, PRICE_NONE, &outcome, error));
        if (outcome.possible) note_point(&b, value, outcome.total_bytes);
        if (outcome.fits)
            b.fits = value;
        else
            b.too_large = value;
        if (b.too_large - b.fits > 1) value = next_value(&b, search->room_bytes, step);
    }
    *out = b.fits;
    return SIFR_OK;
}
