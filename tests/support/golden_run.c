#include "support/golden_run.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "engine/engine_private.h"
#include "infer/inference.h"
#include "support/on_queues.h"

/* Fails the test with the message of the library. */
#define OK(call)                                                                                   \
    do {                                                                                           \
        sifr_error error = {0};                                                                    \
        if ((call) != SIFR_OK) fail_msg("%s", error.message);                                      \
    } while (0)

static golden_run_opener opener;

void golden_run_on(golden_run_opener open) {
    opener = open;
}

/* NULL: the CPU. */
static golden_run_opener find_opener(void) {
    return opener ? opener : on_queues() ? on_queues_open : NULL;
}

sifr_engine *golden_run_engine(const sifr_model *model, const sifr_settings *options) {
    sifr_engine *engine;
    golden_run_opener open = find_opener();
    device *dev;
    comm_group *group;
    if (!open) {
        OK(sifr_engine_create(model, options, &engine, &error));
        return engine;
    }
    OK(open(&dev, &error));
    OK(comm_open_self(&group, &error));
    OK(engine_create_on(dev, model, options, group, &engine, &error));
    engine->own_group = group;
    return engine;
}

static sifr_engine *open_engine(const golden *g, engine_folder *folder, sifr_precision precision,
                                int32_t micro_batches, bool clipped) {
    sifr_settings options = sifr_settings_defaults();
    OK(engine_folder_open(g->folder, folder, &error));
    options.precision = precision;
    options.micro_batch_size = g->sequences;
    options.seq_length = g->length;
    options.gradient_accumulation_steps = micro_batches;
    options.optimizer.beta1 = g->beta1;
    options.optimizer.beta2 = g->beta2;
    options.optimizer.eps = g->epsilon;
    options.optimizer.weight_decay = g->weight_decay;
    options.gradient_clipping = clipped ? g->clipping : 0;
    sifr_engine *engine = golden_run_engine(folder->model, &options);
    OK(engine_load_folder(engine, folder->architecture, folder->weights, &error));
    return engine;
}

size_t golden_weight_index(const sifr_model *model, const char *name) {
    for (size_t i = 0; i < model->weight_count; i++) {
        if (!strcmp(model->weights[i].name, name)) return i;
    }
    /* transformers calls every head of a decoder so, folders of GPT-NeoX do not; and XLM-RoBERTa's
     * tied table after its head. */
    if (!strcmp(name, "lm_head.weight") || !strcmp(name, "lm_head.decoder.weight"))
        return (size_t)model->nodes[model->node_count - 1].w[0];
    fail_msg("no weight %s", name);
    return 0;
}

/* The gradient that the last step's update read: what the optimizer's instruction of the weight's
 * unit names. */
static void get_gradient(const sifr_engine *engine, size_t index, float *out, size_t count) {
    const plan_schedule *s = engine->training;
    const model_weight *w = &engine->model->weights[index];
    for (size_t i = 0; i < s->instruction_count; i++) {
        const plan_instruction *instruction = &s->instructions[i];
        if (instruction->action != PLAN_UPDATE || instruction->unit != w->unit) continue;
        const plan_operand *operand = &s->operands[instruction->first_operand];
        int64_t size = (int64_t)sizeof *out;
        assert_int_equal(operand->role, PLAN_X0);
        OK(engine_get(engine->trainer, operand->buffer, operand->offset + w->offset * size, out,
                      (int64_t)count * size, &error));
        return;
    }
    fail_msg("no update of unit %d", w->unit);
}

static sifr_batch batch_of(const golden *g) {
    return (sifr_batch){.tokens = g->tokens,
                        .labels = g->labels,
                        .token_types = g->token_types,
                        .segments = g->segments,
                        .targets = g->targets};
}

static sifr_batch step_of(const golden *g, int64_t step) {
    int64_t first = step * g->micro_batches * g->sequences * g->length;
    return (sifr_batch){.tokens = g->step_tokens + first,
                        .labels = g->step_labels + first,
                        .token_types = g->step_token_types ? g->step_token_types + first : NULL,
                        .segments = g->step_segments ? g->step_segments + first : NULL,
                        .targets =
                            g->step_targets ? g->step_targets + first * g->vocab_size : NULL};
}

void golden_run_evaluation(const golden *g, golden_precision precision) {
    engine_folder folder;
    sifr_engine *engine = open_engine(g, &folder, (sifr_precision)precision, 1, false);
    sifr_batch batch = batch_of(g);
    double sum;
    int64_t labelled;
    OK(sifr_engine_evaluate(engine, &batch, &sum, &labelled, &error));
    assert_int_equal(labelled, g->labelled);
    golden_check_loss(g, precision, sum / (double)labelled);
    sifr_engine_free(engine);
    engine_folder_close(&folder);
}

void golden_run_gradients(const golden *g, golden_precision precision) {
    engine_folder folder;
    sifr_engine *engine = open_engine(g, &folder, (sifr_precision)precision, 1, false);
    sifr_step_result result;
    sifr_batch batch = batch_of(g);
    OK(sifr_engine_step(engine, &batch, 0.0, &result, &error));
    assert_true(result.updated);
    assert_int_equal(result.labelled, g->labelled);
    golden_check_loss(g, precision, result.loss);
    for (size_t p = 0; p < g->parameter_count; p++) {
        const golden_parameter *parameter = &g->parameters[p];
        size_t index = golden_weight_index(folder.model, parameter->name);
        float *gradient = malloc(parameter->elements * sizeof *gradient);
        assert_non_null(gradient);
        get_gradient(engine, index, gradient, parameter->elements);
        for (size_t i = 0; i < parameter->elements; i++) gradient[i] /= (float)result.loss_scale;
        golden_check_gradient(g, precision, parameter->name, gradient, parameter->elements);
        free(gradient);
    }
    sifr_engine_free(engine);
    engine_folder_close(&folder);
}

/* A copy of a whole weight; free it. */
static float *copy_weight(const sifr_engine *engine, size_t index, size_t count) {
    float *scratch = malloc(count * sizeof *scratch), *copy = malloc(count * sizeof *copy);
    const float *values = NULL;
    assert_non_null(scratch);
    assert_non_null(copy);
    OK(engine_view_fp32(engine, index, ENGINE_MASTER, 0, (int64_t)count, scratch, &values, &error));
    memcpy(copy, values, count * sizeof *copy);
    free(scratch);
    return copy;
}

void golden_run_steps(const golden *g, golden_precision precision) {
    engine_folder folder;
    sifr_engine *engine =
        open_engine(g, &folder, (sifr_precision)precision, (int32_t)g->micro_batches, true);
    float **initial = calloc(g->parameter_count, sizeof *initial);
    for (size_t p = 0; p < g->parameter_count; p++) {
        size_t index = golden_weight_index(folder.model, g->parameters[p].name);
        initial[p] = copy_weight(engine, index, g->parameters[p].elements);
    }
    for (int64_t s = 0; s < g->steps; s++) {
        sifr_step_result result;
        sifr_batch step = step_of(g, s);
        OK(sifr_engine_step(engine, &step, g->step_lr[s], &result, &error));
        assert_true(result.updated);
        golden_check_step(g, precision, s, result.loss, result.gradient_norm);
    }
    golden_update_error sum = {0};
    for (size_t p = 0; p < g->parameter_count; p++) {
        size_t index = golden_weight_index(folder.model, g->parameters[p].name);
        float *trained = copy_weight(engine, index, g->parameters[p].elements);
        golden_add_update(g, &sum, g->parameters[p].name, initial[p], trained,
                          g->parameters[p].elements);
        free(trained);
        free(initial[p]);
    }
    golden_check_update(g, precision, &sum);
    free(initial);
    sifr_engine_free(engine);
    engine_folder_close(&folder);
}

static infer_inference *open_inference(const golden *g, engine_folder *folder, plan_mode mode,
                                       sifr_precision precision, int64_t sequences,
                                       int64_t length) {
    infer_options options = {.mode = mode,
                             .precision = precision,
                             .sequences = sequences,
                             .length = length,
                             .cache_length = 64};
    infer_inference *inference;
    golden_run_opener open = mode == PLAN_GENERATE ? NULL : find_opener();
    device *dev;
    OK(engine_folder_open(g->folder, folder, &error));
    if (open) {
        OK(open(&dev, &error));
        OK(infer_create_on(dev, folder->model, &options, &inference, &error));
    } else {
        OK(infer_create(folder->model, &options, &inference, &error));
    }
    OK(infer_load(inference, folder->architecture, folder->weights, &error));
    return inference;
}

void golden_run_logits(const golden *g, golden_precision precision) {
    engine_folder folder;
    infer_inference *inference =
        open_inference(g, &folder, PLAN_LOGITS, (sifr_precision)precision, g->sequences, g->length);
    size_t words = (size_t)g->vocab_size;
    float *all = malloc((size_t)(g->sequences * g->length) * words * sizeof *all);
    float *some = malloc(g->logit_row_count * words * sizeof *some);
    assert_int_equal(infer_words(inference), words);
    sifr_batch batch = batch_of(g);
    OK(infer_logits(inference, &batch, all, &error));
    for (size_t r = 0; r < g->logit_row_count; r++) {
        memcpy(some + r * words, all + (size_t)g->logit_rows[r] * words, words * sizeof *some);
    }
    golden_check_logits(g, precision, some);
    free(all);
    free(some);
    infer_free(inference);
    engine_folder_close(&folder);
}

void golden_run_eval(const golden *g, golden_precision precision) {
    engine_folder folder;
    infer_inference *inference =
        open_inference(g, &folder, PLAN_EVALUATE, (sifr_precision)precision, 1, g->eval_window);
    double sum = 0;
    int64_t count = 0;
    for (int64_t w = 0; w < g->eval_windows; w++) {
        const int32_t *tokens = g->eval_tokens + w * g->eval_window;
        double loss;
        int64_t labelled;
        sifr_batch batch = {.tokens = tokens, .labels = tokens + 1};
        OK(infer_loss(inference, &batch, &loss, &labelled, NULL, &error));
        sum += loss;
        count += labelled;
    }
    assert_int_equal(count, g->eval_windows * g->eval_window);
    golden_check_eval(g, precision, sum / (double)count);
    infer_free(inference);
    engine_folder_close(&folder);
}

void golden_run_generation(const golden *g, const golden_generation *generation, int64_t chunk) {
    engine_folder folder;
    infer_inference *inference = open_inference(g, &folder, PLAN_GENERATE, SIFR_FP32, 1, chunk);
    int64_t words = infer_words(inference), position = 0;
    float *logits = malloc((size_t)words * sizeof *logits);
    int32_t *order = malloc((size_t)words * sizeof *order);
    const int32_t *next = generation->prompt;
    int64_t count = (int64_t)generation->prompt_count;
    const infer_sampling greedy = {.temperature = 0};
    for (size_t i = 0; i < generation->expected_count; i++) {
        OK(infer_append(inference, 0, next, count, position, logits, &error));
        position += count;
        assert_int_equal(infer_sample(logits, words, order, &greedy, 0.5), generation->expected[i]);
        next = &generation->expected[i];
        count = 1;
    }
    free(logits);
    free(order);
    infer_free(inference);
    engine_folder_close(&folder);
}

void golden_run_each(const char *place, const char *const *names, size_t count,
                     golden_run_check check) {
    golden_list list;
    golden_list_open_at(&list, place);
    for (size_t i = 0; i < count; i++) {
        golden g;
        golden_open(&list, golden_list_find(&list, names[i]), &g);
        check(&g, GOLDEN_FP32);
        check(&g, GOLDEN_BF16);
        golden_close(&g);
    }
    golden_list_close(&list);
}
