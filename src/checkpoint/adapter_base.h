/* The base of an adapter folder: where it is, and whether a model folder is another one. */
#ifndef CHECKPOINT_ADAPTER_BASE_H
#define CHECKPOINT_ADAPTER_BASE_H

#include "base/errors.h"
#include "base/file.h"
#include "model/lora.h"

/* The folder of the base that adapter_config.json names, where `path` is an adapter folder, else
 * "". SIFR_USAGE if it is not here. */
sifr_status checkpoint_find_adapter_base(const char *path, char out[BASE_PATH_LENGTH],
                                         sifr_error *error) SIFR_MUST_CHECK;

/* The base that the config of an adapter names, if model folder `model` is another, else NULL. A
 * folder is the same where its weights are or, where those cannot be compared (they have other
 * types, or the adapter is `merged` into the model's), its config.json is; a name of the Hub where
 * the folder, or _name_or_path in its config.json, has that name. */
const char *checkpoint_adapter_other_base(const model_lora *lora, const char *model, bool merged);

/* Says so, in one line, with the adapter's folder. */
void checkpoint_warn_adapter_base(const model_lora *lora, const char *adapter, const char *model,
                                  bool merged, const sifr_log *log);

#endif
