/* The steps that differ from a given one in one setting. */
#include "plan/queries.h"
#include "plan/search/search.h"

typedef struct neighbour_list {
    const plan_search *search;
    const plan_settings *from;
    plan_trial *trials;
    size_t count;
} neighbour_list;

static void add(neighbour_list *list, const plan_settings *settings, bool fixed_order) {
    if (list->count < PLAN_NEIGHBOURS)
        list->trials[list->count++] =
            (plan_trial){.settings = *settings, .fixed_order = fixed_order};
}

/* Other offload keys are shown without a disk too: they tell what a disk would gain. */
static bool needs_disk(const plan_search *search, const plan_choice *row) {
    unsigned both = PLAN_ON_DISK | PLAN_FOR_CAPACITY;
    return search->disk_bytes == 0 && (row->traits & both) == both;
}

/* Each step differs from `from` in one setting, so the order is fixed. */
static void add_choices(neighbour_list *list) {
    for (size_t i = 0; i < plan_choice_count(); i++) {
        const plan_choice *row = plan_choice_at(i);
        for (int32_t value = 0; value < row->count && row->matters(list->from); value++) {
            plan_settings settings = *list->from;
            if (value == plan_choice_get(row, list->from) || needs_disk(list->search, row))
                continue;
            plan_choose(list->search, &settings, i, value);
            add(list, &settings, true);
        }
    }
}

static void add_size(neighbour_list *list, int64_t share, int64_t sequences) {
    plan_settings settings = *list->from;
    settings.step.micro_batch_size = sequences;
    settings.step.gradient_accumulation_steps = (int32_t)(share / sequences);
    add(list, &settings, false);
}

/* The next smaller and the next larger micro batch of the same global batch. */
static void add_sizes(neighbour_list *list) {
    int64_t share =
        list->from->step.micro_batch_size * list->from->step.gradient_accumulation_steps;
    int64_t joined = plan_joined_sequences(list->search->model);
    int64_t below = list->from->step.micro_batch_size - joined,
            above = list->from->step.micro_batch_size + joined;
    while (below > 0 && share % below) below -= joined;
    while (above <= share && share % above) above += joined;
    if (below > 0) add_size(list, share, below);
    if (above <= share) add_size(list, share, above);
}

size_t plan_neighbours(const plan_search *search, const plan_settings *from, plan_trial *trials) {
    neighbour_list list = {.search = search, .from = from, .trials = trials};
    add_choices(&list);
    add_sizes(&list);
    return list.count;
}
