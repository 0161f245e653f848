/* All of sifr's C interface. */
#ifndef SIFR_SIFR_H
#define SIFR_SIFR_H

#include "sifr/checkpoint.h"
#include "sifr/classify.h"
#include "sifr/config.h"
#include "sifr/context.h"
#include "sifr/convert.h"
#include "sifr/data.h"
#include "sifr/engine.h"
#include "sifr/evaluate.h"
#include "sifr/generate.h"
#include "sifr/loop.h"
#include "sifr/model.h"
#include "sifr/plan.h"
#include "sifr/push.h"
#include "sifr/ranks.h"
#include "sifr/report.h"
#include "sifr/run.h"
#include "sifr/score.h"
#include "sifr/status.h"
#include "sifr/tokenizer.h"
#include "sifr/version.h"
#include "sifr/watch.h"

#endif
