/* What was tried so far, found again by its settings. Any thread may ask and add at any time. */
#ifndef PLAN_MEMO_H
#define PLAN_MEMO_H

#include "plan/search/search.h"

/* Whether `settings` were tried, and with their time and traffic where that is asked; then *out. A
 * memo of NULL knows nothing. */
bool plan_memo_find(plan_memo *memo, const plan_settings *settings, bool priced, plan_outcome *out);

/* Where there is no memory for it, it is not kept. */
void plan_memo_keep(plan_memo *memo, const plan_outcome *outcome, bool priced);

#endif
