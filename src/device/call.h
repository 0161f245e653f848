/* A call of a kernel. It is data: operands, attributes, and a pointer to the few values that change
 * from step to step. device/device.h prepares and runs it. */
#ifndef DEVICE_CALL_H
#define DEVICE_CALL_H

#include <stdbool.h>
#include <stdint.h>

#include "base/dtype.h"
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

/* Elements that share a scale where values are kept as codes of 8 bits. */
#define DEVICE_CODED 256

/* The most rows that DEVICE_NEIGHBOURS joins. */
#define DEVICE_MOST_NEIGHBOURS 31

/* The kernels, whose contracts kernels.def and its parts have. */
typedef enum device_kernel {
#define DEVICE_KERNEL(NAME, ...) DEVICE_##NAME,
#include "device/kernels.def"
    DEVICE_KERNELS
} device_kernel;

/* Updates come one after the other, Adam first. */
#define DEVICE_UPDATE_NUMBER(kernel) ((int)(kernel) - (int)DEVICE_ADAM)
enum {
#define DEVICE_UPDATE(NAME, ...) DEVICE_UPDATE_##NAME,
#include "device/kernels.def"
    DEVICE_UPDATES
};

const char *device_kernel_name(device_kernel kernel);
/* What a kernel does with its operands beside what all do: read x and w, write y. */
typedef enum device_access {
    DEVICE_ACCESS_WRITES, /* nothing */
    DEVICE_ACCESS_ADDS,   /* adds to y */
    DEVICE_ACCESS_CACHES  /* writes to w, which are caches */
} device_access;
device_access device_kernel_access(device_kernel kernel);
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

/* The losses of DEVICE_HEAD_PREFERENCE. */
typedef enum device_preference {
    DEVICE_PREFER_NONE,
    DEVICE_PREFER_SIGMOID,
    DEVICE_PREFER_HINGE,
    DEVICE_PREFER_IPO,
    DEVICE_PREFER_ORPO
} device_preference;

typedef struct device_attributes {
    int32_t op;          /* index of the op in the model: a coordinate of dropout's numbers */
    int32_t micro_batch; /* index in the global batch: another coordinate */
    int64_t element; /* first element of the operands: in the model, for the optimizer's rounding;
                        in the micro batch, for dropout */
    union {
        struct {
            bool transposed;
            int64_t whole; /* rows of the whole matrix if the operands are part of it, from a
                              multiple of device_token_chunk on: results equal those of the whole;
                              0: the operands are the whole */
        } linear;
        struct {
            bool padded;
            int32_t padding; /* if padded: this row of dw0 gets nothing */
            int32_t first;
        } embedding;
        struct {
            float epsilon;
            int32_t groups; /* 0 is 1 */
            bool plus_one;
        } norm;
        struct {
            int32_t heads, head_dim;
            int32_t rotary_dim; /* 0: head_dim */
            bool interleaved;
        } rope;
        struct {
            int32_t groups, parts;
        } regroup;
        struct {
            int64_t length; /* rows of a sequence */
            int32_t size;
        } neighbours;
        struct {
            int32_t heads, kv_heads, head_dim;
            int64_t sequences,
                length; /* rows = sequences x length; cached: the capacity of one sequence */
            float scale, softcap, dropout;
            int64_t window;
            int32_t buckets, most_distance; /* of relative positions */
            bool bidirectional;             /* not cached */
        } attention;
        struct {
            float scale;   /* 0: 1 */
            float softcap; /* 0: none */
            /* DEVICE_HEAD_PREFERENCE */
            device_preference preference;
            float beta;
            int64_t length;
            /* DEVICE_HEAD_DISTIL */
            float temperature, weight;
        } head;
        struct {
            bool exact;
        } gelu;
        struct {
            bool squared;
        } relu;
        struct {
            float slope;
        } swish;
        struct {
            float factor;
            bool round_factor;
        } scale;
        struct {
            float probability;
        } dropout;
        struct {
            bool transposed;
            int32_t columns; /* out */
            float scale;
        } magnitude;
        /* Updates, with g = gradient * step->update_scale, p a weight, lr = step->learning_rate *
         * lr_scale, and the step's numbers. L2: g += weight_decay p, in SGD, Adagrad, and Adam if
         * it is not decoupled; decoupled: first p *= 1 - lr weight_decay.
         * Adam (Kingma & Ba 2015; Loshchilov & Hutter 2019, as torch.optim.AdamW computes it):
         *   m = beta1 m + (1-beta1) g;  v = beta2 v + (1-beta2) g^2
         *   p -= lr/c1 * m / (sqrt(v)/sqrt(c2) + epsilon)
         * AMSGrad (Reddi et al. 2018): w = max(w, v) in place of v in the last line
         * SGD: p -= lr g; with momentum m = beta1 m + share g, p -= lr m, or with nesterov
         *   p -= lr (g + beta1 m)
         * Adagrad (Duchi et al. 2011): s += g^2;  p -= lr * g / (sqrt(s) + epsilon)
         * Lion (Chen et al. 2023; decoupled): p -= lr sign(beta1 m + (1-beta1) g);
         *   m = beta2 m + (1-beta2) g
         * Schedule-free AdamW (Defazio et al. 2024): y = x + (1-beta1) d, with d = z - x
         *   v = beta2 v + (1-beta2) g^2;  n = g / (sqrt(v)/sqrt(c2) + epsilon) + weight_decay y
         *   d -= lr n;  x += share d;  d *= 1 - share;  w1 = x + (1-beta1) d
         * LAMB: m, v as Adam;  u = m/c1 / (sqrt(v/c2) + epsilon) + weight_decay p;  p -= lr t u,
         * with t = |p| / |u| of the whole weight, between min_coeff and max_coeff; 1 if one of both
         *   is 0
         * Muon (decoupled):  m += (1-momentum) (g - m);  u = m + (1-momentum) (g - m);
         *   p = (1 - lr weight_decay) p - lr x0
         * Adafactor, as transformers computes it, with RMS over the whole matrix:
         *   R = beta2 R + (1-beta2) (mean of g^2 of the row + epsilon), C likewise of the column
         *   u = g / sqrt(R/mean(R) C);  u /= max(1, RMS(u) / clip)
         *   l = lr, with `scaled` times max(least_scale, RMS(p));  p *= 1 - l weight_decay
         *   p -= l u, or with momentum m = beta1 m + (1-beta1) l u;  p -= m */
        struct {
            float epsilon, weight_decay; /* what changes from step to step is in the step */
            float lr_scale;              /* of the weights' group: times the step's rate */
            float min_coeff, max_coeff;  /* LAMB */
            float momentum;              /* Muon */
            int32_t matrices;            /* DEVICE_ORTHOGONALISE */
            bool gram;
            float clip, least_scale; /* Adafactor */
            int64_t first;           /* Adafactor: x0's first element in the matrix */
            /* Set by the device for its kernels: t of LAMB, 1 / max(1, RMS(u) / clip) and l of
             * Adafactor. */
            float trust, own_rate;
            bool scaled; /* Adafactor */
            bool decoupled, nesterov;
            bool averages; /* there is an average of the weights */
            bool keeps;    /* w1 is written even if step->update is false: of hidden memory */
        } update;
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
} device_step;

enum { DEVICE_INPUTS = 6, DEVICE_WEIGHTS = 2, DEVICE_SAVED = 4 };

typedef struct device_call {
    device_kernel kernel;
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

/* Operands saved0 and on of an update: states, and the average of the weights. */
int device_call_states(const device_call *call);

#endif
