/* The file system of a path that exists or will be created. */
#ifndef BASE_DISK_H
#define BASE_DISK_H

#include <stdint.h>

#include "base/errors.h"

typedef struct base_disk {
    uint64_t id;         /* equal for two paths of a host that share free space */
    uint64_t free_bytes; /* available to this user */
} base_disk;

/* The file system of `path`, or of its nearest existing parent. */
sifr_status base_disk_find(const char *path, base_disk *out, sifr_error *error) SIFR_MUST_CHECK;

#endif
