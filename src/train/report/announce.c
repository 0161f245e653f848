#include "train/report/announce.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>

#include "base/text.h"
#include "plan/kept.h"
#include "plan/queries.h"

/* The embedding row that gets no gradient from its use as input; -1: none. */
static int64_t padding_of(const sifr_model *model) {
    for (size_t i = 0; i < model->weight_count; i++)
        if (model->weights[i].has_zero_row) return model->weights[i].zero_row;
    return -1;
}

/* Users often set the end-of-text token as padding and do not expect this effect. */
static void say_padding(const train_state *t) {
    const model_config *c = &t->folder.config;
    int64_t padding = padding_of(t->folder.model);
    bool ends = false;
    for (int i = 0; i < c->eos_count; i++) ends |= c->eos_token_ids[i] == padding;
    if (padding < 0 || !ends) return;
    base_log(t->host->log, SIFR_LOG_INFO,
             "pad_token_id %lld is also an eos_token_id: as in transformers, the embedding of that "
             "token gets no gradient from its use as input%s",
             (long long)padding, c->tie_word_embeddings ? ", only from the tied head" : "");
}

/* Config keys that have no effect with one rank. */
static void say_cuts(const train_state *t) {
    const sifr_config *c = t->config;
    if (c->step.zero.stage > 0 && comm_size(t->group) == 1 && !config_moves_parameters(c))
        base_log(t->host->log, SIFR_LOG_INFO, "ZeRO stage %lld has no effect with one rank",
                 (long long)c->step.zero.stage);
}

static void say_dropout(const train_state *t) {
    if (!t->folder.config.undropped && !t->lora.undropped) return;
    base_log(t->host->log, SIFR_LOG_INFO, "%s", t->objective->says_undropped);
}

static void say_objective(const train_state *t) {
    if (t->objective->says) base_log(t->host->log, SIFR_LOG_INFO, "%s", t->objective->says);
}

void train_say_input(const train_state *t) {
    say_objective(t);
    say_padding(t);
    say_dropout(t);
    say_cuts(t);
}

void train_say_adapters(const train_state *t) {
    const sifr_model *model = t->folder.model;
    char trained[32], all[32];
    size_t modules = 0, coded = 0, eight = 0;
    if (!t->lora.json) return;
    for (size_t i = 0; i < model->weight_count; i++) {
        modules += model->weights[i].adapter > 0;
        coded += model->weights[i].coding != MODEL_UNCODED;
        eight += model->weights[i].coding == MODEL_INT8;
    }
    train_say(t->host,
              "LoRA: adapters of %zu module%s; trains %s of %s parameters, the others are frozen",
              modules, modules == 1 ? "" : "s",
              base_format_count(sifr_model_trained(model), trained),
              base_format_count(sifr_model_parameters(model), all));
    if (eight)
        train_say(t->host,
                  "zero_quantized_nontrainable_weights: %zu frozen matrices are held in 8 bits: "
                  "other bits than without, the same on any number of ranks",
                  eight);
    else if (coded)
        train_say(t->host, "QLoRA: %zu frozen matrices are held in 4 bits (NF4)", coded);
}

/* "optimizer state, parameters, gradients and activations"; returns out. */
static const char *name_offloaded(const sifr_config *c, char *out, size_t size) {
    static const char *const states[] = {[SIFR_STATE_ALL] = "optimizer state",
                                         [SIFR_STATE_MASTER_WEIGHTS] = "master weights",
                                         [SIFR_STATE_MOMENTS] = "moments"};
    const char *names[4];
    size_t count = 0, used = 0;
    if (c->step.offload.optimizer.device == SIFR_TIER_NVME)
        names[count++] = states[c->step.offload.optimizer.state];
    if (c->step.offload.param.device == SIFR_TIER_NVME) names[count++] = "parameters";
    if (c->step.offload.gradients == SIFR_TIER_NVME) names[count++] = "gradients";
    if (c->step.offload.activations == SIFR_TIER_NVME) names[count++] = "activations";
    out[0] = '\0';
    for (size_t i = 0; i < count && used < size; i++) {
        const char *between = i == 0 ? "" : i + 1 == count ? " and " : ", ";
        used += (size_t)snprintf(out + used, size - used, "%s%s", between, names[i]);
    }
    return out;
}

/* What is added up over all ranks. */
enum {
    SUM_FILES,    /* of state on disk */
    SUM_CLEANED,  /* directories of killed runs */
    SUM_UNPINNED, /* bytes for disk transfers */
    SUM_LIMITED,  /* ranks that may not pin them */
    SUM_RINGLESS, /* ranks without io_uring */
    SUM_UNSTAGED, /* bytes for copies to GPUs that are not pinned */
    SUMS
};

/* Memory that is not pinned over all ranks; a reason of the kernel's own is the first rank's. */
static void say_unpinned(const train_state *t, const int64_t *sums) {
    static const char what[] = "of memory could not be pinned for disk transfers";
    char bytes[32], most[32];
    struct rlimit limit = {.rlim_cur = RLIM_INFINITY};
    int number = engine_pinned_memory(t->engine)->number;
    base_format_bytes((uint64_t)sums[SUM_UNPINNED], bytes);
    (void)getrlimit(RLIMIT_MEMLOCK, &limit);
    if (sums[SUM_LIMITED] && limit.rlim_cur != RLIM_INFINITY)
        base_log(t->host->log, SIFR_LOG_INFO,
                 "%s %s: ulimit -l is %s, for all aio threads of a user's ranks. Each request pins "
                 "its own",
                 bytes, what, base_format_bytes((uint64_t)limit.rlim_cur, most));
    else if (sums[SUM_RINGLESS])
        base_log(t->host->log, SIFR_LOG_INFO, "%s %s: that takes io_uring", bytes, what);
    else
        base_log(t->host->log, SIFR_LOG_INFO, "%s %s: %s. Each request pins its own", bytes, what,
                 number ? strerror(number) : "refused by the kernel");
}

/* Where this rank's state is, and how it is moved there. */
static void say_file(const train_state *t) {
    char text[BASE_PATH_LENGTH + 128], names[64], bytes[32];
    const sifr_engine *engine = t->engine;
    bool pinned = engine_pinned_memory(engine)->bytes > 0;
    base_format_bytes((uint64_t)engine_pinned_memory(engine)->bytes, bytes);
    train_say(t->host, "%s: %s%s%s%s%s", name_offloaded(t->config, names, sizeof names),
              engine_swap_describe(engine_state_file(engine), text, sizeof text),
              comm_size(t->group) > 1 ? " a rank" : "", pinned ? ", with " : "",
              pinned ? bytes : "", pinned ? " of memory pinned" : "");
}

/* Of the ranks of a pipeline some may have a file and others none: the last stage keeps its
 * activations. */
sifr_status train_say_memory(const train_state *t, sifr_error *error) {
    const engine_pinned *p = engine_pinned_memory(t->engine);
    bool own = engine_state_file(t->engine) != NULL;
    int64_t missing = p->asked - p->bytes;
    int64_t sums[SUMS] = {[SUM_FILES] = own,
                          [SUM_CLEANED] = engine_cleaned(t->engine),
                          [SUM_UNPINNED] = missing,
                          [SUM_LIMITED] = missing && p->number == ENOMEM,
                          [SUM_RINGLESS] = missing && !p->number,
                          [SUM_UNSTAGED] = device_count(engine_device(t->engine)).unpinned_bytes};
    BASE_TRY(comm_sum(t->group, sums, SUMS, error));
    engine_say_unpinned(sums[SUM_UNSTAGED], t->host->log);
    if (!sums[SUM_FILES]) return SIFR_OK;
    if (own) say_file(t);
    if (sums[SUM_UNPINNED]) say_unpinned(t, sums);
    if (sums[SUM_CLEANED])
        train_say(t->host, "removed %lld swap director%s left by killed runs",
                  (long long)sums[SUM_CLEANED], sums[SUM_CLEANED] == 1 ? "y" : "ies");
    return SIFR_OK;
}

void train_say_activations(const train_state *t) {
    const sifr_config *c = t->config;
    char line[512];
    bool idle = c->activations.partition_activations && !c->step.partition_activations;
    if (idle)
        train_say(t->host, "partition_activations has no effect: %s",
                  c->step.mesh.sequence_parallel
                      ? "sequence_parallel has cut them already"
                      : "no two ranks hold the same activations, since there is no tensor "
                        "parallelism");
    if (c->step.recompute == SIFR_RECOMPUTE_AUTO &&
        plan_kept_describe(engine_schedule(t->engine), &t->machine, line, sizeof line))
        train_say(t->host, "recompute auto: %s", line);
}

/* "tensor_parallel: 14 of 16 matrices are divided among 2 ranks; ..." */
static void say_divided(const train_state *t) {
    const sifr_model *model = engine_model(t->engine);
    char parameters[32];
    int64_t whole = 0;
    int cut = 0, matrices = 0;
    if (model->tensors < 2) return; /* one, with tp_exact: it has all of them */
    for (size_t w = 0; w < model->weight_count; w++) {
        const model_weight *weight = &model->weights[w];
        if (weight->replicated) whole += weight->rows * weight->columns;
        matrices += !weight->vector;
        cut += !weight->vector && !weight->replicated;
    }
    train_say(t->host,
              "tensor_parallel: %d of %d matrices are divided among %d ranks; each has %s "
              "parameters whole",
              cut, matrices, (int)model->tensors, base_format_count(whole, parameters));
}

/* "sequence_parallel: each of 2 ranks has 256 tokens of a micro batch between products" */
static void say_rows(const train_state *t) {
    const plan_settings *s = &engine_schedule(t->engine)->settings;
    if (!s->step.mesh.sequence_parallel) return;
    int32_t tensors = plan_mesh_ranks(&s->mesh, PLAN_TENSORS);
    train_say(t->host,
              "sequence_parallel: each of %d tensor ranks has %lld of a micro batch's %lld tokens "
              "in norms, dropout and residuals",
              (int)tensors, (long long)(plan_tokens(s) / tensors), (long long)plan_tokens(s));
}

/* "context_parallel: each of 2 ranks has a run of 16 tokens of each sequence; attention ..." */
static void say_runs(const train_state *t) {
    const plan_settings *s = &engine_schedule(t->engine)->settings;
    int32_t contexts = plan_mesh_ranks(&s->mesh, PLAN_CONTEXTS);
    if (contexts == 1) return;
    if (s->step.mesh.context_kind != SIFR_CONTEXT_ULYSSES) {
        bool both = s->step.mesh.context_kind == SIFR_CONTEXT_BOTH;
        train_say(t->host,
                  "context_parallel: each of %d ranks has %lld tokens of each sequence, half of "
                  "them from its start and half from its end, and for attention %s",
                  (int)contexts, (long long)plan_run_length(s),
                  both ? "exchanges heads with its neighbours, and gathers keys and values of its "
                         "own from others"
                       : "gathers keys and values");
        return;
    }
    train_say(t->host,
              "context_parallel: each of %d ranks has %lld tokens of each sequence, and in "
              "attention all tokens of 1/%d of the heads",
              (int)contexts, (long long)plan_run_length(s), (int)contexts);
}

/* "mesh: 2 stages x 2 replicas x 2 shards, all on one host; schedule 1f1b, units 0-3 and 4-7". Of
 * shards alone only where they are is said, if on several hosts or NUMA nodes. */
static void say_mesh(const train_state *t) {
    const plan_settings *s = &engine_schedule(t->engine)->settings;
    char text[PLAN_MESH_LENGTH], where[PLAN_MESH_LENGTH], parts[PLAN_PIPELINE_LENGTH] = "";
    plan_places places = {.per_host = comm_local_size(t->group),
                          .per_node = t->host->ranks_per_node,
                          .per_switch = t->host->ranks_per_switch};
    bool stages = plan_parts(&s->pipeline) > 1,
         plain = !stages && plan_mesh_ranks(&s->mesh, PLAN_REPLICAS) == 1 &&
                 plan_mesh_ranks(&s->mesh, PLAN_TENSORS) == 1 &&
                 plan_mesh_ranks(&s->mesh, PLAN_CONTEXTS) == 1,
         apart = plan_mesh_crosses(&s->mesh, PLAN_WORLD, places.per_host) ||
                 plan_mesh_crosses(&s->mesh, PLAN_WORLD, places.per_node);
    if (plain && !apart) return;
    if (stages) plan_pipeline_text(&s->pipeline, parts);
    say_divided(t);
    say_rows(t);
    say_runs(t);
    train_say(t->host, "mesh: %s, %s%s%s", plan_mesh_text(&s->mesh, text),
              plan_mesh_places_text(&s->mesh, &places, where), stages ? "; " : "", parts);
}

void train_say_run(const train_state *t) {
    char parameters[32], bytes[32], batch[80], steps[80], ranks[64] = "", over[32] = "";
    const sifr_config *c = t->config;
    int32_t size = comm_size(t->group);
    if (size > 1)
        snprintf(ranks, sizeof ranks, "%d ranks, ZeRO stage %lld, ", size,
                 (long long)c->step.zero.stage);
    int threads = device_threads(engine_device(t->engine));
    train_say(
        t->host, "model: %s, %s parameters, %s; %s%d thread%s%s, %s", t->folder.config.model_type,
        base_format_count(sifr_model_parameters(t->folder.model), parameters),
        base_dtype_name(plan_dtype(&engine_schedule(t->engine)->settings)), ranks, threads,
        threads == 1 ? "" : "s", size > 1 ? " each" : "", device_isa(engine_device(t->engine)));
    say_mesh(t);
    int32_t data = plan_mesh_ranks(&engine_schedule(t->engine)->settings.mesh, PLAN_DATA);
    if (data > 1) snprintf(over, sizeof over, " x %d ranks", data);
    train_say(t->host, "step: %s of %lld tokens (%lld x %lld accumulated%s), %s, memory %s%s",
              base_format_counted(c->train_batch_size, "sequence", batch), (long long)t->length,
              (long long)c->step.micro_batch_size, (long long)c->step.gradient_accumulation_steps,
              over, base_format_counted(t->total_steps, "step", steps),
              base_format_bytes((uint64_t)sifr_engine_planned_bytes(t->engine), bytes),
              size > 1 ? " each" : "");
}
