/* Token stores: Megatron's PREFIX.bin (tokens, end to end) with PREFIX.idx (lengths, offsets,
 * documents), and llm.c's files of tokens. All numbers are little-endian.
 *
 * Layout of the index: 9 bytes "MMIDIDX\0\0"; u64 version 1; u8 type (1 u8, 3 i16, 4 i32, 5 i64, 8
 * u16); u64 sequences; u64 document entries; at byte 34 i32 lengths[sequences], i64 byte
 * offsets[sequences], i64 documents[entries], which begins with 0 and ends with `sequences`; then,
 * optionally, i8 modes[sequences], or what sifr writes, which Megatron's readers do not reach: 8
 * bytes "SIFRXXH3", u64 XXH3 of the .bin.
 *
 * Of the older one (Megatron's "lazy" and "cached"): 8 bytes "TNTIDX\0\0"; u64 version 1, type,
 * bytes of a token, items, sizes, document entries; i64 dimensions[items + 1], offsets[items + 1]
 * in tokens, sizes[sizes], documents[entries].
 *
 * llm.c: 256 i32, of which the first three are 20240520, version 1 (GPT-2) or 20240801, version 7
 * (Llama 3), and the number of tokens; then the tokens, u16 or u32. Where documents begin is not
 * known: a file counts as one, and nothing is put behind it. */
#ifndef DATA_TOKEN_STORE_H
#define DATA_TOKEN_STORE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/errors.h"
#include "base/file.h"
#include "base/hash.h"

/* An open store: one row of tokens, cut into documents. Owns its mappings. */
typedef struct data_token_store {
    base_map index, data;
    const uint8_t *ids; /* the first token, in `data` */
    int token_bytes;    /* of one stored token: 1, 2, 4, 8 */
    bool token_signed;
    int64_t tokens;    /* in all */
    int64_t sequences; /* rows of the index; one or more a document */
    int64_t documents;
    const uint8_t *offsets, *document_starts; /* into `index`, unaligned; NULL: of llm.c */
    bool offsets_in_tokens;                   /* not in bytes */
    bool has_hash;                            /* of the .bin, in the index */
    uint64_t hash;
    bool owned; /* the mappings are the store's, not a caller's */
} data_token_store;

/* "p", "p.idx" or "p.bin" -> "p" where p.idx and p.bin are files; else the path itself where it is
 * a file that begins as llm.c's. */
bool data_token_store_prefix(const char *path, char prefix[BASE_PATH_LENGTH]);

/* SIFR_FAILED for whatever does not fit together: the rows must cover the .bin without a gap. */
sifr_status data_token_store_open(const char *prefix, data_token_store *out,
                                  sifr_error *error) SIFR_MUST_CHECK;
/* The same on the caller's memory, which must outlive *out. */
sifr_status data_token_store_parse(const void *index, size_t index_size, const void *data,
                                   size_t data_size, const char *name, data_token_store *out,
                                   sifr_error *error) SIFR_MUST_CHECK;
sifr_status data_token_store_parse_llmc(const void *data, size_t size, const char *name,
                                        data_token_store *out, sifr_error *error) SIFR_MUST_CHECK;
void data_token_store_close(data_token_store *store); /* harmless on a zeroed one */

/* Document 0 ≤ d < documents as a range of tokens (may be empty). */
void data_token_store_document(const data_token_store *store, int64_t document, int64_t *first,
                               int64_t *count);

/* Tokens first … first+count-1, which must be there, into out. Ids that do not fit come out as
 * -1 (see data_token_store_check). Safe from several threads. */
void data_token_store_read(const data_token_store *store, int64_t first, int64_t count,
                           int32_t *out);

/* SIFR_FAILED when the tokens are not those that were written, where the index tells, or, naming
 * the first wrong id and its place, when one is not in 0 … vocab_size-1. */
sifr_status data_token_store_check(const data_token_store *store, int64_t vocab_size,
                                   const char *name, sifr_error *error) SIFR_MUST_CHECK;

/* Writer: one sequence a document; u16 where vocab_size < 65500, else i32 (as Megatron). The files
 * appear at commit, .idx last; a store that was there goes away when the new one is complete. */
typedef struct data_token_writer {
    base_writer data;
    int token_bytes;
    int64_t vocab_size;
    int32_t *lengths; /* of the documents */
    size_t documents, capacity;
    base_hash_stream *hash; /* of the .bin */
    int64_t open_length;    /* tokens of the document being written */
    char prefix[BASE_PATH_LENGTH];
} data_token_writer;

sifr_status data_token_writer_open(data_token_writer *writer, const char *prefix,
                                   int64_t vocab_size, sifr_error *error) SIFR_MUST_CHECK;
/* More tokens of the current document; SIFR_FAILED for an id outside of the vocabulary. */
sifr_status data_token_writer_append(data_token_writer *writer, const int32_t *ids, size_t count,
                                     sifr_error *error) SIFR_MUST_CHECK;
sifr_status data_token_writer_end_document(data_token_writer *writer,
                                           sifr_error *error) SIFR_MUST_CHECK;
sifr_status data_token_writer_commit(data_token_writer *writer, sifr_error *error) SIFR_MUST_CHECK;
void data_token_writer_abort(data_token_writer *writer); /* harmless after commit */

#endif
