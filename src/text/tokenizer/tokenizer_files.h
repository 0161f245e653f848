/* Folders without tokenizer.json: what they hold instead becomes the tokenizer.json that
 * transformers builds for the folder's class of tokenizer, for the one loader to read. */
#ifndef TEXT_TOKENIZER_FILES_H
#define TEXT_TOKENIZER_FILES_H

#include <jansson.h>
#include <stdbool.h>

#include "base/errors.h"
#include "base/file.h"
#include "text/tokenizer/tokenizer_proto.h"
#include "text/tokenizer/tokenizer_table.h"

enum { TEXT_VOCABULARY_LIMIT = 64 << 20 }; /* bytes of a file that holds a vocabulary */

/* The tokenizer.json of a folder that has none; the caller owns *root. *source is the path of the
 * file that the vocabulary came from; *eos the content of the token that ends a text, free(), or
 * NULL. */
sifr_status text_tokenizer_convert(const char *folder, json_t **root, char source[BASE_PATH_LENGTH],
                                   char **eos, sifr_error *error) SIFR_MUST_CHECK;
/* The same of the bytes of a tokenizer.model, spiece.model …, for the settings that a
 * tokenizer_config.json would hold; `name` begins the messages. Takes `settings`, an object. */
sifr_status text_tokenizer_convert_bytes(const void *bytes, size_t size, json_t *settings,
                                         const char *name, json_t **root,
                                         sifr_error *error) SIFR_MUST_CHECK;
/* The name of the first file of the folder that text_tokenizer_convert may read, or NULL. */
const char *text_tokenizer_other_file(const char *folder);
/* A hash of all that the folder's tokenizer is made from, tokenizer.json or other files. */
sifr_status text_tokenizer_hash(const char *folder, uint64_t seed, uint64_t *out,
                                sifr_error *error) SIFR_MUST_CHECK;

/* The rest is shared by tokenizer_from_*.c. */

typedef enum text_class_kind {
    TEXT_CLASS_BACKEND, /* PreTrainedTokenizerFast: what the file itself says */
    TEXT_CLASS_LLAMA,
    TEXT_CLASS_GEMMA,
    TEXT_CLASS_T5,
    TEXT_CLASS_XLM_ROBERTA,
    TEXT_CLASS_DEBERTA_V2,
    TEXT_CLASS_BERT,
    TEXT_CLASS_GPT2,
    TEXT_CLASS_ROBERTA,
    TEXT_CLASS_QWEN2,
    TEXT_CLASS_CODEGEN,
    TEXT_CLASS_GPT_NEOX
} text_class_kind;

enum { TEXT_SPECIAL_NAMES = 7 };
extern const char *const text_special_names[TEXT_SPECIAL_NAMES]; /* bos_token … mask_token */

typedef struct text_class {
    text_class_kind kind;
    const char *name;
    const char *file; /* that holds its vocabulary, beside tokenizer.model */
    const char *defaults[TEXT_SPECIAL_NAMES];
} text_class;

/* A token in JSON is a string, or an object with content, single_word, lstrip, rstrip, normalized
 * and special, of which flags may be absent. */
typedef struct text_files {
    const char *folder; /* NULL: there are only settings, and `bytes` */
    const void *bytes;  /* of the vocabulary, where no file is to be read */
    size_t byte_count;
    char config_path[BASE_PATH_LENGTH];     /* tokenizer_config.json */
    char vocabulary_path[BASE_PATH_LENGTH]; /* named in messages about the vocabulary */
    const text_class *class;
    json_t *settings; /* tokenizer_config.json with what other files add to it */
    json_t *decoder;  /* [[id, token], …] by id: tokens added to the vocabulary */
    json_t *specific; /* special tokens with names of the model's own */
    json_t *extra;    /* special tokens without names; NULL where nothing says */
    json_t *root;     /* the tokenizer.json being made */

    text_table words;  /* of the model's vocabulary … */
    int64_t *word_ids; /* … and their ids */
    size_t word_capacity;
    int64_t model_size;

    text_table added;   /* contents of the added tokens … */
    json_t *added_list; /* … and the tokens, flags complete, with ids */
} text_files;

/* tokenizer_from_folder.c */
sifr_status text_files_class(text_files *files, const char *model_type, const char *class_name,
                             bool own_code, sifr_error *error) SIFR_MUST_CHECK;
/* tokenizer_from_settings.c */
sifr_status text_files_settings(text_files *files, sifr_error *error) SIFR_MUST_CHECK;
bool text_files_flag(const text_files *files, const char *key, bool fallback);
/* The content of a token, NULL for what is none. */
const char *text_token_content(const json_t *token);
/* The token under one of text_special_names, the class's own where the folder names none; or
 * NULL. */
const char *text_files_special(const text_files *files, const char *name);
/* tokenizer_from_added.c: the tokens that transformers adds, and their ids */
sifr_status text_files_add_word(text_files *files, const char *text, size_t size, int64_t id,
                                sifr_error *error) SIFR_MUST_CHECK;
int64_t text_files_id(const text_files *files, const char *content); /* or -1 */
sifr_status text_files_add_list(text_files *files, const json_t *tokens,
                                sifr_error *error) SIFR_MUST_CHECK;
sifr_status text_files_add_all(text_files *files, sifr_error *error) SIFR_MUST_CHECK;
/* tokenizer_from_class.c: all of `root` but added_tokens; `added` is done between the two. */
sifr_status text_files_model(text_files *files, sifr_error *error) SIFR_MUST_CHECK;
sifr_status text_files_post(text_files *files, sifr_error *error) SIFR_MUST_CHECK;
/* tokenizer_from_vocabulary.c: the "model" of `root` and the words */
sifr_status text_files_pieces(text_files *files, const text_proto *proto, bool bpe, int64_t unk_id,
                              sifr_error *error) SIFR_MUST_CHECK;
sifr_status text_files_word_piece(text_files *files, const char *unknown,
                                  sifr_error *error) SIFR_MUST_CHECK;
sifr_status text_files_byte_level(text_files *files, sifr_error *error) SIFR_MUST_CHECK;
/* tokenizer_from_ranks.c: the same from lines of base64 and rank */
bool text_is_ranks(const char *text, size_t size);
sifr_status text_files_ranks(text_files *files, const char *text, size_t size,
                             sifr_error *error) SIFR_MUST_CHECK;
/* Every way to put a token together from two others, as merges: by the token's id, then by the
 * parts' ids (`by_parts`) or by the length of the left one; by `order`, the words' numbers, in
 * place of ids where that is not NULL. names[i] is word i of files->words as JSON spells it. */
sifr_status text_files_merges(text_files *files, json_t *const *names, bool by_parts,
                              const size_t *order, json_t **out, sifr_error *error) SIFR_MUST_CHECK;

#endif
