/* A safetensors file of a model folder, opened, read into memory and written again:
 * bench_files FOLDER OUTPUT [RUNS]. One JSON object, seconds of each run. Reading counts until
 * every byte lies in memory that the process has from the first run, as an allocator keeps it:
 * copied by all threads, as a model is loaded. Writing counts until the file is there under its
 * name, synced, as sifr writes all its files. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include "base/checked.h"
#include "device/device.h"
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

enum { TILE = 1 << 20 }; /* bytes that one thread copies at a time */

typedef struct copy_run {
    const formats_tensor *from;
    char *to;
} copy_run;

static void copy_tile(void *argument, int64_t tile, int thread) {
    (void)thread;
    const copy_run *run = argument;
    int64_t at = tile * TILE, bytes = base_min_i64(TILE, (int64_t)run->from->bytes - at);
    memcpy(run->to + at, (const char *)run->from->data + at, (size_t)bytes);
}

static void read_all(device *dev, const formats_weights *weights, char *to) {
    for (size_t i = 0; i < formats_weights_count(weights); i++) {
        copy_run run = {formats_weights_at(weights, i), to};
        device_parallel(dev, ((int64_t)run.from->bytes + TILE - 1) / TILE, copy_tile, &run);
        to += run.from->bytes;
    }
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
    void *block = NULL;
    device *dev;
    sifr_error error = {0};
    if (argc < 3 || runs < 1 || runs > MOST_RUNS) return 2;
    check(device_open_cpu(0, NULL, &dev, &error), &error);
    for (int run = -1; run < runs; run++) { /* the first brings the file into the page cache */
        formats_weights *weights;
        double begun = now();
        check(formats_weights_open(argv[1], &weights, &error), &error);
        double open = now() - begun;
        if (run < 0) {
            bytes = formats_weights_bytes(weights);
            check(device_take(dev, (int64_t)bytes, &block, &error), &error);
        }
        read_all(dev, weights, block);
        double load = now() - begun;
        begun = now();
        write_all(weights, argv[2]);
        if (run >= 0) opened[run] = open, loaded[run] = load, saved[run] = now() - begun;
        formats_weights_close(weights);
    }
    device_give(dev, block, (int64_t)bytes);
    device_close(dev);
    printf("{\"bytes\": %llu,", (unsigned long long)bytes);
    print_list("open", opened, runs);
    print_list("load", loaded, runs);
    print_list("save", saved, runs);
    printf(" \"runs\": %d}\n", runs);
    return 0;
}
