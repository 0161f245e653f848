/* SGD, with the operations of device/cpu/vector/kernels_sgd.c in their order. */
#include "device/cuda/vector/updates.h"

struct sgd_rule : plain_copy {
    enum { STATES = 0 };
    struct numbers {
        float scale, decay, rate, momentum, share;
        bool nesterov;
    };
    DEVICE_MEMBER numbers of_step(const update_arguments &a) {
        const device_step *s = a.step;
        numbers n;
        n.scale = s->update_scale;
        n.decay = a.weight_decay;
        n.rate = update_rate(a);
        n.momentum = s->beta1;
        n.share = s->share;
        n.nesterov = a.nesterov;
        return n;
    }
    DEVICE_MEMBER float apply(const numbers &n, float gradient, float *own) {
        float p = own[0];
        own[0] = p - n.rate * (gradient * n.scale + n.decay * p);
        return own[0];
    }
};

struct momentum_rule : sgd_rule {
    enum { STATES = 1 };
    DEVICE_MEMBER float apply(const numbers &n, float gradient, float *own) {
        float p = own[0], g = gradient * n.scale + n.decay * p;
        float m = n.momentum * own[1] + n.share * g;
        own[1] = m;
        own[0] = p - n.rate * (n.nesterov ? g + n.momentum * m : m);
        return own[0];
    }
};

KERNEL(sgd, update_arguments, PACK_THREADS) {
    update_vector<sgd_rule>(a);
}

KERNEL(momentum, update_arguments, PACK_THREADS) {
    update_vector<momentum_rule>(a);
}
