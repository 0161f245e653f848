#include "support/refuse_calls.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#if defined(__x86_64__)
enum { MACHINE_KNOWN = true };
#define MACHINE AUDIT_ARCH_X86_64
#elif defined(__aarch64__)
enum { MACHINE_KNOWN = true };
#define MACHINE AUDIT_ARCH_AARCH64
#else
enum { MACHINE_KNOWN = false };
#define MACHINE 0
#endif

#define LOAD(field) BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, field))
#define EQUALS(value, then, otherwise) BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, value, then, otherwise)
#define ANSWER(value) BPF_STMT(BPF_RET | BPF_K, value)

bool refuse_calls(refused_calls calls) {
    const unsigned rings = calls.rings ? SECCOMP_RET_ERRNO | (unsigned)calls.rings : 0;
    const unsigned allow = SECCOMP_RET_ALLOW;
    struct sock_filter filter[] = {
        LOAD(arch),
        EQUALS(MACHINE, 1, 0),
        ANSWER(allow),
        LOAD(nr),
        EQUALS(__NR_io_uring_setup, 0, 1),
        ANSWER(rings ? rings : allow),
        EQUALS(__NR_openat, 1, 0),
        ANSWER(allow),
        LOAD(args[2]), /* the lower half, as both machines are little-endian */
        BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, O_DIRECT, 0, 1),
        ANSWER(calls.direct ? SECCOMP_RET_ERRNO | EINVAL : allow),
        ANSWER(allow),
    };
    struct sock_fprog program = {.len = sizeof filter / sizeof *filter, .filter = filter};
    return MACHINE_KNOWN && prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
           prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}
