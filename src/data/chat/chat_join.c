/* Texts of rows, joined and cut into sequences. */
#include <stdlib.h>
#include <string.h>

#include "base/heap.h"
#include "base/text.h"
#include "data/chat/chat_rows_internal.h"

bool data_chat_joint_find(const char *word, data_chat_joint *out) {
    static const char *const words[] = {
        [DATA_JOIN_NONE] = "none", [DATA_JOIN_EOS] = "eos", [DATA_JOIN_PLAIN] = "plain"};
    int found;
    bool known = base_find_word(words, sizeof words / sizeof *words, word, &found);
    *out = (data_chat_joint)found;
    return known;
}

/* So many rows at a time are joined, and what fills no sequence is left out each time:
 * LLaMA-Factory and run_clm.py do so, by the batches of datasets' map, so that there are as many
 * sequences. */
enum { ROWS_A_BATCH = 1000 };

/* Appends the sequences of rows first … end − 1, whose ids stand one behind the other. */
static sifr_status cut_rows(const data_chat *x, int64_t first, int64_t end, const bool *learned,
                            data_chat *to, sifr_error *error) {
    int64_t length = x->length, at = x->starts[first];
    for (; x->starts[end] - at >= length; at += length) {
        BASE_TRY(data_chat_append(to, x->ids + at, learned, length, length, error));
        if (x->begin >= 0) to->ids[to->counts.tokens - length] = x->begin;
    }
    to->counts.unfilled += x->starts[end] - at;
    return SIFR_OK;
}

static sifr_status cut_parts(const data_chat *x, const bool *learned, data_chat *to,
                             sifr_error *error) {
    for (size_t p = 0; p < x->part_count; p++) {
        const chat_part *part = &x->parts[p];
        int64_t end = part->first + part->count;
        to->parts[p] = (chat_part){.first = to->counts.rows, .weight = part->weight};
        for (int64_t i = part->first; i < end; i += ROWS_A_BATCH) {
            int64_t behind = end - i > ROWS_A_BATCH ? i + ROWS_A_BATCH : end;
            BASE_TRY(cut_rows(x, i, behind, learned, to, error));
        }
        to->parts[p].count = to->counts.rows - to->parts[p].first;
    }
    data_chat_settle(to);
    to->joined = true;
    if (to->counts.rows) return SIFR_OK;
    return base_fail(error, SIFR_FAILED,
                     "join_texts: %lld tokens in %lld texts do not fill a sequence of %lld; give "
                     "more, or a shorter seq-length",
                     (long long)x->counts.tokens, (long long)x->counts.rows, (long long)x->length);
}

sifr_status data_chat_join(data_chat *chat, sifr_error *error) {
    data_chat *to = NULL;
    bool *learned = NULL;
    sifr_status status = base_alloc((size_t)chat->length, sizeof *learned, &learned, error);
    if (status == SIFR_OK) {
        memset(learned, true, (size_t)chat->length);
        status = data_chat_new(chat->length, chat->padding, chat->part_count, &to, error);
    }
    if (status == SIFR_OK) status = cut_parts(chat, learned, to, error);
    free(learned);
    if (status == SIFR_OK) {
        data_chat swapped = *chat;
        *chat = *to;
        *to = swapped;
    }
    data_chat_close(to);
    return status;
}
