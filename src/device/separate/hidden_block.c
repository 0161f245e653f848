#include "device/separate/hidden_block.h"

#include <errno.h>
#include <sys/mman.h>
#include <unistd.h>

enum { PAGE = 4096 };

sifr_status hidden_block_take(int64_t bytes, hidden_block *out, sifr_error *error) {
    hidden_block block = {.bytes = (bytes + PAGE - 1) / PAGE * PAGE};
    block.file = memfd_create("sifr hidden", MFD_CLOEXEC);
    if (block.file < 0) return base_fail_errno(error, errno, "cannot create hidden memory");
    block.handed = block.real = MAP_FAILED;
    size_t size = (size_t)block.bytes;
    if (ftruncate(block.file, (off_t)size) == 0) {
        block.handed = mmap(NULL, size, PROT_NONE, MAP_SHARED, block.file, 0);
        block.real = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, block.file, 0);
    }
    if (block.handed == MAP_FAILED || block.real == MAP_FAILED) {
        if (block.handed != MAP_FAILED) munmap(block.handed, size);
        if (block.real != MAP_FAILED) munmap(block.real, size);
        close(block.file);
        return base_fail_alloc(error, bytes);
    }
    *out = block;
    return SIFR_OK;
}

void hidden_block_give(hidden_block *block) {
    munmap(block->handed, (size_t)block->bytes);
    munmap(block->real, (size_t)block->bytes);
    close(block->file);
}
