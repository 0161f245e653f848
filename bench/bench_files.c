/* A safetensors file of a model folder, opened, read into memory and written again:
 * bench_files FOLDER OUTPUT [RUNS]. One JSON object, seconds of each run. Reading counts until
 * every byte lies in memory of the process; writing until the file is there under its name, as sifr
 * writes all its files: synced. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>

#include "formats/weights.h"

enum { MOST_RUNS = 32 };

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void check(sifr_status status, const sifr_error *error) {
    if (status == SIFR_OK) return;
    fprintf(stderr, "bench_files: %s\n", error->message);
    exit((int)status);
}

/* Fresh memory for each run, as a program has that starts. */
static char *read_all(const formats_weights *weights, uint64_t *bytes) {
    *bytes = formats_weights_bytes(weights);
    char *block = mmap(NULL, *bytes, PROT_READ | PROT_WRITE, MAP_ANONYMOUS | MAP_PRIVATE, -1, 0);
    if (block == MAP_FAILED) exit(3);
    madvise(block, *bytes, MADV_HUGEPAGE);
    char *to = block;
    for (size_t i = 0; i < formats_weights_count(weights); i++) {
        const formats_tensor *t = formats_weights_at(weights, i);
        memcpy(to, t->data, t->bytes);
        to += t->bytes;
    }
    return block;
}

static sifr_status fill(void *user, size_t position, formats_safetensors_writer *writer,
                        sifr_error *error) {
    const formats_tensor *t = formats_weights_at(user, position);
    return formats_safetensors_append(writer, t->data, t->bytes, error);
}

static void write_all(formats_weights *weights, const char *directory) {
    sifr_error error = {0};
    size_t count = formats_weights_count(weights);
    formats_tensor_spec *specs = calloc(count, sizeof *specs);
    if (!specs) exit(3);
    for (size_t i = 0; i < count; i++) {
        const formats_tensor *t = formats_weights_at(weights, i);
        specs[i] = (formats_tensor_spec){t->name, t->dtype, t->rank, {0}};
        memcpy(specs[i].shape, t->shape, sizeof specs[i].shape);
    }
    mkdir(directory, 0777);
    check(formats_weights_write(directory, specs, count, 0, fill, weights, &error), &error);
    free(specs);
}

static void print_list(const char *name, const double *values, int count) {
    printf(" \"%s\": [", name);
    for (int i = 0; i < count; i++) printf("%s%.6g", i ? ", " : "", values[i]);
    printf("],");
}

int main(int argc, char **argv) {
    double opened[MOST_RUNS], loaded[MOST_RUNS], saved[MOST_RUNS];
    int runs = argc > 3 ? atoi(argv[3]) : 3;
    uint64_t bytes = 0;
    sifr_error error = {0};
    if (argc < 3 || runs < 1 || runs > MOST_RUNS) return 2;
    for (int run = -1; run < runs; run++) { /* the first brings the file into the page cache */
        formats_weights *weights;
        double begun = now();
        check(formats_weights_open(argv[1], &weights, &error), &error);
        double open = now() - begun;
        char *block = read_all(weights, &bytes);
        double load = now() - begun;
        munmap(block, bytes);
        begun = now();
        write_all(weights, argv[2]);
        if (run >= 0) opened[run] = open, loaded[run] = load, saved[run] = now() - begun;
        formats_weights_close(weights);
    }
    printf("{\"bytes\": %llu,", (unsigned long long)bytes);
    print_list("open", opened, runs);
    print_list("load", loaded, runs);
    print_list("save", saved, runs);
    printf(" \"runs\": %d}\n", runs);
    return 0;
}
