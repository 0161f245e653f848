/* The heuristics of metadata.py and utility.py in the `gguf` package: a name such as
 * "Llama-3.2-1B-Instruct" is taken apart at its dashes. */
#include "formats/gguf/gguf_general.h"

#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum { NAME_CAPACITY = 256, PARTS = NAME_CAPACITY / 2 };

/* What a part of the name may be; several at once. */
enum { BASE = 1, SIZE = 2, FINETUNE = 4, VERSION = 8, KIND = 16 };

typedef struct name_part {
    char text[NAME_CAPACITY];
    int roles;
} name_part;

/* "": none */
typedef struct name_parts {
    char title[2 * NAME_CAPACITY], organization[2 * NAME_CAPACITY];
    char base[NAME_CAPACITY], finetune[NAME_CAPACITY], version[NAME_CAPACITY], size[NAME_CAPACITY];
} name_parts;

static bool is_digit(char c) {
    return c >= '0' && c <= '9';
}

static bool is_letter(char c) {
    return isalpha((unsigned char)c) || (unsigned char)c >= 0x80;
}

static const char *skip_digits(const char *p) {
    while (is_digit(*p)) p++;
    return p;
}

/* (v|iter)?\d+([.]\d+)* */
static bool is_version(const char *p) {
    if (strncasecmp(p, "iter", 4) == 0)
        p += 4;
    else if (*p == 'v' || *p == 'V')
        p++;
    if (!is_digit(*p)) return false;
    p = skip_digits(p);
    while (*p == '.' && is_digit(p[1])) p = skip_digits(p + 1);
    return *p == 0;
}

/* i?q\d(_\w)*|b?fp?(16|32) */
static bool is_kind(const char *p) {
    const char *q = p + (*p == 'i' || *p == 'I');
    if ((*q == 'q' || *q == 'Q') && is_digit(q[1])) {
        q += 2;
        while (*q == '_' && (is_letter(q[1]) || is_digit(q[1]) || q[1] == '_')) q += 2;
        return *q == 0;
    }
    if (*p == 'b' || *p == 'B') p++;
    if (*p != 'f' && *p != 'F') return false;
    p++;
    if (*p == 'p' || *p == 'P') p++;
    return strcmp(p, "16") == 0 || strcmp(p, "32") == 0;
}

static bool is_word(const char *p, const char *const *words) {
    while (*words && strcasecmp(p, *words) != 0) words++;
    return *words != NULL;
}

/* ([A]|\d+[x])?\d+([._]\d+)?[KMBT][\d]? or a word */
static bool is_size(const char *p) {
    static const char *const words[] = {"small", "mini", "medium", "large", "xl", "xxl", NULL};
    if (is_word(p, words)) return true;
    if (*p == 'A' || *p == 'a') {
        p++;
    } else {
        const char *q = skip_digits(p);
        if (q > p && (*q == 'x' || *q == 'X')) p = q + 1;
    }
    if (!is_digit(*p)) return false;
    p = skip_digits(p);
    if ((*p == '.' || *p == '_') && is_digit(p[1])) p = skip_digits(p + 1);
    if (!*p || !strchr("KMBTkmbt", *p)) return false;
    p++;
    return *p == 0 || (is_digit(*p) && p[1] == 0);
}

/* Roles of a size, whose spelling is made regular: a number that is far from the model's size is
 * rather a length of context. */
static void read_size(name_part *part, int64_t parameters) {
    char *text = part->text, *end;
    for (char *p = text; *p; p++) {
        if (*p == '_') *p = '.';
    }
    size_t n = strlen(text);
    if (is_digit(text[n - 1]) && n + 1 < NAME_CAPACITY) { /* 7b1 is 7.1B */
        char digit = text[n - 1], unit = text[n - 2];
        text[n - 2] = '.';
        text[n - 1] = digit;
        text[n++] = unit;
        text[n] = 0;
    }
    if (n > 1 && is_digit(text[n - 2]) && strchr("kmbt", text[n - 1]))
        text[n - 1] = (char)toupper((unsigned char)text[n - 1]);
    const char *unit = strchr("KMBT", text[n - 1]);
    double value = is_digit(*text) ? strtod(text, &end) : 0;
    if (parameters && unit && is_digit(*text) && end == text + n - 1) {
        value *= pow(1000, (double)(unit - "KMBT" + 1));
        if (fabs(value - (double)parameters) > (double)(7 * parameters / 8)) {
            part->roles |= FINETUNE;
            text[n - 1] = (char)tolower((unsigned char)text[n - 1]);
        }
    }
    if (!part->roles) part->roles = SIZE;
}

static void read_part(name_part *part, bool first, int64_t parameters) {
    static const char *const tunes[] = {"chat", "instruct", "vision", "lora", NULL};
    if (is_version(part->text)) {
        part->roles = VERSION;
    } else if (is_kind(part->text)) {
        part->roles = KIND;
        for (char *p = part->text; *p; p++) *p = (char)toupper((unsigned char)*p);
    } else if (!first && is_size(part->text)) {
        read_size(part, parameters);
    } else if (!first && is_word(part->text, tunes)) {
        part->roles = FINETUNE;
    }
}

/* Sizes in words count only where no size is a number. */
static void drop_word_sizes(name_part *parts, size_t count) {
    bool number = false;
    for (size_t i = 0; i < count; i++)
        number |= parts[i].roles & SIZE && strpbrk(parts[i].text, "0123456789");
    for (size_t i = 0; number && i < count; i++) {
        const char *p = parts[i].text;
        while (is_letter(*p)) p++;
        if (*p == 0) parts[i].roles &= ~SIZE;
    }
}

static void find_base(name_part *parts, size_t count) {
    bool start = true;
    for (size_t i = 0; i < count; i++) {
        int roles = parts[i].roles;
        if (start && ((!roles && is_letter(parts[i].text[0])) || roles & VERSION)) {
            parts[i].roles |= BASE;
        } else {
            start = false;
            if (!roles) parts[i].roles = FINETUNE;
        }
    }
    for (size_t i = count; i-- > 0;) {
        if (!(parts[i].roles & BASE) || parts[i].roles == BASE) break;
        parts[i].roles &= ~BASE;
    }
}

/* The parts with a role, joined by dashes; `once`: each text once. */
static void join(const name_part *parts, size_t count, int role, int without, bool once,
                 char out[NAME_CAPACITY]) {
    out[0] = 0;
    for (size_t i = 0; i < count; i++) {
        if (!(parts[i].roles & role) || parts[i].roles & without) continue;
        bool seen = false;
        for (size_t k = 0; once && k < i; k++)
            seen |= parts[k].roles & role && strcmp(parts[k].text, parts[i].text) == 0;
        size_t used = strlen(out);
        if (!seen)
            snprintf(out + used, NAME_CAPACITY - used, "%s%s", used ? "-" : "", parts[i].text);
    }
}

/* A word in lower case gets a capital at each beginning of letters; "v2" and "7b" stay. */
static void add_title(const char *word, size_t size, char *out, size_t capacity) {
    bool lower = false, upper = false, version = is_digit(*word);
    char text[NAME_CAPACITY];
    memcpy(text, word, size);
    text[size] = 0;
    for (const char *p = text; *p; p++) {
        lower |= islower((unsigned char)*p) != 0;
        upper |= isupper((unsigned char)*p) != 0;
    }
    version |= text[0] == 'v' && is_version(text);
    bool after_letter = false;
    for (char *p = text; lower && !upper && !version && *p; p++) {
        if (!after_letter) *p = (char)toupper((unsigned char)*p);
        after_letter = is_letter(*p);
    }
    size_t used = strlen(out);
    snprintf(out + used, capacity - used, "%s%s", used ? " " : "", text);
}

static void make_title(const char *name, char *out, size_t capacity) {
    out[0] = 0;
    while (*name) {
        size_t size = strcspn(name, "- \t");
        if (size) add_title(name, size, out, capacity);
        name += size;
        name += strspn(name, "- \t");
    }
}

static void take_apart(const char *id, int64_t parameters, name_parts *out) {
    static const name_parts none;
    name_part *parts = NULL;
    size_t count = 0;
    *out = none;
    if (strlen(id) >= NAME_CAPACITY) return;
    const char *slash = strchr(id, '/'), *name = slash && !strchr(id, ' ') ? slash + 1 : id;
    make_title(name, out->title, sizeof out->title);
    if (strchr(id, ' ')) {
        snprintf(out->title, sizeof out->title, "%s", id);
        make_title(id, out->title, sizeof out->title);
        return;
    }
    if (slash && id[0] != '.') {
        char text[NAME_CAPACITY];
        snprintf(text, sizeof text, "%.*s", (int)(slash - id), id);
        make_title(text, out->organization, sizeof out->organization);
    }
    parts = calloc(PARTS, sizeof *parts);
    if (!parts) return;
    while (*name) {
        size_t size = strcspn(name, "-");
        if (size) {
            memcpy(parts[count].text, name, size);
            read_part(&parts[count], count == 0, parameters);
            count++;
        }
        name += size;
        name += strspn(name, "-");
    }
    drop_word_sizes(parts, count);
    find_base(parts, count);
    join(parts, count, BASE, 0, false, out->base);
    join(parts, count, SIZE, 0, true, out->size);
    join(parts, count, FINETUNE, 0, false, out->finetune);
    join(parts, count, VERSION, BASE, false, out->version);
    if (!out->size[0] && !out->finetune[0] && !out->version[0]) out->base[0] = 0;
    free(parts);
}

/* "1.2B", "135M": at least two digits. */
static void print_size(int64_t parameters, char out[32]) {
    double count = (double)parameters;
    double scaled = count > 1e12  ? count * 1e-12
                    : count > 1e9 ? count * 1e-9
                    : count > 1e6 ? count * 1e-6
                                  : count * 1e-3;
    char unit = count > 1e12 ? 'T' : count > 1e9 ? 'B' : count > 1e6 ? 'M' : 'K';
    int decimals = scaled < 0.5 || nearbyint(scaled) < 1 ? 2 : nearbyint(scaled) < 10 ? 1 : 0;
    snprintf(out, 32, "%.*f%c", decimals, scaled, unit);
}

static void add_sampling(const json_t *generation, formats_gguf_meta *meta) {
    static const struct {
        const char *from, *to;
        bool whole;
    } keys[] = {
        {"top_k", "general.sampling.top_k", true},
        {"top_p", "general.sampling.top_p", false},
        {"min_p", "general.sampling.min_p", false},
        {"xtc_probability", "general.sampling.xtc_probability", false},
        {"xtc_threshold", "general.sampling.xtc_threshold", false},
        {"temperature", "general.sampling.temp", false},
        {"penalty_last_n", "general.sampling.penalty_last_n", true},
        {"repetition_penalty", "general.sampling.penalty_repeat", false},
    };
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
        const json_t *value = json_object_get(generation, keys[i].from);
        if (!json_is_number(value)) continue;
        if (keys[i].whole)
            formats_gguf_add_i32(meta, keys[i].to, (int32_t)json_integer_value(value));
        else
            formats_gguf_add_float(meta, keys[i].to, (float)json_number_value(value));
    }
}

static void add_word(formats_gguf_meta *meta, const char *key, const char *first,
                     const char *second) {
    const char *word = first[0] ? first : second;
    if (word[0]) formats_gguf_add_text(meta, key, word, strlen(word));
}

void formats_gguf_general(const formats_gguf_files *files, const char *folder_name,
                          int64_t parameters, formats_gguf_meta *meta) {
    static const name_parts none;
    name_parts own = none, folder;
    const char *id = json_string_value(json_object_get(files->config, "_name_or_path"));
    const char *slash = id ? strchr(id, '/') : NULL;
    char size[32];
    if (id && !(slash && strchr(slash + 1, '/'))) take_apart(id, parameters, &own);
    take_apart(folder_name, parameters, &folder);
    print_size(parameters, size);
    add_sampling(files->generation, meta);
    if (own.title[0] || folder.title[0])
        add_word(meta, "general.name", own.title, folder.title);
    else
        formats_gguf_add_text(meta, "general.name", folder_name, strlen(folder_name));
    add_word(meta, "general.version", own.version, folder.version);
    add_word(meta, "general.organization", own.organization, folder.organization);
    add_word(meta, "general.finetune", own.finetune, folder.finetune);
    add_word(meta, "general.basename", own.base, folder.base);
    add_word(meta, "general.size_label", own.size[0] ? own.size : folder.size, size);
}
