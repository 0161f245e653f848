/* A file of a model folder, which may be a link. */
#ifndef BASE_FOLDER_FILE_H
#define BASE_FOLDER_FILE_H

#include "base/errors.h"
#include "base/file.h"

/* `directory`/`name` into path. SIFR_FAILED when that is not there, or is a link that leads out of
 * the directory; a snapshot in the hub's cache (snapshots/<revision>) may lead to its blobs. */
sifr_status base_folder_file(const char *directory, const char *name, char path[BASE_PATH_LENGTH],
                             sifr_error *error) SIFR_MUST_CHECK;

#endif
