#include "base/real_path.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"

/* Takes "", "." and ".." out of what stands behind the first `fixed` bytes, where nothing is that
 * could be a link. */
static void tidy(char *path, size_t fixed) {
    char *to = path + fixed;
    for (const char *from = to; *from;) {
        size_t length = strcspn(from, "/");
        bool last = !from[length];
        if (length == 2 && memcmp(from, "..", 2) == 0) {
            while (to > path + 1 && to[-1] == '/') to--;
            while (to > path + 1 && to[-1] != '/') to--;
        } else if (length && !(length == 1 && *from == '.')) {
            memmove(to, from, length);
            to += length;
            *to++ = '/';
        }
        if (last) break;
        from += length + 1;
    }
    while (to > path + 1 && to[-1] == '/') to--;
    *to = '\0';
}

char *base_real_path(const char *path) {
    char above[BASE_PATH_LENGTH], *real, *whole = NULL;
    size_t length = strlen(path), kept;
    if (!*path) path = ".", length = 1;
    while (length > 1 && path[length - 1] == '/') length--;
    if (length >= sizeof above) return NULL;
    snprintf(above, sizeof above, "%.*s", (int)length, path);
    kept = length; /* of the path, which is `above` */
    while (!(real = realpath(above, NULL)) && kept > 0) {
        while (kept > 0 && path[kept - 1] == '/') kept--;
        while (kept > 0 && path[kept - 1] != '/') kept--;
        snprintf(above, sizeof above, "%.*s", kept ? (int)kept : 1, kept ? path : ".");
    }
    if (!real) return NULL;
    bool root = strcmp(real, "/") == 0;
    if (asprintf(&whole, "%s/%.*s", root ? "" : real, (int)(length - kept), path + kept) < 0)
        whole = NULL;
    else
        tidy(whole, root ? 1 : strlen(real) + 1);
    free(real);
    return whole;
}
