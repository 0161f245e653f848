/* Rows in memory: appending, splitting, drawing. */
#include "data/chat/chat_rows.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/hash.h"
#include "base/heap.h"
#include "data/chat/chat_rows_internal.h"
#include "data/permutation.h"

/* Keeps the permutations of sources apart, and those of the split. */
static const uint64_t source_step = UINT64_C(0x9e3779b97f4a7c15), split_step = UINT64_C(0x73706c69);

sifr_status data_chat_new(int64_t length, int64_t padding, size_t parts, data_chat **out,
                          sifr_error *error) {
    BASE_TRY(base_alloc(1, sizeof **out, out, error));
    data_chat *chat = *out;
    chat->length = length;
    chat->padding = padding;
    chat->part_count = parts;
    chat->begin = -1;
    sifr_status status = base_alloc(parts, sizeof *chat->parts, &chat->parts, error);
    if (status == SIFR_OK)
        status = base_grow(&chat->starts, &chat->starts_capacity, 1, sizeof *chat->starts, error);
    if (status == SIFR_OK)
        chat->starts[0] = 0;
    else
        data_chat_close(chat), *out = NULL;
    return status;
}

void data_chat_close(data_chat *chat) {
    if (!chat) return;
    free(chat->ids);
    free(chat->learned);
    free(chat->starts);
    free(chat->lengths);
    free(chat->numbers);
    for (size_t f = 0; f < chat->file_count; f++) free(chat->files[f]);
    free(chat->files);
    free(chat->places);
    free(chat->parts);
    data_chat_packs_free(&chat->packs);
    data_chat_groups_free(chat->groups);
    free(chat);
}

sifr_status data_chat_append(data_chat *x, const int32_t *ids, const bool *learned, int64_t count,
                             int64_t whole, sifr_error *error) {
    data_chat_counts *c = &x->counts;
    size_t rows = (size_t)c->rows, tokens = (size_t)c->tokens, more = (size_t)count;
    BASE_TRY(base_grow(&x->ids, &x->ids_capacity, tokens + more, sizeof *x->ids, error));
    BASE_TRY(
        base_grow(&x->learned, &x->learned_capacity, tokens + more, sizeof *x->learned, error));
    BASE_TRY(base_grow(&x->starts, &x->starts_capacity, rows + 2, sizeof *x->starts, error));
    BASE_TRY(base_grow(&x->lengths, &x->lengths_capacity, rows + 1, sizeof *x->lengths, error));
    BASE_TRY(base_grow(&x->numbers, &x->numbers_capacity, rows + 1, sizeof *x->numbers, error));
    memcpy(x->ids + tokens, ids, more * sizeof *ids);
    memcpy(x->learned + tokens, learned, more * sizeof *learned);
    for (int64_t i = 1; i < count; i++) c->learned += learned[i];
    c->tokens += count;
    x->lengths[c->rows] = whole;
    x->numbers[c->rows] = c->rows;
    x->unsplit = c->rows + 1;
    x->starts[++c->rows] = c->tokens;
    c->longest = base_max_i64(c->longest, whole);
    return SIFR_OK;
}

sifr_status data_chat_note_file(data_chat *x, const char *file, sifr_error *error) {
    BASE_TRY(base_grow(&x->files, &x->files_capacity, x->file_count + 1, sizeof *x->files, error));
    x->files[x->file_count] = strdup(file);
    if (!x->files[x->file_count]) return base_fail_alloc(error, strlen(file) + 1);
    x->file_count++;
    return SIFR_OK;
}

sifr_status data_chat_note_place(data_chat *x, int64_t row, sifr_error *error) {
    size_t rows = (size_t)x->counts.rows;
    BASE_TRY(base_grow(&x->places, &x->places_capacity, rows, sizeof *x->places, error));
    x->places[rows - 1] = (chat_place){.file = x->file_count - 1, .row = row};
    return SIFR_OK;
}

int64_t data_chat_place(const data_chat *x, int64_t index, const char **file) {
    *file = x->file_count > 1 ? x->files[x->places[index].file] : NULL;
    return x->places[index].row;
}

void data_chat_settle(data_chat *chat) {
    chat->draws = 0;
    for (size_t p = 0; p < chat->part_count; p++) {
        chat_part *part = &chat->parts[p];
        double draws = floor((double)part->count * part->weight + 0.5);
        part->draws = draws > 1e15 ? (int64_t)1e15 : (int64_t)draws;
        if (part->count && part->draws == 0) part->draws = 1;
        chat->draws += part->draws;
    }
}

/* --- the split --- */

static int64_t rows_a_draw(const data_chat *chat) {
    return chat->paired ? 2 : 1;
}

/* The rows that go, or the pairs: those that a permutation puts first. */
static sifr_status choose(const data_chat *x, double share, uint64_t seed, bool **out,
                          sifr_error *error) {
    int64_t rows = x->counts.rows / rows_a_draw(x);
    int64_t count = (int64_t)floor(share < 1 ? (double)rows * share + 0.5 : share);
    const char *what = x->paired ? "pair" : "row";
    if (rows < 2)
        return base_fail(error, SIFR_FAILED,
                         "validation_split: %lld %s%s cannot be split; give more %ss, or eval_data",
                         (long long)rows, what, rows == 1 ? "" : "s", what);
    if (share >= 1 && (count >= rows || share > floor(share)))
        return base_fail(error, SIFR_USAGE,
                         "validation_split: %g %ss cannot be held out of %lld; give a whole number "
                         "below that, or a share below 1",
                         share, what, (long long)rows);
    count = base_min_i64(base_max_i64(count, 1), rows - 1);
    BASE_TRY(base_alloc((size_t)rows, sizeof **out, out, error));
    for (int64_t i = 0; i < count; i++) (*out)[data_permute(seed ^ split_step, 0, rows, i)] = true;
    return SIFR_OK;
}

/* Appends the rows of which goes[i] is `side`. */
static sifr_status copy_side(const data_chat *x, const bool *goes, bool side, data_chat *to,
                             sifr_error *error) {
    int64_t per = rows_a_draw(x);
    to->paired = x->paired;
    to->begin = x->begin;
    for (size_t p = 0; p < x->part_count; p++) {
        const chat_part *part = &x->parts[p];
        to->parts[p] = (chat_part){.first = to->counts.rows / per, .weight = part->weight};
        for (int64_t i = part->first * per; i < (part->first + part->count) * per; i++) {
            int64_t start = x->starts[i];
            if (goes[i / per] != side) continue;
            BASE_TRY(data_chat_append(to, x->ids + start, x->learned + start,
                                      x->starts[i + 1] - start, x->lengths[i], error));
            to->numbers[to->counts.rows - 1] = x->numbers[i];
        }
        to->parts[p].count = to->counts.rows / per - to->parts[p].first;
    }
    data_chat_settle(to);
    to->unsplit = x->unsplit;
    return SIFR_OK;
}

sifr_status data_chat_split(data_chat *chat, double share, uint64_t seed, data_chat **held_out,
                            sifr_error *error) {
    data_chat *stays = NULL, *leaves = NULL;
    bool *goes = NULL;
    sifr_status status = choose(chat, share, seed, &goes, error);
    if (status == SIFR_OK)
        status = data_chat_new(chat->length, chat->padding, chat->part_count, &stays, error);
    if (status == SIFR_OK)
        status = data_chat_new(chat->length, chat->padding, chat->part_count, &leaves, error);
    if (status == SIFR_OK) status = copy_side(chat, goes, false, stays, error);
    if (status == SIFR_OK) status = copy_side(chat, goes, true, leaves, error);
    free(goes);
    if (status != SIFR_OK) {
        data_chat_close(stays);
        data_chat_close(leaves);
        return status;
    }
    data_chat swapped = *chat;
    *chat = *stays;
    *stays = swapped;
    data_chat_close(stays);
    *held_out = leaves;
    return SIFR_OK;
}

/* --- packing and grouping --- */

/* Appends the packs of a part, whose rows they count from 0, and makes them its members. */
static void add_packs(data_chat *x, chat_part *part, const data_chat_packs *packs) {
    data_chat_packs *all = &x->packs;
    for (int64_t i = 0; i < part->count; i++)
        all->rows[part->first + i] = part->first + packs->rows[i];
    for (int64_t p = 0; p < packs->count; p++)
        all->starts[all->count + p + 1] = part->first + packs->starts[p + 1];
    part->first = all->count;
    part->count = packs->count;
    all->count += packs->count;
}

sifr_status data_chat_pack(data_chat *x, sifr_error *error) {
    size_t rows = (size_t)x->counts.rows;
    int64_t *lengths = NULL;
    sifr_status status = base_alloc(rows, sizeof *lengths, &lengths, error);
    if (status == SIFR_OK)
        status = base_alloc(rows + 1, sizeof *x->packs.starts, &x->packs.starts, error);
    if (status == SIFR_OK) status = base_alloc(rows, sizeof *x->packs.rows, &x->packs.rows, error);
    for (size_t i = 0; status == SIFR_OK && i < rows; i++)
        lengths[i] = base_min_i64(x->starts[i + 1] - x->starts[i], x->length);
    for (size_t p = 0; status == SIFR_OK && p < x->part_count; p++) {
        chat_part *part = &x->parts[p];
        data_chat_packs packs;
        status = data_chat_packs_make(lengths + part->first, part->count, x->length, &packs, error);
        if (status == SIFR_OK) add_packs(x, part, &packs);
        data_chat_packs_free(&packs);
    }
    free(lengths);
    data_chat_settle(x);
    return status;
}

sifr_status data_chat_group(data_chat *chat, int64_t batch, sifr_error *error) {
    return data_chat_groups_make(chat->draws, batch / rows_a_draw(chat), &chat->groups, error);
}

bool data_chat_is_packed(const data_chat *chat) {
    return chat->packs.starts != NULL;
}

bool data_chat_is_joined(const data_chat *chat) {
    return chat->joined;
}

bool data_chat_is_paired(const data_chat *chat) {
    return chat->paired;
}

int64_t data_chat_sequences(const data_chat *chat) {
    return data_chat_is_packed(chat) ? chat->packs.count : chat->counts.rows;
}

/* --- use --- */

const data_chat_counts *data_chat_count(const data_chat *chat) {
    return &chat->counts;
}

int64_t data_chat_windows(const data_chat *chat) {
    return chat->draws * rows_a_draw(chat);
}

uint64_t data_chat_hash(const data_chat *x) {
    size_t tokens = (size_t)x->counts.tokens, rows = (size_t)x->counts.rows;
    uint64_t hash = base_hash(x->ids, tokens * sizeof *x->ids);
    hash = base_hash_seeded(x->learned, tokens * sizeof *x->learned, hash);
    hash = base_hash_seeded(x->starts, (rows + 1) * sizeof *x->starts, hash);
    for (size_t p = 0; p < x->part_count; p++) {
        int64_t facts[2] = {x->parts[p].count, x->parts[p].draws};
        hash = base_hash_seeded(facts, sizeof facts, hash);
    }
    if (x->paired) hash = base_hash_seeded("pairs", 5, hash);
    if (x->groups) hash = base_hash_seeded("groups", 6, hash);
    if (!data_chat_is_packed(x)) return hash;
    hash = base_hash_seeded(x->packs.rows, rows * sizeof *x->packs.rows, hash);
    size_t starts = (size_t)x->packs.count + 1;
    return base_hash_seeded(x->packs.starts, starts * sizeof *x->packs.starts, hash);
}

int64_t data_chat_row_at(const data_chat *x, int64_t index, const int32_t **ids,
                         const bool **learned, int64_t *whole) {
    *ids = x->ids + x->starts[index];
    *learned = x->learned + x->starts[index];
    *whole = x->lengths[index];
    return x->starts[index + 1] - x->starts[index];
}

/* The draws of an epoch in their order; a source that is drawn from more or less than once has a
 * permutation of its own for each time that all of it was drawn. */
static int64_t draw_plain(const void *rows, uint64_t seed, int64_t epoch, int64_t place) {
    const data_chat *chat = rows;
    int64_t draw = data_permute(seed, epoch, chat->draws, place);
    size_t p = 0;
    while (draw >= chat->parts[p].draws) draw -= chat->parts[p++].draws;
    const chat_part *part = &chat->parts[p];
    if (part->draws == part->count) return part->first + draw;
    int64_t number = epoch * part->draws + draw;
    return part->first + data_permute(seed + source_step * (p + 1), number / part->count,
                                      part->count, number % part->count);
}

int64_t data_chat_members(const data_chat *x, int64_t index) {
    return data_chat_is_packed(x) ? x->packs.starts[index + 1] - x->packs.starts[index] : 1;
}

int64_t data_chat_member(const data_chat *x, int64_t index, int64_t member) {
    return x
        ->numbers[data_chat_is_packed(x) ? x->packs.rows[x->packs.starts[index] + member] : index];
}

int64_t data_chat_rows_before_split(const data_chat *chat) {
    return chat->unsplit;
}

void data_chat_learn_prompts(data_chat *chat) {
    chat->prompts = true;
}

static int64_t length_of(const void *rows, int64_t row) {
    const data_chat *chat = rows;
    int64_t per = rows_a_draw(chat), longest = 0;
    for (int64_t i = row * per; i < (row + 1) * per; i++)
        longest = base_max_i64(longest, chat->starts[i + 1] - chat->starts[i]);
    return longest;
}

int64_t data_chat_draw(const data_chat *chat, uint64_t seed, int64_t epoch, int64_t place) {
    int64_t per = rows_a_draw(chat), at = place / per, drawn;
    data_chat_order order = {draw_plain, length_of, chat, chat->draws};
    drawn = chat->groups ? data_chat_groups_at(chat->groups, &order, seed, epoch, at)
                         : draw_plain(chat, seed, epoch, at);
    return drawn * per + place % per;
}

/* A row from token `first` of a sequence on; returns the token behind it. */
static int64_t put_row(const data_chat *x, int64_t row, int64_t first, int32_t *tokens,
                       int32_t *labels) {
    int64_t start = x->starts[row], count = x->starts[row + 1] - start;
    for (int64_t i = 0; i < count; i++) {
        bool follows = i + 1 < count && x->learned[start + i + 1];
        tokens[first + i] = x->ids[start + i];
        labels[first + i] = follows ? x->ids[start + i + 1] : -100;
    }
    return first + count;
}

/* The labels of a chosen answer's prompt too, and whose each is. */
static void put_prompt(const data_chat *x, int64_t row, int32_t *labels, float *targets) {
    int64_t start = x->starts[row], count = x->starts[row + 1] - start;
    for (int64_t i = 0; i + 1 < count; i++) {
        bool own = x->learned[start + i + 1];
        targets[i] = own;
        if (row % 2 == 0) labels[i] = x->ids[start + i + 1];
    }
}

/* What is left of a sequence. */
static void put_padding(const data_chat *x, int64_t first, int64_t length, int32_t *tokens,
                        int32_t *labels) {
    for (int64_t i = first; i < length; i++) tokens[i] = (int32_t)x->padding, labels[i] = -100;
}

static void put_pack(const data_chat *x, int64_t pack, const data_rows *rows, int64_t at) {
    int64_t length = rows->length, offset = at * length, first = 0, segment = 0;
    const int64_t *next = x->packs.rows + x->packs.starts[pack];
    const int64_t *end = x->packs.rows + x->packs.starts[pack + 1];
    for (; first < length; segment++) {
        int64_t behind = length;
        if (next < end)
            behind = put_row(x, *next++, first, rows->tokens + offset, rows->labels + offset);
        else
            put_padding(x, first, length, rows->tokens + offset, rows->labels + offset);
        for (int64_t i = first; i < behind; i++) {
            rows->segments[offset + i] = (int32_t)segment;
            rows->positions[offset + i] = (int32_t)(i - first);
        }
        first = behind;
    }
}

void data_chat_read(const data_chat *x, int64_t index, const data_rows *rows, int64_t at) {
    int64_t length = rows->length;
    int32_t *tokens = rows->tokens + at * length, *labels = rows->labels + at * length;
    if (data_chat_is_packed(x))
        put_pack(x, index, rows, at);
    else
        put_padding(x, put_row(x, index, 0, tokens, labels), length, tokens, labels);
    if (x->prompts) put_prompt(x, index, labels, rows->targets + at * length);
}
