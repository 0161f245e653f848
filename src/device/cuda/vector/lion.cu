/* Lion, with the operations of device/cpu/vector/kernels_lion.c in their order. */
#include "device/cuda/vector/updates.h"

struct lion_rule : plain_copy {
    enum { STATES = 1 };
    struct numbers {
        float scale, shrink, rate, beta1, beta2, rest1, rest2;
    };
    DEVICE_MEMBER numbers of_step(const update_arguments &a) {
        const device_step *s = a.step;
        numbers n;
        n.scale = s->update_scale;
        n.shrink = 1.0f - update_rate(a) * a.weight_decay;
        n.rate = update_rate(a);
        n.beta1 = s->beta1;
        n.beta2 = s->beta2;
        n.rest1 = (float)(1.0 - (double)n.beta1);
        n.rest2 = (float)(1.0 - (double)n.beta2);
        return n;
    }
    DEVICE_MEMBER float apply(const numbers &n, float gradient, float *own) {
        float g = gradient * n.scale, m = own[1];
        float c = n.beta1 * m + n.rest1 * g;
        float up = c > 0.0f ? n.rate : 0.0f, down = c < 0.0f ? n.rate : 0.0f;
        own[0] = own[0] * n.shrink - up + down;
        own[1] = n.beta2 * m + n.rest2 * g;
        return own[0];
    }
};

KERNEL(lion, update_arguments, PACK_THREADS) {
    update_vector<lion_rule>(a);
}
