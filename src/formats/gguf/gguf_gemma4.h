/* Gemma 4's tokenizer, which llama.cpp takes for a BPE over whole lines. */
#ifndef FORMATS_GGUF_GEMMA4_H
#define FORMATS_GGUF_GEMMA4_H

#include "formats/gguf/gguf_tokens.h"
#include "formats/gguf/gguf_vocab.h"

/* Whether llama.cpp splits texts as the folder's tokenizer.json does; SIFR_USAGE, by name, if not.
 */
sifr_status formats_gguf_gemma4_check(const formats_gguf_files *files,
                                      sifr_error *error) SIFR_MUST_CHECK;

/* generation_config.json's "suppress_tokens", which 12B has: ids that are never drawn. */
sifr_status formats_gguf_gemma4_suppressed(const formats_gguf_files *files, formats_gguf_meta *meta,
                                           sifr_error *error) SIFR_MUST_CHECK;

/* Tokens of a chat that llama.cpp shows, so that its parser can read them. */
void formats_gguf_gemma4_show(formats_gguf_tokens *tokens);

#endif
