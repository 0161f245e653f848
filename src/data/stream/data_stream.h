/* One stream of tokens: the documents in the order of the paths, each followed by the end-of-text
 * id unless it already ends with it; documents made from text may begin with a BOS. */
#ifndef TRAIN_DATA_STREAM_H
#define TRAIN_DATA_STREAM_H

#include "data/data.h"

typedef struct train_stream train_stream;

/* As train_data_open. */
sifr_status train_stream_open(const train_data_options *options, train_stream **out,
                              sifr_error *error) SIFR_MUST_CHECK;
void train_stream_close(train_stream *stream); /* NULL is harmless */

int64_t train_stream_tokens(const train_stream *stream); /* separators included */
int64_t train_stream_documents(const train_stream *stream);
uint64_t train_stream_hash(const train_stream *stream);

/* Tokens at … at + count - 1, which must be there. Safe from several threads. */
void train_stream_read(const train_stream *stream, int64_t at, int64_t count, int32_t *out);

#endif
