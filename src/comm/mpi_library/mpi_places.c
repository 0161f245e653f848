#include "comm/mpi_library/mpi_places.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { GENERATIONS = 8 };

bool comm_mpi_beside(comm_mpi_kind kind, const char *program, char out[BASE_PATH_LENGTH]) {
    static const char *const folders[] = {"lib", "lib64"};
    char *real = realpath(program, NULL);
    bool found = false;
    if (!real) return false;
    for (int up = 0; up < 2; up++) { /* the program's name, then its folder's */
        char *slash = strrchr(real, '/');
        if (slash) *slash = '\0';
    }
    for (size_t i = 0; i < 2 && !found; i++) {
        for (const char *const *file = comm_mpi_files(kind); *file && !found; file++) {
            int used = snprintf(out, BASE_PATH_LENGTH, "%s/%s/%s", real, folders[i], *file);
            found = used < BASE_PATH_LENGTH && base_is_file(out);
        }
    }
    free(real);
    return found;
}

/* 0: there is none, or it may not be seen. */
static int parent_of(int process) {
    char path[64], text[512] = "";
    int parent = 0;
    snprintf(path, sizeof path, "/proc/%d/stat", process);
    FILE *file = fopen(path, "re");
    if (!file) return 0;
    if (!fgets(text, sizeof text, file)) text[0] = '\0';
    fclose(file);
    const char *end = strrchr(text, ')'); /* of the name, which may hold anything */
    return end && sscanf(end + 1, " %*c %d", &parent) == 1 ? parent : 0;
}

bool comm_mpi_beside_parents(comm_mpi_kind kind, char out[BASE_PATH_LENGTH]) {
    int process = (int)getppid();
    for (int i = 0; i < GENERATIONS && process > 1; i++) {
        char path[64];
        snprintf(path, sizeof path, "/proc/%d/exe", process);
        if (comm_mpi_beside(kind, path, out)) return true;
        process = parent_of(process);
    }
    return false;
}
