#include "train/send/curl_library.h"

#include <dlfcn.h>
#include <string.h>

/* Never unloaded: libraries below it (OpenSSL) leave functions that run when the process ends. */
static void *open_any(void) {
    static const char *const files[] = {"libcurl.so.4", "libcurl-gnutls.so.4", "libcurl.so"};
    void *library = NULL;
    for (size_t i = 0; !library && i < sizeof files / sizeof *files; i++)
        library = dlopen(files[i], RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
    return library;
}

sifr_status train_curl_open(train_curl *out, sifr_error *error) {
    static const char *const names[] = {
        "curl_global_init",  "curl_easy_init",     "curl_easy_setopt",  "curl_easy_perform",
        "curl_easy_getinfo", "curl_easy_reset",    "curl_easy_cleanup", "curl_easy_strerror",
        "curl_slist_append", "curl_slist_free_all"};
    enum { NAMES = sizeof names / sizeof *names };
    void *found[NAMES], *library = open_any();
    _Static_assert(sizeof found == sizeof *out, "a function for each name");
    if (!library)
        return base_fail(error, SIFR_FAILED,
                         "libcurl is not on this machine (libcurl.so.4; Debian's package is "
                         "libcurl4)");
    for (int i = 0; i < NAMES; i++) {
        found[i] = dlsym(library, names[i]);
        if (!found[i])
            return base_fail(error, SIFR_FAILED, "libcurl has no %s; install a newer one",
                             names[i]);
    }
    memcpy(out, found, sizeof found);
    if (out->global_init(3) != 0) /* CURL_GLOBAL_ALL; a second call only counts */
        return base_fail(error, SIFR_FAILED, "libcurl does not start");
    return SIFR_OK;
}
