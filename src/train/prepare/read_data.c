#include "train/prepare/read_data.h"

#include <stdlib.h>

#include "base/file.h"
#include "train/prepare/run_settings.h"
#include "train/prepare/run_task.h"

sifr_status train_read_data(const checkpoint_model *model, int64_t length,
                            const sifr_config *config, data_set_options *options, data_set **out,
                            sifr_error *error) {
    char scratch[BASE_PATH_LENGTH];
    const char *parent = getenv("TMPDIR");
    const model_config *described = &model->folder.config;
    options->tokenizer = model->files;
    options->vocab_size = described->vocab_size;
    options->separator = -1;
    if (described->task == MODEL_NEXT_TOKEN)
        BASE_TRY(
            train_separator(model->files, described, options->log, &options->separator, error));
    if (!parent || !*parent) parent = "/tmp";
    BASE_TRY(base_path_join(scratch, parent, "sifr-XXXXXX", error));
    if (!mkdtemp(scratch))
        return base_fail(error, SIFR_FAILED, "%s: cannot make a folder for the tokens in it",
                         parent);
    options->cache = scratch;
    train_chat_form form;
    sifr_status status =
        train_chat_form_make(&model->folder, length, config, options, &form, error);
    if (status == SIFR_OK && !form.options.template && model->template[0])
        form.options.template = model->template;
    if (status == SIFR_OK) status = data_set_open(options, out, error);
    if (status == SIFR_OK && options->chat && config->joint) {
        status = data_set_join(*out, error);
        if (status != SIFR_OK) data_set_close(*out);
    }
    train_chat_form_free(&form);
    options->cache = NULL;
    if (base_remove_tree(scratch, NULL) != SIFR_OK)
        base_log(options->log, SIFR_LOG_WARNING, "%s: could not be removed", scratch);
    return status;
}
