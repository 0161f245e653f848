#include "comm/reduce.h"

#include "device/tree_sum.h"

void comm_reduce(const device_sum *sum) {
    device_tree_sum_typed(sum->type, sum->sum, sum->slices, sum->count, sum->elements, sum->out);
}

void comm_reduce_once(const device_sum *sum) {
    device_tree_sum_once(sum->type, sum->slices, sum->count, sum->elements, sum->out);
}

sifr_status comm_reduce_on(device *dev, const device_sum *sum, sifr_error *error) {
    if (dev) return device_start_sum(dev, DEVICE_EXCHANGE, sum, error);
    comm_reduce(sum);
    return SIFR_OK;
}
