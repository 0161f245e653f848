#include "train/data/data.h"

#include <stdlib.h>
#include <string.h>

#include "base/heap.h"
#include "train/data/data_stream.h"
#include "train/data/permutation.h"

struct train_data {
    train_stream *stream;
};

sifr_status train_data_open(const train_data_options *options, train_data **out,
                            sifr_error *error) {
    train_data *data;
    BASE_TRY(base_alloc(1, sizeof *data, &data, error));
    sifr_status status = train_stream_open(options, &data->stream, error);
    if (status == SIFR_OK)
        *out = data;
    else
        train_data_close(data);
    return status;
}

void train_data_close(train_data *data) {
    if (!data) return;
    train_stream_close(data->stream);
    free(data);
}

int64_t train_data_tokens(const train_data *data) {
    return train_stream_tokens(data->stream);
}

int64_t train_data_documents(const train_data *data) {
    return train_stream_documents(data->stream);
}

uint64_t train_data_hash(const train_data *data) {
    return train_stream_hash(data->stream);
}

int64_t train_data_windows(const train_data *data, int64_t length) {
    return (train_data_tokens(data) - 1) / length;
}

void train_data_window(const train_data *data, int64_t index, const train_rows *rows, int64_t at) {
    int64_t length = rows->length;
    int32_t *tokens = rows->tokens + at * length, *labels = rows->labels + at * length;
    train_stream_read(data->stream, index * length, length, tokens);
    memcpy(labels, tokens + 1, (size_t)(length - 1) * sizeof *labels);
    train_stream_read(data->stream, index * length + length, 1, labels + length - 1);
}

void train_data_sample(const train_data *data, uint64_t seed, int64_t sample,
                       const train_rows *rows, int64_t at) {
    int64_t windows = train_data_windows(data, rows->length);
    int64_t index = train_permute(seed, sample / windows, windows, sample % windows);
    train_data_window(data, index, rows, at);
}
