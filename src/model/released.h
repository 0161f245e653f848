/* Models by the names under which they are released: what their config.json says of the model, so
 * that a step can be planned before anything is fetched. No weights, and no tokenizer. */
#ifndef MODEL_RELEASED_H
#define MODEL_RELEASED_H

#include <stddef.h>

/* "google/gemma-4-31B", with or without the owner, in any case of letters: the text of a
 * config.json and the name as it is written; NULL for others. */
const char *model_released_config(const char *name, const char **spelt);

/* Of a name that is none of these: the nearest one, with its owner; NULL: none is near. */
const char *model_released_near(const char *name);

/* The names, separated by commas, for messages; returns out. */
const char *model_released_list(char *out, size_t size);

#endif
