/* What `sifr doctor` says about GPUs. */
#ifndef CLI_DOCTOR_GPU_H
#define CLI_DOCTOR_GPU_H

#include <jansson.h>

/* Sets "gpu" of the report, and adds to its "advice". */
void doctor_examine_gpus(json_t *report);

/* Prints that part as lines. */
void doctor_print_gpus(const json_t *gpu);

#endif
