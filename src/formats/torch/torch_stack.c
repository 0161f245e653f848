/* The machine's objects, its stack, and the bytes that it reads. */
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/heap.h"
#include "formats/torch/torch_pickle_internal.h"

enum { OBJECT_LIMIT = 1 << 22 };

const char *formats_pickle_kind_name(pickle_kind kind) {
    static const char *const names[PICKLE_KINDS] = {
        [PICKLE_NONE] = "None",         [PICKLE_BOOL] = "a bool",   [PICKLE_INT] = "an int",
        [PICKLE_FLOAT] = "a float",     [PICKLE_TEXT] = "a string", [PICKLE_TUPLE] = "a tuple",
        [PICKLE_LIST] = "a list",       [PICKLE_DICT] = "a dict",   [PICKLE_CLASS] = "a class",
        [PICKLE_STORAGE] = "a storage", [PICKLE_VIEW] = "a tensor", [PICKLE_OPAQUE] = "an object",
    };
    return names[kind];
}

/* --- objects and the stack --- */

static bool has_items(pickle_kind kind) {
    return kind == PICKLE_TUPLE || kind == PICKLE_LIST || kind == PICKLE_DICT ||
           kind == PICKLE_STORAGE;
}

sifr_status formats_pickle_add(pickle_items *items, uint32_t item, sifr_error *error) {
    BASE_TRY(base_grow(&items->at, &items->capacity, items->count + 1, sizeof *items->at, error));
    items->at[items->count++] = item;
    return SIFR_OK;
}

sifr_status formats_pickle_push(pickle_machine *m, pickle_object object, sifr_error *error) {
    sifr_status status = SIFR_OK;
    if (m->object_count == OBJECT_LIMIT)
        status = formats_pickle_fail(m, error, "more than the limit of %d objects", OBJECT_LIMIT);
    if (status == SIFR_OK)
        status = base_grow(&m->objects, &m->object_capacity, m->object_count + 1,
                           sizeof *m->objects, error);
    if (status != SIFR_OK) {
        if (has_items(object.kind)) free(object.items.at);
        return status;
    }
    m->objects[m->object_count++] = object;
    return formats_pickle_add(&m->stack, (uint32_t)(m->object_count - 1), error);
}

void formats_pickle_machine_free(pickle_machine *m) {
    for (size_t i = 0; i < m->object_count; i++) {
        if (has_items(m->objects[i].kind)) free(m->objects[i].items.at);
    }
    free(m->objects);
    free(m->stack.at);
    free(m->marks.at);
    free(m->memo.at);
    free(m->views);
}

/* Height of the stack at the last mark. */
static size_t floor_of(const pickle_machine *m) {
    return m->marks.count ? m->marks.at[m->marks.count - 1] : 0;
}

sifr_status formats_pickle_need(const pickle_machine *m, size_t count, sifr_error *error) {
    if (m->stack.count - floor_of(m) >= count) return SIFR_OK;
    return formats_pickle_fail(m, error, "takes more from the stack than there is");
}

sifr_status formats_pickle_pop(pickle_machine *m, pickle_kind kind, pickle_object *out,
                               sifr_error *error) {
    BASE_TRY(formats_pickle_need(m, 1, error));
    *out = m->objects[m->stack.at[--m->stack.count]];
    if (out->kind == kind) return SIFR_OK;
    return formats_pickle_fail(m, error, "%s where %s was expected",
                               formats_pickle_kind_name(out->kind), formats_pickle_kind_name(kind));
}

/* The container below the top `above` values. */
sifr_status formats_pickle_container(pickle_machine *m, size_t above, pickle_kind kind,
                                     pickle_object **out, sifr_error *error) {
    BASE_TRY(formats_pickle_need(m, above + 1, error));
    *out = &m->objects[m->stack.at[m->stack.count - above - 1]];
    if ((*out)->kind == kind) return SIFR_OK;
    return formats_pickle_fail(m, error, "%s where %s was expected",
                               formats_pickle_kind_name((*out)->kind),
                               formats_pickle_kind_name(kind));
}

/* How many values lie above the last mark, which goes. */
sifr_status formats_pickle_take_mark(pickle_machine *m, size_t *count, sifr_error *error) {
    if (!m->marks.count) return formats_pickle_fail(m, error, "a mark is missing");
    *count = m->stack.count - floor_of(m);
    m->marks.count--;
    return SIFR_OK;
}

sifr_status formats_pickle_drop_marked(pickle_machine *m, sifr_error *error) {
    size_t count;
    BASE_TRY(formats_pickle_take_mark(m, &count, error));
    m->stack.count -= count;
    return SIFR_OK;
}

sifr_status formats_pickle_drop(pickle_machine *m, size_t count, sifr_error *error) {
    BASE_TRY(formats_pickle_need(m, count, error));
    m->stack.count -= count;
    return SIFR_OK;
}

sifr_status formats_pickle_opaque(pickle_machine *m, sifr_error *error) {
    return formats_pickle_push(m, (pickle_object){.kind = PICKLE_OPAQUE}, error);
}

/* --- bytes --- */

sifr_status formats_pickle_take(pickle_machine *m, size_t count, const uint8_t **out,
                                sifr_error *error) {
    if (count > m->size - m->at) return formats_pickle_fail(m, error, "cut short");
    *out = m->data + m->at;
    m->at += count;
    return SIFR_OK;
}

sifr_status formats_pickle_number(pickle_machine *m, int bytes, uint64_t *out, sifr_error *error) {
    const uint8_t *from;
    BASE_TRY(formats_pickle_take(m, (size_t)bytes, &from, error));
    *out = 0;
    for (int i = bytes - 1; i >= 0; i--) *out = *out << 8 | from[i];
    return SIFR_OK;
}
