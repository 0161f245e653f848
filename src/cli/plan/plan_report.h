/* The results of `sifr plan` and their output. */
#ifndef CLI_PLAN_REPORT_H
#define CLI_PLAN_REPORT_H

#include "cli/plan/plan_limits.h"
#include "config/config.h"
#include "engine/check/step_order.h"
#include "engine/handle.h"
#include "plan/search/search.h"
#include "train/prepare/output_room.h"

enum { CLI_PLAN_STAGES = 4 };

/* What was planned. */
typedef struct cli_plan_report {
    sifr_config config;
    model_lora lora;
    model_config model_config;
    sifr_model *model;
    device *dev;
    plan_machine machine;
    plan_machine order_machine; /* by which step_order "auto" is chosen: not measured */
    const char *machine_file;   /* NULL: measured here */
    bool measured;              /* `machine` has figures that are measured here */
    int32_t ranks_per_node;     /* of this machine's NUMA nodes; 0: one node, or not known */
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
    sifr_error too_large; /* message if there is less memory or disk than that */
} cli_plan_report;

/* The run's own plan, which is ready at once, and the results that need many more plans. */
void cli_plan_print_own(const cli_plan_report *report);
void cli_plan_print_others(const cli_plan_report *report);
/* Prints the report, and with `dump` the schedule. Returns an exit code. */
int cli_plan_print_json(const cli_plan_report *report, bool dump);

/* Compares the plan with DeepSpeed's estimates for the model. */
void cli_plan_print_deepspeed(const cli_plan_report *report);

/* Describes the change of the i-th neighbouring setting. */
const char *cli_plan_change(const cli_plan_report *report, size_t index, char out[256]);

/* "instruction 31, backward of h.11"; "between steps" if `instruction` is negative. */
const char *cli_plan_place(const plan_schedule *schedule, int32_t instruction, char out[128]);

/* The state that a rank may put on disk, and why: "put 1.5 TiB (2 ranks share the 3 TiB that are
 * free in /local_nvme)"; returns `out`. */
enum { CLI_PLAN_DISK_LENGTH = 320 };
const char *cli_plan_disk(const cli_plan_report *report, char out[CLI_PLAN_DISK_LENGTH]);

/* Puts the best settings that fit into the report's config and writes it to `path`, or to standard
 * output if that is NULL. With `json`, prints one object that contains the config instead.
 * SIFR_NO_MEMORY if nothing fits. */
sifr_status cli_plan_fit(cli_plan_report *report, const plan_settings *settings, const char *path,
                         bool json, sifr_error *error) SIFR_MUST_CHECK;

/* Prints the chosen settings beside the given ones, the number of plans, and the config. */
sifr_status cli_plan_print_fit_json(const cli_plan_report *report, const plan_outcome *given,
                                    const plan_outcome *chosen, const plan_search *search,
                                    sifr_error *error) SIFR_MUST_CHECK;

#endif
