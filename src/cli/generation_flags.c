#include "cli/generation_flags.h"

#include <stdio.h>
#include <string.h>

void cli_generation_options(cli_generation_flags *f, cli_option *options) {
    const cli_option own[CLI_GENERATION_OPTIONS - CLI_READ_OPTIONS] = {
        {"max-new-tokens", CLI_COUNT, "N",
         "most tokens to generate (default: max_new_tokens or max_length of "
         "generation_config.json, otherwise 128; in a chat: until the context is full)",
         &f->max_new, &f->max_new_given, false},
        {"temperature", CLI_NUMBER, "X",
         "0: always the most likely token; higher: more random (default: that of "
         "generation_config.json if it sets do_sample; otherwise 0, or 1 if --top-k, --top-p, "
         "--min-p or --seed is given)",
         &f->temperature, &f->temperature_given, false},
        {"top-k", CLI_COUNT, "N",
         "choose among the N most likely tokens; 0: all (default: that of generation_config.json, "
         "otherwise all)",
         &f->top_k, &f->top_k_given, false},
        {"top-p", CLI_NUMBER, "X",
         "choose among the fewest most likely tokens with total probability X; 1: all (default: "
         "that of generation_config.json, otherwise all)",
         &f->top_p, &f->top_p_given, false},
        {"min-p", CLI_NUMBER, "X",
         "choose among tokens with at least X times the probability of the most likely one; 0: all "
         "(default: that of generation_config.json, otherwise all)",
         &f->min_p, &f->min_p_given, false},
        {"repetition-penalty", CLI_NUMBER, "X",
         "above 1: tokens that occurred become less likely (default: that of "
         "generation_config.json, otherwise 1)",
         &f->repetition_penalty, &f->penalty_given, false},
        {"stop", CLI_LIST, "TEXT",
         "end before this text (default: stop_strings of generation_config.json)", &f->stop, NULL,
         false},
        {"seed", CLI_COUNT, "N", "seed of the random numbers (default: 42)", &f->seed,
         &f->seed_given, false}};
    *f = (cli_generation_flags){0};
    memcpy(options, own, sizeof own);
    cli_read_options(&f->read, options + sizeof own / sizeof *own);
}

sifr_generator_options cli_generation_given(const cli_generation_flags *f) {
    return (sifr_generator_options){.size = sizeof(sifr_generator_options),
                                    .model = f->read.model,
                                    .adapter = f->read.adapter,
                                    .precision = f->read.precision,
                                    .threads = f->read.threads,
                                    .temperature = f->temperature_given ? &f->temperature : NULL,
                                    .top_k = f->top_k_given ? &f->top_k : NULL,
                                    .top_p = f->top_p_given ? &f->top_p : NULL,
                                    .min_p = f->min_p_given ? &f->min_p : NULL,
                                    .repetition_penalty =
                                        f->penalty_given ? &f->repetition_penalty : NULL,
                                    .seed = f->seed_given ? &f->seed : NULL,
                                    .max_new_tokens = f->max_new_given ? &f->max_new : NULL,
                                    .stop = f->stop.items,
                                    .stop_count = f->stop.count};
}

sifr_status cli_write_text(void *user, size_t text, const char *bytes, size_t size,
                           sifr_error *error) {
    (void)user, (void)text;
    fwrite(bytes, 1, size, stdout);
    if (fflush(stdout) == 0) return SIFR_OK;
    return base_fail(error, SIFR_FAILED, "standard output: writing failed");
}
