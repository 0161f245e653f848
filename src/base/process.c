#include "base/process.h"

#include <errno.h>
#include <features.h>
#include <sys/mman.h>
#include <unistd.h>
#ifdef __GLIBC__
#include <malloc.h>
#endif

#include "base/assert.h"
#include "base/lines.h"

/* The kernel computes shares page by page, so it is asked only if anything is shared. If it reports
 * no share, all that is mapped counts. */
static bool read_shared(uint64_t *out) {
    if (!base_read_kilobytes("/proc/self/status", "RssShmem", out)) return false;
    if (*out) base_read_kilobytes("/proc/self/smaps_rollup", "Pss_Shmem", out);
    return true;
}

bool base_process_read(base_process *out) {
    base_process read;
    if (!base_read_kilobytes("/proc/self/status", "RssAnon", &read.own)) return false;
    if (!read_shared(&read.shared)) return false;
    *out = read;
    return true;
}

uint64_t base_process_memory(void) {
    base_process process = {0};
    base_process_read(&process);
    return process.own + process.shared;
}

static sifr_status refuse_pages(int number, sifr_error *error) {
    return base_fail_errno(error, number, "the system does not say which pages are in memory");
}

/* A new page is not there before it is touched, and then it is. */
sifr_status base_process_tells_pages(sifr_error *error) {
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    unsigned char before = 0, after = 0;
    char *probe = mmap(NULL, page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (probe == MAP_FAILED) return refuse_pages(errno, error);
    int number = mincore(probe, page, &before) == 0 ? 0 : errno;
    *(volatile char *)probe = 1;
    if (!number && mincore(probe, page, &after) != 0) number = errno;
    munmap(probe, page);
    if (number) return refuse_pages(number, error);
    if (!(before & 1) && (after & 1)) return SIFR_OK;
    return base_fail(error, SIFR_FAILED,
                     "the system says of pages that nobody has touched that they are in memory, or "
                     "of others that they are not");
}

/* mincore, not /proc/self/pagemap: it needs no file, is quick on huge pages, and of a file in
 * memory counts what this process itself has not touched, too. */
sifr_status base_process_count_resident(const void *at, int64_t bytes, int64_t *resident,
                                        sifr_error *error) {
    enum { PAGES = 4096 };
    unsigned char there[PAGES];
    uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
    base_assert(bytes >= 0);
    uintptr_t begin = (uintptr_t)at, end = begin + (uintptr_t)bytes;
    uintptr_t now = begin - begin % page;
    while (now < end) {
        uintptr_t pages = (end - now + page - 1) / page;
        if (pages > PAGES) pages = PAGES;
        if (mincore((void *)now, pages * page, there) != 0) return refuse_pages(errno, error);
        for (uintptr_t i = 0; i < pages; i++, now += page) {
            uintptr_t first = now > begin ? now : begin;
            uintptr_t last = now + page < end ? now + page : end;
            if (there[i] & 1) *resident += (int64_t)(last - first);
        }
    }
    return SIFR_OK;
}

void base_process_trim(void) {
#ifdef __GLIBC__
    malloc_trim(0);
#endif
}
