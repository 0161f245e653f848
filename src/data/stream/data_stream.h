/* One stream of tokens: the documents in the order of the paths, each followed by the end-of-text
 * id unless it already ends with it; documents made from text may begin with a BOS. */
#ifndef DATA_STREAM_H
#define DATA_STREAM_H

#include "data/data.h"

typedef struct data_stream data_stream;

/* As data_set_open. */
sifr_status data_stream_open(const data_set_options *options, data_stream **out,
                             sifr_error *error) SIFR_MUST_CHECK;
void data_stream_close(data_stream *stream); /* NULL is harmless */

int64_t data_stream_tokens(const data_stream *stream); /* separators included */
int64_t data_stream_documents(const data_stream *stream);
uint64_t data_stream_hash(const data_stream *stream);

/* Tokens at … at + count - 1, which must be there. Safe from several threads. */
void data_stream_read(const data_stream *stream, int64_t at, int64_t count, int32_t *out);

#endif
