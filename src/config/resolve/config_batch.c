/* train_batch_size = train_micro_batch_size_per_gpu x gradient_accumulation_steps x ranks: any two
 * of the three give the third, as in deepspeed/runtime/config.py; where fewer are given, what
 * DeepSpeed and the Hugging Face Trainer take. */
#include <stdio.h>

#include "base/checked.h"
#include "config/config_private.h"

enum { CONFIG_DEFAULT_MICRO = 8 };

#define CONFIG_GLOBAL "train_batch_size"
#define CONFIG_MICRO "train_micro_batch_size_per_gpu"
#define CONFIG_STEPS "gradient_accumulation_steps"

typedef struct config_batch {
    int64_t global, micro, steps, ranks; /* 0: open */
} config_batch;

static const char *config_rank_word(int64_t ranks) {
    return ranks == 1 ? "rank" : "ranks";
}

static sifr_status config_batch_product(const config_batch *b, int64_t *out, sifr_error *error) {
    int64_t product;
    if (!base_mul_i64(b->micro, b->steps, &product) || !base_mul_i64(product, b->ranks, &product)) {
        return base_fail(error, SIFR_USAGE,
                         CONFIG_MICRO " %lld × " CONFIG_STEPS " %lld × %lld %s is too large",
                         (long long)b->micro, (long long)b->steps, (long long)b->ranks,
                         config_rank_word(b->ranks));
    }
    *out = product;
    return SIFR_OK;
}

/* " 8" or " 8 or 16": the multiples of `product` around `global`. */
static void config_batch_multiples(int64_t global, int64_t product, char *out, size_t size) {
    int64_t below = global / product * product, above;
    bool more = base_add_i64(below, product, &above);
    size_t used = 0;
    out[0] = 0;
    if (below > 0) used = (size_t)snprintf(out, size, " %lld", (long long)below);
    if (more) {
        snprintf(out + used, size - used, "%s %lld", used ? " or" : "", (long long)above);
    }
}

/* ", or 2 or 4 ranks": of the rank counts that divide `parts`, the nearest below `ranks` and above;
 * nothing where there is none. */
static void config_batch_ranks(int64_t parts, int64_t ranks, char *out, size_t size) {
    enum { LOOK = 4096 };
    int64_t below = 0, above = 0;
    for (int64_t r = ranks - 1; r > 0 && r >= ranks - LOOK && !below; r--) {
        if (parts % r == 0) below = r;
    }
    for (int64_t r = ranks + 1; r <= parts && r <= ranks + LOOK && !above; r++) {
        if (parts % r == 0) above = r;
    }
    out[0] = 0;
    if (!below && !above) return;
    if (below && above) {
        snprintf(out, size, ", or %lld or %lld ranks", (long long)below, (long long)above);
        return;
    }
    int64_t one = below ? below : above;
    snprintf(out, size, ", or %lld %s", (long long)one, config_rank_word(one));
}

/* The open one of micro and steps, from the other one. */
static sifr_status config_batch_divide(int64_t global, const char *name, int64_t known,
                                       int64_t ranks, int64_t *out, sifr_error *error) {
    int64_t product;
    char multiples[64], counts[64] = "";
    if (!base_mul_i64(known, ranks, &product)) {
        return base_fail(error, SIFR_USAGE, "%s %lld × %lld %s is too large", name,
                         (long long)known, (long long)ranks, config_rank_word(ranks));
    }
    if (global % product == 0) {
        *out = global / product;
        return SIFR_OK;
    }
    config_batch_multiples(global, product, multiples, sizeof multiples);
    if (global % known == 0) config_batch_ranks(global / known, ranks, counts, sizeof counts);
    return base_fail(error, SIFR_USAGE,
                     CONFIG_GLOBAL
                     " %lld is no multiple of %s %lld × %lld %s = %lld; " CONFIG_GLOBAL
                     "%s would do%s",
                     (long long)global, name, (long long)known, (long long)ranks,
                     config_rank_word(ranks), (long long)product, multiples, counts);
}

static sifr_status config_batch_check(const config_batch *b, sifr_error *error) {
    int64_t product;
    BASE_TRY(config_batch_product(b, &product, error));
    if (b->global == product) return SIFR_OK;
    int64_t others = product / b->steps;
    char other[64] = "";
    if (b->global % others == 0) {
        snprintf(other, sizeof other, ", or " CONFIG_STEPS " %lld",
                 (long long)(b->global / others));
    }
    return base_fail(error, SIFR_USAGE,
                     CONFIG_GLOBAL " %lld is not " CONFIG_MICRO " %lld × " CONFIG_STEPS
                                   " %lld × %lld %s = %lld; " CONFIG_GLOBAL " %lld would do%s",
                     (long long)b->global, (long long)b->micro, (long long)b->steps,
                     (long long)b->ranks, config_rank_word(b->ranks), (long long)product,
                     (long long)product, other);
}

/* A value from `over` (a flag of its own, or "sifr") counts as given too. */
static int64_t config_batch_given(const sifr_config *config, const char *path, bool *from_flag) {
    const config_setting *setting = config_setting_at(config, path);
    *from_flag = setting->origin == CONFIG_FROM_FLAG;
    const json_t *value = setting->value;
    return json_is_integer(value) ? (int64_t)json_integer_value(value) : 0;
}

sifr_status config_resolve_batch(sifr_config *config, int64_t world_size, sifr_error *error) {
    bool global_flag, micro_flag, steps_flag;
    config_batch b = {.ranks = world_size};
    b.global = config_batch_given(config, CONFIG_GLOBAL, &global_flag);
    b.micro = config_batch_given(config, CONFIG_MICRO, &micro_flag);
    b.steps = config_batch_given(config, CONFIG_STEPS, &steps_flag);
    micro_flag |=
        config_setting_at(config, "sifr.per_device_train_batch_size")->origin == CONFIG_FROM_FLAG;
    steps_flag |=
        config_setting_at(config, "sifr.gradient_accumulation_steps")->origin == CONFIG_FROM_FLAG;
    bool outvoted = b.global && !global_flag && micro_flag && steps_flag && b.micro && b.steps;
    if (outvoted) b.global = 0;
    config_batch given = b;
    if (b.global && b.micro && b.steps) {
        BASE_TRY(config_batch_check(&b, error));
    } else if (b.global) {
        if (!b.micro && !b.steps) b.steps = 1;
        if (b.micro) {
            BASE_TRY(
                config_batch_divide(b.global, CONFIG_MICRO, b.micro, b.ranks, &b.steps, error));
        } else {
            BASE_TRY(
                config_batch_divide(b.global, CONFIG_STEPS, b.steps, b.ranks, &b.micro, error));
        }
    } else {
        if (!b.micro) b.micro = CONFIG_DEFAULT_MICRO;
        if (!b.steps) b.steps = 1;
        BASE_TRY(config_batch_product(&b, &b.global, error));
    }
    if (!given.global) {
        BASE_TRY(config_setting_put(
            config, CONFIG_GLOBAL, json_integer(b.global), error, "%lld × %lld × %lld %s%s",
            (long long)b.micro, (long long)b.steps, (long long)b.ranks, config_rank_word(b.ranks),
            outvoted ? ", as the flags say; the config's is dropped" : ""));
    }
    if (!given.micro && given.global) {
        BASE_TRY(config_setting_put(config, CONFIG_MICRO, json_integer(b.micro), error,
                                    "%lld / (%lld × %lld %s)", (long long)b.global,
                                    (long long)b.steps, (long long)b.ranks,
                                    config_rank_word(b.ranks)));
    } else if (!given.micro) {
        BASE_TRY(config_setting_put(config, CONFIG_MICRO, json_integer(b.micro), error,
                                    "default of the Hugging Face Trainer"));
    }
    if (!given.steps && given.global && given.micro) {
        BASE_TRY(config_setting_put(config, CONFIG_STEPS, json_integer(b.steps), error,
                                    "%lld / (%lld × %lld %s)", (long long)b.global,
                                    (long long)b.micro, (long long)b.ranks,
                                    config_rank_word(b.ranks)));
    } else if (!given.steps) {
        BASE_TRY(config_setting_put(config, CONFIG_STEPS, json_integer(b.steps), error, "default"));
    }
    return SIFR_OK;
}
