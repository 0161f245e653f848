/* A folder of a fuzz target's own, for readers that take paths; removed at exit. */
#ifndef SUPPORT_FUZZ_FOLDER_H
#define SUPPORT_FUZZ_FOLDER_H

#include <stdio.h>
#include <stdlib.h>

#include "base/file.h"

static char fuzz_folder_path[128];

static inline void fuzz_folder_remove(void) {
    if (base_remove_tree(fuzz_folder_path, NULL) != SIFR_OK) perror(fuzz_folder_path);
}

static inline const char *fuzz_folder(void) {
    if (fuzz_folder_path[0]) return fuzz_folder_path;
    const char *above = getenv("TMPDIR");
    snprintf(fuzz_folder_path, sizeof fuzz_folder_path, "%s/sifr-fuzz.XXXXXX",
             above ? above : "/tmp");
    if (!mkdtemp(fuzz_folder_path) || atexit(fuzz_folder_remove) != 0) abort();
    return fuzz_folder_path;
}

#endif
