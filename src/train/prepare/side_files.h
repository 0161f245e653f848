/* Files that a run writes beside its output: at a path that its user names. */
#ifndef TRAIN_SIDE_FILES_H
#define TRAIN_SIDE_FILES_H

#include "config/config.h"

/* Before anything is written. SIFR_USAGE where such a path, or a folder of the run's, begins with
 * ~, or is a file that sifr did not write in that form (data, a model, the config), a file of the
 * run's output, or that of another key; or where a monitor's folder is a checkpoint's. */
sifr_status train_check_side_files(const sifr_config *config, sifr_error *error) SIFR_MUST_CHECK;

#endif
