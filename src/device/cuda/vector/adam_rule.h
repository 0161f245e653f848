/* The rules of Adam and AMSGrad (updates.h), with the operations of
 * device/cpu/vector/kernels_adam.c in their order. */
#ifndef CUDA_ADAM_RULE_H
#define CUDA_ADAM_RULE_H

#include "device/cuda/vector/updates.h"

/* Numbers of the moments of Adam and LAMB. */
struct moment_numbers {
    float scale, beta1, beta2, rest1, rest2, epsilon, root;
};

DEVICE void set_moment_numbers(const update_arguments &a, moment_numbers *n) {
    const device_step *s = a.step;
    n->scale = s->update_scale;
    n->beta1 = s->beta1;
    n->beta2 = s->beta2;
    n->rest1 = (float)(1.0 - (double)n->beta1);
    n->rest2 = (float)(1.0 - (double)n->beta2);
    n->epsilon = a.epsilon;
    n->root = 1.0f / sqrtf(s->correction2);
}

DEVICE void move_moments(const moment_numbers &n, float g, float *m, float *v) {
    *m = n.beta1 * *m + n.rest1 * g;
    *v = n.beta2 * *v + n.rest2 * (g * g);
}

struct adam_rule : plain_copy {
    enum { STATES = 2 };
    struct numbers : moment_numbers {
        float shrink, l2, rate;
    };
    DEVICE_MEMBER numbers of_step(const update_arguments &a) {
        numbers n;
        set_moment_numbers(a, &n);
        n.shrink = a.decoupled ? 1.0f - update_rate(a) * a.weight_decay : 1.0f;
        n.l2 = a.decoupled ? 0.0f : a.weight_decay;
        n.rate = update_rate(a) / a.step->correction1;
        return n;
    }
    /* The largest second moment so far takes its place in the last line of AMSGrad. */
    template <bool largest> DEVICE_MEMBER float move(const numbers &n, float gradient, float *own) {
        float p = own[0], g = gradient * n.scale + n.l2 * p;
        move_moments(n, g, &own[1], &own[2]);
        float v = own[2];
        if (largest) own[3] = v = own[3] > v ? own[3] : v;
        own[0] = p * n.shrink - n.rate * own[1] / (sqrtf(v) * n.root + n.epsilon);
        return own[0];
    }
    DEVICE_MEMBER float apply(const numbers &n, float gradient, float *own) {
        return move<false>(n, gradient, own);
    }
};

struct amsgrad_rule : adam_rule {
    enum { STATES = 3 };
    DEVICE_MEMBER float apply(const numbers &n, float gradient, float *own) {
        return move<true>(n, gradient, own);
    }
};

#endif
