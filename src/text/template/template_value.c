/* Values of templates, and the memory that they lie in. */
#include <stdlib.h>

#include "text/template/template_internal.h"

/* ---- memory ---- */

typedef struct formats_arena_block {
    struct formats_arena_block *next;
    size_t used, size;
} formats_arena_block;

enum { ARENA_BLOCK = 64 << 10, ARENA_ALIGN = 16 };

static size_t header(void) {
    return (size_t)base_ceil_to(sizeof(formats_arena_block), ARENA_ALIGN);
}

static sifr_status new_block(formats_arena *arena, const formats_place *place, size_t bytes) {
    size_t size = bytes > ARENA_BLOCK / 4 ? bytes : ARENA_BLOCK;
    if (size > arena->limit - arena->used)
        return formats_template_fail(place, "the template needs more than %zu MiB of memory",
                                     arena->limit >> 20);
    formats_arena_block *block = malloc(header() + size);
    if (!block) return base_fail_alloc(place->error, size);
    *block = (formats_arena_block){.size = size};
    arena->used += size;
    /* A block for one large piece goes behind the first, which may have room left. */
    formats_arena_block **at =
        arena->blocks && size != ARENA_BLOCK ? &arena->blocks->next : &arena->blocks;
    block->next = *at;
    *at = block;
    return SIFR_OK;
}

sifr_status formats_arena_take(formats_arena *arena, const formats_place *place, size_t count,
                               size_t size, void *out) {
    size_t bytes;
    if (!base_mul_size(count, size, &bytes) || bytes > arena->limit) bytes = arena->limit;
    bytes = (size_t)base_ceil_to((int64_t)bytes, ARENA_ALIGN);
    formats_arena_block *block = arena->blocks;
    if (!block || block->size - block->used < bytes) {
        BASE_TRY(new_block(arena, place, bytes));
        block = arena->blocks;
        if (block->size - block->used < bytes) block = block->next;
    }
    void *taken = (char *)block + header() + block->used;
    block->used += bytes;
    memcpy(out, &taken, sizeof taken);
    return SIFR_OK;
}

void formats_arena_free(formats_arena *arena) {
    for (formats_arena_block *block = arena->blocks, *next; block; block = next) {
        next = block->next;
        free(block);
    }
    *arena = (formats_arena){0};
}

/* ---- making values ---- */

formats_value formats_none(void) {
    return (formats_value){.kind = FORMATS_NONE};
}

formats_value formats_undefined(formats_text name) {
    return (formats_value){.kind = FORMATS_UNDEFINED, .text = name};
}

formats_value formats_of_bool(bool truth) {
    return (formats_value){.kind = FORMATS_BOOL, .truth = truth};
}

formats_value formats_of_int(int64_t integer) {
    return (formats_value){.kind = FORMATS_INT, .integer = integer};
}

formats_value formats_of_float(double real) {
    return (formats_value){.kind = FORMATS_FLOAT, .real = real};
}

formats_value formats_of_text(formats_text text) {
    return (formats_value){.kind = FORMATS_STRING, .text = text};
}

formats_text formats_literal(const char *text) {
    return (formats_text){text, strlen(text)};
}

bool formats_text_equal(formats_text a, formats_text b) {
    return a.size == b.size && (a.size == 0 || memcmp(a.bytes, b.bytes, a.size) == 0);
}

bool formats_text_is(formats_text a, const char *b) {
    return formats_text_equal(a, formats_literal(b));
}

const char *formats_kind_name(formats_value v) {
    static const char *const names[] = {[FORMATS_ABSENT] = "nothing",
                                        [FORMATS_UNDEFINED] = "undefined",
                                        [FORMATS_NONE] = "None",
                                        [FORMATS_BOOL] = "bool",
                                        [FORMATS_INT] = "int",
                                        [FORMATS_FLOAT] = "float",
                                        [FORMATS_STRING] = "str",
                                        [FORMATS_SAFE] = "safe string",
                                        [FORMATS_LIST] = "list",
                                        [FORMATS_TUPLE] = "tuple",
                                        [FORMATS_RANGE] = "range",
                                        [FORMATS_VIEW] = "view of a dict",
                                        [FORMATS_GENERATOR] = "generator",
                                        [FORMATS_DICT] = "dict",
                                        [FORMATS_NAMESPACE] = "namespace",
                                        [FORMATS_LOOP] = "loop",
                                        [FORMATS_MACRO] = "macro",
                                        [FORMATS_FUNCTION] = "function",
                                        [FORMATS_METHOD] = "method"};
    return names[v.kind];
}

bool formats_is_items(formats_value v) {
    return v.kind >= FORMATS_LIST && v.kind <= FORMATS_GENERATOR;
}

bool formats_is_number(formats_value v) {
    return v.kind >= FORMATS_BOOL && v.kind <= FORMATS_FLOAT;
}

double formats_number(formats_value v) {
    return v.kind == FORMATS_FLOAT ? v.real
           : v.kind == FORMATS_INT ? (double)v.integer
                                   : (double)v.truth;
}

bool formats_truth(formats_value v) {
    switch (v.kind) {
    case FORMATS_ABSENT:
    case FORMATS_UNDEFINED:
    case FORMATS_NONE:
        return false;
    case FORMATS_BOOL:
        return v.truth;
    case FORMATS_INT:
        return v.integer != 0;
    case FORMATS_FLOAT:
        return v.real != 0;
    case FORMATS_STRING:
    case FORMATS_SAFE:
        return v.text.size > 0;
    case FORMATS_LIST:
    case FORMATS_TUPLE:
    case FORMATS_RANGE:
    case FORMATS_VIEW:
        return v.items->count > 0;
    case FORMATS_DICT:
        return v.dict->count > 0;
    default:
        return true;
    }
}

/* ---- sequences ---- */

sifr_status formats_new_items(formats_render *r, formats_value_kind kind, size_t room,
                              formats_value *out) {
    formats_items *items;
    BASE_TRY(FORMATS_TAKE(r, 1, sizeof *items, &items));
    *items = (formats_items){.room = room};
    if (room) BASE_TRY(FORMATS_TAKE(r, room, sizeof *items->values, &items->values));
    *out = (formats_value){.kind = kind, .items = items};
    return SIFR_OK;
}

sifr_status formats_append(formats_render *r, formats_items *items, formats_value v) {
    if (items->count == items->room) {
        formats_value *values;
        size_t room = items->room ? 2 * items->room : 8;
        BASE_TRY(FORMATS_TAKE(r, room, sizeof *values, &values));
        if (items->count) memcpy(values, items->values, items->count * sizeof *values);
        items->values = values;
        items->room = room;
    }
    items->values[items->count++] = v;
    return formats_template_charge(r, 1);
}

sifr_status formats_pair(formats_render *r, formats_value a, formats_value b, formats_value *out) {
    BASE_TRY(formats_new_items(r, FORMATS_TUPLE, 2, out));
    BASE_TRY(formats_append(r, out->items, a));
    return formats_append(r, out->items, b);
}

static sifr_status characters(formats_render *r, formats_text text, formats_items **out) {
    formats_value list;
    BASE_TRY(formats_new_items(r, FORMATS_LIST, formats_char_count(text), &list));
    for (size_t at = 0, size; at < text.size; at += size) {
        (void)formats_char(text, at, &size);
        BASE_TRY(
            formats_append(r, list.items, formats_of_text((formats_text){text.bytes + at, size})));
    }
    *out = list.items;
    return SIFR_OK;
}

sifr_status formats_iterate(formats_render *r, formats_value v, formats_items **out) {
    formats_value list;
    if (v.kind == FORMATS_STRING) return characters(r, v.text, out);
    if (formats_is_items(v) && v.kind != FORMATS_GENERATOR) {
        *out = v.items;
        return SIFR_OK;
    }
    BASE_TRY(formats_new_items(r, FORMATS_LIST, 0, &list));
    if (v.kind == FORMATS_GENERATOR && !v.items->consumed) {
        v.items->consumed = true;
        *list.items = *v.items;
    } else if (v.kind == FORMATS_DICT) {
        for (size_t i = 0; i < v.dict->count; i++)
            BASE_TRY(formats_append(r, list.items, v.dict->keys[i]));
    } else if (v.kind != FORMATS_GENERATOR && v.kind != FORMATS_UNDEFINED) {
        return formats_template_fail(&r->place, "a value of type %s cannot be iterated",
                                     formats_kind_name(v));
    }
    *out = list.items;
    return SIFR_OK;
}

sifr_status formats_length(formats_render *r, formats_value v, int64_t *out) {
    if (v.kind == FORMATS_STRING) {
        BASE_TRY(formats_template_charge(r, v.text.size / 64));
        *out = (int64_t)formats_char_count(v.text);
    } else if (formats_is_items(v) && v.kind != FORMATS_GENERATOR) {
        *out = (int64_t)v.items->count;
    } else if (v.kind == FORMATS_DICT) {
        *out = (int64_t)v.dict->count;
    } else if (v.kind == FORMATS_UNDEFINED) {
        *out = 0;
    } else {
        return formats_template_fail(&r->place, "a value of type %s has no length",
                                     formats_kind_name(v));
    }
    return SIFR_OK;
}

/* ---- dicts ---- */

sifr_status formats_new_dict(formats_render *r, formats_value_kind kind, size_t room,
                             formats_value *out) {
    formats_dict *dict;
    BASE_TRY(FORMATS_TAKE(r, 1, sizeof *dict, &dict));
    *dict = (formats_dict){.room = room};
    if (room) {
        BASE_TRY(FORMATS_TAKE(r, room, sizeof *dict->keys, &dict->keys));
        BASE_TRY(FORMATS_TAKE(r, room, sizeof *dict->values, &dict->values));
    }
    *out = (formats_value){.kind = kind, .dict = dict};
    return SIFR_OK;
}

static bool same_key(formats_value a, formats_value b) {
    if (a.kind == FORMATS_STRING || b.kind == FORMATS_STRING)
        return a.kind == b.kind && formats_text_equal(a.text, b.text);
    if (formats_is_number(a) && formats_is_number(b))
        return a.kind == FORMATS_INT && b.kind == FORMATS_INT
                   ? a.integer == b.integer
                   : formats_number(a) == formats_number(b);
    return a.kind == b.kind;
}

/* The position of the key; count: not there. */
static sifr_status find_key(formats_render *r, const formats_dict *dict, formats_value key,
                            size_t *out) {
    if (key.kind != FORMATS_STRING && !formats_is_number(key) && key.kind != FORMATS_NONE &&
        key.kind != FORMATS_UNDEFINED)
        return formats_template_fail(&r->place,
                                     "a value of type %s as a key of a dict is not "
                                     "supported",
                                     formats_kind_name(key));
    size_t at = 0;
    while (at < dict->count && !same_key(dict->keys[at], key)) at++;
    *out = at;
    return formats_template_charge_all(r, at, key.kind == FORMATS_STRING ? key.text.size : 0);
}

sifr_status formats_dict_get(formats_render *r, const formats_dict *dict, formats_value key,
                             bool *found, formats_value *out) {
    size_t at;
    BASE_TRY(find_key(r, dict, key, &at));
    *found = at < dict->count;
    if (*found) *out = dict->values[at];
    return SIFR_OK;
}

static sifr_status grow_dict(formats_render *r, formats_dict *dict) {
    formats_dict old = *dict;
    dict->room = old.room ? 2 * old.room : 8;
    BASE_TRY(FORMATS_TAKE(r, dict->room, sizeof *dict->keys, &dict->keys));
    BASE_TRY(FORMATS_TAKE(r, dict->room, sizeof *dict->values, &dict->values));
    if (old.count == 0) return SIFR_OK;
    memcpy(dict->keys, old.keys, old.count * sizeof *old.keys);
    memcpy(dict->values, old.values, old.count * sizeof *old.values);
    return SIFR_OK;
}

sifr_status formats_dict_set(formats_render *r, formats_dict *dict, formats_value key,
                             formats_value v) {
    size_t at;
    BASE_TRY(find_key(r, dict, key, &at));
    if (at == dict->count) {
        if (at == dict->room) BASE_TRY(grow_dict(r, dict));
        dict->keys[dict->count++] = key;
    }
    dict->values[at] = v;
    return SIFR_OK;
}

/* ---- from JSON ---- */

static sifr_status from_object(formats_render *r, const json_t *json, formats_value *out) {
    const char *name;
    json_t *member;
    BASE_TRY(formats_new_dict(r, FORMATS_DICT, json_object_size(json), out));
    formats_dict *dict = out->dict;
    json_object_foreach((json_t *)(uintptr_t)json, name, member) { /* keys are different */
        formats_text text = formats_literal(name);
        char *copy;
        BASE_TRY(FORMATS_TAKE(r, text.size + 1, 1, &copy));
        memcpy(copy, text.bytes, text.size);
        text.bytes = copy;
        dict->keys[dict->count] = formats_of_text(text);
        BASE_TRY(formats_from_json(r, member, &dict->values[dict->count]));
        dict->count++;
    }
    return SIFR_OK;
}

static sifr_status from_array(formats_render *r, const json_t *json, formats_value *out) {
    size_t count = json_array_size(json);
    BASE_TRY(formats_new_items(r, FORMATS_LIST, count, out));
    for (size_t i = 0; i < count; i++) {
        formats_value v;
        BASE_TRY(formats_from_json(r, json_array_get(json, i), &v));
        BASE_TRY(formats_append(r, out->items, v));
    }
    return SIFR_OK;
}

/* Texts stay where they are, in the JSON value. */
sifr_status formats_from_json(formats_render *r, const json_t *json, formats_value *out) {
    BASE_TRY(formats_template_enter(r));
    sifr_status status = SIFR_OK;
    switch (json_typeof(json)) {
    case JSON_OBJECT:
        status = from_object(r, json, out);
        break;
    case JSON_ARRAY:
        status = from_array(r, json, out);
        break;
    case JSON_STRING:
        *out = formats_of_text((formats_text){json_string_value(json), json_string_length(json)});
        break;
    case JSON_INTEGER:
        *out = formats_of_int((int64_t)json_integer_value(json));
        break;
    case JSON_REAL:
        *out = formats_of_float(json_real_value(json));
        break;
    case JSON_TRUE:
    case JSON_FALSE:
        *out = formats_of_bool(json_is_true(json));
        break;
    case JSON_NULL:
        *out = formats_none();
        break;
    }
    r->depth--;
    return status;
}
