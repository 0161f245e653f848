/* DeepSpeed's own estimates of the memory of a model's states (deepspeed/runtime/zero:
 * estimate_zero2_model_states_mem_needs, estimate_zero3_model_states_mem_needs, 0.19), for
 * comparison with a plan. Neither includes activations. */
#ifndef PLAN_DEEPSPEED_H
#define PLAN_DEEPSPEED_H

#include <stdbool.h>
#include <stdint.h>

#include "model/description.h"

typedef struct plan_deepspeed {
    double parameters;    /* of the model; tied parameters count once */
    double largest_layer; /* parameters of the largest layer; stage 3 */
    int64_t ranks_per_host, hosts;
    int stage;              /* 2 or 3 */
    bool offload_optimizer; /* to the host */
    bool offload_param;     /* stage 3, with the optimizer */
    bool partitioned_init;  /* stage 3: zero.Init */
} plan_deepspeed;

/* Bytes of a GPU and of a host; the host's include DeepSpeed's factor of 1.5 for buffers. */
void plan_deepspeed_estimate(const plan_deepspeed *of, int64_t *gpu, int64_t *host);

/* Parameters of the largest layer as DeepSpeed counts them: a layer is one module, with the weight
 * and the bias of one product, table or norm. */
int64_t plan_largest_layer(const sifr_model *model);

#endif
