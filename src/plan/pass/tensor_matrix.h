/* Updates that read whole weights (optim_row.reads_whole), of weights that tensor ranks divide. For
 * pass_tensors.c. */
#ifndef PLAN_TENSOR_MATRIX_H
#define PLAN_TENSOR_MATRIX_H

#include "plan/list.h"

/* Whether an instruction changes the values of a weight of which this rank has a part alone. */
bool plan_changes_part(const plan_schedule *schedule, const plan_instruction *instruction);

/* In its place: a gather brings the values of all tensor ranks, the kernel changes those of the
 * logical weight, and this rank takes its own from it. All ranks at this place of PLAN_STATE have
 * the same such instructions. */
sifr_status plan_change_matrix(plan_schedule *schedule, const plan_list *old,
                               const plan_instruction *instruction,
                               sifr_error *error) SIFR_MUST_CHECK;

#endif
