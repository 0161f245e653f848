/* Names of variables, attributes and items. */
#include "text/template/template_internal.h"

sifr_status text_template_charge(text_render *r, size_t steps) {
    r->steps += (int64_t)(steps < TEXT_TEMPLATE_STEPS ? steps : TEXT_TEMPLATE_STEPS);
    if (r->steps <= TEXT_TEMPLATE_STEPS) return SIFR_OK;
    return text_template_fail(&r->place, "the template takes more than %d steps",
                              TEXT_TEMPLATE_STEPS);
}

sifr_status text_template_charge_all(text_render *r, size_t count, size_t size) {
    size_t work;
    if (!base_mul_size(count, size / 64 + 1, &work)) work = TEXT_TEMPLATE_STEPS;
    return text_template_charge(r, work / 8);
}

sifr_status text_template_enter(text_render *r) {
    if (r->depth >= TEXT_TEMPLATE_DEPTH)
        return text_template_fail(&r->place, "nested deeper than %d levels", TEXT_TEMPLATE_DEPTH);
    r->depth++;
    return SIFR_OK;
}

/* ---- variables ---- */

sifr_status text_scope_push(text_render *r) {
    text_scope *scope;
    BASE_TRY(TEXT_TAKE(r, 1, sizeof *scope, &scope));
    *scope = (text_scope){.outer = r->scope};
    r->scope = scope;
    return SIFR_OK;
}

sifr_status text_scope_set(text_render *r, int symbol, text_value v) {
    text_scope *s = r->scope;
    for (size_t i = 0; i < s->count; i++) {
        if (s->symbols[i] != symbol) continue;
        s->values[i] = v;
        return SIFR_OK;
    }
    if (s->count == s->capacity) {
        text_scope old = *s;
        s->capacity = old.capacity ? 2 * old.capacity : 4;
        BASE_TRY(TEXT_TAKE(r, s->capacity, sizeof *s->symbols, &s->symbols));
        BASE_TRY(TEXT_TAKE(r, s->capacity, sizeof *s->values, &s->values));
        if (old.count) {
            memcpy(s->symbols, old.symbols, old.count * sizeof *old.symbols);
            memcpy(s->values, old.values, old.count * sizeof *old.values);
        }
    }
    s->symbols[s->count] = symbol;
    s->values[s->count++] = v;
    return text_template_charge(r, s->count / 8);
}

sifr_status text_scope_get(text_render *r, const text_node *name, text_value *out) {
    size_t looked = 0;
    for (const text_scope *s = r->scope; s; s = s->outer) {
        for (size_t i = 0; i < s->count; i++) {
            if (s->symbols[i] != name->symbol) continue;
            *out = s->values[i];
            return text_template_charge(r, (looked + i) / 16);
        }
        looked += s->count;
    }
    const text_builtin *function = text_function_find(name->text);
    *out = function ? (text_value){.kind = TEXT_FUNCTION, .function = function}
                    : text_undefined(name->text);
    return text_template_charge(r, looked / 16);
}

/* ---- attributes and items ---- */

static sifr_status has_nothing(text_render *r, text_value v, text_text name) {
    if (v.kind == TEXT_SAFE)
        return text_template_fail(&r->place, "%.*s of a string marked safe is not supported",
                                  (int)name.size, name.bytes);
    return text_template_fail(&r->place, "%.*s is undefined, so it has no %.*s", (int)v.text.size,
                              v.text.bytes, (int)name.size, name.bytes);
}

static sifr_status bind(text_render *r, text_value self, const text_builtin *function,
                        text_value *out) {
    text_method *method;
    BASE_TRY(TEXT_TAKE(r, 1, sizeof *method, &method));
    *method = (text_method){function, self};
    *out = (text_value){.kind = TEXT_METHOD, .method = method};
    return SIFR_OK;
}

/* Methods that would change a dict are undefined in the sandbox, also where a key has the name. */
static bool changes_dict(text_value v, text_text name) {
    static const char *const names[] = {"clear", "pop", "popitem", "setdefault", "update"};
    bool changes = false;
    for (size_t i = 0; v.kind == TEXT_DICT && i < sizeof names / sizeof *names; i++)
        changes |= text_text_is(name, names[i]);
    return changes;
}

/* What Python's getattr finds. */
static sifr_status attribute(text_render *r, text_value v, text_text name, bool *found,
                             text_value *out) {
    const text_builtin *method = text_method_find(v, name);
    *found = true;
    if (method) return bind(r, v, method, out);
    if (v.kind == TEXT_LOOP) return text_loop_attribute(r, v.loop, name, out);
    if (v.kind == TEXT_TUPLE && v.items->group &&
        (text_text_is(name, "grouper") || text_text_is(name, "list"))) {
        *out = v.items->values[text_text_is(name, "list")];
        return SIFR_OK;
    }
    if (v.kind == TEXT_MACRO && text_text_is(name, "name")) {
        *out = text_of_text(v.macro->node->text);
        return SIFR_OK;
    }
    if (changes_dict(v, name) || (name.size > 1 && name.bytes[0] == '_' && name.bytes[1] == '_')) {
        *out = text_undefined(name);
        return SIFR_OK;
    }
    *found = false;
    if (v.kind == TEXT_NAMESPACE) return text_dict_get(r, v.dict, text_of_text(name), found, out);
    return SIFR_OK;
}

static sifr_status element(text_render *r, text_value v, int64_t at, bool *found, text_value *out) {
    int64_t length;
    BASE_TRY(text_length(r, v, &length));
    if (at < 0) at += length;
    *found = at >= 0 && at < length;
    if (!*found) return SIFR_OK;
    if (v.kind != TEXT_STRING) {
        *out = v.items->values[at];
        return SIFR_OK;
    }
    size_t place = 0, size = 0;
    for (int64_t i = 0; i <= at; i++) {
        place += size;
        (void)text_char(v.text, place, &size);
    }
    *out = text_of_text((text_text){v.text.bytes + place, size});
    return text_template_charge(r, (size_t)at / 16);
}

/* What v[key] finds in Python. */
static sifr_status subscript(text_render *r, text_value v, text_value key, bool *found,
                             text_value *out) {
    bool number = key.kind == TEXT_INT || key.kind == TEXT_BOOL;
    *found = false;
    if (v.kind == TEXT_DICT) {
        if (key.kind == TEXT_LIST || key.kind == TEXT_DICT) return SIFR_OK;
        return text_dict_get(r, v.dict, key, found, out);
    }
    if (number && (v.kind == TEXT_STRING || v.kind == TEXT_LIST || v.kind == TEXT_TUPLE ||
                   v.kind == TEXT_RANGE))
        return element(r, v, key.kind == TEXT_INT ? key.integer : key.truth, found, out);
    return SIFR_OK;
}

sifr_status text_attribute(text_render *r, text_value v, text_text name, text_value *out) {
    bool found;
    if (v.kind == TEXT_UNDEFINED || v.kind == TEXT_SAFE) return has_nothing(r, v, name);
    BASE_TRY(attribute(r, v, name, &found, out));
    if (!found) BASE_TRY(subscript(r, v, text_of_text(name), &found, out));
    if (!found) *out = text_undefined(name);
    return SIFR_OK;
}

sifr_status text_item(text_render *r, text_value v, text_value key, text_value *out) {
    bool found;
    text_text name = key.kind == TEXT_STRING ? key.text : text_literal("such item");
    if (v.kind == TEXT_UNDEFINED || v.kind == TEXT_SAFE) return has_nothing(r, v, name);
    BASE_TRY(subscript(r, v, key, &found, out));
    if (!found && key.kind == TEXT_STRING) BASE_TRY(attribute(r, v, key.text, &found, out));
    if (!found) *out = text_undefined(name);
    return SIFR_OK;
}

/* A part of a path: digits are a number. */
static text_value path_part(text_text part) {
    int64_t number = 0;
    bool digits = part.size > 0 && part.size < 10;
    for (size_t i = 0; digits && i < part.size; i++) {
        digits = part.bytes[i] >= '0' && part.bytes[i] <= '9';
        number = number * 10 + (part.bytes[i] - '0');
    }
    return digits ? text_of_int(number) : text_of_text(part);
}

/* One step of a path; where it leads nowhere, `fallback`, unless that is nothing. */
static sifr_status step(text_render *r, text_value key, text_value fallback, text_value *v) {
    BASE_TRY(text_template_charge(r, 1));
    BASE_TRY(text_item(r, *v, key, v));
    if (v->kind == TEXT_UNDEFINED && fallback.kind > TEXT_NONE) *v = fallback;
    return SIFR_OK;
}

sifr_status text_path(text_render *r, text_value v, text_value path, text_value fallback,
                      text_value *out) {
    *out = v;
    if (path.kind == TEXT_NONE || path.kind == TEXT_ABSENT) return SIFR_OK;
    if (path.kind != TEXT_STRING) return step(r, path, fallback, out);
    for (size_t at = 0; at <= path.text.size;) {
        size_t end = text_find(path.text, text_literal("."), at);
        if (end == SIZE_MAX) end = path.text.size;
        text_text part = {path.text.bytes + at, end - at};
        BASE_TRY(step(r, path_part(part), fallback, out));
        at = end + 1;
    }
    return SIFR_OK;
}

/* ---- what an argument must be ---- */

sifr_status text_want_int(text_render *r, text_value v, const char *what, int64_t *out) {
    if (v.kind != TEXT_INT && v.kind != TEXT_BOOL)
        return text_template_fail(&r->place, "%s must be a whole number, not %s", what,
                                  text_kind_name(v));
    *out = v.kind == TEXT_INT ? v.integer : v.truth;
    return SIFR_OK;
}

sifr_status text_want_text(text_render *r, text_value v, const char *what, text_text *out) {
    if (v.kind != TEXT_STRING)
        return text_template_fail(&r->place, "%s must be a string, not %s", what,
                                  text_kind_name(v));
    *out = v.text;
    return SIFR_OK;
}
