/* Schedule-free AdamW, with the operations of device/cpu/vector/kernels_schedule_free.c in their
 * order. */
#include "device/cuda/vector/updates.h"

struct schedule_free_rule {
    enum { STATES = 2, SHOWN = 1 };
    struct numbers {
        float scale, decay, rate, beta2, rest1, rest2, epsilon, root, share, rest;
    };
    DEVICE_MEMBER numbers of_step(const update_arguments &a) {
        const device_step *s = a.step;
        numbers n;
        n.scale = s->update_scale;
        n.decay = a.weight_decay;
        n.rate = update_rate(a);
        n.beta2 = s->beta2;
        n.rest1 = (float)(1.0 - (double)s->beta1);
        n.rest2 = (float)(1.0 - (double)s->beta2);
        n.epsilon = a.epsilon;
        n.root = 1.0f / sqrtf(s->correction2);
        n.share = s->share;
        n.rest = (float)(1.0 - (double)s->share);
        return n;
    }
    DEVICE_MEMBER float shown(const numbers &n, const float *own) {
        return own[0] + n.rest1 * own[1];
    }
    DEVICE_MEMBER float apply(const numbers &n, float gradient, float *own) {
        float x = own[0], d = own[1], g = gradient * n.scale;
        float v = n.beta2 * own[2] + n.rest2 * (g * g);
        float y = x + n.rest1 * d;
        d = d - n.rate * (g / (sqrtf(v) * n.root + n.epsilon) + n.decay * y);
        own[0] = x + n.share * d;
        own[1] = n.rest * d;
        own[2] = v;
        return shown(n, own);
    }
};

KERNEL(schedule_free, update_arguments, PACK_THREADS) {
    update_vector<schedule_free_rule>(a);
}
