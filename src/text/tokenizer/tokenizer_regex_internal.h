/* A compiled pattern: a program for a matcher that backtracks. */
#ifndef FORMATS_TOKENIZER_REGEX_INTERNAL_H
#define FORMATS_TOKENIZER_REGEX_INTERNAL_H

#include "text/tokenizer/tokenizer_regex.h"

typedef enum formats_regex_op {
    FORMATS_REGEX_MATCH,
    FORMATS_REGEX_CLASS,  /* one character of class `a` */
    FORMATS_REGEX_RUN,    /* from `low` to `high` characters of class `a`, as many as possible */
    FORMATS_REGEX_SPLIT,  /* try `a`, then `b` */
    FORMATS_REGEX_JUMP,   /* go on at `a` */
    FORMATS_REGEX_LOOK,   /* what follows matches up to the MATCH before `a`; go on at `a` */
    FORMATS_REGEX_REFUSE, /* … does not match */
    FORMATS_REGEX_ATOMIC, /* … matches, and is taken without a second thought */
    FORMATS_REGEX_LINE_BEGIN,
    FORMATS_REGEX_LINE_END,
    FORMATS_REGEX_TEXT_BEGIN,
    FORMATS_REGEX_TEXT_END
} formats_regex_op;

typedef struct formats_regex_code {
    formats_regex_op op;
    bool possessive; /* of a RUN */
    uint32_t a, b;
    uint32_t low, high;
} formats_regex_code;

#define FORMATS_REGEX_ENDLESS UINT32_MAX

/* A set of code points as bits, in pages of 256 that are shared where they are alike. */
typedef struct formats_regex_class {
    uint64_t ascii[2];
    uint16_t pages[4352];
} formats_regex_class;

struct formats_regex {
    formats_regex_code *code;
    size_t code_count, code_room;
    formats_regex_class *classes;
    size_t class_count, class_room;
    uint64_t (*bits)[4];
    size_t bit_count, bit_room;
    uint64_t first[4]; /* bytes with which a match may begin */
    char *pattern;
    uint8_t *signatures; /* of all code points, while classes are made */
};

static inline bool formats_regex_has(const formats_regex *regex, uint32_t class, uint32_t c) {
    const formats_regex_class *k = &regex->classes[class];
    if (c < 128) return k->ascii[c >> 6] >> (c & 63) & 1;
    return regex->bits[k->pages[c >> 8]][c >> 6 & 3] >> (c & 63) & 1;
}

/* tokenizer_regex_class.c: the set that the description of a class stands for. */
typedef struct formats_regex_item {
    enum {
        FORMATS_ITEM_RANGE,
        FORMATS_ITEM_KINDS,
        FORMATS_ITEM_SPACE,
        FORMATS_ITEM_WORD,
        FORMATS_ITEM_HAN,
        FORMATS_ITEM_OPEN,
        FORMATS_ITEM_CLOSE
    } what;
    bool negated;       /* of OPEN: the class that reaches up to its CLOSE */
    uint32_t low, high; /* of a range; `low`: bits of general categories */
} formats_regex_item;

/* Appends a class of what the items say; *index is its number. */
sifr_status formats_regex_add_class(formats_regex *regex, const formats_regex_item *items,
                                    size_t count, bool any_case, uint32_t *index,
                                    sifr_error *error) SIFR_MUST_CHECK;
/* The categories that \p{NAME} names, as bits; 0: none. */
uint32_t formats_regex_kinds(const char *name, size_t size);

#endif
