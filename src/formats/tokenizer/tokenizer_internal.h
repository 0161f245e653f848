/* What the tokenizer's files share; see tokenizer.h for the interface. */
#ifndef FORMATS_TOKENIZER_INTERNAL_H
#define FORMATS_TOKENIZER_INTERNAL_H

#include <jansson.h>
#include <string.h>

#include "formats/tokenizer/tokenizer.h"
#include "formats/tokenizer/tokenizer_table.h"
#include "formats/tokenizer/tokenizer_unicode.h"

#define FORMATS_NO_MERGE UINT32_MAX
#define FORMATS_ADDED_LENGTH 1024 /* bytes of an added token, at most */

typedef enum formats_split_kind {
    FORMATS_SPLIT_GPT2,
    FORMATS_SPLIT_LLAMA3, /* digits in groups of up to three */
    FORMATS_SPLIT_QWEN2   /* digits one by one */
} formats_split_kind;

/* The pattern as tokenizer.json spells it; NULL for GPT-2, which is ByteLevel's own. */
const char *formats_split_pattern(formats_split_kind kind);

/* The end of the piece that begins at p < end; the text is valid UTF-8. */
const uint8_t *formats_split_next(formats_split_kind kind, const formats_unicode *unicode,
                                  const uint8_t *p, const uint8_t *end);

typedef struct formats_merge_slot {
    int32_t left, right;
    uint32_t rank; /* FORMATS_NO_MERGE where the slot is free */
    int32_t id;
} formats_merge_slot;

typedef struct formats_added_token {
    char *content;
    size_t size;
    int32_t id;
    bool single_word, lstrip, rstrip, normalized, special;
} formats_added_token;

/* Longest match of added tokens: a trie with siblings in a list. Node 0 is the root. */
typedef struct formats_trie_node {
    uint32_t child, sibling; /* 0: none */
    int32_t token;           /* index into `added`, or -1 */
    uint8_t byte;
} formats_trie_node;

typedef struct formats_trie {
    formats_trie_node *nodes;
    size_t count, room;
    uint32_t root[256]; /* child of the root by byte, 0: none */
    int only;           /* the one first byte that occurs, or -1 */
} formats_trie;

struct formats_tokenizer {
    formats_unicode unicode;
    formats_split_kind split;
    bool digits;       /* every numeric character is a piece, before `split` */
    bool prefix_space; /* a blank goes before every piece of text that has none */
    bool ignore_merges, fuse_unk, no_cut;
    int32_t unk_id, eos_id; /* or -1 */

    formats_table words; /* raw bytes of each vocabulary entry in the byte alphabet … */
    int32_t *word_ids;   /* … and its id */
    size_t word_ids_room;
    int32_t byte_ids[256]; /* or -1 */
    uint32_t *byte_pairs;  /* [65536] rank of the merge of two bytes, or FORMATS_NO_MERGE */
    int32_t *merge_ids;    /* by rank */
    formats_merge_slot *slots;
    size_t slot_mask;

    char *bytes;     /* of all tokens; token i is bytes[offsets[i]] … bytes[offsets[i+1]] */
    size_t *offsets; /* [vocab_size + 1] */
    uint8_t *kinds;  /* FORMATS_TOKEN_… */
    int32_t vocab_size;

    formats_added_token *added;
    size_t added_count;
    formats_trie raw, normal; /* of tokens matched before and after normalization */
    int32_t *before, *after;  /* what the post-processor puts around a text */
    size_t before_count, after_count;
};

enum { FORMATS_TOKEN_THERE = 1, FORMATS_TOKEN_SPECIAL = 2, FORMATS_TOKEN_LITERAL = 4 };

typedef struct formats_cache_slot {
    uint64_t key[3]; /* the word's bytes, zeroes behind them */
    uint8_t size;    /* of the word; 0: the slot is free */
    uint8_t count;
    int32_t ids[9];
} formats_cache_slot;

#define FORMATS_CACHE_BITS 15
#define FORMATS_CACHE_WORD 24
#define FORMATS_CACHE_IDS 9

struct formats_tokenizer_scratch {
    formats_cache_slot *cache;
    uint64_t invalid;
    formats_tokenizer_text repaired, normal, prefixed;
    /* of the word being merged */
    int32_t *ids, *next, *previous;
    uint32_t *ranks;
    uint64_t *heap;
    size_t room, link_room;
};

/* tokenizer_load.c */
/* A tokenizer of the content of a tokenizer.json, which need not come from a file: `root` is only
 * read, and may be freed afterwards. `name` begins the messages. */
sifr_status formats_tokenizer_from_json(const json_t *root, const char *name,
                                        formats_tokenizer **out, sifr_error *error) SIFR_MUST_CHECK;
sifr_status formats_tokenizer_refuse(sifr_error *error, const char *name, const char *part,
                                     const char *got, const char *wanted);
/* tokenizer_parts.c: everything but vocabulary, merges and added tokens */
sifr_status formats_tokenizer_read_parts(formats_tokenizer *tokenizer, const json_t *root,
                                         const char *name, sifr_error *error) SIFR_MUST_CHECK;
/* The ids that the post-processor adds; after the vocabulary is there. */
sifr_status formats_tokenizer_read_post(formats_tokenizer *tokenizer, const json_t *post,
                                        const char *name, sifr_error *error) SIFR_MUST_CHECK;
/* tokenizer_added.c */
sifr_status formats_tokenizer_read_added(formats_tokenizer *tokenizer, const json_t *list,
                                         const char *name, sifr_error *error) SIFR_MUST_CHECK;
sifr_status formats_tokenizer_build_tries(formats_tokenizer *tokenizer,
                                          sifr_error *error) SIFR_MUST_CHECK;
/* The first match in text[from …] of `size` bytes: its token, or NULL; its bounds, whitespace that
 * it takes along included. `floor`: where the text not yet used begins; *resume: where the search
 * goes on. */
const formats_added_token *formats_tokenizer_match(const formats_tokenizer *tokenizer,
                                                   const formats_trie *trie, const uint8_t *text,
                                                   size_t size, size_t floor, size_t *resume,
                                                   size_t *start, size_t *stop);
/* tokenizer_bpe.c: appends the ids of one piece; `limit` is the end of readable memory. */
sifr_status formats_tokenizer_word(const formats_tokenizer *tokenizer,
                                   formats_tokenizer_scratch *scratch, const uint8_t *word,
                                   size_t size, const uint8_t *limit, formats_tokenizer_ids *out,
                                   sifr_error *error) SIFR_MUST_CHECK;

/* tokenizer_encode.c: appends the text with U+FFFD for invalid sequences, and counts them. */
sifr_status formats_utf8_repair(const uint8_t *text, size_t size, formats_tokenizer_text *out,
                                uint64_t *invalid, sifr_error *error) SIFR_MUST_CHECK;

/* The 256 characters that stand for bytes: code point of byte b, byte of code point c or -1. */
uint32_t formats_byte_character(uint8_t byte);
int formats_character_byte(uint32_t character);
/* `content`, `size` bytes of the byte alphabet, as raw bytes into out (room for `size`); false
 * where a character is not in the alphabet. */
bool formats_bytes_of_content(const char *content, size_t size, uint8_t *out, size_t *count);
/* The other way; appends. */
sifr_status formats_content_of_bytes(const uint8_t *bytes, size_t size, formats_tokenizer_text *out,
                                     sifr_error *error) SIFR_MUST_CHECK;
sifr_status formats_tokenizer_text_append(formats_tokenizer_text *text, const void *bytes,
                                          size_t size, sifr_error *error) SIFR_MUST_CHECK;

/* The merge of two ids, or NULL. */
static inline const formats_merge_slot *formats_find_merge(const formats_tokenizer *tokenizer,
                                                           int32_t left, int32_t right) {
    uint64_t key = (uint64_t)(uint32_t)left << 32 | (uint32_t)right;
    size_t at = (size_t)((key * 0x9E3779B97F4A7C15u) >> 32);
    for (;; at++) {
        const formats_merge_slot *slot = &tokenizer->slots[at & tokenizer->slot_mask];
        if (slot->rank == FORMATS_NO_MERGE) return NULL;
        if (slot->left == left && slot->right == right) return slot;
    }
}

#endif
