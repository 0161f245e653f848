/* Disk transfers of a device whose memory the host does not reach. Each goes through pinned host
 * memory: a read from the file to there, then in a copy on DEVICE_IN; a write in a copy on
 * DEVICE_OUT, which follows what was computed before, then from there to the file. A thread for
 * each direction takes them in their order, so whoever gives a step does not wait in between.
 *
 * The memory of a direction is used in turn. Where all of it is taken, a read begins later, and the
 * start of a write waits. A read sees all writes of the same bytes that were started before it, and
 * a write follows those as well. All memory is taken when it is opened.
 */
#ifndef ENGINE_STAGING_H
#define ENGINE_STAGING_H

#include "device/device.h"
#include "engine/store/async_io.h"

typedef struct engine_staging engine_staging;
enum { ENGINE_STAGED = 4 };

/* Takes bytes[0] of host memory for reads and bytes[1] for writes, each at least the largest
 * transfer of its direction. At most `transfers` were started and not waited for at a time, and
 * ENGINE_STAGED times as many are not over; `io` has to take that many. All that is given must
 * outlive it. */
sifr_status engine_staging_open(device *dev, engine_io *io, const engine_io_file *file,
                                const int64_t bytes[2], int32_t transfers, engine_staging **out,
                                sifr_error *error) SIFR_MUST_CHECK;
/* Drops what has not begun, and ends what has; NULL is harmless. */
void engine_staging_close(engine_staging *staging);

/* Moves `bytes` between the file at `offset` and the device's memory, after all that DEVICE_COMPUTE
 * was given. The device's memory must stay alive and untouched until the wait. One thread starts
 * transfers and waits for them. After a failure all calls return it. */
typedef int32_t engine_staged;
sifr_status engine_staging_read(engine_staging *staging, int64_t offset, void *memory,
                                int64_t bytes, engine_staged *out,
                                sifr_error *error) SIFR_MUST_CHECK;
/* *times of a write: of its file, set by the time that engine_staging_finish returns. */
sifr_status engine_staging_write(engine_staging *staging, int64_t offset, const void *memory,
                                 int64_t bytes, engine_io_times *times, engine_staged *out,
                                 sifr_error *error) SIFR_MUST_CHECK;

/* What DEVICE_COMPUTE is given from now on starts after the transfer has ended in the device's
 * memory; once for each transfer. The host waits until a read's file has been read, and for no
 * write. *times: of a read's file; 0 for a write. */
sifr_status engine_staging_wait(engine_staging *staging, engine_staged transfer,
                                engine_io_times *times, sifr_error *error) SIFR_MUST_CHECK;

/* Waits until all transfers are over, in the file as well. Each must have been waited for. */
sifr_status engine_staging_finish(engine_staging *staging, sifr_error *error) SIFR_MUST_CHECK;

/* A queue is given work by one thread at a time: whoever else gives some to DEVICE_IN does so
 * between these. */
void engine_staging_hold_in(engine_staging *staging);
void engine_staging_leave_in(engine_staging *staging);

/* The memory of reads and that of writes; without address where there is none. */
void engine_staging_memory(const engine_staging *staging, struct iovec out[2]);

#endif
