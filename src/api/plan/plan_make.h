/* Making a plan: the model, the device, the machine, the limits, and the config's own step. */
#ifndef API_PLAN_MAKE_H
#define API_PLAN_MAKE_H

#include "api/plan/plan_report.h"

/* Starts with report->config (not resolved), options, machine_file and log; fills in the rest,
 * with options.fit up to the search. After a failure, too, api_plan_unmake gives all of it back. */
sifr_status api_plan_make(api_plan_report *report, sifr_error *error) SIFR_MUST_CHECK;
void api_plan_unmake(api_plan_report *report); /* harmless on a zeroed one */

/* The stages beside each other, the settings next to these, the limits: many plans, once. */
sifr_status api_plan_others(api_plan_report *report, sifr_error *error) SIFR_MUST_CHECK;

#endif
