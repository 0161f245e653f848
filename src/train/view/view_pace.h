/* What a step takes, for the time that is left. */
#ifndef TRAIN_VIEW_PACE_H
#define TRAIN_VIEW_PACE_H

#include <stddef.h>

enum { TRAIN_VIEW_PACES = 64 }; /* values that it goes by */

/* The newest values; {0}: none. */
typedef struct train_view_pace {
    double seconds[TRAIN_VIEW_PACES];
    size_t added; /* in all */
} train_view_pace;

/* Seconds of a step that is done, or of each of several. What is no positive number is left out. */
void train_view_pace_add(train_view_pace *pace, double seconds);

/* Seconds of a step: the mean of the newest values, without the largest one or two where they are
 * more than twice the next: a single step in which the machine did something else does not move it,
 * and steps that are slow regularly count. 0: there is none yet. */
double train_view_pace_seconds(const train_view_pace *pace);

#endif
