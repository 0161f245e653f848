/* The rules of updates with one state, of kernels/updates.def: what becomes of an element's weight
 * and state. The CPU's compiler takes this text for each instruction set, and that of GPUs once, so
 * both do the same operations in the same order. NAME of a row has the struct NAME_numbers, which
 * NAME_of_step makes once a call, and NAME_apply. Who includes this defines UPDATE_RULE, which
 * stands before a function, and update_settings, a struct with the fields of a call's
 * attributes.update. */

UPDATE_RULE float rule_rate(const device_step *s, const update_settings *a) {
    return s->learning_rate * a->lr_scale;
}

typedef struct adagrad_numbers {
    float scale, decay, rate, epsilon;
} adagrad_numbers;

UPDATE_RULE adagrad_numbers adagrad_of_step(const device_step *s, const update_settings *a) {
    adagrad_numbers n;
    n.scale = s->update_scale;
    n.decay = a->weight_decay;
    n.rate = rule_rate(s, a);
    n.epsilon = a->epsilon;
    return n;
}

UPDATE_RULE void adagrad_apply(const adagrad_numbers *n, float gradient, float *weight,
                               float *sum) {
    float p = *weight, g = gradient * n->scale + n->decay * p;
    float s = *sum + g * g;
    *sum = s;
    *weight = p - n->rate * g / (sqrtf(s) + n->epsilon);
}

typedef struct lion_numbers {
    float scale, shrink, rate, beta1, beta2, rest1, rest2;
} lion_numbers;

UPDATE_RULE lion_numbers lion_of_step(const device_step *s, const update_settings *a) {
    lion_numbers n;
    n.scale = s->update_scale;
    n.shrink = 1.0f - rule_rate(s, a) * a->weight_decay;
    n.rate = rule_rate(s, a);
    n.beta1 = s->beta1;
    n.beta2 = s->beta2;
    n.rest1 = (float)(1.0 - (double)n.beta1);
    n.rest2 = (float)(1.0 - (double)n.beta2);
    return n;
}

UPDATE_RULE void lion_apply(const lion_numbers *n, float gradient, float *weight, float *momentum) {
    float g = gradient * n->scale, m = *momentum;
    float c = n->beta1 * m + n->rest1 * g;
    float up = c > 0.0f ? n->rate : 0.0f, down = c < 0.0f ? n->rate : 0.0f;
    *weight = *weight * n->shrink - up + down;
    *momentum = n->beta2 * m + n->rest2 * g;
}
