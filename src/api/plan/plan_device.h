/* What a plan is for: a machine file's device, this machine's GPU, or its CPU. */
#ifndef API_PLAN_DEVICE_H
#define API_PLAN_DEVICE_H

#include "api/plan/plan_report.h"

/* The run that is planned. */
typedef struct api_plan_run {
    int32_t ranks, here; /* of the run, and of a host */
    bool fit;            /* settings are to be chosen */
    const sifr_log *log;
} api_plan_run;

/* Opens report->dev: for the file report->machine_file, or without one what `sifr train` would run
 * on here. With sifr.device "cuda" and neither a file nor a GPU, SIFR_FAILED names --machine. */
sifr_status api_plan_open_device(api_plan_report *report, const sifr_settings *options,
                                 const api_plan_run *run, sifr_error *error) SIFR_MUST_CHECK;

/* Where the plan is for this machine's GPU: a rank's room there, and in host memory. */
void api_plan_take_capacities(api_plan_report *report, const api_plan_run *run);

#endif
