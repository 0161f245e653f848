#include "train/report/notices.h"

#include <stdio.h>
#include <string.h>

#include "base/checked.h"
#include "base/file.h"
#include "plan/queries.h"
#include "train/report/events.h"

enum { REASON_LENGTH = 160 };

/* The sum over the global batch is one tree made by halving. Sums over ranks keep to the same tree
 * if each rank's part is one of its lower branches (a power of two of ranks), or, if every micro
 * batch is reduced by itself, if the sum over micro batches is its upper part. Copies of the state
 * are above both: their number must be a power of two. Sums over context ranks are below all where
 * a micro batch is reduced at once; elsewhere they are above a rank's micro batches. `reason`: what
 * breaks this, "" if nothing does. */
static void find_reason(const plan_settings *s, char reason[REASON_LENGTH]) {
    bool narrow = plan_converts_gradients(s);
    int32_t ranks = plan_mesh_ranks(&s->mesh, PLAN_DATA), neighbours = plan_batch_neighbours(s);
    int32_t copies = plan_mesh_ranks(&s->mesh, PLAN_REPLICAS);
    int32_t contexts = plan_mesh_ranks(&s->mesh, PLAN_CONTEXTS), shards = ranks / copies;
    bool across_first = neighbours > 1;
    bool at_once = plan_cuts(s, PLAN_CUT_SUMS) && s->step.step_order == SIFR_STEP_BATCH;
    reason[0] = 0;
    if (plan_compresses(s))
        snprintf(reason, REASON_LENGTH, "gradients are compressed (powerSGD) after %lld steps",
                 (long long)s->step.compression.start);
    else if (s->step.gradient_order == SIFR_GRADIENT_SEQUENTIAL)
        snprintf(reason, REASON_LENGTH, "gradient_order is sequential");
    else if (plan_quantises_sums(s))
        snprintf(reason, REASON_LENGTH, "gradients travel in 4 bits (zero_quantized_gradients)");
    else if (narrow)
        snprintf(reason, REASON_LENGTH, "gradients are reduced in %s (communication_data_type)",
                 base_dtype_name(device_dtype_of(s->step.communication_data_type)));
    else if (contexts > 1 && !at_once)
        snprintf(reason, REASON_LENGTH,
                 "sums over context ranks follow those over a rank's micro batches, unless at "
                 "stage 2 or 3 in step_order batch");
    else if (contexts > 1 && !base_is_power_of_two(shards))
        snprintf(reason, REASON_LENGTH, "%d shards are not a power of two", (int)shards);
    else if (across_first && !base_is_power_of_two(s->step.gradient_accumulation_steps))
        snprintf(reason, REASON_LENGTH,
                 "at stage %d in step_order batch, %d accumulation steps are not a power of two",
                 (int)s->step.zero.stage, (int)s->step.gradient_accumulation_steps);
    else if (across_first && !base_is_power_of_two(copies))
        snprintf(reason, REASON_LENGTH, "%d replicas are not a power of two", (int)copies);
    else if (!across_first && !base_is_power_of_two(ranks))
        snprintf(reason, REASON_LENGTH, "%d is not a power of two", (int)ranks);
}

bool train_bits_are_anywhere(const plan_settings *s) {
    char reason[REASON_LENGTH];
    find_reason(s, reason);
    return !reason[0];
}

/* "2 context ranks", "2 context x 4 tensor ranks": those that share a batch. */
static const char *sharing_text(int32_t contexts, int32_t tensors, char out[64]) {
    size_t used = 0;
    if (contexts > 1)
        used = (size_t)snprintf(out, 64, "%d context%s", (int)contexts, tensors > 1 ? " x " : "");
    if (tensors > 1) used += (size_t)snprintf(out + used, 64 - used, "%d tensor", (int)tensors);
    snprintf(out + used, 64 - used, " ranks");
    return out;
}

char *train_bits_class(const plan_settings *s, char *out, size_t size) {
    char reason[REASON_LENGTH];
    int32_t ranks = plan_mesh_ranks(&s->mesh, PLAN_DATA),
            copies = plan_mesh_ranks(&s->mesh, PLAN_REPLICAS);
    int32_t tensors = plan_mesh_ranks(&s->mesh, PLAN_TENSORS);
    int32_t contexts = plan_mesh_ranks(&s->mesh, PLAN_CONTEXTS);
    char sharing[64];
    find_reason(s, reason);
    sharing_text(contexts, tensors, sharing);
    if (contexts > 1 && !reason[0])
        snprintf(out, size,
                 "the same on 1, 2, 4, 8 ... times %s with this micro batch size (%lld) and kind "
                 "of machine; %s are rounded otherwise than without them",
                 sharing, (long long)s->step.micro_batch_size,
                 tensors > 1 ? "sums over tokens and over tensor ranks"
                             : "gradients that are added over tokens");
    else if (s->step.mesh.tp_exact && !reason[0])
        snprintf(out, size,
                 "the same on 1, 2, 4, 8 ... ranks, and with every number of tensor ranks up to "
                 "tp_exact (%d), with this micro batch size (%lld) and kind of machine",
                 (int)s->step.mesh.tp_exact, (long long)s->step.micro_batch_size);
    else if (tensors > 1 && !reason[0])
        snprintf(out, size,
                 "the same on 1, 2, 4, 8 ... times %s with this micro batch size (%lld) and kind "
                 "of machine; sums over tensor ranks are rounded otherwise than without them",
                 sharing, (long long)s->step.micro_batch_size);
    else if (reason[0] && contexts * tensors > 1 && ranks == 1)
        snprintf(out, size, "reproducible with %s only: %s", sharing, reason);
    else if (reason[0] && contexts * tensors > 1)
        snprintf(out, size, "reproducible with %d%s times %s only: %s", (int)ranks,
                 copies > 1 ? " ranks of this shard_size" : "", sharing, reason);
    else if (reason[0])
        snprintf(out, size, "reproducible with %d rank%s%s only: %s", (int)ranks,
                 ranks == 1 ? "" : "s", copies > 1 ? " of this shard_size" : "", reason);
    else
        snprintf(out, size,
                 "the same on 1, 2, 4, 8 ... ranks with this micro batch size (%lld) and kind of "
                 "machine",
                 (long long)s->step.micro_batch_size);
    return out;
}

int64_t train_steps_without_rate(const config_lr_schedule *schedule, int64_t total) {
    int64_t steps = 0;
    bool warms = schedule->kind == CONFIG_LR_WARMUP || schedule->kind == CONFIG_LR_WARMUP_DECAY ||
                 schedule->kind == CONFIG_LR_WARMUP_COSINE ||
                 schedule->kind >= CONFIG_LR_TRAINER_LINEAR;
    while (warms && steps < total && config_lr_at(schedule, steps - 1) == 0) steps++;
    return steps;
}

static void say_rate(const train_host *host, const config_lr_schedule *schedule, int64_t total) {
    int64_t steps = train_steps_without_rate(schedule, total);
    bool trainer = schedule->kind >= CONFIG_LR_TRAINER_LINEAR;
    const char *where = trainer ? "the Hugging Face Trainer" : "DeepSpeed";
    if (steps == 0 || steps == total) return;
    if (steps == 1)
        train_say(host,
                  "warm-up: the first step has learning rate 0, as in %s: it changes no weight",
                  where);
    else
        train_say(host,
                  "warm-up: the first %lld steps have learning rate 0, as in %s: they change no "
                  "weight",
                  (long long)steps, where);
}

/* Services that a config asks for, and what brings them a run's files. */
static void say_services(const train_host *host, const sifr_config *config) {
    static const char *const services[][3] = {
        {"wandb", "Weights & Biases", "its package reads metrics.jsonl"},
        {"comet", "Comet", "its package reads metrics.jsonl"},
        {"swanlab", "SwanLab", "`swanlab convert` reads the files of tensorboard"},
    };
    for (size_t i = 0; i < sizeof services / sizeof *services; i++)
        if (config_gives_section(config, services[i][0]))
            train_say(host, "%s: sifr sends nothing to %s; %s (docs/monitoring.md)", services[i][0],
                      services[i][1], services[i][2]);
}

/* Whether the name of a folder leads out of the one that it is put behind. */
static bool leads_out(const char *name) {
    int depth = 0;
    for (const char *at = name; *at && depth >= 0;) {
        size_t length = strcspn(at, "/");
        bool up = length == 2 && memcmp(at, "..", 2) == 0, here = length == 1 && *at == '.';
        depth += up ? -1 : length == 0 || here ? 0 : 1;
        at += length + (at[length] == '/');
    }
    return *name == '/' || depth < 0;
}

/* As DeepSpeed, a job_name is joined to output_path, whatever it is. */
static void say_folder(const train_host *host, const char *section, const config_monitor *m) {
    char folder[BASE_PATH_LENGTH];
    if (!m->enabled || train_events_path(m->output_path, m->job_name, folder, NULL) != SIFR_OK)
        return;
    train_say(host, "%s: files in %s%s", section, *folder ? folder : ".",
              leads_out(m->job_name) ? ", which job_name puts outside of output_path, as DeepSpeed "
                                       "does"
                                     : "");
}

static void say_ignored(const train_host *host, const sifr_config *config) {
    char paths[400] = "";
    size_t used = 0, i = 0;
    for (const char *path; (path = config_ignored(config, i)) != NULL; i++) {
        if (used + strlen(path) + 2 >= sizeof paths) break;
        used += (size_t)snprintf(paths + used, sizeof paths - used, "%s%s", i ? ", " : "", path);
    }
    if (i == 0) return;
    train_say(host, "ignored because their names begin with _: %s%s", paths,
              config_ignored(config, i) ? ", ..." : "");
}

static void say_line(void *user, const char *line) {
    train_say(user, "%s", line);
}

/* Keys that DeepSpeed has no longer, and that act here. */
static void say_removed(const train_host *host, const sifr_config *config) {
    static const char key[] = "zero_optimization.mics_shard_size";
    int32_t size = config->step.mesh.shard_size;
    if (!config_gives(config, key) || size <= 0) return;
    train_say(host,
              "%s %d: DeepSpeed took MiCS out in 0.19.8; here the key still acts, as "
              "sifr.shard_size does",
              key, (int)size);
}

/* Where the gathers of stage 3 come from, if not all from everywhere. */
static void say_near(const train_host *host, const plan_mesh *mesh) {
    if (mesh->near == 0) return;
    train_say(host,
              "zero_hpz_partition_size %d: a unit's first gather of a step comes from all %d ranks "
              "that share the state, later ones from %d neighbours, which keep a second copy until "
              "then; no bit changes",
              (int)mesh->near, (int)plan_mesh_ranks(mesh, PLAN_STATE), (int)mesh->near);
}

/* The class of exactness that gathers have. */
static void say_quantised(const train_host *host, const plan_schedule *s) {
    bool asked =
        s->settings.step.zero.quantized_weights && plan_cuts(&s->settings, PLAN_CUT_WEIGHTS);
    if (!asked) return;
    if (!plan_quantises_some(s))
        train_say(host,
                  "zero_quantized_weights has no effect: all parameters stay whole on each rank "
                  "(stage3_param_persistence_threshold), or are held as codes");
    else
        train_say(
            host,
            "zero_quantized_weights: gathers carry 8 bits a parameter: other bits than without, "
            "the same on any number of ranks");
}

/* And that of sums of gradients. */
static void say_quantised_sums(const train_host *host, const plan_settings *s) {
    char hops[96] = "among all ranks at once";
    if (!plan_quantises_sums(s)) return;
    if (s->mesh.host > 0)
        snprintf(hops, sizeof hops, "among %d ranks of each host, then between hosts",
                 (int)s->mesh.host);
    train_say(host,
              "zero_quantized_gradients: gradients travel in 4 bits, %s: other bits than without, "
              "the same from run to run on these ranks and hosts",
              hops);
}

/* Why PowerSGD is asked for and compresses nothing. */
static void say_uncompressed(const train_host *host, const plan_schedule *s,
                             const sifr_compression *asked) {
    plan_settings one = s->settings;
    int64_t compressed, matrices;
    one.step.compression = *asked;
    plan_count_compressed(s->model, &one, &compressed, &matrices);
    if (compressed)
        train_say(host, "compression powerSGD has no effect: one rank has all gradients");
    else
        train_say(host,
                  "compression powerSGD has no effect: at rank %lld and min_compression_rate %g, "
                  "none of %lld matrices is compressed",
                  (long long)asked->rank, asked->min_compression_rate, (long long)matrices);
}

static void say_compressed(const train_host *host, const plan_schedule *schedule,
                           const sifr_compression *asked) {
    const plan_settings *s = &schedule->settings;
    const sifr_compression *c = &s->step.compression;
    int64_t compressed, matrices;
    if (asked->type == SIFR_COMPRESSION_NONE) return;
    if (!plan_compresses(s)) {
        say_uncompressed(host, schedule, asked);
        return;
    }
    plan_count_compressed(schedule->model, s, &compressed, &matrices);
    if (s->step.zero.stage >= 2)
        train_say(host,
                  "compression powerSGD: gradients stay whole on each rank at ZeRO stage %d, too, "
                  "since what a step has not sent of them is kept",
                  (int)s->step.zero.stage);
    train_say(host,
              "compression powerSGD: after %lld steps, sums of gradients of %lld of %lld matrices "
              "are made of factors of rank %lld: other bits than without, and other ones on each "
              "number of ranks",
              (long long)c->start, (long long)compressed, (long long)matrices, (long long)c->rank);
}

static void say_decay(const train_host *host, const sifr_optimizer *o) {
    const char *groups = o->group_count ? ", where no group gives another" : "";
    if (!(o->weight_decay > 0)) return;
    if (o->no_decay == SIFR_NO_DECAY_TRANSFORMERS)
        train_say(host,
                  "weight_decay %g applies to the trained weights that are neither biases nor of "
                  "norms, as under the Hugging Face Trainer%s",
                  o->weight_decay, groups);
    else
        train_say(host,
                  "weight_decay %g applies to every trained weight, including norms and biases, as "
                  "in DeepSpeed; no_decay \"transformers\" leaves those out, as the Hugging Face "
                  "Trainer does%s",
                  o->weight_decay, groups);
}

void train_say_notices(const train_host *host, const sifr_config *config,
                       const plan_schedule *schedule, int64_t first_step, int64_t total_steps) {
    const plan_settings *settings = &schedule->settings;
    char bits[256];
    train_say(host, "bits: %s", train_bits_class(settings, bits, sizeof bits));
    if (!config_gives(config, "gradient_clipping"))
        train_say(host,
                  "gradient_clipping %g: the config gives none, so this is the Hugging Face "
                  "Trainer's default; DeepSpeed's is 0, no clipping",
                  config->step.gradient_clipping);
    say_near(host, &settings->mesh);
    say_quantised(host, schedule);
    say_quantised_sums(host, settings);
    say_compressed(host, schedule, &config->step.compression);
    say_decay(host, &config->step.optimizer);
    say_removed(host, config);
    say_folder(host, "tensorboard", &config->tensorboard);
    say_folder(host, "csv_monitor", &config->csv_monitor);
    say_services(host, config);
    say_ignored(host, config);
    config_explain_idle(config, say_line, (void *)(uintptr_t)host);
    if (first_step == 0) say_rate(host, &config->schedule, total_steps);
}
