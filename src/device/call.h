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

/* The kernels. Rows are tokens: sequence by sequence, position by position. "Activations" below are
 * FP32, BF16 or FP16, one type in a call. Weights have the activations' type; statistics and weight
 * gradients (dw) are FP32. All arithmetic is in fp32. Forward reads x, w and writes y, saved.
 * Backward reads x, w, y, saved (those that the op table says it keeps; others have no dtype) and
 * dy, and writes dx, dw. dx[i] is added to with accumulate[i], otherwise overwritten; dw is added
 * to with accumulate_dw, otherwise overwritten. A dx or dw with dtype BASE_NONE is not computed. */
typedef enum device_kernel {
    /* y[r,:] = w0[i,:], i = x0[r] + attributes.embedding.first; x0: INT32 rows x 1 (i is checked
     * against w0.rows before the step), w0: words x width. Backward: dw0[i,:] += dy[r,:], rows in
     * order, but for those whose i is attributes.embedding.padding; dw0 is cleared first unless
     * accumulate_dw. Reads x0. */
    DEVICE_EMBEDDING,
    DEVICE_EMBEDDING_BACKWARD,
    /* y = w0. Backward: dw0 = dy. Reads nothing. */
    DEVICE_ROWS,
    DEVICE_ROWS_BACKWARD,
    /* y = x0 w0^T + w1; w0: out x in, or in x out with attributes.linear.transposed (GPT-2's
     * Conv1D); w1: 1 x out or none. Backward: dx0 = dy w0, dw0 = dy^T x0 in w0's layout, dw1 =
     * column sums of dy. Reads x0, w0. */
    DEVICE_LINEAR,
    DEVICE_LINEAR_BACKWARD,
    /* y = (x - mean) / sqrt(variance + eps) * w0 + w1; w0, w1: 1 x columns; saved0: FP32 rows x 2:
     * mean, 1/sqrt(variance + eps). attributes.norm: with groups > 1, each group of columns /
     * groups columns is normalised separately; all groups share w0, w1: 1 x columns / groups;
     * saved0 has two values a group. With plus_one, 1 + w0 replaces w0. Backward reads x0, w0,
     * saved0. */
    DEVICE_LAYER_NORM,
    DEVICE_LAYER_NORM_BACKWARD,
    /* y = x / sqrt(mean(x^2) + eps) * w0; saved0: FP32 rows x 1, or x groups. groups and plus_one
     * as above. Backward reads x0, w0, saved0. */
    DEVICE_RMS_NORM,
    DEVICE_RMS_NORM_BACKWARD,
    /* Rotary embedding of every head of x0: rows x heads*head_dim; x1: INT32 rows x 1 positions;
     * x2: FP32 table, positions x n: n/2 cosines, then n/2 sines, n = attributes.rope.rotary_dim.
     * The first n elements of a head turn, i with i + n/2 (Hugging Face's rotate_half), or with
     * interleaved 2i with 2i + 1; the others stay. y may be x0 itself, dx0 may be dy itself.
     * Backward reads x1, x2. */
    DEVICE_ROPE,
    DEVICE_ROPE_BACKWARD,
    /* Reorders columns (attributes.regroup): of groups x parts x n columns,
     * y[r, (p groups + g) n + i] = x0[r, (g parts + p) n + i]. Backward reads nothing. */
    DEVICE_REGROUP,
    DEVICE_REGROUP_BACKWARD,
    /* Joins each row with its neighbours in the sequence:
     * y[r, size c + t] = x0[r + t - size / 2, c], 0 beyond the ends of the sequence and, with x1
     * (INT32 rows x 1, or none), for rows whose x1 is another (attributes.neighbours; size is odd).
     * Followed by DEVICE_LINEAR, a convolution over tokens. Backward reads x1. */
    DEVICE_NEIGHBOURS,
    DEVICE_NEIGHBOURS_BACKWARD,
    /* Attention inside each sequence: P = softmax(S) over the keys j that query i sees, S =
     * scale q k^T; with softcap c > 0, S = c tanh(scale q k^T / c). It sees j <= i, or with
     * bidirectional every j; with window > 0 only |i - j| < window; with x3 (INT32 rows x 1, or
     * none) only those of its own segment, x3[i] = x3[j]. x0: rows x heads*head_dim (q),
     * x1, x2: rows x kv_heads*head_dim (k, v), each possibly a slice of columns; y: rows x
     * heads*head_dim; saved0: FP32 heads x rows (log-sum-exp). Query head h reads kv head h /
     * (heads / kv_heads). Never holds length x length values. With dropout > 0 probabilities are
     * dropped by counter.
     * With x4 or x5 or both, tables of 2 n rows x heads*head_dim, S = scale (q_i k_j + q_i x4[r] +
     * k_j x5[r]) instead, where r is b(i - j) + n clamped to 0 ... 2 n - 1 (bidirectional attention
     * with heads = kv_heads only). b(d) is d; with buckets > 0, where |d| is above m = buckets / 2,
     * it is m + ceil((m - 1) log(|d| / m) / log((most_distance - 1) / m)) with the sign of d.
     * Backward reads x0 to x5, y, saved0; writes dx0, dx1, dx2, and dx4 and dx5 where they are
     * wanted (never accumulates). */
    DEVICE_ATTENTION,
    DEVICE_ATTENTION_BACKWARD,
    /* Attention for generation: x0, x1, x2 are new tokens at positions x3 (INT32 rows x 1). They
     * are consecutive tokens of one sequence, or one token of each of `sequences` sequences. w0,
     * w1: caches of keys and values, sequences*capacity x kv_heads*head_dim, of the activations'
     * type. Appends x1, x2 at their positions; then a token attends to all positions of its
     * sequence up to its own. A sequence is one segment. */
    DEVICE_ATTENTION_CACHED,
    /* y = gelu(x0): attributes.gelu.exact chooses erf, else the tanh form. Backward reads x0. */
    DEVICE_GELU,
    DEVICE_GELU_BACKWARD,
    DEVICE_TANH, /* y = tanh(x0). Backward reads x0. */
    DEVICE_TANH_BACKWARD,
    /* y = max(x0, 0), or its square with attributes.relu.squared. Backward reads x0. */
    DEVICE_RELU,
    DEVICE_RELU_BACKWARD,
    /* y = x0 sigmoid(attributes.swish.slope x0). Backward reads x0. */
    DEVICE_SWISH,
    DEVICE_SWISH_BACKWARD,
    /* y = silu(x0) * x1. Backward reads x0, x1; writes dx0, dx1. */
    DEVICE_SILU_GATE,
    DEVICE_SILU_GATE_BACKWARD,
    /* y = gelu(x0) * x1, in the form that attributes.gelu chooses. Backward reads x0, x1; writes
     * dx0, dx1. */
    DEVICE_GELU_GATE,
    DEVICE_GELU_GATE_BACKWARD,
    DEVICE_ADD,      /* y = x0 + x1; y may be x0. Its backward is DEVICE_ACCUMULATE where needed. */
    DEVICE_MULTIPLY, /* y = x0 * x1. Backward reads x0, x1. */
    DEVICE_MULTIPLY_BACKWARD,
    /* y = attributes.scale.factor * x0, the factor rounded to y's type first with round_factor; y
     * may be x0. Backward the same on dy (dx0 may be dy); reads nothing. */
    DEVICE_SCALE,
    DEVICE_SCALE_BACKWARD,
    /* y = x0 / (1-p) if the counter-based number of (seed, step, micro batch, op, element) is at
     * least p, else 0; y may be x0; a copy when step->training is false. Backward the same on dy
     * (dx0 may be dy); reads nothing. */
    DEVICE_DROPOUT,
    DEVICE_DROPOUT_BACKWARD,
    /* Head and cross entropy. x0: rows x width (hidden), x1: INT32 rows x 1 labels (negative:
     * none), w0: words x width, w1: 1 x words or none; y: FP32 rows x 1, the loss of each row, 0
     * without a label. The logits are c tanh(l / c) with l = scale (x0 w0^T + w1), or l itself if
     * c = attributes.head.softcap is 0. Labelled rows are compacted into chunks; logits exist for
     * one chunk at a time. DEVICE_HEAD_LOSS only writes y (evaluation). The backward call needs no
     * forward before it: it writes y, dx0, dw0 and dw1 for losses weighted by
     * step->gradient_scale. */
    DEVICE_HEAD_LOSS,
    DEVICE_HEAD_LOSS_BACKWARD,
    /* Heads with numbers as targets, x1: FP32 rows x columns (a NaN in the first column: none).
     * Logits l = x0 w0^T + w1; w0: columns x width, w1: 1 x columns or none; y: FP32 rows x 1, the
     * mean over the columns of (l - x1)^2, or of log(1 + e^l) - l x1, and 0 without a target.
     * Backward calls as DEVICE_HEAD_LOSS_BACKWARD. */
    DEVICE_HEAD_REGRESSION,
    DEVICE_HEAD_REGRESSION_BACKWARD,
    DEVICE_HEAD_MULTILABEL,
    DEVICE_HEAD_MULTILABEL_BACKWARD,
    /* y = the logits of every row, as above: rows x words, of the activations' type. x0, w0, w1 as
     * above. */
    DEVICE_HEAD_LOGITS,
    DEVICE_ADD_INTO,   /* vectors (1 x n) of one type, FP32, BF16 or FP16: y += x0 */
    DEVICE_ACCUMULATE, /* activations of one shape: y += x0 */
    DEVICE_CLEAR,      /* y = 0, any type */
    /* x0: 1 x n, FP32, BF16 or FP16; y: a base_exact_sum as INT64 1 x EXACT_WORDS, to which the
     * squares of all elements are added. It begins as zeros and takes 2^44 elements. Its digits
     * depend on the device and on how calls cut the elements; settled, they do not. */
    DEVICE_EXACT_SQUARES,
    /* Updates: a step of an optimizer over 1 x n elements. x0: gradient FP32, BF16 or FP16; w0:
     * master weights FP32 or BF16; w1: their copy in the training type (none if w0 itself is
     * trained); saved0 and on: the optimizer's states (device_update_states), FP32 or BF16, all of
     * one type, unless the kernel says otherwise. BF16 states are rounded stochastically, by
     * numbers of (seed, step, kind of state, attributes.element and on). Does nothing when
     * step->update is false, but for hidden memory: there w1 becomes a copy of w0, since transfers
     * of what was not read are not left out. With attributes.update.averages the
     * operand behind the states is an FP32 average of the weights: a += average_share (w0 - a),
     * with w0 as the update leaves it, before it is rounded. Not of kernels whose weights are an
     * average, or whose states are codes. */
    DEVICE_ADAM,     /* saved0, saved1: first and second moment */
    DEVICE_AMSGRAD,  /* the same; saved2: the largest second moment so far */
    DEVICE_SGD,      /* no states */
    DEVICE_MOMENTUM, /* SGD with momentum, which is saved0 */
    DEVICE_ADAGRAD,  /* saved0: the sum of squares */
    DEVICE_LION,     /* saved0: the momentum */
    /* w0: the averaged weights x; saved0: z - x; saved1: second moment. Here w1 is not a copy of
     * w0: it becomes y, at which gradients are taken. */
    DEVICE_SCHEDULE_FREE,
    /* Adam with its moments in 8 bits (Dettmers et al. 2022). saved0, saved1: UINT8 codes of first
     * and second moment; saved2, saved3: FP32, for each DEVICE_CODED elements of either the largest
     * absolute value, which a code is a share of (base/code8.h). Codes
     * are counted from that of 0, modulo 256. */
    DEVICE_ADAM_8BIT,
    /* LAMB (You et al. 2020), of one weight. saved0, saved1: first and second moment.
     * DEVICE_LAMB_BEGIN changes the moments alone, and adds the squares of the weights and of their
     * directions u to y: INT64 1 x 2 EXACT_WORDS, sums as in DEVICE_EXACT_SQUARES. DEVICE_LAMB
     * changes the weights; x1: INT64 n x 2 EXACT_WORDS, those of the weight's n parts. */
    DEVICE_LAMB_BEGIN,
    DEVICE_LAMB,
    /* Muon (Jordan et al. 2024). DEVICE_MUON_BEGIN moves the momentum, saved0, alone and writes u
     * to y, FP32 1 x n, unless step->update is false. DEVICE_MUON changes the weights by x0: FP32,
     * what DEVICE_ORTHOGONALISE has made of all u of a weight. No states. */
    DEVICE_MUON_BEGIN,
    DEVICE_MUON,
    /* Adafactor (Shazeer & Stern 2018), of one weight of rows x columns. DEVICE_ADAFACTOR_BEGIN
     * adds the squares of the weights to the first of the sums of y, as DEVICE_LAMB_BEGIN has them,
     * where the rate follows from them (attributes.update.scaled), and changes nothing.
     * DEVICE_ADAFACTOR changes the weights from element attributes.update.first of the matrix on;
     * what lies behind its end is padding and stays. x1: the sums of the weight's n parts; x2: the
     * gradient of the whole matrix, rows x columns, of x0's type; saved0, saved1: FP32 1 x rows and
     * 1 x columns, averages of the squares of its rows and of its columns, all of which the call
     * changes. DEVICE_ADAFACTOR_MOMENT has a momentum in saved0, and the averages in saved1 and
     * saved2. */
    DEVICE_ADAFACTOR_BEGIN,
    DEVICE_ADAFACTOR,
    DEVICE_ADAFACTOR_MOMENT,
    DEVICE_CONVERT, /* y = x0 in y's dtype, round to nearest even, any of FP32, BF16, FP16 */
    /* DEVICE_HEAD_LOSS over pairs of answers (attributes.head): sequences of `length` rows, the
     * chosen answer and the rejected one in turns (a last one without a pair has no loss). x0, x1,
     * w0, w1 as those of DEVICE_HEAD_LOSS; x2: FP32 rows x 1, read in rows with a label; y: FP32 2
     * x rows: the loss of each pair in its first row, 0 elsewhere; then the log-probability of each
     * label, 0 without one. With s the sum of log-probability - x2 over the labels of an answer, n
     * their number, d = s of the chosen one less s of the rejected one, b = beta: sigmoid: -log
     * sigmoid(b d);  hinge: max(0, 1 - b d); ipo: (d - 1 / (2 b))^2 with s / n in place of s; orpo,
     * where x2 is 1 for a label of the answer itself and 0 for one of its prompt, and m the mean
     * log-probability over the former: the mean cross entropy of all labels of the chosen one, less
     * b log sigmoid(o), o = m - log(1 - e^m) of the chosen one less that of the rejected one.
     * Backward calls as DEVICE_HEAD_LOSS_BACKWARD. */
    DEVICE_HEAD_PREFERENCE,
    DEVICE_HEAD_PREFERENCE_BACKWARD,
    /* Only a backward call, as DEVICE_HEAD_LOSS_BACKWARD (whose forward call is this head's, too),
     * with another head's distribution to follow: x2: FP32 rows x 2 k, for each row k words, then
     * the logarithms of their probabilities q, in rows with a label. With t =
     * attributes.head.temperature, a = .weight, p the probabilities of the logits / t, and one more
     * class for all words that are not among the k: the loss is
     * (1 - a) cross entropy + a t^2 sum q log(q / p). */
    DEVICE_HEAD_DISTIL_BACKWARD,
    /* Magnitudes of a product's columns (DoRA, Liu et al. 2024): y[t,o] = x0[t,o] w1[o] / n[o] +
     * x3[o], n[o] the norm of row o of w0 + scale x2 x1. w0: out x in, or in x out with
     * attributes.magnitude.transposed; w1: 1 x out; x1: r x in; x2: out x r; x3: 1 x out, or none;
     * saved0: FP32 out x 1, n. Backward: dx0 = dy w1 / n; dw1[o] = the sum over t of dy x0 / n[o].
     * Reads x0, w1, saved0. Sums are in the order of magnitude_order.h. */
    DEVICE_MAGNITUDE,
    DEVICE_MAGNITUDE_BACKWARD,
    /* y: FP32, BF16 or FP16, 1 x n: the values of x0, UINT8: records of NF4 (base/nf4.h), a row
     * each, BASE_NF4_PLAIN or BASE_NF4_DOUBLED bytes long; n is all of them. */
    DEVICE_DEQUANTISE,
    /* y: FP32, update.matrices matrices of the same height, one below the other; each becomes
     * sqrt(max(1, rows / columns)) NS(y), where NS is five steps of a Newton-Schulz iteration that
     * brings all singular values near 1: from X = y / (|y| + 1e-7), |y| the root of the sum of all
     * squares, transposed where there are more rows than columns, and with (a, b, c) = (3.4445,
     * -4.7750, 2.0315):  A = X X^T;  X = a X + (b A + c A A) X.  With update.gram, and unless it is
     * square, the same by iterating on A (Gram Newton-Schulz, tridao.me 2026), which restarts
     * after the second step. In FP32. Does nothing when step->update is false. */
    DEVICE_ORTHOGONALISE,
    DEVICE_KERNELS
} device_kernel;

/* Updates come one after the other. */
#define DEVICE_UPDATE_NUMBER(kernel) ((int)(kernel) - (int)DEVICE_ADAM)
enum { DEVICE_UPDATES = DEVICE_UPDATE_NUMBER(DEVICE_ADAFACTOR_MOMENT) + 1 };

const char *device_kernel_name(device_kernel kernel);
bool device_is_update(device_kernel kernel);
int device_update_states(device_kernel kernel); /* of an update: operands saved0 and on */
/* What an update does with the operands that all have; w1 is written where weights change, and an
 * average of the weights with them. */
enum {
    DEVICE_READS_GRADIENT = 1,
    DEVICE_READS_WEIGHTS = 2, /* w0 */
    DEVICE_CHANGES_WEIGHTS = 4,
    DEVICE_CHANGES_STATES = 8, /* reads them as well; without it an update only reads them */
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
