/* What `sifr plan` works out, and how it says it. */
#ifndef CLI_PLAN_REPORT_H
#define CLI_PLAN_REPORT_H

#include "engine/engine.h"
#include "engine/step_order.h"
#include "plan/price.h"
#include "train/config.h"

enum { CLI_PLAN_STAGES = 4 };

/* One ZeRO stage of the same run, beside the others. Bytes are those of this rank. */
typedef struct cli_plan_stage {
    plan_order order;
    int64_t classes[PLAN_CLASSES]; /* each class at its own largest */
    int64_t total_bytes;
    int64_t gathered, reduced; /* delivered to this rank in a step */
    int32_t gathers, reductions;
    plan_prediction predicted;
    bool fits;
} cli_plan_stage;

/* What was planned. */
typedef struct cli_plan_report {
    train_config config;
    formats_model_config model_config;
    sifr_model *model;
    device *dev;
    plan_machine machine;
    const char *machine_file; /* NULL: measured here */
    plan_schedule *schedule;
    engine_order_choice choice;             /* of step_order "auto" */
    cli_plan_stage stage;                   /* the run's own */
    cli_plan_stage stages[CLI_PLAN_STAGES]; /* where there are several ranks */
    int64_t length;
    uint64_t baseline;    /* anonymous memory of the program with the plan */
    sifr_error too_large; /* message where this machine has less memory than that */
} cli_plan_report;

void cli_plan_print(const cli_plan_report *report);
/* With `dump` the schedule as well. Returns an exit code. */
int cli_plan_print_json(const cli_plan_report *report, bool dump);

#endif
