/* The text of a flops profile. */
#ifndef TRAIN_FLOPS_TABLE_H
#define TRAIN_FLOPS_TABLE_H

#include "train/profile/flops.h"

/* By malloc; NULL if memory ran out. */
char *train_flops_table(const train_flops *flops, double step_seconds, size_t *size);

#endif
