/* A cache of outcomes by settings. Any thread may read and add at any time. */
#ifndef PLAN_MEMO_H
#define PLAN_MEMO_H

#include "plan/search/search.h"

/* Finds the outcome of `settings`; with `priced`, only one that has time and traffic. A NULL memo
 * is empty. */
bool plan_memo_find(plan_memo *memo, const plan_settings *settings, bool priced, plan_outcome *out);

/* Adds an outcome. Drops it if memory is short. */
void plan_memo_keep(plan_memo *memo, const plan_outcome *outcome, bool priced);

#endif
