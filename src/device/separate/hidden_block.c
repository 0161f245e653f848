#include "device/separate/hidden_block.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/assert.h"

enum { PAGE = 4096 };

/* Closes the file if it fails. */
static sifr_status map_both(hidden_block *block, sifr_error *error) {
    size_t size = (size_t)block->bytes;
    block->handed = mmap(NULL, size, PROT_NONE, MAP_SHARED, block->file, 0);
    block->real = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, block->file, 0);
    if (block->handed != MAP_FAILED && block->real != MAP_FAILED) return SIFR_OK;
    if (block->handed != MAP_FAILED) munmap(block->handed, size);
    if (block->real != MAP_FAILED) munmap(block->real, size);
    close(block->file);
    return base_fail_alloc(error, block->bytes);
}

static int64_t whole_pages(int64_t bytes) {
    return (bytes + PAGE - 1) / PAGE * PAGE;
}

sifr_status hidden_block_take(int64_t bytes, hidden_block *out, sifr_error *error) {
    base_assert(bytes > 0);
    hidden_block block = {.bytes = whole_pages(bytes)};
    block.file = memfd_create("sifr hidden", MFD_CLOEXEC);
    if (block.file < 0) return base_fail_errno(error, errno, "cannot create hidden memory");
    if (ftruncate(block.file, (off_t)block.bytes) != 0) {
        close(block.file);
        return base_fail_alloc(error, bytes);
    }
    BASE_TRY(map_both(&block, error));
    *out = block;
    return SIFR_OK;
}

sifr_status hidden_block_open(int64_t process, int file, int64_t bytes, hidden_block *out,
                              sifr_error *error) {
    hidden_block block = {.bytes = whole_pages(bytes)};
    char path[64];
    snprintf(path, sizeof path, "/proc/%lld/fd/%d", (long long)process, file);
    block.file = open(path, O_RDWR | O_CLOEXEC);
    if (block.file < 0) return base_fail_errno(error, errno, "cannot open hidden memory: %s", path);
    BASE_TRY(map_both(&block, error));
    *out = block;
    return SIFR_OK;
}

void hidden_block_give(hidden_block *block) {
    base_assert(block->handed && block->file >= 0);
    munmap(block->handed, (size_t)block->bytes);
    munmap(block->real, (size_t)block->bytes);
    close(block->file);
}
