/* Where the config goes: not in the place of what the run reads. */
#include <fts.h>
#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/json.h"
#include "base/real_path.h"
#include "cli/quickstart/quickstart.h"

bool quickstart_is_utf8(const char *text) {
    json_t *string = json_string(text);
    json_decref(string);
    return string != NULL;
}

sifr_status quickstart_parent(const char *path, const char *option, char out[BASE_PATH_LENGTH],
                              sifr_error *error) {
    if (snprintf(out, BASE_PATH_LENGTH, "%s", path) >= BASE_PATH_LENGTH)
        return base_fail(error, SIFR_USAGE, "--%s %.80s…: the path is too long", option, path);
    char *slash = strrchr(out, '/');
    if (!slash)
        strcpy(out, ".");
    else if (slash == out)
        out[1] = '\0';
    else
        *slash = '\0';
    return SIFR_OK;
}

bool quickstart_is_within(const char *path, const char *other) {
    char *inner = base_real_path(path), *outer = base_real_path(other);
    size_t length = outer ? strlen(outer) : 0;
    bool within = inner && outer && strncmp(inner, outer, length) == 0 &&
                  (!inner[length] || inner[length] == '/');
    free(inner);
    free(outer);
    return within;
}

static bool is_same(const struct stat *a, const struct stat *b) {
    return a->st_dev == b->st_dev && a->st_ino == b->st_ino;
}

/* Whether the path is the file, or a folder that has it on any level. */
static bool has_file(const char *path, const struct stat *file) {
    char *const roots[] = {(char *)(uintptr_t)path, NULL};
    bool found = false;
    FTS *walk = fts_open(roots, FTS_LOGICAL | FTS_NOCHDIR, NULL);
    for (FTSENT *entry; walk && !found && (entry = fts_read(walk)) != NULL;)
        found = entry->fts_info == FTS_F && is_same(entry->fts_statp, file);
    if (walk) fts_close(walk);
    return found;
}

/* A path, or a pattern of paths. */
static bool names_file(const char *path, const struct stat *file) {
    struct stat about;
    glob_t paths;
    bool found = false;
    if (lstat(path, &about) == 0) return has_file(path, file);
    if (glob(path, 0, NULL, &paths) != 0) return false;
    for (size_t i = 0; !found && i < paths.gl_pathc; i++) found = has_file(paths.gl_pathv[i], file);
    globfree(&paths);
    return found;
}

/* A config that was made here is nobody's model or data, though it may lie beside them. */
static bool was_made_here(const char *path) {
    static const char made[] = "// " QUICKSTART_MADE;
    char begin[sizeof made] = "";
    FILE *file = fopen(path, "r");
    size_t size = file ? fread(begin, 1, sizeof made - 1, file) : 0;
    if (file) fclose(file);
    return size == sizeof made - 1 && memcmp(begin, made, size) == 0;
}

static sifr_status check_file(const quickstart_answers *a, const struct stat *about,
                              sifr_error *error) {
    if (S_ISDIR(about->st_mode))
        return base_fail(error, SIFR_USAGE, "--output %s: a folder; name a file, such as one in it",
                         a->output);
    if (was_made_here(a->output)) return SIFR_OK;
    if (a->model && has_file(a->model, about))
        return base_fail(error, SIFR_USAGE, "--output %s: a file of the model; give another",
                         a->output);
    if (a->machine && names_file(a->machine, about))
        return base_fail(error, SIFR_USAGE, "--output %s: the file of --machine; give another",
                         a->output);
    for (size_t i = 0; i < a->data.count; i++)
        if (names_file(a->data.items[i], about))
            return base_fail(error, SIFR_USAGE,
                             "--output %s: a file of the data to learn from; give another",
                             a->output);
    return SIFR_OK;
}

sifr_status quickstart_check_output(const quickstart_answers *a, sifr_error *error) {
    char folder[BASE_PATH_LENGTH];
    struct stat about;
    if (!a->output) return SIFR_OK;
    if (!a->output[0])
        return base_fail(error, SIFR_USAGE, "--output is empty: name the config to write");
    if (!a->run && !quickstart_is_utf8(a->output))
        return base_fail(error, SIFR_USAGE,
                         "--output %s: not UTF-8, as the name of the run's folder in a config has "
                         "to be; give another, or --run too",
                         a->output);
    BASE_TRY(quickstart_parent(a->output, "output", folder, error));
    if (!base_is_directory(folder) || access(folder, W_OK | X_OK) != 0)
        return base_fail(error, SIFR_USAGE,
                         "--output %s: %s is no folder that can be written%s; give another path",
                         a->output, folder, base_home_hint(a->output));
    return stat(a->output, &about) == 0 ? check_file(a, &about, error) : SIFR_OK;
}
