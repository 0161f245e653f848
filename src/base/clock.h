/* The clock of all timings. */
#ifndef BASE_CLOCK_H
#define BASE_CLOCK_H

/* CLOCK_MONOTONIC, which all processes of a host share. */
double base_seconds(void);

/* The time of the day: seconds since 1970, which may jump. */
double base_seconds_since_1970(void);

#endif
