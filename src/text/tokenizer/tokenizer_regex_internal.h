/* A compiled pattern: a program for a matcher that backtracks. */
#ifndef TEXT_TOKENIZER_REGEX_INTERNAL_H
#define TEXT_TOKENIZER_REGEX_INTERNAL_H

#include "text/tokenizer/tokenizer_regex.h"

typedef enum text_regex_op {
    TEXT_REGEX_MATCH,
    TEXT_REGEX_CLASS,  /* one character of class `a` */
    TEXT_REGEX_RUN,    /* from `low` to `high` characters of class `a`, as many as possible */
    TEXT_REGEX_SPLIT,  /* try `a`, then `b` */
    TEXT_REGEX_JUMP,   /* go on at `a` */
    TEXT_REGEX_LOOK,   /* what follows matches up to the MATCH before `a`; go on at `a` */
    TEXT_REGEX_REFUSE, /* … does not match */
    TEXT_REGEX_ATOMIC, /* … matches, and is taken without a second thought */
    TEXT_REGEX_LINE_BEGIN,
    TEXT_REGEX_LINE_END,
    TEXT_REGEX_TEXT_BEGIN,
    TEXT_REGEX_TEXT_END
} text_regex_op;

typedef struct text_regex_code {
    text_regex_op op;
    bool possessive; /* of a RUN */
    uint32_t a, b;
    uint32_t low, high;
} text_regex_code;

#define TEXT_REGEX_ENDLESS UINT32_MAX

/* What a pattern says of a set; tokenizer_regex_class.c makes the set. */
typedef struct text_regex_item {
    enum {
        TEXT_ITEM_RANGE,
        TEXT_ITEM_KINDS,
        TEXT_ITEM_SPACE,
        TEXT_ITEM_WORD,
        TEXT_ITEM_HAN,
        TEXT_ITEM_OPEN,
        TEXT_ITEM_CLOSE
    } what;
    bool negated;       /* of OPEN: the class that reaches up to its CLOSE */
    uint32_t low, high; /* of a range; `low`: bits of general categories */
} text_regex_item;

/* What is needed while a pattern is compiled: making a set takes a look at each code point, so one
 * that is written again, as each letter is where case does not count, is made once. */
typedef struct text_regex_written {
    size_t begin, count; /* its items */
    bool any_case;
    uint32_t class;
} text_regex_written;

typedef struct text_regex_draft {
    uint8_t *signatures; /* of all code points */
    text_regex_written *written;
    size_t written_count, written_capacity;
    text_regex_item *items;
    size_t item_count, item_capacity;
} text_regex_draft;

/* A set of code points as bits, in pages of 256 that are shared where they are alike. */
typedef struct text_regex_class {
    uint64_t ascii[2];
    uint16_t pages[4352];
} text_regex_class;

struct text_regex {
    text_regex_code *code;
    size_t code_count, code_capacity;
    text_regex_class *classes;
    size_t class_count, class_capacity;
    uint64_t (*bits)[4];
    size_t bit_count, bit_capacity;
    uint64_t first[4]; /* bytes with which a match may begin */
    char *pattern;
    text_regex_draft draft;
};

static inline bool text_regex_has(const text_regex *regex, uint32_t class, uint32_t c) {
    const text_regex_class *k = &regex->classes[class];
    if (c < 128) return k->ascii[c >> 6] >> (c & 63) & 1;
    return regex->bits[k->pages[c >> 8]][c >> 6 & 3] >> (c & 63) & 1;
}

/* Appends a class of what the items say; *index is its number. */
sifr_status text_regex_add_class(text_regex *regex, const text_regex_item *items, size_t count,
                                 bool any_case, uint32_t *index, sifr_error *error) SIFR_MUST_CHECK;
/* Frees what only compiling needs. */
void text_regex_free_draft(text_regex *regex);
/* The categories that \p{NAME} names, as bits; 0: none. */
uint32_t text_regex_kinds(const char *name, size_t size);

#endif
