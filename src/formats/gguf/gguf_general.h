/* The part of GGUF's metadata that says what a model is called and how it is sampled. */
#ifndef FORMATS_GGUF_GENERAL_H
#define FORMATS_GGUF_GENERAL_H

#include "formats/gguf/gguf_vocab.h"

/* "general.name" and the like, from `folder_name`, and "general.sampling.…", from
 * generation_config.json. `parameters`: elements of all tensors. */
void formats_gguf_general(const formats_gguf_files *files, const char *folder_name,
                          int64_t parameters, formats_gguf_meta *meta);

#endif
