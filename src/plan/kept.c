#include "plan/kept.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "base/heap.h"
#include "base/text.h"

/* "linear mlp.up_proj": the op, and the name of its weight within the unit. */
static void name_node(const plan_schedule *s, int32_t n, char *out, size_t size) {
    const model_node *node = &s->model->nodes[n];
    const char *op = node->op->name;
    if (node->w[0] < 0) {
        snprintf(out, size, "%s", op);
        return;
    }
    const char *weight = s->model->weights[node->w[0]].name;
    const char *unit = s->model->units[node->unit].name, *tail = strstr(weight, unit);
    tail = tail && tail[strlen(unit)] == '.' ? tail + strlen(unit) + 1 : weight;
    const char *dot = strrchr(tail, '.');
    int length = dot && strcmp(dot, ".weight") == 0 ? (int)(dot - tail) : (int)strlen(tail);
    snprintf(out, size, "%s %.*s", op, length, tail);
}

static sifr_status find_row(plan_kept *kept, const plan_schedule *s, int32_t node,
                            plan_kept_row **out, sifr_error *error) {
    char name[sizeof kept->rows->name];
    name_node(s, node, name, sizeof name);
    for (size_t i = 0; i < kept->count; i++) {
        *out = &kept->rows[i];
        if (strcmp(name, (*out)->name) == 0) return SIFR_OK;
    }
    BASE_TRY(base_grow(&kept->rows, &kept->capacity, kept->count + 1, sizeof *kept->rows, error));
    *out = &kept->rows[kept->count++];
    **out = (plan_kept_row){0};
    memcpy((*out)->name, name, sizeof name);
    return SIFR_OK;
}

/* Uses of a buffer. */
typedef struct kept_use {
    int32_t maker; /* last node that wrote it in the forward pass; -1: none */
    bool read;     /* read by the backward pass, or by recomputation */
    bool outside;  /* read by another unit */
} kept_use;

static void note_uses(const plan_schedule *s, kept_use *use) {
    for (size_t i = 0; i < s->instruction_count; i++) {
        const plan_instruction *in = &s->instructions[i];
        bool forward = in->action == PLAN_FORWARD, again = in->action == PLAN_RECOMPUTE;
        bool backward = in->action == PLAN_BACKWARD;
        /* Written to disk, or gathered, for the backward pass. */
        bool leaves = in->action == PLAN_WRITE || (in->action == PLAN_GATHER && in->segment < 0);
        if (in->micro_batch != 0 || !(forward || again || backward || leaves)) continue;
        for (int32_t o = in->first_operand; o < in->first_operand + in->operands; o++) {
            const plan_operand *operand = &s->operands[o];
            kept_use *u = &use[operand->buffer];
            base_assert(operand->buffer >= 0);
            bool made = operand->role == PLAN_Y || operand->role == PLAN_SAVED0;
            if (s->buffers[operand->buffer].class != PLAN_ACTIVATIONS) continue;
            if (forward && made) {
                base_assert(in->node >= 0);
                u->maker = in->node;
            } else {
                u->read |= !forward;
                u->outside |= s->buffers[operand->buffer].unit != in->unit;
            }
        }
    }
}

static sifr_status add_kept(plan_kept *kept, const plan_schedule *s, const kept_use *use,
                            bool *counted, sifr_error *error) {
    for (size_t b = 0; b < s->buffer_count; b++) {
        plan_kept_row *row = &kept->inputs;
        if (use[b].maker < 0 || !use[b].read) continue;
        if (!use[b].outside) BASE_TRY(find_row(kept, s, use[b].maker, &row, error));
        row->bytes += s->buffers[b].bytes;
        row->kept += !counted[use[b].maker];
        counted[use[b].maker] = true;
    }
    return SIFR_OK;
}

/* Counts recomputed nodes. `counted`, by node: all tiles of a node are one result. */
static sifr_status add_again(plan_kept *kept, const plan_schedule *s, const plan_machine *machine,
                             bool *counted, sifr_error *error) {
    for (size_t i = 0; i < s->instruction_count; i++) {
        const plan_instruction *in = &s->instructions[i];
        plan_kept_row *row;
        if (in->action != PLAN_RECOMPUTE) continue;
        base_assert(in->node >= 0);
        BASE_TRY(find_row(kept, s, in->node, &row, error));
        row->again += !counted[in->node];
        counted[in->node] = true;
        row->seconds += plan_price(s, i, machine);
    }
    return SIFR_OK;
}

sifr_status plan_kept_find(const plan_schedule *s, const plan_machine *machine, plan_kept *out,
                           sifr_error *error) {
    kept_use *use = NULL;
    bool *counted = NULL; /* by node */
    sifr_status status;
    BASE_TRY_GOTO(status, base_alloc(s->buffer_count, sizeof *use, &use, error), done);
    BASE_TRY_GOTO(status, base_alloc(s->model->node_count, sizeof *counted, &counted, error), done);
    for (size_t b = 0; b < s->buffer_count; b++) use[b].maker = -1;
    note_uses(s, use);
    snprintf(out->inputs.name, sizeof out->inputs.name, "units' inputs");
    snprintf(out->all.name, sizeof out->all.name, "all");
    BASE_TRY_GOTO(status, add_kept(out, s, use, counted, error), done);
    memset(counted, 0, s->model->node_count * sizeof *counted);
    BASE_TRY_GOTO(status, add_again(out, s, machine, counted, error), done);
    for (size_t i = 0; i < out->count; i++) {
        out->all.kept += out->rows[i].kept;
        out->all.again += out->rows[i].again;
        out->all.bytes += out->rows[i].bytes;
        out->all.seconds += out->rows[i].seconds;
    }
done:
    free(use);
    free(counted);
    return status;
}

bool plan_kept_describe(const plan_schedule *s, const plan_machine *machine, char *out,
                        size_t size) {
    plan_kept kept = {0};
    plan_prediction predicted;
    sifr_status status = plan_kept_find(s, machine, &kept, NULL);
    if (status == SIFR_OK) status = plan_predict(s, machine, &predicted, NULL, NULL);
    plan_kept_row all = kept.all;
    plan_kept_free(&kept);
    if (status != SIFR_OK) return false;
    char bytes[32], limit[32], most[64] = "";
    if (s->settings.step.activation_memory > 0)
        snprintf(most, sizeof most, " of the %s that they may",
                 base_format_bytes((uint64_t)s->settings.step.activation_memory, limit));
    int used =
        snprintf(out, size, "activations take %s%s; of %d results that the backward pass reads, %s",
                 base_format_bytes((uint64_t)s->largest_bytes[PLAN_ACTIVATIONS], bytes), most,
                 (int)(all.kept + all.again), all.again ? "" : "all are kept");
    if (all.again && used > 0 && (size_t)used < size)
        snprintf(out + used, size - (size_t)used,
                 "%d are kept, and recomputing the others should take %.2g s of a step of %.3g s",
                 (int)all.kept, all.seconds, predicted.step_seconds);
    return true;
}

void plan_kept_free(plan_kept *kept) {
    free(kept->rows);
    *kept = (plan_kept){0};
}
