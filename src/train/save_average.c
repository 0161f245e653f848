/* The average of the weights (sifr.ema) as a model folder in the output folder. */
#include <errno.h>
#include <stdio.h>
#include <sys/stat.h>

#include "base/file.h"
#include "formats/folder.h"
#include "text/chat_template.h"
#include "train/prepare/run_task.h"
#include "train/run.h"

/* An earlier folder, or one that a kill left incomplete, makes way. */
static sifr_status begin(const train_state *t, const char *path, sifr_error *error) {
    char template[BASE_PATH_LENGTH];
    BASE_TRY(base_remove_tree(path, error));
    if (mkdir(path, 0777) != 0) return base_fail_errno(error, errno, "%s: cannot make", path);
    BASE_TRY(formats_folder_carry(t->config->model, path, NULL, NULL, error));
    BASE_TRY(text_chat_template_put(train_chat_template(t->config, template), t->config->model,
                                    path, error));
    return engine_folder_put_config(&t->folder, t->config->model, path, error);
}

static sifr_status place(const char *from, const char *to, sifr_error *error) {
    BASE_TRY(base_remove_tree(to, error));
    if (rename(from, to) != 0)
        return base_fail_errno(error, errno, "%s: cannot rename %s to it", to, from);
    return SIFR_OK;
}

sifr_status train_save_average(train_state *t, sifr_error *error) {
    char path[BASE_PATH_LENGTH], making[BASE_PATH_LENGTH];
    if (!(t->config->step.optimizer.ema_decay > 0)) return SIFR_OK;
    BASE_TRY(base_path_join(path, t->config->output, TRAIN_AVERAGE, error));
    BASE_TRY(base_path_join(making, t->config->output, TRAIN_AVERAGE ".incomplete", error));
    BASE_TRY(train_agree(t, t->first ? begin(t, making, error) : SIFR_OK, error));
    sifr_status saved = engine_save_average(t->engine, t->folder.architecture, t->folder.weights,
                                            BASE_FP32, making, error);
    BASE_TRY(train_agree(t, saved, error));
    return train_agree(t, t->first ? place(making, path, error) : SIFR_OK, error);
}
