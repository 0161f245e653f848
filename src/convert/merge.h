/* Adapters put into the weights of their base, and taken out again. */
#ifndef CONVERT_MERGE_H
#define CONVERT_MERGE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/errors.h"

typedef struct convert_merged {
    int64_t parameters;
    uint64_t bytes;
    int64_t modules; /* that the adapter changed */
} convert_merged;

/* Writes the folder `destination`, new or empty: the model folder `base` with W + scale B A in
 * place of each adapted W, and with the other weights that `adapter` has. With `out` it has W -
 * scale B A instead, so a merged folder becomes the base again, but for rounding; then an adapter
 * that replaced weights of the base is SIFR_USAGE. Weights are read and written piece by piece, in
 * the base's types; those that do not change are copied byte for byte. */
sifr_status convert_merge(const char *base, const char *adapter, const char *destination, bool out,
                          const sifr_log *log, convert_merged *merged,
                          sifr_error *error) SIFR_MUST_CHECK;

#endif
