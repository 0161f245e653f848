/* What a training step would take and do, as `sifr plan` says it: from a config and the model's
 * config.json alone. No weights are read, no memory of the step is taken, nothing runs; of any
 * number of ranks, none of which has to be there.
 *
 *     sifr_plan_create(context, config, &options, &plan, &error);
 *     sifr_plan_figures figures = {.size = sizeof figures};
 *     sifr_plan_get(plan, &figures);
 *
 * A plan belongs to one thread at a time, and is made in one process. It uses several threads of
 * its own. The context must outlive it; the config is read only.
 */
#ifndef SIFR_PLAN_H
#define SIFR_PLAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "sifr/config.h"
#include "sifr/context.h"
#include "sifr/status.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct sifr_plan sifr_plan;

typedef struct sifr_plan_options {
    size_t size;            /* sizeof(sifr_plan_options) */
    int64_t ranks;          /* 0: 1 */
    int64_t rank;           /* whose plan it is */
    int64_t ranks_per_host; /* 0: all share one */
    const char *machine;    /* a file that describes the machine; NULL: this one, measured */
    int64_t device_memory;  /* bytes that a rank may take; 0: what is there */
    int64_t host_memory;    /* bytes that the ranks of a host may take together; 0: likewise */
    const char *nvme;       /* a directory for state, or a size ("4TiB") of each host's disk */
    bool fit; /* settings are to be chosen: by sifr_plan_fit, before which nothing is known */
} sifr_plan_options;

/* SIFR_OK also for a step that does not fit: sifr_plan_fits tells. SIFR_USAGE: a config, model or
 * option that is wrong. */
SIFR_API sifr_status sifr_plan_create(sifr_context *context, const sifr_config *config,
                                      const sifr_plan_options *options, sifr_plan **out,
                                      sifr_error *error) SIFR_MUST_CHECK;
SIFR_API void sifr_plan_free(sifr_plan *plan); /* NULL is harmless */

/* Of the rank, in bytes and seconds; after sifr_plan_fit of the step that was chosen, before it
 * zeros. */
typedef struct sifr_plan_figures {
    size_t size;              /* sizeof(sifr_plan_figures), set by the caller */
    int64_t parameters;       /* of the model */
    int64_t bytes;            /* of the device's memory (of the host's, on a CPU), at the peak */
    int64_t host_bytes;       /* of the host's memory beside a device's own; 0 on a CPU */
    int64_t nvme_bytes;       /* on disk */
    int64_t baseline_bytes;   /* that the program itself takes beside it, about */
    int64_t room_bytes;       /* that the rank may take; INT64_MAX: not known */
    int64_t ranks_per_host;   /* as an option or the machine's file says; 0: all share one */
    int64_t checkpoint_bytes; /* of one checkpoint of all ranks */
    int64_t micro_batch_size, gradient_accumulation_steps, seq_length;
    double step_seconds; /* predicted */
    double tokens_per_second;
    bool fits;
} sifr_plan_figures;
SIFR_API void sifr_plan_get(const sifr_plan *plan, sifr_plan_figures *out);

/* Memory by what it holds. */
typedef struct sifr_plan_class {
    size_t size;                    /* sizeof(sifr_plan_class), set by the caller */
    const char *name;               /* "parameters", "gradients"; static */
    int64_t bytes;                  /* at the peak of all classes together */
    int64_t most_bytes;             /* at this class's own peak */
    int64_t host_bytes, nvme_bytes; /* on these tiers */
} sifr_plan_class;
/* The class number `index`, from 0; false behind the last one, and with options.fit. The last one
 * is "gaps", what lies between the others: their bytes add up to the figures' `bytes`. */
SIFR_API bool sifr_plan_class_at(const sifr_plan *plan, size_t index, sifr_plan_class *out);

/* SIFR_NO_MEMORY, with all that is too large for what there is, where the step does not fit; the
 * text SIFR_PLAN_OTHERS says what would. */
SIFR_API sifr_status sifr_plan_fits(const sifr_plan *plan, sifr_error *error) SIFR_MUST_CHECK;

/* The texts are the caller's: sifr_text_free. Those that compare the step with others make many
 * more plans at the first call, which takes seconds. */

/* The object that `sifr plan --json` prints; `schedule`: with the instructions of the step. After
 * sifr_plan_fit that of `sifr plan --fit --json`. */
SIFR_API sifr_status sifr_plan_json(sifr_plan *plan, bool schedule, char **out,
                                    sifr_error *error) SIFR_MUST_CHECK;

typedef enum sifr_plan_part {
    SIFR_PLAN_OWN,       /* the step: memory, wire, time, whether it fits */
    SIFR_PLAN_OTHERS,    /* what else would fit, settings next to these, the ZeRO stages */
    SIFR_PLAN_SCHEDULE,  /* an instruction a line */
    SIFR_PLAN_DEEPSPEED, /* beside what DeepSpeed's estimators say */
    SIFR_PLAN_CHOSEN     /* after sifr_plan_fit: what was chosen, beside what was given, and why */
} sifr_plan_part;
/* Lines for a person to read. */
SIFR_API sifr_status sifr_plan_text(sifr_plan *plan, sifr_plan_part part, char **out,
                                    sifr_error *error) SIFR_MUST_CHECK;

/* Of a plan with options.fit: finds the settings with the least predicted time that fit, as `sifr
 * plan --fit`: stage, micro batch of the same global batch, recomputation, order, tiers. *out is
 * the config with them, resolved, and the caller's. SIFR_NO_MEMORY if nothing fits. */
SIFR_API sifr_status sifr_plan_fit(sifr_plan *plan, sifr_config **out,
                                   sifr_error *error) SIFR_MUST_CHECK;

#ifdef __cplusplus
}
#endif
#endif
