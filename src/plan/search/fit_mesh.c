/* Tensor and context ranks in plan_fit. Ranks that share a batch are fewer then by so many times,
 * and each has as many times the sequences. */
#include "base/heap.h"
#include "plan/queries.h"
#include "plan/search/fit_private.h"

static sifr_status add_mesh(const plan_search *search, const plan_settings *from, int32_t tensors,
                            int32_t contexts, fit_meshes *out, sifr_error *error) {
    plan_settings one = *from;
    int32_t here = search->machine->ranks_per_host;
    int32_t world = plan_mesh_ranks(&from->mesh, PLAN_WORLD);
    int32_t place = plan_mesh_place(&from->mesh, PLAN_WORLD);
    one.step.mesh.tensor_size = tensors;
    one.step.mesh.context_size = contexts;
    one.pipeline = (plan_pipeline){0};
    if (plan_mesh_of(&one.step, world, place, &one.mesh, NULL) != SIFR_OK) return SIFR_OK;
    if (plan_mesh_check_hosts(&one.mesh, here, NULL) != SIFR_OK) return SIFR_OK;
    plan_mesh_place_hosts(&one.mesh, here);
    int64_t global = from->step.micro_batch_size * from->step.gradient_accumulation_steps *
                     plan_mesh_ranks(&from->mesh, PLAN_DATA);
    int32_t data = plan_mesh_ranks(&one.mesh, PLAN_DATA);
    if (global % data) return SIFR_OK;
    one.step.micro_batch_size = global / data;
    one.step.gradient_accumulation_steps = 1;
    BASE_TRY(base_grow(&out->all, &out->capacity, out->count + 1, sizeof *out->all, error));
    out->all[out->count++] = one;
    return SIFR_OK;
}

sifr_status fit_find_meshes(const plan_search *search, const plan_settings *from, fit_meshes *out,
                            sifr_error *error) {
    int32_t world = plan_mesh_ranks(&from->mesh, PLAN_WORLD);
    int32_t tensors = plan_mesh_ranks(&from->mesh, PLAN_TENSORS);
    int32_t contexts = plan_mesh_ranks(&from->mesh, PLAN_CONTEXTS);
    BASE_TRY(base_grow(&out->all, &out->capacity, 1, sizeof *out->all, error));
    out->all[out->count++] = *from;
    for (int32_t t = 1; t <= world; t++)
        for (int32_t c = 1; c <= world / t; c++) {
            bool divides = world % t == 0 && world / t % c == 0;
            bool wanted =
                (search->any_tensors || t == tensors) && (search->any_contexts || c == contexts);
            if (divides && wanted && (t != tensors || c != contexts))
                BASE_TRY(add_mesh(search, from, t, c, out, error));
        }
    return SIFR_OK;
}
