/* What a run did, as JSON. */
#ifndef API_RUN_REPORT_H
#define API_RUN_REPORT_H

#include "config/config.h"
#include "train/loop.h"

/* `config`: as the run resolved it. *out is the caller's to free. */
sifr_status api_run_report(const sifr_config *config, const train_outcome *outcome, char **out,
                           sifr_error *error) SIFR_MUST_CHECK;

#endif
