#include "optim/optim.h"

const optim_row *optim_row_of(const sifr_optimizer *optimizer) {
    switch (optimizer->type) {
    case SIFR_ADAMW:
    case SIFR_ADAM:
        break;
    case SIFR_SGD:
        return optimizer->momentum > 0 ? &optim_momentum : &optim_sgd;
    case SIFR_ADAGRAD:
        return &optim_adagrad;
    case SIFR_LION:
        return &optim_lion;
    case SIFR_ADAM_8BIT:
    case SIFR_ADAMW_8BIT:
        return &optim_adam_8bit;
    case SIFR_SCHEDULE_FREE_ADAMW:
        return &optim_schedule_free;
    }
    return optimizer->amsgrad ? &optim_amsgrad : &optim_adam;
}
