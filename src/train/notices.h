/* Lines before the first step about defaults and rules that users often assume to be different. */
#ifndef TRAIN_NOTICES_H
#define TRAIN_NOTICES_H

#include "config/config.h"
#include "plan/schedule.h"
#include "train/callbacks.h"

/* Whether the trained weights depend on the number of ranks, at this micro batch: "the same on 1,
 * 2, 4, 8 ... ranks with ..." or "reproducible with 3 ranks only: REASON". Returns out. */
char *train_bits_class(const plan_settings *settings, char *out, size_t size);

/* The steps at the start of a run whose learning rate is 0, as in DeepSpeed's warm-ups, at most
 * `total`; 0 where the schedule is no warm-up. */
int64_t train_steps_without_rate(const config_lr_schedule *schedule, int64_t total);

/* The class of the run's bits; gradient clipping that the config leaves out; what weight decay
 * covers; a warm-up that begins with rate 0, where `first_step` is 0. */
void train_say_notices(const train_host *host, const sifr_config *config,
                       const plan_settings *settings, int64_t first_step, int64_t total_steps);

#endif
