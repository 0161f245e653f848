/* What a run has of file systems before it starts: that of its swap files and that of its output,
 * which may be one. */
#ifndef TRAIN_OUTPUT_ROOM_H
#define TRAIN_OUTPUT_ROOM_H

#include "config/config.h"
#include "plan/checkpoint_size.h"

typedef struct train_disk {
    const char *swap, *output;        /* of the config; NULL: not given */
    int64_t swap_bytes, output_bytes; /* free there; -1: not known */
    bool same;                        /* they are one file system */
    int64_t steps;                    /* of the newest checkpoint that the run goes on from */
    int64_t there;                    /* checkpoints that are there already */
    int64_t total_steps;              /* of the run; 0: not known before its data is read */
    bool limited;                     /* save_total_limit keeps some checkpoints only */
    int64_t model_bytes;              /* of the trained model's weights */
} train_disk;

/* The first directory that the config names for a disk, whether something is there or may come to
 * be; NULL: none. Borrowed. */
const char *train_named_path(const sifr_config *config);

/* Looks at this host's. What cannot be known is no failure. The trained model is as large as the
 * weights in the folder config->model, in fp32 where there are none. */
sifr_status train_disk_find(const sifr_config *config, const sifr_model *model, train_disk *out,
                            sifr_error *error) SIFR_MUST_CHECK;

/* Checkpoints that the run adds at one time: of those that save_total_limit keeps, and the one that
 * is being written, as many as it comes to make; without a limit all of them. Where the number of
 * steps is not known yet, one. */
int32_t train_checkpoints(const sifr_config *config, const train_disk *disk);

/* The output for a search, where `ranks` of its host swap. */
plan_output train_output_room(const sifr_config *config, const train_disk *disk, int32_t ranks);

/* SIFR_NO_MEMORY, with the numbers, where the output has no room for the checkpoints and the model
 * of a run that is planned with these settings, beside its swap files. */
sifr_status train_disk_check(const train_disk *disk, const plan_output *room,
                             const sifr_model *model, const plan_settings *settings,
                             int64_t nvme_bytes, sifr_error *error) SIFR_MUST_CHECK;

#endif
