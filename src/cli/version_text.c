#include "cli/version_text.h"

#include <gnu/libc-version.h>
#include <jansson.h>
#include <stdio.h>
#include <string.h>
#include <sys/utsname.h>

#include "base/system.h"
#include "base/text.h"
#include "cli/commit.h"
#include "cli/options.h"
#include "cli/system_facts.h"
#include "sifr/version.h"

/* The build writes SIFR_COMMIT into a header (cmake/commit.cmake), and defines what begins with
 * SIFR_BUILT (cmake/version.cmake). */

static void print_build(void) {
    printf("commit         %s\n", SIFR_COMMIT);
    printf("built          %s; glibc %d.%d\n", SIFR_BUILT, __GLIBC__, __GLIBC_MINOR__);
#if defined(SIFR_ASSERTS)
    printf("               with assertions\n");
#endif
    printf("kernels        %s\n", SIFR_BUILT_SETS);
}

static void print_parts(void) {
    json_t *parts = cli_built_parts();
    const char *name;
    json_t *part;
    printf("MPI            opened where ranks start; sifr doctor names it\n");
    json_object_foreach(parts, name, part) printf("%-14s %s\n", name, json_string_value(part));
    json_decref(parts);
}

static void print_libraries(void) {
    json_t *libraries = cli_library_versions();
    const char *name;
    json_t *version;
    printf("libraries      liburing %s", SIFR_BUILT_URING);
    json_object_foreach(libraries, name, version)
        printf(" %s %s", name, json_string_value(version));
    putchar('\n');
    json_decref(libraries);
}

static void print_machine(void) {
    struct utsname name;
    base_system system;
    json_t *sets = cli_instruction_sets();
    const char *set, *none = " none";
    json_t *there;
    char memory[32];
    base_system_read(&system);
    if (uname(&name) == 0)
        printf("runs on        %s %s, %s; glibc %s\n", name.sysname, name.release, name.machine,
               gnu_get_libc_version());
    printf("processor      %s: %d logical, with", system.cpu[0] ? system.cpu : "unknown",
           system.cpus);
    json_object_foreach(sets, set, there) if (json_is_true(there)) printf(" %s", set), none = "";
    printf("%s\n", none);
    printf("memory         %s\n", base_format_bytes(system.memory, memory));
    json_decref(sets);
}

static bool is_version(const char *word) {
    return strcmp(word, "--version") == 0 || strcmp(word, "-V") == 0;
}

bool cli_version_asked(int argc, char **argv, int *exit_code) {
    static const char more[] = "--verbose";
    const int first = argc > 1 && strcmp(argv[1], more) == 0 ? 2 : 1;
    bool verbose = false;
    if (first >= argc || !is_version(argv[first])) return false;
    for (int i = 1; i < argc; i++) {
        const bool known = strcmp(argv[i], more) == 0;
        verbose |= known;
        if (known || is_version(argv[i])) continue;
        *exit_code =
            cli_fail_with("", SIFR_USAGE, "--version takes --verbose alone, not `%s`", argv[i]);
        return true;
    }
    printf("sifr %s\n", sifr_version());
    if (verbose) {
        print_build();
        print_parts();
        print_libraries();
        print_machine();
    }
    *exit_code = SIFR_OK;
    return true;
}
