/* What llama.cpp computes from constants of its own (src/models/ of llama-cpp-python 0.3.36's
 * llama.cpp): a row for each of its architectures. */
#include "formats/gguf/gguf_limits.h"

#include <math.h>
#include <string.h>

#include "base/json.h"

typedef struct gguf_limits {
    const char *name; /* llama.cpp's */
    bool all_biases;  /* reads those of attention's output and of the MLP */
    bool own_heads;   /* head_dim need not be hidden_size / num_attention_heads */
    bool tied;        /* reads a head that is the embedding */
    bool llama3;      /* reads factors of rotation */
    bool betas;       /* reads yarn's beta_fast and beta_slow */
    bool windows;
    bool gelu; /* else silu */
} gguf_limits;

static const gguf_limits rows[] = {
    {"gpt2", .all_biases = true, .tied = true, .gelu = true},
    {"llama", .all_biases = true, .own_heads = true, .tied = true, .llama3 = true},
    {"mistral3", .all_biases = true, .own_heads = true, .tied = true, .llama3 = true,
     .betas = true},
    {"granite", .all_biases = true, .tied = true, .llama3 = true},
    {"smollm3", .own_heads = true, .tied = true},
    {"qwen2", .tied = true},
    {"qwen3", .own_heads = true, .tied = true},
    {"glm4", .own_heads = true, .tied = true},
    {"olmo2", .windows = true},
    {"lfm2", .tied = true},
    {"qwen35", .own_heads = true, .tied = true},
    {"starcoder2", .all_biases = true, .tied = true, .gelu = true},
    {"gptneox", .all_biases = true, .gelu = true},
    {"phi3", .tied = true},
    {"gemma", .own_heads = true, .tied = true, .gelu = true},
    {"gemma2", .own_heads = true, .tied = true, .windows = true, .gelu = true},
    {"gemma3", .own_heads = true, .tied = true, .windows = true, .gelu = true},
    {"gemma4", .own_heads = true, .tied = true, .windows = true, .gelu = true},
};

typedef struct gguf_question {
    const gguf_limits *row;
    const formats_gguf_family *family;
    const json_t *config;
    const char *where;
    const sifr_log *log;
    sifr_error *error;
} gguf_question;

static const json_t *member(const gguf_question *q, const char *key) {
    return json_object_get(q->config, key);
}

static bool is_true(const gguf_question *q, const char *key) {
    return json_is_true(member(q, key));
}

static int64_t whole(const gguf_question *q, const char *key, int64_t fallback) {
    const json_t *value = member(q, key);
    return json_is_integer(value) ? json_integer_value(value) : fallback;
}

static sifr_status refuse(const gguf_question *q, const char *key, const char *reason) {
    return base_fail(q->error, SIFR_USAGE,
                     "%s: \"%s\": llama.cpp's %s %s, so --format gguf cannot carry this model",
                     q->where, key, q->row->name, reason);
}

/* --- weights --- */

static sifr_status check_biases(const gguf_question *q) {
    bool needs = !strcmp(q->row->name, "starcoder2") || !strcmp(q->row->name, "gptneox");
    const char *key = strcmp(q->row->name, "starcoder2") ? "attention_bias" : "use_bias";
    if (needs && json_is_false(member(q, key))) return refuse(q, key, "needs biases");
    /* These two have biases of queries, keys and values alone. */
    bool inputs = !strcmp(q->row->name, "qwen2") || !strcmp(q->row->name, "glm4");
    if (q->row->all_biases) return SIFR_OK;
    if (is_true(q, "attention_bias") && !inputs)
        return refuse(q, "attention_bias", "has no bias behind attention");
    if (is_true(q, "mlp_bias")) return refuse(q, "mlp_bias", "has no bias in the MLP");
    return SIFR_OK;
}

static sifr_status check_shapes(const gguf_question *q) {
    int64_t heads = whole(q, "num_attention_heads", 0), width = whole(q, "hidden_size", 0);
    int64_t size = whole(q, "head_dim", heads ? width / heads : 0);
    if (heads && !q->row->own_heads && size * heads != width)
        return base_fail(q->error, SIFR_USAGE,
                         "%s: \"head_dim\" is %lld; llama.cpp's %s has hidden_size / "
                         "num_attention_heads = %lld alone",
                         q->where, (long long)size, q->row->name, (long long)(width / heads));
    if (is_true(q, "tie_word_embeddings") && !q->row->tied)
        return refuse(q, "tie_word_embeddings", "needs an lm_head of its own");
    return SIFR_OK;
}

/* Gemma 4's E2B and E4B. */
static sifr_status check_shared(const gguf_question *q) {
    if (strcmp(q->row->name, "gemma4") != 0) return SIFR_OK;
    int64_t inputs = whole(q, "hidden_size_per_layer_input", 0);
    int64_t shared = whole(q, "num_kv_shared_layers", 0);
    if (!shared && !inputs) return SIFR_OK;
    return base_fail(q->error, SIFR_USAGE,
                     "%s: \"%s\" is %lld: Gemma 4's E2B and E4B are not supported with --format "
                     "gguf yet (31B and 12B are); llama.cpp's converter takes the folder",
                     q->where, shared ? "num_kv_shared_layers" : "hidden_size_per_layer_input",
                     (long long)(shared ? shared : inputs));
}

/* --- functions --- */

static sifr_status check_activation(const gguf_question *q) {
    static const char *const keys[] = {"hidden_activation", "hidden_act", "activation_function"};
    bool gemma = strncmp(q->row->name, "gemma", 5) == 0; /* its hidden_act has no effect */
    for (int i = 0; i < 3; i++) {
        const char *act = json_string_value(member(q, keys[i]));
        if (!act || (gemma && i)) continue;
        bool silu = !strcmp(act, "silu") || !strcmp(act, "swish");
        if (silu == q->row->gelu)
            return base_fail(q->error, SIFR_USAGE,
                             "%s: \"%s\" is %.40s; llama.cpp's %s has %s alone", q->where, keys[i],
                             act, q->row->name, q->row->gelu ? "gelu" : "silu");
        if (!strcmp(act, "gelu"))
            base_log(q->log, SIFR_LOG_WARNING,
                     "%s: \"%s\" is gelu, which llama.cpp computes by tanh, as gelu_new: its "
                     "logits differ a little",
                     q->where, keys[i]);
    }
    return SIFR_OK;
}

/* Gemma's largest models scale by the width, all others by a head's size; no key says which. */
static sifr_status check_scale(const gguf_question *q) {
    int64_t large = !strcmp(q->row->name, "gemma2") ? 46 : !strcmp(q->row->name, "gemma3") ? 62 : 0;
    enum { DEFAULT = 256 };
    if (!large) return SIFR_OK;
    const json_t *given = member(q, "query_pre_attn_scalar");
    double scalar = json_is_number(given) ? json_number_value(given) : DEFAULT;
    int64_t layers = whole(q, "num_hidden_layers", 0);
    int64_t wanted = layers == large
                         ? whole(q, "hidden_size", 0) / whole(q, "num_attention_heads", 1)
                         : whole(q, "head_dim", 0);
    if (scalar == (double)wanted) return SIFR_OK;
    return base_fail(q->error, SIFR_USAGE,
                     "%s: \"query_pre_attn_scalar\" is %g; llama.cpp's %s of %lld layers scales "
                     "attention by %lld, %s, alone",
                     q->where, scalar, q->row->name, (long long)layers, (long long)wanted,
                     layers == large ? "hidden_size / num_attention_heads" : "head_dim");
}

/* --- positions --- */

static double number(const json_t *object, const char *key, double fallback) {
    const json_t *value = json_object_get(object, key);
    return json_is_number(value) ? json_number_value(value) : fallback;
}

static double mscale(double factor, double scale) {
    return factor > 1 ? 0.1 * scale * log(factor) + 1 : 1;
}

/* llama.cpp makes the factor of attention from the factor of lengths. */
static sifr_status check_yarn_attention(const gguf_question *q, const json_t *rope) {
    double factor = number(rope, "factor", 1), one = number(rope, "mscale", 0),
           all = number(rope, "mscale_all_dim", 0);
    bool mistral3 = !strcmp(q->row->name, "mistral3");
    double theirs =
        mistral3 && all != 0 ? mscale(factor, 1) / mscale(factor, all) : mscale(factor, 1);
    double ours =
        one != 0 && all != 0 ? mscale(factor, one) / mscale(factor, all) : mscale(factor, 1);
    ours = number(rope, "attention_factor", ours);
    if (fabs(ours - theirs) <= 1e-6 * theirs) return SIFR_OK;
    return base_fail(q->error, SIFR_USAGE,
                     "%s: yarn's factor of attention (\"attention_factor\", \"mscale\") is %g; "
                     "llama.cpp's %s has %g for a factor of %g alone",
                     q->where, ours, q->row->name, theirs, factor);
}

static sifr_status check_yarn(const gguf_question *q, const json_t *rope) {
    enum { FAST = 32, SLOW = 1 };
    if (json_is_false(json_object_get(rope, "truncate")))
        return refuse(q, "truncate", "rounds yarn's limits");
    bool own = number(rope, "beta_fast", FAST) != FAST || number(rope, "beta_slow", SLOW) != SLOW;
    if (own && !q->row->betas)
        return refuse(q, "beta_fast", "has yarn's beta_fast of 32 and beta_slow of 1 alone");
    return check_yarn_attention(q, rope);
}

static sifr_status check_rope(const gguf_question *q) {
    const json_t *rope = member(q, "rope_parameters");
    const char *type = json_string_value(json_object_get(rope, "rope_type"));
    if (!type || !strcmp(type, "default")) return SIFR_OK;
    bool is_long = !strcmp(type, "longrope"), is_llama3 = !strcmp(type, "llama3");
    if (is_long == !strcmp(q->row->name, "phi3") && (!is_llama3 || q->row->llama3))
        return strcmp(type, "yarn") ? SIFR_OK : check_yarn(q, rope);
    return base_fail(q->error, SIFR_USAGE,
                     "%s: rope_type \"%.40s\" is not supported with --format gguf: llama.cpp's %s "
                     "has no place for it",
                     q->where, type, q->row->name);
}

/* SmolLM3: llama.cpp leaves each fourth layer without rotation. */
static sifr_status check_no_rope(const gguf_question *q) {
    const json_t *list = member(q, "no_rope_layers");
    bool same = json_is_array(list) || whole(q, "no_rope_layer_interval", 4) == 4;
    for (size_t i = 0; i < json_array_size(list); i++)
        same &= json_integer_value(json_array_get(list, i)) == ((i + 1) % 4 != 0);
    if (strcmp(q->row->name, "smollm3") || same) return SIFR_OK;
    return refuse(q, "no_rope_layers", "has every fourth layer without rotation");
}

static void say_window(const gguf_question *q) {
    int64_t window = whole(q, "sliding_window", 0), length = whole(q, "max_position_embeddings", 0);
    const json_t *use = member(q, "use_sliding_window");
    bool asks = !strncmp(q->row->name, "qwen", 4) || !strcmp(q->row->name, "smollm3");
    if (q->row->windows || window < 1 || window >= length) return;
    if (asks && !json_is_true(use)) return;
    base_log(q->log, SIFR_LOG_WARNING,
             "%s: \"sliding_window\" is %lld; llama.cpp's %s has no window, so behind %lld tokens "
             "it attends to more than this model does",
             q->where, (long long)window, q->row->name, (long long)window);
}

sifr_status formats_gguf_limits(const formats_gguf_family *family, const json_t *config,
                                const char *where, const sifr_log *log, sifr_error *error) {
    gguf_question q = {NULL, family, config, where, log, error};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        if (strcmp(rows[i].name, family->name) == 0) q.row = &rows[i];
    }
    BASE_TRY(check_biases(&q));
    BASE_TRY(check_shapes(&q));
    BASE_TRY(check_shared(&q));
    BASE_TRY(check_activation(&q));
    BASE_TRY(check_scale(&q));
    BASE_TRY(check_rope(&q));
    BASE_TRY(check_no_rope(&q));
    say_window(&q);
    return SIFR_OK;
}
