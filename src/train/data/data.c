#include "train/data/data.h"

#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/heap.h"
#include "formats/text_source.h"
#include "train/data/data_stream.h"
#include "train/data/masking.h"
#include "train/data/permutation.h"

struct train_data {
    train_stream *stream;     /* or */
    train_examples *examples; /* this one */
    train_chat *chat;         /* or this one */
    train_masking masking;    /* of a stream; probability 0: none */
};

/* Every file that the paths name, as of text. */
static sifr_status open_examples(const train_data_options *options, train_data *data,
                                 sifr_error *error) {
    formats_text_source files = {0};
    const char **paths = NULL;
    sifr_status status;
    BASE_TRY_GOTO(
        status, formats_text_source_open_rows(options->paths, options->count, &files, error), done);
    BASE_TRY_GOTO(status, base_alloc(files.count, sizeof *paths, &paths, error), done);
    for (size_t i = 0; i < files.count; i++) paths[i] = files.documents[i].path;
    train_examples_source source = {.paths = paths,
                                    .count = files.count,
                                    .tokenizer = options->tokenizer,
                                    .vocab_size = options->vocab_size,
                                    .threads = options->threads,
                                    .log = options->log};
    status = train_examples_open(&source, options->labelled, &data->examples, error);
done:
    free(paths);
    formats_text_source_close(&files);
    return status;
}

static sifr_status open_stream(const train_data_options *options, train_data *data,
                               sifr_error *error) {
    train_data_options text = *options;
    if (options->mask_probability > 0) {
        BASE_TRY(train_masking_open(options->tokenizer, options->vocab_size,
                                    options->mask_probability, &data->masking, error));
        text.separator = -1;
    }
    return train_stream_open(&text, &data->stream, error);
}

sifr_status train_data_open(const train_data_options *options, train_data **out,
                            sifr_error *error) {
    train_data *data;
    BASE_TRY(base_alloc(1, sizeof *data, &data, error));
    sifr_status status = options->chat       ? train_chat_open(options->chat, &data->chat, error)
                         : options->labelled ? open_examples(options, data, error)
                                             : open_stream(options, data, error);
    if (status == SIFR_OK)
        *out = data;
    else
        train_data_close(data);
    return status;
}

void train_data_close(train_data *data) {
    if (!data) return;
    train_stream_close(data->stream);
    train_examples_close(data->examples);
    train_chat_close(data->chat);
    train_masking_close(&data->masking);
    free(data);
}

const train_labelled *train_data_labelled(const train_data *data) {
    return data->examples ? train_examples_labelled(data->examples) : NULL;
}

const train_chat *train_data_chat(const train_data *data) {
    return data->chat;
}

sifr_status train_data_split(train_data *data, double share, uint64_t seed, train_data **held_out,
                             sifr_error *error) {
    train_data *held;
    if (!data->chat)
        return base_fail(error, SIFR_USAGE,
                         "validation_split: only rows to fine-tune on are split; give eval_data");
    BASE_TRY(base_alloc(1, sizeof *held, &held, error));
    sifr_status status = train_chat_split(data->chat, share, seed, &held->chat, error);
    if (status == SIFR_OK)
        *held_out = held;
    else
        free(held);
    return status;
}

sifr_status train_data_pack(train_data *data, sifr_error *error) {
    if (data->chat) return train_chat_pack(data->chat, error);
    return base_fail(error, SIFR_USAGE,
                     "packing: text and token stores are cut into full windows, so there is "
                     "nothing to pack; leave it out, or give rows to fine-tune on");
}

sifr_status train_data_group(train_data *data, int64_t batch, sifr_error *error) {
    if (data->chat) return train_chat_group(data->chat, batch, error);
    return base_fail(error, SIFR_USAGE,
                     "group_by_length: only rows to fine-tune on differ in length here; leave it "
                     "out");
}

int64_t train_data_tokens(const train_data *data) {
    if (data->chat) return train_chat_count(data->chat)->tokens;
    return data->examples ? train_examples_tokens(data->examples)
                          : train_stream_tokens(data->stream);
}

int64_t train_data_documents(const train_data *data) {
    if (data->chat) return train_chat_count(data->chat)->rows;
    return data->examples ? train_examples_count(data->examples)
                          : train_stream_documents(data->stream);
}

uint64_t train_data_hash(const train_data *data) {
    if (data->chat) return train_chat_hash(data->chat);
    if (data->examples) return train_examples_hash(data->examples);
    uint64_t hash = train_stream_hash(data->stream);
    double probability = data->masking.probability;
    return probability > 0 ? base_hash_seeded(&probability, sizeof probability, hash) : hash;
}

sifr_status train_data_rows(const train_data *data, int64_t count, int64_t length, train_rows *out,
                            sifr_error *error) {
    int64_t columns = data->examples ? train_examples_columns(data->examples) : 0;
    train_rows_kind kind = data->examples ? TRAIN_ROWS_PADDED : TRAIN_ROWS_PLAIN;
    if (data->chat && train_chat_is_packed(data->chat)) kind = TRAIN_ROWS_PACKED;
    return train_rows_make(count, length, kind, columns, out, error);
}

int64_t train_data_windows(const train_data *data, int64_t length) {
    if (data->chat) return train_chat_windows(data->chat);
    if (data->examples) return train_examples_count(data->examples);
    return (train_data_tokens(data) - (data->masking.probability > 0 ? 0 : 1)) / length;
}

static void read_window(const train_data *data, int64_t index, uint64_t key, const train_rows *rows,
                        int64_t at) {
    int64_t length = rows->length;
    int32_t *tokens = rows->tokens + at * length, *labels = rows->labels + at * length;
    if (data->examples) {
        train_examples_read(data->examples, index, rows, at);
        return;
    }
    train_stream_read(data->stream, index * length, length, tokens);
    if (data->masking.probability > 0) {
        train_masking_apply(&data->masking, key, length, tokens, labels);
        return;
    }
    memcpy(labels, tokens + 1, (size_t)(length - 1) * sizeof *labels);
    train_stream_read(data->stream, index * length + length, 1, labels + length - 1);
}

/* Of rows the draws of the first epoch of a seed of its own: with weights of 1 each row once. */
void train_data_window(const train_data *data, int64_t index, const train_rows *rows, int64_t at) {
    if (data->chat) {
        train_chat_read(data->chat, train_chat_draw(data->chat, 0, 0, index), rows, at);
        return;
    }
    read_window(data, index, train_masking_evaluation_key(index), rows, at);
}

void train_data_sample(const train_data *data, uint64_t seed, int64_t sample,
                       const train_rows *rows, int64_t at) {
    int64_t windows = train_data_windows(data, rows->length);
    if (data->chat) {
        int64_t row = train_chat_draw(data->chat, seed, sample / windows, sample % windows);
        train_chat_read(data->chat, row, rows, at);
        return;
    }
    int64_t index = train_permute(seed, sample / windows, windows, sample % windows);
    read_window(data, index, train_masking_key(seed, sample), rows, at);
}
