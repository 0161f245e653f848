/* Requests to one server of HTTP, one at a time, through libcurl. What the server answers is taken
 * up to a limit; redirections are not followed, so that no password goes to another server. */
#ifndef TRAIN_HTTP_H
#define TRAIN_HTTP_H

#include <stdbool.h>
#include <stddef.h>

#include "base/errors.h"

typedef struct train_http_login { /* what is NULL is not used; texts are the caller's */
    const char *user, *password;  /* as basic authentication; else ... */
    const char *token;            /* ... as a bearer's */
    const char *certificates;     /* a file: who is trusted */
    const char *own_certificate;  /* a file: who the client is */
    bool insecure;                /* the server's certificate is not checked */
} train_http_login;

typedef struct train_http train_http;

/* `base`: http:// or https://, with a host, and perhaps a port and a path, without a final slash;
 * it may have "user:password@". SIFR_USAGE where it is none; SIFR_FAILED without libcurl. */
sifr_status train_http_open(const char *base, const train_http_login *login, train_http **out,
                            sifr_error *error) SIFR_MUST_CHECK;
void train_http_close(train_http *http); /* harmless on NULL */

/* The server's address as it may be shown and stored: without user and password. */
const char *train_http_shown(const train_http *http);

/* Whether requests carry a user and a password, or a token. */
bool train_http_has_login(const train_http *http);

typedef struct train_http_reply {
    int status;       /* 200 */
    const char *text; /* with a NUL; until the next request */
    size_t size;
} train_http_reply;

/* `path` begins with a slash; `json`: what is posted, NULL: GET. SIFR_FAILED where no whole answer
 * comes; any status is an answer. */
sifr_status train_http_call(train_http *http, const char *path, const char *json,
                            train_http_reply *out, sifr_error *error) SIFR_MUST_CHECK;

/* PUT of a file of `bytes` bytes, read from the descriptor's beginning. */
sifr_status train_http_put(train_http *http, const char *path, int file, size_t bytes,
                           train_http_reply *out, sifr_error *error) SIFR_MUST_CHECK;

/* From any thread: requests, also the one under way, end at this time of base_seconds; an upload
 * alone goes on while it moves. */
void train_http_until(train_http *http, double seconds);

/* From any thread: what is under way ends, also an upload, and nothing is begun any more. */
void train_http_stop(train_http *http);

/* Writes text that a server sent, in one line that can be shown: no control characters, and in
 * place of what the login has, "***". */
void train_http_tame(const train_http *http, const char *text, char *out, size_t size);

/* Appends `text` to out[size], each byte that a path's part cannot have as %XX; false: no room. */
bool train_http_escape(const char *text, bool slashes, char *out, size_t size);

#endif
