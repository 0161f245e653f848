#include "train/send/http.h"

#include <ctype.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/heap.h"
#include "sifr/version.h"
#include "train/send/curl_library.h"

enum {
    REPLY_BYTES = 1 << 20,
    ADDRESS_BYTES = 2048,
    CONNECT_MS = 10000,
    ANSWER_MS = 30000,
    STALL_SECONDS = 60
};

struct train_http {
    train_curl curl;
    void *easy, *headers;
    char base[ADDRESS_BYTES]; /* without user and password */
    /* User, password, token, the token's header, and what Basic makes of the first two, without
     * its "="; NULL: none. */
    char *secrets[5];
    train_http_login login; /* its texts are copies */
    char *files[2];
    _Atomic double until; /* 0: no end */
    atomic_bool stops;
    bool uploads;
    char *reply;
    size_t used, capacity;
    int file; /* that is being sent */
    char wrong[TRAIN_CURL_ERROR_BYTES];
};

/* --- the address --- */

static int hex(char c) {
    return c >= '0' && c <= '9' ? c - '0' : isxdigit((unsigned char)c) ? tolower(c) - 'a' + 10 : -1;
}

/* A copy of `size` bytes with %XX as the bytes that they mean. */
static sifr_status unescape(const char *text, size_t size, char **out, sifr_error *error) {
    BASE_TRY(base_copy_text(text, size, out, error));
    char *to = *out;
    for (const char *at = *out; *at; at++) {
        int high = *at == '%' ? hex(at[1]) : -1, low = high >= 0 ? hex(at[2]) : -1;
        *to++ = low >= 0 ? (char)(16 * high + low) : *at;
        if (low >= 0) at += 2;
    }
    *to = '\0';
    return SIFR_OK;
}

/* "user:password@" in front of the host, as Python's requests takes it; it wins over the login. */
static sifr_status take_user(train_http *h, const char *host, size_t size, sifr_error *error) {
    const char *colon = memchr(host, ':', size);
    size_t user = colon ? (size_t)(colon - host) : size;
    for (int i = 0; i < 3; i++) {
        free(h->secrets[i]);
        h->secrets[i] = NULL;
    }
    BASE_TRY(unescape(host, user, &h->secrets[0], error));
    return unescape(colon ? colon + 1 : "", colon ? size - user - 1 : 0, &h->secrets[1], error);
}

static sifr_status take_address(train_http *h, const char *base, sifr_error *error) {
    size_t scheme = strncasecmp(base, "https://", 8) == 0  ? 8
                    : strncasecmp(base, "http://", 7) == 0 ? 7
                                                           : 0;
    const char *host = base + scheme, *end = host + strcspn(host, "/?#"), *at = end;
    while (at > host && at[-1] != '@') at--;
    size_t rest = strlen(at);
    while (rest && at[rest - 1] == '/') rest--;
    bool plain = scheme && at < end && rest && !strpbrk(at, "?# \"\\");
    for (const char *c = base; plain && *c; c++) plain = (unsigned char)*c > ' ';
    /* One behind the first '/' belongs to a password with a '/', which is %2F in an address. */
    plain = plain && !strchr(end, '@');
    if (!plain || scheme + rest >= ADDRESS_BYTES)
        return base_fail(error, SIFR_USAGE,
                         "is no address of a server; give one such as http://127.0.0.1:5000 or "
                         "https://mlflow.example.org (supported: http, https)");
    snprintf(h->base, sizeof h->base, "%.*s%.*s", (int)scheme, base, (int)rest, at);
    return at > host ? take_user(h, host, (size_t)(at - 1 - host), error) : SIFR_OK;
}

/* --- opening --- */

static sifr_status copy(const char *text, char **out, sifr_error *error) {
    return text ? base_copy_text(text, strlen(text), out, error) : SIFR_OK;
}

static sifr_status copy_login(train_http *h, const train_http_login *login, sifr_error *error) {
    bool basic = login->user && login->password;
    BASE_TRY(copy(basic ? login->user : NULL, &h->secrets[0], error));
    BASE_TRY(copy(basic ? login->password : NULL, &h->secrets[1], error));
    BASE_TRY(copy(basic ? NULL : login->token, &h->secrets[2], error));
    BASE_TRY(copy(login->certificates, &h->files[0], error));
    BASE_TRY(copy(login->own_certificate, &h->files[1], error));
    h->login.insecure = login->insecure;
    return SIFR_OK;
}

static sifr_status add_header(train_http *h, const char *text, sifr_error *error) {
    void *list = h->curl.slist_append(h->headers, text);
    if (!list) return base_fail_alloc(error, strlen(text));
    h->headers = list;
    return SIFR_OK;
}

static sifr_status make_headers(train_http *h, sifr_error *error) {
    BASE_TRY(add_header(h, "Content-Type: application/json", error));
    BASE_TRY(add_header(h, "Expect:", error)); /* no round trip ahead of a body */
    if (!h->secrets[2]) return SIFR_OK;
    if (strpbrk(h->secrets[2], "\r\n"))
        return base_fail(error, SIFR_USAGE,
                         "the token has a line feed; give it as the server's page shows it");
    size_t size = strlen(h->secrets[2]) + sizeof "Authorization: Bearer ";
    BASE_TRY(base_alloc(size, 1, &h->secrets[3], error));
    snprintf(h->secrets[3], size, "Authorization: Bearer %s", h->secrets[2]);
    return add_header(h, h->secrets[3], error);
}

/* "user:password" in base64, as a server that echoes a request's header shows it. */
static sifr_status encode_login(train_http *h, sifr_error *error) {
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    const char *parts[] = {h->secrets[0], ":", h->secrets[1] ? h->secrets[1] : ""};
    unsigned held = 0;
    int bits = 0;
    if (!h->secrets[0]) return SIFR_OK;
    size_t size = 2 * (strlen(parts[0]) + strlen(parts[2])) + 8;
    BASE_TRY(base_alloc(size, 1, &h->secrets[4], error));
    char *to = h->secrets[4];
    for (int i = 0; i < 3; i++)
        for (const char *at = parts[i]; *at; at++) {
            held = (held << 8 | (unsigned char)*at) & 0xffff;
            for (bits += 8; bits >= 6; bits -= 6) *to++ = digits[held >> (bits - 6) & 63];
        }
    if (bits) *to++ = digits[held << (6 - bits) & 63];
    return SIFR_OK;
}

static sifr_status open_all(train_http *h, const char *base, const train_http_login *login,
                            sifr_error *error) {
    BASE_TRY(copy_login(h, login, error));
    BASE_TRY(take_address(h, base, error));
    BASE_TRY(encode_login(h, error));
    BASE_TRY(base_alloc(REPLY_BYTES + 1, 1, &h->reply, error));
    BASE_TRY(train_curl_open(&h->curl, error));
    BASE_TRY(make_headers(h, error));
    h->easy = h->curl.easy_init();
    return h->easy ? SIFR_OK : base_fail_alloc(error, 4096);
}

sifr_status train_http_open(const char *base, const train_http_login *login, train_http **out,
                            sifr_error *error) {
    train_http *h;
    BASE_TRY(base_alloc(1, sizeof *h, &h, error));
    sifr_status status = open_all(h, base, login, error);
    if (status == SIFR_OK)
        *out = h;
    else
        train_http_close(h);
    return status;
}

/* What a core file or a later block of the heap should not show. */
static void forget(char *secret) {
    if (secret) explicit_bzero(secret, strlen(secret));
    free(secret);
}

void train_http_close(train_http *h) {
    if (!h) return;
    if (h->easy) h->curl.easy_cleanup(h->easy);
    if (h->headers) h->curl.slist_free_all(h->headers);
    for (int i = 0; i < 5; i++) forget(h->secrets[i]);
    for (int i = 0; i < 2; i++) free(h->files[i]);
    free(h->reply);
    free(h);
}

const char *train_http_shown(const train_http *h) {
    return h->base;
}

bool train_http_has_login(const train_http *h) {
    return h->secrets[0] || h->secrets[2];
}

void train_http_until(train_http *h, double seconds) {
    atomic_store(&h->until, seconds);
}

void train_http_stop(train_http *h) {
    atomic_store(&h->stops, true);
}

/* --- requests --- */

static size_t take_reply(char *bytes, size_t size, size_t count, void *user) {
    train_http *h = user;
    size_t whole = size * count;
    if (whole > REPLY_BYTES - h->used) return 0;
    memcpy(h->reply + h->used, bytes, whole);
    h->used += whole;
    return whole;
}

static size_t give_file(char *to, size_t size, size_t count, void *user) {
    const train_http *h = user;
    ssize_t got = read(h->file, to, size * count);
    return got >= 0 ? (size_t)got : 0x10000000; /* CURL_READFUNC_ABORT */
}

static int look_at_time(void *user, int64_t a, int64_t b, int64_t c, int64_t d) {
    train_http *h = user;
    double until = atomic_load(&h->until);
    (void)a, (void)b, (void)c, (void)d;
    return atomic_load(&h->stops) || (until > 0 && base_seconds() > until && !h->uploads);
}

/* What all requests have. An easy handle keeps the connection from one to the next. */
static void prepare(train_http *h, const char *url) {
    int (*set)(void *, int, ...) = h->curl.easy_setopt;
    h->curl.easy_reset(h->easy);
    h->used = 0;
    h->wrong[0] = '\0';
    set(h->easy, TRAIN_CURL_URL, url);
    set(h->easy, TRAIN_CURL_ERROR_TEXT, h->wrong);
    set(h->easy, TRAIN_CURL_HEADERS, h->headers);
    set(h->easy, TRAIN_CURL_USER_AGENT, "sifr/" SIFR_VERSION);
    set(h->easy, TRAIN_CURL_WRITE, take_reply);
    set(h->easy, TRAIN_CURL_WRITE_DATA, h);
    set(h->easy, TRAIN_CURL_PROGRESS, look_at_time);
    set(h->easy, TRAIN_CURL_PROGRESS_DATA, h);
    set(h->easy, TRAIN_CURL_NO_PROGRESS, 0L);
    set(h->easy, TRAIN_CURL_NO_SIGNAL, 1L); /* signals are the program's */
    set(h->easy, TRAIN_CURL_PROTOCOLS, (long)TRAIN_CURL_HTTP_AND_HTTPS);
    set(h->easy, TRAIN_CURL_CONNECT_TIMEOUT_MS, (long)CONNECT_MS);
    if (h->secrets[0]) set(h->easy, TRAIN_CURL_USER, h->secrets[0]);
    if (h->secrets[1]) set(h->easy, TRAIN_CURL_PASSWORD, h->secrets[1]);
    if (h->files[0]) set(h->easy, TRAIN_CURL_CERTIFICATES, h->files[0]);
    if (h->files[1]) set(h->easy, TRAIN_CURL_CLIENT_CERTIFICATE, h->files[1]);
    if (h->login.insecure) set(h->easy, TRAIN_CURL_CHECK_PEER, 0L);
    if (h->login.insecure) set(h->easy, TRAIN_CURL_CHECK_HOST, 0L);
}

static sifr_status fail_stopped(const train_http *h, sifr_error *error) {
    return base_fail(error, SIFR_FAILED, "%s: stopped before its answer", h->base);
}

static sifr_status perform(train_http *h, train_http_reply *out, sifr_error *error) {
    long status = 0;
    int code = h->curl.easy_perform(h->easy);
    h->uploads = false;
    if (code == TRAIN_CURL_WRITE_FAILED)
        return base_fail(error, SIFR_FAILED, "%s: the answer has more than %d bytes", h->base,
                         REPLY_BYTES);
    if (code == TRAIN_CURL_STOPPED && atomic_load(&h->stops)) return fail_stopped(h, error);
    if (code == TRAIN_CURL_STOPPED || code == TRAIN_CURL_TIMED_OUT)
        return base_fail(error, SIFR_FAILED, "%s: no answer in time", h->base);
    if (code != 0) {
        char why[TRAIN_CURL_ERROR_BYTES];
        train_http_tame(h, h->wrong[0] ? h->wrong : h->curl.easy_strerror(code), why, sizeof why);
        return base_fail(error, SIFR_FAILED, "%s: %s", h->base, why);
    }
    h->curl.easy_getinfo(h->easy, TRAIN_CURL_STATUS, &status);
    h->reply[h->used] = '\0';
    *out = (train_http_reply){(int)status, h->reply, h->used};
    return SIFR_OK;
}

static sifr_status address(const train_http *h, const char *path, char url[2 * ADDRESS_BYTES],
                           sifr_error *error) {
    int used = snprintf(url, 2 * ADDRESS_BYTES, "%s%s", h->base, path);
    return used < 2 * ADDRESS_BYTES ? SIFR_OK
                                    : base_fail(error, SIFR_FAILED, "%s: path too long", h->base);
}

/* Also after its last time nothing is begun. */
static sifr_status check_time(const train_http *h, sifr_error *error) {
    double until = atomic_load(&h->until);
    if (atomic_load(&h->stops)) return fail_stopped(h, error);
    if (until <= 0 || base_seconds() < until) return SIFR_OK;
    return base_fail(error, SIFR_FAILED, "%s: no answer in time", h->base);
}

sifr_status train_http_call(train_http *h, const char *path, const char *json,
                            train_http_reply *out, sifr_error *error) {
    char url[2 * ADDRESS_BYTES];
    BASE_TRY(check_time(h, error));
    BASE_TRY(address(h, path, url, error));
    prepare(h, url);
    h->curl.easy_setopt(h->easy, TRAIN_CURL_TIMEOUT_MS, (long)ANSWER_MS);
    if (json) {
        h->curl.easy_setopt(h->easy, TRAIN_CURL_POST_FIELDS, json);
        h->curl.easy_setopt(h->easy, TRAIN_CURL_POST_BYTES, (int64_t)strlen(json));
    } else {
        h->curl.easy_setopt(h->easy, TRAIN_CURL_GET, 1L);
    }
    return perform(h, out, error);
}

sifr_status train_http_put(train_http *h, const char *path, int file, size_t bytes,
                           train_http_reply *out, sifr_error *error) {
    char url[2 * ADDRESS_BYTES];
    if (atomic_load(&h->stops)) return fail_stopped(h, error);
    BASE_TRY(address(h, path, url, error));
    if (lseek(file, 0, SEEK_SET) != 0) return base_fail(error, SIFR_FAILED, "cannot read the file");
    prepare(h, url);
    h->file = file;
    h->uploads = true;
    h->curl.easy_setopt(h->easy, TRAIN_CURL_UPLOAD, 1L);
    h->curl.easy_setopt(h->easy, TRAIN_CURL_READ, give_file);
    h->curl.easy_setopt(h->easy, TRAIN_CURL_READ_DATA, h);
    h->curl.easy_setopt(h->easy, TRAIN_CURL_UPLOAD_BYTES, (int64_t)bytes);
    h->curl.easy_setopt(h->easy, TRAIN_CURL_LOW_SPEED_LIMIT, 1L);
    h->curl.easy_setopt(h->easy, TRAIN_CURL_LOW_SPEED_SECONDS, (long)STALL_SECONDS);
    sifr_status status = perform(h, out, error);
    /* What comes behind it has its time from here on. */
    if (atomic_load(&h->until) > 0) train_http_until(h, base_seconds() + 1e-3 * ANSWER_MS);
    return status;
}

/* --- texts --- */

static bool is_word(const char *text, const char *at, size_t length) {
    return (at == text || !isalnum((unsigned char)at[-1])) && !isalnum((unsigned char)at[length]);
}

/* A short one as a word alone, or it would hide parts of words. `text` has `size` bytes. */
static void hide(char *text, size_t size, const char *secret) {
    size_t length = secret ? strlen(secret) : 0;
    for (char *at = text; length && (at = strstr(at, secret)) != NULL;) {
        if (length < 4 && !is_word(text, at, length)) {
            at++;
            continue;
        }
        size_t room = size - (size_t)(at - text), rest = strlen(at + length) + 1;
        if (room < 4) {
            *at = '\0';
            return;
        }
        memmove(at + 3, at + length, rest < room - 3 ? rest : room - 3);
        memset(at, '*', 3);
        at += 3;
        text[size - 1] = '\0';
    }
}

/* Where a text was cut within the secret, its end is the secret's begin. */
static void hide_begin(char *text, const char *secret) {
    size_t size = strlen(text), length = secret ? strlen(secret) : 0;
    for (size_t cut = length > size ? size : length; cut >= 4; cut--) {
        if (memcmp(text + size - cut, secret, cut) != 0) continue;
        snprintf(text + size - cut, 4, "***");
        return;
    }
}

void train_http_tame(const train_http *h, const char *text, char *out, size_t size) {
    char whole[4096];
    size_t used = 0;
    snprintf(whole, sizeof whole, "%s", text);
    for (int i = 1; i < 5; i++) hide(whole, sizeof whole, h->secrets[i]);
    for (int i = 1; i < 5; i++) hide_begin(whole, h->secrets[i]);
    for (const char *at = whole; *at && used + 1 < size; at++) {
        unsigned char c = (unsigned char)*at;
        bool shown = c >= ' ' && c < 127; /* a cut character, or one that turns lines, is none */
        out[used++] = shown ? (char)c : c < ' ' ? ' ' : '?';
    }
    out[used] = '\0';
}

bool train_http_escape(const char *text, bool slashes, char *out, size_t size) {
    size_t used = strlen(out);
    for (; *text; text++) {
        unsigned char c = (unsigned char)*text;
        bool plain = (c < 128 && isalnum(c)) || strchr("-._~", c) || (slashes && c == '/');
        if (used + 4 > size) return false;
        used += (size_t)snprintf(out + used, 4, plain ? "%c" : "%%%02X", c);
    }
    return true;
}
