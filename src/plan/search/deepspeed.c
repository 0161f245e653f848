#include "plan/search/deepspeed.h"

#include "base/checked.h"

/* Rounds towards zero, like Python's int(). */
static int64_t whole(double value) {
    return (int64_t)value;
}

static double larger(double a, double b) {
    return a > b ? a : b;
}

/* Every rank has 2 bytes of 16-bit parameters. Divided among ranks: 2 bytes of 16-bit gradients, 4
 * of FP32 gradients, 12 of optimizer state. */
static void estimate_2(const plan_deepspeed *of, double ranks, double *gpu, double *host) {
    double psi = of->parameters;
    *gpu = of->offload_optimizer ? 2 * psi : 2 * psi + (double)whole(18 * psi / ranks);
    *host =
        of->offload_optimizer ? psi * larger(4 * ranks, 16) : psi * 4 * (double)of->ranks_per_host;
}

static void estimate_3(const plan_deepspeed *of, double ranks, double *gpu, double *host) {
    double psi = of->parameters, layer = 4 * of->largest_layer;
    double here = 4 * (double)of->ranks_per_host, part = 1 / (double)of->hosts;
    *gpu = layer;
    if (!of->offload_optimizer)
        *gpu += (double)whole(18 * psi / ranks);
    else if (!of->offload_param)
        *gpu += (double)whole(2 * psi / ranks);
    if (!of->offload_optimizer) {
        *host = (of->partitioned_init ? of->largest_layer : psi) * here;
    } else {
        double state = (of->offload_param ? 18 : 16) * part;
        *host = psi * (of->partitioned_init ? state : larger(here, state));
    }
}

void plan_deepspeed_estimate(const plan_deepspeed *of, int64_t *gpu, int64_t *host) {
    static const double buffers = 1.5;
    double ranks = (double)of->ranks_per_host * (double)of->hosts, device_bytes, host_bytes;
    if (of->stage == 2)
        estimate_2(of, ranks, &device_bytes, &host_bytes);
    else
        estimate_3(of, ranks, &device_bytes, &host_bytes);
    *gpu = whole(device_bytes);
    *host = whole(host_bytes * buffers);
}

int64_t plan_largest_layer(const sifr_model *model) {
    int64_t largest = 0;
    for (size_t n = 0; n < model->node_count; n++) {
        int64_t elements = 0;
        for (int w = 0; w < DEVICE_WEIGHTS; w++) {
            if (model->nodes[n].w[w] < 0) continue;
            const model_weight *weight = &model->weights[model->nodes[n].w[w]];
            elements += weight->rows * weight->columns;
        }
        largest = base_max_i64(largest, elements);
    }
    return largest;
}
