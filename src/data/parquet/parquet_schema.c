/* The tree of fields: what a row is made of. */
#include <stdlib.h>
#include <string.h>

#include "base/heap.h"
#include "data/parquet/parquet_internal.h"

enum { DEPTH_LIMIT = 30, ELEMENT_LIMIT = 4096, LEAF_LIMIT = 256 };

typedef struct schema_walk {
    data_parquet *p;
    const carquet_schema_t *schema;
    int32_t leaf; /* the next one's column */
    sifr_error *error;
} schema_walk;

static bool is_string(const parquet_schema_element_t *e) {
    if (e->has_logical_type)
        return e->logical_type.id == CARQUET_LOGICAL_STRING ||
               e->logical_type.id == CARQUET_LOGICAL_ENUM ||
               e->logical_type.id == CARQUET_LOGICAL_JSON;
    return e->has_converted_type && (e->converted_type == CARQUET_CONVERTED_UTF8 ||
                                     e->converted_type == CARQUET_CONVERTED_ENUM ||
                                     e->converted_type == CARQUET_CONVERTED_JSON);
}

/* Dates and times, whose unit and zone go to the cursor; PARQUET_LEFT_OUT: it is none. */
static parquet_form time_form(const parquet_schema_element_t *e, parquet_cursor *cursor) {
    bool wide = e->type == CARQUET_PHYSICAL_INT64;
    if (e->has_logical_type) {
        const carquet_logical_type_t *logical = &e->logical_type;
        cursor->unit = logical->params.timestamp.unit; /* of a time it stands there too */
        cursor->zone = logical->params.timestamp.is_adjusted_to_utc;
        if (logical->id == CARQUET_LOGICAL_DATE && !wide) return PARQUET_DATE;
        if (cursor->unit > CARQUET_TIME_UNIT_NANOS) return PARQUET_LEFT_OUT;
        if (logical->id == CARQUET_LOGICAL_TIME)
            return wide == (cursor->unit != CARQUET_TIME_UNIT_MILLIS) ? PARQUET_TIME
                                                                      : PARQUET_LEFT_OUT;
        return logical->id == CARQUET_LOGICAL_TIMESTAMP && wide ? PARQUET_TIMESTAMP
                                                                : PARQUET_LEFT_OUT;
    }
    if (!e->has_converted_type) return PARQUET_LEFT_OUT;
    bool micros = e->converted_type == CARQUET_CONVERTED_TIME_MICROS ||
                  e->converted_type == CARQUET_CONVERTED_TIMESTAMP_MICROS;
    cursor->unit = micros ? CARQUET_TIME_UNIT_MICROS : CARQUET_TIME_UNIT_MILLIS;
    if (e->converted_type == CARQUET_CONVERTED_DATE && !wide) return PARQUET_DATE;
    if (e->converted_type == CARQUET_CONVERTED_TIME_MILLIS && !wide) return PARQUET_TIME;
    if (e->converted_type == CARQUET_CONVERTED_TIME_MICROS && wide) return PARQUET_TIME;
    return e->converted_type >= CARQUET_CONVERTED_TIMESTAMP_MILLIS &&
                   e->converted_type <= CARQUET_CONVERTED_TIMESTAMP_MICROS && wide
               ? PARQUET_TIMESTAMP
               : PARQUET_LEFT_OUT;
}

/* Of INT32 and INT64, which are dates, times and decimals too. */
static parquet_form integer_form(const parquet_schema_element_t *e, parquet_cursor *cursor) {
    parquet_form time = time_form(e, cursor);
    if (time != PARQUET_LEFT_OUT) return time;
    if (e->has_logical_type) {
        if (e->logical_type.id == CARQUET_LOGICAL_INTEGER)
            return e->logical_type.params.integer.is_signed ? PARQUET_INTEGER : PARQUET_UNSIGNED;
        bool plain = e->logical_type.id == CARQUET_LOGICAL_UNKNOWN ||
                     e->logical_type.id == CARQUET_LOGICAL_NULL;
        return plain ? PARQUET_INTEGER : PARQUET_LEFT_OUT;
    }
    if (!e->has_converted_type) return PARQUET_INTEGER;
    if (e->converted_type >= CARQUET_CONVERTED_UINT_8 &&
        e->converted_type <= CARQUET_CONVERTED_UINT_64)
        return PARQUET_UNSIGNED;
    bool plain = e->converted_type >= CARQUET_CONVERTED_INT_8 &&
                 e->converted_type <= CARQUET_CONVERTED_INT_64;
    return plain ? PARQUET_INTEGER : PARQUET_LEFT_OUT;
}

static parquet_form form_of(const parquet_schema_element_t *e, parquet_cursor *cursor) {
    if (!e->has_type) return PARQUET_LEFT_OUT;
    switch (e->type) {
    case CARQUET_PHYSICAL_BOOLEAN:
        return PARQUET_BOOLEAN;
    case CARQUET_PHYSICAL_INT32:
    case CARQUET_PHYSICAL_INT64:
        return integer_form(e, cursor);
    case CARQUET_PHYSICAL_FLOAT:
    case CARQUET_PHYSICAL_DOUBLE:
        return PARQUET_REAL;
    case CARQUET_PHYSICAL_BYTE_ARRAY:
        return is_string(e) ? PARQUET_STRING : PARQUET_LEFT_OUT;
    default:
        return PARQUET_LEFT_OUT;
    }
}

static bool is_list(const parquet_schema_element_t *e) {
    return (e->has_logical_type && e->logical_type.id == CARQUET_LOGICAL_LIST) ||
           (e->has_converted_type && e->converted_type == CARQUET_CONVERTED_LIST);
}

static bool is_map(const parquet_schema_element_t *e) {
    return (e->has_logical_type && e->logical_type.id == CARQUET_LOGICAL_MAP) ||
           (e->has_converted_type && (e->converted_type == CARQUET_CONVERTED_MAP ||
                                      e->converted_type == CARQUET_CONVERTED_MAP_KEY_VALUE));
}

static bool is_repeated(const parquet_schema_element_t *e) {
    return e->has_repetition && e->repetition_type == CARQUET_REPETITION_REPEATED;
}

static bool is_optional(const parquet_schema_element_t *e) {
    return e->has_repetition && e->repetition_type == CARQUET_REPETITION_OPTIONAL;
}

/* The levels around a field. */
typedef struct schema_levels {
    int16_t definition, repetition;
    int depth;
} schema_levels;

static sifr_status walk_field(schema_walk *w, int32_t *element, schema_levels levels, int32_t *out);

static int32_t add_node(schema_walk *w, parquet_kind kind, const char *name) {
    data_parquet *p = w->p;
    p->nodes[p->node_count] = (parquet_node){.kind = kind,
                                             .name = name ? name : "",
                                             .child = PARQUET_NONE,
                                             .next = PARQUET_NONE,
                                             .first_leaf = p->cursor_count};
    return p->node_count++;
}

/* A leaf, or nothing (*out is PARQUET_NONE) where its values have no form. */
static sifr_status walk_leaf(schema_walk *w, const parquet_schema_element_t *e,
                             schema_levels levels, int32_t *out) {
    data_parquet *p = w->p;
    int32_t column = w->leaf++;
    parquet_cursor cursor = {.column = column};
    cursor.form = form_of(e, &cursor);
    *out = PARQUET_NONE;
    if (column >= w->schema->num_leaves || w->schema->max_def_levels[column] != levels.definition ||
        w->schema->max_rep_levels[column] != levels.repetition)
        return data_parquet_damaged(p, "its schema contradicts itself", w->error);
    if (cursor.form == PARQUET_LEFT_OUT) return SIFR_OK;
    if (p->cursor_count == LEAF_LIMIT)
        return base_fail(w->error, SIFR_FAILED,
                         "%s: more than %d columns with text or numbers; keep those that are "
                         "needed",
                         p->name, LEAF_LIMIT);
    *out = add_node(w, PARQUET_LEAF, e->name);
    cursor.type = e->type;
    cursor.most = levels.definition;
    cursor.repeated = levels.repetition > 0;
    p->cursors[p->cursor_count++] = cursor;
    p->nodes[*out].leaf_end = p->cursor_count;
    return SIFR_OK;
}

/* The children of a group, as the node's; a node without any is taken back. */
static sifr_status walk_children(schema_walk *w, int32_t count, int32_t *element,
                                 schema_levels levels, int32_t node) {
    int32_t last = PARQUET_NONE;
    for (int32_t i = 0; i < count; i++) {
        int32_t child;
        BASE_TRY(walk_field(w, element, levels, &child));
        if (child == PARQUET_NONE) continue;
        *(last == PARQUET_NONE ? &w->p->nodes[node].child : &w->p->nodes[last].next) = child;
        last = child;
    }
    w->p->nodes[node].leaf_end = w->p->cursor_count;
    return SIFR_OK;
}

static sifr_status walk_group(schema_walk *w, const parquet_schema_element_t *e, int32_t *element,
                              schema_levels levels, int32_t *out) {
    int32_t node = add_node(w, PARQUET_GROUP, e->name);
    w->p->nodes[node].there = levels.definition;
    BASE_TRY(walk_children(w, e->num_children, element, levels, node));
    *out = w->p->nodes[node].child == PARQUET_NONE ? PARQUET_NONE : node;
    return SIFR_OK;
}

/* What is under a repetition: a leaf or a group, without regard to the repetition itself. */
static sifr_status walk_element(schema_walk *w, const parquet_schema_element_t *e, int32_t *element,
                                schema_levels levels, int32_t *out) {
    if (e->num_children == 0) return walk_leaf(w, e, levels, out);
    return walk_group(w, e, element, levels, out);
}

/* Older writers have the repeated group as the element itself. */
static bool wraps_element(const parquet_schema_element_t *list,
                          const parquet_schema_element_t *repeated) {
    size_t length = list->name ? strlen(list->name) : 0;
    if (repeated->num_children != 1 || !repeated->name) return false;
    return strcmp(repeated->name, "array") != 0 &&
           !(length && strncmp(repeated->name, list->name, length) == 0 &&
             strcmp(repeated->name + length, "_tuple") == 0);
}

static const parquet_schema_element_t *element_at(const schema_walk *w, int32_t element) {
    return element < w->schema->num_elements ? &w->schema->elements[element] : NULL;
}

/* A group that holds one repeated field: a list or a map, from that field on. */
static sifr_status walk_repeated(schema_walk *w, const parquet_schema_element_t *e, bool map,
                                 int32_t *element, schema_levels levels, int32_t *out) {
    const parquet_schema_element_t *repeated = element_at(w, (*element)++);
    schema_levels inside = {(int16_t)(levels.definition + 1), (int16_t)(levels.repetition + 1),
                            levels.depth + 1};
    int32_t node = add_node(w, map ? PARQUET_MAP : PARQUET_LIST, e->name), child;
    parquet_node *n = &w->p->nodes[node];
    n->there = levels.definition;
    n->element = inside.definition;
    n->repeats = inside.repetition;
    if (map)
        BASE_TRY(walk_children(w, repeated->num_children, element, inside, node));
    else if (wraps_element(e, repeated))
        BASE_TRY(walk_field(w, element, inside, &child));
    else
        BASE_TRY(walk_element(w, repeated, element, inside, &child));
    if (!map) n->child = child;
    n->leaf_end = w->p->cursor_count;
    *out = n->child == PARQUET_NONE ? PARQUET_NONE : node;
    return SIFR_OK;
}

/* A map's key must be there and be a string, and its value have a form. */
static bool is_object(const data_parquet *p, int32_t map) {
    const parquet_node *key = &p->nodes[p->nodes[map].child];
    return key->kind == PARQUET_LEAF && p->cursors[key->first_leaf].form == PARQUET_STRING &&
           p->cursors[key->first_leaf].most == p->nodes[map].element && key->next != PARQUET_NONE &&
           p->nodes[key->next].next == PARQUET_NONE;
}

/* A map of another kind is left out, with its columns. */
static sifr_status walk_map(schema_walk *w, const parquet_schema_element_t *e, int32_t *element,
                            schema_levels levels, int32_t *out) {
    int32_t cursors = w->p->cursor_count;
    BASE_TRY(walk_repeated(w, e, true, element, levels, out));
    if (*out == PARQUET_NONE || is_object(w->p, *out)) return SIFR_OK;
    w->p->cursor_count = cursors;
    *out = PARQUET_NONE;
    return SIFR_OK;
}

/* A field that is repeated by itself is a list, as in Protocol Buffers. */
static sifr_status walk_bare(schema_walk *w, const parquet_schema_element_t *e, int32_t *element,
                             schema_levels levels, int32_t *out) {
    schema_levels inside = {(int16_t)(levels.definition + 1), (int16_t)(levels.repetition + 1),
                            levels.depth + 1};
    int32_t node = add_node(w, PARQUET_LIST, e->name), child;
    BASE_TRY(walk_element(w, e, element, inside, &child));
    parquet_node *n = &w->p->nodes[node];
    n->there = levels.definition;
    n->element = inside.definition;
    n->repeats = inside.repetition;
    n->child = child;
    n->leaf_end = w->p->cursor_count;
    *out = child == PARQUET_NONE ? PARQUET_NONE : node;
    return SIFR_OK;
}

/* The field at *element, which becomes that behind it. */
static sifr_status walk_field(schema_walk *w, int32_t *element, schema_levels levels,
                              int32_t *out) {
    const parquet_schema_element_t *e = element_at(w, (*element)++);
    *out = PARQUET_NONE;
    if (!e) return data_parquet_damaged(w->p, "its schema is cut short", w->error);
    if (levels.depth > DEPTH_LIMIT)
        return base_fail(w->error, SIFR_FAILED, "%s: its fields are more than %d deep", w->p->name,
                         DEPTH_LIMIT);
    levels.depth++;
    if (is_repeated(e)) return walk_bare(w, e, element, levels, out);
    levels.definition = (int16_t)(levels.definition + is_optional(e));
    const parquet_schema_element_t *below = element_at(w, *element);
    bool holder = e->num_children == 1 && below && is_repeated(below);
    sifr_status status;
    if (holder && is_map(e) && below->num_children == 2)
        status = walk_map(w, e, element, levels, out);
    else if (holder && is_list(e))
        status = walk_repeated(w, e, false, element, levels, out);
    else
        status = walk_element(w, e, element, levels, out);
    if (status == SIFR_OK && *out != PARQUET_NONE) {
        w->p->nodes[*out].optional = is_optional(e);
        w->p->nodes[*out].there = levels.definition;
    }
    return status;
}

static sifr_status list_columns(data_parquet *p, sifr_error *error) {
    p->columns = json_array();
    bool whole = p->columns != NULL;
    for (int32_t i = p->top; whole && i != PARQUET_NONE; i = p->nodes[i].next) {
        for (int32_t j = p->top; j != i; j = p->nodes[j].next)
            if (strcmp(p->nodes[i].name, p->nodes[j].name) == 0)
                return base_fail(error, SIFR_FAILED, "%s: two columns are called '%.80s'", p->name,
                                 p->nodes[i].name);
        json_t *name = json_string(p->nodes[i].name);
        if (!name) return data_parquet_damaged(p, "a column's name is not UTF-8", error);
        whole = json_array_append_new(p->columns, name) == 0;
    }
    return whole ? SIFR_OK : base_fail_alloc(error, 4096);
}

sifr_status data_parquet_schema(data_parquet *p, sifr_error *error) {
    schema_walk w = {.p = p, .schema = carquet_reader_schema(p->reader), .error = error};
    int32_t element = 1;
    if (!w.schema || w.schema->num_elements < 1)
        return data_parquet_damaged(p, "it has no schema", error);
    if (w.schema->num_elements > ELEMENT_LIMIT)
        return base_fail(error, SIFR_FAILED, "%s: more than %d fields; keep those that are needed",
                         p->name, ELEMENT_LIMIT);
    /* A field is at most a list and its element. */
    BASE_TRY(base_alloc((size_t)w.schema->num_elements * 2, sizeof *p->nodes, &p->nodes, error));
    BASE_TRY(base_alloc(LEAF_LIMIT, sizeof *p->cursors, &p->cursors, error));
    int32_t root = add_node(&w, PARQUET_GROUP, "");
    BASE_TRY(
        walk_children(&w, w.schema->elements[0].num_children, &element, (schema_levels){0}, root));
    p->top = p->nodes[root].child;
    if (p->top == PARQUET_NONE)
        return base_fail(error, SIFR_FAILED, "%s: no column has text or numbers", p->name);
    return list_columns(p, error);
}
