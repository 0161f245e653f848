/* Adagrad, with the operations of device/cpu/vector/kernels_adagrad.c in their order. */
#include "device/cuda/vector/updates.h"

struct adagrad_rule : plain_copy {
    enum { STATES = 1 };
    struct numbers {
        float scale, decay, rate, epsilon;
    };
    DEVICE_MEMBER numbers of_step(const update_arguments &a) {
        numbers n;
        n.scale = a.step->update_scale;
        n.decay = a.weight_decay;
        n.rate = update_rate(a);
        n.epsilon = a.epsilon;
        return n;
    }
    DEVICE_MEMBER float apply(const numbers &n, float gradient, float *own) {
        float p = own[0], g = gradient * n.scale + n.decay * p;
        float s = own[1] + g * g;
        own[1] = s;
        own[0] = p - n.rate * g / (sqrtf(s) + n.epsilon);
        return own[0];
    }
};

KERNEL(adagrad, update_arguments, PACK_THREADS) {
    update_vector<adagrad_rule>(a);
}
