/* What tests/golden/make_tokenizer.py left in tests/golden/tokenizer/, and its corpus again. */
#ifndef TESTS_TOKENIZER_CASE_H
#define TESTS_TOKENIZER_CASE_H

#include <jansson.h>
#include <stddef.h>
#include <stdint.h>

#include "text/tokenizer/tokenizer.h"

/* `name` in the golden folder, parsed; fails the test when it is not there. */
json_t *tokenizer_golden(const char *name);
text_tokenizer *tokenizer_golden_load(const char *name);

/* Phrases until there are `size` bytes; free(). */
char *tokenizer_corpus(uint64_t seed, size_t size, size_t *actual);

/* End of the chunk that begins at `at`: `chunk` bytes on, or at the next character. */
size_t tokenizer_chunk_end(const char *text, size_t size, size_t at, size_t chunk);

uint64_t tokenizer_hash(const int32_t *ids, size_t count);
/* Fails, naming `what`, when the ids are not as many and with that hash (16 digits). */
void tokenizer_same(const char *what, const text_tokenizer_ids *ids, int64_t count,
                    const char *hash);

#endif
