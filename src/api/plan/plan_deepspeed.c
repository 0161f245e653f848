/* Compares a plan with DeepSpeed's memory estimators. */
#include <stdio.h>

#include "api/plan/plan_report.h"
#include "base/text.h"
#include "plan/search/deepspeed.h"

/* The classes that the estimators count: parameters, gradients, optimizer state, gathered
 * parameters, and the buffers of offloaded state. */
static int64_t states_of(const plan_outcome *o) {
    static const plan_class states[] = {PLAN_PARAMETERS, PLAN_GATHERED, PLAN_SECONDARY,
                                        PLAN_DECODED,    PLAN_MASTERS,  PLAN_MOMENTS,
                                        PLAN_GRADIENTS,  PLAN_SWAP};
    int64_t sum = 0;
    for (size_t i = 0; i < sizeof states / sizeof *states; i++) sum += o->largest_bytes[states[i]];
    return sum;
}

static void print_row(FILE *to, const char *name, int64_t stage2, int64_t stage3) {
    char two[32], three[32];
    fprintf(to, "%-28s %12s %12s\n", name, base_format_bytes((uint64_t)stage2, two),
            base_format_bytes((uint64_t)stage3, three));
}

static plan_deepspeed describe(const api_plan_report *r) {
    int64_t ranks = plan_mesh_ranks(&r->own.settings.mesh, PLAN_WORLD), here = r->limits.ranks_here;
    const sifr_offload *offloaded = &r->own.settings.step.offload;
    bool optimizer = offloaded->optimizer.device != SIFR_TIER_NONE;
    return (plan_deepspeed){.parameters = (double)sifr_model_parameters(r->model),
                            .largest_layer = (double)plan_largest_layer(r->model),
                            .ranks_per_host = here,
                            .hosts = (ranks + here - 1) / here,
                            .offload_optimizer = optimizer,
                            .offload_param = optimizer && offloaded->param.device != SIFR_TIER_NONE,
                            .partitioned_init = true};
}

void api_plan_print_deepspeed(const api_plan_report *r) {
    int64_t gpu[2], host[2];
    plan_deepspeed of = describe(r);
    const plan_outcome *two = &r->stages[2], *three = &r->stages[3];
    char parameters[32], layer[32];
    for (int i = 0; i < 2; i++) {
        of.stage = 2 + i;
        plan_deepspeed_estimate(&of, &gpu[i], &host[i]);
    }
    fprintf(r->to,
            "\nDeepSpeed's estimators (0.19) for %s parameters, largest layer %s, %lld x %lld "
            "ranks%s\n",
            base_format_count((int64_t)of.parameters, parameters),
            base_format_count((int64_t)of.largest_layer, layer), (long long)of.hosts,
            (long long)of.ranks_per_host,
            of.offload_param       ? ", offload_optimizer and offload_param"
            : of.offload_optimizer ? ", offload_optimizer"
                                   : "");
    fprintf(r->to, "%-28s %12s %12s\n", "states per rank", "stage 2", "stage 3");
    print_row(r->to, "DeepSpeed, on a GPU", gpu[0], gpu[1]);
    print_row(r->to, "sifr", states_of(two), states_of(three));
    print_row(r->to, "DeepSpeed, also on the host", host[0], host[1]);
    print_row(r->to, "sifr", two->host_bytes * of.ranks_per_host,
              three->host_bytes * of.ranks_per_host);
    if (two->nvme_bytes || three->nvme_bytes)
        print_row(r->to, "sifr, on a host's disk", two->nvme_bytes * of.ranks_per_host,
                  three->nvme_bytes * of.ranks_per_host);
    fputs(
        "Why they differ:\n- sifr keeps gradients once, in fp32. DeepSpeed keeps them in 16 bits "
        "and, for the update,\n  also in fp32: at stage 2 that is two more bytes for each "
        "parameter of a slice.\n- sifr counts the whole-unit gradients that are being reduced, and "
        "the units that stage 3\n  gathers ahead. The estimators count 4 bytes for each parameter "
        "of one layer, and leave\n  out buckets (reduce_bucket_size, allocated in full).\n- sifr "
        "reads weights from mapped files directly into place, so it needs no fp32 copy of\n  the "
        "model on the host. It needs no factor of 1.5 for buffers either, since every buffer\n  "
        "has an address in the plan.\n- The estimators do not know fp32 training (they always "
        "count 16-bit parameters), nor\n  disks (they count offloaded state on the host).\n",
        r->to);
}
