/* Names of variables, attributes and items. */
#include "text/template/template_internal.h"

sifr_status formats_template_charge(formats_render *r, size_t steps) {
    r->steps += (int64_t)(steps < FORMATS_TEMPLATE_STEPS ? steps : FORMATS_TEMPLATE_STEPS);
    if (r->steps <= FORMATS_TEMPLATE_STEPS) return SIFR_OK;
    return formats_template_fail(&r->place, "the template takes more than %d steps",
                                 FORMATS_TEMPLATE_STEPS);
}

sifr_status formats_template_charge_all(formats_render *r, size_t count, size_t size) {
    size_t work;
    if (!base_mul_size(count, size / 64 + 1, &work)) work = FORMATS_TEMPLATE_STEPS;
    return formats_template_charge(r, work / 8);
}

sifr_status formats_template_enter(formats_render *r) {
    if (r->depth >= FORMATS_TEMPLATE_DEPTH)
        return formats_template_fail(&r->place, "nested deeper than %d levels",
                                     FORMATS_TEMPLATE_DEPTH);
    r->depth++;
    return SIFR_OK;
}

/* ---- variables ---- */

sifr_status formats_scope_push(formats_render *r) {
    formats_scope *scope;
    BASE_TRY(FORMATS_TAKE(r, 1, sizeof *scope, &scope));
    *scope = (formats_scope){.outer = r->scope};
    r->scope = scope;
    return SIFR_OK;
}

sifr_status formats_scope_set(formats_render *r, int symbol, formats_value v) {
    formats_scope *s = r->scope;
    for (size_t i = 0; i < s->count; i++) {
        if (s->symbols[i] != symbol) continue;
        s->values[i] = v;
        return SIFR_OK;
    }
    if (s->count == s->room) {
        formats_scope old = *s;
        s->room = old.room ? 2 * old.room : 4;
        BASE_TRY(FORMATS_TAKE(r, s->room, sizeof *s->symbols, &s->symbols));
        BASE_TRY(FORMATS_TAKE(r, s->room, sizeof *s->values, &s->values));
        if (old.count) {
            memcpy(s->symbols, old.symbols, old.count * sizeof *old.symbols);
            memcpy(s->values, old.values, old.count * sizeof *old.values);
        }
    }
    s->symbols[s->count] = symbol;
    s->values[s->count++] = v;
    return formats_template_charge(r, s->count / 8);
}

sifr_status formats_scope_get(formats_render *r, const formats_node *name, formats_value *out) {
    size_t looked = 0;
    for (const formats_scope *s = r->scope; s; s = s->outer) {
        for (size_t i = 0; i < s->count; i++) {
            if (s->symbols[i] != name->symbol) continue;
            *out = s->values[i];
            return formats_template_charge(r, (looked + i) / 16);
        }
        looked += s->count;
    }
    const formats_builtin *function = formats_function_find(name->text);
    *out = function ? (formats_value){.kind = FORMATS_FUNCTION, .function = function}
                    : formats_undefined(name->text);
    return formats_template_charge(r, looked / 16);
}

/* ---- attributes and items ---- */

static sifr_status has_nothing(formats_render *r, formats_value v, formats_text name) {
    if (v.kind == FORMATS_SAFE)
        return formats_template_fail(&r->place, "%.*s of a string marked safe is not supported",
                                     (int)name.size, name.bytes);
    return formats_template_fail(&r->place, "%.*s is undefined, so it has no %.*s",
                                 (int)v.text.size, v.text.bytes, (int)name.size, name.bytes);
}

static sifr_status bind(formats_render *r, formats_value self, const formats_builtin *function,
                        formats_value *out) {
    formats_method *method;
    BASE_TRY(FORMATS_TAKE(r, 1, sizeof *method, &method));
    *method = (formats_method){function, self};
    *out = (formats_value){.kind = FORMATS_METHOD, .method = method};
    return SIFR_OK;
}

/* Methods that would change a dict are undefined in the sandbox, also where a key has the name. */
static bool changes_dict(formats_value v, formats_text name) {
    static const char *const names[] = {"clear", "pop", "popitem", "setdefault", "update"};
    bool changes = false;
    for (size_t i = 0; v.kind == FORMATS_DICT && i < sizeof names / sizeof *names; i++)
        changes |= formats_text_is(name, names[i]);
    return changes;
}

/* What Python's getattr finds. */
static sifr_status attribute(formats_render *r, formats_value v, formats_text name, bool *found,
                             formats_value *out) {
    const formats_builtin *method = formats_method_find(v, name);
    *found = true;
    if (method) return bind(r, v, method, out);
    if (v.kind == FORMATS_LOOP) return formats_loop_attribute(r, v.loop, name, out);
    if (v.kind == FORMATS_TUPLE && v.items->group &&
        (formats_text_is(name, "grouper") || formats_text_is(name, "list"))) {
        *out = v.items->values[formats_text_is(name, "list")];
        return SIFR_OK;
    }
    if (v.kind == FORMATS_MACRO && formats_text_is(name, "name")) {
        *out = formats_of_text(v.macro->node->text);
        return SIFR_OK;
    }
    if (changes_dict(v, name) || (name.size > 1 && name.bytes[0] == '_' && name.bytes[1] == '_')) {
        *out = formats_undefined(name);
        return SIFR_OK;
    }
    *found = false;
    if (v.kind == FORMATS_NAMESPACE)
        return formats_dict_get(r, v.dict, formats_of_text(name), found, out);
    return SIFR_OK;
}

static sifr_status element(formats_render *r, formats_value v, int64_t at, bool *found,
                           formats_value *out) {
    int64_t length;
    BASE_TRY(formats_length(r, v, &length));
    if (at < 0) at += length;
    *found = at >= 0 && at < length;
    if (!*found) return SIFR_OK;
    if (v.kind != FORMATS_STRING) {
        *out = v.items->values[at];
        return SIFR_OK;
    }
    size_t place = 0, size = 0;
    for (int64_t i = 0; i <= at; i++) {
        place += size;
        (void)formats_char(v.text, place, &size);
    }
    *out = formats_of_text((formats_text){v.text.bytes + place, size});
    return formats_template_charge(r, (size_t)at / 16);
}

/* What v[key] finds in Python. */
static sifr_status subscript(formats_render *r, formats_value v, formats_value key, bool *found,
                             formats_value *out) {
    bool number = key.kind == FORMATS_INT || key.kind == FORMATS_BOOL;
    *found = false;
    if (v.kind == FORMATS_DICT) {
        if (key.kind == FORMATS_LIST || key.kind == FORMATS_DICT) return SIFR_OK;
        return formats_dict_get(r, v.dict, key, found, out);
    }
    if (number && (v.kind == FORMATS_STRING || v.kind == FORMATS_LIST || v.kind == FORMATS_TUPLE ||
                   v.kind == FORMATS_RANGE))
        return element(r, v, key.kind == FORMATS_INT ? key.integer : key.truth, found, out);
    return SIFR_OK;
}

sifr_status formats_attribute(formats_render *r, formats_value v, formats_text name,
                              formats_value *out) {
    bool found;
    if (v.kind == FORMATS_UNDEFINED || v.kind == FORMATS_SAFE) return has_nothing(r, v, name);
    BASE_TRY(attribute(r, v, name, &found, out));
    if (!found) BASE_TRY(subscript(r, v, formats_of_text(name), &found, out));
    if (!found) *out = formats_undefined(name);
    return SIFR_OK;
}

sifr_status formats_item(formats_render *r, formats_value v, formats_value key,
                         formats_value *out) {
    bool found;
    formats_text name = key.kind == FORMATS_STRING ? key.text : formats_literal("such item");
    if (v.kind == FORMATS_UNDEFINED || v.kind == FORMATS_SAFE) return has_nothing(r, v, name);
    BASE_TRY(subscript(r, v, key, &found, out));
    if (!found && key.kind == FORMATS_STRING) BASE_TRY(attribute(r, v, key.text, &found, out));
    if (!found) *out = formats_undefined(name);
    return SIFR_OK;
}

/* A part of a path: digits are a number. */
static formats_value path_part(formats_text part) {
    int64_t number = 0;
    bool digits = part.size > 0 && part.size < 10;
    for (size_t i = 0; digits && i < part.size; i++) {
        digits = part.bytes[i] >= '0' && part.bytes[i] <= '9';
        number = number * 10 + (part.bytes[i] - '0');
    }
    return digits ? formats_of_int(number) : formats_of_text(part);
}

/* One step of a path; where it leads nowhere, `fallback`, unless that is nothing. */
static sifr_status step(formats_render *r, formats_value key, formats_value fallback,
                        formats_value *v) {
    BASE_TRY(formats_template_charge(r, 1));
    BASE_TRY(formats_item(r, *v, key, v));
    if (v->kind == FORMATS_UNDEFINED && fallback.kind > FORMATS_NONE) *v = fallback;
    return SIFR_OK;
}

sifr_status formats_path(formats_render *r, formats_value v, formats_value path,
                         formats_value fallback, formats_value *out) {
    *out = v;
    if (path.kind == FORMATS_NONE || path.kind == FORMATS_ABSENT) return SIFR_OK;
    if (path.kind != FORMATS_STRING) return step(r, path, fallback, out);
    for (size_t at = 0; at <= path.text.size;) {
        size_t end = formats_find(path.text, formats_literal("."), at);
        if (end == SIZE_MAX) end = path.text.size;
        formats_text part = {path.text.bytes + at, end - at};
        BASE_TRY(step(r, path_part(part), fallback, out));
        at = end + 1;
    }
    return SIFR_OK;
}

/* ---- what an argument must be ---- */

sifr_status formats_want_int(formats_render *r, formats_value v, const char *what, int64_t *out) {
    if (v.kind != FORMATS_INT && v.kind != FORMATS_BOOL)
        return formats_template_fail(&r->place, "%s must be a whole number, not %s", what,
                                     formats_kind_name(v));
    *out = v.kind == FORMATS_INT ? v.integer : v.truth;
    return SIFR_OK;
}

sifr_status formats_want_text(formats_render *r, formats_value v, const char *what,
                              formats_text *out) {
    if (v.kind != FORMATS_STRING)
        return formats_template_fail(&r->place, "%s must be a string, not %s", what,
                                     formats_kind_name(v));
    *out = v.text;
    return SIFR_OK;
}
