/* The table of a set's kernels. */
#include "device/cpu/kernels_sets.h"

const cpu_kernels KERNEL(cpu_kernels) = {
    .norm = KERNEL(norm),
    .norm_backward = KERNEL(norm_backward),
    .rope = KERNEL(rope),
    .regroup = KERNEL(regroup),
    .neighbours = KERNEL(neighbours),
    .rows = KERNEL(rows),
    .elementwise = KERNEL(elementwise),
    .updates = {[DEVICE_UPDATE_NUMBER(DEVICE_ADAM)] = KERNEL(adam),
                [DEVICE_UPDATE_NUMBER(DEVICE_AMSGRAD)] = KERNEL(amsgrad),
                [DEVICE_UPDATE_NUMBER(DEVICE_SGD)] = KERNEL(sgd),
                [DEVICE_UPDATE_NUMBER(DEVICE_MOMENTUM)] = KERNEL(momentum),
                [DEVICE_UPDATE_NUMBER(DEVICE_ADAGRAD)] = KERNEL(adagrad),
                [DEVICE_UPDATE_NUMBER(DEVICE_LION)] = KERNEL(lion),
                [DEVICE_UPDATE_NUMBER(DEVICE_SCHEDULE_FREE)] = KERNEL(schedule_free),
                [DEVICE_UPDATE_NUMBER(DEVICE_ADAM_8BIT)] = KERNEL(adam_8bit),
                [DEVICE_UPDATE_NUMBER(DEVICE_LAMB_BEGIN)] = KERNEL(lamb_begin),
                [DEVICE_UPDATE_NUMBER(DEVICE_LAMB)] = KERNEL(lamb),
                [DEVICE_UPDATE_NUMBER(DEVICE_MUON_BEGIN)] = KERNEL(muon_begin),
                [DEVICE_UPDATE_NUMBER(DEVICE_MUON)] = KERNEL(muon)},
    .exact_squares = KERNEL(exact_squares),
    .embedding = KERNEL(embedding),
    .embedding_backward = KERNEL(embedding_backward)};
