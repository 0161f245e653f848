/* What all parts of a run ask of it. */
#include "train/run.h"

sifr_status train_agree(train_state *t, sifr_status status, sifr_error *error) {
    sifr_status agreed = comm_agree_status(t->group, status, error);
    t->agreed = agreed != SIFR_OK && agreed != SIFR_LOST_RANK;
    return agreed;
}
