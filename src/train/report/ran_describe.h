/* What did the work of a run, as JSON. */
#ifndef TRAIN_RAN_DESCRIBE_H
#define TRAIN_RAN_DESCRIBE_H

#include <jansson.h>

#include "train/report/ran.h"

/* A new object, one key a line and none of them nested, so that scripts can read it by lines. NULL:
 * out of memory. */
json_t *train_ran_json(const train_ran *ran);

#endif
