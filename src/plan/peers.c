#include "plan/peers.h"

#include <stdlib.h>

#include "base/assert.h"
#include "base/heap.h"
#include "plan/queries.h"

bool plan_is_peer(const plan_instruction *in) {
    return in->action == PLAN_SEND || in->action == PLAN_RECEIVE;
}

bool plan_is_of_all(const plan_instruction *in) {
    return in->action == PLAN_COUNT || in->action == PLAN_NORM;
}

bool plan_has_second_line(const plan_pipeline *p) {
    return p->stages == 2 && p->chunks > 1;
}

bool plan_is_on_second_line(const plan_pipeline *p, const plan_instruction *in) {
    int32_t kind = in->stream % PLAN_STREAMS;
    return plan_has_second_line(p) && (kind == PLAN_STREAM_GRADIENTS || kind == PLAN_STREAM_SUMS);
}

int64_t plan_received(const plan_schedule *s) {
    int64_t bytes = 0;
    for (size_t i = 0; i < s->instruction_count; i++)
        bytes += s->instructions[i].action == PLAN_RECEIVE ? s->instructions[i].bytes : 0;
    return bytes;
}

int64_t plan_received_crossing(const plan_schedule *s, int32_t ranks_per_host) {
    base_assert(ranks_per_host >= 0);
    plan_mesh there = s->settings.mesh;
    int32_t rank = plan_mesh_place(&there, PLAN_WORLD);
    int64_t bytes = 0;
    if (ranks_per_host <= 0) return 0;
    for (size_t i = 0; i < s->instruction_count; i++) {
        const plan_instruction *in = &s->instructions[i];
        if (in->action != PLAN_RECEIVE) continue;
        there.place[PLAN_AXIS_STAGE] = in->peer;
        bool far = plan_mesh_place(&there, PLAN_WORLD) / ranks_per_host != rank / ranks_per_host;
        bytes += far ? in->bytes : 0;
    }
    return bytes;
}

/* Of one stage, all transfers of one direction with one other stage, by line, in list order. */
typedef struct peers_end {
    int32_t line, index;
} peers_end;

static int compare_ends(const void *a, const void *b) {
    const peers_end *x = a, *y = b;
    if (x->line != y->line) return x->line < y->line ? -1 : 1;
    return x->index < y->index ? -1 : x->index > y->index;
}

static sifr_status list_ends(const plan_schedule *s, plan_action action, size_t peer,
                             peers_end **out, size_t *count, sifr_error *error) {
    size_t capacity = 0;
    *out = NULL;
    *count = 0;
    for (size_t i = 0; i < s->instruction_count; i++) {
        const plan_instruction *in = &s->instructions[i];
        base_assert(!plan_is_peer(in) || in->peer >= 0);
        if (in->action != action || (size_t)in->peer != peer) continue;
        BASE_TRY(base_grow(out, &capacity, *count + 1, sizeof **out, error));
        bool second = plan_is_on_second_line(&s->settings.pipeline, in);
        (*out)[(*count)++] = (peers_end){second, (int32_t)i};
    }
    if (*count) qsort(*out, *count, sizeof **out, compare_ends);
    return SIFR_OK;
}

/* Joins the sends of stage `from` with the receives of stage `to`. */
static sifr_status join(const plan_schedule *const *s, size_t from, size_t to, plan_peers *peers,
                        plan_peers_fault *fault, sifr_error *error) {
    peers_end *sends = NULL, *receives = NULL;
    size_t sent, received;
    sifr_status status = list_ends(s[from], PLAN_SEND, to, &sends, &sent, error);
    if (status == SIFR_OK)
        status = list_ends(s[to], PLAN_RECEIVE, from, &receives, &received, error);
    for (size_t i = 0; status == SIFR_OK && (i < sent || i < received); i++) {
        int32_t x = i < sent ? sends[i].index : -1, y = i < received ? receives[i].index : -1;
        const plan_instruction *one = s[from]->instructions + x, *two = s[to]->instructions + y;
        bool same = x >= 0 && y >= 0 && sends[i].line == receives[i].line &&
                    one->stream == two->stream && one->bytes == two->bytes;
        if (!same) {
            *fault = (plan_peers_fault){from, to, x, y};
            status = SIFR_FAILED;
            break;
        }
        base_assert(from != to);
        peers->other[from][x] = y;
        peers->other[to][y] = x;
    }
    free(sends);
    free(receives);
    return status;
}

sifr_status plan_join_peers(const plan_schedule *const *schedules, size_t stages, plan_peers *peers,
                            plan_peers_fault *fault, sifr_error *error) {
    *peers = (plan_peers){.stages = stages};
    *fault = (plan_peers_fault){0};
    BASE_TRY(base_alloc(stages, sizeof *peers->other, &peers->other, error));
    for (size_t s = 0; s < stages; s++)
        BASE_TRY(base_alloc(schedules[s]->instruction_count, sizeof **peers->other,
                            &peers->other[s], error));
    for (size_t from = 0; from < stages; from++) {
        for (size_t to = 0; to < stages; to++)
            BASE_TRY(join(schedules, from, to, peers, fault, error));
    }
    return SIFR_OK;
}

void plan_free_peers(plan_peers *peers) {
    for (size_t s = 0; peers->other && s < peers->stages; s++) free(peers->other[s]);
    free(peers->other);
    *peers = (plan_peers){0};
}
