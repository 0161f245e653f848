/* llama.cpp's way to split a text for a vocabulary with scores, beside the folder's tokenizer. */
#ifndef FORMATS_GGUF_SPM_H
#define FORMATS_GGUF_SPM_H

#include "formats/gguf/gguf_tokens.h"

/* Whether llama.cpp splits texts as the folder's tokenizer does. *prefix: whether it puts a blank
 * in front, changed where the other choice is the right one. SIFR_USAGE, with the text, where none
 * is; what no choice carries behind special tokens is said to `log`. */
sifr_status formats_gguf_spm_check(const formats_gguf_files *files,
                                   const formats_gguf_tokens *tokens, bool *prefix,
                                   const sifr_log *log, sifr_error *error) SIFR_MUST_CHECK;

#endif
