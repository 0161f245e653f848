/* Encoding speed on one core, in user CPU time: bench_tokenizer TOKENIZER FILE… [-n REPEATS] */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "base/file.h"
#include "text/tokenizer/tokenizer.h"

static double user_seconds(void) {
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    return (double)usage.ru_utime.tv_sec + 1e-6 * (double)usage.ru_utime.tv_usec;
}

static int stop(const sifr_error *error) {
    fprintf(stderr, "bench_tokenizer: %s\n", error->message);
    return 1;
}

int main(int argc, char **argv) {
    text_tokenizer *tokenizer = NULL;
    sifr_error error = {0};
    int repeats = 20;
    if (argc < 3) {
        fprintf(stderr, "usage: bench_tokenizer TOKENIZER FILE… [-n REPEATS]\n");
        return 2;
    }
    double begin = user_seconds();
    if (text_tokenizer_load(argv[1], &tokenizer, &error) != SIFR_OK) return stop(&error);
    printf("load %.1f ms\n", 1e3 * (user_seconds() - begin));
    for (int i = 2; i < argc; i++) {
        if (strcmp(argv[i], "-n") == 0 && i + 1 < argc) {
            repeats = atoi(argv[++i]);
            continue;
        }
        text_tokenizer_ids ids = {0};
        base_map map = {0};
        double first = 0, all = 0;
        if (base_map_file(argv[i], &map, &error) != SIFR_OK) return stop(&error);
        for (int k = 0; k < repeats; k++) { /* each with a cold cache, as a document of its own */
            text_tokenizer_scratch *scratch = NULL;
            if (text_tokenizer_scratch_new(tokenizer, &scratch, &error) != SIFR_OK)
                return stop(&error);
            ids.count = 0;
            begin = user_seconds();
            if (text_tokenizer_encode(tokenizer, scratch, (const char *)map.data, map.size, false,
                                      &ids, &error) != SIFR_OK)
                return stop(&error);
            double took = user_seconds() - begin;
            all += took;
            if (k == 0) first = took;
            text_tokenizer_scratch_free(scratch);
        }
        double megabytes = 1e-6 * (double)map.size;
        printf("%s: %.2f MB, %zu ids, first %.1f MB/s, mean of %d %.1f MB/s\n", argv[i], megabytes,
               ids.count, megabytes / (first > 0 ? first : 1e-9), repeats,
               megabytes * repeats / (all > 0 ? all : 1e-9));
        text_tokenizer_ids_free(&ids);
        base_unmap(&map);
    }
    text_tokenizer_free(tokenizer);
    return 0;
}
