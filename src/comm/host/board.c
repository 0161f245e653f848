#include "comm/host/board.h"

#include <stdio.h>
#include <string.h>

#include "base/assert.h"

enum { READS = 1000 }; /* tries to read an entry that is being written: its writer may have died */

void comm_board_write(comm_entry *entry, const comm_state *state) {
    uint32_t version = atomic_load_explicit(&entry->version, memory_order_relaxed);
    base_assert(version % 2 == 0); /* one thread writes */
    atomic_store_explicit(&entry->version, version + 1, memory_order_relaxed);
    atomic_thread_fence(memory_order_release);
    entry->state = *state;
    atomic_store_explicit(&entry->version, version + 2, memory_order_release);
}

comm_state comm_board_read(const comm_entry *entry) {
    comm_state state;
    for (int i = 0; i < READS; i++) {
        uint32_t before = atomic_load_explicit(&entry->version, memory_order_acquire);
        state = entry->state;
        atomic_thread_fence(memory_order_acquire);
        uint32_t after = atomic_load_explicit(&entry->version, memory_order_relaxed);
        if (before == after && before % 2 == 0) break;
    }
    state.noun[COMM_NOUN - 1] = state.group[COMM_NAME - 1] = '\0';
    return state;
}

comm_state comm_board_begin(const char *group, uint32_t number, comm_operation operation,
                            const comm_label *label) {
    comm_state state = {.number = number,
                        .operation = (int32_t)operation,
                        .busy = true,
                        .of = label->number,
                        .step = label->step};
    if (label->noun) snprintf(state.noun, sizeof state.noun, "%s", label->noun);
    snprintf(state.group, sizeof state.group, "%s", group);
    return state;
}

void comm_board_name(const comm_state *state, char *out, size_t capacity) {
    bool known = state->operation >= 0 && state->operation < COMM_OPERATIONS;
    char group[COMM_NAME + 16] = "", of[COMM_NOUN + 24] = "", step[32] = "";
    if (state->group[0]) snprintf(group, sizeof group, " (group %s)", state->group);
    if (state->noun[0] && state->of >= 0)
        snprintf(of, sizeof of, " of %s %d", state->noun, (int)state->of);
    else if (state->noun[0])
        snprintf(of, sizeof of, " of the %s", state->noun);
    if (state->step > 0) snprintf(step, sizeof step, ", step %lld", (long long)state->step);
    snprintf(out, capacity, "%s%s%s%s",
             known ? comm_operation_name((comm_operation)state->operation) : "a collective", group,
             of, step);
}

/* A line with limited room, cut at its end. */
typedef struct line {
    char *text;
    size_t capacity, used;
} line;

static void add(line *out, const char *text) {
    base_assert(out->used < out->capacity);
    int length = snprintf(out->text + out->used, out->capacity - out->used, "%s", text);
    out->used += (size_t)length;
    if (out->used >= out->capacity) out->used = out->capacity - 1;
}

static void add_rank(line *out, int32_t rank) {
    char text[32];
    snprintf(text, sizeof text, "%d", (int)rank);
    add(out, text);
}

typedef enum sight { SIGHT_MISSING, SIGHT_WAITS, SIGHT_UNKNOWN } sight;

static sight sight_of(const comm_sighting *rank, const comm_state *mine) {
    if (!rank->known) return SIGHT_UNKNOWN;
    bool there =
        (int32_t)(rank->state.number - mine->number) > 0 ||
        (rank->state.number == mine->number); /* in the collective, or done with its part */
    bool runs = !rank->dead && rank->silent <= COMM_SILENCE;
    return runs && there ? SIGHT_WAITS : SIGHT_MISSING;
}

static void add_missing(line *out, const comm_sighting *seen, double now) {
    char text[192], name[128];
    int32_t rank = seen->rank;
    const comm_state *s = &seen->state;
    comm_board_name(s, name, sizeof name);
    if (seen->dead)
        snprintf(text, sizeof text, "rank %d has died; last %s", (int)rank, name);
    else if (s->busy && seen->silent > COMM_SILENCE)
        snprintf(text, sizeof text, "rank %d is in %s, but has not run for %.0f s", (int)rank, name,
                 seen->silent);
    else if (s->number == 0)
        snprintf(text, sizeof text, "rank %d has not begun any collective", (int)rank);
    else if (s->busy)
        snprintf(text, sizeof text, "rank %d has been in %s for %.0f s", (int)rank, name,
                 now - s->since);
    else
        snprintf(text, sizeof text, "rank %d has not been in a collective for %.0f s, last %s",
                 (int)rank, now - s->since, name);
    add(out, text);
}

/* Writes "ranks 0 to 3, 7" for ranks in the same state; returns their number. */
static int32_t add_ranks(line *out, const comm_sighting *ranks, int32_t size,
                         const comm_state *mine, sight which) {
    bool any = false;
    int32_t count = 0;
    for (int32_t r = 0; r < size; r++) count += sight_of(&ranks[r], mine) == which;
    if (!count) return 0;
    add(out, count == 1 ? "rank " : "ranks ");
    for (int32_t r = 0; r < size; r++) {
        if (sight_of(&ranks[r], mine) != which) continue;
        int32_t last = r;
        while (last + 1 < size && ranks[last + 1].rank == ranks[last].rank + 1 &&
               sight_of(&ranks[last + 1], mine) == which)
            last++;
        if (any) add(out, ", ");
        add_rank(out, ranks[r].rank);
        if (last > r) add(out, last > r + 1 ? " to " : ", "), add_rank(out, ranks[last].rank);
        any = true;
        r = last;
    }
    return count;
}

void comm_board_describe(const comm_sighting *ranks, int32_t size, const comm_state *mine,
                         double now, char *out, size_t capacity) {
    base_assert(size >= 0 && capacity >= 1);
    enum { NAMED = 4 }; /* the error's line has limited room */
    line text = {out, capacity, 0};
    int32_t missing = 0;
    out[0] = '\0';
    for (int32_t r = 0; r < size; r++) {
        if (sight_of(&ranks[r], mine) != SIGHT_MISSING) continue;
        if (missing++ >= NAMED) continue;
        if (missing > 1) add(&text, "; ");
        add_missing(&text, &ranks[r], now);
    }
    if (missing > NAMED) {
        add(&text, "; all that are missing: ");
        add_ranks(&text, ranks, size, mine, SIGHT_MISSING);
    }
    size_t before = text.used;
    if (before) add(&text, "; ");
    int32_t waiting = add_ranks(&text, ranks, size, mine, SIGHT_WAITS);
    if (waiting)
        add(&text, waiting == 1 ? " waits in it" : " wait in it");
    else
        text.used = before, out[before] = '\0';
    before = text.used;
    add(&text, before ? "; nothing is known about " : "nothing is known about ");
    if (add_ranks(&text, ranks, size, mine, SIGHT_UNKNOWN))
        add(&text, " (other hosts)");
    else
        text.used = before, out[before] = '\0';
}
