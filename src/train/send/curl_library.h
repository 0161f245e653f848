/* libcurl, opened when it is needed: neither a build nor a program without sinks needs it. Its
 * numbers are those of its stable ABI (libcurl.so.4, since 2006). */
#ifndef TRAIN_CURL_LIBRARY_H
#define TRAIN_CURL_LIBRARY_H

#include <stddef.h>

#include "base/errors.h"

typedef enum train_curl_option {
    TRAIN_CURL_WRITE_DATA = 10001,
    TRAIN_CURL_URL = 10002,
    TRAIN_CURL_READ_DATA = 10009,
    TRAIN_CURL_ERROR_TEXT = 10010,
    TRAIN_CURL_POST_FIELDS = 10015,
    TRAIN_CURL_USER_AGENT = 10018,
    TRAIN_CURL_HEADERS = 10023,
    TRAIN_CURL_CLIENT_CERTIFICATE = 10025,
    TRAIN_CURL_METHOD = 10036,
    TRAIN_CURL_PROGRESS_DATA = 10057,
    TRAIN_CURL_CERTIFICATES = 10065,
    TRAIN_CURL_USER = 10173,
    TRAIN_CURL_PASSWORD = 10174,
    TRAIN_CURL_LOW_SPEED_LIMIT = 19,
    TRAIN_CURL_LOW_SPEED_SECONDS = 20,
    TRAIN_CURL_NO_PROGRESS = 43,
    TRAIN_CURL_UPLOAD = 46,
    TRAIN_CURL_GET = 80,
    TRAIN_CURL_CHECK_PEER = 64,
    TRAIN_CURL_CHECK_HOST = 81,
    TRAIN_CURL_NO_SIGNAL = 99,
    TRAIN_CURL_TIMEOUT_MS = 155,
    TRAIN_CURL_CONNECT_TIMEOUT_MS = 156,
    TRAIN_CURL_PROTOCOLS = 181,
    TRAIN_CURL_WRITE = 20011,
    TRAIN_CURL_READ = 20012,
    TRAIN_CURL_PROGRESS = 20219,
    TRAIN_CURL_UPLOAD_BYTES = 30115,
    TRAIN_CURL_POST_BYTES = 30120
} train_curl_option;
enum {
    TRAIN_CURL_STATUS = 0x200002, /* CURLINFO_RESPONSE_CODE, a long */
    TRAIN_CURL_WRITE_FAILED = 23, /* CURLE_WRITE_ERROR */
    TRAIN_CURL_TIMED_OUT = 28,
    TRAIN_CURL_STOPPED = 42, /* CURLE_ABORTED_BY_CALLBACK */
    TRAIN_CURL_HTTP_AND_HTTPS = 3,
    TRAIN_CURL_ERROR_BYTES = 256
};

typedef struct train_curl {
    int (*global_init)(long flags);
    void *(*easy_init)(void);
    int (*easy_setopt)(void *handle, int option, ...);
    int (*easy_perform)(void *handle);
    int (*easy_getinfo)(void *handle, int what, ...);
    void (*easy_reset)(void *handle);
    void (*easy_cleanup)(void *handle);
    const char *(*easy_strerror)(int code);
    void *(*slist_append)(void *list, const char *text);
    void (*slist_free_all)(void *list);
    const char *(*version)(void);
} train_curl;

/* SIFR_FAILED where the machine has no libcurl. It stays in the process. */
sifr_status train_curl_open(train_curl *out, sifr_error *error) SIFR_MUST_CHECK;

/* Its version and that of its TLS, "libcurl/8.14.1 OpenSSL/3.5.1". SIFR_FAILED as above. */
sifr_status train_curl_version(char *out, size_t size, sifr_error *error) SIFR_MUST_CHECK;

#endif
