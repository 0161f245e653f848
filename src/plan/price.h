/* What instructions should take on some hardware, which need not be at hand. */
#ifndef PLAN_PRICE_H
#define PLAN_PRICE_H

#include "plan/schedule.h"

/* A description of a rank's share of a machine. */
typedef struct plan_machine {
    double fp32_operations, bf16_operations; /* multiply-add loop, operations a second */
    double memory_bytes;                     /* stream bandwidth, bytes a second */
    double instruction_seconds;              /* spent on any instruction */
} plan_machine;

/* Floating-point operations of products, and bytes that a call must read or write at least once. */
void plan_cost(const device_call *call, double *operations, double *bytes);

/* Predicted seconds of instruction `index`: the longer of computing and moving. */
double plan_price(const plan_schedule *schedule, size_t index, const plan_machine *machine);

/* Operations of all products of a step. */
double plan_operations(const plan_schedule *schedule);

#endif
