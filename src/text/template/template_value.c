/* Values of templates, and the memory that they lie in. */
#include <stdlib.h>

#include "text/template/template_internal.h"

/* ---- memory ---- */

typedef struct text_arena_block {
    struct text_arena_block *next;
    size_t used, size;
} text_arena_block;

enum { ARENA_BLOCK = 64 << 10, ARENA_ALIGN = 16 };

static size_t header(void) {
    return (size_t)base_ceil_to(sizeof(text_arena_block), ARENA_ALIGN);
}

static sifr_status new_block(text_arena *arena, const text_place *place, size_t bytes) {
    size_t size = bytes > ARENA_BLOCK / 4 ? bytes : ARENA_BLOCK;
    if (size > arena->limit - arena->used)
        return text_template_fail(place, "the template needs more than %zu MiB of memory",
                                  arena->limit >> 20);
    text_arena_block *block = malloc(header() + size);
    if (!block) return base_fail_alloc(place->error, size);
    *block = (text_arena_block){.size = size};
    arena->used += size;
    /* A block for one large piece goes behind the first, which may have room left. */
    text_arena_block **at =
        arena->blocks && size != ARENA_BLOCK ? &arena->blocks->next : &arena->blocks;
    block->next = *at;
    *at = block;
    return SIFR_OK;
}

sifr_status text_arena_take(text_arena *arena, const text_place *place, size_t count, size_t size,
                            void *out) {
    size_t bytes;
    if (!base_mul_size(count, size, &bytes) || bytes > arena->limit) bytes = arena->limit;
    bytes = (size_t)base_ceil_to((int64_t)bytes, ARENA_ALIGN);
    text_arena_block *block = arena->blocks;
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

void text_arena_free(text_arena *arena) {
    for (text_arena_block *block = arena->blocks, *next; block; block = next) {
        next = block->next;
        free(block);
    }
    *arena = (text_arena){0};
}

/* ---- making values ---- */

text_value text_none(void) {
    return (text_value){.kind = TEXT_NONE};
}

text_value text_undefined(text_text name) {
    return (text_value){.kind = TEXT_UNDEFINED, .text = name};
}

text_value text_of_bool(bool truth) {
    return (text_value){.kind = TEXT_BOOL, .truth = truth};
}

text_value text_of_int(int64_t integer) {
    return (text_value){.kind = TEXT_INT, .integer = integer};
}

text_value text_of_float(double real) {
    return (text_value){.kind = TEXT_FLOAT, .real = real};
}

text_value text_of_text(text_text text) {
    return (text_value){.kind = TEXT_STRING, .text = text};
}

text_text text_literal(const char *text) {
    return (text_text){text, strlen(text)};
}

bool text_text_equal(text_text a, text_text b) {
    return a.size == b.size && (a.size == 0 || memcmp(a.bytes, b.bytes, a.size) == 0);
}

bool text_text_is(text_text a, const char *b) {
    return text_text_equal(a, text_literal(b));
}

const char *text_kind_name(text_value v) {
    static const char *const names[] = {[TEXT_ABSENT] = "nothing",
                                        [TEXT_UNDEFINED] = "undefined",
                                        [TEXT_NONE] = "None",
                                        [TEXT_BOOL] = "bool",
                                        [TEXT_INT] = "int",
                                        [TEXT_FLOAT] = "float",
                                        [TEXT_STRING] = "str",
                                        [TEXT_SAFE] = "safe string",
                                        [TEXT_LIST] = "list",
                                        [TEXT_TUPLE] = "tuple",
                                        [TEXT_RANGE] = "range",
                                        [TEXT_VIEW] = "view of a dict",
                                        [TEXT_GENERATOR] = "generator",
                                        [TEXT_DICT] = "dict",
                                        [TEXT_NAMESPACE] = "namespace",
                                        [TEXT_LOOP] = "loop",
                                        [TEXT_MACRO] = "macro",
                                        [TEXT_FUNCTION] = "function",
                                        [TEXT_METHOD] = "method"};
    return names[v.kind];
}

bool text_is_items(text_value v) {
    return v.kind >= TEXT_LIST && v.kind <= TEXT_GENERATOR;
}

bool text_is_number(text_value v) {
    return v.kind >= TEXT_BOOL && v.kind <= TEXT_FLOAT;
}

double text_number(text_value v) {
    return v.kind == TEXT_FLOAT ? v.real : v.kind == TEXT_INT ? (double)v.integer : (double)v.truth;
}

bool text_truth(text_value v) {
    switch (v.kind) {
    case TEXT_ABSENT:
    case TEXT_UNDEFINED:
    case TEXT_NONE:
        return false;
    case TEXT_BOOL:
        return v.truth;
    case TEXT_INT:
        return v.integer != 0;
    case TEXT_FLOAT:
        return v.real != 0;
    case TEXT_STRING:
    case TEXT_SAFE:
        return v.text.size > 0;
    case TEXT_LIST:
    case TEXT_TUPLE:
    case TEXT_RANGE:
    case TEXT_VIEW:
        return v.items->count > 0;
    case TEXT_DICT:
        return v.dict->count > 0;
    default:
        return true;
    }
}

/* ---- sequences ---- */

sifr_status text_new_items(text_render *r, text_value_kind kind, size_t capacity, text_value *out) {
    text_items *items;
    BASE_TRY(TEXT_TAKE(r, 1, sizeof *items, &items));
    *items = (text_items){.capacity = capacity};
    if (capacity) BASE_TRY(TEXT_TAKE(r, capacity, sizeof *items->values, &items->values));
    *out = (text_value){.kind = kind, .items = items};
    return SIFR_OK;
}

sifr_status text_append(text_render *r, text_items *items, text_value v) {
    if (items->count == items->capacity) {
        text_value *values;
        size_t capacity = items->capacity ? 2 * items->capacity : 8;
        BASE_TRY(TEXT_TAKE(r, capacity, sizeof *values, &values));
        if (items->count) memcpy(values, items->values, items->count * sizeof *values);
        items->values = values;
        items->capacity = capacity;
    }
    items->values[items->count++] = v;
    return text_template_charge(r, 1);
}

sifr_status text_pair(text_render *r, text_value a, text_value b, text_value *out) {
    BASE_TRY(text_new_items(r, TEXT_TUPLE, 2, out));
    BASE_TRY(text_append(r, out->items, a));
    return text_append(r, out->items, b);
}

static sifr_status characters(text_render *r, text_text text, text_items **out) {
    text_value list;
    BASE_TRY(text_new_items(r, TEXT_LIST, text_char_count(text), &list));
    for (size_t at = 0, size; at < text.size; at += size) {
        (void)text_char(text, at, &size);
        BASE_TRY(text_append(r, list.items, text_of_text((text_text){text.bytes + at, size})));
    }
    *out = list.items;
    return SIFR_OK;
}

sifr_status text_iterate(text_render *r, text_value v, text_items **out) {
    text_value list;
    if (v.kind == TEXT_STRING) return characters(r, v.text, out);
    if (text_is_items(v) && v.kind != TEXT_GENERATOR) {
        *out = v.items;
        return SIFR_OK;
    }
    BASE_TRY(text_new_items(r, TEXT_LIST, 0, &list));
    if (v.kind == TEXT_GENERATOR && !v.items->consumed) {
        v.items->consumed = true;
        *list.items = *v.items;
    } else if (v.kind == TEXT_DICT) {
        for (size_t i = 0; i < v.dict->count; i++)
            BASE_TRY(text_append(r, list.items, v.dict->keys[i]));
    } else if (v.kind != TEXT_GENERATOR && v.kind != TEXT_UNDEFINED) {
        return text_template_fail(&r->place, "a value of type %s cannot be iterated",
                                  text_kind_name(v));
    }
    *out = list.items;
    return SIFR_OK;
}

sifr_status text_length(text_render *r, text_value v, int64_t *out) {
    if (v.kind == TEXT_STRING) {
        BASE_TRY(text_template_charge(r, v.text.size / 64));
        *out = (int64_t)text_char_count(v.text);
    } else if (text_is_items(v) && v.kind != TEXT_GENERATOR) {
        *out = (int64_t)v.items->count;
    } else if (v.kind == TEXT_DICT) {
        *out = (int64_t)v.dict->count;
    } else if (v.kind == TEXT_UNDEFINED) {
        *out = 0;
    } else {
        return text_template_fail(&r->place, "a value of type %s has no length", text_kind_name(v));
    }
    return SIFR_OK;
}

/* ---- dicts ---- */

sifr_status text_new_dict(text_render *r, text_value_kind kind, size_t capacity, text_value *out) {
    text_dict *dict;
    BASE_TRY(TEXT_TAKE(r, 1, sizeof *dict, &dict));
    *dict = (text_dict){.capacity = capacity};
    if (capacity) {
        BASE_TRY(TEXT_TAKE(r, capacity, sizeof *dict->keys, &dict->keys));
        BASE_TRY(TEXT_TAKE(r, capacity, sizeof *dict->values, &dict->values));
    }
    *out = (text_value){.kind = kind, .dict = dict};
    return SIFR_OK;
}

static bool same_key(text_value a, text_value b) {
    if (a.kind == TEXT_STRING || b.kind == TEXT_STRING)
        return a.kind == b.kind && text_text_equal(a.text, b.text);
    if (text_is_number(a) && text_is_number(b))
        return a.kind == TEXT_INT && b.kind == TEXT_INT ? a.integer == b.integer
                                                        : text_number(a) == text_number(b);
    return a.kind == b.kind;
}

/* The position of the key; count: not there. */
static sifr_status find_key(text_render *r, const text_dict *dict, text_value key, size_t *out) {
    if (key.kind != TEXT_STRING && !text_is_number(key) && key.kind != TEXT_NONE &&
        key.kind != TEXT_UNDEFINED)
        return text_template_fail(&r->place,
                                  "a value of type %s as a key of a dict is not "
                                  "supported",
                                  text_kind_name(key));
    size_t at = 0;
    while (at < dict->count && !same_key(dict->keys[at], key)) at++;
    *out = at;
    return text_template_charge_all(r, at, key.kind == TEXT_STRING ? key.text.size : 0);
}

sifr_status text_dict_get(text_render *r, const text_dict *dict, text_value key, bool *found,
                          text_value *out) {
    size_t at;
    BASE_TRY(find_key(r, dict, key, &at));
    *found = at < dict->count;
    if (!*found) return SIFR_OK;
    *out = dict->values[at];
    return dict->message ? text_owner_reads(r, dict, key) : SIFR_OK;
}

static sifr_status grow_dict(text_render *r, text_dict *dict) {
    text_dict old = *dict;
    dict->capacity = old.capacity ? 2 * old.capacity : 8;
    BASE_TRY(TEXT_TAKE(r, dict->capacity, sizeof *dict->keys, &dict->keys));
    BASE_TRY(TEXT_TAKE(r, dict->capacity, sizeof *dict->values, &dict->values));
    if (old.count == 0) return SIFR_OK;
    memcpy(dict->keys, old.keys, old.count * sizeof *old.keys);
    memcpy(dict->values, old.values, old.count * sizeof *old.values);
    return SIFR_OK;
}

sifr_status text_dict_set(text_render *r, text_dict *dict, text_value key, text_value v) {
    size_t at;
    BASE_TRY(find_key(r, dict, key, &at));
    if (at == dict->count) {
        if (at == dict->capacity) BASE_TRY(grow_dict(r, dict));
        dict->keys[dict->count++] = key;
    }
    dict->values[at] = v;
    return SIFR_OK;
}

/* ---- from JSON ---- */

static sifr_status from_object(text_render *r, const json_t *json, text_value *out) {
    const char *name;
    json_t *member;
    BASE_TRY(text_new_dict(r, TEXT_DICT, json_object_size(json), out));
    text_dict *dict = out->dict;
    json_object_foreach((json_t *)(uintptr_t)json, name, member) { /* keys are different */
        text_text text = text_literal(name);
        char *copy;
        BASE_TRY(TEXT_TAKE(r, text.size + 1, 1, &copy));
        memcpy(copy, text.bytes, text.size);
        text.bytes = copy;
        dict->keys[dict->count] = text_of_text(text);
        BASE_TRY(text_from_json(r, member, &dict->values[dict->count]));
        dict->count++;
    }
    return SIFR_OK;
}

static sifr_status from_array(text_render *r, const json_t *json, text_value *out) {
    size_t count = json_array_size(json);
    BASE_TRY(text_new_items(r, TEXT_LIST, count, out));
    for (size_t i = 0; i < count; i++) {
        text_value v;
        BASE_TRY(text_from_json(r, json_array_get(json, i), &v));
        BASE_TRY(text_append(r, out->items, v));
    }
    return SIFR_OK;
}

/* Texts stay where they are, in the JSON value. */
sifr_status text_from_json(text_render *r, const json_t *json, text_value *out) {
    BASE_TRY(text_template_enter(r));
    sifr_status status = SIFR_OK;
    switch (json_typeof(json)) {
    case JSON_OBJECT:
        status = from_object(r, json, out);
        break;
    case JSON_ARRAY:
        status = from_array(r, json, out);
        break;
    case JSON_STRING:
        *out = text_of_text((text_text){json_string_value(json), json_string_length(json)});
        break;
    case JSON_INTEGER:
        *out = text_of_int((int64_t)json_integer_value(json));
        break;
    case JSON_REAL:
        *out = text_of_float(json_real_value(json));
        break;
    case JSON_TRUE:
    case JSON_FALSE:
        *out = text_of_bool(json_is_true(json));
        break;
    case JSON_NULL:
        *out = text_none();
        break;
    }
    r->depth--;
    return status;
}
