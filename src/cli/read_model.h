/* Opening of the model that a command's options name. */
#ifndef CLI_READ_MODEL_H
#define CLI_READ_MODEL_H

#include "cli/read_flags.h"
#include "infer/open_model.h"

/* Opens it (infer_open_model). Without --device the caller's out->device counts. */
sifr_status cli_read_model_open(const cli_read_flags *read, checkpoint_model *model,
                                infer_options *out, const sifr_log *log,
                                sifr_error *error) SIFR_MUST_CHECK;

#endif
