#include "api/api_context.h"

#include <stdlib.h>
#include <string.h>

#include "base/errors.h"
#include "base/heap.h"
#include "base/inside.h"

/* That of a struct of pointers is a multiple of theirs: another one would end within a member. */
static bool is_size(size_t given) {
    return given >= sizeof given && given <= 65536 && given % sizeof(void *) == 0;
}

static sifr_status check_size(const char *name, size_t given, sifr_error *error) {
    if (is_size(given)) return SIFR_OK;
    return base_fail(error, SIFR_USAGE, "%s.size: %zu is no size; give sizeof(%s)", name, given,
                     name);
}

sifr_status api_take_options(const char *name, const void *options, size_t size, void *out,
                             sifr_error *error) {
    size_t given = size;
    memset(out, 0, size);
    if (options) memcpy(&given, options, sizeof given);
    BASE_TRY(check_size(name, given, error));
    for (size_t i = size; options && i < given; i++)
        if (((const unsigned char *)options)[i])
            return base_fail(error, SIFR_USAGE,
                             "%s: an option of a newer sifr is set, which this one does not know; "
                             "give 0 there, or use that sifr's library",
                             name);
    if (options) memcpy(out, options, given < size ? given : size);
    memcpy(out, &size, sizeof size);
    return SIFR_OK;
}

sifr_status api_check_result(const char *name, const void *to, sifr_error *error) {
    size_t given;
    memcpy(&given, to, sizeof given);
    return check_size(name, given, error);
}

bool api_give_result(const void *from, size_t size, void *to) {
    size_t given;
    memcpy(&given, to, sizeof given);
    if (!is_size(given)) return false;
    memset(to, 0, given);
    memcpy(to, from, given < size ? given : size);
    memcpy(to, &given, sizeof given);
    return true;
}

sifr_status api_check_list(const char *name, const char *const *list, size_t count,
                           sifr_error *error) {
    if (count && !list) return base_fail(error, SIFR_USAGE, "%s: NULL; give one", name);
    for (size_t i = 0; i < count; i++)
        if (!list[i]) return base_fail(error, SIFR_USAGE, "%s[%zu]: NULL; give one", name, i);
    return SIFR_OK;
}

static void write_line(void *user, sifr_log_level level, const char *line) {
    sifr_context *context = user;
    pthread_mutex_lock(&context->lock);
    BASE_OUT(context->own.write(context->own.user, level, line));
    pthread_mutex_unlock(&context->lock);
}

/* Recursive, so that the caller's log may call the library with its context. */
static void init_lock(pthread_mutex_t *lock) {
    pthread_mutexattr_t attributes;
    pthread_mutexattr_init(&attributes);
    pthread_mutexattr_settype(&attributes, PTHREAD_MUTEX_RECURSIVE);
    pthread_mutex_init(lock, &attributes);
    pthread_mutexattr_destroy(&attributes);
}

sifr_status sifr_context_create(const sifr_context_options *options, sifr_context **out,
                                sifr_error *error) {
    BASE_ENTER(error, out);
    sifr_context_options known;
    sifr_context *context;
    BASE_TRY(api_take_options("sifr_context_options", options, sizeof known, &known, error));
    BASE_TRY(base_alloc(1, sizeof *context, &context, error));
    context->own = known.log;
    if (known.log.write) context->log = (sifr_log){.write = write_line, .user = context};
    init_lock(&context->lock);
    *out = context;
    return SIFR_OK;
}

void sifr_context_free(sifr_context *context) {
    BASE_ENTER_VOID(context);
    pthread_mutex_destroy(&context->lock);
    free(context);
}

void sifr_text_free(char *text) {
    BASE_ENTER_VOID(text);
    free(text);
}
