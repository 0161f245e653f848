/* The file system that a path is on, or will be on once it is made. */
#ifndef BASE_DISK_H
#define BASE_DISK_H

#include <stdint.h>

#include "base/errors.h"

typedef struct base_disk {
    uint64_t id;         /* the same of two paths of a host where they share their room */
    uint64_t free_bytes; /* for this user */
} base_disk;

/* Of `path`, or, where that is not there, of the nearest directory above it that is. */
sifr_status base_disk_find(const char *path, base_disk *out, sifr_error *error) SIFR_MUST_CHECK;

#endif
