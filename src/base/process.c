#include "base/process.h"

#include <features.h>
#ifdef __GLIBC__
#include <malloc.h>
#endif

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

void base_process_trim(void) {
#ifdef __GLIBC__
    malloc_trim(0);
#endif
}
