#include "formats/gguf/gguf_export.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/checked.h"
#include "base/half.h"
#include "base/heap.h"
#include "base/json.h"
#include "formats/fp8.h"
#include "formats/gguf/gguf_family.h"
#include "formats/gguf/gguf_general.h"
#include "formats/gguf/gguf_limits.h"
#include "formats/gguf/gguf_linear.h"
#include "formats/gguf/gguf_rope.h"
#include "formats/gguf/gguf_vocab.h"
#include "formats/multimodal.h"
#include "formats/weights.h"

enum { QUANTIZATION_VERSION = 2 };

static const struct {
    const char *name;
    formats_gguf_type type;
    uint32_t file_type; /* general.file_type */
} types[] = {
    {"f32", FORMATS_GGUF_F32, 0},
    {"f16", FORMATS_GGUF_F16, 1},
    {"bf16", FORMATS_GGUF_BF16, 32},
    {"q8_0", FORMATS_GGUF_Q8_0, 7},
};

enum { TYPES = sizeof types / sizeof *types };

/* Where the rows of a written tensor come from. */
typedef struct gguf_source {
    const formats_tensor *tensor; /* NULL: `values` */
    const float *values;
    formats_gguf_change change;
    int64_t heads;
    formats_gguf_heads linear;
} gguf_source;

typedef struct gguf_job {
    const char *folder;
    char config_path[BASE_PATH_LENGTH];
    formats_gguf_files files;
    bool beside;    /* a tower is beside the text model, which alone is written */
    json_t *config; /* with defaults */
    const formats_gguf_family *family;
    formats_weights *weights;
    formats_gguf_type type;
    const sifr_log *log;
    formats_gguf_tensor *tensors;
    gguf_source *sources;
    size_t count;
    int64_t parameters;
    float *factors[2]; /* of rotations, that are written as tensors */
    formats_gguf_meta meta;
} gguf_job;

bool formats_gguf_type_find(const char *name, formats_gguf_type *out) {
    for (int i = 0; i < TYPES; i++) {
        if (strcmp(name, types[i].name) != 0) continue;
        *out = types[i].type;
        return true;
    }
    return false;
}

/* --- rows --- */

static float load(const formats_tensor *t, int64_t at) {
    uint16_t half;
    float value;
    if (t->scales) {
        formats_fp8_values(t, at, 1, &value);
        return value;
    }
    if (t->dtype == BASE_FP32) {
        memcpy(&value, (const char *)t->data + 4 * at, sizeof value);
        return value;
    }
    memcpy(&half, (const char *)t->data + 2 * at, sizeof half);
    return t->dtype == BASE_BF16 ? base_bf16_to_float(half) : base_half_to_float(half);
}

/* transformers rotates the first half of a head with its second one, llama.cpp neighbours. */
static int64_t turned(int64_t row, int64_t rows, int64_t heads) {
    int64_t size = rows / heads, head = row / size, at = row % size;
    return head * size + at % 2 * (size / 2) + at / 2;
}

/* q, k and v of a head lie together in GPT-NeoX; llama.cpp has all of q first. */
static int64_t gathered(int64_t row, int64_t rows, int64_t heads) {
    int64_t width = rows / 3, size = width / heads, part = row / width, at = row % width;
    return at / size * 3 * size + part * size + at % size;
}

/* The row, or the element of a vector, that goes to `row` of `rows`. */
static int64_t source_row(const gguf_source *s, int64_t row, int64_t rows) {
    switch (s->change) {
    case FORMATS_GGUF_QUERY_ROWS:
    case FORMATS_GGUF_KEY_ROWS:
        return turned(row, rows, s->heads);
    case FORMATS_GGUF_HEAD_ROWS:
        return gathered(row, rows, s->heads);
    case FORMATS_GGUF_VALUE_ROWS:
    case FORMATS_GGUF_VALUE_VECTOR:
    case FORMATS_GGUF_DECAY:
    case FORMATS_GGUF_QKV_ROWS:
    case FORMATS_GGUF_QKV_KERNEL:
        return formats_gguf_value_row(&s->linear, row, rows);
    default:
        return row;
    }
}

/* In the type of the folder, fp32 or fp16, as the converter computes. */
static float changed(const gguf_source *s, float value) {
    if (s->change == FORMATS_GGUF_PLUS_ONE)
        value += 1;
    else if (s->change == FORMATS_GGUF_DECAY)
        value = -(float)exp((double)value);
    else
        return value;
    return s->tensor->dtype == BASE_FP16 ? base_half_to_float(base_half_from_float(value)) : value;
}

static void give_row(void *user, size_t position, int64_t row, float *out) {
    const gguf_job *job = user;
    const gguf_source *s = &job->sources[position];
    const formats_gguf_tensor *to = &job->tensors[position];
    int64_t columns = to->rank ? to->shape[to->rank - 1] : 1;
    if (!s->tensor) {
        memcpy(out, s->values, (size_t)columns * sizeof *out);
        return;
    }
    int64_t rows = to->rank > 1 ? to->shape[0] : 1;
    int64_t from = to->rank > 1 ? source_row(s, row, rows) : row;
    for (int64_t c = 0; c < columns; c++) {
        int64_t at = from * columns + c;
        if (s->change == FORMATS_GGUF_TRANSPOSED) at = c * rows + row;
        if (s->change == FORMATS_GGUF_VALUE_COLUMNS)
            at = from * columns + formats_gguf_value_row(&s->linear, c, columns);
        if (to->rank == 1) at = source_row(s, c, columns);
        out[c] = changed(s, load(s->tensor, at));
    }
}

/* --- the list of tensors --- */

static bool is_kernel(formats_gguf_change change) {
    return change == FORMATS_GGUF_KERNEL || change == FORMATS_GGUF_QKV_KERNEL;
}

static formats_gguf_type type_of(const gguf_job *job, const formats_gguf_tensor *t,
                                 formats_gguf_change change) {
    static const char norm[] = "_norm.weight", weight[] = ".weight";
    size_t length = strlen(t->name);
    bool is_norm = length >= sizeof norm && !strcmp(t->name + length - (sizeof norm - 1), norm);
    bool is_weight =
        length >= sizeof weight && !strcmp(t->name + length - (sizeof weight - 1), weight);
    if (t->rank <= 1 || is_norm || !is_weight || change == FORMATS_GGUF_POSITIONS ||
        is_kernel(change))
        return FORMATS_GGUF_F32;
    if (job->type == FORMATS_GGUF_Q8_0 && t->shape[t->rank - 1] % FORMATS_GGUF_BLOCK != 0)
        return FORMATS_GGUF_F16;
    return job->type;
}

static sifr_status check_heads(const gguf_job *job, const formats_tensor *from, gguf_source *s,
                               sifr_error *error) {
    const char *key =
        s->change == FORMATS_GGUF_KEY_ROWS ? "num_key_value_heads" : "num_attention_heads";
    int64_t parts = s->change == FORMATS_GGUF_HEAD_ROWS ? 3 : 2, whole;
    BASE_TRY(base_json_int(job->config, key, 0, &s->heads, job->config_path, error));
    if (from->rank >= 1 && s->heads > 0 && base_mul_i64(s->heads, parts, &whole) &&
        from->shape[0] % whole == 0 && from->rank <= 2)
        return SIFR_OK;
    return base_fail(error, SIFR_USAGE, "%s: tensor %.200s: its rows are no %lld heads",
                     job->folder, from->name, (long long)s->heads);
}

/* The shape of a kernel that belongs to each column alone. */
static sifr_status take_kernel(const gguf_job *job, const formats_tensor *from,
                               formats_gguf_tensor *t, sifr_error *error) {
    if (from->rank != 3 || from->shape[1] != 1)
        return base_fail(error, SIFR_USAGE, "%s: tensor %.200s is not of shape [columns, 1, taps]",
                         job->folder, from->name);
    t->rank = 2;
    t->shape[1] = from->shape[2];
    return SIFR_OK;
}

static sifr_status add_tensor(gguf_job *job, const formats_tensor *from, sifr_error *error) {
    formats_gguf_tensor *t = &job->tensors[job->count];
    gguf_source *s = &job->sources[job->count];
    char plain[FORMATS_SPELLING_LENGTH];
    const char *name = job->beside ? formats_multimodal_plain(from->name, plain) : from->name;
    if (!name || from->of_another) return SIFR_OK;
    BASE_TRY(formats_gguf_family_name(job->family, name, t->name, &s->change, error));
    if (s->change == FORMATS_GGUF_LEFT_OUT) return SIFR_OK;
    if (formats_value_type(from) > BASE_FP16)
        return base_fail(error, SIFR_USAGE,
                         "%s: tensor %.200s is %s, which is not supported with --format gguf "
                         "(supported: F32, BF16, F16)",
                         job->folder, from->name, formats_dtype_name(from->dtype));
    enum { MOST = 4 }; /* dimensions of ggml */
    if (from->rank > MOST ||
        (s->change == FORMATS_GGUF_TRANSPOSED && strstr(t->name, ".weight") && from->rank != 2))
        return base_fail(error, SIFR_USAGE, "%s: tensor %.200s has %d dimensions", job->folder,
                         from->name, from->rank);
    s->tensor = from;
    t->rank = from->rank;
    memcpy(t->shape, from->shape, sizeof t->shape);
    if (s->change == FORMATS_GGUF_TRANSPOSED && from->rank == 2) {
        t->shape[0] = from->shape[1];
        t->shape[1] = from->shape[0];
    } else if (s->change == FORMATS_GGUF_TRANSPOSED) {
        s->change = FORMATS_GGUF_AS_IT_IS; /* its bias */
    } else if (s->change == FORMATS_GGUF_QUERY_ROWS || s->change == FORMATS_GGUF_KEY_ROWS ||
               s->change == FORMATS_GGUF_HEAD_ROWS) {
        BASE_TRY(check_heads(job, from, s, error));
    } else if (s->change >= FORMATS_GGUF_VALUE_ROWS) {
        BASE_TRY(
            formats_gguf_value_heads(job->config, job->folder, s->change, from, &s->linear, error));
    }
    if (is_kernel(s->change)) BASE_TRY(take_kernel(job, from, t, error));
    t->type = type_of(job, t, s->change);
    job->parameters += from->elements;
    job->count++;
    return SIFR_OK;
}

/* A vector that no weight of the folder is; *out: its room in job->factors[at]. */
static sifr_status add_made(gguf_job *job, int at, const char *name, int64_t size, float **out,
                            sifr_error *error) {
    enum { MOST = 1 << 15 };
    if (size < 1 || size > MOST)
        return base_fail(error, SIFR_USAGE, "%s: gives %s %lld elements", job->config_path, name,
                         (long long)size);
    BASE_TRY(base_alloc((size_t)size, sizeof **out, &job->factors[at], error));
    *out = job->factors[at];
    formats_gguf_tensor *t = &job->tensors[job->count];
    *t = (formats_gguf_tensor){.type = FORMATS_GGUF_F32, .rank = 1, .shape = {size}};
    snprintf(t->name, sizeof t->name, "%s", name);
    job->sources[job->count++] = (gguf_source){.values = *out};
    job->parameters += size;
    return SIFR_OK;
}

/* Factors as config.json lists them, one for each pair of rotated elements. */
static sifr_status add_listed(gguf_job *job, int at, const char *key, const char *name,
                              sifr_error *error) {
    const json_t *list = json_object_get(json_object_get(job->config, "rope_parameters"), key),
                 *one;
    int64_t rotated;
    size_t i;
    float *out;
    BASE_TRY(base_json_int(job->config, "rotated", 0, &rotated, job->config_path, error));
    if ((int64_t)json_array_size(list) != rotated / 2)
        return base_fail(error, SIFR_USAGE, "%s: \"%s\" has %zu factors, not %lld",
                         job->config_path, key, json_array_size(list), (long long)rotated / 2);
    BASE_TRY(add_made(job, at, name, rotated / 2, &out, error));
    json_array_foreach(list, i, one) {
        if (!json_is_number(one))
            return base_fail(error, SIFR_USAGE, "%s: \"%s\" must be numbers", job->config_path,
                             key);
        out[i] = (float)json_number_value(one);
    }
    return SIFR_OK;
}

/* Gemma 4's full layers: what a pair's angle is divided by, so much that the later ones stay. */
static sifr_status add_turning(gguf_job *job, const json_t *rope, sifr_error *error) {
    const float stays = 1e30F;
    int64_t size;
    double part;
    float *out;
    BASE_TRY(base_json_int(job->config, "full_size", 0, &size, job->config_path, error));
    BASE_TRY(base_json_double(rope, "partial_rotary_factor", 1, &part, job->config_path, error));
    if (!(part >= 0 && part <= 1))
        return base_fail(error, SIFR_USAGE, "%s: \"partial_rotary_factor\" is %g, must be in 0 … 1",
                         job->config_path, part);
    BASE_TRY(add_made(job, 0, "rope_freqs.weight", size / 2, &out, error));
    for (int64_t i = 0; i < size / 2; i++)
        out[i] = i < (int64_t)(part * (double)size / 2) ? 1 : stays;
    return SIFR_OK;
}

static sifr_status add_rope_factors(gguf_job *job, sifr_error *error) {
    const json_t *rope = json_object_get(job->config, "rope_parameters");
    const char *type = json_string_value(json_object_get(rope, "rope_type"));
    int64_t width, heads, dimensions;
    float *out;
    if (strcmp(job->family->name, "phi3") == 0) {
        if (json_array_size(json_object_get(rope, "long_factor")) == 0) return SIFR_OK;
        BASE_TRY(add_listed(job, 0, "long_factor", "rope_factors_long.weight", error));
        return add_listed(job, 1, "short_factor", "rope_factors_short.weight", error);
    }
    if (strcmp(job->family->name, "gemma4") == 0) return add_turning(job, rope, error);
    if (!type || strcmp(type, "llama3") != 0) return SIFR_OK;
    BASE_TRY(base_json_int(job->config, "hidden_size", 0, &width, job->config_path, error));
    BASE_TRY(base_json_int(job->config, "num_attention_heads", 1, &heads, job->config_path, error));
    BASE_TRY(base_json_int(job->config, "head_dim", width / heads, &dimensions, job->config_path,
                           error));
    BASE_TRY(add_made(job, 0, "rope_freqs.weight", dimensions / 2, &out, error));
    formats_gguf_llama3_factors(rope, dimensions, out);
    return SIFR_OK;
}

static int compare_names(const void *a, const void *b) {
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* Two weights of the folder under one name, such as "wte.weight" and "transformer.wte.weight". */
static sifr_status check_names(const gguf_job *job, sifr_error *error) {
    const char **names, *twice = NULL;
    BASE_TRY(base_alloc(job->count, sizeof *names, &names, error));
    for (size_t i = 0; i < job->count; i++) names[i] = job->tensors[i].name;
    if (job->count) qsort(names, job->count, sizeof *names, compare_names);
    for (size_t i = 1; i < job->count; i++) {
        if (strcmp(names[i - 1], names[i]) == 0) twice = names[i];
    }
    free(names);
    if (!twice) return SIFR_OK;
    return base_fail(error, SIFR_USAGE, "%s: two of its tensors are %s in llama.cpp", job->folder,
                     twice);
}

static sifr_status list_tensors(gguf_job *job, sifr_error *error) {
    size_t count = formats_weights_count(job->weights);
    BASE_TRY(base_alloc(count + 2, sizeof *job->tensors, &job->tensors, error));
    BASE_TRY(base_alloc(count + 2, sizeof *job->sources, &job->sources, error));
    BASE_TRY(add_rope_factors(job, error));
    for (size_t i = 0; i < count; i++)
        BASE_TRY(add_tensor(job, formats_weights_at(job->weights, i), error));
    return check_names(job, error);
}

/* --- metadata --- */

/* Of a folder with a tower the text model's config takes the place of the whole. */
static sifr_status take_text(gguf_job *job, sifr_error *error) {
    json_t *whole = job->files.config, *text;
    const formats_multimodal *kind =
        formats_multimodal_find(json_string_value(json_object_get(whole, "model_type")));
    if (!kind) return SIFR_OK;
    BASE_TRY(formats_multimodal_text(kind, whole, job->config_path, &text, error));
    job->files.config = text;
    job->beside = true;
    sifr_status status = formats_gguf_keep_sections(whole, text, error);
    json_decref(whole);
    return status;
}

static sifr_status read_config(gguf_job *job, sifr_error *error) {
    json_t *defaults;
    BASE_TRY(base_path_join(job->config_path, job->folder, "config.json", error));
    BASE_TRY(formats_gguf_files_read(job->folder, &job->files, error));
    BASE_TRY(take_text(job, error));
    BASE_TRY(formats_gguf_family_find(job->files.config, job->config_path, &job->family, error));
    BASE_TRY(base_json_parse(job->family->defaults, strlen(job->family->defaults), "defaults",
                             &defaults, error));
    job->config = json_copy(job->files.config);
    if (!job->config || json_object_update_missing(job->config, defaults) != 0) {
        json_decref(defaults);
        return base_fail_alloc(error, 1);
    }
    json_decref(defaults);
    return SIFR_OK;
}

/* The last part of the folder's true path. */
static sifr_status add_general(gguf_job *job, sifr_error *error) {
    char path[BASE_PATH_LENGTH];
    if (!realpath(job->folder, path))
        return base_fail_errno(error, errno, "%s: cannot open", job->folder);
    const char *slash = strrchr(path, '/');
    formats_gguf_general(&job->files, slash ? slash + 1 : path, job->parameters, &job->meta);
    return SIFR_OK;
}

static sifr_status make_meta(gguf_job *job, sifr_error *error) {
    int64_t vocabulary;
    const formats_gguf_family *family = job->family;
    formats_gguf_add_text(&job->meta, "general.architecture", family->name, strlen(family->name));
    formats_gguf_add_text(&job->meta, "general.type", "model", 5);
    BASE_TRY(family->keys(family, job->config, &job->meta, job->config_path, error));
    BASE_TRY(formats_gguf_limits(family, job->config, job->config_path, job->log, error));
    BASE_TRY(list_tensors(job, error));
    BASE_TRY(add_general(job, error));
    for (int i = 0; i < TYPES; i++) {
        if (types[i].type == job->type && !family->no_file_type)
            formats_gguf_add_u32(&job->meta, "general.file_type", types[i].file_type);
    }
    formats_gguf_add_u32(&job->meta, "general.quantization_version", QUANTIZATION_VERSION);
    BASE_TRY(base_json_int(job->config, "vocab_size", 0, &vocabulary, job->config_path, error));
    return formats_gguf_vocab(&job->files, vocabulary, family->vocab, job->log, &job->meta, error);
}

static sifr_status export_folder(gguf_job *job, const char *path, formats_gguf_made *out,
                                 sifr_error *error) {
    if (access(path, F_OK) == 0)
        return base_fail(error, SIFR_USAGE, "%s: exists; remove it or give another name", path);
    if (!base_is_directory(job->folder))
        return base_fail(error, SIFR_USAGE, "%s: no model folder, which --format gguf needs",
                         job->folder);
    BASE_TRY(read_config(job, error));
    BASE_TRY(formats_weights_open(job->folder, &job->weights, error));
    BASE_TRY(make_meta(job, error));
    out->parameters = job->parameters;
    return formats_gguf_write(path, &job->meta, job->tensors, job->count, give_row, job,
                              &out->bytes, error);
}

sifr_status formats_gguf_export(const char *folder, const char *path, formats_gguf_type type,
                                const sifr_log *log, formats_gguf_made *out, sifr_error *error) {
    gguf_job *job;
    *out = (formats_gguf_made){0};
    BASE_TRY(base_alloc(1, sizeof *job, &job, error));
    job->folder = folder;
    job->type = type;
    job->log = log;
    sifr_status status = export_folder(job, path, out, error);
    formats_weights_close(job->weights);
    formats_gguf_meta_free(&job->meta);
    formats_gguf_files_free(&job->files);
    json_decref(job->config);
    free(job->tensors);
    free(job->sources);
    free(job->factors[0]);
    free(job->factors[1]);
    free(job);
    return status;
}
