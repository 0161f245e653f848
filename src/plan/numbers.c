#include "plan/numbers.h"

plan_number_places plan_places_of_numbers(const plan_schedule *s) {
    int64_t k = s->settings.step.gradient_accumulation_steps, ranks = s->settings.world_size;
    plan_number_places places = {.all_losses = ranks > 1 ? k : 0};
    places.parts = places.all_losses + k * ranks;
    places.count = places.parts;
    if (s->settings.mode != PLAN_TRAIN) return places;
    for (size_t u = 0; u < s->model->unit_count; u++) {
        int64_t blocks = s->unit_elements[u] / DEVICE_BLOCK;
        places.count += device_square_parts(s->dev, &blocks, 1, 1);
    }
    return places;
}

int64_t plan_number_bytes(const plan_schedule *s) {
    return (int64_t)sizeof(plan_numbers) +
           plan_places_of_numbers(s).count * (int64_t)sizeof(double);
}
