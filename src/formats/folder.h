/* The files of a Hugging Face model folder, apart from what is in them. */
#ifndef FORMATS_FOLDER_H
#define FORMATS_FOLDER_H

#include <stdbool.h>
#include <stddef.h>

#include "base/errors.h"
#include "base/file.h"

/* Weights, or an index of weights, by the name: "pytorch_model.bin", "model.safetensors" … */
bool formats_is_weight_file(const char *name);

/* Copies every file of a model folder but its weights into an existing folder, byte for byte:
 * weights and their indexes (*.safetensors, *.bin, *.pt, *.pth, *.gguf, *.h5, *.msgpack, *.onnx)
 * and subdirectories stay behind, each said through `log`; so do, without a word, the records of
 * runs (trainer_state.json, latest …). The folder additional_chat_templates goes along. `dtype`
 * ("bfloat16", "float32", "float16"; NULL: leave it) is put in place of the value of "torch_dtype"
 * or "dtype" in config.json, or added where neither stands; nothing else of that file changes. */
sifr_status formats_folder_carry(const char *from, const char *to, const char *dtype,
                                 const sifr_log *log, sifr_error *error) SIFR_MUST_CHECK;

#endif
