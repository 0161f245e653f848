#include "model/tensor_parts.h"

#include "base/assert.h"
#include "base/checked.h"

model_portion model_portion_of(int64_t count, int32_t ranks, int32_t place) {
    base_assert(count >= 0 && ranks >= 1 && place >= 0 && place < ranks);
    int64_t each = count / ranks, more = count % ranks;
    int64_t first = place * each + base_min_i64(place, more);
    return (model_portion){first, first + each + (place < more)};
}
