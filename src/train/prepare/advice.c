#include "train/prepare/advice.h"

#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "engine/handle.h"
#include "train/prepare/run_settings.h"

enum { ADVICE_LENGTH = 512, MEASURE_BYTES = 12 << 20 };

/* If no change of settings fits: the longest sequence that fits with the settings that take least
 * memory. */
static sifr_status shorten(plan_search *search, const plan_settings *from,
                           const plan_outcome *least, char *out, sifr_error *error) {
    char bytes[32], change[256];
    int64_t longest;
    base_format_bytes((uint64_t)least->total_bytes, bytes);
    plan_describe_change(search, from, &least->settings, change, sizeof change);
    BASE_TRY(plan_largest(search, &least->settings, plan_set_length, 1, 1,
                          from->step.seq_length - 1, &longest, error));
    int used = snprintf(
        out, ADVICE_LENGTH,
        "no other stage, recomputation or micro batch fits; the least memory is %s per rank%s%s",
        bytes, change[0] ? ", with " : "", change);
    if (longest > 0 && used > 0 && used < ADVICE_LENGTH)
        snprintf(out + used, (size_t)(ADVICE_LENGTH - used), "; then seq_length %lld fits",
                 (long long)longest);
    return SIFR_OK;
}

/* For a run that fits in memory but not on the disk for state. */
static sifr_status say_none(const plan_search *search, char *out) {
    char capacity[32];
    snprintf(out, ADVICE_LENGTH, "no other settings fit in the %s of memory that a rank may take",
             base_format_bytes((uint64_t)search->room_bytes, capacity));
    return SIFR_OK;
}

static sifr_status say_ended(char *out) {
    snprintf(out, ADVICE_LENGTH,
             "none of the other settings that were tried fits; there are more (sifr plan --fit)");
    return SIFR_OK;
}

static sifr_status look(plan_search *search, const plan_settings *from, char *out,
                        sifr_error *error) {
    plan_outcome own, found;
    char bytes[32], change[256];
    BASE_TRY(plan_try_size(search, from, &own, error));
    search->most_work = PLAN_FIT_WORK / 4; /* a refusal should not wait long for advice */
    BASE_TRY(plan_smallest_change(search, from, &found, error));
    search->most_work = 0;
    bool in_memory = own.total_bytes <= search->room_bytes;
    if (!found.fits && search->ended) return say_ended(out);
    if (!found.fits && !in_memory) return shorten(search, from, &found, out, error);
    if (!found.fits) return own.nvme_bytes ? say_none(search, out) : SIFR_OK;
    plan_describe_change(search, from, &found.settings, change, sizeof change);
    if (change[0])
        snprintf(out, ADVICE_LENGTH, "it fits with %s: %s per rank", change,
                 base_format_bytes((uint64_t)found.total_bytes, bytes));
    return SIFR_OK;
}

/* If keeping fewer checkpoints is enough: how many may be kept. */
static sifr_status keep_fewer(const plan_search *search, const plan_settings *from,
                              const train_disk *disk, char *out, sifr_error *error) {
    plan_search less = *search;
    plan_outcome own;
    if (less.output.checkpoints <= 1) return SIFR_OK;
    less.output.checkpoints = 1;
    BASE_TRY(plan_try_size(&less, from, &own, error));
    less.output = search->output;
    while (less.output.checkpoints > 1 &&
           !plan_fits_output(&less.output, search->model, from, own.nvme_bytes))
        less.output.checkpoints--;
    int64_t kept = less.output.checkpoints - 1 + disk->there;
    if (!own.fits || less.output.checkpoints == search->output.checkpoints) return SIFR_OK;
    if (kept > 0)
        snprintf(out, ADVICE_LENGTH, "it fits with sifr.save_total_limit %lld", (long long)kept);
    else
        snprintf(out, ADVICE_LENGTH, "it fits with sifr.save_steps 0, saved at the end only");
    return SIFR_OK;
}

static sifr_status find_advice(comm_group *group, const sifr_model *model,
                               const sifr_config *config, const engine_device_choice *chosen,
                               int64_t length, char *out, sifr_error *error) {
    sifr_settings options = train_step_settings(config, length);
    plan_settings settings = train_plan_settings(&options, group);
    plan_machine machine = {.ranks_per_host = comm_local_size(group)}, usual = machine;
    int64_t host = (int64_t)engine_rank_capacity(comm_local_size(group));
    train_disk disk;
    device *dev;
    BASE_TRY(train_disk_find(config, model, &disk, error));
    BASE_TRY(device_open(chosen->kind, &chosen->place, options.threads, options.isa, &dev, error));
    device_only_plan(dev);
    sifr_status status = plan_machine_measure(dev, NULL, MEASURE_BYTES, &machine, error);
    if (status == SIFR_OK) {
        sifr_status stored = plan_machine_load_stored(&machine, NULL); /* else what is assumed */
        plan_machine_typical(dev, &usual);
        if (stored == SIFR_OK) stored = plan_machine_load_stored(&usual, NULL);
        bool hidden = device_is_hidden(dev);
        plan_search search =
            train_search(config, model, dev, &machine, hidden ? device_capacity(dev) : host, &disk,
                         comm_local_size(group));
        if (hidden) search.host_room_bytes = host;
        search.spare_bytes = plan_spare(search.room_bytes);
        search.order_machine = &usual;
        (void)stored;
        status = keep_fewer(&search, &settings, &disk, out, error);
        if (status == SIFR_OK && !out[0]) status = look(&search, &settings, out, error);
    }
    device_close(dev);
    return status;
}

sifr_status train_advise(comm_group *group, const sifr_model *model, const sifr_config *config,
                         const engine_device_choice *chosen, int64_t length, sifr_error *error) {
    char advice[ADVICE_LENGTH] = "";
    sifr_error why = {0};
    if (comm_rank(group) == 0 &&
        find_advice(group, model, config, chosen, length, advice, &why) != SIFR_OK)
        advice[0] = '\0'; /* without advice the refusal stands as it is */
    BASE_TRY(comm_broadcast(group, 0, advice, sizeof advice, error));
    if (!advice[0]) return SIFR_NO_MEMORY;
    size_t used = strlen(error->message);
    snprintf(error->message + used, sizeof error->message - used, "; %s", advice);
    return SIFR_NO_MEMORY;
}
