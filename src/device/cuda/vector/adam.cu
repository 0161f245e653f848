/* Adam and AMSGrad. */
#include "device/cuda/vector/adam_rule.h"

KERNEL(adam, update_arguments, PACK_THREADS) {
    update_vector<adam_rule>(a);
}

KERNEL(amsgrad, update_arguments, PACK_THREADS) {
    update_vector<amsgrad_rule>(a);
}
