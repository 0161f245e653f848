#include "train/send/curl_library.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

static sifr_status not_there(const char *why, sifr_error *error) {
    if (!why || strstr(why, "No such file"))
        return base_fail(error, SIFR_FAILED,
                         "libcurl is not on this machine (libcurl.so.4; Debian's package is "
                         "libcurl4)");
    return base_fail(error, SIFR_FAILED,
                     "libcurl cannot be opened (%.400s); install it anew (Debian's package is "
                     "libcurl4)",
                     why);
}

/* Never unloaded: libraries below it (OpenSSL) leave functions that run when the process ends. */
static sifr_status open_any(void **library, sifr_error *error) {
    static const char *const files[] = {"libcurl.so.4", "libcurl-gnutls.so.4", "libcurl.so"};
    sifr_error first = {0};
    *library = NULL;
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        *library = dlopen(files[i], RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
        if (*library) return SIFR_OK;
        const char *why = dlerror();
        if (i == 0) base_set_error(&first, SIFR_FAILED, "%s", why ? why : "");
    }
    return not_there(first.message, error);
}

sifr_status train_curl_open(train_curl *out, sifr_error *error) {
    static const char *const names[] = {
        "curl_global_init",  "curl_easy_init",      "curl_easy_setopt",  "curl_easy_perform",
        "curl_easy_getinfo", "curl_easy_reset",     "curl_easy_cleanup", "curl_easy_strerror",
        "curl_slist_append", "curl_slist_free_all", "curl_version"};
    enum { NAMES = sizeof names / sizeof *names };
    void *found[NAMES], *library;
    _Static_assert(sizeof found == sizeof *out, "a function for each name");
    BASE_TRY(open_any(&library, error));
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

sifr_status train_curl_version(char *out, size_t size, sifr_error *error) {
    train_curl curl;
    BASE_TRY(train_curl_open(&curl, error));
    const char *text = curl.version(); /* "libcurl/8.14.1 OpenSSL/3.5.1 zlib/1.3.1 …" */
    size_t first = strcspn(text, " "),
           second = text[first] ? strcspn(text + first + 1, " ") + 1 : 0;
    snprintf(out, size, "%.*s", (int)(first + second), text);
    return SIFR_OK;
}
