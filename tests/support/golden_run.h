/* Runs a golden model (golden.h) through the engine and fails the running cmocka test where its
 * results are off by more than their bounds. */
#ifndef GOLDEN_RUN_H
#define GOLDEN_RUN_H

#include "device/device.h"
#include "model/description.h"
#include "sifr/engine.h"
#include "support/golden.h"

/* Fails the test if no weight has this name. */
size_t golden_weight_index(const sifr_model *model, const char *name);

/* Opens the device of the engines that train from now on; NULL: the CPU. */
typedef sifr_status (*golden_run_opener)(device **out, sifr_error *error);
void golden_run_on(golden_run_opener open);

/* One that trains there. Fails the test where there is none. */
sifr_engine *golden_run_engine(const sifr_model *model, const sifr_settings *options);

typedef void (*golden_run_check)(const golden *g, golden_precision precision);

/* Calls `check` for each of these results of tests/golden/`place`, in fp32 and in bf16. */
void golden_run_each(const char *place, const char *const *names, size_t count,
                     golden_run_check check);

void golden_run_logits(const golden *g, golden_precision precision);
/* Loss and gradients of one micro batch. */
void golden_run_gradients(const golden *g, golden_precision precision);
/* All training steps: losses, norms, and the weights after them. */
void golden_run_steps(const golden *g, golden_precision precision);
/* The loss of the batch of the gradients, as training evaluates it. */
void golden_run_evaluation(const golden *g, golden_precision precision);
/* Of consecutive windows. */
void golden_run_eval(const golden *g, golden_precision precision);
/* In fp32. chunk: how many tokens of the prompt are read at once; the answer may not depend on it.
 */
void golden_run_generation(const golden *g, const golden_generation *generation, int64_t chunk);

#endif
