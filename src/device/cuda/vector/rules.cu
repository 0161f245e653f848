/* The kernels of update_rules.h. */
#include "device/cuda/vector/updates.h"

#define UPDATE_RULE DEVICE
typedef update_arguments update_settings;
#include "device/update_rules.h"

#define DEVICE_UPDATE_RULE(NAME, name)                                                             \
    struct name##_rule : plain_copy {                                                              \
        enum { STATES = 1 };                                                                       \
        typedef name##_numbers numbers;                                                            \
        DEVICE_MEMBER numbers of_step(const update_arguments &a) {                                 \
            return name##_of_step(a.step, &a);                                                     \
        }                                                                                          \
        DEVICE_MEMBER float apply(const numbers &n, float gradient, float *own) {                  \
            name##_apply(&n, gradient, &own[0], &own[1]);                                          \
            return own[0];                                                                         \
        }                                                                                          \
    };                                                                                             \
    KERNEL(name, update_arguments, PACK_THREADS) {                                                 \
        update_vector<name##_rule>(a);                                                             \
    }
#define DEVICE_UPDATE(...)
#include "device/kernels.def"
