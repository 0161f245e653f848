#include "data/labelled/examples.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/hash.h"
#include "base/heap.h"
#include "base/parallel.h"
#include "base/system.h"
#include "base/text.h"
#include "data/labelled/example_encode.h"

/* Rows are read and encoded so many at a time. */
enum { ROWS_AT_A_TIME = 1024, THREAD_LIMIT = 256 };

struct data_examples {
    data_labelled labelled;
    int32_t *ids;
    uint8_t *types;
    int32_t *labels; /* one an example, or one a token */
    float *targets;
    int64_t *starts; /* of each example's ids, and the end */
    size_t tokens, ids_capacity, types_capacity, labels_capacity, targets_capacity, starts_capacity;
    size_t count, label_count, target_count;
    int64_t truncated, longest;
    uint64_t invalid;
};

/* A row that was read. */
typedef struct example_slot {
    json_t *row;
    int64_t line;
    data_encoded encoded;
    sifr_status status;
    sifr_error error;
} example_slot;

typedef struct example_reader {
    const data_examples_source *source;
    const data_labelled *labelled;
    text_tokenizer *tokenizer;
    data_encoder *encoders; /* one for each thread */
    size_t threads;
    example_slot *slots;
    size_t filled;
    const char *file;
    data_label_columns columns;
} example_reader;

/* --- reading --- */

static void encode_share(void *argument, size_t thread) {
    example_reader *r = argument;
    for (size_t i = thread; i < r->filled; i += r->threads) {
        example_slot *slot = &r->slots[i];
        slot->status = data_encode(&r->encoders[thread], slot->row, &r->columns, r->file,
                                   slot->line, &slot->encoded, &slot->error);
    }
}

static sifr_status append_types(data_examples *x, const data_encoded *encoded, sifr_error *error) {
    size_t count = encoded->ids.count;
    BASE_TRY(base_grow(&x->types, &x->types_capacity, x->tokens + count, 1, error));
    for (size_t i = 0; i < count; i++)
        x->types[x->tokens + i] = i < encoded->types.count ? (uint8_t)encoded->types.ids[i] : 0;
    return SIFR_OK;
}

static sifr_status append_targets(data_examples *x, const data_encoded *encoded,
                                  sifr_error *error) {
    size_t columns = (size_t)data_examples_columns(x);
    if (!columns) return SIFR_OK;
    BASE_TRY(base_grow(&x->targets, &x->targets_capacity, x->target_count + columns,
                       sizeof *x->targets, error));
    memcpy(x->targets + x->target_count, encoded->targets, columns * sizeof *x->targets);
    x->target_count += columns;
    return SIFR_OK;
}

static sifr_status append(data_examples *x, const data_encoded *encoded, sifr_error *error) {
    size_t count = encoded->ids.count, labels = encoded->labels.count;
    BASE_TRY(append_types(x, encoded, error));
    BASE_TRY(append_targets(x, encoded, error));
    BASE_TRY(base_grow(&x->ids, &x->ids_capacity, x->tokens + count, sizeof *x->ids, error));
    BASE_TRY(base_grow(&x->labels, &x->labels_capacity, x->label_count + labels, sizeof *x->labels,
                       error));
    BASE_TRY(base_grow(&x->starts, &x->starts_capacity, x->count + 2, sizeof *x->starts, error));
    if (count) memcpy(x->ids + x->tokens, encoded->ids.ids, count * sizeof *x->ids);
    if (labels) memcpy(x->labels + x->label_count, encoded->labels.ids, labels * sizeof *x->labels);
    x->tokens += count;
    x->label_count += labels;
    x->starts[x->count] = (int64_t)(x->tokens - count);
    x->starts[++x->count] = (int64_t)x->tokens;
    x->truncated += encoded->truncated;
    x->longest = base_max_i64(x->longest, (int64_t)count);
    return SIFR_OK;
}

static sifr_status encode_slots(example_reader *r, data_examples *x, sifr_error *error) {
    base_parallel((int)r->threads, r->threads, encode_share, r);
    for (size_t i = 0; i < r->filled; i++) {
        example_slot *slot = &r->slots[i];
        if (slot->status != SIFR_OK)
            return base_fail(error, slot->status, "%s", slot->error.message);
        BASE_TRY(append(x, &slot->encoded, error));
        json_decref(slot->row);
        slot->row = NULL;
    }
    r->filled = 0;
    return SIFR_OK;
}

/* Rows that are at hand: "tokens" of a tagger, else "text" and perhaps "text_pair". */
static sifr_status read_given(example_reader *r, data_examples *x, sifr_error *error) {
    size_t i;
    json_t *row;
    bool words = r->labelled->task == MODEL_TOKEN_CLASSES;
    r->file = r->source->name;
    json_array_foreach(r->source->rows, i, row) {
        example_slot *slot = &r->slots[r->filled++];
        slot->row = json_incref(row);
        slot->line = (int64_t)i + 1;
        slot->error = (sifr_error){0};
        r->columns = (data_label_columns){.text = words ? "tokens" : "text"};
        if (json_object_get(row, "text_pair")) r->columns.pair = "text_pair";
        BASE_TRY(encode_slots(r, x, error)); /* each by itself: it may have a second text or not */
    }
    return SIFR_OK;
}

static sifr_status read_rows(example_reader *r, data_records *records, data_examples *x,
                             sifr_error *error) {
    for (;;) {
        json_t *row;
        sifr_error later = {0};
        sifr_status status = data_records_next(records, &row, &later);
        if (status == SIFR_OK && row) {
            example_slot *slot = &r->slots[r->filled++];
            slot->row = row;
            slot->line = data_records_line(records);
            slot->error = (sifr_error){0};
        }
        bool ends = status != SIFR_OK || !row;
        if (ends || r->filled == ROWS_AT_A_TIME) BASE_TRY(encode_slots(r, x, error));
        if (status != SIFR_OK) return base_fail(error, status, "%s", later.message);
        if (ends) return SIFR_OK;
    }
}

static void say_columns(const example_reader *r) {
    const data_label_columns *asked = &r->labelled->columns, *found = &r->columns;
    if (r->labelled->unknown) return;
    if (asked->text && asked->label && (asked->pair || !found->pair)) return;
    base_log(r->source->log, SIFR_LOG_INFO, "data: %s: text from '%s'%s%s%s, labels from '%s'",
             r->file, found->text, found->pair ? " and '" : "", found->pair ? found->pair : "",
             found->pair ? "'" : "", found->label);
}

static sifr_status read_file(example_reader *r, const char *path, data_examples *x,
                             sifr_error *error) {
    data_records *records;
    r->file = path;
    BASE_TRY(data_records_open(path, &records, error));
    sifr_status status = data_label_columns_find(records, r->labelled->task, !r->labelled->unknown,
                                                 &r->labelled->columns, &r->columns, error);
    if (status == SIFR_OK) {
        say_columns(r);
        status = read_rows(r, records, x, error);
    }
    data_records_close(records);
    return status;
}

/* --- the reader --- */

static sifr_status check_size(const example_reader *r, sifr_error *error) {
    int64_t size = text_tokenizer_text_size(r->tokenizer);
    if (size <= r->source->vocab_size) return SIFR_OK;
    return base_fail(error, SIFR_FAILED,
                     "%s: the tokenizer makes ids up to %lld, but the model has rows for only "
                     "%lld; use the tokenizer that belongs to the model",
                     r->source->tokenizer, (long long)size - 1, (long long)r->source->vocab_size);
}

static sifr_status make_reader(example_reader *r, sifr_error *error) {
    int threads = r->source->threads;
    base_system system;
    if (threads <= 0) base_system_read(&system), threads = system.cpus;
    r->threads = (size_t)base_min_i64(base_max_i64(threads, 1), THREAD_LIMIT);
    BASE_TRY(text_tokenizer_load(r->source->tokenizer, &r->tokenizer, error));
    BASE_TRY(check_size(r, error));
    BASE_TRY(base_alloc(r->threads, sizeof *r->encoders, &r->encoders, error));
    BASE_TRY(base_alloc(ROWS_AT_A_TIME, sizeof *r->slots, &r->slots, error));
    /* Of byte-level vocabularies, whose words have their space in front. */
    bool space = text_tokenizer_id(r->tokenizer, "\xC4\xA0") >= 0; /* Ġ */
    for (size_t t = 0; t < r->threads; t++) {
        r->encoders[t] =
            (data_encoder){.tokenizer = r->tokenizer, .labelled = r->labelled, .space = space};
        BASE_TRY(text_tokenizer_scratch_new(r->tokenizer, &r->encoders[t].scratch, error));
    }
    if (!data_has_targets(r->labelled)) return SIFR_OK;
    for (size_t i = 0; i < ROWS_AT_A_TIME; i++)
        BASE_TRY(base_alloc((size_t)r->labelled->labels->count, sizeof(float),
                            &r->slots[i].encoded.targets, error));
    return SIFR_OK;
}

static void free_reader(example_reader *r) {
    for (size_t i = 0; r->slots && i < ROWS_AT_A_TIME; i++) {
        json_decref(r->slots[i].row);
        text_tokenizer_ids_free(&r->slots[i].encoded.ids);
        text_tokenizer_ids_free(&r->slots[i].encoded.types);
        text_tokenizer_ids_free(&r->slots[i].encoded.labels);
        free(r->slots[i].encoded.targets);
    }
    for (size_t t = 0; r->encoders && t < r->threads; t++) {
        text_tokenizer_scratch_free(r->encoders[t].scratch);
        text_tokenizer_ids_free(&r->encoders[t].word_labels);
        text_tokenizer_text_free(&r->encoders[t].spaced);
    }
    free(r->slots);
    free(r->encoders);
    text_tokenizer_free(r->tokenizer);
}

static void say_examples(const data_examples *x, const example_reader *r) {
    const sifr_log *log = r->source->log;
    char count[80];
    for (size_t t = 0; t < r->threads; t++) {
        uint64_t invalid = text_tokenizer_invalid(r->encoders[t].scratch);
        if (invalid)
            base_log(log, SIFR_LOG_WARNING, "data: %llu sequences are not valid UTF-8",
                     (unsigned long long)invalid);
    }
    if (!x->labelled.unknown)
        base_log(log, SIFR_LOG_INFO,
                 "data: %s of %.1f tokens on average, the longest %lld; each takes %lld",
                 base_format_counted((int64_t)x->count, "example", count),
                 (double)x->tokens / (double)x->count, (long long)x->longest,
                 (long long)x->labelled.length);
    if (x->truncated)
        base_log(
            log, SIFR_LOG_WARNING, "data: %s of them %s longer than seq_length %lld and %s cut%s",
            base_format_count(x->truncated, count), x->truncated == 1 ? "is" : "are",
            (long long)x->labelled.length, x->truncated == 1 ? "was" : "were",
            x->labelled.task == MODEL_TOKEN_CLASSES ? "" : ", the longer text of a pair first");
}

static sifr_status check_any(const data_examples *x, const char *path, sifr_error *error) {
    if (x->count) return SIFR_OK;
    return base_fail(error, SIFR_FAILED, "%s: no rows; give a file with examples", path);
}

sifr_status data_examples_open(const data_examples_source *source, const data_labelled *labelled,
                               data_examples **out, sifr_error *error) {
    example_reader reader = {.source = source, .labelled = labelled};
    data_examples *x;
    BASE_TRY(base_alloc(1, sizeof *x, &x, error));
    x->labelled = *labelled;
    sifr_status status = make_reader(&reader, error);
    for (size_t i = 0; status == SIFR_OK && i < source->count; i++)
        status = read_file(&reader, source->paths[i], x, error);
    if (status == SIFR_OK && !source->count) status = read_given(&reader, x, error);
    if (status == SIFR_OK)
        status = check_any(x, source->count ? source->paths[0] : source->name, error);
    if (status == SIFR_OK) say_examples(x, &reader);
    free_reader(&reader);
    if (status == SIFR_OK)
        *out = x;
    else
        data_examples_close(x);
    return status;
}

void data_examples_close(data_examples *x) {
    if (!x) return;
    free(x->ids);
    free(x->types);
    free(x->labels);
    free(x->targets);
    free(x->starts);
    free(x);
}

/* --- use --- */

const data_labelled *data_examples_labelled(const data_examples *x) {
    return &x->labelled;
}

int64_t data_examples_count(const data_examples *x) {
    return (int64_t)x->count;
}

int64_t data_examples_tokens(const data_examples *x) {
    return (int64_t)x->tokens;
}

int64_t data_examples_longest(const data_examples *x) {
    return x->longest;
}

int64_t data_examples_columns(const data_examples *x) {
    return data_has_targets(&x->labelled) ? x->labelled.labels->count : 0;
}

uint64_t data_examples_hash(const data_examples *x) {
    uint64_t hash = base_hash(x->ids, x->tokens * sizeof *x->ids);
    hash = base_hash_seeded(x->types, x->tokens, hash);
    hash = base_hash_seeded(x->starts, (x->count + 1) * sizeof *x->starts, hash);
    hash = base_hash_seeded(x->labels, x->label_count * sizeof *x->labels, hash);
    return x->target_count
               ? base_hash_seeded(x->targets, x->target_count * sizeof *x->targets, hash)
               : hash;
}

/* Where the label of an example of `count` tokens stands. As transformers 5.23 pools
 * (modeling_layers.py): the last token whose id is not pad_token_id, also where the text itself
 * ends in that id (pad is often eos); the first where all are. */
static int64_t label_row(const data_examples *x, int64_t index, int64_t count) {
    const int32_t *ids = x->ids + x->starts[index];
    int64_t row = count - 1;
    if (!x->labelled.last) return 0;
    while (row > 0 && ids[row] == x->labelled.passed_over) row--;
    return row;
}

/* A sequence of labels that has one label, or those of its tokens. */
static void read_labels(const data_examples *x, int64_t index, int64_t count, int64_t length,
                        int32_t *labels) {
    for (int64_t i = 0; i < length; i++) labels[i] = -100;
    if (x->labelled.task == MODEL_TOKEN_CLASSES)
        memcpy(labels, x->labels + x->starts[index], (size_t)count * sizeof *labels);
    else
        labels[label_row(x, index, count)] = x->labels[index];
}

void data_examples_read(const data_examples *x, int64_t index, const data_rows *rows, int64_t at) {
    int64_t length = rows->length, first = at * length, start = x->starts[index];
    int64_t count = x->starts[index + 1] - start, columns = data_examples_columns(x);
    for (int64_t i = 0; i < length; i++) {
        bool real = i < count;
        rows->tokens[first + i] = real ? x->ids[start + i] : (int32_t)x->labelled.padding;
        rows->token_types[first + i] = real ? x->types[start + i] : 0;
        rows->segments[first + i] = !real;
    }
    read_labels(x, index, count, length, rows->labels + first);
    if (!columns) return;
    int64_t row = label_row(x, index, count);
    memcpy(rows->targets + (first + row) * columns, x->targets + index * columns,
           (size_t)columns * sizeof *rows->targets);
}
