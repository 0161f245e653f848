/* A plan as text. */
#include "api/plan/plan_report.h"

#include <stdio.h>

#include "base/text.h"
#include "plan/kept.h"
#include "plan/queries.h"

static const char *order_name(sifr_step_order order) {
    return order == SIFR_STEP_UNIT ? "unit" : "batch";
}

const char *api_plan_place(const plan_schedule *s, int32_t instruction, char out[128]) {
    if (instruction < 0) return "between steps";
    const plan_instruction *i = &s->instructions[instruction];
    snprintf(out, 128, "instruction %d, %s%s%s", (int)instruction,
             plan_action_name((plan_action)i->action), i->unit >= 0 ? " of " : "",
             i->unit >= 0 ? s->model->units[i->unit].name : "");
    return out;
}

static const char *const recomputes[] = {"", ", recompute unit", ", recompute auto"};

/* In what the states are, where not in fp32. */
static const char *kept_in(const plan_settings *settings) {
    if (optim_row_of(&settings->step.optimizer)->states[0].type == BASE_UINT8)
        return ", moments in 8 bits";
    return plan_moment_type(settings) == BASE_FP32 ? "" : ", moments in bf16";
}

static void print_run(const api_plan_report *r) {
    const plan_schedule *s = r->schedule;
    const plan_settings *settings = &s->settings;
    char text[32], order[128] = "", tiles[48] = "";
    bool one = settings->step.gradient_accumulation_steps * settings->step.micro_batch_size == 1;
    bool own = settings->step.precision == SIFR_FP32 || plan_has_masters(settings);
    fprintf(r->to, "model        %s, %s parameters in %zu units, %s%s%s\n",
            r->model_config.model_type, base_format_count(sifr_model_parameters(r->model), text),
            r->model->unit_count, base_dtype_name(plan_dtype(settings)),
            own ? "" : " without fp32 master weights", kept_in(settings));
    if (settings->step.tile_tokens > 0)
        snprintf(tiles, sizeof tiles, ", tiles of %lld tokens",
                 (long long)settings->step.tile_tokens);
    fprintf(
        r->to,
        "step         %d x %lld sequence%s of %lld tokens, step_order %s, gradient_order %s%s%s\n",
        settings->step.gradient_accumulation_steps, (long long)settings->step.micro_batch_size,
        one ? "" : "s", (long long)settings->step.seq_length, order_name(settings->step.step_order),
        settings->step.gradient_order == SIFR_GRADIENT_SEQUENTIAL ? "sequential" : "tree",
        recomputes[settings->step.recompute], tiles);
    if (r->choice.seconds[0] > 0)
        fprintf(r->to, "auto         %s\n", engine_order_text(&r->choice, order, sizeof order));
    fprintf(r->to, "schedule     %s instructions, %.4g operations in products\n",
            base_format_count((int64_t)s->instruction_count, text), plan_operations(s));
}

static void print_link(const api_plan_report *r) {
    const plan_mesh *mesh = &r->schedule->settings.mesh;
    bool several = plan_mesh_crosses(mesh, PLAN_WORLD, r->machine.ranks_per_host);
    bool known = (several ? r->machine.network : r->machine.host).bytes_per_second > 0;
    plan_link link = plan_link_of(&r->machine, several);
    fprintf(r->to, "link         %s: %.3g us a call, %.3g GB/s%s\n",
            several ? "between hosts" : "ranks of one host", 1e6 * link.latency_seconds,
            link.bytes_per_second / 1e9,
            known ? "" : ", assumed: measure it with `sifr bench comm`");
}

static void print_ranks(const api_plan_report *r) {
    const plan_settings *settings = &r->schedule->settings;
    char gathered[32], reduced[32], hosts[64] = "all on one host";
    int32_t ranks = plan_mesh_ranks(&settings->mesh, PLAN_WORLD);
    if (ranks == 1) return;
    if (r->machine.ranks_per_host > 0)
        snprintf(hosts, sizeof hosts, "%d on a host", (int)r->machine.ranks_per_host);
    fprintf(r->to, "ranks        rank %d of %d, %s, ZeRO stage %d, %d thread%s each\n",
            plan_mesh_place(&settings->mesh, PLAN_WORLD), ranks, hosts, settings->step.zero.stage,
            device_threads(r->dev), device_threads(r->dev) == 1 ? "" : "s");
    fprintf(r->to, "wire         %s in %lld gathers, %s in %lld reductions, per step and rank\n",
            base_format_bytes((uint64_t)r->own.gathered, gathered), (long long)r->own.gathers,
            base_format_bytes((uint64_t)r->own.reduced, reduced), (long long)r->own.reductions);
}

/* What steps before the first compressed one move. */
static void print_compression(const api_plan_report *r) {
    plan_schedule plain = *r->schedule;
    const sifr_compression *c = &plain.settings.step.compression;
    char gathered[32], reduced[32];
    int64_t in, sums, gathers, reductions;
    if (!plain.compresses) return;
    plain.compressed = false;
    plan_wire(&plain, &in, &sums);
    plan_calls(&plain, &gathers, &reductions);
    fprintf(r->to,
            "compression  powerSGD of rank %lld; before it, in the first %lld steps, %s in %lld "
            "gathers, %s in %lld reductions\n",
            (long long)c->rank, (long long)c->start, base_format_bytes((uint64_t)in, gathered),
            (long long)gathers, base_format_bytes((uint64_t)sums, reduced), (long long)reductions);
}

/* The stages of a pipeline: who has what, how full the ranks are, and how long they wait. */
static void print_pipeline(const api_plan_report *r) {
    const plan_settings *settings = &r->schedule->settings;
    const plan_outcome *own = &r->own;
    char mesh[PLAN_MESH_LENGTH], parts[PLAN_PIPELINE_LENGTH], bytes[3][32];
    if (plan_parts(&settings->pipeline) == 1) return;
    for (int i = 0; i < 3; i++) base_format_bytes((uint64_t)own->stage_bytes[i], bytes[i]);
    fprintf(r->to, "mesh         %s; this is stage %d; %s\n", plan_mesh_text(&settings->mesh, mesh),
            (int)settings->pipeline.stage, plan_pipeline_text(&settings->pipeline, parts));
    fprintf(r->to,
            "stages       memory %s of the first, %s of the fullest (%d), %s of the last; at most "
            "%.1f %% of a step waiting for other stages\n",
            bytes[0], bytes[1], (int)own->fullest, bytes[2],
            100 * own->bubble / own->predicted.step_seconds);
}

/* Where the axes of the mesh are, and what each moves; of shards alone only if they are apart. */
static void print_mesh(const api_plan_report *r) {
    const plan_schedule *s = r->schedule;
    const plan_mesh *mesh = &s->settings.mesh;
    plan_span spans[PLAN_WIRE_SPANS];
    size_t count = plan_wire_spans(s, spans);
    char text[PLAN_MESH_LENGTH], where[PLAN_MESH_LENGTH], gathered[32], reduced[32], crossing[32];
    plan_places places = {.per_host = r->machine.ranks_per_host, .per_node = r->ranks_per_node};
    bool stages = plan_parts(&s->settings.pipeline) > 1,
         plain = !stages && plan_mesh_ranks(mesh, PLAN_WORLD) == mesh->ranks[PLAN_AXIS_SHARD],
         apart = plan_mesh_crosses(mesh, PLAN_WORLD, places.per_host) ||
                 plan_mesh_crosses(mesh, PLAN_WORLD, places.per_node);
    if (plain && !apart && mesh->near == 0) return;
    plan_mesh_places_text(mesh, &places, where);
    if (stages)
        fprintf(r->to, "where        %s\n", where);
    else
        fprintf(r->to, "mesh         %s, %s\n", plan_mesh_text(mesh, text), where);
    for (size_t i = 0; i < count; i++) {
        int64_t in, sums, across = plan_wire_crossing(s, spans[i], places.per_host),
                          parts = plan_exchanged_of(s, spans[i]);
        plan_wire_of(s, spans[i], &in, &sums);
        fprintf(r->to, "  %-10s %s in gathers, %s in reductions", plan_span_name(spans[i]),
                base_format_bytes((uint64_t)in, gathered),
                base_format_bytes((uint64_t)sums, reduced));
        if (parts)
            fprintf(r->to, ", %s in exchanges", base_format_bytes((uint64_t)parts, gathered));
        fprintf(r->to, "; %s from other hosts\n",
                across ? base_format_bytes((uint64_t)across, crossing) : "nothing");
    }
    int64_t across = plan_received_crossing(s, places.per_host);
    if (stages)
        fprintf(r->to, "  %-10s %s received; %s from other hosts\n", plan_span_name(PLAN_STAGES),
                base_format_bytes((uint64_t)plan_received(s), gathered),
                across ? base_format_bytes((uint64_t)across, crossing) : "nothing");
}

static void print_time(const api_plan_report *r) {
    const plan_prediction *p = &r->own.predicted;
    const plan_machine *m = &r->machine;
    bool several = plan_mesh_ranks(&r->schedule->settings.mesh, PLAN_WORLD) > 1;
    fprintf(r->to, "predicted    %.3g s a step, %.4g tokens/s", p->step_seconds,
            (double)(r->config.train_batch_size * r->length) / p->step_seconds);
    if (several)
        fprintf(r->to, "; computing %.3g s, communication %.3g s, waiting for it %.3g s",
                p->computing, p->communication, p->waiting);
    if (r->schedule->nvme_bytes) fprintf(r->to, "; disk %.3g s", p->disk);
    if (r->schedule->host_bytes && m->device == PLAN_MACHINE_CUDA)
        fprintf(r->to, "; copies %.3g s in, %.3g s out", p->copy - p->copy_out, p->copy_out);
    else if (r->schedule->host_bytes)
        fprintf(r->to, "; copies %.3g s", p->copy);
    fprintf(r->to, "\nmachine      %.4g fp32 and %.4g bf16 GFLOP/s, memory %.3g GB/s a rank, %s\n",
            m->fp32_operations / 1e9, m->bf16_operations / 1e9, m->memory_bytes / 1e9,
            r->machine_file ? r->machine_file : "measured here");
    if (several) print_link(r);
    if (r->schedule->nvme_bytes)
        fprintf(r->to, "disk         %.3g GB/s%s\n", plan_disk_speed(m) / 1e9,
                m->disk_bytes > 0 ? "" : ", assumed: set disk_bytes_per_s in a machine file");
    if (r->schedule->host_bytes)
        fprintf(r->to, "copies       %.3g GB/s%s%s\n", plan_copy_speed(m) / 1e9,
                m->device == PLAN_MACHINE_CUDA ? " each way" : "",
                m->copy_bytes > 0 ? "" : ", assumed: set copy_bytes_per_s in a machine file");
}

/* State kept on disk or in separate host memory, and the bytes moved each step. */
static void print_offloaded(const api_plan_report *r, plan_tier tier) {
    const plan_schedule *s = r->schedule;
    char text[32], read[32], written[32];
    int64_t in, out, classes[PLAN_CLASSES];
    bool disk = tier == PLAN_NVME;
    int64_t bytes = disk ? s->nvme_bytes : s->host_bytes;
    if (!bytes) return;
    (disk ? plan_disk : plan_copies)(s, &in, &out);
    fprintf(r->to, "%-16s %14lld  %9s  %s read and %s written a step\n",
            disk ? "on nvme" : "on the host", (long long)bytes,
            base_format_bytes((uint64_t)bytes, text), base_format_bytes((uint64_t)in, read),
            base_format_bytes((uint64_t)out, written));
    plan_offloaded_classes(s, tier, classes);
    for (int c = 0; c < PLAN_CLASSES; c++) {
        if (classes[c])
            fprintf(r->to, "  %-14s %14lld  %9s\n", plan_class_name((plan_class)c),
                    (long long)classes[c], base_format_bytes((uint64_t)classes[c], text));
    }
}

/* Host memory that files are read and written through. */
static void print_staging(const api_plan_report *r) {
    char text[32];
    int64_t bytes[2];
    plan_staging(r->schedule, bytes);
    int64_t sum = bytes[0] + bytes[1];
    if (sum)
        fprintf(r->to, "%-16s %14lld  %9s  of the host's memory, between the device and files\n",
                "staging", (long long)sum, base_format_bytes((uint64_t)sum, text));
}

/* Host memory through which state is filled, saved and loaded. */
static void print_pieces(const api_plan_report *r) {
    char text[32];
    int64_t bytes = 2 * plan_piece_bytes(r->schedule);
    if (bytes)
        fprintf(r->to, "%-16s %14lld  %9s  of the host's memory, for checkpoints\n", "pieces",
                (long long)bytes, base_format_bytes((uint64_t)bytes, text));
}

static void print_memory(const api_plan_report *r) {
    const plan_schedule *s = r->schedule;
    char text[32], most[32], name[128];
    int64_t gaps = plan_gap_bytes(s);
    fprintf(r->to, "\n%-16s %14s  %9s  %9s\n", "at the peak", "bytes", "", "at most");
    for (int c = 0; c < PLAN_CLASSES; c++) {
        int32_t at = s->largest_instruction[c];
        if (s->largest_bytes[c] == 0) continue;
        fprintf(r->to, "%-16s %14lld  %9s  %9s  %s\n", plan_class_name((plan_class)c),
                (long long)s->peak_bytes[c], base_format_bytes((uint64_t)s->peak_bytes[c], text),
                base_format_bytes((uint64_t)s->largest_bytes[c], most),
                at < 0 ? "always" : api_plan_place(s, at, name));
    }
    if (gaps > 0)
        fprintf(r->to, "%-16s %14lld  %9s\n", "gaps", (long long)gaps,
                base_format_bytes((uint64_t)gaps, text));
    fprintf(r->to, "%-16s %14lld  %9s\n", "all", (long long)s->total_bytes,
            base_format_bytes((uint64_t)s->total_bytes, text));
    print_offloaded(r, PLAN_HOST);
    print_staging(r);
    print_pieces(r);
    print_offloaded(r, PLAN_NVME);
    fprintf(r->to, "\nThe peak is at %s.\n", api_plan_place(s, s->peak_instruction, name));
    fprintf(r->to, "The program itself takes about %s more.\n",
            base_format_bytes((uint64_t)r->limits.baseline, text));
}

/* Results kept for the backward pass and results recomputed, by op. */
static void print_kept(const api_plan_report *r) {
    const plan_schedule *s = r->schedule;
    plan_kept kept = {0};
    char text[32], line[512];
    if (s->settings.step.recompute == SIFR_RECOMPUTE_NONE) return;
    if (plan_kept_find(s, &r->machine, &kept, NULL) == SIFR_OK) {
        fprintf(r->to, "\n%-34s %8s %10s %8s %12s\n", "for the backward pass", "kept in", "",
                "again in", "ms a step");
        for (size_t i = 0; i <= kept.count; i++) {
            const plan_kept_row *row = i < kept.count ? &kept.rows[i] : &kept.inputs;
            fprintf(r->to, "%-34s %8d %10s %8d %12.4g\n", row->name, (int)row->kept,
                    base_format_bytes((uint64_t)row->bytes, text), (int)row->again,
                    1e3 * row->seconds);
        }
    }
    plan_kept_free(&kept);
    if (plan_kept_describe(s, &r->machine, line, sizeof line))
        fprintf(r->to, "recompute    %s\n", line);
}

/* --- what fits --- */

const char *api_plan_disk(const api_plan_report *r, char out[API_PLAN_DISK_LENGTH]) {
    char each[32], all[32], sharers[48] = "";
    base_format_bytes((uint64_t)r->search.disk_bytes, each);
    base_format_bytes((uint64_t)r->disk.swap_bytes, all);
    if (r->limits.ranks_here > 1)
        snprintf(sharers, sizeof sharers, "%lld ranks share the ", (long long)r->limits.ranks_here);
    if (r->disk.swap)
        snprintf(out, API_PLAN_DISK_LENGTH, "put %s (%s%s free in %.160s)", each, sharers, all,
                 r->disk.swap);
    else
        snprintf(out, API_PLAN_DISK_LENGTH, "put %s (%s%s of a host's disk)", each, sharers, all);
    return out;
}

/* ", and puts 2 GiB on disk, where it may put 1.5 TiB (…)"; empty if nothing is on disk. */
static const char *disk_text(const api_plan_report *r, char *out, size_t size) {
    char need[32], text[API_PLAN_DISK_LENGTH];
    out[0] = '\0';
    if (r->own.nvme_bytes && r->search.disk_bytes)
        snprintf(out, size, "; it puts %s on disk, and may %s",
                 base_format_bytes((uint64_t)r->own.nvme_bytes, need), api_plan_disk(r, text));
    return out;
}

/* The size of one checkpoint, and of all that exist at a time. */
static void print_checkpoint(const api_plan_report *r) {
    const plan_output *output = &r->search.output;
    char each[32], have[32], trained[32];
    fprintf(r->to, "A checkpoint takes %s",
            base_format_bytes((uint64_t)plan_checkpoint_bytes(r->model, &r->own.settings), each));
    if (output->checkpoints > 1)
        fprintf(r->to, ", and %d are there at a time", (int)output->checkpoints);
    fprintf(r->to, ", the trained model %s",
            base_format_bytes((uint64_t)output->model_bytes, trained));
    if (output->known)
        fprintf(r->to, "; %s are free for them in %s%s",
                base_format_bytes((uint64_t)output->room_bytes, have), r->disk.output,
                output->swaps && r->own.nvme_bytes ? ", and for what is on disk" : "");
    fputs(".\n", r->to);
}

static void print_fits(const api_plan_report *r) {
    char need[32], capacity[32], disk[API_PLAN_DISK_LENGTH + 64];
    if (r->too_large.status != SIFR_OK) {
        fprintf(r->to, "It does not fit on %s machine. %s\n", r->machine_file ? "that" : "this",
                r->too_large.message);
        return;
    }
    disk_text(r, disk, sizeof disk);
    base_format_bytes((uint64_t)r->own.total_bytes, need);
    if (r->machine.separate)
        fprintf(
            r->to,
            "It fits: a rank takes %s of the device's memory and %s of the host's, and may take "
            "%s%s.\n",
            need, base_format_bytes((uint64_t)r->own.host_bytes, capacity), r->limits.text, disk);
    else if (r->limits.room_bytes < INT64_MAX)
        fprintf(r->to, "It fits: a rank takes %s, and may take %s (%s)%s.\n", need,
                base_format_bytes((uint64_t)r->limits.room_bytes, capacity), r->limits.text, disk);
    else if (disk[0])
        fprintf(r->to, "It fits on disk: a rank takes %s, and %s%s.\n", need, r->limits.text, disk);
}

static void print_largest(const api_plan_report *r, const char *what, int64_t largest,
                          int64_t own) {
    char text[32], mine[32];
    if (largest > 0)
        fprintf(r->to, "%-12s %s fits, one more does not; this run has %s\n", what,
                base_format_count(largest, text), base_format_count(own, mine));
    else
        fprintf(r->to, "%-12s none fits\n", what);
}

/* A longer sequence needs positions as well as memory. */
static void print_positions(const api_plan_report *r, int64_t length, int64_t positions) {
    char text[32];
    if (length > positions)
        fprintf(r->to, "%-12s beyond the model's %s positions\n", "",
                base_format_count(positions, text));
}

static void print_change(const api_plan_report *r, const char *name, const plan_outcome *o) {
    char bytes[32], text[32], price[32] = "", disk[64] = "";
    double own = r->own.predicted.step_seconds;
    if (!o->possible) {
        fprintf(r->to, "%-68s %10s\n", name, "impossible");
        return;
    }
    if (o != &r->own)
        snprintf(price, sizeof price, "%+.1f %%", 100 * (o->predicted.step_seconds / own - 1));
    if (o->nvme_bytes)
        snprintf(disk, sizeof disk, " (%s on disk)",
                 base_format_bytes((uint64_t)o->nvme_bytes, text));
    fprintf(r->to, "%-68s %10s %9.4g s %8s  %s%s\n", name,
            base_format_bytes((uint64_t)o->total_bytes, bytes), o->predicted.step_seconds, price,
            o->fits ? "fits" : "does not fit", disk);
}

const char *api_plan_change(const api_plan_report *r, size_t index, char out[256]) {
    plan_search fixed = r->search;
    fixed.any_order = false; /* changing the step order is a change even if it is "auto" */
    return plan_describe_change(&fixed, &r->own.settings, &r->changes[index].settings, out, 256);
}

static void print_changes(const api_plan_report *r) {
    char name[256];
    const plan_settings *own = &r->own.settings;
    fputs("\n", r->to);
    print_largest(r, "micro batch", r->largest_sequences, own->step.micro_batch_size);
    print_largest(r, "seq_length", r->largest_length, own->step.seq_length);
    print_positions(r, r->largest_length, model_positions(&r->model_config));
    fprintf(r->to, "\n%-68s %10s %11s\n", "with one setting changed", "a rank", "a step");
    print_change(r, "unchanged", &r->own);
    for (size_t i = 0; i < r->change_count; i++) {
        print_change(r, api_plan_change(r, i, name), &r->changes[i]);
    }
}

/* --- the stages beside each other --- */

/* A stage that the step is refused with has no figures. */
static void print_cell(const api_plan_report *r, int stage, const char *text) {
    fprintf(r->to, " %12s", r->stages[stage].possible ? text : "-");
}

static void print_row(const api_plan_report *r, const char *name,
                      const int64_t bytes[API_PLAN_STAGES]) {
    char text[32];
    fprintf(r->to, "%-16s", name);
    for (int i = 0; i < API_PLAN_STAGES; i++)
        print_cell(r, i, base_format_bytes((uint64_t)bytes[i], text));
    fputc('\n', r->to);
}

static void print_classes(const api_plan_report *r, const char *name, unsigned classes) {
    const plan_outcome *stages = r->stages;
    int64_t bytes[API_PLAN_STAGES] = {0}, sum = 0;
    for (int i = 0; i < API_PLAN_STAGES; i++) {
        for (int c = 0; c < PLAN_CLASSES; c++)
            if (classes & 1u << c) bytes[i] += stages[i].largest_bytes[c];
        sum += bytes[i];
    }
    if (sum) print_row(r, name, bytes);
}

static void print_stages(const api_plan_report *r) {
    const plan_outcome *s = r->stages;
    enum { STATE = 1 << PLAN_MASTERS | 1 << PLAN_MOMENTS };
    const unsigned named = STATE | 1 << PLAN_PARAMETERS | 1 << PLAN_GATHERED | 1 << PLAN_SECONDARY |
                           1 << PLAN_DECODED | 1 << PLAN_GRADIENTS | 1 << PLAN_ACTIVATIONS;
    int64_t total[API_PLAN_STAGES], gathered[API_PLAN_STAGES], reduced[API_PLAN_STAGES];
    int64_t nvme[API_PLAN_STAGES];
    for (int i = 0; i < API_PLAN_STAGES; i++) {
        total[i] = s[i].total_bytes;
        nvme[i] = s[i].nvme_bytes;
        gathered[i] = s[i].gathered;
        reduced[i] = s[i].reduced;
    }
    fprintf(r->to, "\n%-16s", "peak by class");
    for (int i = 0; i < API_PLAN_STAGES; i++) fprintf(r->to, "      stage %d", i);
    fputc('\n', r->to);
    print_classes(r, "parameters", 1 << PLAN_PARAMETERS);
    print_classes(r, "gathered", 1 << PLAN_GATHERED);
    print_classes(r, "secondary", 1 << PLAN_SECONDARY);
    print_classes(r, "decoded", 1 << PLAN_DECODED);
    print_classes(r, "gradients", 1 << PLAN_GRADIENTS);
    print_classes(r, "optimizer state", STATE);
    print_classes(r, "activations", 1 << PLAN_ACTIVATIONS);
    print_classes(r, "other", ((1u << PLAN_CLASSES) - 1) & ~named);
    print_row(r, "the block", total);
    if (r->schedule->nvme_bytes) print_row(r, "on nvme", nvme);
    print_row(r, "wire, gathers", gathered);
    print_row(r, "wire, reductions", reduced);
    char text[32];
    fprintf(r->to, "%-16s", "calls");
    for (int i = 0; i < API_PLAN_STAGES; i++) {
        snprintf(text, sizeof text, "%lld", (long long)(s[i].gathers + s[i].reductions));
        print_cell(r, i, text);
    }
    fprintf(r->to, "\n%-16s", "step_order");
    for (int i = 0; i < API_PLAN_STAGES; i++)
        print_cell(r, i, order_name(s[i].settings.step.step_order));
    fprintf(r->to, "\n%-16s", "seconds a step");
    for (int i = 0; i < API_PLAN_STAGES; i++) {
        snprintf(text, sizeof text, "%.4g", s[i].predicted.step_seconds);
        print_cell(r, i, text);
    }
    fputc('\n', r->to);
}

void api_plan_print_own(const api_plan_report *r) {
    print_run(r);
    print_ranks(r);
    print_compression(r);
    print_pipeline(r);
    print_mesh(r);
    print_time(r);
    print_memory(r);
    print_kept(r);
    print_checkpoint(r);
    print_fits(r);
}

void api_plan_print_others(const api_plan_report *r) {
    print_changes(r);
    if (plan_mesh_ranks(&r->schedule->settings.mesh, PLAN_WORLD) > 1) print_stages(r);
}
