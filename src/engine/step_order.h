/* Which order of a step ("step_order": "auto"): of those that fit, the one with the least predicted
 * time. */
#ifndef ENGINE_STEP_ORDER_H
#define ENGINE_STEP_ORDER_H

#include "comm/comm.h"
#include "plan/price/price.h"

/* By sifr_step_order. */
typedef struct engine_order_choice {
    sifr_step_order order;
    bool fits[2];
    double seconds[2]; /* predicted, of a step; 0 where there is only one micro batch */
} engine_order_choice;

/* SIFR_NO_MEMORY, with the numbers, where a schedule takes more than a rank of `machine` has. */
sifr_status engine_fits(const plan_schedule *schedule, const plan_machine *machine,
                        sifr_error *error) SIFR_MUST_CHECK;

/* Plans both orders of `settings` (whose own says nothing), prices them on `machine` and chooses.
 * Where neither fits, that of batches is named. This rank's word alone. *chosen, where that is
 * wanted, is NULL or the caller's plan of `settings` as they are, and becomes the caller's plan in
 * the order that is chosen; it stays what it is where both orders are the same list. */
sifr_status engine_choose_order(const sifr_model *model, device *dev, const plan_settings *settings,
                                const plan_machine *machine, engine_order_choice *choice,
                                plan_schedule **chosen, sifr_error *error) SIFR_MUST_CHECK;

/* Makes one choice of all ranks': the first one's prices, and an order fits where it fits on every
 * rank. */
sifr_status engine_agree_order(comm_group *group, engine_order_choice *choice,
                               sifr_error *error) SIFR_MUST_CHECK;

/* "unit: only that fits in memory", "batch: predicted 1.2 s a step, unit 1.5 s"; returns `out`. */
const char *engine_order_text(const engine_order_choice *choice, char *out, size_t size);

#endif
