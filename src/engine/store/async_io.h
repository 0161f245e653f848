/* Asynchronous file reads and writes that overlap with computing. Transfers go into two queues, one
 * of reads and one of writes, and are cut into blocks, which are taken from the queues in turn.
 * Dedicated threads move the blocks, each with a ring (io_uring) of up to `queue_depth` blocks. If
 * the kernel refuses rings, more threads use plain reads and writes.
 *
 * All memory is taken when it is opened; starting and waiting allocate nothing. Transfers are
 * started by one thread at a time, and each is waited for by one thread.
 */
#ifndef ENGINE_ASYNC_IO_H
#define ENGINE_ASYNC_IO_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/uio.h>

#include "base/errors.h"
#include "base/file.h"

/* The alignment of addresses, offsets and sizes that O_DIRECT needs on all systems. */
enum { ENGINE_IO_ALIGNMENT = 4096 };

typedef struct engine_io engine_io;

/* DeepSpeed's "aio" section. */
typedef struct engine_io_settings {
    int64_t block_bytes; /* a multiple of ENGINE_IO_ALIGNMENT */
    int32_t queue_depth; /* blocks in progress at a time in each thread's ring */
    int32_t threads;     /* rings */
    bool single_submit;  /* one system call for each block instead of one for a full ring */
    bool overlap_events; /* submit new blocks as soon as one is done; false: when all of a ring are
                            done */
    bool plain;          /* use no rings: plain reads and writes */
} engine_io_settings;

/* The file that transfers read and write; it belongs to the caller and must stay open until they
 * are over. */
typedef struct engine_io_file {
    int descriptor;
    bool direct; /* O_DIRECT: everything must be aligned */
    char path[BASE_PATH_LENGTH];
} engine_io_file;

/* Opens for reading and writing, bypassing the page cache if the file system can. With `create` the
 * file must not exist yet. */
sifr_status engine_io_file_open(engine_io_file *file, const char *path, bool create,
                                sifr_error *error) SIFR_MUST_CHECK;
void engine_io_file_close(engine_io_file *file); /* harmless if it was not opened */

/* At most `transfers` are in progress at a time. */
sifr_status engine_io_open(const engine_io_settings *settings, int32_t transfers, engine_io **out,
                           sifr_error *error) SIFR_MUST_CHECK;
void engine_io_close(engine_io *io); /* finishes queued transfers; NULL is harmless */

bool engine_io_uses_rings(const engine_io *io);

/* Bytes of all transfers started since it was opened. */
void engine_io_count(const engine_io *io, int64_t *read, int64_t *written);

/* Pins these ranges of memory, each at most 1 GiB, while `io` is open, so that rings need not pin
 * each block in them. Call it only while no transfer is in progress, and not again after success.
 * On failure *number is the kernel's reason (ENOMEM: over the limit of locked memory), or 0 if
 * there are no rings. Transfers work either way. */
bool engine_io_pin(engine_io *io, const struct iovec *memory, unsigned count, int *number);
bool engine_io_is_pinned(const engine_io *io, const void *memory, int64_t bytes);

/* Moves `bytes` between `memory` and the file at `offset`. The memory must stay alive and untouched
 * until the wait. SIFR_FAILED if too many transfers are in progress, or something is not aligned.
 */
typedef int32_t engine_io_handle;
sifr_status engine_io_start_read(engine_io *io, const engine_io_file *file, int64_t offset,
                                 void *memory, int64_t bytes, engine_io_handle *handle,
                                 sifr_error *error) SIFR_MUST_CHECK;
sifr_status engine_io_start_write(engine_io *io, const engine_io_file *file, int64_t offset,
                                  const void *memory, int64_t bytes, engine_io_handle *handle,
                                  sifr_error *error) SIFR_MUST_CHECK;

/* Whether the transfer is over, so that its wait returns at once. */
bool engine_io_is_over(engine_io *io, engine_io_handle handle);

/* When a transfer's first block began and its last block ended; by base_seconds. */
typedef struct engine_io_times {
    double begun, ended;
} engine_io_times;

/* Waits until the transfer is over; once for each transfer. SIFR_FAILED names the file, the place
 * and the reason. `times` may be NULL. */
sifr_status engine_io_wait(engine_io *io, engine_io_handle handle, engine_io_times *times,
                           sifr_error *error) SIFR_MUST_CHECK;

#endif
