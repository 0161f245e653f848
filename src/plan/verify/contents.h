/* What the bytes of a buffer are: which part of which vector, of which version. */
#ifndef PLAN_CONTENTS_H
#define PLAN_CONTENTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/errors.h"
#include "plan/verify/byte_ranges.h"

/* The vectors of a segment. */
typedef enum plan_vector {
    PLAN_VECTOR_PARAMETERS, /* as kernels read them */
    PLAN_VECTOR_CODES,      /* what parameters are decoded from */
    PLAN_VECTOR_MASTERS,
    PLAN_VECTOR_STATE0, /* of the optimizer; others follow */
    PLAN_VECTOR_GRADIENT = PLAN_VECTOR_STATE0 + 16,
    PLAN_VECTOR_VALUES,    /* what an optimizer makes of whole weights */
    PLAN_VECTOR_SUMS,      /* over weights, the parts of all ranks */
    PLAN_VECTOR_QUANTISED, /* codes of parameters on their way */
    PLAN_VECTOR_SENT,      /* codes of a gradient, to be sent; and those that came */
    PLAN_VECTOR_CAME,
    PLAN_VECTOR_VALUE /* of no segment (content_values.c) */
} plan_vector;

/* How far a vector is made. */
typedef enum plan_reach {
    PLAN_REACH_RANK, /* a gradient of this rank's micro batches; values before weights are whole */
    PLAN_REACH_HOST, /* added up over this rank's neighbours on its host */
    PLAN_REACH_COPY, /* added up within a copy of the state */
    PLAN_REACH_PART, /* over all micro batches, where tensor ranks make parts of it */
    PLAN_REACH_ALL
} plan_reach;

typedef struct plan_content {
    uint8_t vector, reach;
    uint8_t size;    /* bytes of an element; 1: positions are bytes */
    int32_t segment; /* of the model; -1: PLAN_VECTOR_VALUE */
    int32_t version; /* updates before it; of a gradient: those of the weights that it is of */
    int64_t origin;  /* the byte of the buffer where the vector would begin; may be negative */
} plan_content;

typedef struct plan_run {
    int64_t from, to; /* to: after the last byte */
    plan_content is;
} plan_run;

/* Ascending runs of bytes; neighbours differ. What no run has is unknown. {0}: all is. */
typedef struct plan_contents {
    plan_run *at;
    size_t count, capacity;
} plan_contents;

bool plan_content_equal(const plan_content *a, const plan_content *b);

/* The run that has this byte, or the first one behind it; NULL: none. */
const plan_run *plan_contents_find(const plan_contents *contents, int64_t byte);

sifr_status plan_contents_put(plan_contents *contents, plan_range range, const plan_content *is,
                              sifr_error *error) SIFR_MUST_CHECK;
/* Bytes `range` of `from` come to byte `at` of `to`. What is unknown stays as it is. */
sifr_status plan_contents_copy(const plan_contents *from, plan_range range, plan_contents *to,
                               int64_t at, sifr_error *error) SIFR_MUST_CHECK;

void plan_contents_empty(plan_contents *contents); /* keeps its memory */
void plan_contents_free(plan_contents *contents);

#endif
