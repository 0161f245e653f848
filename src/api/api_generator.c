#include "api/api_generator.h"

#include <stdlib.h>
#include <string.h>

#include "api/api_chat_template.h"
#include "api/api_context.h"
#include "api/api_read_model.h"
#include "base/heap.h"
#include "base/inside.h"

static sifr_status check_draws(const sifr_generator_options *o, sifr_error *error) {
    if (o->temperature && !(*o->temperature >= 0 && *o->temperature <= 1e6))
        return base_fail(error, SIFR_USAGE,
                         "--temperature %g: must be 0 (always the most likely token) or more",
                         *o->temperature);
    if (o->top_k && *o->top_k < 0)
        return base_fail(error, SIFR_USAGE, "--top-k %lld: must be 0 (all tokens) or more",
                         (long long)*o->top_k);
    if (o->top_p && !(*o->top_p > 0 && *o->top_p <= 1))
        return base_fail(error, SIFR_USAGE,
                         "--top-p %g: must be a probability above 0 and at most 1", *o->top_p);
    if (o->min_p && !(*o->min_p >= 0 && *o->min_p <= 1))
        return base_fail(error, SIFR_USAGE, "--min-p %g: must be in 0 … 1", *o->min_p);
    if (o->repetition_penalty && !(*o->repetition_penalty > 0 && *o->repetition_penalty <= 1e6))
        return base_fail(error, SIFR_USAGE,
                         "--repetition-penalty %g: must be above 0 (1: no penalty)",
                         *o->repetition_penalty);
    return SIFR_OK;
}

static sifr_status check(const sifr_generator_options *o, sifr_error *error) {
    if (o->batch_size < 0 || o->batch_size > INT32_MAX)
        return base_fail(error, SIFR_USAGE, "--batch-size %lld: must be in 1 … %d",
                         (long long)o->batch_size, INT32_MAX);
    if (o->samples < 0 || o->samples > SIFR_MOST_SAMPLES)
        return base_fail(error, SIFR_USAGE, "--samples %lld: must be in 1 … %d",
                         (long long)o->samples, SIFR_MOST_SAMPLES);
    BASE_TRY(check_draws(o, error));
    for (size_t i = 0; i < o->stop_count; i++) {
        if (!o->stop[i][0])
            return base_fail(error, SIFR_USAGE, "--stop: an empty text would end at once");
    }
    if (o->max_new_tokens && *o->max_new_tokens < 0)
        return base_fail(error, SIFR_USAGE, "--max-new-tokens %lld: must be 0 or more",
                         (long long)*o->max_new_tokens);
    if (o->temperature && *o->temperature == 0 && (o->top_k || o->top_p || o->min_p))
        return base_fail(error, SIFR_USAGE,
                         "--temperature 0 always takes the most likely token, so --top-k, --top-p "
                         "and --min-p have no meaning; give a higher temperature, or leave them "
                         "out");
    return SIFR_OK;
}

/* What is given, over what generation_config.json says. */
static void choose_sampling(const sifr_generator_options *o, infer_generation *g) {
    bool asked = o->top_k || o->top_p || o->min_p || o->seed;
    infer_sampling *s = &g->sampling;
    if (!g->defaults.do_sample && asked) s->temperature = 1;
    if (o->temperature) s->temperature = *o->temperature;
    if (o->top_k) s->top_k = *o->top_k;
    if (o->top_p) s->top_p = *o->top_p;
    if (o->min_p) s->min_p = *o->min_p;
    if (o->repetition_penalty) s->repetition_penalty = *o->repetition_penalty;
    if (o->seed) g->seed = (uint64_t)*o->seed;
    if (o->max_new_tokens) g->max_new = *o->max_new_tokens;
}

static sifr_status copy_stop(sifr_generator *generator, const sifr_generator_options *o,
                             sifr_error *error) {
    BASE_TRY(base_alloc(o->stop_count, sizeof *generator->stop, &generator->stop, error));
    for (; generator->stop_count < o->stop_count; generator->stop_count++) {
        const char *text = o->stop[generator->stop_count];
        BASE_TRY(
            base_copy_text(text, strlen(text), &generator->stop[generator->stop_count], error));
    }
    generator->g.stop = (const char *const *)generator->stop;
    generator->g.stop_count = generator->stop_count;
    return SIFR_OK;
}

static sifr_status open_model(sifr_generator *generator, const sifr_generator_options *o,
                              const sifr_log *log, sifr_error *error) {
    api_read_model read = {
        .model = o->model, .adapter = o->adapter, .precision = o->precision, .threads = o->threads};
    infer_generation *g = &generator->g;
    infer_source source;
    BASE_TRY(check(o, error));
    BASE_TRY(api_read_model_source(&read, SIFR_DEVICE_AUTO, &source, error));
    BASE_TRY(base_copy_text(o->model, strlen(o->model), &generator->model, error));
    source.model = generator->model;
    BASE_TRY(infer_generation_open(g, &source, log, error));
    BASE_TRY(copy_stop(generator, o, error));
    choose_sampling(o, g);
    generator->samples = o->samples ? o->samples : 1;
    generator->batch_size = o->batch_size ? o->batch_size : 1;
    if (o->samples > 1 && g->sampling.temperature == 0)
        return base_fail(error, SIFR_USAGE,
                         "--samples %lld: at temperature 0 all texts of a prompt are the same; "
                         "give --temperature",
                         (long long)o->samples);
    return SIFR_OK;
}

sifr_status sifr_generator_open(sifr_context *context, const sifr_generator_options *options,
                                sifr_generator **out, sifr_error *error) {
    BASE_ENTER(error, context, out);
    sifr_generator_options known;
    sifr_generator *generator;
    BASE_TRY(api_take_options("sifr_generator_options", options, sizeof known, &known, error));
    BASE_TRY(api_check_list("sifr_generator_options.stop", known.stop, known.stop_count, error));
    BASE_TRY(base_alloc(1, sizeof *generator, &generator, error));
    sifr_status status = open_model(generator, &known, &context->log, error);
    if (status == SIFR_OK) *out = generator;
    if (status != SIFR_OK) sifr_generator_free(generator);
    return status;
}

void sifr_generator_free(sifr_generator *generator) {
    BASE_ENTER_VOID(generator);
    api_generator_clear(generator);
    infer_generation_close(&generator->g);
    for (size_t i = 0; i < generator->stop_count; i++) free(generator->stop[i]);
    free(generator->stop);
    free(generator->model);
    free(generator->texts);
    free(generator);
}

void api_generator_clear(sifr_generator *generator) {
    for (size_t i = 0; i < generator->count; i++)
        infer_sequence_free(&generator->texts[i].sequence);
    generator->count = generator->prompts = 0;
    generator->cache = 0;
    generator->beyond = false;
}

void sifr_generator_clear(sifr_generator *generator) {
    BASE_ENTER_VOID(generator);
    api_generator_clear(generator);
}

sifr_status api_generator_take(sifr_generator *generator, int64_t slots, int64_t chunk,
                               int64_t cache, bool beyond, sifr_error *error) {
    infer_generation *g = &generator->g;
    if (slots == g->slots && cache <= generator->cache_taken) return SIFR_OK;
    infer_generation_stop(g);
    generator->cache_taken = 0;
    BASE_TRY(infer_generation_start(g, slots, chunk, cache, beyond, error));
    generator->cache_taken = cache;
    return SIFR_OK;
}

sifr_status sifr_generator_template(sifr_generator *generator,
                                    const sifr_chat_template_options *options,
                                    sifr_chat_template **out, sifr_error *error) {
    BASE_ENTER(error, generator, out);
    const checkpoint_model *model = &generator->g.model;
    return api_chat_template_make(model->files, model->template[0] ? model->template : NULL,
                                  options, out, error);
}
