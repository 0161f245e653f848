/* One value of the config: its type, range and spelling. */
#include <errno.h>
#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/json.h"
#include "base/text.h"
#include "config/config_private.h"

bool config_value_is_auto(const json_t *value) {
    return json_is_string(value) && strcmp(json_string_value(value), "auto") == 0;
}

bool config_value_equal(const json_t *a, const json_t *b) {
    if (json_is_integer(a) && json_is_integer(b)) {
        return json_integer_value(a) == json_integer_value(b);
    }
    if (json_is_number(a) && json_is_number(b)) {
        return json_number_value(a) == json_number_value(b);
    }
    if (json_is_array(a) && json_is_array(b)) {
        size_t size = json_array_size(a);
        if (size != json_array_size(b)) return false;
        for (size_t i = 0; i < size; i++) {
            if (!config_value_equal(json_array_get(a, i), json_array_get(b, i))) return false;
        }
        return true;
    }
    return json_equal(a, b);
}

void config_real_text(double value, char out[40]) {
    for (int digits = 6; digits <= 17; digits++) {
        snprintf(out, 40, "%.*g", digits, value);
        if (strtod(out, NULL) == value) return;
    }
}

char *config_quote(const char *text, char *out, size_t size) {
    json_t *string = json_string(text);
    char *dump = string ? json_dumps(string, JSON_ENCODE_ANY) : NULL;
    snprintf(out, size, "%s", dump ? dump : "\"?\"");
    if (dump && strlen(dump) >= size && size > 4) {
        size_t end = size - 5;
        while (end > 0 && ((unsigned char)dump[end] & 0xc0) == 0x80) end--;
        snprintf(out + end, size - end, "…\"");
    }
    free(dump);
    json_decref(string);
    return out;
}

/* An address with a user, whose password is for no log. */
static bool has_login(const char *text) {
    const char *host = strstr(text, "://");
    return host && strchr(host, '@');
}

char *config_value_text(const json_t *value, char *out, size_t size) {
    char number[40];
    if (!value) {
        snprintf(out, size, "none");
    } else if (json_is_real(value)) {
        config_real_text(json_real_value(value), number);
        snprintf(out, size, "%s", number);
    } else if (json_is_string(value)) {
        const char *text = json_string_value(value);
        config_quote(has_login(text) ? "…" : text, out, size);
    } else if (json_is_array(value) && size > 16) {
        size_t used = (size_t)snprintf(out, size, "[");
        for (size_t i = 0; i < json_array_size(value) && used + 8 < size; i++) {
            if (i) used += (size_t)snprintf(out + used, size - used, ", ");
            config_value_text(json_array_get(value, i), out + used, size - used - 4);
            used += strlen(out + used);
        }
        snprintf(out + used, size - used, "]");
    } else {
        char *dump = base_json_text(value);
        snprintf(out, size, "%s", dump ? dump : "?");
        if (dump && strlen(dump) >= size && size > 4) {
            size_t end = size - 4;
            while (end > 0 && ((unsigned char)dump[end] & 0xc0) == 0x80) end--;
            snprintf(out + end, size - end, "…");
        }
        free(dump);
    }
    return out;
}

/* "a whole number > 0", "one of a, b, c". */
static void config_expected(const config_key *key, char out[400]) {
    static const char *const names[] = {
        [CONFIG_SECTION] = "an object {…}",
        [CONFIG_BOOL] = "true or false",
        [CONFIG_INT] = "a whole number",
        [CONFIG_BYTES] = "bytes, such as 1073741824 or \"1GiB\",",
        [CONFIG_NUMBER] = "a number",
        [CONFIG_TEXT] = "a string",
        [CONFIG_CHOICE] = "",
        [CONFIG_TEXTS] = "a list of strings",
        [CONFIG_NUMBERS] = "a list of numbers",
        [CONFIG_ANY] = "a value",
    };
    size_t used = (size_t)snprintf(out, 400, "%s", names[key->type]);
    if (key->choices) {
        used = (size_t)snprintf(out, 400, "one of ");
        for (const char *c = key->choices; *c && used < 360; c++) {
            if (*c == '|') {
                used += (size_t)snprintf(out + used, 400 - used, ", ");
            } else {
                out[used++] = *c;
            }
        }
        out[used] = 0;
    } else if (key->range && strstr(key->range, "..<")) {
        const char *low = key->range, *high = strstr(key->range, "..<");
        used += (size_t)snprintf(out + used, 400 - used, " from %.*s to below %s",
                                 (int)(high - low), low, high + 3);
    } else if (key->range && strstr(key->range, "..")) {
        const char *low = key->range, *high = strstr(key->range, "..");
        used += (size_t)snprintf(out + used, 400 - used, " from %.*s to %s", (int)(high - low), low,
                                 high + 2);
    } else if (key->range) {
        used += (size_t)snprintf(out + used, 400 - used, " %s", key->range);
    }
    if (key->type != CONFIG_TEXT && key->type != CONFIG_SECTION && key->type != CONFIG_ANY &&
        !(key->choices && config_key_has_word(key->choices, "auto", NULL, NULL))) {
        snprintf(out + used, 400 - used, " or \"auto\"");
    }
}

bool config_names_secret(const char *name) {
    static const char *const parts[] = {"api_key",    "apikey",       "hub_token", "hf_token",
                                        "auth_token", "access_token", "password",  "secret",
                                        "webhook",    "credential"};
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        if (strcasestr(name, parts[i])) return true;
    return strcasecmp(name, "token") == 0;
}

static bool config_has_secret(const json_t *value) {
    const char *name;
    json_t *member;
    size_t i;
    if (json_is_string(value) && has_login(json_string_value(value))) return true;
    json_object_foreach((json_t *)(uintptr_t)value, name,
                        member) if (config_names_secret(name) ||
                                    config_has_secret(member)) return true;
    json_array_foreach(value, i, member) if (config_has_secret(member)) return true;
    return false;
}

bool config_is_secret(const config_key *key, const json_t *value) {
    return key->secret || (key->status == CONFIG_NO_EFFECT && config_has_secret(value));
}

/* Sections of services that people log in to. */
static bool config_is_of_service(const char *path) {
    static const char *const places[] = {"sifr.mlflow", "wandb", "comet", "swanlab",
                                         "monitor_config"};
    for (size_t i = 0; i < sizeof places / sizeof *places; i++)
        if (strncmp(path, places[i], strlen(places[i])) == 0) return true;
    return false;
}

bool config_may_be_login(const char *section, const char *name) {
    return has_login(name) || (config_is_of_service(section) && strlen(name) >= 20 &&
                               name[strspn(name, "abcdefghijklmnopqrstuvwxyz_")]);
}

/* What has the wrong type may be a login that was put in a wrong place: where people put those, the
 * message has its type alone. */
static const char *config_wrong_text(const config_key *key, const json_t *value, char *out,
                                     size_t size) {
    bool hidden = key->secret || config_has_secret(value) || config_is_of_service(key->path);
    if (!hidden || json_is_boolean(value)) return config_value_text(value, out, size);
    snprintf(out, size, "%s, which is not shown",
             json_is_string(value)   ? "a string"
             : json_is_number(value) ? "a number"
             : json_is_array(value)  ? "a list"
                                     : "an object");
    return out;
}

static sifr_status config_value_wrong(const config_key *key, const json_t *value, const char *where,
                                      sifr_error *error) {
    char expected[400], text[96];
    if (key->type == CONFIG_NUMBER && json_is_number(value) &&
        !config_fits_kernels(key, json_number_value(value)))
        return base_fail(error, SIFR_USAGE, "%s: %s is beyond what fp32 has, %g; give less", where,
                         config_value_text(value, text, sizeof text), (double)FLT_MAX);
    config_expected(key, expected);
    config_wrong_text(key, value, text, sizeof text);
    if (key->fallback) {
        return base_fail(error, SIFR_USAGE, "%s must be %s, not %s; its default is %s", where,
                         expected, text, key->fallback);
    }
    return base_fail(error, SIFR_USAGE, "%s must be %s, not %s", where, expected, text);
}

/* DeepSpeed takes a number in quotes, as YAML readers make of 1e-4; so does every key here. A new
 * reference, to `value` itself where it is no such text. */
static json_t *config_unquoted(json_t *value) {
    const char *text = json_string_value(value);
    if (!text || !text[0] || text[strspn(text, "0123456789+-.eE")]) return json_incref(value);
    char *end;
    errno = 0;
    long long integer = strtoll(text, &end, 10);
    if (!*end && errno == 0) return json_integer(integer);
    double real = strtod(text, &end);
    return *end || end == text || !isfinite(real) ? json_incref(value) : json_real(real);
}

/* A whole number as an integer, any other number as it is; NULL where it is none, or not finite. */
static json_t *config_plain_number(const config_key *key, const json_t *value) {
    int64_t bytes;
    if (key->type == CONFIG_BYTES && json_is_string(value)) {
        bool right = base_parse_bytes(json_string_value(value), "", &bytes, NULL) == SIFR_OK;
        return right ? json_integer(bytes) : NULL;
    }
    if (json_is_integer(value)) {
        return key->type == CONFIG_NUMBER ? json_real(json_number_value(value))
                                          : json_integer(json_integer_value(value));
    }
    double number = json_is_real(value) ? json_real_value(value) : NAN;
    if (!isfinite(number)) return NULL;
    if (key->type == CONFIG_NUMBER)
        return config_fits_kernels(key, number) ? json_real(number) : NULL;
    if (number != floor(number) || fabs(number) >= 0x1p63) return NULL;
    return json_integer((json_int_t)number);
}

static json_t *config_number(const config_key *key, json_t *value) {
    json_t *plain = key->type == CONFIG_BYTES ? json_incref(value) : config_unquoted(value);
    json_t *number = config_plain_number(key, plain);
    json_decref(plain);
    return number;
}

/* "true" and "false" in quotes too. */
static json_t *config_truth(json_t *value) {
    const char *text = json_string_value(value);
    if (json_is_boolean(value)) return json_incref(value);
    if (text && strcasecmp(text, "true") == 0) return json_true();
    return text && strcasecmp(text, "false") == 0 ? json_false() : NULL;
}

static json_t *config_list(const config_key *key, json_t *value) {
    bool texts = key->type == CONFIG_TEXTS;
    if (texts && json_is_string(value)) return json_pack("[O]", value);
    if (!json_is_array(value)) return NULL;
    json_t *list = json_array();
    for (size_t i = 0; list && i < json_array_size(value); i++) {
        json_t *given = json_array_get(value, i);
        json_t *item = texts ? json_incref(given) : config_unquoted(given);
        bool fits =
            texts ? json_is_string(item)
                  : json_is_number(item) && config_range_holds(key->range, json_number_value(item));
        bool kept = fits && json_array_append(list, item) == 0;
        json_decref(item);
        if (!kept) {
            json_decref(list);
            return NULL;
        }
    }
    return list;
}

sifr_status config_value_check(const config_key *key, json_t *value, const char *where,
                               json_t **out, sifr_error *error) {
    char spelling[64];
    json_t *result = NULL;
    bool own_auto = key->choices && config_key_has_word(key->choices, "auto", NULL, NULL);
    if (config_value_is_auto(value) && key->type != CONFIG_TEXT && key->type != CONFIG_ANY &&
        key->type != CONFIG_TEXTS && key->type != CONFIG_SECTION && !own_auto) {
        *out = json_incref(value);
        return SIFR_OK;
    }
    switch (key->type) {
    case CONFIG_BOOL:
        result = config_truth(value);
        break;
    case CONFIG_INT:
    case CONFIG_BYTES:
    case CONFIG_NUMBER:
        result = config_number(key, value);
        if (result && key->choices) {
            char text[40];
            config_value_text(result, text, sizeof text);
            if (config_key_has_word(key->choices, text, NULL, NULL)) break;
        } else if (result && config_range_holds(key->range, json_number_value(result))) {
            break;
        }
        json_decref(result);
        result = NULL;
        break;
    case CONFIG_TEXT:
        if (json_is_string(value)) result = json_incref(value);
        break;
    case CONFIG_CHOICE:
        if (json_is_string(value) &&
            config_key_has_word(key->choices, json_string_value(value), NULL, spelling)) {
            result = json_string(spelling);
        }
        break;
    case CONFIG_TEXTS:
    case CONFIG_NUMBERS:
        result = config_list(key, value);
        break;
    case CONFIG_ANY:
        result = json_incref(value);
        break;
    case CONFIG_SECTION:
        break;
    }
    if (!result) return config_value_wrong(key, value, where, error);
    *out = result;
    return SIFR_OK;
}

json_t *config_value_default(const config_key *key) {
    if (!key->fallback) return NULL;
    json_t *value = json_loads(key->fallback, JSON_DECODE_ANY, NULL), *out = NULL;
    if (value && config_value_check(key, value, key->path, &out, NULL) != SIFR_OK) out = NULL;
    json_decref(value);
    return out;
}
