/* Reads and writes weights in Hugging Face model folders. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/file.h"
#include "base/heap.h"
#include "engine/engine_private.h"
#include "engine/state/convert.h"
#include "plan/queries.h"

static bool ends_with(const char *text, const char *end) {
    size_t a = strlen(text), b = strlen(end);
    return a >= b && !strcmp(text + a - b, end);
}

/* Under its name, or without the prefix in older files. */
static const formats_tensor *find_named(const formats_weights *weights,
                                        const model_architecture *architecture, const char *name) {
    const formats_tensor *tensor = formats_weights_find(weights, name);
    size_t length = strlen(architecture->prefix);
    if (!tensor && length && !strncmp(name, architecture->prefix, length)) {
        tensor = formats_weights_find(weights, name + length);
    }
    return tensor;
}

/* Under this name, or one that older files have. */
const formats_tensor *engine_find_tensor(const formats_weights *weights,
                                         const model_architecture *architecture, const char *name) {
    const formats_tensor *tensor = find_named(weights, architecture, name);
    for (size_t i = 0; i < 2 && architecture->older[i].now && !tensor; i++) {
        char text[MODEL_NAME_LENGTH];
        if (!ends_with(name, architecture->older[i].now)) continue;
        size_t kept = strlen(name) - strlen(architecture->older[i].now);
        snprintf(text, sizeof text, "%.*s%s", (int)kept, name, architecture->older[i].before);
        tensor = find_named(weights, architecture, text);
    }
    return tensor;
}

static sifr_status check_tensor(const model_weight *w, const formats_tensor *tensor,
                                sifr_error *error) {
    int64_t wanted[3];
    int rank = model_weight_shape(w, wanted);
    bool fits = tensor->rank == rank;
    for (int i = 0; i < rank && fits; i++) fits = tensor->shape[i] == wanted[i];
    if (!fits) {
        char shape[64] = "";
        size_t used = 0;
        for (int i = 0; i < tensor->rank && used + 24 < sizeof shape; i++) {
            used += (size_t)snprintf(shape + used, sizeof shape - used, "%s%lld", i ? " x " : "",
                                     (long long)tensor->shape[i]);
        }
        return base_fail(error, SIFR_FAILED,
                         "tensor %s: its shape is %s, but config.json needs %lld x %lld",
                         tensor->name, shape, (long long)w->rows, (long long)w->columns);
    }
    if (tensor->dtype > BASE_FP16) {
        return base_fail(error, SIFR_FAILED,
                         "tensor %s: type %s is not supported (supported: F32, BF16, F16)",
                         tensor->name, formats_dtype_name(tensor->dtype));
    }
    return SIFR_OK;
}

static bool known_leftover(const model_architecture *architecture, const sifr_model *model,
                           const char *name) {
    for (size_t i = 0; i < 4 && architecture->ignored[i]; i++) {
        if (ends_with(name, architecture->ignored[i])) return true;
    }
    /* A stored copy of a tied head. */
    const model_weight *head = &model->weights[model->nodes[model->node_count - 1].w[0]];
    return !strcmp(name, architecture->head) && !strcmp(head->name, architecture->embedding);
}

/* A stored tied head must equal the embedding. */
static sifr_status check_tied(const model_architecture *architecture, const sifr_model *model,
                              const formats_weights *weights, sifr_error *error) {
    const formats_tensor *head = formats_weights_find(weights, architecture->head);
    if (!head || !known_leftover(architecture, model, architecture->head)) return SIFR_OK;
    const formats_tensor *table =
        engine_find_tensor(weights, architecture, architecture->embedding);
    bool same = table && head->bytes == table->bytes && head->dtype == table->dtype &&
                !memcmp(head->data, table->data, head->bytes);
    if (same) return SIFR_OK;
    return base_fail(error, SIFR_FAILED,
                     "tensor %s: config.json says tie_word_embeddings, but it differs from %s; set "
                     "tie_word_embeddings to false to train it by itself",
                     architecture->head, architecture->embedding);
}

/* Tensors that are not read, and the first of them. */
typedef struct leftovers {
    size_t count;
    const char *first;
} leftovers;

static void leave(leftovers *out, const char *name) {
    if (out->count++ == 0) out->first = name;
}

static bool is_read(const engine_folder *folder, const formats_tensor *tensor) {
    const sifr_model *model = folder->model;
    if (known_leftover(folder->architecture, model, tensor->name)) return true;
    for (size_t w = 0; w < model->weight_count; w++) {
        bool made = folder->made && folder->made[w];
        if (!made && engine_find_tensor(folder->weights, folder->architecture,
                                        model->weights[w].name) == tensor)
            return true;
    }
    return false;
}

static void find_leftovers(const engine_folder *folder, leftovers *heads, leftovers *others) {
    size_t count = formats_weights_count(folder->weights), known = 0;
    for (size_t i = 0; i < folder->model->weight_count; i++)
        known += !folder->model->weights[i].factor;
    for (size_t i = 0; i < count; i++)
        known += known_leftover(folder->architecture, folder->model,
                                formats_weights_at(folder->weights, i)->name);
    if (known == count && !folder->made_count) return;
    for (size_t i = 0; i < count; i++) {
        const formats_tensor *tensor = formats_weights_at(folder->weights, i);
        if (is_read(folder, tensor)) continue;
        bool body = model_place_of(tensor->name, folder->architecture->prefix) == MODEL_BODY;
        leave(body ? others : heads, tensor->name);
    }
}

void engine_folder_warn(const engine_folder *folder, const sifr_log *log) {
    leftovers heads = {0}, others = {0};
    if (!folder->weights) return;
    find_leftovers(folder, &heads, &others);
    formats_weights_warn(folder->weights, log);
    engine_folder_say_made(folder, log);
    const model_config *config = &folder->config;
    if (config->task == MODEL_SEQUENCE_CLASSES && !folder->architecture->encoder &&
        config->pad_token_id < 0)
        base_log(
            log, SIFR_LOG_WARNING,
            "config.json has no pad_token_id: with this model transformers classifies one text "
            "at a time");
    if (heads.count)
        base_log(log, SIFR_LOG_INFO, "%zu tensor%s of another head left out, %.200s%s", heads.count,
                 heads.count == 1 ? "" : "s", heads.first, heads.count == 1 ? "" : " first");
    if (others.count)
        base_log(log, SIFR_LOG_WARNING,
                 "%zu tensor%s ignored, %.200s%s: not part of the model that config.json "
                 "describes, so neither read nor saved",
                 others.count, others.count == 1 ? "" : "s", others.first,
                 others.count == 1 ? "" : " first");
}

sifr_status engine_visit_present(const sifr_model *model, const model_architecture *architecture,
                                 const formats_weights *weights, const bool *made,
                                 engine_take_weight take, void *user, sifr_error *error) {
    for (size_t i = 0; i < model->weight_count; i++) {
        const model_weight *w = &model->weights[i];
        if (w->factor || (made && made[i])) continue;
        const formats_tensor *tensor = engine_find_tensor(weights, architecture, w->name);
        if (!tensor) {
            return base_fail(error, SIFR_FAILED,
                             "tensor %s: missing, but config.json needs it (there are %zu tensors)",
                             w->name, formats_weights_count(weights));
        }
        BASE_TRY(check_tensor(w, tensor, error));
    }
    BASE_TRY(check_tied(architecture, model, weights, error));
    for (size_t i = 0; take && i < model->weight_count; i++) {
        const char *name = model->weights[i].name;
        if (model->weights[i].factor || (made && made[i])) continue;
        BASE_TRY(take(user, i, engine_find_tensor(weights, architecture, name), error));
    }
    return SIFR_OK;
}

sifr_status engine_visit_folder(const sifr_model *model, const model_architecture *architecture,
                                const formats_weights *weights, engine_take_weight take, void *user,
                                sifr_error *error) {
    return engine_visit_present(model, architecture, weights, NULL, take, user, error);
}

sifr_status engine_visit_opened(const engine_folder *folder, engine_take_weight take, void *user,
                                sifr_error *error) {
    return engine_visit_present(folder->model, folder->architecture, folder->weights, folder->made,
                                take, user, error);
}

/* Of a mapped file, only pages with this rank's values are read. */
static sifr_status load_weight(void *user, size_t index, const formats_tensor *tensor,
                               sifr_error *error) {
    return engine_fill(user, index, engine_tensor_values, tensor, error);
}

sifr_status engine_load_folder(sifr_engine *engine, const model_architecture *architecture,
                               const formats_weights *weights, sifr_error *error) {
    BASE_TRY(engine_settle(engine, error));
    return engine_visit_folder(engine->model, architecture, weights, load_weight, engine, error);
}

static void initial_values(const void *user, size_t index, int64_t first, int64_t count,
                           float *values) {
    const sifr_engine *engine = user;
    model_initial_values(engine->model, index, engine->settings.seed, first, count, values);
}

sifr_status engine_load_opened(sifr_engine *engine, const engine_folder *folder,
                               sifr_error *error) {
    BASE_TRY(engine_settle(engine, error));
    BASE_TRY(engine_visit_present(engine->model, folder->architecture, folder->weights,
                                  folder->made, load_weight, engine, error));
    for (size_t i = 0; i < engine->model->weight_count; i++) {
        const formats_tensor *tensor = engine_adapter_tensor(folder, i);
        bool made = engine->model->weights[i].factor || (folder->made && folder->made[i]);
        if (tensor)
            BASE_TRY(engine_fill(engine, i, engine_tensor_values, tensor, error));
        else if (engine->model->weights[i].norms_of)
            BASE_TRY(engine_fill_magnitudes(engine, folder, i, error));
        else if (made)
            BASE_TRY(engine_fill(engine, i, initial_values, engine, error));
    }
    return SIFR_OK;
}

sifr_status engine_load_frozen(sifr_engine *engine, const engine_folder *folder,
                               sifr_error *error) {
    for (size_t i = 0; i < engine->model->weight_count; i++) {
        const model_weight *w = &engine->model->weights[i];
        if (!w->based) continue;
        const formats_tensor *tensor =
            engine_find_tensor(folder->weights, folder->architecture, w->name);
        BASE_TRY(engine_fill(engine, i, engine_tensor_values, tensor, error));
    }
    return SIFR_OK;
}

/* --- saving --- */

enum { PIECE_ELEMENTS = 1 << 18 }; /* piece of a weight that is sent to the rank that writes */

static void note_tied_head(const sifr_model *model, const model_architecture *architecture,
                           const formats_weights *like, engine_stored *out) {
    const formats_tensor *head = formats_weights_find(like, architecture->head);
    if (!head || !known_leftover(architecture, model, architecture->head)) return;
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
            dtype = tensor->dtype;
            break;
        }
    }
    for (size_t i = 0; i < model->weight_count; i++) {
        const char *name = model->weights[i].name;
        const formats_tensor *tensor = like ? engine_find_tensor(like, architecture, name) : NULL;
        if (model->weights[i].factor) continue;
        out->tensors[out->count++] =
            (engine_stored_tensor){i, tensor ? tensor->name : name, tensor ? tensor->dtype : dtype,
                                   model->weights[i].based ? tensor : NULL};
    }
    if (like) note_tied_head(model, architecture, like, out);
    return SIFR_OK;
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
    *stored = (engine_stored){0};
}

typedef struct folder_write {
    const sifr_model *model;
    const engine_stored *stored;
    engine_give_values give;
    void *user;
} folder_write;

/* In pieces of a mapped file, of which little is in memory at a time. */
static sifr_status copy_tensor(const formats_tensor *tensor, formats_safetensors_writer *writer,
                               sifr_error *error) {
    enum { PIECE = 1 << 20 };
    const char *data = tensor->data;
    for (size_t done = 0; done < tensor->bytes; done += PIECE) {
        size_t count = tensor->bytes - done < PIECE ? tensor->bytes - done : PIECE;
        base_read_ahead(data + done, count);
        BASE_TRY(formats_safetensors_append(writer, data + done, count, error));
    }
    return SIFR_OK;
}

static sifr_status fill_tensor(void *user, size_t position, formats_safetensors_writer *writer,
                               sifr_error *error) {
    const folder_write *write = user;
    const engine_stored_tensor *tensor = &write->stored->tensors[position];
    const model_weight *w = &write->model->weights[tensor->weight];
    uint8_t stored[1 << 16];
    int64_t size = base_dtype_bytes(tensor->dtype), room = (int64_t)sizeof stored / size;
    int64_t elements = model_logical_elements(w);
    if (tensor->copied) return copy_tensor(tensor->copied, writer, error);
    for (int64_t first = 0; first < elements; first += PIECE_ELEMENTS) {
        int64_t here = base_min_i64(PIECE_ELEMENTS, elements - first);
        const float *from;
        BASE_TRY(write->give(write->user, tensor->weight, first, here, &from, error));
        for (int64_t done = 0; done < here; done += room) {
            int64_t count = base_min_i64(room, here - done);
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
    BASE_TRY(base_alloc(stored->count, sizeof *specs, &specs, error));
    for (size_t i = 0; i < stored->count; i++) {
        const engine_stored_tensor *tensor = &stored->tensors[i];
        const model_weight *w = &model->weights[tensor->weight];
        specs[i] = (formats_tensor_spec){.name = tensor->name, .dtype = tensor->dtype};
        specs[i].rank = model_weight_shape(w, specs[i].shape);
    }
    sifr_status status = stored->file ? engine_write_file(directory, stored->file, specs,
                                                          stored->count, fill_tensor, &write, error)
                                      : formats_weights_write(directory, specs, stored->count, 0,
                                                              fill_tensor, &write, error);
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
