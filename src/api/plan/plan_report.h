/* The results of a plan, and what is said of them. */
#ifndef API_PLAN_REPORT_H
#define API_PLAN_REPORT_H

#include <jansson.h>
#include <stdio.h>

#include "api/plan/plan_limits.h"
#include "config/config.h"
#include "engine/check/step_order.h"
#include "engine/handle.h"
#include "plan/search/search.h"
#include "sifr/plan.h"
#include "train/prepare/output_space.h"

enum { API_PLAN_STAGES = 4 };

/* What was planned. */
typedef struct api_plan_report {
    sifr_plan_options options; /* with at least one rank */
    int64_t nvme_bytes;        /* of a disk that is given as a size; 0: it is not */
    const sifr_log *log;
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
    api_plan_limits limits;
    train_disk disk;
    plan_search search;
    plan_memo *memo; /* of the search; owned */
    plan_schedule *schedule;
    engine_order_choice choice; /* of step_order "auto" */
    plan_outcome own;           /* the run's own */
    plan_outcome stages[API_PLAN_STAGES];
    plan_outcome changes[PLAN_NEIGHBOURS + 1];
    size_t change_count;
    int64_t largest_sequences, largest_length; /* that fit; 0: none */
    int64_t length;
    sifr_error too_large; /* message if there is less memory or disk than that */
    bool has_others;      /* stages, changes and the largest are found */
    /* For --fit: axes that are to be chosen and have a size to begin with. */
    bool any_stages, any_tensors, any_contexts;
    plan_settings asked;      /* what the config says */
    plan_search fitted;       /* after it: the search ... */
    plan_outcome given, best; /* ... of these */
    plan_outcome coded;       /* the best one with transfers in codes (ZeRO++), where that pays;
                                 else not possible */
    plan_outcome compressed;  /* likewise, with gradients of low rank (PowerSGD) */
    FILE *to;                 /* where text is written to */
} api_plan_report;

/* The run's own plan, which is ready at once, and the results that need many more plans, as text to
 * report->to. */
void api_plan_print_own(const api_plan_report *report);
void api_plan_print_others(const api_plan_report *report);

/* A new object, with `dump` with the schedule; NULL: out of memory. */
json_t *api_plan_describe(const api_plan_report *report, bool dump);

/* Compares the plan with DeepSpeed's estimates for the model. */
void api_plan_print_deepspeed(const api_plan_report *report);

/* Describes the change of the i-th neighbouring setting. */
const char *api_plan_change(const api_plan_report *report, size_t index, char out[256]);

/* "instruction 31, backward of h.11"; "between steps" if `instruction` is negative. */
const char *api_plan_place(const plan_schedule *schedule, int32_t instruction, char out[128]);

/* The state that a rank may put on disk, and why: "put 1.5 TiB (2 ranks share the 3 TiB that are
 * free in /local_nvme)"; returns `out`. */
enum { API_PLAN_DISK_LENGTH = 320 };
const char *api_plan_disk(const api_plan_report *report, char out[API_PLAN_DISK_LENGTH]);

/* Puts the best settings that fit into the report's config. SIFR_NO_MEMORY if nothing fits. */
sifr_status api_plan_fit(api_plan_report *report, sifr_error *error) SIFR_MUST_CHECK;

/* After it: the chosen settings beside the given ones, the number of plans, and why; as text to
 * report->to, and as JSON with the config, whose text is `config`. */
void api_plan_print_fit(const api_plan_report *report);
json_t *api_plan_describe_fit(const api_plan_report *report, const char *config);

#endif
