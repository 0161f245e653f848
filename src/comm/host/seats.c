#include "comm/host/seats.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/assert.h"
#include "base/checked.h"
#include "base/clock.h"

enum { SPINS = 100 }; /* some microseconds, the time in which a running rank answers */

static void futex(_Atomic uint32_t *word, int operation, uint32_t value,
                  const struct timespec *limit) {
    syscall(SYS_futex, word, operation, value, limit, NULL, 0);
}

static bool has_reached(const _Atomic uint32_t *count, uint32_t number) {
    return (int32_t)(atomic_load(count) - number) >= 0;
}

void comm_host_advance(comm_slot *own, _Atomic uint32_t *count, uint32_t number) {
    base_assert((int32_t)(number - atomic_load(count)) >= 0);
    atomic_store(count, number);
    if (atomic_load(&own->sleepers)) futex(count, FUTEX_WAKE, INT32_MAX, NULL);
}

static void spin(void) {
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#endif
}

bool comm_host_await(comm_slot *slot, _Atomic uint32_t *count, uint32_t number, double seconds) {
    for (int i = 0; i < SPINS; i++) {
        if (has_reached(count, number)) return true;
        spin();
    }
    double until = base_seconds() + seconds;
    bool reached;
    atomic_fetch_add(&slot->sleepers, 1);
    for (;;) {
        uint32_t seen = atomic_load(count);
        double rest = until - base_seconds();
        reached = (int32_t)(seen - number) >= 0;
        if (reached || rest <= 0) break;
        struct timespec limit = {.tv_sec = (time_t)rest,
                                 .tv_nsec = (long)(1e9 * (rest - (double)(time_t)rest))};
        futex(count, FUTEX_WAIT, seen, &limit);
    }
    atomic_fetch_sub(&slot->sleepers, 1);
    return reached;
}

void comm_host_knock(comm_seat *seat) {
    atomic_fetch_add(&seat->knocks, 1);
    if (atomic_load(&seat->listens)) futex(&seat->knocks, FUTEX_WAKE, INT32_MAX, NULL);
}

uint32_t comm_host_listen(comm_seat *own, uint32_t seen, double seconds) {
    struct timespec limit = {.tv_sec = (time_t)seconds,
                             .tv_nsec = (long)(1e9 * (seconds - (double)(time_t)seconds))};
    for (int i = 0; i < SPINS; i++) {
        uint32_t knocks = atomic_load(&own->knocks);
        if (knocks != seen) return knocks;
        spin();
    }
    atomic_store(&own->listens, 1);
    if (atomic_load(&own->knocks) == seen) futex(&own->knocks, FUTEX_WAIT, seen, &limit);
    atomic_store(&own->listens, 0);
    return atomic_load(&own->knocks);
}

/* The kernel releases the lock when the process ends, however it ends. */
static sifr_status sit_down(comm_host *host, sifr_error *error) {
    struct flock lock = {
        .l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = host->mine, .l_len = 1};
    if (fcntl(host->file, F_SETLK, &lock) != 0)
        return base_fail_errno(error, errno, "a lock on shared memory");
    return SIFR_OK;
}

bool comm_host_is_dead(const comm_host *host, int32_t seat) {
    base_assert(seat >= 0 && seat < host->size);
    struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = seat, .l_len = 1};
    if (seat == host->mine) return false;
    return fcntl(host->file, F_GETLK, &lock) == 0 && lock.l_type == F_UNLCK;
}

int64_t comm_host_seat_bytes(void) {
    return sizeof(comm_seat);
}

int64_t comm_host_slot_bytes(void) {
    return sizeof(comm_slot);
}

/* Seats come first, then slot 0 of all seats, slot 1 of all seats … */
static int64_t slots_at(const comm_host *host) {
    return base_ceil_to(host->size * comm_host_seat_bytes(), 4096);
}

sifr_status comm_host_take_slot(comm_host *host, int32_t slot, sifr_error *error) {
    base_assert(slot >= 0 && slot < COMM_SLOTS);
    int64_t bytes = comm_host_slot_bytes();
    int64_t at = slots_at(host) + (slot * (int64_t)host->size + host->mine) * bytes;
    int result = posix_fallocate(host->file, at, bytes);
    if (result) return base_fail_errno(error, result, "shared memory of a group of ranks");
    return SIFR_OK;
}

static sifr_status map_seats(comm_host *host, sifr_error *error) {
    char *block =
        mmap(NULL, (size_t)host->bytes, PROT_READ | PROT_WRITE, MAP_SHARED, host->file, 0);
    if (block == MAP_FAILED) return base_fail_errno(error, errno, "mapping shared memory");
    host->seats = (comm_seat *)block;
    host->slots = (comm_slot *)(block + slots_at(host));
    BASE_TRY(comm_host_take_slot(host, 0, error));
    return sit_down(host, error);
}

static sifr_status take_file(comm_host *host, sifr_error *error) {
    host->file = memfd_create("sifr ranks", MFD_CLOEXEC);
    if (host->file < 0) return base_fail_errno(error, errno, "shared memory");
    if (ftruncate(host->file, host->bytes) != 0)
        return base_fail_errno(error, errno, "shared memory");
    int result = posix_fallocate(host->file, 0, slots_at(host));
    if (result) return base_fail_errno(error, result, "shared memory");
    return map_seats(host, error);
}

static void prepare(comm_host *host, int32_t size, int32_t mine) {
    base_assert(mine >= 0 && mine < size);
    *host = (comm_host){.size = size, .mine = mine, .file = -1};
    host->bytes = slots_at(host) + COMM_SLOTS * size * comm_host_slot_bytes();
}

sifr_status comm_host_create(comm_host *host, int32_t size, sifr_error *error) {
    prepare(host, size, 0);
    sifr_status status = take_file(host, error);
    if (status != SIFR_OK) comm_host_close(host);
    return status;
}

comm_file comm_host_name_file(int file) {
    struct stat status;
    comm_file name = {.process = getpid(), .file = -1};
    if (file < 0 || fstat(file, &status) != 0) return name;
    name.device = status.st_dev;
    name.inode = status.st_ino;
    name.file = file;
    return name;
}

/* Containers may number processes differently; then another file is found, or none. */
sifr_status comm_host_open_file(const comm_file *file, int mode, int *out, sifr_error *error) {
    char path[64];
    struct stat status;
    snprintf(path, sizeof path, "/proc/%lld/fd/%d", (long long)file->process, (int)file->file);
    *out = open(path, mode | O_CLOEXEC);
    if (*out < 0) return base_fail_errno(error, errno, "%s", path);
    if (fstat(*out, &status) == 0 && status.st_dev == file->device && status.st_ino == file->inode)
        return SIFR_OK;
    close(*out);
    *out = -1;
    return base_fail(error, SIFR_FAILED, "%s: not the memory of a rank of this host", path);
}

sifr_status comm_host_join(comm_host *host, int32_t size, int32_t mine, const comm_file *file,
                           sifr_error *error) {
    prepare(host, size, mine);
    sifr_status status;
    BASE_TRY_GOTO(status, comm_host_open_file(file, O_RDWR, &host->file, error), fail);
    BASE_TRY_GOTO(status, map_seats(host, error), fail);
    return SIFR_OK;
fail:
    comm_host_close(host);
    return status;
}

void comm_host_close(comm_host *host) {
    if (!host->bytes) return;
    if (host->seats) munmap(host->seats, (size_t)host->bytes);
    if (host->file >= 0) close(host->file);
    *host = (comm_host){0};
}
