/* The op that an activation of config.json stands for. */
#ifndef MODEL_ACTIVATE_H
#define MODEL_ACTIVATE_H

#include "model/model_config.h"

sifr_value model_activate(sifr_model *model, sifr_value x, model_activation_kind kind);

#endif
