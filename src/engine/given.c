/* What all ranks give the calls of an engine alike: compared by a hash where they meet anyway, and
 * told apart where it differs. */
#include <stdio.h>
#include <string.h>

#include "base/assert.h"
#include "base/hash.h"
#include "base/heap.h"
#include "engine/engine_private.h"
#include "engine/meeting.h"
#include "model/weight_blocks.h"

static void add(engine_given *given, const char *label, uint64_t value) {
    base_assert(given->count < ENGINE_FACTS);
    given->facts[given->count++] = (engine_fact){label, value};
}

/* As kernels read it: beyond that hosts may compute a schedule in other last bits. */
static uint64_t bits_of(double number) {
    float narrow = (float)number;
    uint32_t bits;
    memcpy(&bits, &narrow, sizeof bits);
    return bits;
}

static engine_given begin(const char *call) {
    engine_given given = {.count = 0};
    add(&given, call, base_hash(call, strlen(call)));
    return given;
}

engine_given engine_given_step(const sifr_engine *engine, double rate) {
    const sifr_optimizer *o = &engine->settings.optimizer;
    size_t bytes = engine->written ? engine->model->weight_count * sizeof *engine->written : 0;
    engine_given given = begin("the engine's call, here a step");
    add(&given, "steps that the engine has made", (uint64_t)engine->steps);
    add(&given, "learning_rate", bits_of(rate));
    add(&given, "betas", bits_of(o->beta1) << 32 | bits_of(o->beta2));
    add(&given, "weights", bytes ? base_hash(engine->written, bytes) : 0);
    return given;
}

engine_given engine_given_evaluation(bool logits) {
    return begin(logits ? "the engine's call, here an evaluation with logits"
                        : "the engine's call, here an evaluation");
}

engine_given engine_given_reading(const char *name, engine_part part, int64_t first,
                                  int64_t count) {
    engine_given given = begin("the engine's call, here the reading of a weight");
    add(&given, "the name of the weight that is read", base_hash(name, strlen(name)));
    add(&given, "the weight's values or their average", (uint64_t)part);
    add(&given, "the first element that is read", (uint64_t)first);
    add(&given, "the count of elements that are read", (uint64_t)count);
    return given;
}

uint64_t engine_given_hash(const engine_given *given) {
    uint64_t values[ENGINE_FACTS];
    for (int i = 0; i < given->count; i++) values[i] = given->facts[i].value;
    return base_hash(values, (size_t)given->count * sizeof *values);
}

/* Of all weights: of a step only, which is all that is left where the facts but that hash agree. */
static sifr_status compare_weights(const sifr_engine *engine, sifr_error *error) {
    char label[256];
    for (size_t i = 0; engine->written && i < engine->model->weight_count; i++) {
        snprintf(label, sizeof label, "weight %.180s, as it was written or initialised",
                 engine->model->weights[i].name);
        BASE_TRY(comm_agree(engine->group, label, engine->written[i], error));
    }
    return SIFR_OK;
}

sifr_status engine_tell_apart(const sifr_engine *engine, const engine_given *given,
                              sifr_error *error) {
    for (int i = 0; i < given->count; i++) {
        const engine_fact *fact = &given->facts[i];
        if (strcmp(fact->label, "weights") == 0) BASE_TRY(compare_weights(engine, error));
        BASE_TRY(comm_agree(engine->group, fact->label, fact->value, error));
    }
    return base_fail(error, SIFR_FAILED, "engine: ranks do not make the same calls");
}

sifr_status engine_agree(const sifr_engine *engine, const engine_given *given, sifr_status own,
                         sifr_error *error) {
    engine_meeting meeting = {.given = engine_given_hash(given), .refuses = own != SIFR_OK};
    BASE_TRY(engine_meet(engine->group, &meeting, error));
    if (meeting.refuses) return comm_agree_status(engine->group, own, error);
    return meeting.differs ? engine_tell_apart(engine, given, error) : SIFR_OK;
}

/* --- what is written --- */

sifr_status engine_open_given(sifr_engine *engine, sifr_error *error) {
    if (comm_size(engine->group) == 1) return SIFR_OK;
    return base_alloc(engine->model->weight_count, sizeof *engine->written, &engine->written,
                      error);
}

void engine_note_seed(sifr_engine *engine, uint64_t seed) {
    uint64_t hash = base_hash(&seed, sizeof seed);
    for (size_t i = 0; engine->written && i < engine->model->weight_count; i++)
        engine->written[i] = hash;
}

void engine_note_restored(sifr_engine *engine) {
    if (!engine->written) return;
    memset(engine->written, 0, engine->model->weight_count * sizeof *engine->written);
}

/* All of 1 MiB, and of more so much in pieces, since a write must not take longer for it. */
static uint64_t hash_values(const float *values, size_t count, uint64_t seed) {
    enum { PIECES = 64, PIECE = 4096 };
    if (count <= PIECES * PIECE) return base_hash_seeded(values, count * sizeof *values, seed);
    size_t apart = (count - PIECE) / (PIECES - 1);
    for (size_t i = 0; i < PIECES; i++)
        seed = base_hash_seeded(values + i * apart, PIECE * sizeof *values, seed);
    return seed;
}

void engine_note_values(sifr_engine *engine, size_t index, int64_t first, size_t count,
                        const float *values) {
    if (!engine->written) return;
    bool whole = count == (size_t)model_logical_elements(&engine->model->weights[index]);
    uint64_t where[3] = {(uint64_t)first, count, whole ? 0 : engine->written[index]};
    engine->written[index] = hash_values(values, count, base_hash(where, sizeof where));
}
