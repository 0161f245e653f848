/* Chooses the step order ("step_order": "auto"): the one with the least predicted time of those
 * that fit.
 */
#ifndef ENGINE_STEP_ORDER_H
#define ENGINE_STEP_ORDER_H

#include "comm/comm.h"
#include "plan/price/price.h"

/* By sifr_step_order. */
typedef struct engine_order_choice {
    sifr_step_order order;
    bool fits[2];
    double seconds[2]; /* predicted, of a step; 0 with only one micro batch */
} engine_order_choice;

/* SIFR_NO_MEMORY, with the numbers, if a schedule takes more memory than a rank of `machine` has.
 */
sifr_status engine_fits(const plan_schedule *schedule, const plan_machine *machine,
                        sifr_error *error) SIFR_MUST_CHECK;

/* Plans both orders of `settings` (ignoring its own), prices them on `machine` and chooses one;
 * "batch" if neither fits. This is the choice of this rank only. *chosen, if wanted, is NULL or the
 * caller's plan of `settings` as they are, and becomes the plan in the chosen order; it is
 * unchanged if both orders give the same list. */
sifr_status engine_choose_order(const sifr_model *model, device *dev, const plan_settings *settings,
                                const plan_machine *machine, engine_order_choice *choice,
                                plan_schedule **chosen, sifr_error *error) SIFR_MUST_CHECK;

/* Whether one order fits on all ranks; an order that cannot be planned does not. */
sifr_status engine_order_fits(const sifr_model *model, device *dev, const plan_settings *settings,
                              const plan_machine *machine, sifr_step_order order, comm_group *group,
                              bool *fits, sifr_error *error) SIFR_MUST_CHECK;

/* The name in a config. */
const char *engine_order_name(sifr_step_order order);

/* Makes one choice for all ranks: it uses the first rank's prices, and an order fits only if it
 * fits on every rank. */
sifr_status engine_agree_order(comm_group *group, engine_order_choice *choice,
                               sifr_error *error) SIFR_MUST_CHECK;

/* Describes the choice: "unit: only that fits in memory", "batch: predicted 1.2 s a step, unit 1.5
 * s, on a usual machine" (not this one, so that all machines choose alike); returns `out`. */
const char *engine_order_text(const engine_order_choice *choice, char *out, size_t size);

#endif
