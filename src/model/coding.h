/* How weights are held for kernels: in the training type, or, frozen ones, as records of codes. */
#ifndef MODEL_CODING_H
#define MODEL_CODING_H

#include "base/assert.h"
#include "base/block8.h"
#include "base/nf4.h"
#include "device/call.h"

typedef enum model_coding {
    MODEL_UNCODED,
    MODEL_NF4,
    MODEL_NF4_DOUBLED,
    MODEL_INT8 /* base/block8.h */
} model_coding;

/* Bytes of the largest record; all have BASE_NF4_RECORD elements. */
enum { MODEL_RECORD_MOST = BASE_BLOCK8_RECORD_BYTES };

/* The key that asks for it. */
static inline const char *model_coding_key(model_coding coding) {
    return coding == MODEL_INT8 ? "zero_quantized_nontrainable_weights" : "sifr.quantization";
}

/* Values that share a scale. Tensor ranks cut codes between such blocks. */
static inline int64_t model_code_block(model_coding coding) {
    base_assert(coding != MODEL_UNCODED);
    return coding == MODEL_INT8 ? BASE_BLOCK8 : BASE_NF4_BLOCK;
}

/* Elements of the pieces that a segment is cut into: blocks, or records. */
static inline int64_t model_piece(model_coding coding) {
    return coding ? BASE_NF4_RECORD : DEVICE_BLOCK;
}

static inline int64_t model_record_bytes(model_coding coding) {
    base_assert(coding != MODEL_UNCODED);
    if (coding == MODEL_INT8) return BASE_BLOCK8_RECORD_BYTES;
    return coding == MODEL_NF4 ? BASE_NF4_PLAIN : BASE_NF4_DOUBLED;
}

/* Bytes that hold whole pieces; `element` has those of the training type. */
static inline int64_t model_held_bytes(model_coding coding, int64_t elements, int64_t element) {
    if (!coding) return elements * element;
    base_assert(elements % BASE_NF4_RECORD == 0);
    return elements / BASE_NF4_RECORD * model_record_bytes(coding);
}

#endif
