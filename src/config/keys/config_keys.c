/* Every key of DeepSpeed's config (deepspeed/runtime/config.py, runtime/constants.py,
 * runtime/zero/config.py and the config classes of its features, 0.19), the sections that its
 * users spell their own way, and the "sifr" section. Defaults are those of DeepSpeed's source
 * where docs and source differ. Switching a feature on is an edit of its row. The rows lie in
 * config/keys/, a file for each topic; together they are one table. */
#include "config/keys/config_keys.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "config/config.h"

#define SECTION CONFIG_SECTION
#define BOOL CONFIG_BOOL
#define INT CONFIG_INT
#define BYTES CONFIG_BYTES
#define NUMBER CONFIG_NUMBER
#define TEXT CONFIG_TEXT
#define CHOICE CONFIG_CHOICE
#define TEXTS CONFIG_TEXTS
#define NUMBERS CONFIG_NUMBERS
#define ANY CONFIG_ANY
#define BUILT CONFIG_BUILT
#define NONE CONFIG_NO_EFFECT
#define LATER CONFIG_LATER
#define REMOVED CONFIG_REMOVED
#define ALIAS CONFIG_ALIAS
#define FIELD(name)                                                                                \
    .member = #name, .field = offsetof(sifr_config, name) + 1,                                     \
    .size = sizeof(((sifr_config *)0)->name),                                                      \
    .is_unsigned = _Generic(((sifr_config *)0)->name, uint64_t                                     \
                            : true, default                                                        \
                            : false)
/* `sifr plan --fit` may choose it. */
#define FIT(name_, says_) .fit = name_, .says = says_
/* Where --help has its flag; else under what to train. */
#define IN(group_) .group = CONFIG_FLAGS_##group_
#define KEY(path_, type_, status_, fallback_, unit_, doc_, ...)                                    \
    {                                                                                              \
        .path = path_, .type = type_, .status = status_, .fallback = fallback_, .unit = unit_,     \
        .doc = doc_, __VA_ARGS__                                                                   \
    }
#define ZERO .gate = "zero_optimization.stage"
#define STAGE_3 .gate = "zero_optimization.stage", .opens = "3"
#define POWER .gate = "compression.type", .opens = "\"powerSGD\""
#define NVME .gate = "zero_optimization.offload_optimizer.device", .opens = "\"nvme\""
#define PARAM_NVME .gate = "zero_optimization.offload_param.device", .opens = "\"nvme\""
/* Of state in host memory, too, where that is not the device's. */
#define AWAY NVME, .host = true
#define PARAM_AWAY PARAM_NVME, .host = true
#define STATE_AWAY AWAY, .also = {"zero_optimization.offload_param.device"}
#define ANY_NVME                                                                                   \
    NVME, .also = {"zero_optimization.offload_param.device", "sifr.offload_activations",           \
                   "sifr.offload_gradients"}
#define MOMENTUM_1BIT "OneBitAdam|ZeroOneAdam|OneBitLamb"
#define ADAMS "Adam|AdamW|OneBitAdam|ZeroOneAdam|MuAdam|MuAdamW"
#define ADAMS_8BIT "Adam8bit|AdamW8bit"
#define OPTIMIZERS_LATER "OneBitAdam|ZeroOneAdam|OneBitLamb|MuAdam|MuAdamW|MuSGD"
#define FREE "AdamWScheduleFree"
/* In fp32 numbers above 1 - 2^-25 are 1, and 1 minus them is 0: a moment never moves, and its
 * correction divides by 0. */
#define BETAS "0..0.99999997"
#define DIGITS(number) DIGITS_OF(number)
#define DIGITS_OF(number) #number
/* Gradients are made in fp32, which ends at 2^128, and are divided by the scale there. */
#define SCALE_POWER "126"
#define WARMUPS "WarmupLR|WarmupDecayLR"
/* Names of transformers' get_scheduler; the last two are refused. */
#define TRAINER_LATER "reduce_lr_on_plateau|greedy"
#define TRAINER_KINDS                                                                              \
    "linear|cosine|cosine_with_restarts|polynomial|constant|constant_with_warmup|inverse_sqrt|"    \
    "cosine_with_min_lr|cosine_warmup_with_min_lr|warmup_stable_decay|" TRAINER_LATER
#define TRAINER_WARMUPS                                                                            \
    "linear|cosine|cosine_with_restarts|polynomial|constant_with_warmup|inverse_sqrt|"             \
    "cosine_with_min_lr|cosine_warmup_with_min_lr|warmup_stable_decay"
#define MIN_LRS "cosine_with_min_lr|cosine_warmup_with_min_lr"

/* clang-format off */
static const config_key config_keys[] = {
#include "config/keys/keys_step.inc"
#include "config/keys/keys_zero.inc"
#include "config/keys/keys_deepspeed.inc"
#include "config/keys/keys_sifr.inc"
};

/* The fields of sifr_settings that no key fills alone; their paths are the keys that fill them. */
static const config_key more_fields[] = {
KEY("bf16.enabled, fp16.enabled", CHOICE, BUILT, "\"fp32\"", "", "", .choices = "fp32|bf16|fp16", FIELD(step.precision)),
KEY("optimizer.params.betas", NUMBER, BUILT, "0.9", "", "", .range = BETAS, FIELD(step.optimizer.beta1)),
KEY("optimizer.params.betas", NUMBER, BUILT, "0.999", "", "", .range = BETAS, FIELD(step.optimizer.beta2)),
KEY("optimizer.params.beta1", BOOL, BUILT, "false", "", "", FIELD(step.optimizer.has_momentum)),
KEY("optimizer.params.muon_lr", NUMBER, BUILT, "0", "", "", .range = ">= 0", FIELD(step.optimizer.muon_scale)),
KEY("optimizer.params.adam_lr", NUMBER, BUILT, "0", "", "", .range = ">= 0", FIELD(step.optimizer.adam_scale)),
KEY("tensor_parallel.vocab_parallel_lm_head", CHOICE, BUILT, "\"by blocks\"", "", "", .choices = "by blocks|split|whole", FIELD(step.mesh.vocab_parallel_lm_head)),
KEY("sifr.groups", ANY, BUILT, NULL, "", "", FIELD(step.optimizer.groups)),
KEY("sifr.groups", INT, BUILT, "0", "", "", .range = ">= 0", .most = DIGITS(CONFIG_MOST_GROUPS), FIELD(step.optimizer.group_count)),
KEY("zero_optimization.offload_optimizer.nvme_path, sifr.nvme_path", TEXT, BUILT, NULL, "", "", FIELD(step.offload.nvme_path)),
};
/* clang-format on */

enum { CONFIG_KEYS = sizeof config_keys / sizeof *config_keys };

const config_key *config_key_at(size_t index) {
    return index < CONFIG_KEYS ? &config_keys[index] : NULL;
}

size_t config_key_count(void) {
    return CONFIG_KEYS;
}

/* The first of `count` rows from *index on that has a field of sifr_settings. */
static const config_key *next_field(const config_key *rows, size_t count, size_t *index) {
    for (; *index < count; ++*index) {
        size_t field = rows[*index].field;
        if (field && field <= sizeof(sifr_settings)) return &rows[(*index)++];
    }
    return NULL;
}

const config_key *config_field_next(size_t *index) {
    const config_key *row = next_field(config_keys, CONFIG_KEYS, index);
    size_t more = *index - CONFIG_KEYS;
    if (row) return row;
    row = next_field(more_fields, sizeof more_fields / sizeof *more_fields, &more);
    *index = CONFIG_KEYS + more;
    return row;
}

const char *config_field_name(const config_key *row) {
    return row->member + strlen("step.");
}

config_range config_range_of(const char *range) {
    bool above = range[0] == '>' && range[1] != '=';
    if (range[0] == '>')
        return (config_range){strtod(range + (above ? 1 : 2), NULL), INFINITY, above, false};
    const char *end = strstr(range, "..") + 2;
    bool below = *end == '<';
    return (config_range){strtod(range, NULL), strtod(end + below, NULL), false, below};
}

bool config_fits_kernels(const config_key *key, double value) {
    static const char *const paths[] = {"optimizer.params.", "sifr.groups", "sifr.learning_rate",
                                        "sifr.preference.", "sifr.distill."};
    for (size_t i = 0; i < sizeof paths / sizeof *paths; i++)
        if (strncmp(key->path, paths[i], strlen(paths[i])) == 0) return fabs(value) <= FLT_MAX;
    return true;
}

bool config_range_holds(const char *range, double value) {
    if (!range) return true;
    config_range r = config_range_of(range);
    return (r.open_low ? value > r.low : value >= r.low) &&
           (r.open_high ? value < r.high : value <= r.high);
}

const config_key *config_key_find(const char *path, size_t *index) {
    for (size_t i = 0; i < CONFIG_KEYS; i++) {
        if (strcmp(config_keys[i].path, path) == 0) {
            if (index) *index = i;
            return &config_keys[i];
        }
    }
    return NULL;
}

const char *config_key_leaf(const config_key *key) {
    const char *dot = strrchr(key->path, '.');
    return dot ? dot + 1 : key->path;
}

const config_key *config_key_gate(const config_key *key) {
    if (key->gate) return config_key_find(key->gate, NULL);
    static const char *const switches[] = {"enabled", "device"};
    const char *leaf = config_key_leaf(key);
    if (leaf == key->path) return NULL;
    for (size_t i = 0; i < sizeof switches / sizeof *switches; i++) {
        char path[256];
        size_t length = (size_t)(leaf - key->path);
        if (length + strlen(switches[i]) >= sizeof path) return NULL;
        memcpy(path, key->path, length);
        strcpy(path + length, switches[i]);
        const config_key *gate = config_key_find(path, NULL);
        /* "sifr.device" has no value that switches its section off. */
        bool is_switch =
            gate && (!gate->choices || config_key_has_word(gate->choices, "none", NULL, NULL));
        if (is_switch) return gate == key ? NULL : gate;
    }
    return NULL;
}

bool config_key_has_word(const char *words, const char *word, int *index, char spelling[64]) {
    size_t length = strlen(word);
    for (int i = 0; words; i++) {
        const char *end = strchr(words, '|');
        size_t span = end ? (size_t)(end - words) : strlen(words);
        if (span == length && span < 64 && strncasecmp(words, word, span) == 0) {
            if (index) *index = i;
            if (spelling) memcpy(spelling, words, span), spelling[span] = 0;
            return true;
        }
        words = end ? end + 1 : NULL;
    }
    return false;
}
