/* How ranks divide the work: sifr.shard_size, or DeepSpeed's mics_shard_size; and what they keep
 * among neighbours: zero_hpz_partition_size. */
#include <stdio.h>

#include "base/checked.h"
#include "base/text.h"
#include "config/config_private.h"

#define CONFIG_SHARDS "sifr.shard_size"
#define CONFIG_MICS "zero_optimization.mics_shard_size"
#define CONFIG_HPZ "zero_optimization.zero_hpz_partition_size"
#define CONFIG_QGZ "zero_optimization.zero_quantized_gradients"

int32_t config_shard_size(const sifr_config *config) {
    int64_t own = config_setting_int(config, CONFIG_SHARDS);
    int64_t mics = config_setting_int(config, CONFIG_MICS);
    return (int32_t)(own > 0 ? own : mics > 0 ? mics : 0);
}

bool config_opens_copies(const sifr_config *config) {
    const json_t *given = config_setting_at(config, CONFIG_SHARDS)->given;
    return config_value_is_auto(given) && config_setting_int(config, CONFIG_MICS) <= 0;
}

bool config_opens_near(const sifr_config *config) {
    return config_value_is_auto(config_setting_at(config, CONFIG_HPZ)->given);
}

/* `ranks` share a copy of the state. How many of them are on a host is not known here. */
static sifr_status resolve_near(const sifr_config *config, int64_t ranks, sifr_error *error) {
    int64_t size = config_setting_int(config, CONFIG_HPZ);
    char where[300], sizes[128];
    if (config_setting_int(config, "zero_optimization.stage") < 3 || size <= 1) return SIFR_OK;
    if (ranks % size == 0) {
        if (size == ranks)
            snprintf(config_setting_at(config, CONFIG_HPZ)->note, CONFIG_NOTE,
                     "no effect, these are all ranks that share the state");
        return SIFR_OK;
    }
    config_path_where(config, CONFIG_HPZ, where);
    if (ranks == 1)
        return base_fail(error, SIFR_USAGE,
                         "%s is %lld, and one rank holds all the state; leave it out, or start "
                         "more ranks",
                         where, (long long)size);
    return base_fail(error, SIFR_USAGE,
                     "%s is %lld: the %lld ranks that share the state cannot be divided into "
                     "groups of that many; give %s, of these one that divides the ranks on a host "
                     "or is a multiple of them",
                     where, (long long)size, (long long)ranks,
                     base_format_divisors(ranks, sizes, sizeof sizes));
}

static sifr_status resolve_shards(const sifr_config *config, int64_t world_size, int64_t ranks,
                                  sifr_error *error) {
    int64_t own = config_setting_int(config, CONFIG_SHARDS);
    int64_t mics = config_setting_int(config, CONFIG_MICS), size = own > 0 ? own : mics;
    const char *path = own > 0 ? CONFIG_SHARDS : CONFIG_MICS;
    char where[300], sizes[128];
    if (size <= 0) return SIFR_OK;
    if (own > 0 && mics > 0 && own != mics)
        return base_fail(error, SIFR_USAGE, "%s is %lld and " CONFIG_MICS " is %lld; give one",
                         config_path_where(config, path, where), (long long)own, (long long)mics);
    if (size > 1 && ranks % size == 0) return SIFR_OK;
    config_path_where(config, path, where);
    const char *of = ranks < world_size ? " of a stage" : "";
    if (ranks == 1)
        return base_fail(error, SIFR_USAGE,
                         "%s is %lld, and %s has one rank; leave it out, or start more ranks",
                         where, (long long)size, *of ? "a stage" : "the run");
    base_format_divisors(ranks, sizes, sizeof sizes);
    if (size == 1)
        return base_fail(error, SIFR_USAGE,
                         "%s is 1: each rank would hold all states, as at zero_optimization.stage "
                         "0; set that and leave the size out, or give %s",
                         where, sizes);
    return base_fail(error, SIFR_USAGE,
                     "%s is %lld: %lld ranks%s cannot be divided into groups of that many; give %s",
                     where, (long long)size, (long long)ranks, of, sizes);
}

sifr_status config_resolve_mesh(const sifr_config *config, int64_t world_size, int64_t ranks,
                                sifr_error *error) {
    int32_t shards = config_shard_size(config);
    BASE_TRY(resolve_shards(config, world_size, ranks, error));
    return resolve_near(config, (shards ? shards : ranks) * config_context_ranks(config), error);
}

/* Few models are divided by other numbers of tensors and contexts than powers of two. */
static sifr_status refuse_size(const sifr_config *config, const char *key, int64_t size,
                               int64_t ranks, bool powers, sifr_error *error) {
    char where[300], sizes[128];
    base_format_divisors(powers ? ranks & -ranks : ranks, sizes, sizeof sizes);
    return base_fail(error, SIFR_USAGE,
                     "%s is %lld, which does not divide %lld rank%s; %s%s, or start a multiple of "
                     "%lld ranks",
                     config_path_where(config, key, where), (long long)size, (long long)ranks,
                     ranks == 1 ? "" : "s", sizes[0] ? "give " : "leave it out", sizes,
                     (long long)size);
}

sifr_status config_check_ranks(const sifr_config *config, int64_t world_size, sifr_error *error) {
    static const char *const names[] = {"stages", "tensors", "contexts"};
    const char *keys[3] = {"pipeline.stages"}, *last = NULL;
    int64_t sizes[3] = {config_stages(config)}, all = 1, size = 1;
    char where[300], product[128] = "", given[300] = "";
    size_t used = 0, at = 0;
    int count = 0;
    sizes[1] = config_tensor_ranks(config, &keys[1]);
    sizes[2] = config_context_ranks(config);
    keys[2] = config_context_key(config);
    for (int i = 0; i < 3; i++) {
        if (sizes[i] == 1) continue;
        const char *between = count ? " x " : "", *with = count ? ", " : "";
        used += (size_t)snprintf(product + used, sizeof product - used, "%s%lld %s", between,
                                 (long long)sizes[i], names[i]);
        at += (size_t)snprintf(given + at, sizeof given - at, "%s%s %lld", with,
                               count ? keys[i] : config_path_where(config, keys[i], where),
                               (long long)sizes[i]);
        if (!base_mul_i64(all, sizes[i], &all)) all = INT64_MAX;
        last = keys[i];
        size = sizes[i];
        count++;
    }
    if (world_size % all == 0) return SIFR_OK;
    if (count == 1) return refuse_size(config, last, size, world_size, last != keys[0], error);
    return base_fail(error, SIFR_USAGE,
                     "%s: %s take a multiple of %lld ranks, and there %s %lld; start as many, or "
                     "give smaller sizes",
                     given, product, (long long)all, world_size == 1 ? "is" : "are",
                     (long long)world_size);
}

int64_t config_data_ranks(const sifr_config *config) {
    const sifr_mesh *mesh = &config->step.mesh;
    return config->world_size / config->step.pipeline.stages / mesh->tensor_size /
           mesh->context_size;
}

void config_note_mesh(sifr_config *config) {
    int32_t contexts = config->step.mesh.context_size, shards = config_shard_size(config);
    if (config->step.zero.quantized_gradients && config->step.zero.stage >= 2 &&
        (shards ? shards : config_data_ranks(config)) * contexts == 1)
        snprintf(config_setting_at(config, CONFIG_QGZ)->note, CONFIG_NOTE,
                 "no effect, one rank has all gradients");
}
