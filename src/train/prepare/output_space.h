/* Disk space before a run starts: on the file systems of its swap files and of its output, which
 * may be the same.
 */
#ifndef TRAIN_OUTPUT_SPACE_H
#define TRAIN_OUTPUT_SPACE_H

#include "config/config.h"
#include "plan/checkpoint_size.h"

typedef struct train_disk {
    const char *swap, *output;        /* of the config; NULL: not given */
    int64_t swap_bytes, output_bytes; /* free there; -1: not known */
    bool same;                        /* they are one file system */
    int64_t steps;                    /* step of the checkpoint that the run resumes from */
    int64_t there;                    /* number of existing checkpoints */
    int64_t total_steps;              /* steps of the run; 0: not known before its data is read */
    bool limited;                     /* save_total_limit is set */
    int64_t model_bytes;              /* bytes of the trained model's weights */
} train_disk;

/* The first directory that the config names for state on disk, whether or not any state is there;
 * NULL: none. Borrowed. */
const char *train_named_path(const sifr_config *config);

/* Looks at this host's file systems; figures that cannot be read are no failure. The trained model
 * is taken to be as large as the weights in config->model, or as large as in fp32 if there are
 * none. */
sifr_status train_disk_find(const sifr_config *config, const sifr_model *model, train_disk *out,
                            sifr_error *error) SIFR_MUST_CHECK;

/* The number of checkpoints that the run adds at one time: those that save_total_limit keeps and
 * the one being written, but no more than the run makes; without a limit all of them. 1 if the
 * number of steps is not known yet. */
int32_t train_checkpoints(const sifr_config *config, const train_disk *disk);

/* The output's space for a search, if `ranks` ranks of its host have swap files. */
plan_output train_output_space(const sifr_config *config, const train_disk *disk, int32_t ranks);

/* SIFR_NO_MEMORY, with the numbers, if the output has too little space for the checkpoints and the
 * model of a run with these settings, besides its swap files. */
sifr_status train_disk_check(const train_disk *disk, const plan_output *output,
                             const sifr_model *model, const plan_settings *settings,
                             int64_t nvme_bytes, sifr_error *error) SIFR_MUST_CHECK;

#endif
