/* --fit: a config with the best settings that fit. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "api/plan/plan_report.h"
#include "base/file.h"
#include "base/text.h"
#include "model/released.h"
#include "plan/pass/passes.h"
#include "plan/queries.h"
#include "train/objective/objectives.h"
#include "train/prepare/run_settings.h"

/* "recompute unit", ", tile_tokens 4096" ...; empty if the setting has no effect. */
static const char *setting_text(const plan_choice *row, const config_fit *fit,
                                const plan_settings *s, char out[96]) {
    char value[PLAN_VALUE_LENGTH], bytes[32];
    int64_t number = row->number ? plan_choice_number(row, s) : 1;
    bool tier = fit->kind == CONFIG_FIT_TIER, limit = fit->kind == CONFIG_FIT_BYTES;
    out[0] = '\0';
    plan_choice_text(row, s, value);
    if ((row->traits & PLAN_OF_RANKS && plan_mesh_ranks(&s->mesh, PLAN_WORLD) == 1) || number == 0)
        return out;
    if (row->count == 0 && row->matters && !row->matters(s)) return out;
    if (tier && strcmp(value, "nvme") != 0) return out;
    if (limit && s->step.recompute != SIFR_RECOMPUTE_AUTO) return out;
    if (limit) snprintf(value, sizeof value, "%s", base_format_bytes((uint64_t)number, bytes));
    const char *hole = strstr(fit->says, "%s");
    int before = hole ? (int)(hole - fit->says) : (int)strlen(fit->says);
    snprintf(out, 96, "%.*s%s", before, fit->says, hole ? value : "");
    return out;
}

/* A limit belongs to the setting before it. */
static const char *settings_text(const plan_settings *s, char *out, size_t size) {
    char text[96];
    config_fit fit;
    size_t used = 0;
    out[0] = '\0';
    for (size_t i = 0; i < plan_choice_count(); i++) {
        const plan_choice *row = plan_choice_at(i);
        if (!config_fit_of(row->key, &fit) || !setting_text(row, &fit, s, text)[0]) continue;
        const char *between = fit.kind == CONFIG_FIT_BYTES ? " " : ", ";
        used += (size_t)snprintf(out + used, used < size ? size - used : 0, "%s%s",
                                 used ? between : "", text);
        if (used >= size) break;
    }
    return out;
}

/* All of it fits but what the run saves: no change of the step helps. */
static bool is_of_output(const api_plan_report *r, const plan_outcome *o,
                         const plan_search *search) {
    bool on_disk = !search->disk_bytes || o->nvme_bytes <= search->disk_bytes;
    bool on_host = !search->host_room_bytes || o->host_bytes <= search->host_room_bytes;
    return plan_needed_bytes(o) <= search->room_bytes && on_disk && on_host &&
           !plan_fits_output(&search->output, r->model, &o->settings, o->nvme_bytes);
}

/* What takes less memory and is not chosen, since it trains another thing or needs a disk. */
static const char *others_text(const api_plan_report *r, char *out, size_t size) {
    const sifr_config *c = &r->config;
    bool adapters = c->lora || c->adapter;
    snprintf(out, size, "%s%s", r->search.disk_bytes ? "" : ", or a disk (--nvme)",
             !adapters          ? ", or train adapters (LoRA, QLoRA: docs/lora.md, docs/qlora.md)"
             : !c->quantization ? ", or hold frozen weights in 4 bits (QLoRA: docs/qlora.md)"
                                : "");
    return out;
}

/* Where no step could be planned at all: why, of the config's own, or else of the nearest one. */
static sifr_status refuse_all(const api_plan_report *r, const plan_outcome *least,
                              const plan_search *search, sifr_error *error) {
    plan_settings of[] = {r->asked, least->settings};
    for (int i = 0; i < 2; i++) {
        plan_schedule *s = NULL;
        sifr_error why = {0};
        if (of[i].step.step_order == SIFR_STEP_AUTO) of[i].step.step_order = SIFR_STEP_BATCH;
        sifr_status status = plan_lower(search->model, search->dev, &of[i], &s, &why);
        plan_free(s);
        if (status == SIFR_OK) continue;
        if (status != SIFR_USAGE) return base_fail(error, status, "%s", why.message);
        return base_fail(error, SIFR_USAGE, "--fit: no step can be planned: %s", why.message);
    }
    return base_fail(error, SIFR_USAGE,
                     "--fit: no step could be planned%s; give a smaller train_batch_size or "
                     "--seq-length",
                     search->ended ? " before the search ended at its bound" : "");
}

static sifr_status refuse(const api_plan_report *r, const plan_outcome *least, plan_search *search,
                          sifr_error *error) {
    char text[192], need[32], capacity[32], others[128], shorter[96] = "";
    char disk[API_PLAN_DISK_LENGTH] = "", on_disk[API_PLAN_DISK_LENGTH + 8] = "";
    int64_t longest = 0;
    if (!least->possible) return refuse_all(r, least, search, error);
    if (is_of_output(r, least, search))
        return train_disk_check(&r->disk, &search->output, r->model, &least->settings,
                                least->nvme_bytes, error);
    BASE_TRY(plan_largest(search, &least->settings, plan_set_length, 1, 1,
                          least->settings.step.seq_length - 1, &longest, error));
    if (longest > 0)
        snprintf(shorter, sizeof shorter, "; with it --seq-length %lld fits", (long long)longest);
    if (r->search.disk_bytes) snprintf(on_disk, sizeof on_disk, ", and %s", api_plan_disk(r, disk));
    settings_text(&least->settings, text, sizeof text);
    base_format_bytes((uint64_t)plan_needed_bytes(least), need);
    base_format_bytes((uint64_t)r->limits.room_bytes, capacity);
    return base_fail(error, SIFR_NO_MEMORY,
                     "--fit: nothing fits%s: a rank may take %s (%s)%s, and the nearest settings "
                     "(%s) take %s%s; use more ranks, or more memory per rank%s",
                     search->ended ? " of what was tried before the search ended at its bound" : "",
                     capacity, r->limits.text, on_disk, text, need, shorter,
                     others_text(r, others, sizeof others));
}

/* A tier on the named directory; without a directory nothing is on disk. */
static sifr_status adopt_tier(sifr_config *config, const char *key, const char *directory,
                              const char *tier, sifr_error *error) {
    const char *named = train_named_path(config);
    char path[BASE_PATH_LENGTH];
    if (!named) return SIFR_OK;
    snprintf(path, sizeof path, "%s", named);
    BASE_TRY(config_choose(config, key, tier, error));
    return strcmp(tier, "nvme") == 0 ? config_choose(config, directory, path, error) : SIFR_OK;
}

static sifr_status adopt_setting(sifr_config *config, const plan_choice *row,
                                 const plan_settings *s, sifr_error *error) {
    char text[PLAN_VALUE_LENGTH];
    config_fit fit;
    if (!config_fit_of(row->key, &fit)) return SIFR_OK;
    plan_choice_text(row, s, text);
    if (fit.kind == CONFIG_FIT_TIER)
        return adopt_tier(config, row->key, fit.directory, text, error);
    if (fit.kind == CONFIG_FIT_BYTES && s->step.recompute != SIFR_RECOMPUTE_AUTO)
        return config_gives(config, row->key) ? config_choose(config, row->key, "auto", error)
                                              : SIFR_OK;
    bool says = !(row->traits & PLAN_OF_RANKS) || plan_is_worth_saying(row, s) ||
                config_gives(config, row->key);
    return says ? config_choose(config, row->key, text, error) : SIFR_OK;
}

static sifr_status adopt(sifr_config *config, const plan_settings *s, int64_t world_size,
                         sifr_error *error) {
    static const char interval[] = "pipeline.activation_checkpoint_interval";
    for (size_t i = 0; i < plan_choice_count(); i++)
        BASE_TRY(adopt_setting(config, plan_choice_at(i), s, error));
    if (config_gives(config, interval)) /* says the same as recompute, which is chosen */
        BASE_TRY(config_choose(config, interval, "0", error));
    return config_resolve(config, world_size, error);
}

/* Plans the written config once more, as a run will, to check that it gives the chosen step. */
static sifr_status verify(api_plan_report *r, const plan_outcome *best, sifr_error *error) {
    sifr_settings options = train_step_settings(&r->config, r->length);
    plan_settings settings = engine_plan_settings(&options, NULL);
    plan_outcome again;
    plan_search search = r->search;
    settings.mesh = best->settings.mesh;
    search.any_order = false;
    BASE_TRY(plan_try(&search, &settings, &again, error));
    if (again.total_bytes == best->total_bytes) return SIFR_OK;
    return base_fail(error, SIFR_FAILED,
                     "--fit: the config takes %lld bytes, not %lld as chosen; this is a bug in "
                     "sifr, please report it",
                     (long long)again.total_bytes, (long long)best->total_bytes);
}

static void say_outcome(const api_plan_report *r, const char *name, const plan_outcome *o) {
    FILE *to = r->to;
    char text[192], need[32], capacity[32], bytes[32], disk[64] = "";
    fprintf(to, "%-12s %s\n", name, settings_text(&o->settings, text, sizeof text));
    if (!o->possible) {
        fprintf(to, "%-12s cannot be planned\n", "");
        return;
    }
    if (o->nvme_bytes)
        snprintf(disk, sizeof disk, " and %s on disk%s",
                 base_format_bytes((uint64_t)o->nvme_bytes, bytes),
                 r->search.disk_bytes && o->nvme_bytes > r->search.disk_bytes ? ", too much" : "");
    fprintf(to, "%-12s takes %s of the %s that a rank may take%s%s; predicted %.3g s a step\n", "",
            base_format_bytes((uint64_t)plan_needed_bytes(o), need),
            base_format_bytes((uint64_t)r->limits.room_bytes, capacity), disk,
            o->fits ? "" : ": does not fit", o->predicted.step_seconds);
}

/* What is chosen may decide bits, so by which prices is said. */
static void say_prices(const api_plan_report *r) {
    const plan_outcome *best = &r->best;
    const char *file = r->machine_file ? r->machine_file : "",
               *measured = r->measured ? "prices measured on this machine" : "",
               *and = r->machine_file && r->measured ? " and " : "", *order = "";
    if (r->measured && best->settings.step.gradient_accumulation_steps > 1)
        order = ", step_order by those of a usual one";
    fprintf(r->to,
            "%-12s %s%s%s%s: elsewhere other settings may be chosen, and a micro batch or an order "
            "may decide bits; the config holds what was chosen\n",
            "chosen by", file, and, measured, order);
}

/* Codes change bits, so they are proposed, and not chosen. */
static void say_codes(const api_plan_report *r) {
    const sifr_zero *best = &r->best.settings.step.zero, *with = &r->coded.settings.step.zero;
    bool weights = with->quantized_weights && !best->quantized_weights;
    bool sums = with->quantized_gradients && !best->quantized_gradients;
    if (!r->coded.possible) return;
    fprintf(r->to,
            "%-12s %s%s%s: predicted %.3g s a step; not chosen, as bits are other ones:%s%s%s\n",
            "would pay", weights ? "zero_quantized_weights" : "", weights && sums ? " and " : "",
            sums ? "zero_quantized_gradients" : "", r->coded.predicted.step_seconds,
            weights ? " of gathers the same on any number of ranks" : "",
            weights && sums ? "," : "", sums ? " of gradients on these ranks and hosts alone" : "");
}

/* Nor is what makes sums inexact. */
static void say_compressed(const api_plan_report *r) {
    const plan_outcome *o = &r->compressed;
    if (!o->possible) return;
    fprintf(r->to,
            "%-12s compression powerSGD with matrix_approximation_rank %d at ZeRO stage %d: "
            "predicted %.3g s a compressed step; not chosen, as sums of gradients are not exact\n",
            "would pay", (int)o->settings.step.compression.rank, o->settings.step.zero.stage,
            o->predicted.step_seconds);
}

/* A config names the model as it was given, and a run needs the weights. */
static void say_folder(const api_plan_report *r) {
    const char *model = r->config.model, *spelt;
    if (access(model, F_OK) == 0 || !model_released_config(model, &spelt)) return;
    fprintf(r->to,
            "%-12s known by its name alone: give a run --model FOLDER, as `hf download %s "
            "--local-dir FOLDER` fetches it\n",
            "model", spelt);
}

void api_plan_print_fit(const api_plan_report *r) {
    say_outcome(r, "chosen", &r->best);
    say_codes(r);
    say_compressed(r);
    say_outcome(r, "as given", &r->given);
    fprintf(r->to, "%-12s the least predicted time of what fits, of %d plans; %s\n", "why",
            (int)r->fitted.tried, r->limits.text);
    if (r->fitted.ended)
        fprintf(r->to,
                "%-12s the search ended at its bound, and other settings were not tried: a smaller "
                "train_batch_size leaves fewer\n",
                "not all");
    say_prices(r);
    say_folder(r);
}

/* Gathers in codes, gradients, and both; kept is the fastest, if it saves a fiftieth of a step. */
static sifr_status try_codes(api_plan_report *r, sifr_error *error) {
    double least = 0.98 * r->best.predicted.step_seconds;
    plan_search search = r->search;
    search.any_order = false;
    for (int n = 1; n < 4; n++) {
        plan_settings settings = r->best.settings;
        plan_outcome tried;
        settings.step.zero.quantized_weights |= n & 1 && plan_cuts(&settings, PLAN_CUT_WEIGHTS);
        settings.step.zero.quantized_gradients |= n & 2 && plan_cuts(&settings, PLAN_CUT_SUMS);
        BASE_TRY(plan_try(&search, &settings, &tried, error));
        if (!tried.fits || tried.predicted.step_seconds >= least) continue;
        least = tried.predicted.step_seconds;
        r->coded = tried;
    }
    return SIFR_OK;
}

/* Likewise of PowerSGD, at each stage: gathers of parameters are not compressed. */
static sifr_status try_compression(api_plan_report *r, sifr_error *error) {
    enum { PROPOSED_RANK = 2 };
    double least = 0.98 * r->best.predicted.step_seconds;
    plan_search search = r->search;
    if (r->best.settings.step.compression.type != SIFR_COMPRESSION_NONE) return SIFR_OK;
    search.any_order = false;
    for (int32_t stage = 0; stage < API_PLAN_STAGES; stage++) {
        plan_settings settings = r->best.settings;
        plan_outcome tried;
        plan_choose(&search, &settings, PLAN_CHOICE_STAGE, stage);
        settings.step.compression.type = SIFR_POWER_SGD;
        settings.step.compression.rank = PROPOSED_RANK;
        if (!plan_compresses(&settings)) return SIFR_OK;
        BASE_TRY(plan_try(&search, &settings, &tried, error));
        if (!tried.fits || tried.predicted.step_seconds >= least) continue;
        least = tried.predicted.step_seconds;
        r->compressed = tried;
    }
    return SIFR_OK;
}

static bool opens_axes(const api_plan_report *r) {
    return r->search.any_stages || r->search.any_tensors || r->search.any_contexts;
}

/* A rank's sequences of a step, however they are cut; more where an axis is to be chosen. */
static sifr_status check_share(const api_plan_report *r, bool last, sifr_error *error) {
    const sifr_settings *step = &r->asked.step;
    if (opens_axes(r) && !last) return SIFR_OK;
    return train_objective_check_sequences(
        &r->config, step->micro_batch_size * step->gradient_accumulation_steps, error);
}

/* The config's own step, which no run takes where it cuts a pair. */
static sifr_status try_given(api_plan_report *r, sifr_error *error) {
    BASE_TRY(plan_try(&r->fitted, &r->asked, &r->given, error));
    if (train_objective_check_sequences(&r->config, r->asked.step.micro_batch_size, NULL) !=
        SIFR_OK)
        r->given.possible = r->given.fits = false;
    return SIFR_OK;
}

/* Stage 3 is tried, so what a run of it would be refused with is said. */
static sifr_status check_near(const api_plan_report *r, sifr_error *error) {
    plan_settings s = r->asked;
    int32_t world = plan_mesh_ranks(&s.mesh, PLAN_WORLD);
    int32_t place = plan_mesh_place(&s.mesh, PLAN_WORLD);
    if (plan_mesh_ranks(&s.mesh, PLAN_STATE) == 1) return SIFR_OK;
    s.step.zero.stage = 3;
    BASE_TRY(plan_mesh_of(&s.step, world, place, &s.mesh, error));
    return plan_mesh_check_near(&s.mesh, r->machine.ranks_per_host, error);
}

/* Where the stage is open, or is one in which they act, keys of ZeRO++ keep acting. */
static bool keeps_codes(const api_plan_report *r) {
    return !config_gives(&r->config, "zero_optimization.stage") ||
           plan_cuts(&r->asked, PLAN_CUT_WEIGHTS);
}

sifr_status api_plan_fit(api_plan_report *r, sifr_error *error) {
    plan_search *search = &r->fitted;
    *search = r->search;
    search->keeps_codes = keeps_codes(r);
    BASE_TRY(check_share(r, false, error));
    if (search->keeps_codes && !opens_axes(r)) BASE_TRY(check_near(r, error));
    BASE_TRY(try_given(r, error));
    search->most_work = PLAN_FIT_WORK;
    search->any_order = true; /* of each setting the order that a run chooses of it */
    search->tried = 0;
    BASE_TRY(plan_fit(search, &r->asked, &r->best, error));
    search->most_work = 0; /* the largest length, if nothing fits, has a bound of its own */
    if (!r->best.possible) {
        BASE_TRY(check_share(r, true, error));
        if (search->keeps_codes) BASE_TRY(check_near(r, error));
    }
    if (!r->best.fits) return refuse(r, &r->best, search, error);
    BASE_TRY(try_codes(r, error));
    BASE_TRY(try_compression(r, error));
    BASE_TRY(adopt(&r->config, &r->best.settings, r->config.world_size, error));
    return verify(r, &r->best, error);
}
