/* Memory of the fake: blocks with two mappings, pinned host memory, handles for other processes,
 * and copies. */
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "support/cuda/fake_parts.h"

#if defined(__has_include) && __has_include(<sanitizer/asan_interface.h>)
#include <sanitizer/asan_interface.h>
#else
#define ASAN_POISON_MEMORY_REGION(address, bytes) ((void)(address), (void)(bytes))
#define ASAN_UNPOISON_MEMORY_REGION(address, bytes) ((void)(address), (void)(bytes))
#endif

enum { PAGE = 4096, ALIGNMENT = 256 };

static size_t round_up(size_t bytes, size_t unit) {
    return (bytes + unit - 1) / unit * unit;
}

static char *take_addresses(size_t bytes) {
    const int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
    char *buffer = mmap(NULL, bytes, PROT_NONE, flags, -1, 0);
    return buffer == MAP_FAILED ? NULL : buffer;
}

/* Addresses for a block as callers see it. Their lower half is neither a small number nor a small
 * negative one: fake_translate would take two int32_t of a kernel's arguments for an address if the
 * second one were the upper half of one (a struct has no padding: arguments.h). They come from a
 * range that stays reserved until the process ends. */
static char *take_seen_addresses(size_t bytes) {
    const size_t low = (size_t)1 << 31, whole = 2 * low, negative = (size_t)1 << 28;
    if ((size_t)(fake.seen_end - fake.seen_next) < bytes) {
        const size_t most = bytes > low - negative ? bytes : low - negative;
        char *range = take_addresses(whole + most);
        if (!range) return NULL;
        range += round_up((uintptr_t)range + low, whole) - low - (uintptr_t)range;
        fake.seen_next = range;
        fake.seen_end = range + most;
    }
    char *out = fake.seen_next;
    fake.seen_next += bytes;
    return out;
}

/* Maps the file into `buffer`, with a page without rights before and behind it. */
static char *map(char *buffer, int file, size_t bytes, int rights) {
    if (!buffer) return NULL;
    if (mmap(buffer + PAGE, bytes, rights, MAP_SHARED | MAP_FIXED, file, 0) == MAP_FAILED) {
        munmap(buffer, bytes + 2 * PAGE);
        return NULL;
    }
    return buffer;
}

static void unmap(char *mapping, size_t bytes) {
    if (mapping) munmap(mapping, bytes + 2 * PAGE);
}

/* Maps both ways, so that the block ends where the guard page begins, but for its alignment. */
static fake_block *map_block(int file, size_t bytes) {
    fake_block *block = fake_take(sizeof *block);
    const size_t whole = round_up(bytes, ALIGNMENT);
    block->map_bytes = round_up(bytes, PAGE);
    block->file = file;
    block->bytes = bytes;
    const size_t reserved = block->map_bytes + 2 * PAGE;
    block->seen_map = map(take_seen_addresses(reserved), file, block->map_bytes, PROT_NONE);
    block->real_map = map(take_addresses(reserved), file, block->map_bytes, PROT_READ | PROT_WRITE);
    void *page =
        mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, file, (off_t)block->map_bytes);
    block->opened = page == MAP_FAILED ? NULL : page;
    if (!block->seen_map || !block->real_map || !block->opened) {
        if (block->opened) munmap(block->opened, PAGE);
        unmap(block->seen_map, block->map_bytes);
        unmap(block->real_map, block->map_bytes);
        free(block);
        return NULL;
    }
    block->seen = block->seen_map + PAGE + block->map_bytes - whole;
    block->real = block->real_map + PAGE + block->map_bytes - whole;
    ASAN_POISON_MEMORY_REGION(block->real + bytes, whole - bytes);
    return block;
}

static void add_block(fake_block *block) {
    block->next = fake.blocks;
    block->device = fake_device();
    fake.blocks = block;
}

/* Its seen half stays mapped, so that nothing else gets the address, and any use of it is found. */
static void drop_real(fake_block *block) {
    ASAN_UNPOISON_MEMORY_REGION(block->real_map + PAGE, block->map_bytes);
    unmap(block->real_map, block->map_bytes);
    munmap(block->opened, PAGE);
    close(block->file);
    block->real = block->real_map = NULL;
}

static char *pointer(cuda_address address) {
    return (char *)(uintptr_t)address;
}

/* The block that holds the bytes, one that was freed included. */
static fake_block *block_of(const char *at, size_t bytes) {
    for (fake_block *b = fake.blocks; b; b = b->next)
        if (at >= b->seen && at <= b->seen + b->bytes && bytes <= (size_t)(b->seen + b->bytes - at))
            return b;
    return NULL;
}

static fake_block *block_at(cuda_address address, bool imported) {
    fake_block *block = block_of(pointer(address), 0);
    return block && block->real && block->seen == pointer(address) && block->imported == imported
               ? block
               : NULL;
}

bool fake_is_pinned(const void *host, size_t bytes) {
    const char *at = host;
    for (const fake_host *h = fake.hosts; h; h = h->next)
        if (at >= h->data && at <= h->data + h->bytes && bytes <= (size_t)(h->data + h->bytes - at))
            return true;
    return false;
}

void *fake_resolve(cuda_address address, size_t bytes) {
    char *at = pointer(address);
    const fake_block *block = block_of(at, bytes);
    if (block) return block->real ? block->real + (at - block->seen) : NULL;
    return fake_is_pinned(at, bytes) ? at : NULL;
}

/* Numbers stay: none of a kernel's 64-bit numbers is as large as an address, and none of its 32-bit
 * numbers is the lower half of one (take_seen_addresses). Addresses of freed memory stay, too: a
 * kernel that uses one faults. */
void fake_translate(void *arguments, size_t bytes) {
    for (size_t i = 0; i + sizeof(uint64_t) <= bytes; i += sizeof(uint64_t)) {
        uint64_t word;
        memcpy(&word, (char *)arguments + i, sizeof word);
        const fake_block *block = block_of(pointer(word), 0);
        if (!block || !block->real) continue;
        const char *real = block->real + (pointer(word) - block->seen);
        memcpy((char *)arguments + i, &real, sizeof real);
    }
}

void *fake_driver_reach(cuda_address address, size_t bytes) {
    pthread_mutex_lock(&fake.lock);
    void *real = block_of(pointer(address), bytes) ? fake_resolve(address, bytes) : NULL;
    pthread_mutex_unlock(&fake.lock);
    return real;
}

static uint64_t used_bytes(int device) {
    uint64_t used = fake.held[device];
    for (const fake_block *b = fake.blocks; b; b = b->next)
        if (b->real && !b->imported && b->device == device) used += b->bytes;
    return used;
}

bool fake_hold(uint64_t bytes) {
    const uint64_t used = used_bytes(fake_device());
    if (used > fake.options.memory || bytes > fake.options.memory - used) return false;
    fake.held[fake_device()] += bytes;
    return true;
}

static cuda_result memory_info(size_t *free_bytes, size_t *total) {
    cuda_result result = fake_enter(true);
    if (result != CUDA_OK) return result;
    const uint64_t used = used_bytes(fake_device());
    *total = fake.options.memory;
    *free_bytes = used < fake.options.memory ? fake.options.memory - used : 0;
    return fake_leave(CUDA_OK);
}

enum { FILLED = 16 << 20 }; /* of larger blocks only the beginning, for speed: the rest is 0 */

static cuda_result take(cuda_address *address, size_t bytes) {
    cuda_result result = fake_enter(true);
    if (result != CUDA_OK) return result;
    if (bytes == 0) return fake_leave(CUDA_INVALID_VALUE);
    const uint64_t used = used_bytes(fake_device());
    if (used > fake.options.memory || bytes > fake.options.memory - used)
        return fake_leave(CUDA_OUT_OF_MEMORY);
    int file = memfd_create("fake GPU", MFD_CLOEXEC);
    fake_block *block = NULL;
    if (file >= 0 && ftruncate(file, (off_t)round_up(bytes, PAGE) + PAGE) == 0)
        block = map_block(file, bytes);
    if (!block) {
        if (file >= 0) close(file);
        return fake_leave(CUDA_OUT_OF_MEMORY);
    }
    memset(block->real, 0xff, bytes < FILLED ? bytes : FILLED);
    add_block(block);
    fake.counts.blocks++;
    fake.counts.bytes += (int64_t)bytes;
    *address = (cuda_address)(uintptr_t)block->seen;
    return fake_leave(CUDA_OK);
}

/* As a driver does, after all work of the device. */
static cuda_result give(cuda_address address) {
    cuda_result result = fake_enter(true);
    if (result != CUDA_OK) return result;
    if (!block_at(address, false)) return fake_leave(CUDA_INVALID_VALUE);
    fake_drain_all();
    fake_block *block = block_at(address, false);
    if (!block) return fake_leave(CUDA_INVALID_VALUE);
    fake.counts.early_frees += atomic_load(block->opened) > 0;
    drop_real(block);
    fake.counts.blocks--;
    fake.counts.bytes -= (int64_t)block->bytes;
    return fake_leave(CUDA_OK);
}

static void add_host(void *data, size_t bytes, bool registered) {
    fake_host *host = fake_take(sizeof *host);
    *host = (fake_host){fake.hosts, data, bytes, registered};
    fake.hosts = host;
    fake.counts.host_blocks++;
}

static cuda_result remove_host(void *data, bool registered) {
    cuda_result result = fake_enter(true);
    if (result != CUDA_OK) return result;
    for (fake_host **at = &fake.hosts; *at; at = &(*at)->next)
        if ((*at)->data == data && (*at)->registered == registered) {
            fake_host *host = *at;
            *at = host->next;
            free(host);
            if (!registered) free(data);
            fake.counts.host_blocks--;
            return fake_leave(CUDA_OK);
        }
    return fake_leave(CUDA_INVALID_VALUE);
}

static cuda_result take_host(void **host, size_t bytes, unsigned flags) {
    cuda_result result = fake_enter(true);
    if (result != CUDA_OK) return result;
    if (bytes == 0 || flags > 7) return fake_leave(CUDA_INVALID_VALUE);
    *host = aligned_alloc(PAGE, round_up(bytes, PAGE));
    if (!*host) return fake_leave(CUDA_OUT_OF_MEMORY);
    memset(*host, 0xff, bytes);
    add_host(*host, bytes, false);
    return fake_leave(CUDA_OK);
}

static cuda_result give_host(void *host) {
    return remove_host(host, false);
}

static cuda_result register_host(void *host, size_t bytes, unsigned flags) {
    cuda_result result = fake_enter(true);
    if (result != CUDA_OK) return result;
    if (!host || bytes == 0 || flags > 15 || fake_is_pinned(host, bytes))
        return fake_leave(CUDA_INVALID_VALUE);
    add_host(host, bytes, true);
    return fake_leave(CUDA_OK);
}

static cuda_result unregister_host(void *host) {
    return remove_host(host, true);
}

static cuda_result host_address(cuda_address *address, void *host, unsigned flags) {
    cuda_result result = fake_enter(true);
    if (result != CUDA_OK) return result;
    if (flags != 0 || !fake_is_pinned(host, 1)) return fake_leave(CUDA_INVALID_VALUE);
    *address = (cuda_address)(uintptr_t)host;
    return fake_leave(CUDA_OK);
}

/* `wait`: the host's end is not pinned, and its owner may free it after the call. */
static cuda_result copy(void *to, const void *from, size_t bytes, cuda_stream stream, bool wait) {
    if (!to || !from || !stream) return fake_leave(CUDA_INVALID_VALUE);
    const fake_work work = {.kind = FAKE_COPY, .to = to, .from = from, .bytes = bytes};
    fake.counts.copies++;
    fake.counts.pageable_copies += wait;
    if (wait && stream->capture) return fake_leave(CUDA_CAPTURE_UNSUPPORTED);
    fake_submit(stream, &work);
    fake_leave(CUDA_OK);
    if (wait) fake_drain(stream);
    return CUDA_OK;
}

static cuda_result copy_in(cuda_address to, const void *from, size_t bytes, cuda_stream stream) {
    cuda_result result = fake_enter(true);
    if (result != CUDA_OK) return result;
    return copy(fake_resolve(to, bytes), from, bytes, stream, !fake_is_pinned(from, bytes));
}

static cuda_result copy_out(void *to, cuda_address from, size_t bytes, cuda_stream stream) {
    cuda_result result = fake_enter(true);
    if (result != CUDA_OK) return result;
    return copy(to, fake_resolve(from, bytes), bytes, stream, !fake_is_pinned(to, bytes));
}

static cuda_result copy_inside(cuda_address to, cuda_address from, size_t bytes,
                               cuda_stream stream) {
    cuda_result result = fake_enter(true);
    if (result != CUDA_OK) return result;
    return copy(fake_resolve(to, bytes), fake_resolve(from, bytes), bytes, stream, false);
}

static cuda_result fill(cuda_address to, unsigned char byte, size_t bytes, cuda_stream stream) {
    cuda_result result = fake_enter(true);
    if (result != CUDA_OK) return result;
    const fake_work work = {
        .kind = FAKE_FILL, .to = fake_resolve(to, bytes), .bytes = bytes, .byte = byte};
    if (!work.to || !stream) return fake_leave(CUDA_INVALID_VALUE);
    fake_submit(stream, &work);
    return fake_leave(CUDA_OK);
}

/* Inside the 64 bytes of a handle. Others open the file through /proc. */
typedef struct memory_handle {
    char kind[16];
    int64_t process, file;
    uint64_t bytes;
} memory_handle;

static const char memory_kind[16] = "fake GPU memory";

static cuda_result get_handle(cuda_ipc_memory *out, cuda_address address) {
    cuda_result result = fake_enter(true);
    if (result != CUDA_OK) return result;
    const fake_block *block = block_at(address, false);
    if (!block) return fake_leave(CUDA_INVALID_VALUE);
    memory_handle handle = {.process = getpid(), .file = block->file, .bytes = block->bytes};
    memcpy(handle.kind, memory_kind, sizeof handle.kind);
    memset(out, 0, sizeof *out);
    memcpy(out, &handle, sizeof handle);
    return fake_leave(CUDA_OK);
}

static cuda_result open_handle(cuda_address *address, cuda_ipc_memory in, unsigned flags) {
    memory_handle handle;
    char path[64];
    cuda_result result = fake_enter(true);
    if (result != CUDA_OK) return result;
    memcpy(&handle, &in, sizeof handle);
    if (flags != CUDA_IPC_PEER_ACCESS || memcmp(handle.kind, memory_kind, sizeof memory_kind) != 0)
        return fake_leave(CUDA_INVALID_VALUE);
    if (handle.process == getpid()) return fake_leave(CUDA_INVALID_CONTEXT);
    snprintf(path, sizeof path, "/proc/%lld/fd/%lld", (long long)handle.process,
             (long long)handle.file);
    int file = open(path, O_RDWR | O_CLOEXEC);
    fake_block *block = file >= 0 ? map_block(file, handle.bytes) : NULL;
    if (!block) {
        if (file >= 0) close(file);
        return fake_leave(CUDA_INVALID_HANDLE);
    }
    block->imported = true;
    atomic_fetch_add(block->opened, 1);
    add_block(block);
    fake.counts.imports++;
    *address = (cuda_address)(uintptr_t)block->seen;
    return fake_leave(CUDA_OK);
}

static cuda_result close_handle(cuda_address address) {
    cuda_result result = fake_enter(true);
    if (result != CUDA_OK) return result;
    if (!block_at(address, true)) return fake_leave(CUDA_INVALID_VALUE);
    fake_drain_all();
    fake_block *block = block_at(address, true);
    if (!block) return fake_leave(CUDA_INVALID_VALUE);
    atomic_fetch_sub(block->opened, 1);
    drop_real(block);
    fake.counts.imports--;
    return fake_leave(CUDA_OK);
}

void fake_free_memory(void) {
    for (fake_block *b = fake.blocks, *next; b; b = next) {
        next = b->next;
        if (b->real) drop_real(b);
        unmap(b->seen_map, b->map_bytes);
        free(b);
    }
    for (fake_host *h = fake.hosts, *next; h; h = next) {
        next = h->next;
        if (!h->registered) free(h->data);
        free(h);
    }
    fake.blocks = NULL;
    fake.hosts = NULL;
}

void fake_fill_memory(cuda_driver *out) {
    out->cuMemGetInfo = memory_info;
    out->cuMemAlloc = take;
    out->cuMemFree = give;
    out->cuMemHostAlloc = take_host;
    out->cuMemFreeHost = give_host;
    out->cuMemHostRegister = register_host;
    out->cuMemHostUnregister = unregister_host;
    out->cuMemHostGetDevicePointer = host_address;
    out->cuMemcpyHtoDAsync = copy_in;
    out->cuMemcpyDtoHAsync = copy_out;
    out->cuMemcpyDtoDAsync = copy_inside;
    out->cuMemsetD8Async = fill;
    out->cuIpcGetMemHandle = get_handle;
    out->cuIpcOpenMemHandle = open_handle;
    out->cuIpcCloseMemHandle = close_handle;
}
