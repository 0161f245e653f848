/* Tiles: which runs of nodes process their rows a tile at a time, and when their nodes are
 * recomputed. Tiles begin at the chunks of tokens in which weight gradients are added, in order, so
 * the sums over all tiles have the same bits as without tiles.
 */
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "base/checked.h"
#include "base/heap.h"
#include "plan/lower/lower.h"

/* Saved state of one value's gradient, so that each tile's backward pass starts like the first one.
 */
typedef struct lower_memory {
    size_t value; /* of the micro batch's set */
    int32_t gradient;
    lower_place place; /* where there is one */
    bool slice_written;
} lower_memory;

static int32_t region_end(const lower_state *state, int32_t first) {
    base_assert(state->tiles.region[first] == first);
    const model_unit *u = &state->model->units[state->model->nodes[first].unit];
    int32_t n = first, end = u->first_node + u->nodes;
    while (n < end && state->tiles.region[n] == first) n++;
    return n;
}

/* --- before anything is lowered --- */

/* A weight that is used twice adds its sums by use; adding them by tile would change the bits. */
static bool uses_weight_twice(const sifr_model *model, int32_t first, int32_t end) {
    for (int32_t n = first; n < end; n++) {
        for (int32_t m = first; m < n; m++) {
            for (int i = 0; i < DEVICE_WEIGHTS * DEVICE_WEIGHTS; i++) {
                int32_t w = model->nodes[n].w[i / DEVICE_WEIGHTS];
                if (w >= 0 && w == model->nodes[m].w[i % DEVICE_WEIGHTS]) return true;
            }
        }
    }
    return false;
}

/* Values with a number of rows of their own do not pass through with the tokens, nor do those of
 * which tensor ranks have some rows each. */
static bool is_by_row(const sifr_model *model, int32_t n) {
    const model_node *node = &model->nodes[n];
    const model_value *y = &model->values[node->y];
    return node->op->by_row && !node->summed && y->rows == 0 && !y->cut_rows;
}

static void find_regions(lower_state *state) {
    const sifr_model *model = state->model;
    int32_t *region = state->tiles.region;
    for (size_t u = 0; u < model->unit_count; u++) {
        int32_t n = model->units[u].first_node, last = n + model->units[u].nodes;
        while (n < last) {
            int32_t end = n;
            while (end < last && is_by_row(model, end)) end++;
            bool whole = end == n || uses_weight_twice(model, n, end);
            for (int32_t m = n; m < end; m++) region[m] = whole ? -1 : n;
            if (end < last) region[end++] = -1;
            n = end;
        }
    }
}

/* Nodes that write in place share a buffer, so one is inner only if all are. */
static void find_inner(lower_state *state) {
    const sifr_model *model = state->model;
    const int32_t *region = state->tiles.region;
    bool *inner = state->tiles.inner;
    for (size_t n = 0; n < model->node_count; n++) inner[n] = region[n] >= 0;
    for (size_t n = 0; n < model->node_count; n++) {
        for (int x = 0; x < DEVICE_INPUTS; x++) {
            if (model->nodes[n].x[x] < 0) continue;
            int32_t maker = model->values[model->nodes[n].x[x]].node;
            if (maker >= 0 && region[maker] != region[n]) inner[maker] = false;
        }
    }
    for (size_t n = 0; n < model->node_count; n++) {
        if (!state->in_place[n]) continue;
        int32_t before = model->values[model->nodes[n].x[0]].node;
        inner[n] = inner[n] && inner[before] && region[n] == region[before];
    }
    for (size_t n = model->node_count; n-- > 0;) {
        if (!state->in_place[n] || inner[n]) continue;
        inner[model->values[model->nodes[n].x[0]].node] = false;
    }
}

/* Tiles save nothing in a region whose results are all read elsewhere. */
static void drop_regions(lower_state *state) {
    const sifr_model *model = state->model;
    int32_t *region = state->tiles.region;
    for (int32_t n = 0, end; n < (int32_t)model->node_count; n = end) {
        bool gains = false;
        end = n + 1;
        if (region[n] < 0) continue;
        end = region_end(state, n);
        for (int32_t m = n; m < end; m++) gains |= state->tiles.inner[m];
        for (int32_t m = n; m < end && !gains; m++) region[m] = -1;
    }
}

/* Requests input x of node n again, for the node's recomputation or for its backward pass. */
static void ask(lower_state *state, int32_t n, int x, int keep) {
    const lower_tiles *tiles = &state->tiles;
    const model_value *value = &state->model->values[state->model->nodes[n].x[x]];
    int32_t maker = value->node;
    if (maker < 0 || value->unit != state->model->nodes[n].unit) return;
    bool same = tiles->region[n] >= 0 && tiles->region[n] == tiles->region[maker];
    bool gathers = model_gathers_rows(state->model->nodes[maker].op); /* lower_gather_again */
    bool in_backward = tiles->late[n] || (!gathers && (keep & (MODEL_KEEP_X0 << x)));
    if (in_backward && same) tiles->late[maker] = true;
    bool early = tiles->early[n] && !(gathers && state->model->nodes[n].op->makes_loss);
    if (early || (in_backward && !same)) tiles->early[maker] = true;
}

/* From the last node of a unit to the first: what others read is there before the unit's backward
 * pass; what only the region's own backward pass reads is made a tile at a time. */
static void find_times(lower_state *state, int32_t unit) {
    const sifr_model *model = state->model;
    const model_unit *u = &model->units[unit];
    lower_tiles *tiles = &state->tiles;
    for (int32_t n = u->first_node + u->nodes - 1; n >= u->first_node; n--) {
        const model_node *node = &model->nodes[n];
        int keep = lower_kept(state, n);
        bool recompute = state->recompute[n];
        if (tiles->region[n] < 0) {
            tiles->early[n] = recompute;
        } else {
            bool there = tiles->early[n] && !tiles->inner[n];
            bool read = tiles->late[n] || (keep & (MODEL_KEEP_Y | MODEL_KEEP_SAVED));
            tiles->early[n] = recompute && tiles->early[n];
            tiles->late[n] = recompute && read && !there;
        }
        for (int x = 0; x < DEVICE_INPUTS; x++) {
            if (node->x[x] >= 0) ask(state, n, x, keep);
        }
    }
}

sifr_status lower_find_tiles(lower_state *state, sifr_error *error) {
    const plan_settings *settings = &state->s->settings;
    const sifr_model *model = state->model;
    lower_tiles *tiles = &state->tiles;
    size_t nodes = model->node_count;
    BASE_TRY(base_alloc(nodes, sizeof *tiles->region, &tiles->region, error));
    BASE_TRY(base_alloc(nodes, sizeof *tiles->inner, &tiles->inner, error));
    BASE_TRY(base_alloc(nodes, sizeof *tiles->early, &tiles->early, error));
    BASE_TRY(base_alloc(nodes, sizeof *tiles->late, &tiles->late, error));
    BASE_TRY(base_alloc(nodes, sizeof *tiles->gathered, &tiles->gathered, error));
    for (size_t n = 0; n < nodes; n++) tiles->region[n] = -1;
    bool tiled = settings->mode != PLAN_GENERATE && settings->step.tile_tokens > 0 &&
                 state->tokens > settings->step.tile_tokens;
    if (tiled) {
        tiles->rows = settings->step.tile_tokens;
        find_regions(state);
        find_inner(state);
        drop_regions(state);
    }
    bool recomputes =
        settings->mode == PLAN_TRAIN && settings->step.recompute != SIFR_RECOMPUTE_NONE;
    for (int32_t u = 0; recomputes && u < (int32_t)model->unit_count; u++) find_times(state, u);
    return SIFR_OK;
}

void lower_free_tiles(lower_state *state) {
    lower_tiles *tiles = &state->tiles;
    void *const blocks[] = {tiles->region, tiles->inner,  tiles->early,    tiles->late,
                            tiles->whole,  tiles->memory, tiles->gathered, state->folds};
    for (size_t i = 0; i < sizeof blocks / sizeof *blocks; i++) free(blocks[i]);
}

/* --- while it is lowered --- */

/* Values kept for the backward pass have all rows. */
static bool is_kept(const lower_state *state, int32_t node) {
    const plan_settings *settings = &state->s->settings;
    if (settings->mode != PLAN_TRAIN || state->recomputing) return false;
    return settings->step.recompute == SIFR_RECOMPUTE_NONE || (state->kept && state->kept[node]);
}

bool lower_is_local(const lower_state *state, int32_t node) {
    if (state->part.region < 0) return false;
    return state->part.late || (state->tiles.inner[node] && !is_kept(state, node));
}

bool lower_gradient_is_local(const lower_state *state, int32_t value) {
    int32_t maker = state->model->values[value].node;
    return maker >= 0 && state->part.region >= 0 &&
           state->tiles.region[maker] == state->part.region && state->tiles.inner[maker];
}

lower_part lower_whole(const lower_state *state) {
    return (lower_part){.rows = state->tokens, .region = -1};
}

/* The tile that begins at `first`. */
static void begin_tile(lower_state *state, int32_t region, int64_t first) {
    base_assert(state->tiles.rows > 0 && first % state->tiles.rows == 0);
    int64_t rows = state->tiles.rows;
    state->part = (lower_part){.first = first,
                               .rows = base_min_i64(rows, state->tokens - first),
                               .tile = (int32_t)(first / rows),
                               .region = region};
}

static sifr_status forward_nodes(lower_state *state, int32_t first, int32_t end,
                                 sifr_error *error) {
    for (int32_t n = first; n < end; n++) {
        if (state->recomputing && !state->recomputing[n]) continue;
        BASE_TRY(lower_forward(state, n, error));
    }
    return SIFR_OK;
}

sifr_status lower_forward_tiles(lower_state *state, int32_t region, int32_t *next,
                                sifr_error *error) {
    sifr_status status = SIFR_OK;
    *next = region_end(state, region);
    for (int64_t row = 0; row < state->tokens && status == SIFR_OK; row += state->tiles.rows) {
        begin_tile(state, region, row);
        status = forward_nodes(state, region, *next, error);
    }
    state->part = lower_whole(state);
    return status;
}

static sifr_status remember(lower_state *state, int32_t value, sifr_error *error) {
    lower_tiles *tiles = &state->tiles;
    size_t at = lower_value(state, value);
    int32_t gradient = state->gradient[at];
    BASE_TRY(base_grow(&tiles->memory, &tiles->memory_capacity, tiles->memory_count + 1,
                       sizeof *tiles->memory, error));
    tiles->memory[tiles->memory_count++] =
        (lower_memory){.value = at,
                       .gradient = gradient,
                       .place = gradient < 0 ? (lower_place){0} : state->places[gradient],
                       .slice_written = state->slice_written[at]};
    return SIFR_OK;
}

static sifr_status remember_region(lower_state *state, int32_t first, int32_t end,
                                   sifr_error *error) {
    const sifr_model *model = state->model;
    state->tiles.memory_count = state->tiles.whole_count = 0;
    for (int32_t n = first; n < end; n++) {
        const model_node *node = &model->nodes[n];
        BASE_TRY(remember(state, node->y, error));
        for (int x = 0; x < DEVICE_INPUTS; x++) {
            if (node->x[x] < 0) continue;
            int32_t base = model->values[node->x[x]].base;
            BASE_TRY(remember(state, node->x[x], error));
            if (base >= 0) BASE_TRY(remember(state, base, error));
        }
    }
    return SIFR_OK;
}

static void recall(lower_state *state) {
    const lower_tiles *tiles = &state->tiles;
    for (size_t i = 0; i < tiles->memory_count; i++) {
        const lower_memory *m = &tiles->memory[i];
        state->gradient[m->value] = m->gradient;
        state->slice_written[m->value] = m->slice_written;
        if (m->gradient >= 0) state->places[m->gradient] = m->place;
    }
    state->tiles.whole_next = 0;
}

static sifr_status backward_tile(lower_state *state, int32_t first, int32_t end,
                                 sifr_error *error) {
    recall(state);
    state->part.late = true;
    state->recomputing = state->tiles.late;
    sifr_status status = forward_nodes(state, first, end, error);
    state->part.late = false;
    state->recomputing = NULL;
    for (int32_t n = end - 1; n >= first && status == SIFR_OK; n--)
        status = lower_backward(state, n, LOWER_BOTH, error);
    return status;
}

sifr_status lower_backward_tiles(lower_state *state, int32_t last, int32_t *next,
                                 sifr_error *error) {
    int32_t region = state->tiles.region[last];
    base_assert(region >= 0 && region_end(state, region) == last + 1);
    *next = region - 1;
    for (int32_t n = region; n <= last; n++)
        BASE_TRY(lower_gather_again(state, n, lower_kept(state, n), error));
    sifr_status status = remember_region(state, region, last + 1, error);
    for (int64_t row = 0; row < state->tokens && status == SIFR_OK; row += state->tiles.rows) {
        begin_tile(state, region, row);
        status = backward_tile(state, region, last + 1, error);
    }
    state->part = lower_whole(state);
    return status;
}
