/* Finds settings that fit: the fastest, and those with the fewest changes. Both searches try all
 * combinations of the searched rows, each with all micro batches of the same global batch. */
#include <stddef.h>
#include <stdlib.h>

#include "base/checked.h"
#include "base/heap.h"
#include "plan/queries.h"
#include "plan/search/fit_private.h"

enum { INPUTS = 3 }; /* per micro batch: tokens, labels, losses */

static bool has(const plan_choice *row, plan_trait trait) {
    return (row->traits & trait) != 0;
}

/* Schedule interleaved has one micro batch for each stage at least. */
static int32_t few_of(const plan_settings *settings) {
    bool interleaved = settings->step.pipeline.schedule == SIFR_SCHEDULE_INTERLEAVED;
    return interleaved ? plan_mesh_ranks(&settings->mesh, PLAN_STAGES) : PLAN_FEW;
}

/* A lower bound of a step's memory, from a list of a few micro batches. Each further micro batch
 * adds at least its tokens, labels and losses. */
static sifr_status bound_size(plan_search *search, const plan_settings *settings, plan_outcome *out,
                              sifr_error *error) {
    plan_settings few = *settings;
    if (few.step.gradient_accumulation_steps > few_of(settings))
        few.step.gradient_accumulation_steps = few_of(settings);
    BASE_TRY(plan_try_all_sizes(search, &few, out, error));
    int64_t ids =
        settings->step.micro_batch_size * settings->step.seq_length * (int64_t)sizeof(int32_t);
    int64_t own = INPUTS * plan_capacity(ids);
    if (out->possible)
        out->total_bytes += own * (settings->step.gradient_accumulation_steps -
                                   few.step.gradient_accumulation_steps);
    out->settings = *settings;
    return SIFR_OK;
}

/* Tries one size, unless a few of its micro batches tell that it does not fit; `least`, if it is
 * asked too, is the one with the least memory so far. *tried is false where a few were enough. */
static sifr_status try_size(plan_search *search, const fit_sizes *sizes, size_t index,
                            const plan_settings *settings, const plan_outcome *least,
                            plan_outcome *out, bool *tried, sifr_error *error) {
    plan_settings one = *settings;
    fit_set_size(sizes, &one, index);
    *tried = true;
    if (one.step.gradient_accumulation_steps > few_of(&one)) {
        BASE_TRY(bound_size(search, &one, out, error));
        bool may_fit = out->fits && out->total_bytes <= search->room_bytes;
        *tried = may_fit || (least && out->total_bytes < least->total_bytes);
    }
    return *tried ? plan_try_fitting(search, &one, out, error) : SIFR_OK;
}

/* Tries the first `count` sizes from the largest down and returns the first that fits: larger micro
 * batches are never slower. If none fits, returns the size with the least memory. That need not be
 * the smallest size, since accumulation needs gradient sums. */
static sifr_status largest_size(plan_search *search, const fit_sizes *sizes, size_t count,
                                const plan_settings *settings, plan_outcome *out,
                                sifr_error *error) {
    *out = (plan_outcome){.settings = *settings, .total_bytes = INT64_MAX};
    for (size_t i = count; i-- > 0 && !out->fits;) {
        plan_outcome next;
        bool tried;
        BASE_TRY(try_size(search, sizes, i, settings, out, &next, &tried, error));
        if (tried && (i + 1 == count || fit_is_better(&next, out))) *out = next;
    }
    return SIFR_OK;
}

static int64_t share_of(const plan_settings *s) {
    return s->step.micro_batch_size * s->step.gradient_accumulation_steps;
}

/* Of the outcomes within 1 % of the fastest, the one with the least memory. */
static const plan_outcome *choose(const plan_outcome *all, size_t count) {
    const plan_outcome *best = &all[0], *out;
    for (size_t i = 1; i < count; i++) {
        if (fit_is_better(&all[i], best)) best = &all[i];
    }
    out = best;
    for (size_t i = 0; i < count; i++) {
        bool quick = all[i].fits && all[i].predicted.step_seconds <=
                                        (1 + fit_alike) * best->predicted.step_seconds;
        if (quick && plan_needed_bytes(&all[i]) < plan_needed_bytes(out)) out = &all[i];
    }
    return out;
}

/* If the row with `trait` has its second value: how far back the combination lies that has the
 * first value and is otherwise equal. 0: the row has its first value. */
static size_t back_to_first(const fit_combination *c, plan_trait trait) {
    size_t stride = 1;
    for (size_t i = 0; i < c->rows; i++) {
        const plan_choice *row = plan_choice_at(c->row[i]);
        if (has(row, trait)) return c->value[i] ? stride : 0;
        stride *= (size_t)row->count;
    }
    return 0;
}

static bool is_enough(const fit_sizes *sizes, const plan_outcome *without) {
    return without->fits &&
           without->settings.step.micro_batch_size == sizes->size[sizes->count - 1];
}

/* Plans one micro batch of the smallest size that can be planned, which needs no more memory than
 * any other. Schedule interleaved has one for each stage at least. */
static sifr_status find_least(plan_search *search, const plan_settings *settings,
                              const fit_sizes *sizes, fit_entry *out, sifr_error *error) {
    plan_settings least = *settings;
    plan_outcome size = {.total_bytes = INT64_MAX};
    int64_t first = fit_least_sequences(search, settings);
    least.step.gradient_accumulation_steps = 1;
    if (settings->step.pipeline.schedule == SIFR_SCHEDULE_INTERLEAVED)
        least.step.gradient_accumulation_steps = plan_mesh_ranks(&settings->mesh, PLAN_STAGES);
    for (size_t i = 0; i < sizes->count && !size.possible; i++) {
        least.step.micro_batch_size = sizes->size[i];
        if (sizes->size[i] >= first) BASE_TRY(plan_try_all_sizes(search, &least, &size, error));
    }
    *out = (fit_entry){.least_bytes = size.total_bytes, .may_fit = size.fits, .planned = true};
    return SIFR_OK;
}

/* Plans only if the states alone fit. */
static sifr_status begin_entry(plan_search *search, const plan_settings *settings,
                               const fit_sizes *sizes, fit_entry *out, sifr_error *error) {
    *out = (fit_entry){.least_bytes = fit_state_bytes(search, settings)};
    if (out->least_bytes > search->room_bytes) return SIFR_OK;
    return find_least(search, settings, sizes, out, error);
}

/* One micro batch of a combination of which none has fit yet. */
static sifr_status try_next(plan_search *search, const fit_sizes *sizes, size_t index,
                            plan_outcome *best, fit_entry *entry, sifr_error *error) {
    plan_outcome next;
    bool tried;
    if (!entry->open || best->fits) return SIFR_OK;
    BASE_TRY(try_size(search, sizes, index, &best->settings, NULL, &next, &tried, error));
    if (tried && fit_is_better(&next, best)) *best = next;
    entry->tried &= tried;
    return SIFR_OK;
}

/* Adds a combination, and tries the largest micro batch if its lower bound fits. */
static sifr_status begin_combination(plan_search *search, const fit_combination *c,
                                     const plan_settings *from, const fit_sizes *sizes,
                                     fit_list *list, sifr_error *error) {
    plan_settings settings;
    bool possible = fit_combine(search, c, from, &settings);
    BASE_TRY(base_grow(&list->all, &list->capacity, list->count + 1, sizeof *list->all, error));
    BASE_TRY(base_grow(&list->entries, &list->entry_capacity, list->count + 1,
                       sizeof *list->entries, error));
    plan_outcome *next = &list->all[list->count];
    fit_entry *entry = &list->entries[list->count];
    size_t back = back_to_first(c, PLAN_FOR_CAPACITY), same = back_to_first(c, PLAN_IS_ORDER);
    bool wanted = possible && (back == 0 || !is_enough(sizes, next - back));
    *next = (plan_outcome){.settings = settings, .total_bytes = INT64_MAX};
    *entry = same ? entry[-(ptrdiff_t)same] : (fit_entry){.least_bytes = INT64_MAX};
    entry->tried = false; /* both orders share the bound */
    list->count++;
    if (!same && wanted) BASE_TRY(begin_entry(search, &settings, sizes, entry, error));
    entry->sizes = sizes;
    entry->open = wanted && entry->may_fit;
    entry->tried = entry->open;
    return entry->open ? try_next(search, sizes, sizes->count - 1, next, entry, error) : SIFR_OK;
}

/* Tries all combinations, each with the largest micro batch that fits. Larger ones are tried of all
 * combinations first: their plans are short, and the search may end. */
static sifr_status try_all(plan_search *search, const plan_settings *from, const fit_sizes *sizes,
                           fit_list *list, sifr_error *error) {
    fit_combination c = fit_begin_combinations(search, from);
    size_t first = list->count;
    if (sizes->count == 0) return SIFR_OK; /* no whole pairs */
    do BASE_TRY(begin_combination(search, &c, from, sizes, list, error));
    while (fit_next_combination(&c));
    for (size_t size = sizes->count - 1; size-- > 0;)
        for (size_t i = first; i < list->count; i++)
            BASE_TRY(try_next(search, sizes, size, &list->all[i], &list->entries[i], error));
    return SIFR_OK;
}

/* The size with the least memory, among those whose lower bound does not exceed `bytes`. */
static sifr_status least_size(plan_search *search, const fit_sizes *sizes, int64_t bytes,
                              plan_outcome *out, sifr_error *error) {
    plan_settings one = out->settings;
    for (size_t i = sizes->count; i-- > 0;) {
        plan_outcome tried;
        fit_set_size(sizes, &one, i);
        BASE_TRY(bound_size(search, &one, &tried, error));
        if (tried.total_bytes > bytes) continue;
        if (one.step.gradient_accumulation_steps > few_of(&one))
            BASE_TRY(plan_try_all_sizes(search, &one, &tried, error));
        if (tried.total_bytes >= out->total_bytes) continue;
        *out = tried;
        bytes = base_min_i64(bytes, tried.total_bytes);
    }
    return SIFR_OK;
}

/* If nothing fits, finds the step with the least memory: combinations in the order of their lower
 * bounds, up to the first bound above the best step found. */
static sifr_status find_nearest(plan_search *search, fit_list *list, sifr_error *error) {
    int64_t bytes = INT64_MAX;
    for (size_t i = 0; i < list->count; i++) {
        if (list->all[i].fits) return SIFR_OK;
        bytes = base_min_i64(bytes, list->all[i].total_bytes);
    }
    for (;;) {
        size_t next = list->count;
        for (size_t i = 0; i < list->count; i++) {
            const fit_entry *e = &list->entries[i];
            bool open = !e->tried && e->least_bytes <= bytes && e->least_bytes < INT64_MAX;
            if (!open) continue;
            if (next == list->count || e->least_bytes < list->entries[next].least_bytes) next = i;
        }
        if (next == list->count) return SIFR_OK;
        if (!list->entries[next].planned) {
            const fit_sizes *sizes = list->entries[next].sizes;
            BASE_TRY(
                find_least(search, &list->all[next].settings, sizes, &list->entries[next], error));
            list->entries[next].sizes = sizes;
            continue;
        }
        list->entries[next].tried = true;
        BASE_TRY(least_size(search, list->entries[next].sizes, bytes, &list->all[next], error));
        bytes = base_min_i64(bytes, list->all[next].total_bytes);
    }
}

/* The fastest step that fits and recomputes all, among those not in `seen`. */
static int find_recomputing(const fit_list *list, size_t count, const bool *seen) {
    int best = -1;
    for (size_t i = 0; i < count; i++) {
        const plan_outcome *o = &list->all[i];
        if (seen[i] || !o->fits || o->settings.step.recompute != SIFR_RECOMPUTE_UNIT) continue;
        if (best < 0 || fit_is_better(o, &list->all[best])) best = (int)i;
    }
    return best;
}

/* Tries the few fastest of them with as many activations kept as fit. The amount becomes
 * activation_memory, which the config can express, so the step is the same on any machine. */
static sifr_status keep_more(plan_search *search, fit_list *list, sifr_error *error) {
    enum { TRIED = 3 };
    size_t count = list->count;
    bool *seen;
    BASE_TRY(base_alloc(count, sizeof *seen, &seen, error));
    sifr_status status = SIFR_OK;
    for (int i = 0; i < TRIED && status == SIFR_OK; i++) {
        int next = find_recomputing(list, count, seen);
        plan_outcome tried;
        if (next < 0) break;
        seen[next] = true;
        plan_settings settings = list->all[next].settings;
        settings.step.recompute = SIFR_RECOMPUTE_AUTO;
        settings.step.activation_memory = 0;
        BASE_TRY_GOTO(status, plan_try(search, &settings, &tried, error), done);
        settings.step.activation_memory = tried.largest_bytes[PLAN_ACTIVATIONS];
        BASE_TRY_GOTO(status, plan_try(search, &settings, &tried, error), done);
        BASE_TRY_GOTO(status, fit_add(list, &tried, error), done);
    }
done:
    free(seen);
    return status;
}

/* How much of the whole work may be done so far: what comes later keeps some of it. */
static void allow(plan_search *search, int64_t most_work, int64_t part, int64_t parts) {
    search->most_work = (most_work + parts - 1) / parts * part; /* 0: no bound */
}

/* All combinations of each mesh; they have half of the work. `overlaps`: overlap_comm both ways. */
static sifr_status try_meshes(plan_search *search, const fit_meshes *meshes, bool overlaps,
                              const fit_sizes *sizes, fit_list *list, sifr_error *error) {
    int64_t most = search->most_work, parts = 8 * (int64_t)meshes->count, done = 0;
    sifr_status status = SIFR_OK;
    for (size_t m = 0; m < meshes->count; m++) {
        plan_settings settings = meshes->all[m];
        for (int i = 0; i < 1 + overlaps && status == SIFR_OK; i++) {
            if (overlaps) settings.step.zero.overlap_comm = i == 0;
            allow(search, most, done += overlaps ? 2 : 4, parts);
            status = try_all(search, &settings, &sizes[m], list, error);
        }
    }
    search->most_work = most;
    return status;
}

static sifr_status try_stages(plan_search *search, const fit_meshes *meshes, bool overlaps,
                              fit_list *list, sifr_error *error) {
    for (size_t m = 0; m < meshes->count; m++) {
        plan_settings settings = meshes->all[m];
        if (overlaps) settings.step.zero.overlap_comm = false;
        BASE_TRY(fit_try_stages(search, &settings, overlaps, list, error));
    }
    return SIFR_OK;
}

static sifr_status find_all_sizes(const plan_search *search, const fit_meshes *meshes,
                                  fit_sizes **out, sifr_error *error) {
    BASE_TRY(base_alloc(meshes->count, sizeof **out, out, error));
    for (size_t m = 0; m < meshes->count; m++)
        BASE_TRY(fit_find_sizes(search, share_of(&meshes->all[m]), &(*out)[m], error));
    return SIFR_OK;
}

sifr_status plan_fit(plan_search *search, const plan_settings *from, plan_outcome *best,
                     sifr_error *error) {
    fit_meshes meshes = {0};
    fit_sizes *sizes = NULL; /* by mesh */
    fit_list list = {0};
    bool open = search->overlap_by_stage && plan_mesh_ranks(&from->mesh, PLAN_WORLD) > 1;
    bool staged = plan_mesh_ranks(&from->mesh, PLAN_STAGES) > 1;
    sifr_status status = fit_find_meshes(search, from, &meshes, error);
    if (status == SIFR_OK) status = find_all_sizes(search, &meshes, &sizes, error);
    int64_t most = search->most_work;
    search->overlap_by_stage &= !open; /* both values are tried here */
    if (status == SIFR_OK) status = try_meshes(search, &meshes, open, sizes, &list, error);
    allow(search, most, 5, 8);
    if (status == SIFR_OK) status = keep_more(search, &list, error);
    allow(search, most, 6, 8);
    if (status == SIFR_OK && (staged || search->any_stages))
        status = try_stages(search, &meshes, open, &list, error);
    allow(search, most, 7, 8);
    if (status == SIFR_OK && search->any_copies) status = fit_try_copies(search, &list, error);
    if (status == SIFR_OK && search->any_near) status = fit_try_near(search, &list, error);
    search->most_work = most;
    if (status == SIFR_OK) status = find_nearest(search, &list, error);
    search->overlap_by_stage |= open;
    *best = (plan_outcome){.settings = *from, .total_bytes = INT64_MAX};
    if (status == SIFR_OK && list.count > 0) *best = *choose(list.all, list.count);
    for (size_t m = 0; sizes && m < meshes.count; m++) free(sizes[m].size);
    free(sizes);
    free(meshes.all);
    free(list.all);
    free(list.entries);
    return status;
}

/* --- fewest changes --- */

static int changes_of(const plan_settings *from, const plan_settings *to) {
    int changes = 0;
    for (size_t i = 0; i < plan_choice_count(); i++) {
        const plan_choice *row = plan_choice_at(i);
        if (row->count > 0) changes += plan_choice_get(row, from) != plan_choice_get(row, to);
    }
    return changes;
}

/* If full recomputation made it fit, tries keeping as many activations as fit, which counts as the
 * same change. */
static sifr_status keep_some(plan_search *search, const plan_settings *from, plan_outcome *out,
                             sifr_error *error) {
    plan_settings settings = out->settings;
    plan_outcome tried;
    bool again = settings.step.recompute == SIFR_RECOMPUTE_UNIT;
    if (!out->fits || !again || from->step.recompute != SIFR_RECOMPUTE_NONE) return SIFR_OK;
    settings.step.recompute = SIFR_RECOMPUTE_AUTO;
    settings.step.activation_memory = 0;
    BASE_TRY(plan_try(search, &settings, &tried, error));
    if (fit_is_better(&tried, out)) *out = tried;
    return SIFR_OK;
}

/* Combinations with `level` changes; the micro batch counts as one. */
static sifr_status try_level(plan_search *search, const plan_settings *from, const fit_sizes *sizes,
                             size_t smaller, int level, plan_outcome *out, sifr_error *error) {
    fit_combination c = fit_begin_combinations(search, from);
    do {
        plan_settings settings;
        plan_outcome tried;
        if (!fit_combine(search, &c, from, &settings)) continue;
        int changes = changes_of(from, &settings);
        if (changes == level)
            BASE_TRY(plan_try(search, &settings, &tried, error));
        else if (changes == level - 1 && smaller > 0)
            BASE_TRY(largest_size(search, sizes, smaller, &settings, &tried, error));
        else
            continue;
        BASE_TRY(keep_some(search, from, &tried, error));
        if (fit_is_better(&tried, out)) *out = tried;
    } while (fit_next_combination(&c));
    return SIFR_OK;
}

sifr_status plan_smallest_change(plan_search *search, const plan_settings *from, plan_outcome *out,
                                 sifr_error *error) {
    fit_sizes sizes;
    size_t smaller = 0;
    int levels = (int)fit_begin_combinations(search, from).rows + 1;
    sifr_status status = fit_find_sizes(search, share_of(from), &sizes, error);
    if (status == SIFR_OK) status = plan_try(search, from, out, error);
    while (smaller < sizes.count && sizes.size[smaller] < from->step.micro_batch_size) smaller++;
    for (int level = 1; level <= levels && status == SIFR_OK && !out->fits; level++)
        status = try_level(search, from, &sizes, smaller, level, out, error);
    free(sizes.size);
    return status;
}
