/* What torch_stack.c (objects and bytes), torch_pickle.c (the instructions) and torch_classes.c
 * (what the classes make) share. */
#ifndef FORMATS_TORCH_PICKLE_INTERNAL_H
#define FORMATS_TORCH_PICKLE_INTERNAL_H

#include <stdbool.h>

#include "formats/torch/torch_pickle.h"

typedef enum pickle_kind {
    PICKLE_NONE,
    PICKLE_BOOL,
    PICKLE_INT,
    PICKLE_FLOAT,
    PICKLE_TEXT,
    PICKLE_TUPLE,
    PICKLE_LIST,
    PICKLE_DICT, /* items: key, value, key, value … */
    PICKLE_CLASS,
    PICKLE_STORAGE, /* items: those of its persistent id */
    PICKLE_VIEW,
    PICKLE_OPAQUE, /* lenient: what another class would have made; nothing is known of it */
    PICKLE_KINDS
} pickle_kind;

typedef struct pickle_items {
    uint32_t *at; /* numbers of objects */
    size_t count, capacity;
} pickle_items;

typedef struct pickle_object {
    pickle_kind kind;
    union {
        int64_t integer; /* of a view: its number in `views` */
        formats_pickle_text text;
        pickle_items items;
        const struct pickle_class *class;
    };
} pickle_object;

/* A value on the stack, in the memo or in a container is the number of an object. */
typedef struct pickle_machine {
    const uint8_t *data;
    size_t size, at, begin; /* begin: of the present instruction */
    const char *name;
    bool lenient; /* other classes and more instructions are read, and make nothing */
    pickle_object *objects;
    size_t object_count, object_capacity;
    pickle_items stack, marks, memo; /* marks: heights of the stack */
    formats_torch_view *views;
    size_t view_count, view_capacity;
} pickle_machine;

/* SIFR_FAILED with the name, the byte of the present instruction and `text`. */
#define formats_pickle_fail(m, error, text, ...)                                                   \
    base_fail(error, SIFR_FAILED, "%s: pickle, byte %zu: " text, (m)->name,                        \
              (m)->begin __VA_OPT__(, ) __VA_ARGS__)

/* --- torch_stack.c --- */

const char *formats_pickle_kind_name(pickle_kind kind);
sifr_status formats_pickle_add(pickle_items *items, uint32_t item,
                               sifr_error *error) SIFR_MUST_CHECK;
/* A new object, put on top of the stack. */
sifr_status formats_pickle_push(pickle_machine *m, pickle_object object,
                                sifr_error *error) SIFR_MUST_CHECK;
/* The object of `kind` on top of the stack, taken off; other kinds are SIFR_FAILED. */
sifr_status formats_pickle_pop(pickle_machine *m, pickle_kind kind, pickle_object *out,
                               sifr_error *error) SIFR_MUST_CHECK;

/* SIFR_FAILED unless so many values lie above the last mark. */
sifr_status formats_pickle_need(const pickle_machine *m, size_t count,
                                sifr_error *error) SIFR_MUST_CHECK;
/* The container of `kind` below the top `above` values. */
sifr_status formats_pickle_container(pickle_machine *m, size_t above, pickle_kind kind,
                                     pickle_object **out, sifr_error *error) SIFR_MUST_CHECK;
/* How many values lie above the last mark, which goes. */
sifr_status formats_pickle_take_mark(pickle_machine *m, size_t *count,
                                     sifr_error *error) SIFR_MUST_CHECK;
/* The next `count` bytes; a little-endian number of `bytes` of them. */
sifr_status formats_pickle_take(pickle_machine *m, size_t count, const uint8_t **out,
                                sifr_error *error) SIFR_MUST_CHECK;
sifr_status formats_pickle_number(pickle_machine *m, int bytes, uint64_t *out,
                                  sifr_error *error) SIFR_MUST_CHECK;
/* Takes off what lies above the last mark, which goes; or `count` values. */
sifr_status formats_pickle_drop_marked(pickle_machine *m, sifr_error *error) SIFR_MUST_CHECK;
sifr_status formats_pickle_drop(pickle_machine *m, size_t count, sifr_error *error) SIFR_MUST_CHECK;
sifr_status formats_pickle_opaque(pickle_machine *m, sifr_error *error) SIFR_MUST_CHECK;
void formats_pickle_machine_free(pickle_machine *m);

/* torch_pickle.c: runs the pickle in `data`; its one result is the object on the stack. The caller
 * frees. */
sifr_status formats_pickle_run(pickle_machine *m, sifr_error *error) SIFR_MUST_CHECK;

/* torch_pickle_lenient.c: instructions of objects that are no tensors; *known: this is one. */
sifr_status formats_pickle_lenient(pickle_machine *m, uint8_t code, bool *known,
                                   sifr_error *error) SIFR_MUST_CHECK;

/* torch_classes.c: what a GLOBAL, a persistent id and a REDUCE may be. */
sifr_status formats_pickle_class(pickle_machine *m, formats_pickle_text module,
                                 formats_pickle_text name, sifr_error *error) SIFR_MUST_CHECK;
sifr_status formats_pickle_storage(pickle_machine *m, sifr_error *error) SIFR_MUST_CHECK;
sifr_status formats_pickle_reduce(pickle_machine *m, sifr_error *error) SIFR_MUST_CHECK;

#endif
