/* The instructions that Python's pickler writes for such objects in protocols 2 to 5.
 * Their meanings: Python's Lib/pickletools.py. */
#include "formats/torch/torch_pickle.h"

#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/heap.h"
#include "base/json.h"
#include "formats/torch/torch_pickle_internal.h"

enum { LONGEST_INT = 8, NEWEST_PROTOCOL = 5 };

/* --- values --- */

static sifr_status push_plain(pickle_machine *m, pickle_kind kind, int64_t integer,
                              sifr_error *error) {
    return formats_pickle_push(m, (pickle_object){.kind = kind, .integer = integer}, error);
}

/* A little-endian integer of `bytes`; `sign`: in two's complement. */
static sifr_status push_int(pickle_machine *m, int bytes, bool sign, sifr_error *error) {
    uint64_t value;
    BASE_TRY(formats_pickle_number(m, bytes, &value, error));
    if (sign && bytes < LONGEST_INT && bytes > 0 && value >> (8 * bytes - 1))
        value |= UINT64_MAX << 8 * bytes;
    return push_plain(m, PICKLE_INT, (int64_t)value, error);
}

static sifr_status push_long(pickle_machine *m, sifr_error *error) {
    uint64_t bytes;
    BASE_TRY(formats_pickle_number(m, 1, &bytes, error));
    if (bytes > LONGEST_INT && m->lenient) {
        const uint8_t *from;
        BASE_TRY(formats_pickle_take(m, (size_t)bytes, &from, error));
        return formats_pickle_opaque(m, error);
    }
    if (bytes > LONGEST_INT)
        return formats_pickle_fail(m, error, "an int of %d bytes; 8 at most are read", (int)bytes);
    return push_int(m, (int)bytes, true, error);
}

static sifr_status push_float(pickle_machine *m, sifr_error *error) {
    const uint8_t *from;
    BASE_TRY(formats_pickle_take(m, 8, &from, error));
    return push_plain(m, PICKLE_FLOAT, 0, error);
}

static sifr_status push_text(pickle_machine *m, int length_bytes, sifr_error *error) {
    uint64_t length;
    const uint8_t *from;
    BASE_TRY(formats_pickle_number(m, length_bytes, &length, error));
    if (length > m->size) return formats_pickle_fail(m, error, "cut short");
    BASE_TRY(formats_pickle_take(m, (size_t)length, &from, error));
    pickle_object object = {.kind = PICKLE_TEXT, .text = {(const char *)from, (size_t)length}};
    return formats_pickle_push(m, object, error);
}

/* The top `count` values become one tuple. */
static sifr_status push_tuple(pickle_machine *m, size_t count, sifr_error *error) {
    pickle_object object = {.kind = PICKLE_TUPLE};
    BASE_TRY(formats_pickle_need(m, count, error));
    BASE_TRY(base_alloc(count, sizeof *object.items.at, &object.items.at, error));
    m->stack.count -= count;
    if (count) memcpy(object.items.at, m->stack.at + m->stack.count, count * sizeof(uint32_t));
    object.items.count = object.items.capacity = count;
    return formats_pickle_push(m, object, error);
}

static sifr_status push_marked_tuple(pickle_machine *m, sifr_error *error) {
    size_t count;
    BASE_TRY(formats_pickle_take_mark(m, &count, error));
    return push_tuple(m, count, error);
}

/* The top `count` values go into the list or dict below them. */
static sifr_status append(pickle_machine *m, pickle_kind kind, size_t count, sifr_error *error) {
    pickle_object *into;
    if (kind == PICKLE_DICT && count % 2)
        return formats_pickle_fail(m, error, "a key of a dict has no value");
    BASE_TRY(formats_pickle_need(m, count + 1, error));
    if (m->lenient && m->objects[m->stack.at[m->stack.count - count - 1]].kind == PICKLE_OPAQUE) {
        m->stack.count -= count;
        return SIFR_OK;
    }
    BASE_TRY(formats_pickle_container(m, count, kind, &into, error));
    m->stack.count -= count;
    for (size_t i = 0; i < count; i++)
        BASE_TRY(formats_pickle_add(&into->items, m->stack.at[m->stack.count + i], error));
    return SIFR_OK;
}

static sifr_status append_marked(pickle_machine *m, pickle_kind kind, sifr_error *error) {
    size_t count;
    BASE_TRY(formats_pickle_take_mark(m, &count, error));
    return append(m, kind, count, error);
}

/* The state of an OrderedDict: a state_dict has its modules' versions there. */
static sifr_status drop_state(pickle_machine *m, sifr_error *error) {
    pickle_object *into, state;
    if (m->lenient) {
        BASE_TRY(formats_pickle_need(m, 2, error));
        return formats_pickle_drop(m, 1, error);
    }
    BASE_TRY(formats_pickle_container(m, 1, PICKLE_DICT, &into, error));
    return formats_pickle_pop(m, PICKLE_DICT, &state, error);
}

/* --- the memo --- */

static sifr_status put(pickle_machine *m, uint64_t place, sifr_error *error) {
    BASE_TRY(formats_pickle_need(m, 1, error));
    uint32_t top = m->stack.at[m->stack.count - 1];
    if (place == m->memo.count) return formats_pickle_add(&m->memo, top, error);
    if (place > m->memo.count)
        return formats_pickle_fail(m, error, "stores a value at %llu, past the next place, %zu",
                                   (unsigned long long)place, m->memo.count);
    m->memo.at[place] = top;
    return SIFR_OK;
}

static sifr_status put_numbered(pickle_machine *m, int bytes, sifr_error *error) {
    uint64_t place;
    BASE_TRY(formats_pickle_number(m, bytes, &place, error));
    return put(m, place, error);
}

static sifr_status get(pickle_machine *m, int bytes, sifr_error *error) {
    uint64_t place;
    BASE_TRY(formats_pickle_number(m, bytes, &place, error));
    if (place >= m->memo.count)
        return formats_pickle_fail(m, error, "reads a value that was not stored");
    return formats_pickle_add(&m->stack, m->memo.at[place], error);
}

/* --- instructions --- */

static sifr_status check_protocol(pickle_machine *m, sifr_error *error) {
    uint64_t protocol;
    BASE_TRY(formats_pickle_number(m, 1, &protocol, error));
    if (protocol >= 2 && protocol <= NEWEST_PROTOCOL) return SIFR_OK;
    return formats_pickle_fail(m, error, "protocol %d is not supported (supported: 2 to 5)",
                               (int)protocol);
}

static sifr_status take_line(pickle_machine *m, formats_pickle_text *out, sifr_error *error) {
    const uint8_t *begin = m->data + m->at, *end = memchr(begin, '\n', m->size - m->at);
    if (!end) return formats_pickle_fail(m, error, "cut short");
    *out = (formats_pickle_text){(const char *)begin, (size_t)(end - begin)};
    m->at += out->length + 1;
    return SIFR_OK;
}

static sifr_status push_class(pickle_machine *m, sifr_error *error) {
    formats_pickle_text module, name;
    BASE_TRY(take_line(m, &module, error));
    BASE_TRY(take_line(m, &name, error));
    return formats_pickle_class(m, module, name, error);
}

static sifr_status push_named_class(pickle_machine *m, sifr_error *error) {
    pickle_object module, name;
    BASE_TRY(formats_pickle_pop(m, PICKLE_TEXT, &name, error));
    BASE_TRY(formats_pickle_pop(m, PICKLE_TEXT, &module, error));
    return formats_pickle_class(m, module.text, name.text, error);
}

/* Instructions that make or join containers; *known: whether this is one. */
static sifr_status run_container(pickle_machine *m, uint8_t code, bool *known, sifr_error *error) {
    *known = true;
    switch (code) {
    case '(':
        return formats_pickle_add(&m->marks, (uint32_t)m->stack.count, error);
    case ')':
        return push_tuple(m, 0, error);
    case 0x85:
        return push_tuple(m, 1, error);
    case 0x86:
        return push_tuple(m, 2, error);
    case 0x87:
        return push_tuple(m, 3, error);
    case 't':
        return push_marked_tuple(m, error);
    case ']':
        return formats_pickle_push(m, (pickle_object){.kind = PICKLE_LIST}, error);
    case '}':
        return formats_pickle_push(m, (pickle_object){.kind = PICKLE_DICT}, error);
    case 'a':
        return append(m, PICKLE_LIST, 1, error);
    case 'e':
        return append_marked(m, PICKLE_LIST, error);
    case 's':
        return append(m, PICKLE_DICT, 2, error);
    case 'u':
        return append_marked(m, PICKLE_DICT, error);
    case 'b':
        return drop_state(m, error);
    default:
        *known = false;
        return SIFR_OK;
    }
}

static sifr_status run_one(pickle_machine *m, uint8_t code, sifr_error *error) {
    bool known;
    uint64_t frame;
    BASE_TRY(run_container(m, code, &known, error));
    if (!known && m->lenient) BASE_TRY(formats_pickle_lenient(m, code, &known, error));
    if (known) return SIFR_OK;
    switch (code) {
    case 0x80:
        return check_protocol(m, error);
    case 0x95:
        return formats_pickle_number(m, 8, &frame, error); /* a hint for reading ahead */
    case 'N':
        return push_plain(m, PICKLE_NONE, 0, error);
    case 0x88:
        return push_plain(m, PICKLE_BOOL, 1, error);
    case 0x89:
        return push_plain(m, PICKLE_BOOL, 0, error);
    case 'K':
        return push_int(m, 1, false, error);
    case 'M':
        return push_int(m, 2, false, error);
    case 'J':
        return push_int(m, 4, true, error);
    case 0x8a:
        return push_long(m, error);
    case 'G':
        return push_float(m, error);
    case 0x8c:
        return push_text(m, 1, error);
    case 'X':
        return push_text(m, 4, error);
    case 0x8d:
        return push_text(m, 8, error);
    case 'q':
        return put_numbered(m, 1, error);
    case 'r':
        return put_numbered(m, 4, error);
    case 0x94:
        return put(m, m->memo.count, error);
    case 'h':
        return get(m, 1, error);
    case 'j':
        return get(m, 4, error);
    case 'c':
        return push_class(m, error);
    case 0x93:
        return push_named_class(m, error);
    case 'Q':
        return formats_pickle_storage(m, error);
    case 'R':
        return formats_pickle_reduce(m, error);
    default:
        return formats_pickle_fail(m, error, "instruction 0x%02x is not one of a dict of tensors",
                                   code);
    }
}

sifr_status formats_pickle_run(pickle_machine *m, sifr_error *error) {
    const uint8_t *code;
    for (;;) {
        m->begin = m->at;
        BASE_TRY(formats_pickle_take(m, 1, &code, error));
        if (*code == '.') break;
        BASE_TRY(run_one(m, *code, error));
    }
    if (m->marks.count || m->stack.count != 1)
        return formats_pickle_fail(m, error, "ends with %zu values, not one", m->stack.count);
    if (m->at != m->size)
        return formats_pickle_fail(m, error, "%zu bytes lie behind its end", m->size - m->at);
    return SIFR_OK;
}

/* --- the result --- */

static sifr_status check_name(const pickle_machine *m, formats_pickle_text name,
                              sifr_error *error) {
    json_t *utf8 = json_stringn(name.at, name.length);
    bool good = utf8 && name.length > 0 && name.length <= FORMATS_NAME_LIMIT;
    json_decref(utf8);
    for (size_t i = 0; good && i < name.length; i++)
        good = (unsigned char)name.at[i] >= 0x20 && name.at[i] != 0x7f;
    if (good) return SIFR_OK;
    return base_fail(error, SIFR_FAILED,
                     "%s: a tensor's name is empty, longer than %d bytes, not UTF-8, or has a "
                     "control character",
                     m->name, FORMATS_NAME_LIMIT);
}

static sifr_status not_a_tensor(const pickle_machine *m, formats_pickle_text name, pickle_kind kind,
                                sifr_error *error) {
    if (kind == PICKLE_DICT)
        return base_fail(error, SIFR_FAILED,
                         "%s: \"%.*s\" is a dict, not a tensor: a checkpoint of a training run, "
                         "not a model's weights; save the dict of tensors alone with torch.save",
                         m->name, (int)base_min_i64((int64_t)name.length, 200), name.at);
    return base_fail(error, SIFR_FAILED, "%s: \"%.*s\" is %s, not a tensor", m->name,
                     (int)base_min_i64((int64_t)name.length, 200), name.at,
                     formats_pickle_kind_name(kind));
}

static sifr_status collect(const pickle_machine *m, formats_pickle *out, sifr_error *error) {
    const pickle_object *top = &m->objects[m->stack.at[0]];
    if (top->kind != PICKLE_DICT)
        return base_fail(error, SIFR_FAILED, "%s: holds %s, not a dict of tensors", m->name,
                         formats_pickle_kind_name(top->kind));
    if (top->items.count / 2 > FORMATS_TENSOR_LIMIT)
        return base_fail(error, SIFR_FAILED, "%s: %zu tensors, more than the limit of %d", m->name,
                         top->items.count / 2, FORMATS_TENSOR_LIMIT);
    BASE_TRY(base_alloc(top->items.count / 2, sizeof *out->views, &out->views, error));
    for (size_t i = 0; i + 1 < top->items.count; i += 2) {
        const pickle_object *key = &m->objects[top->items.at[i]],
                            *value = &m->objects[top->items.at[i + 1]];
        if (key->kind != PICKLE_TEXT)
            return base_fail(error, SIFR_FAILED, "%s: %s names a tensor, not a string", m->name,
                             formats_pickle_kind_name(key->kind));
        BASE_TRY(check_name(m, key->text, error));
        if (value->kind != PICKLE_VIEW) return not_a_tensor(m, key->text, value->kind, error);
        out->views[out->count] = m->views[value->integer];
        out->views[out->count++].name = key->text;
    }
    return SIFR_OK;
}

sifr_status formats_pickle_parse(const uint8_t *data, size_t size, const char *name,
                                 formats_pickle *out, sifr_error *error) {
    pickle_machine machine = {.data = data, .size = size, .name = name};
    *out = (formats_pickle){0};
    if (size > FORMATS_PICKLE_LIMIT)
        return base_fail(error, SIFR_FAILED, "%s: a pickle of %zu bytes, more than the limit of %d",
                         name, size, FORMATS_PICKLE_LIMIT);
    sifr_status status = formats_pickle_run(&machine, error);
    if (status == SIFR_OK) status = collect(&machine, out, error);
    formats_pickle_machine_free(&machine);
    if (status != SIFR_OK) formats_pickle_free(out);
    return status;
}

void formats_pickle_free(formats_pickle *pickle) {
    free(pickle->views);
    *pickle = (formats_pickle){0};
}
