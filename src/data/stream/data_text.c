#include "data/stream/data_text.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/hash.h"
#include "base/text.h"
#include "data/stream/token_store.h"
#include "data/stream/tokenise.h"
#include "text/tokenizer/tokenizer_files.h"

/* Raised whenever the same text may give other tokens. The next number stands for text with special
 * tokens around it. */
enum { CACHE_VERSION = 1 };

static sifr_status hash_text(const data_text_source *source, const data_set_options *options,
                             uint64_t *out, sifr_error *error) {
    uint64_t hash;
    BASE_TRY(
        text_tokenizer_hash(options->tokenizer, CACHE_VERSION + options->special, &hash, error));
    for (size_t i = 0; i < source->count; i++) {
        const data_document *document = &source->documents[i];
        struct stat info;
        if (stat(document->path, &info) != 0)
            return base_fail(error, SIFR_FAILED, "%s: removed while it was read", document->path);
        int64_t facts[3] = {(int64_t)document->size, info.st_mtim.tv_sec, info.st_mtim.tv_nsec};
        hash = base_hash_seeded(document->path, strlen(document->path) + 1, hash);
        hash = base_hash_seeded(facts, sizeof facts, hash);
    }
    *out = hash;
    return SIFR_OK;
}

static void say_counts(const sifr_log *log, const data_text_source *source,
                       const data_tokenised *counts) {
    char bytes[32], a[80], b[80];
    base_log(log, SIFR_LOG_INFO, "data: %s of text in %s, %s, %.1f MB/s",
             base_format_bytes(counts->bytes, bytes),
             base_format_counted(counts->documents, "document", a),
             base_format_counted(counts->tokens, "token", b),
             counts->seconds > 0 ? (double)counts->bytes / counts->seconds / 1e6 : 0);
    if (counts->invalid)
        base_log(log, SIFR_LOG_WARNING, "data: %s in %s: not valid UTF-8, read as U+FFFD",
                 base_format_counted((int64_t)counts->invalid, "sequence", a),
                 base_format_counted(counts->invalid_documents, "document", b));
    if (source->empty_files)
        base_log(log, SIFR_LOG_INFO, "data: %s left out",
                 base_format_counted((int64_t)source->empty_files, "empty file", a));
    if (source->links)
        base_log(log, SIFR_LOG_INFO, "data: %s not followed",
                 base_format_counted((int64_t)source->links, "link to a directory", a));
    if (counts->unfinished)
        base_log(log, SIFR_LOG_INFO, "data: %s without a newline at the end; none was added",
                 base_format_counted(counts->unfinished, "document", a));
}

/* Checked before tokenising, which may take hours. */
static sifr_status check_size(const text_tokenizer *tokenizer, const data_set_options *options,
                              sifr_error *error) {
    int64_t size = text_tokenizer_text_size(tokenizer);
    if (size <= options->vocab_size) return SIFR_OK;
    return base_fail(error, SIFR_FAILED,
                     "%s: the tokenizer makes ids up to %lld, but the model has rows for only "
                     "%lld; use the tokenizer that belongs to the model",
                     options->tokenizer, (long long)size - 1, (long long)options->vocab_size);
}

static sifr_status check_around(const text_tokenizer *tokenizer, const data_set_options *options,
                                sifr_error *error) {
    for (int behind = 0; options->special && behind < 2; behind++) {
        size_t count;
        const int32_t *ids = text_tokenizer_around(tokenizer, behind, &count);
        for (size_t i = 0; i < count; i++) {
            if (ids[i] < options->vocab_size) continue;
            return base_fail(
                error, SIFR_FAILED,
                "%s: the tokenizer puts id %d around each text, but the model has rows for only "
                "%lld; use the tokenizer that belongs to the model, or give --no-special-tokens",
                options->tokenizer, ids[i], (long long)options->vocab_size);
        }
    }
    return SIFR_OK;
}

/* Whether the store of an earlier run can be read, and the model has a row for each of its ids.
 * What is wrong with it is of no concern: it is made again. */
static bool is_whole(const char *prefix, const data_set_options *options) {
    char tokens[32];
    data_token_store store;
    sifr_error error = {0};
    if (data_token_store_open(prefix, &store, &error) != SIFR_OK) return false;
    bool whole = data_token_store_check(&store, options->vocab_size, prefix, &error) == SIFR_OK;
    if (whole)
        base_log(options->log, SIFR_LOG_INFO, "data: %s tokens from the store of an earlier run",
                 base_format_count(store.tokens, tokens));
    data_token_store_close(&store);
    return whole;
}

sifr_status data_set_from_text(const data_text_source *source, const data_set_options *options,
                               char prefix[BASE_PATH_LENGTH], bool *checked, sifr_error *error) {
    char hex[17], found[BASE_PATH_LENGTH];
    uint64_t hash;
    BASE_TRY(hash_text(source, options, &hash, error));
    base_hash_hex(hash, hex);
    BASE_TRY(base_path_join(prefix, options->cache, hex, error));
    *checked = false;
    if (data_token_store_prefix(prefix, found)) {
        *checked = is_whole(prefix, options);
        if (*checked) return SIFR_OK;
        base_log(options->log, SIFR_LOG_WARNING, "data: %s is damaged and is made again", prefix);
    }
    data_tokenised counts;
    text_tokenizer *tokenizer;
    BASE_TRY(text_tokenizer_load(options->tokenizer, &tokenizer, error));
    sifr_status status = check_size(tokenizer, options, error);
    if (status == SIFR_OK) status = check_around(tokenizer, options, error);
    if (status == SIFR_OK) status = base_make_directories(options->cache, error);
    if (status == SIFR_OK) {
        data_tokenise_say(tokenizer, options->special, options->separator, options->log);
        status = data_tokenise(source, tokenizer,
                               &(data_tokenise_options){.special = options->special,
                                                        .separator = -1,
                                                        .threads = options->threads,
                                                        .progress = options->progress},
                               prefix, &counts, error);
    }
    if (status == SIFR_OK) say_counts(options->log, source, &counts);
    if (status == SIFR_OK)
        data_tokenise_say_doubled(tokenizer, counts.doubled, "document", options->log);
    text_tokenizer_free(tokenizer);
    return status;
}
