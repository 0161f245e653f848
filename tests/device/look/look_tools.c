/* Tools of the machine. Nothing of them is started but python3, which imports no torch. */
#include "device/look/look.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static bool is_in(const char *folder, int length, const char *name, char *path, size_t size) {
    int used = snprintf(path, size, "%.*s/%s", length, folder, name);
    return length > 0 && used > 0 && (size_t)used < size && access(path, X_OK) == 0;
}

static sifr_status find(const char *name, char *path, sifr_error *error) {
    static const char toolkit[] = "/usr/local/cuda/bin";
    const char *list = getenv("PATH");
    for (const char *at = list ? list : ""; *at;) {
        int length = (int)strcspn(at, ":");
        if (is_in(at, length, name, path, LOOK_TEXT)) return SIFR_OK;
        at += length + (at[length] == ':');
    }
    if (is_in(toolkit, sizeof toolkit - 1, name, path, LOOK_TEXT)) return SIFR_OK;
    return base_fail(error, SIFR_FAILED, "no %s", name);
}

sifr_status look_row_smi(look *l, char *figure, sifr_error *error) {
    (void)l;
    return find("nvidia-smi", figure, error);
}

sifr_status look_row_nvcc(look *l, char *figure, sifr_error *error) {
    (void)l;
    return find("nvcc", figure, error);
}

sifr_status look_row_sanitizer(look *l, char *figure, sifr_error *error) {
    (void)l;
    return find("compute-sanitizer", figure, error);
}

sifr_status look_row_ncu(look *l, char *figure, sifr_error *error) {
    (void)l;
    return find("ncu", figure, error);
}

sifr_status look_row_torch(look *l, char *figure, sifr_error *error) {
    static const char ask[] = "python3 -c 'import platform, importlib.metadata as m; "
                              "print(m.version(\"torch\"), platform.python_version())' 2>/dev/null";
    char torch[100] = "", python[100] = "", path[LOOK_TEXT];
    (void)l;
    BASE_TRY(find("python3", path, error));
    FILE *answer = popen(ask, "r");
    int words = answer ? fscanf(answer, "%99s %99s", torch, python) : 0;
    if (answer) pclose(answer);
    if (words != 2) return base_fail(error, SIFR_FAILED, "no torch");
    snprintf(figure, LOOK_TEXT, "torch %s, python %s, %.400s", torch, python, path);
    return SIFR_OK;
}
