/* Advice for a run that does not fit in memory or on disk: the smallest change that makes it fit.
 */
#ifndef TRAIN_ADVICE_H
#define TRAIN_ADVICE_H

#include "comm/comm.h"
#include "config/config.h"
#include "engine/check/device_choice.h"
#include "sifr/model.h"

/* Adds the advice to the message of a refusal, which is the same on all ranks. All ranks call it;
 * the first one searches, which takes as long as some tens of plans, for the device that was
 * chosen. Returns SIFR_NO_MEMORY, or the error of the communication. */
sifr_status train_advise(comm_group *group, const sifr_model *model, const sifr_config *config,
                         const engine_device_choice *chosen, int64_t length,
                         sifr_error *error) SIFR_MUST_CHECK;

#endif
