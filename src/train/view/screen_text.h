/* The words of a followed run: its state, and its newest figures. */
#ifndef TRAIN_VIEW_SCREEN_TEXT_H
#define TRAIN_VIEW_SCREEN_TEXT_H

#include <stdbool.h>
#include <stddef.h>

#include "train/view/view_follow.h"

/* "running", "failed: ...", "no record yet", "no new record for 2:31"; returns out. */
const char *train_screen_state(const train_view_follow *follow, bool utf8, char *out, size_t size);

/* "out  step 1200/2000  60 %  1:02 left  running", in fewer than `columns` columns; 0: all. */
void train_screen_head(const train_view_follow *follow, bool utf8, int columns, char *out,
                       size_t size);

/* "loss 4.0909  lowest 3.9078 at 7  eval loss 4.1  lr 0.003 ...", likewise. */
void train_screen_figures(const train_view_follow *follow, int columns, char *out, size_t size);

/* "2:31", "1:02:31"; returns out. */
const char *train_screen_time(double seconds, char out[32]);

/* "4.0909", or "1e+300" of what would be long; returns out. */
const char *train_screen_loss(double loss, char out[32]);

/* "37.4k"; returns out. */
const char *train_screen_rate(double rate, char out[32]);

#endif
