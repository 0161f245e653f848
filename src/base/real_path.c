#include "base/real_path.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"

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
    if (asprintf(&whole, "%s%s%.*s", strcmp(real, "/") == 0 ? "" : real,
                 kept < length || strcmp(real, "/") == 0 ? "/" : "", (int)(length - kept),
                 path + kept) < 0)
        whole = NULL;
    free(real);
    return whole;
}
