/* What the tokenizer's files share; see tokenizer.h for the interface. */
#ifndef TEXT_TOKENIZER_INTERNAL_H
#define TEXT_TOKENIZER_INTERNAL_H

#include <jansson.h>
#include <string.h>

#include "text/tokenizer/tokenizer.h"
#include "text/tokenizer/tokenizer_decoder.h"
#include "text/tokenizer/tokenizer_normalizer.h"
#include "text/tokenizer/tokenizer_pretokenizer.h"
#include "text/tokenizer/tokenizer_table.h"
#include "text/tokenizer/tokenizer_trie.h"
#include "text/tokenizer/tokenizer_unicode.h"

#define TEXT_NO_MERGE UINT32_MAX
#define TEXT_ADDED_LENGTH 1024 /* bytes of an added token, at most */
#define TEXT_TOKEN_LENGTH                                                                          \
    1024 /* of a token of Unigram and WordPiece, whose search is by prefix                         \
          */
#define TEXT_MARK_TEXT "\xE2\x96\x81" /* U+2581, for a blank */

typedef enum text_split_kind {
    TEXT_SPLIT_GPT2,
    TEXT_SPLIT_LLAMA3, /* digits in groups of up to three */
    TEXT_SPLIT_QWEN2   /* digits one by one */
} text_split_kind;

/* The pattern as tokenizer.json spells it; NULL for GPT-2, which is ByteLevel's own. */
const char *text_split_pattern(text_split_kind kind);
/* The same, with GPT-2's as a Split spells it. */
const char *text_split_regex(text_split_kind kind);

/* The end of the piece that begins at p < end; the text is valid UTF-8. */
const uint8_t *text_split_next(text_split_kind kind, const text_unicode *unicode, const uint8_t *p,
                               const uint8_t *end);

typedef struct text_merge_slot {
    int32_t left, right;
    uint32_t rank; /* TEXT_NO_MERGE where the slot is free */
    int32_t id;
} text_merge_slot;

typedef struct text_added_token {
    char *content;
    size_t size;
    char *normal; /* the content normalized, which is what the library decodes to; NULL: the same */
    size_t normal_size;
    int32_t id;
    bool single_word, lstrip, rstrip, normalized, special;
} text_added_token;

/* Longest match of added tokens: a trie with siblings in a list. Node 0 is the root. */
typedef struct text_trie_node {
    uint32_t child, sibling; /* 0: none */
    int32_t token;           /* index into `added`, or -1 */
    uint8_t byte;
} text_trie_node;

typedef struct text_trie {
    text_trie_node *nodes;
    size_t count, capacity;
    uint32_t root[256]; /* child of the root by byte, 0: none */
    int only;           /* the one first byte that occurs, or -1 */
} text_trie;

typedef enum text_model_kind {
    TEXT_MODEL_BYTES,      /* BPE from bytes */
    TEXT_MODEL_CHARACTERS, /* BPE from characters */
    TEXT_MODEL_WORDPIECE,
    TEXT_MODEL_UNIGRAM
} text_model_kind;

/* A place of what a post-processor makes: a token, or one of the two texts. */
enum { TEXT_POST_FIRST = -1, TEXT_POST_SECOND = -2 };
typedef struct text_post_item {
    int32_t id; /* or FORMATS_POST_… */
    int32_t type;
} text_post_item;

typedef struct text_post {
    text_post_item *items;
    size_t count, capacity;
} text_post;

struct text_tokenizer {
    text_model_kind model;
    /* The short way of byte-level BPE: `split`, `digits`, `prefix_space` and NFC are all there is;
     * else a text goes through the steps of `normalizer` and `pretokenizer`. */
    bool direct;
    text_normalizer normalizer;
    text_pretokenizer pretokenizer;
    text_decoder decoder;
    text_unicode unicode;
    text_split_kind split;
    bool digits;       /* every numeric character is a piece, before `split` */
    bool prefix_space; /* a blank goes before every piece of text that has none */
    bool ignore_merges, fuse_unk, no_cut;
    bool byte_fallback;
    bool separate;     /* a run of U+2581 begins a part that CHARACTERS takes by itself */
    bool in_alphabet;  /* pieces come in the byte alphabet */
    bool cut_at_blank; /* see text_tokenizer_cut */
    int32_t unk_id, bos_id, eos_id; /* or -1; bos_id where the folder names it */
    bool names_eos;

    char *prefix, *suffix;     /* of BPE: continuing_subword_prefix, end_of_word_suffix */
    int32_t *character_ids;    /* of CHARACTERS: [65536] by code point, or -1 */
    int32_t fallback_ids[256]; /* tokens <0x00> … <0xFF>, or -1 */
    size_t word_characters;    /* of WORDPIECE: longer words are unknown */
    text_prefixes prefixes;    /* tokens, of WORDPIECE those that begin a word */
    text_prefixes continuations;
    double *scores, unknown_score; /* of UNIGRAM, by id */

    /* Raw bytes of each vocabulary entry (of BYTES: in the byte alphabet) … */
    text_table words;
    int32_t *word_ids; /* … and its id */
    size_t word_ids_capacity;
    int32_t byte_ids[256]; /* or -1 */
    uint32_t *byte_pairs;  /* [65536] rank of the merge of two bytes, or TEXT_NO_MERGE */
    int32_t *merge_ids;    /* by rank */
    text_merge_slot *slots;
    size_t slot_mask;

    char *bytes;     /* of all tokens; token i is bytes[offsets[i]] … bytes[offsets[i+1]] */
    size_t *offsets; /* [vocab_size + 1] */
    uint8_t *kinds;  /* FORMATS_TOKEN_… */
    char *decoded;   /* what tokens decode to; NULL where that is `bytes` */
    size_t *decoded_offsets;
    int32_t vocab_size;

    text_added_token *added;
    size_t added_count;
    text_trie raw, normal;   /* of tokens matched before and after normalization */
    int32_t *before, *after; /* what the post-processor puts around a text */
    size_t before_count, after_count;
    bool trims; /* offsets of tokens leave out the blanks that they begin with */
    text_post single, pair;
};

enum { TEXT_TOKEN_THERE = 1, TEXT_TOKEN_SPECIAL = 2, TEXT_TOKEN_LITERAL = 4 };

typedef struct text_cache_slot {
    uint64_t key[3]; /* the word's bytes, zeroes behind them */
    uint8_t size;    /* of the word; 0: the slot is free */
    uint8_t count;
    int32_t ids[9];
} text_cache_slot;

#define TEXT_CACHE_BITS 15
#define TEXT_CACHE_WORD 24
#define TEXT_CACHE_IDS 9

typedef struct text_path {
    double score;
    uint32_t from;
    int32_t id;
} text_path;

struct text_tokenizer_scratch {
    text_cache_slot *cache;
    uint64_t invalid;
    text_tokenizer_text repaired, normal, prefixed, word;
    text_normalizer_state normalizer;
    text_pretokenizer_state pretokenizer;
    text_path *paths; /* of Unigram's search */
    size_t path_capacity;
    text_tokenizer_ids pair[2];
    /* of the word being merged */
    int32_t *ids, *next, *previous;
    uint32_t *ranks;
    uint64_t *heap;
    size_t capacity, link_capacity;
};

/* tokenizer_load.c */
/* A tokenizer of the content of a tokenizer.json, which need not come from a file: `root` is only
 * read, and may be freed afterwards. `name` begins the messages. */
sifr_status text_tokenizer_from_json(const json_t *root, const char *name, text_tokenizer **out,
                                     sifr_error *error) SIFR_MUST_CHECK;
sifr_status text_tokenizer_refuse(sifr_error *error, const char *name, const char *part,
                                  const char *got, const char *wanted);
/* `part`, or the members of a Sequence under `key` (and of those in it), into
 * list[TEXT_STEPS_AT_MOST]. */
sifr_status text_tokenizer_flatten(const json_t *part, const char *what, const char *key,
                                   const char *name, const json_t **list, size_t *count,
                                   sifr_error *error) SIFR_MUST_CHECK;
/* tokenizer_vocabulary.c: tokens and merges */
sifr_status text_tokenizer_read_vocabulary(text_tokenizer *tokenizer, const json_t *model,
                                           const char *name, sifr_error *error) SIFR_MUST_CHECK;
/* Spells added tokens as they are normalized; after the tries are built. */
sifr_status text_tokenizer_respell(text_tokenizer *tokenizer, sifr_error *error) SIFR_MUST_CHECK;
/* What tokens decode to, where that is not `bytes`. */
sifr_status text_tokenizer_lay_out_decoded(text_tokenizer *tokenizer,
                                           sifr_error *error) SIFR_MUST_CHECK;
/* tokenizer_merge_table.c */
sifr_status text_tokenizer_read_merges(text_tokenizer *tokenizer, const json_t *merges,
                                       const char *name, sifr_error *error) SIFR_MUST_CHECK;
/* tokenizer_wordpiece.c, tokenizer_unigram.c, tokenizer_characters.c: after the vocabulary is
 * there; and one word, appended */
sifr_status text_wordpiece_read(text_tokenizer *tokenizer, const json_t *model, const char *name,
                                sifr_error *error) SIFR_MUST_CHECK;
sifr_status text_wordpiece_word(const text_tokenizer *tokenizer, const uint8_t *word, size_t size,
                                text_tokenizer_ids *out, sifr_error *error) SIFR_MUST_CHECK;
sifr_status text_unigram_read(text_tokenizer *tokenizer, const json_t *model, const char *name,
                              sifr_error *error) SIFR_MUST_CHECK;
sifr_status text_unigram_word(const text_tokenizer *tokenizer, text_tokenizer_scratch *scratch,
                              const uint8_t *word, size_t size, text_tokenizer_ids *out,
                              sifr_error *error) SIFR_MUST_CHECK;
void text_fallback_read(text_tokenizer *tokenizer);
sifr_status text_characters_read(text_tokenizer *tokenizer, sifr_error *error) SIFR_MUST_CHECK;
bool text_characters_separate(const text_tokenizer *tokenizer);
/* The ids that the merges begin with, into ids[size]. */
sifr_status text_characters_begin(const text_tokenizer *tokenizer, const uint8_t *word, size_t size,
                                  int32_t *ids, size_t *count, sifr_error *error) SIFR_MUST_CHECK;
sifr_status text_characters_piece(const text_tokenizer *tokenizer, text_tokenizer_scratch *scratch,
                                  const uint8_t *piece, size_t size, const uint8_t *limit,
                                  text_tokenizer_ids *out, sifr_error *error) SIFR_MUST_CHECK;
/* tokenizer_decoder.c: the byte of a token <0xHH>, or -1 */
int text_fallback_byte(const void *content, size_t size);
/* tokenizer_parts.c: everything but vocabulary, merges and added tokens */
sifr_status text_tokenizer_read_parts(text_tokenizer *tokenizer, const json_t *root,
                                      const char *name, sifr_error *error) SIFR_MUST_CHECK;
/* tokenizer_post.c: the ids that the post-processor adds; after the vocabulary is there */
sifr_status text_tokenizer_read_post(text_tokenizer *tokenizer, const json_t *post,
                                     const char *name, sifr_error *error) SIFR_MUST_CHECK;
/* tokenizer_added.c */
sifr_status text_tokenizer_read_added(text_tokenizer *tokenizer, const json_t *list,
                                      const char *name, sifr_error *error) SIFR_MUST_CHECK;
sifr_status text_tokenizer_build_tries(text_tokenizer *tokenizer,
                                       sifr_error *error) SIFR_MUST_CHECK;
/* The first match in text[from …] of `size` bytes: its token, or NULL; its bounds, whitespace that
 * it takes along included. `floor`: where the text not yet used begins; *resume: where the search
 * goes on. */
const text_added_token *text_tokenizer_match(const text_tokenizer *tokenizer, const text_trie *trie,
                                             const uint8_t *text, size_t size, size_t floor,
                                             size_t *resume, size_t *start, size_t *stop);
/* tokenizer_bpe.c: appends the ids of one piece; `limit` is the end of readable memory. */
sifr_status text_tokenizer_word(const text_tokenizer *tokenizer, text_tokenizer_scratch *scratch,
                                const uint8_t *word, size_t size, const uint8_t *limit,
                                text_tokenizer_ids *out, sifr_error *error) SIFR_MUST_CHECK;

/* tokenizer_encode.c: appends the text with U+FFFD for invalid sequences, and counts them. */
sifr_status text_utf8_repair(const uint8_t *text, size_t size, text_tokenizer_text *out,
                             uint64_t *invalid, sifr_error *error) SIFR_MUST_CHECK;

/* The 256 characters that stand for bytes: code point of byte b, byte of code point c or -1. */
uint32_t text_byte_character(uint8_t byte);
int text_character_byte(uint32_t character);
/* `content`, `size` bytes of the byte alphabet, as raw bytes into out (room for `size`); false
 * where a character is not in the alphabet. */
bool text_bytes_of_content(const char *content, size_t size, uint8_t *out, size_t *count);
/* The other way; appends. */
sifr_status text_content_of_bytes(const uint8_t *bytes, size_t size, text_tokenizer_text *out,
                                  sifr_error *error) SIFR_MUST_CHECK;
sifr_status text_tokenizer_text_append(text_tokenizer_text *text, const void *bytes, size_t size,
                                       sifr_error *error) SIFR_MUST_CHECK;

/* The merge of two ids, or NULL. */
static inline const text_merge_slot *text_find_merge(const text_tokenizer *tokenizer, int32_t left,
                                                     int32_t right) {
    uint64_t key = (uint64_t)(uint32_t)left << 32 | (uint32_t)right;
    size_t at = (size_t)((key * 0x9E3779B97F4A7C15u) >> 32);
    for (;; at++) {
        const text_merge_slot *slot = &tokenizer->slots[at & tokenizer->slot_mask];
        if (slot->rank == TEXT_NO_MERGE) return NULL;
        if (slot->left == left && slot->right == right) return slot;
    }
}

#endif
