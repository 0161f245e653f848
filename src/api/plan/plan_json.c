/* A plan as one JSON object. */
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "api/plan/plan_report.h"
#include "plan/kept.h"
#include "plan/queries.h"

static void append_line(void *user, const char *line) {
    json_array_append_new(user, json_string(line));
}

static const char *order_name(sifr_step_order order) {
    return order == SIFR_STEP_UNIT ? "unit" : "batch";
}

static const char *recompute_name(sifr_recompute recompute) {
    static const char *const names[] = {"none", "unit", "auto"};
    return names[recompute];
}

static json_t *classes_json(const int64_t *bytes) {
    json_t *classes = json_object();
    for (int c = 0; c < PLAN_CLASSES; c++)
        json_object_set_new(classes, plan_class_name((plan_class)c), json_integer(bytes[c]));
    return classes;
}

static json_t *wire_json(const plan_outcome *stage) {
    return json_pack("{s:I, s:I, s:I, s:I}", "gathered_bytes", (json_int_t)stage->gathered,
                     "gathers", (json_int_t)stage->gathers, "reduced_bytes",
                     (json_int_t)stage->reduced, "reductions", (json_int_t)stage->reductions);
}

/* Of each axis with several ranks: its length, and the bytes that it moves. */
static json_t *mesh_json(const api_plan_report *r) {
    const plan_schedule *s = r->schedule;
    plan_span spans[PLAN_WIRE_SPANS];
    size_t count = plan_wire_spans(s, spans);
    int32_t here = r->machine.ranks_per_host,
            stages = plan_mesh_ranks(&s->settings.mesh, PLAN_STAGES);
    json_t *mesh = json_object();
    for (size_t i = 0; i < count; i++) {
        int64_t gathered, reduced, exchanged = plan_exchanged_of(s, spans[i]);
        int32_t ranks = plan_mesh_ranks(&s->settings.mesh, spans[i]);
        plan_wire_of(s, spans[i], &gathered, &reduced);
        json_t *of = json_pack("{s:i, s:I, s:I, s:I}", "ranks", (int)ranks, "gathered_bytes",
                               (json_int_t)gathered, "reduced_bytes", (json_int_t)reduced,
                               "crossing_bytes", (json_int_t)plan_wire_crossing(s, spans[i], here));
        if (exchanged) json_object_set_new(of, "exchanged_bytes", json_integer(exchanged));
        json_object_set_new(mesh, plan_span_name(spans[i]), of);
    }
    if (stages > 1)
        json_object_set_new(mesh, plan_span_name(PLAN_STAGES),
                            json_pack("{s:i, s:I, s:I}", "ranks", (int)stages, "received_bytes",
                                      (json_int_t)plan_received(s), "crossing_bytes",
                                      (json_int_t)plan_received_crossing(s, here)));
    return mesh;
}

static json_t *time_json(const plan_prediction *p) {
    return json_pack("{s:f, s:f, s:f, s:f, s:f}", "step_s", p->step_seconds, "computing_s",
                     p->computing, "communication_s", p->communication, "disk_s", p->disk,
                     "waiting_s", p->waiting);
}

/* A setting as JSON of its key's kind; null for 0 bytes, which means that the machine's memory
 * decides. */
static json_t *setting_json(const config_fit *fit, const char *text) {
    switch (fit->kind) {
    case CONFIG_FIT_COUNT:
        return json_integer(strtoll(text, NULL, 10));
    case CONFIG_FIT_BYTES:
        return strcmp(text, "0") == 0 ? json_null() : json_integer(strtoll(text, NULL, 10));
    case CONFIG_FIT_SWITCH:
        return json_boolean(strcmp(text, "true") == 0);
    case CONFIG_FIT_TIER:
        return json_boolean(strcmp(text, "nvme") == 0);
    case CONFIG_FIT_WORD:
        break;
    }
    return json_string(text);
}

/* Each setting that --fit may choose, and the memory and time of the resulting step. */
static json_t *outcome_json(const plan_outcome *o) {
    json_t *out = json_object();
    char text[PLAN_VALUE_LENGTH];
    config_fit fit;
    for (size_t i = 0; i < plan_choice_count(); i++) {
        const plan_choice *row = plan_choice_at(i);
        if (!config_fit_of(row->key, &fit)) continue;
        plan_choice_text(row, &o->settings, text);
        json_object_set_new(out, fit.name, setting_json(&fit, text));
    }
    json_object_set_new(out, "peak_bytes",
                        o->possible ? json_integer((json_int_t)o->total_bytes) : json_null());
    json_object_set_new(out, "nvme_bytes", json_integer((json_int_t)o->nvme_bytes));
    json_object_set_new(out, "predicted", o->possible ? time_json(&o->predicted) : json_null());
    json_object_set_new(out, "fits", json_boolean(o->fits));
    return out;
}

static json_t *bytes_or_null(bool known, int64_t bytes) {
    return known ? json_integer((json_int_t)bytes) : json_null();
}

/* Of a stage that the step is refused with, bytes and times are null. */
static json_t *stages_json(const api_plan_report *r) {
    json_t *stages = json_array();
    for (int i = 0; i < API_PLAN_STAGES; i++) {
        const plan_outcome *s = &r->stages[i];
        json_array_append_new(
            stages,
            json_pack("{s:i, s:s, s:o, s:o, s:o, s:o, s:o, s:b}", "stage", i, "step_order",
                      order_name(s->settings.step.step_order), "peak_bytes",
                      bytes_or_null(s->possible, s->total_bytes), "nvme_bytes",
                      bytes_or_null(s->possible, s->nvme_bytes), "largest",
                      s->possible ? classes_json(s->largest_bytes) : json_null(), "wire",
                      s->possible ? wire_json(s) : json_null(), "predicted",
                      s->possible ? time_json(&s->predicted) : json_null(), "fits", (int)s->fits));
    }
    return stages;
}

/* The result of changing one setting; peak_bytes is null if the step cannot be planned. */
static json_t *changes_json(const api_plan_report *r) {
    json_t *changes = json_array();
    char name[256];
    for (size_t i = 0; i < r->change_count; i++) {
        const plan_outcome *o = &r->changes[i];
        api_plan_change(r, i, name);
        json_array_append_new(
            changes, json_pack("{s:s, s:o, s:I, s:o, s:b}", "change", name, "peak_bytes",
                               o->possible ? json_integer((json_int_t)o->total_bytes) : json_null(),
                               "nvme_bytes", (json_int_t)o->nvme_bytes, "step_s",
                               o->possible ? json_real(o->predicted.step_seconds) : json_null(),
                               "fits", (int)o->fits));
    }
    return changes;
}

/* The place in the step; null for buffers that live through the whole step. */
static json_t *place_json(const api_plan_report *r, int32_t instruction) {
    const plan_schedule *s = r->schedule;
    if (instruction < 0) return json_null();
    const plan_instruction *i = &s->instructions[instruction];
    return json_pack("{s:i, s:s, s:s?}", "instruction", (int)instruction, "action",
                     plan_action_name((plan_action)i->action), "unit",
                     i->unit >= 0 ? s->model->units[i->unit].name : NULL);
}

static json_t *largest_json(const api_plan_report *r) {
    const plan_schedule *s = r->schedule;
    json_t *classes = json_object();
    for (int c = 0; c < PLAN_CLASSES; c++)
        json_object_set_new(classes, plan_class_name((plan_class)c),
                            json_pack("{s:I, s:o}", "bytes", (json_int_t)s->largest_bytes[c],
                                      "where", place_json(r, s->largest_instruction[c])));
    return classes;
}

static json_t *memory_json(const api_plan_report *r) {
    const api_plan_limits *limits = &r->limits;
    bool known = limits->room_bytes < INT64_MAX;
    return json_pack("{s:o, s:s, s:I}", "room_bytes",
                     known ? json_integer((json_int_t)limits->room_bytes) : json_null(), "source",
                     limits->text, "ranks_on_a_host", (json_int_t)limits->ranks_here);
}

/* Disk limits of a rank, the size of a checkpoint, and the free space for both. */
static json_t *disk_json(const api_plan_report *r) {
    const plan_output *output = &r->search.output;
    return json_pack("{s:o, s:I, s:i, s:I, s:o}", "room_bytes",
                     bytes_or_null(r->search.disk_bytes > 0, r->search.disk_bytes),
                     "checkpoint_bytes",
                     (json_int_t)plan_checkpoint_bytes(r->model, &r->own.settings), "checkpoints",
                     (int)output->checkpoints, "model_bytes", (json_int_t)output->model_bytes,
                     "output_bytes", bytes_or_null(output->known, output->room_bytes));
}

static json_t *machine_json(const api_plan_report *r) {
    const plan_machine *m = &r->machine;
    const plan_mesh *mesh = &r->schedule->settings.mesh;
    plan_link link = plan_link_of(m, plan_mesh_crosses(mesh, PLAN_WORLD, m->ranks_per_host));
    return json_pack("{s:f, s:f, s:f, s:f, s:f, s:i, s:s?}", "fp32_operations_per_s",
                     m->fp32_operations, "bf16_operations_per_s", m->bf16_operations,
                     "memory_bytes_per_s", m->memory_bytes, "latency_s", link.latency_seconds,
                     "bytes_per_s", link.bytes_per_second, "ranks_per_host", (int)m->ranks_per_host,
                     "file", r->machine_file);
}

static json_t *offloaded_json(const plan_schedule *s, plan_tier tier) {
    int64_t read, written, classes[PLAN_CLASSES];
    bool disk = tier == PLAN_NVME;
    (disk ? plan_disk : plan_copies)(s, &read, &written);
    plan_offloaded_classes(s, tier, classes);
    json_int_t bytes = disk ? s->nvme_bytes : s->host_bytes;
    return json_pack("{s:I, s:I, s:I, s:o}", "bytes", bytes, "read_bytes", (json_int_t)read,
                     "written_bytes", (json_int_t)written, "classes", classes_json(classes));
}

static json_t *types_json(const plan_settings *s) {
    base_dtype masters = plan_has_masters(s) ? BASE_FP32 : plan_dtype(s);
    return json_pack("{s:s, s:s}", "master_weights", base_dtype_name(masters), "moments",
                     base_dtype_name(plan_state_type(s, optim_row_of(&s->step.optimizer), 0)));
}

static json_t *report_json(const api_plan_report *r) {
    const plan_schedule *s = r->schedule;
    const plan_settings *settings = &s->settings;
    json_t *units = json_array();
    int64_t live = 0;
    for (int c = 0; c < PLAN_CLASSES; c++) live += s->peak_bytes[c];
    for (size_t u = 0; u < r->model->unit_count; u++)
        json_array_append_new(units, json_string(r->model->units[u].name));
    return json_pack(
        "{s:I, s:I, s:I, s:o, s:i, s:I, s:o, s:f, s:I, s:s, s:I, s:i, s:I, s:s, s:s, s:I, s:i, "
        "s:i, "
        "s:i, s:b, s:o, s:o, s:o, s:o}",
        "peak_bytes", (json_int_t)s->total_bytes, "live_bytes", (json_int_t)live, "baseline_bytes",
        (json_int_t)r->limits.baseline, "classes", classes_json(s->peak_bytes), "peak_instruction",
        s->peak_instruction, "instructions", (json_int_t)s->instruction_count, "units", units,
        "product_operations", plan_operations(s), "parameters",
        (json_int_t)sifr_model_parameters(r->model), "precision",
        base_dtype_name(plan_dtype(settings)), "micro_batch_size",
        (json_int_t)settings->step.micro_batch_size, "gradient_accumulation_steps",
        settings->step.gradient_accumulation_steps, "seq_length",
        (json_int_t)settings->step.seq_length, "step_order", order_name(settings->step.step_order),
        "recompute", recompute_name(settings->step.recompute), "tile_tokens",
        (json_int_t)settings->step.tile_tokens, "world_size",
        plan_mesh_ranks(&settings->mesh, PLAN_WORLD), "rank",
        plan_mesh_place(&settings->mesh, PLAN_WORLD), "zero_stage", settings->step.zero.stage,
        "fits", (int)(r->too_large.status == SIFR_OK), "wire", wire_json(&r->own), "predicted",
        time_json(&r->own.predicted), "machine", machine_json(r), "nvme",
        offloaded_json(s, PLAN_NVME));
}

static json_t *kept_row_json(const plan_kept_row *row) {
    return json_pack("{s:s, s:i, s:I, s:i, s:f}", "op", row->name, "kept_in", (int)row->kept,
                     "kept_bytes", (json_int_t)row->bytes, "again_in", (int)row->again, "again_s",
                     row->seconds);
}

/* Results kept for the backward pass and results recomputed, by op; the sum last. */
static json_t *kept_json(const api_plan_report *r) {
    json_t *rows = json_array();
    plan_kept kept = {0};
    if (plan_kept_find(r->schedule, &r->machine, &kept, NULL) == SIFR_OK) {
        for (size_t i = 0; i < kept.count; i++)
            json_array_append_new(rows, kept_row_json(&kept.rows[i]));
        json_array_append_new(rows, kept_row_json(&kept.inputs));
        json_array_append_new(rows, kept_row_json(&kept.all));
    }
    plan_kept_free(&kept);
    return rows;
}

static json_t *pipeline_json(const api_plan_report *r) {
    const plan_pipeline *p = &r->schedule->settings.pipeline;
    json_t *first = json_array();
    for (int32_t i = 0; i < plan_parts(p); i++)
        json_array_append_new(first, json_integer(p->first_unit[i]));
    return json_pack("{s:i, s:i, s:i, s:o, s:I, s:I, s:i, s:I, s:f, s:I}", "stage", (int)p->stage,
                     "stages", (int)p->stages, "chunks", (int)p->chunks, "first_unit", first,
                     "first_bytes", (json_int_t)r->own.stage_bytes[0], "fullest_bytes",
                     (json_int_t)r->own.stage_bytes[1], "fullest", (int)r->own.fullest,
                     "last_bytes", (json_int_t)r->own.stage_bytes[2], "bubble_s", r->own.bubble,
                     "received_bytes", (json_int_t)plan_received(r->schedule));
}

json_t *api_plan_describe(const api_plan_report *r, bool dump) {
    json_t *out = report_json(r);
    if (!out) return NULL;
    json_object_set_new(out, "peak", place_json(r, r->schedule->peak_instruction));
    json_object_set_new(out, "at_most", largest_json(r));
    json_object_set_new(out, "kept_for_backward", kept_json(r));
    if (r->machine.separate)
        json_object_set_new(out, "host", offloaded_json(r->schedule, PLAN_HOST));
    int64_t pieces = 2 * plan_piece_bytes(r->schedule);
    int64_t staging = plan_host_bytes(r->schedule) - r->schedule->host_bytes - pieces;
    if (r->machine.separate) {
        json_object_set_new(out, "staging_bytes", json_integer((json_int_t)staging));
        json_object_set_new(out, "piece_bytes", json_integer((json_int_t)pieces));
    }
    json_object_set_new(out, "state_types", types_json(&r->schedule->settings));
    json_object_set_new(out, "memory", memory_json(r));
    json_object_set_new(out, "disk", disk_json(r));
    json_object_set_new(out, "largest_micro_batch_size",
                        json_integer((json_int_t)r->largest_sequences));
    json_object_set_new(out, "largest_seq_length", json_integer((json_int_t)r->largest_length));
    json_object_set_new(out, "changes", changes_json(r));
    if (plan_mesh_ranks(&r->schedule->settings.mesh, PLAN_WORLD) > 1) {
        json_object_set_new(out, "mesh", mesh_json(r));
        json_object_set_new(out, "stages", stages_json(r));
    }
    if (plan_parts(&r->schedule->settings.pipeline) > 1)
        json_object_set_new(out, "pipeline", pipeline_json(r));
    if (dump) {
        json_t *lines = json_array();
        plan_dump(r->schedule, append_line, lines);
        json_object_set_new(out, "schedule", lines);
    }
    return out;
}

json_t *api_plan_describe_fit(const api_plan_report *r, const char *config) {
    return json_pack("{s:o, s:o, s:i, s:b, s:o, s:o}", "chosen", outcome_json(&r->best), "as_given",
                     outcome_json(&r->given), "plans", (int)r->fitted.tried, "all_tried",
                     !r->fitted.ended, "memory", memory_json(r), "config",
                     json_loads(config, 0, NULL));
}
