/* Values of the keys about profiling that are more than their type says. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "config/config_private.h"

/* DeepSpeed's names of what is done here by other means, too: of gradients an all-reduce is a
 * reduce-scatter and an all-gather. */
enum { SUMS = 1U << CONFIG_ALL_GATHER | 1U << CONFIG_REDUCE_SCATTER | 1U << CONFIG_ALL_REDUCE };

static const struct {
    const char *name;
    uint32_t operations;
} operation_names[] = {
    {"all_gather", 1U << CONFIG_ALL_GATHER},
    {"all_gather_into_tensor", 1U << CONFIG_ALL_GATHER},
    {"all_gather_coalesced", 1U << CONFIG_ALL_GATHER},
    {"reduce_scatter", 1U << CONFIG_REDUCE_SCATTER},
    {"reduce_scatter_tensor", 1U << CONFIG_REDUCE_SCATTER},
    {"all_reduce", SUMS},
    {"all_reduce_coalesced", SUMS},
    {"control", 1U << CONFIG_CONTROL},
    {"broadcast", 1U << CONFIG_CONTROL},
    {"barrier", 1U << CONFIG_CONTROL},
    {"send", 1U << CONFIG_SEND},
    {"isend", 1U << CONFIG_SEND},
    {"recv", 1U << CONFIG_RECEIVE},
    {"irecv", 1U << CONFIG_RECEIVE},
};

enum { NAMES = sizeof operation_names / sizeof *operation_names };

static sifr_status add_operation(sifr_config *config, const char *name, sifr_error *error) {
    char where[256], quoted[64];
    size_t index = 0;
    for (size_t i = 0; i < NAMES; i++) {
        if (strcmp(operation_names[i].name, name) != 0) continue;
        config->comms_logger.operations |= operation_names[i].operations;
        return SIFR_OK;
    }
    config_key_find("comms_logger.prof_ops", &index);
    return base_fail(error, SIFR_USAGE,
                     "%s: %s is not an operation of a run (all_gather, reduce_scatter, control, "
                     "send and recv are)",
                     config_setting_where(config, index, where, sizeof where),
                     config_quote(name, quoted, sizeof quoted));
}

static sifr_status choose_operations(sifr_config *config, sifr_error *error) {
    const json_t *names = config_setting_at(config, "comms_logger.prof_ops")->value;
    config->comms_logger.operations = 0;
    for (size_t i = 0; i < json_array_size(names); i++)
        BASE_TRY(add_operation(config, json_string_value(json_array_get(names, i)), error));
    const json_t *all = config_setting_at(config, "comms_logger.prof_all")->value;
    if (json_is_true(all)) config->comms_logger.operations = (1U << CONFIG_OPERATIONS) - 1;
    return SIFR_OK;
}

/* A whole number from 1 on; where it ends, or NULL. */
static const char *read_step(const char *text, int64_t *step) {
    char *end;
    if (text[0] < '0' || text[0] > '9') return NULL;
    errno = 0;
    long long value = strtoll(text, &end, 10);
    *step = value;
    return errno || value < 1 ? NULL : end;
}

/* "3" or "3..5". */
static sifr_status read_steps(sifr_config *config, sifr_error *error) {
    const char *text = json_string_value(config_setting_at(config, "sifr.trace_steps")->value);
    char where[256], quoted[64];
    size_t index = 0;
    if (!text) return SIFR_OK;
    config_key_find("sifr.trace_steps", &index);
    config_setting_where(config, index, where, sizeof where);
    if (!config->trace)
        return base_fail(error, SIFR_USAGE,
                         "%s: without a trace: give its file, too (--trace FILE)", where);
    const char *end = read_step(text, &config->trace_first);
    config->trace_last = config->trace_first;
    if (end && strncmp(end, "..", 2) == 0) end = read_step(end + 2, &config->trace_last);
    if (end && !*end && config->trace_first <= config->trace_last) return SIFR_OK;
    return base_fail(error, SIFR_USAGE,
                     "%s: %s are no steps; give one or a range, counted from 1, such as 3..5",
                     where, config_quote(text, quoted, sizeof quoted));
}

sifr_status config_resolve_profile(sifr_config *config, sifr_error *error) {
    BASE_TRY(choose_operations(config, error));
    return read_steps(config, error);
}
