/* What `sifr plan` works out, and how it says it. */
#ifndef CLI_PLAN_REPORT_H
#define CLI_PLAN_REPORT_H

#include "cli/plan/plan_limits.h"
#include "config/config.h"
#include "engine/handle.h"
#include "engine/step_order.h"
#include "plan/search/search.h"
#include "train/output_room.h"

enum { CLI_PLAN_STAGES = 4 };

/* What was planned. */
typedef struct cli_plan_report {
    sifr_config config;
    formats_model_config model_config;
    sifr_model *model;
    device *dev;
    plan_machine machine;
    const char *machine_file; /* NULL: measured here */
    cli_plan_limits limits;
    train_disk disk;
    plan_search search;
    plan_memo *memo; /* of the search; owned */
    plan_schedule *schedule;
    engine_order_choice choice; /* of step_order "auto" */
    plan_outcome own;           /* the run's own */
    plan_outcome stages[CLI_PLAN_STAGES];
    plan_outcome changes[PLAN_NEIGHBOURS + 1];
    size_t change_count;
    int64_t largest_sequences, largest_length; /* that fit; 0: none */
    int64_t length;
    sifr_error too_large; /* message where there is less memory, or disk, than that */
} cli_plan_report;

/* The run's own plan, which is there at once; and what else there is, for which many are made. */
void cli_plan_print_own(const cli_plan_report *report);
void cli_plan_print_others(const cli_plan_report *report);
/* With `dump` the schedule as well. Returns an exit code. */
int cli_plan_print_json(const cli_plan_report *report, bool dump);

/* The plan beside what DeepSpeed's estimators say of the model. */
void cli_plan_print_deepspeed(const cli_plan_report *report);

/* What the i-th of the settings next to the report's own changes. */
const char *cli_plan_change(const cli_plan_report *report, size_t index, char out[256]);

/* "instruction 31, backward of h.11", "between steps" where `instruction` is negative. */
const char *cli_plan_place(const plan_schedule *schedule, int32_t instruction, char out[128]);

/* What a rank may put on the disk for state, and why: "put 1.5 TiB (2 ranks share the 3 TiB that
 * are free in /local_nvme)"; returns `out`. */
enum { CLI_PLAN_DISK_LENGTH = 320 };
const char *cli_plan_disk(const cli_plan_report *report, char out[CLI_PLAN_DISK_LENGTH]);

/* Takes over what fits best: into the report's config, and into `path`, or standard output where
 * that is NULL. With `json` standard output takes one object instead, the config in it.
 * SIFR_NO_MEMORY where nothing fits. */
sifr_status cli_plan_fit(cli_plan_report *report, const plan_settings *settings, const char *path,
                         bool json, sifr_error *error) SIFR_MUST_CHECK;

/* What was chosen, of how many plans, beside what was given, and the config of it. */
sifr_status cli_plan_print_fit_json(const cli_plan_report *report, const plan_outcome *given,
                                    const plan_outcome *chosen, int32_t tried,
                                    sifr_error *error) SIFR_MUST_CHECK;

#endif
