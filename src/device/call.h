/* A call of a kernel. It is data: operands, attributes, and a pointer to the few values that change
 * from step to step. device/device.h prepares and runs it. */
#ifndef DEVICE_CALL_H
#define DEVICE_CALL_H

#include <stdbool.h>
#include <stdint.h>

#include "base/dtype.h"
#include "device/kernels/attention_attributes.h"
#include "device/kernels/block_attributes.h"
#include "device/kernels/delta_attributes.h"
#include "device/kernels/element_attributes.h"
#include "device/kernels/head_attributes.h"
#include "device/kernels/product_attributes.h"
#include "device/kernels/row_attributes.h"
#include "device/kernels/update_attributes.h"
#include "sifr/settings.h"

base_dtype device_dtype_of(sifr_precision precision); /* of parameters and activations */

/* rows x columns elements, row-major. `stride` elements lie between the starts of two rows; it
 * exceeds `columns` if the matrix is a slice of columns of a wider one. `data` is aligned to 64
 * bytes, or to its element in such a slice. */
typedef struct device_matrix {
    void *data;
    int64_t rows, columns, stride;
    base_dtype dtype;
} device_matrix;

/* Blocks of flat parameters have this many elements. It fixes the bits of sums
 * (docs/exactness.md, "The same bits"), and so does device_token_chunk. */
#define DEVICE_BLOCK 1024

/* The kernels, whose contracts kernels.def and its parts have. */
typedef enum device_kernel {
#define DEVICE_KERNEL(NAME, ...) DEVICE_##NAME,
#include "device/kernels.def"
    DEVICE_KERNELS
} device_kernel;

const char *device_kernel_name(device_kernel kernel);

/* What a kernel does with its operands beside what all do: read x and w, write y. */
typedef enum device_access {
    DEVICE_ACCESS_WRITES, /* nothing */
    DEVICE_ACCESS_ADDS,   /* adds to y */
    DEVICE_ACCESS_CACHES, /* writes to w, which are caches */
    DEVICE_ACCESS_STATE   /* reads and writes saved0, the state of sequences that grow */
} device_access;
device_access device_kernel_access(device_kernel kernel);

/* Updates come one after the other, Adam first. */
#define DEVICE_UPDATE_NUMBER(kernel) ((int)(kernel) - (int)DEVICE_ADAM)
enum {
#define DEVICE_UPDATE(NAME, ...) DEVICE_UPDATE_##NAME,
#include "device/kernels.def"
    DEVICE_UPDATES
};

bool device_is_update(device_kernel kernel);
int device_update_states(device_kernel kernel); /* of an update: operands saved0 and on */

/* What an update does with the operands that all have; w1 is written where weights change, and an
 * average of the weights with them. */
enum {
    DEVICE_READS_GRADIENT = 1,
    DEVICE_READS_WEIGHTS = 2, /* w0 */
    DEVICE_CHANGES_WEIGHTS = 4,
    DEVICE_CHANGES_STATES = 8, /* reads them as well; without it an update only reads them */
    DEVICE_USES_ALL = 15
};
unsigned device_update_uses(device_kernel kernel);

typedef struct device_attributes {
    int32_t op;          /* index of the op in the model: a coordinate of dropout's numbers */
    int32_t micro_batch; /* index in the global batch: another coordinate */
    int64_t element; /* first element of the operands: in the model, for the optimizer's rounding;
                        in the micro batch, for dropout */
    union {          /* of the kernel */
        device_linear_attributes linear;
        device_embedding_attributes embedding;
        device_norm_attributes norm;
        device_rope_attributes rope;
        device_split_qkv_attributes split_qkv;
        device_join_attributes join;
        device_unfold_attributes unfold;
        device_short_conv_attributes short_conv;
        device_delta_attributes delta;
        device_attention_attributes attention;
        device_head_attributes head;
        device_gelu_attributes gelu;
        device_relu_attributes relu;
        device_swish_attributes swish;
        device_clip_attributes clip;
        device_xielu_attributes xielu;
        device_scale_attributes scale;
        device_dropout_attributes dropout;
        device_magnitude_attributes magnitude;
        device_power_attributes power;
        device_update_attributes update;
        device_block_attributes block;
    };
} device_attributes;

/* Values that change from step to step; the executor writes them between kernels. */
typedef struct device_step {
    uint64_t seed;
    int64_t step;
    float gradient_scale; /* loss scale / labelled tokens of the global batch */
    float update_scale;   /* clipping coefficient / loss scale */
    float learning_rate;
    float beta1, beta2;
    float correction1, correction2; /* 1 - beta1^t, 1 - beta2^t, or 1 */
    float share;         /* of the gradient in SGD's momentum; of z in schedule-free's average;
                            1 - beta2 of Adafactor */
    float average_share; /* of the weights in their average */
    bool training;       /* dropout applies */
    bool update;         /* all gradients are finite */
    float loss_scale;
} device_step;

enum { DEVICE_INPUTS = 6, DEVICE_WEIGHTS = 2, DEVICE_SAVED = 4 };

typedef struct device_call {
    device_kernel kernel;
    int32_t implementation; /* set by device_prepare: which one of the device's */
    device_attributes attributes;
    device_matrix x[DEVICE_INPUTS], w[DEVICE_WEIGHTS], y, saved[DEVICE_SAVED];
    device_matrix dy, dx[DEVICE_INPUTS], dw[DEVICE_WEIGHTS];
    bool accumulate[DEVICE_INPUTS];
    bool accumulate_dw;
    void *scratch;         /* 64-byte aligned, scratch_bytes long, shared with later calls */
    int64_t scratch_bytes; /* set by device_prepare */
    const void *prepared;  /* set by device_prepare; belongs to the device */
    const device_step *step;
} device_call;

/* Columns that a norm normalises together; w0, if it is there, has as many. */
static inline int64_t device_norm_columns(const device_call *call) {
    int64_t groups = call->attributes.norm.groups;
    return call->x[0].columns / (groups > 1 ? groups : 1);
}

/* Elements of w0, which may have a row for each group of them. */
static inline int64_t device_norm_weights(const device_call *call) {
    return device_norm_columns(call) * (call->w[0].rows > 1 ? call->w[0].rows : 1);
}

/* Operands saved0 and on of an update: states, and the average of the weights. */
int device_call_states(const device_call *call);

#endif
