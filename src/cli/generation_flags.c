#include "cli/generation_flags.h"

#include <stdio.h>
#include <string.h>

void cli_generation_options(cli_generation_flags *f, cli_option *options) {
    const cli_option own[CLI_GENERATION_OPTIONS - CLI_READ_MODEL_OPTIONS] = {
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
    *f = (cli_generation_flags){.top_p = 1, .repetition_penalty = 1, .seed = 42};
    memcpy(options, own, sizeof own);
    cli_read_model_options(&f->read, options + sizeof own / sizeof *own);
}

static sifr_status check(const cli_generation_flags *f, sifr_error *error) {
    if (f->temperature_given && !(f->temperature >= 0 && f->temperature <= 1e6))
        return base_fail(error, SIFR_USAGE,
                         "--temperature %g: must be 0 (always the most likely token) or more",
                         f->temperature);
    if (!(f->top_p > 0 && f->top_p <= 1))
        return base_fail(error, SIFR_USAGE,
                         "--top-p %g: must be a probability above 0 and at most 1", f->top_p);
    if (!(f->min_p >= 0 && f->min_p <= 1))
        return base_fail(error, SIFR_USAGE, "--min-p %g: must be in 0 … 1", f->min_p);
    if (!(f->repetition_penalty > 0 && f->repetition_penalty <= 1e6))
        return base_fail(error, SIFR_USAGE,
                         "--repetition-penalty %g: must be above 0 (1: no penalty)",
                         f->repetition_penalty);
    for (size_t i = 0; i < f->stop.count; i++) {
        if (!f->stop.items[i][0])
            return base_fail(error, SIFR_USAGE, "--stop: an empty text would end at once");
    }
    if (f->temperature_given && f->temperature == 0 &&
        (f->top_k_given || f->top_p_given || f->min_p_given))
        return base_fail(error, SIFR_USAGE,
                         "--temperature 0 always takes the most likely token, so --top-k, --top-p "
                         "and --min-p have no meaning; give a higher temperature, or leave them "
                         "out");
    return SIFR_OK;
}

/* The flags that are given, over what generation_config.json says. */
static void choose_sampling(const cli_generation_flags *f, infer_generation *g) {
    bool asked = f->top_k_given || f->top_p_given || f->min_p_given || f->seed_given;
    infer_sampling *s = &g->sampling;
    if (!g->defaults.do_sample && asked) s->temperature = 1;
    if (f->temperature_given) s->temperature = f->temperature;
    if (f->top_k_given) s->top_k = f->top_k;
    if (f->top_p_given) s->top_p = f->top_p;
    if (f->min_p_given) s->min_p = f->min_p;
    if (f->penalty_given) s->repetition_penalty = f->repetition_penalty;
}

sifr_status cli_generation_open(infer_generation *g, const cli_generation_flags *flags,
                                const char *name, sifr_error *error) {
    sifr_log log = cli_log(name);
    infer_source source;
    *g = (infer_generation){0};
    BASE_TRY(check(flags, error));
    BASE_TRY(cli_read_model_source(&flags->read, SIFR_DEVICE_AUTO, &source, error));
    BASE_TRY(infer_generation_open(g, &source, &log, error));
    choose_sampling(flags, g);
    g->stop = flags->stop.items;
    g->stop_count = flags->stop.count;
    g->seed = (uint64_t)flags->seed;
    if (flags->max_new_given) g->max_new = flags->max_new;
    return SIFR_OK;
}

sifr_status cli_write_text(void *user, const char *bytes, size_t size, sifr_error *error) {
    (void)user;
    fwrite(bytes, 1, size, stdout);
    if (fflush(stdout) == 0) return SIFR_OK;
    return base_fail(error, SIFR_FAILED, "standard output: writing failed");
}
