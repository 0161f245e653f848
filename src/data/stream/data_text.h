/* The token store for a set of text files: made once and then found again by its name. */
#ifndef DATA_TEXT_H
#define DATA_TEXT_H

#include "base/file.h"
#include "data/data.h"
#include "data/stream/text_source.h"

/* Finds or makes options->cache/<hash>.bin and .idx. The hash covers the files' names, sizes and
 * times, and the bytes of tokenizer.json. One that is damaged, or has an id that is not in the
 * vocabulary, is made again. *checked: it was found, and its ids are in the vocabulary. */
sifr_status data_set_from_text(const data_text_source *source, const data_set_options *options,
                               char prefix[BASE_PATH_LENGTH], bool *checked,
                               sifr_error *error) SIFR_MUST_CHECK;

#endif
