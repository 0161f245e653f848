/* Lines before the first step about defaults and rules that often surprise users. */
#ifndef TRAIN_NOTICES_H
#define TRAIN_NOTICES_H

#include "config/config.h"
#include "plan/schedule.h"
#include "train/report/callbacks.h"

/* Describes whether the trained weights depend on the number of ranks, for a fixed micro batch:
 * "the same on 1, 2, 4, 8 ... ranks with ..." or "reproducible with 3 ranks only: REASON". Returns
 * out. */
char *train_bits_class(const plan_settings *settings, char *out, size_t size);

/* Whether they are the same on 1, 2, 4, 8 ... ranks: all such runs add gradients in one tree. */
bool train_bits_are_anywhere(const plan_settings *settings);

/* The number of steps at the start of a run with learning rate 0, as in DeepSpeed's warm-ups; at
 * most `total`. 0 if the schedule has no warm-up. */
int64_t train_steps_without_rate(const config_lr_schedule *schedule, int64_t total);

/* Prints whether results depend on the number of ranks, a default for gradient clipping, the
 * weights that weight decay covers, what is given without effect, and, if `first_step` is 0, a
 * warm-up that begins with learning rate 0. */
void train_say_notices(const train_host *host, const sifr_config *config,
                       const plan_schedule *schedule, int64_t first_step, int64_t total_steps);

#endif
