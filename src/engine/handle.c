#include "engine/handle.h"

#include "engine/engine_private.h"

const sifr_model *engine_model(const sifr_engine *engine) {
    return engine->model;
}

const sifr_settings *engine_settings(const sifr_engine *engine) {
    return &engine->settings;
}

const engine_groups *engine_groups_of(const sifr_engine *engine) {
    return &engine->groups;
}

comm_group *engine_group(const sifr_engine *engine) {
    return engine->group;
}

device *engine_device(const sifr_engine *engine) {
    return engine->dev;
}

const plan_schedule *engine_schedule(const sifr_engine *engine) {
    return engine->training;
}

engine_executor *engine_trainer(const sifr_engine *engine) {
    return engine->trainer;
}

const engine_swap *engine_state_file(const sifr_engine *engine) {
    return engine->swap;
}

const engine_pinned *engine_pinned_memory(const sifr_engine *engine) {
    return &engine->pinned;
}

int32_t engine_cleaned(const sifr_engine *engine) {
    return engine->cleaned;
}

const engine_loss_scaler *engine_scaler(const sifr_engine *engine) {
    return &engine->scaler;
}

const optim_memory *engine_memory(const sifr_engine *engine) {
    return &engine->memory;
}

void engine_restore(sifr_engine *engine, int64_t steps, int64_t updates,
                    const engine_loss_scaler *scaler, const optim_memory *memory) {
    engine->steps = steps;
    engine->updates = updates;
    engine->scaler = *scaler;
    engine->memory = *memory;
    engine_note_restored(engine);
}
