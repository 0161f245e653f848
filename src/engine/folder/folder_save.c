/* Writes weights as a Hugging Face model folder. */
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/file.h"
#include "base/heap.h"
#include "engine/engine_private.h"
#include "engine/folder/folder_private.h"
#include "engine/state/convert.h"
#include "plan/queries.h"

enum { PIECE_ELEMENTS = 1 << 18 }; /* piece of a weight that is sent to the rank that writes */

static void note_tied_head(const sifr_model *model, const model_architecture *architecture,
                           const formats_weights *like, engine_stored *out) {
    const formats_tensor *head = engine_find_tensor(like, architecture, architecture->head);
    if (!head || !engine_is_leftover(architecture, model, architecture->head)) return;
    for (size_t i = 0; i < out->count; i++) {
        if (strcmp(model->weights[out->tensors[i].weight].name, architecture->embedding) != 0)
            continue;
        out->tensors[out->count] = out->tensors[i];
        out->tensors[out->count++].name = head->name;
        return;
    }
}

sifr_status engine_stored_whole(const sifr_model *model, const model_architecture *architecture,
                                const formats_weights *like, base_dtype dtype, engine_stored *out,
                                sifr_error *error) {
    *out = (engine_stored){0};
    /* One more for a tied head that the source also stores. */
    BASE_TRY(base_alloc(model->weight_count + 1, sizeof *out->tensors, &out->tensors, error));
    for (size_t i = 0; like && i < model->weight_count; i++) {
        const char *name = model->weights[i].name;
        const formats_tensor *tensor = engine_find_tensor(like, architecture, name);
        if (tensor) {
            dtype = formats_value_type(tensor);
            break;
        }
    }
    for (size_t i = 0; i < model->weight_count; i++) {
        const char *name = model->weights[i].name;
        const formats_tensor *tensor = like ? engine_find_tensor(like, architecture, name) : NULL;
        if (model->weights[i].factor) continue;
        bool copied = tensor && !tensor->scales && model->weights[i].based;
        out->tensors[out->count++] = (engine_stored_tensor){
            i, tensor ? tensor->name : name, tensor ? formats_value_type(tensor) : dtype,
            copied ? tensor : NULL};
    }
    if (like) note_tied_head(model, architecture, like, out);
    sifr_status status =
        engine_find_carried(model, architecture, like, &out->carried, &out->carried_count, error);
    if (status != SIFR_OK) engine_stored_free(out);
    return status;
}

sifr_status engine_stored_make(const sifr_model *model, const model_architecture *architecture,
                               const formats_weights *like, base_dtype dtype, engine_stored *out,
                               sifr_error *error) {
    if (!model_is_adapter(model))
        return engine_stored_whole(model, architecture, like, dtype, out, error);
    *out = (engine_stored){0};
    BASE_TRY(base_alloc(model->weight_count, sizeof *out->tensors, &out->tensors, error));
    return engine_adapter_stored(model, out, error);
}

void engine_stored_free(engine_stored *stored) {
    free(stored->tensors);
    free(stored->names);
    free((void *)stored->carried);
    *stored = (engine_stored){0};
}

typedef struct folder_write {
    const sifr_model *model;
    const engine_stored *stored;
    engine_give_values give;
    void *user;
} folder_write;

static sifr_status fill_tensor(void *user, size_t position, formats_safetensors_writer *writer,
                               sifr_error *error) {
    const folder_write *write = user;
    if (position >= write->stored->count)
        return engine_copy_tensor(write->stored->carried[position - write->stored->count], writer,
                                  error);
    const engine_stored_tensor *tensor = &write->stored->tensors[position];
    const model_weight *w = &write->model->weights[tensor->weight];
    uint8_t stored[1 << 16];
    int64_t size = base_dtype_bytes(tensor->dtype), capacity = (int64_t)sizeof stored / size;
    int64_t elements = model_logical_elements(w);
    if (tensor->copied) return engine_copy_tensor(tensor->copied, writer, error);
    for (int64_t first = 0; first < elements; first += PIECE_ELEMENTS) {
        int64_t here = base_min_i64(PIECE_ELEMENTS, elements - first);
        const float *from;
        BASE_TRY(write->give(write->user, tensor->weight, first, here, &from, error));
        for (int64_t done = 0; done < here; done += capacity) {
            int64_t count = base_min_i64(capacity, here - done);
            engine_from_fp32(stored, from + done, tensor->dtype, count);
            BASE_TRY(formats_safetensors_append(writer, stored, (size_t)(count * size), error));
        }
    }
    return SIFR_OK;
}

sifr_status engine_write_folder(const sifr_model *model, const engine_stored *stored,
                                engine_give_values give, void *user, const char *directory,
                                sifr_error *error) {
    folder_write write = {model, stored, give, user};
    formats_tensor_spec *specs;
    size_t count = stored->count + stored->carried_count;
    BASE_TRY(base_alloc(count, sizeof *specs, &specs, error));
    for (size_t i = 0; i < stored->count; i++) {
        const engine_stored_tensor *tensor = &stored->tensors[i];
        const model_weight *w = &model->weights[tensor->weight];
        specs[i] = (formats_tensor_spec){.name = tensor->name, .dtype = tensor->dtype};
        specs[i].rank = model_weight_shape(w, specs[i].shape);
    }
    for (size_t i = stored->count; i < count; i++)
        specs[i] = engine_spec_of(stored->carried[i - stored->count]);
    sifr_status status =
        stored->file
            ? engine_write_file(directory, stored->file, specs, count, fill_tensor, &write, error)
            : formats_weights_write(directory, specs, count, 0, fill_tensor, &write, error);
    free(specs);
    return status;
}

int64_t engine_piece_elements(void) {
    return PIECE_ELEMENTS;
}

typedef struct folder_save {
    const sifr_engine *engine;
    engine_part part;  /* of trained weights: master weights, or their average */
    comm_group *peers; /* all ranks, if ranks have slices */
    float *piece;      /* PIECE_ELEMENTS long */
} folder_save;

/* The piece that the writing rank asks the others for. */
typedef struct piece_request {
    int64_t weight, first, count; /* weight -1: no more */
} piece_request;

static engine_part part_of(const folder_save *save, size_t index) {
    return save->engine->model->weights[index].frozen ? ENGINE_MASTER : save->part;
}

/* Gets at most PIECE_ELEMENTS values of a weight, on the writing rank. */
static sifr_status weight_values(void *user, size_t index, int64_t first, int64_t count,
                                 const float **out, sifr_error *error) {
    const folder_save *save = user;
    const sifr_engine *engine = save->engine;
    engine_part part = part_of(save, index);
    if (!engine_is_cut(engine, index, part))
        return engine_view_fp32(engine, index, part, first, count, save->piece, out, error);
    piece_request request = {(int64_t)index, first, count};
    BASE_TRY(comm_broadcast(engine->group, 0, &request, sizeof request, error));
    *out = save->piece;
    return engine_hand_in(engine, save->peers, index, part, first, count, save->piece, error);
}

/* On the other ranks: sends the pieces that the writer asks for, until it asks for no more. */
static sifr_status serve_pieces(const folder_save *save, sifr_error *error) {
    const sifr_engine *engine = save->engine;
    for (;;) {
        piece_request request;
        BASE_TRY(comm_broadcast(engine->group, 0, &request, sizeof request, error));
        if (request.weight < 0) return SIFR_OK;
        size_t index = (size_t)request.weight;
        BASE_TRY(engine_hand_in(engine, save->peers, index, part_of(save, index), request.first,
                                request.count, save->piece, error));
    }
}

static sifr_status save_weights(folder_save *save, const model_architecture *architecture,
                                const formats_weights *like, base_dtype dtype,
                                const char *directory, sifr_error *error) {
    const sifr_model *model = save->engine->model;
    engine_stored stored;
    BASE_TRY(engine_stored_make(model, architecture, like, dtype, &stored, error));
    sifr_status status = engine_write_folder(model, &stored, weight_values, save, directory, error);
    engine_stored_free(&stored);
    return status;
}

static bool some_cut(const folder_save *save) {
    for (size_t i = 0; i < save->engine->model->weight_count; i++)
        if (engine_is_cut(save->engine, i, part_of(save, i))) return true;
    return false;
}

/* For as long as a folder is written. */
static sifr_status open_peers(const folder_save *save, comm_group **out, sifr_error *error) {
    comm_group *group = save->engine->group;
    comm_part part = {.name = "folder", .key = comm_rank(group), .peers = true};
    return some_cut(save) ? comm_split(group, &part, out, error) : SIFR_OK;
}

static sifr_status save_together(folder_save *save, const model_architecture *architecture,
                                 const formats_weights *like, base_dtype dtype,
                                 const char *directory, sifr_error *error) {
    comm_group *group = save->engine->group;
    if (comm_rank(group) != 0) return serve_pieces(save, error);
    piece_request none = {.weight = -1};
    sifr_status status = save_weights(save, architecture, like, dtype, directory, error);
    sifr_error *told = status == SIFR_OK ? error : NULL;
    sifr_status ended = comm_broadcast(group, 0, &none, sizeof none, told);
    return status == SIFR_OK ? ended : status;
}

static sifr_status save_part(const sifr_engine *engine, engine_part part,
                             const model_architecture *architecture, const formats_weights *like,
                             base_dtype dtype, const char *directory, sifr_error *error) {
    folder_save save = {.engine = engine, .part = part};
    comm_group *group = engine->group;
    sifr_status status = engine_settle(engine, error);
    BASE_TRY(comm_agree_status(group, status, error));
    bool some = sifr_model_trained(engine->model) < sifr_model_parameters(engine->model);
    bool wide = engine_master_type(engine) == BASE_FP32 &&
                (!some || plan_dtype(&engine->training->settings) == BASE_FP32);
    if (comm_size(group) > 1 || some_cut(&save) || !engine_in_place(engine) || !wide)
        status = base_alloc(PIECE_ELEMENTS, sizeof *save.piece, &save.piece, error);
    status = comm_agree_status(group, status, error);
    if (status == SIFR_OK) status = open_peers(&save, &save.peers, error);
    if (status == SIFR_OK) {
        status = save_together(&save, architecture, like, dtype, directory, error);
        if (save.peers) comm_close(save.peers);
        status = comm_agree_status(group, status, error);
    }
    free(save.piece);
    return status;
}

sifr_status engine_save_folder(const sifr_engine *engine, const model_architecture *architecture,
                               const formats_weights *like, base_dtype dtype, const char *directory,
                               sifr_error *error) {
    return save_part(engine, ENGINE_MASTER, architecture, like, dtype, directory, error);
}

sifr_status engine_save_average(const sifr_engine *engine, const model_architecture *architecture,
                                const formats_weights *like, base_dtype dtype,
                                const char *directory, sifr_error *error) {
    engine_part part = (engine_part)(engine_parts(engine) - 1);
    if (!engine_optimizer(engine)->ema)
        return base_fail(error, SIFR_USAGE, "%s: this run keeps no average of its weights",
                         directory);
    return save_part(engine, part, architecture, like, dtype, directory, error);
}
