#include "data/data.h"

#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "base/hash.h"
#include "base/heap.h"
#include "data/permutation.h"
#include "data/stream/data_stream.h"
#include "data/stream/masking.h"
#include "data/stream/text_source.h"

struct data_set {
    data_stream *stream;     /* or */
    data_examples *examples; /* this one */
    data_chat *chat;         /* or this one */
    data_masking masking;    /* of a stream; probability 0: none */
    data_set_use use;
    data_token_scores scores; /* that are used */
};

/* Every file that the paths name, as of text. */
static sifr_status open_examples(const data_set_options *options, data_set *data,
                                 sifr_error *error) {
    data_text_source files = {0};
    const char **paths = NULL;
    sifr_status status;
    BASE_TRY_GOTO(status, data_text_source_open_rows(options->paths, options->count, &files, error),
                  done);
    BASE_TRY_GOTO(status, base_alloc(files.count, sizeof *paths, &paths, error), done);
    for (size_t i = 0; i < files.count; i++) paths[i] = files.documents[i].path;
    data_examples_source source = {.paths = paths,
                                   .count = files.count,
                                   .tokenizer = options->tokenizer,
                                   .vocab_size = options->vocab_size,
                                   .threads = options->threads,
                                   .log = options->log};
    status = data_examples_open(&source, options->labelled, &data->examples, error);
done:
    free(paths);
    data_text_source_close(&files);
    return status;
}

static sifr_status open_stream(const data_set_options *options, data_set *data, sifr_error *error) {
    data_set_options text = *options;
    if (options->mask_probability > 0) {
        BASE_TRY(data_masking_open(options->tokenizer, options->vocab_size,
                                   options->mask_probability, &data->masking, error));
        text.separator = -1;
    }
    return data_stream_open(&text, &data->stream, error);
}

sifr_status data_set_open(const data_set_options *options, data_set **out, sifr_error *error) {
    data_set *data;
    BASE_TRY(base_alloc(1, sizeof *data, &data, error));
    sifr_status status = options->chat       ? data_chat_open(options->chat, &data->chat, error)
                         : options->labelled ? open_examples(options, data, error)
                                             : open_stream(options, data, error);
    if (status == SIFR_OK)
        *out = data;
    else
        data_set_close(data);
    return status;
}

void data_set_close(data_set *data) {
    if (!data) return;
    data_stream_close(data->stream);
    data_examples_close(data->examples);
    data_chat_close(data->chat);
    data_masking_close(&data->masking);
    data_token_scores_close(&data->scores);
    free(data);
}

const data_labelled *data_set_labelled(const data_set *data) {
    return data->examples ? data_examples_labelled(data->examples) : NULL;
}

const data_chat *data_set_chat(const data_set *data) {
    return data->chat;
}

sifr_status data_set_split(data_set *data, double share, uint64_t seed, data_set **held_out,
                           sifr_error *error) {
    data_set *held;
    if (!data->chat)
        return base_fail(error, SIFR_USAGE,
                         "validation_split: only rows to fine-tune on are split; give eval_data");
    BASE_TRY(base_alloc(1, sizeof *held, &held, error));
    sifr_status status = data_chat_split(data->chat, share, seed, &held->chat, error);
    if (status == SIFR_OK)
        *held_out = held;
    else
        free(held);
    return status;
}

sifr_status data_set_join(data_set *data, sifr_error *error) {
    if (data->chat) return data_chat_join(data->chat, error);
    return base_fail(error, SIFR_USAGE,
                     "join_texts: text and token stores are cut into full windows already; leave "
                     "it out, or give rows of text");
}

sifr_status data_set_pack(data_set *data, sifr_error *error) {
    if (data->chat && data_chat_is_paired(data->chat))
        return base_fail(error, SIFR_USAGE,
                         "packing: each answer of a pair takes a sequence of its own; leave "
                         "it out");
    if (data->chat) return data_chat_pack(data->chat, error);
    return base_fail(error, SIFR_USAGE,
                     "packing: text and token stores are cut into full windows, so there is "
                     "nothing to pack; leave it out, or give rows to fine-tune on");
}

sifr_status data_set_group(data_set *data, int64_t batch, sifr_error *error) {
    if (data->chat) return data_chat_group(data->chat, batch, error);
    return base_fail(error, SIFR_USAGE,
                     "group_by_length: only rows to fine-tune on differ in length here; leave it "
                     "out");
}

int64_t data_set_tokens(const data_set *data) {
    if (data->chat) return data_chat_count(data->chat)->tokens;
    return data->examples ? data_examples_tokens(data->examples) : data_stream_tokens(data->stream);
}

int64_t data_set_longest(const data_set *data) {
    return data->examples ? data_examples_longest(data->examples) : 0;
}

int64_t data_set_documents(const data_set *data) {
    if (data->chat) return data_chat_count(data->chat)->rows;
    return data->examples ? data_examples_count(data->examples)
                          : data_stream_documents(data->stream);
}

uint64_t data_set_hash(const data_set *data) {
    if (data->chat) return data_chat_hash(data->chat);
    if (data->examples) return data_examples_hash(data->examples);
    uint64_t hash = data_stream_hash(data->stream);
    double probability = data->masking.probability;
    return probability > 0 ? base_hash_seeded(&probability, sizeof probability, hash) : hash;
}

int64_t data_set_columns(const data_set *data) {
    return data->examples               ? data_examples_columns(data->examples)
           : data->use == DATA_USE_TOPS ? 2 * data->scores.top
           : data->use                  ? 1
                                        : 0;
}

sifr_status data_set_rows(const data_set *data, int64_t count, int64_t length, data_rows *out,
                          sifr_error *error) {
    int64_t columns = data_set_columns(data);
    data_rows_kind kind = data->examples ? DATA_ROWS_PADDED : DATA_ROWS_PLAIN;
    if (data->chat && data_chat_is_packed(data->chat)) kind = DATA_ROWS_PACKED;
    return data_rows_make(count, length, kind, columns, out, error);
}

int64_t data_set_windows(const data_set *data, int64_t length) {
    if (data->chat) return data_chat_windows(data->chat);
    if (data->examples) return data_examples_count(data->examples);
    return (data_set_tokens(data) - (data->masking.probability > 0 ? 0 : 1)) / length;
}

static void read_window(const data_set *data, int64_t index, uint64_t key, const data_rows *rows,
                        int64_t at) {
    base_assert(index >= 0 && at >= 0 && at < rows->count);
    int64_t length = rows->length;
    int32_t *tokens = rows->tokens + at * length, *labels = rows->labels + at * length;
    if (data->examples) {
        data_examples_read(data->examples, index, rows, at);
        return;
    }
    data_stream_read(data->stream, index * length, length, tokens);
    if (data->masking.probability > 0) {
        data_masking_apply(&data->masking, key, length, tokens, labels);
        return;
    }
    memcpy(labels, tokens + 1, (size_t)(length - 1) * sizeof *labels);
    data_stream_read(data->stream, index * length + length, 1, labels + length - 1);
}

/* --- scores --- */

/* The sequence's row number `member` in the file. */
static int64_t scored_row(const data_set *data, int64_t index, int64_t member) {
    bool numbered = data->chat && data->use != DATA_USE_OWN;
    return numbered ? data_chat_member(data->chat, index, member) : index;
}

/* A walk through the entries of a sequence, which has their labels in this order: row after row. */
typedef struct score_walk {
    const data_set *data;
    int64_t index, member, members; /* rows that the walk has begun, and all */
    int64_t entry, end;             /* of the row that it is in */
} score_walk;

static score_walk begin_walk(const data_set *data, int64_t index) {
    return (score_walk){.data = data,
                        .index = index,
                        .members = data->chat ? data_chat_members(data->chat, index) : 1};
}

/* The next entry; false: there is none. */
static bool next_entry(score_walk *w, int64_t *out) {
    const int64_t *offsets = w->data->scores.offsets;
    while (w->entry == w->end && w->member < w->members) {
        int64_t row = scored_row(w->data, w->index, w->member++);
        base_assert(row >= 0 && row < w->data->scores.rows);
        w->entry = offsets[row];
        w->end = offsets[row + 1];
    }
    if (w->entry == w->end) return false;
    *out = w->entry++;
    return true;
}

static void put_entry(const data_set *data, int64_t entry, float *out) {
    base_assert(entry >= 0 && entry < data->scores.entries);
    const data_token_scores *s = &data->scores;
    if (data->use != DATA_USE_TOPS) {
        out[0] = s->logprobs[entry];
        return;
    }
    for (int64_t k = 0; k < s->top; k++) {
        out[k] = (float)s->top_ids[entry * s->top + k];
        out[s->top + k] = s->top_logprobs[entry * s->top + k];
    }
}

/* The targets of a sequence. */
static void put_scores(const data_set *data, int64_t index, const data_rows *rows, int64_t at) {
    if (!data->scores.offsets) return;
    base_assert(rows->columns == (data->use == DATA_USE_TOPS ? 2 * data->scores.top : 1));
    score_walk walk = begin_walk(data, index);
    for (int64_t i = at * rows->length, entry; i < (at + 1) * rows->length; i++)
        if (rows->labels[i] >= 0 && next_entry(&walk, &entry))
            put_entry(data, entry, rows->targets + i * rows->columns);
}

int64_t data_set_scored(const data_set *data, int64_t length) {
    base_assert(!data->examples);
    return data->chat ? data_chat_sequences(data->chat) : data_set_windows(data, length);
}

void data_set_scored_read(const data_set *data, int64_t index, const data_rows *rows, int64_t at) {
    if (data->chat)
        data_chat_read(data->chat, index, rows, at);
    else
        read_window(data, index, data_masking_evaluation_key(index), rows, at);
}

/* The labels of a sequence must be those of its entries. */
static sifr_status compare_labels(const data_set *data, int64_t index, const data_rows *row,
                                  sifr_error *error) {
    const data_token_scores *s = &data->scores;
    score_walk walk = begin_walk(data, index);
    bool same = true;
    for (int64_t i = 0, entry; same && i < row->length; i++)
        if (row->labels[i] >= 0)
            same = next_entry(&walk, &entry) && s->ids[entry] == row->labels[i];
    if (same && walk.entry == walk.end && walk.member == walk.members) return SIFR_OK;
    return base_fail(
        error, SIFR_FAILED,
        "%s: the scores of row %lld are of other tokens than the data have there; make "
        "the file with `sifr score` from the same data, tokenizer, seq_length and "
        "train_on",
        s->path, (long long)scored_row(data, index, 0) + 1);
}

static sifr_status check_scores(const data_set *data, int64_t length, sifr_error *error) {
    const data_token_scores *s = &data->scores;
    bool whole = data->chat && data->use != DATA_USE_OWN;
    int64_t rows = whole ? data_chat_rows_before_split(data->chat) : data_set_scored(data, length);
    data_rows row;
    if (s->rows != rows)
        return base_fail(
            error, SIFR_FAILED,
            "%s: scores of %lld rows, but the data have %lld; make the file with `sifr "
            "score` from the same data and seq_length",
            s->path, (long long)s->rows, (long long)rows);
    BASE_TRY(data_set_rows(data, 1, length, &row, error));
    sifr_status status = SIFR_OK;
    int64_t count = data_set_scored(data, length);
    for (int64_t i = 0; status == SIFR_OK && i < count; i++) {
        data_set_scored_read(data, i, &row, 0);
        status = compare_labels(data, i, &row, error);
    }
    data_rows_free(&row);
    return status;
}

sifr_status data_set_use_scores(data_set *data, data_set_use use, const char *path, int64_t words,
                                int64_t length, sifr_error *error) {
    bool pairs = data->chat && data_chat_is_paired(data->chat);
    if (data->examples || data->masking.probability > 0 || pairs != (use != DATA_USE_TOPS))
        return base_fail(error, SIFR_USAGE,
                         use == DATA_USE_TOPS
                             ? "scores of top words: the data must be text or rows to fine-tune "
                               "on, not pairs of answers"
                             : "scores of answers: the data must be rows with a chosen and a "
                               "rejected answer; give such rows");
    data->use = use;
    if (use == DATA_USE_ANSWERS) {
        data_chat_learn_prompts(data->chat);
        return SIFR_OK;
    }
    BASE_TRY(data_token_scores_open(path, words, &data->scores, error));
    if (use == DATA_USE_TOPS && !data->scores.top)
        return base_fail(error, SIFR_FAILED,
                         "%s: it has no top words; make it with `sifr score --top-k N`", path);
    return check_scores(data, length, error);
}

static void list_labels(const data_rows *row, int64_t *count, int32_t *ids) {
    for (int64_t i = 0; i < row->length; i++) {
        if (row->labels[i] < 0) continue;
        if (ids) ids[*count] = row->labels[i];
        ++*count;
    }
}

sifr_status data_set_begin_scores(const data_set *data, int64_t length, const char *path,
                                  int64_t top, double temperature, data_score_writer *out,
                                  sifr_error *error) {
    int64_t rows = data_set_scored(data, length), entries = 0;
    data_rows row;
    *out = (data_score_writer){0};
    BASE_TRY(data_set_rows(data, 1, length, &row, error));
    for (int64_t i = 0; i < rows; i++) {
        data_set_scored_read(data, i, &row, 0);
        list_labels(&row, &entries, NULL);
    }
    sifr_status status = data_score_writer_open(path, rows, entries, top, temperature, out, error);
    entries = 0;
    for (int64_t i = 0; status == SIFR_OK && i < rows; i++) {
        data_set_scored_read(data, i, &row, 0);
        list_labels(&row, &entries, out->ids);
        out->offsets[i + 1] = entries;
    }
    data_rows_free(&row);
    return status;
}

/* Of rows the draws of the first epoch of a seed of its own: with weights of 1 each row once. */
void data_set_window(const data_set *data, int64_t index, const data_rows *rows, int64_t at) {
    if (data->chat) index = data_chat_draw(data->chat, 0, 0, index);
    data_set_scored_read(data, index, rows, at);
    put_scores(data, index, rows, at);
}

void data_set_sample(const data_set *data, uint64_t seed, int64_t sample, const data_rows *rows,
                     int64_t at) {
    int64_t windows = data_set_windows(data, rows->length);
    base_assert(windows > 0 && sample >= 0);
    if (data->chat) {
        int64_t row = data_chat_draw(data->chat, seed, sample / windows, sample % windows);
        data_chat_read(data->chat, row, rows, at);
        put_scores(data, row, rows, at);
        return;
    }
    int64_t index = data_permute(seed, sample / windows, windows, sample % windows);
    read_window(data, index, data_masking_key(seed, sample), rows, at);
    put_scores(data, index, rows, at);
}
