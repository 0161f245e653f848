/* The kernels of update_rules.h. */
#include "device/cpu/vector/update.h"

#define UPDATE_RULE static inline
typedef device_update_attributes update_settings;
#include "device/update_rules.h"

#define DEVICE_UPDATE_RULE(NAME, name)                                                             \
    static inline void name##_run(name##_numbers n, const float *restrict gradient,                \
                                  float *restrict weights, float *restrict state, int64_t count) { \
        for (int64_t i = 0; i < count; i++) name##_apply(&n, gradient[i], &weights[i], &state[i]); \
    }                                                                                              \
    static void name##_piece(const void *numbers, const update_piece *piece) {                     \
        name##_run(*(const name##_numbers *)numbers, piece->gradient, piece->weights,              \
                   piece->states[0], piece->count);                                                \
    }                                                                                              \
    void KERNEL(name)(const cpu_part *part) {                                                      \
        const device_call *c = part->call;                                                         \
        name##_numbers numbers = name##_of_step(c->step, &c->attributes.update);                   \
        update_part(part, 1, UPDATE_PLAIN, name##_piece, &numbers);                                \
    }
#define DEVICE_UPDATE(...)
#include "device/kernels.def"
