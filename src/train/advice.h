/* What a run that does not fit in memory or on disk is told: the smallest change that makes it fit.
 */
#ifndef TRAIN_ADVICE_H
#define TRAIN_ADVICE_H

#include "comm/comm.h"
#include "config/config.h"
#include "sifr/model.h"

/* Adds that to the message of a refusal, which all ranks have alike; all of them call it. The first
 * rank looks for it, which takes as long as some tens of plans. Returns SIFR_NO_MEMORY, or what
 * went wrong between the ranks. */
sifr_status train_advise(comm_group *group, const sifr_model *model, const sifr_config *config,
                         int64_t length, sifr_error *error) SIFR_MUST_CHECK;

#endif
