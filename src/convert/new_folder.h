/* A model folder that appears complete or not at all. Start with {0}. */
#ifndef CONVERT_NEW_FOLDER_H
#define CONVERT_NEW_FOLDER_H

#include <stdint.h>

#include "base/errors.h"
#include "base/file.h"

typedef struct convert_new_folder {
    char destination[BASE_PATH_LENGTH]; /* without trailing slashes */
    char temporary[BASE_PATH_LENGTH];   /* beside it; "": not made */
} convert_new_folder;

/* The destination must be absent or an empty folder. */
sifr_status convert_new_folder_check(convert_new_folder *folder, const char *destination,
                                     sifr_error *error) SIFR_MUST_CHECK;
/* The disk must have room for so many bytes of weights. */
sifr_status convert_new_folder_space(const convert_new_folder *folder, uint64_t bytes,
                                     sifr_error *error) SIFR_MUST_CHECK;
sifr_status convert_new_folder_make(convert_new_folder *folder, sifr_error *error) SIFR_MUST_CHECK;
/* Gives the temporary folder its final name; fails if there is a folder that is no longer empty. */
sifr_status convert_new_folder_place(convert_new_folder *folder, sifr_error *error) SIFR_MUST_CHECK;
/* Removes the temporary folder, where there is one. */
void convert_new_folder_drop(convert_new_folder *folder, const sifr_log *log);

#endif
