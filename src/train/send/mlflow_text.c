#include "train/send/mlflow_text.h"

#include <stdio.h>
#include <string.h>

/* A key is read as a path, too, which has to be its own shortest form. */
static bool is_odd_path(const char *key) {
    size_t size = strlen(key);
    if (!size || key[0] == '/' || key[size - 1] == '/' || strstr(key, "//")) return true;
    for (const char *part = key; part; part = strchr(part, '/')) {
        part += *part == '/';
        size_t length = strcspn(part, "/");
        if ((length == 1 && part[0] == '.') || (length == 2 && strncmp(part, "..", 2) == 0))
            return true;
    }
    return strncmp(key, "..", 2) == 0;
}

void train_mlflow_key(const char *key, char out[TRAIN_MLFLOW_KEY + 1]) {
    static const char allowed[] = "0123456789abcdefghijklmnopqrstuvwxyz"
                                  "ABCDEFGHIJKLMNOPQRSTUVWXYZ_-. /";
    size_t used = 0;
    for (; *key && used < TRAIN_MLFLOW_KEY; key++) out[used++] = strchr(allowed, *key) ? *key : '_';
    out[used] = '\0';
    if (!is_odd_path(out)) return;
    for (char *at = out; *at; at++)
        if (*at == '/' || (*at == '.' && at <= out + 1)) *at = '_';
    if (!*out) strcpy(out, "_");
}

void train_mlflow_cut(const char *text, size_t bytes, char *out) {
    static const char more[] = "…";
    size_t size = strlen(text);
    if (size > bytes) {
        size = bytes - (sizeof more - 1);
        while (size && ((unsigned char)text[size] & 0xc0) == 0x80) size--;
    }
    memcpy(out, text, size);
    strcpy(out + size, text[size] ? more : "");
}

bool train_mlflow_number(const json_t *value, char out[40]) {
    static const char *const words[] = {"NaN", "Infinity", "-Infinity"};
    const char *word = json_string_value(value);
    if (json_is_number(value)) return snprintf(out, 40, "%.17g", json_number_value(value)) > 0;
    for (size_t i = 0; word && i < sizeof words / sizeof *words; i++)
        if (strcmp(word, words[i]) == 0) return snprintf(out, 40, "\"%s\"", words[i]) > 0;
    return false;
}
