/* Asynchronous reads and writes of files beside computing: transfers are put in two lines, of reads
 * and of writes, and cut into blocks, which the lines give by turns. Threads of their own move
 * them, each with a ring (io_uring) that holds up to `queue_depth` blocks; where the kernel refuses
 * rings, more threads with plain reads and writes.
 *
 * Everything is taken when it is opened; starting and waiting allocate nothing. One thread starts
 * and waits. */
#ifndef ENGINE_ASYNC_IO_H
#define ENGINE_ASYNC_IO_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/uio.h>

#include "base/errors.h"
#include "base/file.h"
#include "device/device.h"

/* What O_DIRECT asks of addresses, offsets and sizes everywhere. */
enum { ENGINE_IO_ALIGNMENT = 4096 };

typedef struct engine_io engine_io;

/* DeepSpeed's "aio" section. */
typedef struct engine_io_settings {
    int64_t block_bytes; /* a multiple of ENGINE_IO_ALIGNMENT */
    int32_t queue_depth; /* blocks under way at a time in each thread's ring */
    int32_t threads;     /* rings */
    bool single_submit;  /* one system call for each block, not for what fits in the ring */
    bool overlap_events; /* new blocks as soon as one is done; false: when all of a ring are */
    bool plain;          /* no rings: plain reads and writes */
} engine_io_settings;

/* A file that transfers read and write; the caller's, and open until they are over. Or host memory
 * in its place, which device_copy moves to and from the memory of `dev`, without rings. */
typedef struct engine_io_file {
    int descriptor;
    bool direct;                 /* O_DIRECT: everything must be aligned */
    char path[BASE_PATH_LENGTH]; /* or what messages call it */
    device *dev;
    char *memory; /* NULL: a file */
} engine_io_file;

/* Opens for reading and writing, past the page cache where the file system can. With `create` the
 * file must not be there yet. */
sifr_status engine_io_file_open(engine_io_file *file, const char *path, bool create,
                                sifr_error *error) SIFR_MUST_CHECK;
void engine_io_file_close(engine_io_file *file); /* harmless on one that was not opened */

/* At most `transfers` are under way at a time. */
sifr_status engine_io_open(const engine_io_settings *settings, int32_t transfers, engine_io **out,
                           sifr_error *error) SIFR_MUST_CHECK;
void engine_io_close(engine_io *io); /* finishes what is in line; NULL is harmless */

bool engine_io_uses_rings(const engine_io *io);

/* Bytes of all transfers that were started since it was opened. */
void engine_io_count(const engine_io *io, int64_t *read, int64_t *written);

/* Pins these pieces of memory, each of at most 1 GiB, for as long as `io` is open, so that rings
 * need not do so for each block that lies in one of them. Only while nothing is under way, and not
 * again once it was possible. Where it is not, *number is the kernel's reason (ENOMEM: too much for
 * the limit of locked memory), or 0: there are no rings. Transfers go on either way. */
bool engine_io_pin(engine_io *io, const struct iovec *memory, unsigned count, int *number);
bool engine_io_is_pinned(const engine_io *io, const void *memory, int64_t bytes);

/* Moves `bytes` between `memory` and the file at `offset`. Memory must live, and not be touched,
 * until the wait. SIFR_FAILED where too many are under way, or something is not aligned. */
typedef int32_t engine_io_handle;
sifr_status engine_io_start_read(engine_io *io, const engine_io_file *file, int64_t offset,
                                 void *memory, int64_t bytes, engine_io_handle *handle,
                                 sifr_error *error) SIFR_MUST_CHECK;
sifr_status engine_io_start_write(engine_io *io, const engine_io_file *file, int64_t offset,
                                  const void *memory, int64_t bytes, engine_io_handle *handle,
                                  sifr_error *error) SIFR_MUST_CHECK;

/* When a transfer's first block was taken up, and its last one done; by base_seconds. */
typedef struct engine_io_times {
    double begun, ended;
} engine_io_times;

/* Until the transfer is over; once for each. SIFR_FAILED names the file, the place and the reason.
 * `times` may be NULL. */
sifr_status engine_io_wait(engine_io *io, engine_io_handle handle, engine_io_times *times,
                           sifr_error *error) SIFR_MUST_CHECK;

#endif
