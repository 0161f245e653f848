/* Memory with two mappings: the address that is handed out has no rights, so that the host's own
 * read of it faults at the line, and the device works on the other one. */
#ifndef DEVICE_HIDDEN_BLOCK_H
#define DEVICE_HIDDEN_BLOCK_H

#include <stdint.h>

#include "base/errors.h"

typedef struct hidden_block {
    void *handed; /* without rights */
    void *real;
    int64_t bytes; /* in whole pages */
    int file;      /* of both */
} hidden_block;

/* Zeroed memory. */
sifr_status hidden_block_take(int64_t bytes, hidden_block *out, sifr_error *error) SIFR_MUST_CHECK;
/* Maps the memory of another process's block, whose file is `file` there. */
sifr_status hidden_block_open(int64_t process, int file, int64_t bytes, hidden_block *out,
                              sifr_error *error) SIFR_MUST_CHECK;
void hidden_block_give(hidden_block *block); /* closes the file, too */

#endif
