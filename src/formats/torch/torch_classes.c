/* The classes and functions that a pickled dict of tensors names, and what each of them makes.
 * Their arguments: torch/_utils.py and torch/serialization.py. */
#include <string.h>

#include "base/checked.h"
#include "base/heap.h"
#include "formats/torch/torch_pickle_internal.h"

typedef enum class_role {
    ROLE_DICT,      /* called without arguments: a dict */
    ROLE_SIZE,      /* called with a tuple: that tuple */
    ROLE_STORAGE,   /* of elements of a type; not called */
    ROLE_DTYPE,     /* not called */
    ROLE_TENSOR,    /* called: a view, of its storage's type */
    ROLE_TENSOR_V3, /* called: a view of plain bytes, with the type among the arguments */
    ROLE_PARAMETER, /* called with a view: that view */
    ROLE_TYPED,     /* called with one of the two above, a class, its arguments, attributes */
    ROLE_NUMBER     /* called with an int: that int */
} class_role;

typedef struct pickle_class {
    const char *module, *name;
    class_role role;
    base_dtype dtype; /* BASE_NONE: plain bytes */
} pickle_class;

static const pickle_class classes[] = {
    {"collections", "OrderedDict", ROLE_DICT, BASE_NONE},
    {"torch", "Size", ROLE_SIZE, BASE_NONE},
    {"torch._utils", "_rebuild_tensor_v2", ROLE_TENSOR, BASE_NONE},
    {"torch._utils", "_rebuild_tensor_v3", ROLE_TENSOR_V3, BASE_NONE},
    {"torch._utils", "_rebuild_parameter", ROLE_PARAMETER, BASE_NONE},
    {"torch._tensor", "_rebuild_from_type_v2", ROLE_TYPED, BASE_NONE},
    {"deepspeed.runtime.zero.config", "ZeroStageEnum", ROLE_NUMBER, BASE_NONE},
    {"torch", "FloatStorage", ROLE_STORAGE, BASE_FP32},
    {"torch", "HalfStorage", ROLE_STORAGE, BASE_FP16},
    {"torch", "BFloat16Storage", ROLE_STORAGE, BASE_BF16},
    {"torch", "DoubleStorage", ROLE_STORAGE, BASE_FP64},
    {"torch", "LongStorage", ROLE_STORAGE, BASE_INT64},
    {"torch", "IntStorage", ROLE_STORAGE, BASE_INT32},
    {"torch", "ShortStorage", ROLE_STORAGE, BASE_INT16},
    {"torch", "CharStorage", ROLE_STORAGE, BASE_INT8},
    {"torch", "ByteStorage", ROLE_STORAGE, BASE_UINT8},
    {"torch", "BoolStorage", ROLE_STORAGE, BASE_BOOL},
    {"torch", "ComplexFloatStorage", ROLE_STORAGE, BASE_COMPLEX64},
    {"torch", "UntypedStorage", ROLE_STORAGE, BASE_NONE},
    {"torch.storage", "UntypedStorage", ROLE_STORAGE, BASE_NONE},
    {"torch", "float32", ROLE_DTYPE, BASE_FP32},
    {"torch", "float16", ROLE_DTYPE, BASE_FP16},
    {"torch", "bfloat16", ROLE_DTYPE, BASE_BF16},
    {"torch", "float64", ROLE_DTYPE, BASE_FP64},
    {"torch", "int64", ROLE_DTYPE, BASE_INT64},
    {"torch", "int32", ROLE_DTYPE, BASE_INT32},
    {"torch", "int16", ROLE_DTYPE, BASE_INT16},
    {"torch", "int8", ROLE_DTYPE, BASE_INT8},
    {"torch", "uint8", ROLE_DTYPE, BASE_UINT8},
    {"torch", "uint16", ROLE_DTYPE, BASE_UINT16},
    {"torch", "uint32", ROLE_DTYPE, BASE_UINT32},
    {"torch", "uint64", ROLE_DTYPE, BASE_UINT64},
    {"torch", "bool", ROLE_DTYPE, BASE_BOOL},
    {"torch", "complex64", ROLE_DTYPE, BASE_COMPLEX64},
    {"torch", "float8_e4m3fn", ROLE_DTYPE, BASE_FP8_E4M3},
    {"torch", "float8_e5m2", ROLE_DTYPE, BASE_FP8_E5M2},
    {"torch", "float8_e4m3fnuz", ROLE_DTYPE, BASE_FP8_E4M3FNUZ},
    {"torch", "float8_e5m2fnuz", ROLE_DTYPE, BASE_FP8_E5M2FNUZ},
    {"torch", "float8_e8m0fnu", ROLE_DTYPE, BASE_FP8_E8M0},
};

static bool is(formats_pickle_text text, const char *word) {
    return strlen(word) == text.length && memcmp(word, text.at, text.length) == 0;
}

static int shown(formats_pickle_text text) {
    return (int)base_min_i64((int64_t)text.length, 100);
}

sifr_status formats_pickle_class(pickle_machine *m, formats_pickle_text module,
                                 formats_pickle_text name, sifr_error *error) {
    for (size_t i = 0; i < sizeof classes / sizeof *classes; i++) {
        if (is(module, classes[i].module) && is(name, classes[i].name)) {
            pickle_object object = {.kind = PICKLE_CLASS, .class = &classes[i]};
            return formats_pickle_push(m, object, error);
        }
    }
    if (m->lenient) return formats_pickle_opaque(m, error);
    return formats_pickle_fail(m, error,
                               "names %.*s.%.*s, which a file of weights does not need; nothing "
                               "of it was run; save the model as safetensors where it is trusted",
                               shown(module), module.at, shown(name), name.at);
}

static const pickle_object *item(const pickle_machine *m, const pickle_object *of, size_t i) {
    return &m->objects[of->items.at[i]];
}

/* Whether the items begin with those kinds. */
static bool has_kinds(const pickle_machine *m, const pickle_object *of, const pickle_kind *kinds,
                      size_t count) {
    bool good = of->items.count >= count;
    for (size_t i = 0; good && i < count; i++) good = item(m, of, i)->kind == kinds[i];
    return good;
}

/* ("storage", class, key, device, elements), on top of the stack. */
sifr_status formats_pickle_storage(pickle_machine *m, sifr_error *error) {
    static const pickle_kind kinds[] = {PICKLE_TEXT, PICKLE_CLASS, PICKLE_TEXT, PICKLE_TEXT,
                                        PICKLE_INT};
    pickle_object id;
    BASE_TRY(formats_pickle_pop(m, PICKLE_TUPLE, &id, error));
    if (id.items.count != 5 || !has_kinds(m, &id, kinds, 5) ||
        !is(item(m, &id, 0)->text, "storage") || item(m, &id, 1)->class->role != ROLE_STORAGE ||
        item(m, &id, 4)->integer < 0)
        return formats_pickle_fail(m, error, "a persistent id that is none of a storage");
    /* A copy: the tuple may lie in the memo. */
    pickle_object storage = {.kind = PICKLE_STORAGE, .items = {.count = 5, .capacity = 5}};
    BASE_TRY(base_alloc(5, sizeof *storage.items.at, &storage.items.at, error));
    memcpy(storage.items.at, id.items.at, 5 * sizeof *id.items.at);
    return formats_pickle_push(m, storage, error);
}

/* A tuple of whole numbers >= 0. */
static bool read_sizes(const pickle_machine *m, const pickle_object *from,
                       int64_t out[FORMATS_RANK_LIMIT]) {
    if (from->items.count > FORMATS_RANK_LIMIT) return false;
    for (size_t i = 0; i < from->items.count; i++) {
        if (item(m, from, i)->kind != PICKLE_INT || item(m, from, i)->integer < 0) return false;
        out[i] = item(m, from, i)->integer;
    }
    return true;
}

/* (storage, offset, shape, strides, requires_grad, hooks), in version 3 with the type behind. */
static sifr_status make_view(pickle_machine *m, const pickle_class *class,
                             const pickle_object *arguments, sifr_error *error) {
    static const pickle_kind kinds[] = {PICKLE_STORAGE, PICKLE_INT,  PICKLE_TUPLE, PICKLE_TUPLE,
                                        PICKLE_BOOL,    PICKLE_DICT, PICKLE_CLASS};
    bool v3 = class->role == ROLE_TENSOR_V3;
    formats_torch_view view = {0};
    int64_t bytes = 1;
    bool good = has_kinds(m, arguments, kinds, v3 ? 7 : 6);
    if (good) {
        const pickle_object *storage = item(m, arguments, 0), *shape = item(m, arguments, 2),
                            *stride = item(m, arguments, 3);
        base_dtype stored = item(m, storage, 1)->class->dtype;
        view.dtype = v3 ? item(m, arguments, 6)->class->dtype : stored;
        view.storage = item(m, storage, 2)->text;
        view.offset = item(m, arguments, 1)->integer;
        view.rank = (int)shape->items.count;
        if (stored != BASE_NONE) bytes = base_dtype_bytes(stored);
        good = view.dtype != BASE_NONE && (stored == view.dtype || v3) && view.offset >= 0 &&
               base_mul_i64(item(m, storage, 4)->integer, bytes, &bytes) &&
               shape->items.count == stride->items.count && read_sizes(m, shape, view.shape) &&
               read_sizes(m, stride, view.stride);
        view.storage_bytes = (uint64_t)bytes;
    }
    if (!good)
        return formats_pickle_fail(m, error, "%s has arguments that make no tensor", class->name);
    BASE_TRY(base_grow(&m->views, &m->view_capacity, m->view_count + 1, sizeof *m->views, error));
    m->views[m->view_count] = view;
    return formats_pickle_push(
        m, (pickle_object){.kind = PICKLE_VIEW, .integer = (int64_t)m->view_count++}, error);
}

/* The first argument itself. */
static sifr_status keep_first(pickle_machine *m, const pickle_class *class,
                              const pickle_object *arguments, pickle_kind kind, sifr_error *error) {
    if (!has_kinds(m, arguments, &kind, 1))
        return formats_pickle_fail(m, error, "%s needs %s", class->name,
                                   formats_pickle_kind_name(kind));
    return formats_pickle_add(&m->stack, arguments->items.at[0], error);
}

/* A tensor with attributes of Python's, which are left out. */
static sifr_status make_typed(pickle_machine *m, const pickle_object *arguments,
                              sifr_error *error) {
    if (arguments->items.count == 4 && item(m, arguments, 0)->kind == PICKLE_CLASS &&
        item(m, arguments, 2)->kind == PICKLE_TUPLE) {
        const pickle_class *class = item(m, arguments, 0)->class;
        pickle_object inner = *item(m, arguments, 2); /* objects move where one is added */
        if (class->role == ROLE_TENSOR || class->role == ROLE_TENSOR_V3)
            return make_view(m, class, &inner, error);
        if (class->role == ROLE_PARAMETER) return keep_first(m, class, &inner, PICKLE_VIEW, error);
    }
    return formats_pickle_fail(m, error, "_rebuild_from_type_v2 has arguments that make no tensor");
}

/* Whether a call makes something that is read: anything else makes an opaque object. */
static bool makes_known(const pickle_machine *m) {
    if (m->stack.count < 2) return true;
    const pickle_object *arguments = &m->objects[m->stack.at[m->stack.count - 1]];
    const pickle_object *callee = &m->objects[m->stack.at[m->stack.count - 2]];
    if (callee->kind != PICKLE_CLASS || arguments->kind != PICKLE_TUPLE) return false;
    class_role role = callee->class->role;
    if (role == ROLE_DICT) return arguments->items.count == 0;
    return role != ROLE_STORAGE && role != ROLE_DTYPE;
}

sifr_status formats_pickle_reduce(pickle_machine *m, sifr_error *error) {
    pickle_object arguments, callee;
    if (m->lenient && !makes_known(m)) {
        BASE_TRY(formats_pickle_drop(m, 2, error));
        return formats_pickle_opaque(m, error);
    }
    BASE_TRY(formats_pickle_pop(m, PICKLE_TUPLE, &arguments, error));
    BASE_TRY(formats_pickle_pop(m, PICKLE_CLASS, &callee, error));
    const pickle_class *class = callee.class;
    switch (class->role) {
    case ROLE_TENSOR:
    case ROLE_TENSOR_V3:
        return make_view(m, class, &arguments, error);
    case ROLE_PARAMETER:
        return keep_first(m, class, &arguments, PICKLE_VIEW, error);
    case ROLE_TYPED:
        return make_typed(m, &arguments, error);
    case ROLE_NUMBER:
        return keep_first(m, class, &arguments, PICKLE_INT, error);
    case ROLE_SIZE:
        return keep_first(m, class, &arguments, PICKLE_TUPLE, error);
    case ROLE_DICT:
        if (arguments.items.count == 0)
            return formats_pickle_push(m, (pickle_object){.kind = PICKLE_DICT}, error);
        return formats_pickle_fail(m, error, "%s is made from arguments, which is not supported",
                                   class->name);
    case ROLE_STORAGE:
    case ROLE_DTYPE:
        break;
    }
    return formats_pickle_fail(m, error, "calls %s.%s, which is no function of a tensor",
                               class->module, class->name);
}
