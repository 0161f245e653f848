/* The clock of all timings. */
#ifndef BASE_CLOCK_H
#define BASE_CLOCK_H

/* CLOCK_MONOTONIC, which all processes of a host share. */
double base_seconds(void);

#endif
