/* What a step of a config would take at each ZeRO stage, on any number of ranks, without running
 * it.
 *     cc plan_only.c $(pkg-config --cflags --libs sifr) -o plan_only
 *     ./plan_only ds.json gpt2 8 24e9
 * plans gpt2 on 8 ranks that may take 24 GB each. Explained in docs/c-interface.md. */
#include <sifr/sifr.h>
#include <stdio.h>
#include <stdlib.h>

enum { STAGES = 4 };

static void print_classes(sifr_plan *const plans[STAGES]) {
    sifr_plan_class class = {.size = sizeof class};
    for (size_t c = 0; sifr_plan_class_at(plans[0], c, &class); c++) {
        double sum = 0;
        for (int s = 0; s < STAGES; s++)
            if (sifr_plan_class_at(plans[s], c, &class)) sum += (double)class.most_bytes;
        if (sum == 0) continue;
        printf("%-16s", class.name);
        for (int s = 0; s < STAGES; s++)
            if (sifr_plan_class_at(plans[s], c, &class))
                printf(" %11.3f", (double)class.most_bytes / 1e6);
        printf("\n");
    }
}

static void print_figures(sifr_plan *const plans[STAGES]) {
    sifr_plan_figures figures[STAGES];
    for (int s = 0; s < STAGES; s++) {
        figures[s].size = sizeof figures[s];
        sifr_plan_get(plans[s], &figures[s]);
    }
    printf("%-16s", "in all");
    for (int s = 0; s < STAGES; s++) printf(" %11.3f", (double)figures[s].bytes / 1e6);
    printf("\n%-16s", "fits");
    for (int s = 0; s < STAGES; s++) printf(" %11s", figures[s].fits ? "yes" : "no");
    printf("\n%-16s", "ms a step");
    for (int s = 0; s < STAGES; s++) printf(" %11.2f", 1e3 * figures[s].step_seconds);
    printf("\n");
}

/* One config serves all: a plan reads it, and the next one has another stage set. */
static sifr_status plan_stages(sifr_context *context, sifr_config *config,
                               const sifr_plan_options *options, sifr_error *error) {
    sifr_plan *plans[STAGES] = {NULL};
    sifr_status status = SIFR_OK;
    for (int s = 0; s < STAGES && status == SIFR_OK; s++) {
        char stage[2] = {(char)('0' + s), '\0'};
        status = sifr_config_set(config, "zero_optimization.stage", stage, error);
        if (status == SIFR_OK)
            status = sifr_plan_create(context, config, options, &plans[s], error);
    }
    if (status == SIFR_OK) {
        printf("%-16s %11s %11s %11s %11s\n", "MB of a rank", "stage 0", "stage 1", "stage 2",
               "stage 3");
        print_classes(plans);
        print_figures(plans);
        sifr_error reason = {0};
        if (sifr_plan_fits(plans[STAGES - 1], &reason) != SIFR_OK)
            printf("stage 3 does not fit: %s\n", reason.message);
    }
    for (int s = 0; s < STAGES; s++) sifr_plan_free(plans[s]);
    return status;
}

int main(int argc, char **argv) {
    sifr_error error = {0};
    sifr_context *context = NULL;
    sifr_config *config = NULL;
    if (argc < 3) {
        fprintf(stderr, "usage: plan_only CONFIG MODEL [RANKS [BYTES]]\n");
        return SIFR_USAGE;
    }
    sifr_plan_options options = {.size = sizeof options,
                                 .ranks = argc > 3 ? atoll(argv[3]) : 1,
                                 .device_memory = argc > 4 ? (int64_t)atof(argv[4]) : 0};
    sifr_status status = sifr_context_create(NULL, &context, &error);
    if (status == SIFR_OK) status = sifr_config_create(&config, &error);
    if (status == SIFR_OK) status = sifr_config_load(config, argv[1], &error);
    if (status == SIFR_OK) status = sifr_config_set(config, "model", argv[2], &error);
    if (status == SIFR_OK) status = plan_stages(context, config, &options, &error);
    if (status != SIFR_OK) fprintf(stderr, "plan_only: %s\n", error.message);
    sifr_config_free(config);
    sifr_context_free(context);
    return (int)status;
}
