/* A Unigram by expectation and maximization: many pieces at first, of which those that the text
 * misses least are taken away, until there are as many as asked for. Numbers and order of steps are
 * those of the UnigramTrainer of the `tokenizers` library. */
#include <math.h>
#include <stdlib.h>

#include "base/heap.h"
#include "text/tokenizer/tokenizer_train_internal.h"

#define UNKNOWN_PENALTY 10.0
#define LEAST_EXPECTED 0.5 /* pieces that are expected less often are dropped */
#define SHRINKING 0.75     /* of the pieces stay at a time */
#define MISSING_STEP 0.0001

enum { SEED_LIMIT = 1000000, ROUNDS = 2 };

typedef struct piece {
    text_seed text;
    double expected, used; /* how often in the text: on average over all ways, on the best way */
    double loss;
    bool alive, keep;
    uint32_t other_count; /* pieces of the best way to spell this one otherwise */
    int32_t others[16];
} piece;

typedef struct state {
    text_tokenizer_trainer *trainer;
    piece *pieces;
    size_t count;
    text_prefixes trie;
    double unknown; /* score of a character without a piece */
    /* of one word, by byte */
    double *before, *behind;
    int32_t *best, *from;
    size_t capacity;
} state;

static double digamma(double x) {
    double result = 0;
    for (; x < 7; x++) result -= 1 / x;
    x -= 0.5;
    double xx = 1 / x, xx2 = xx * xx, xx4 = xx2 * xx2;
    return result + log(x) + 1.0 / 24 * xx2 - 7.0 / 960 * xx4 + 31.0 / 8064 * xx4 * xx2 -
           127.0 / 30720 * xx4 * xx4;
}

/* log(exp(a) + exp(b)) */
static double add_logs(double a, double b) {
    double more = a > b ? a : b, less = a > b ? b : a;
    return less < more - 50 ? more : more + log1p(exp(less - more));
}

static sifr_status build_trie(state *s, sifr_error *error) {
    text_prefix *list;
    BASE_TRY(base_alloc(s->count + 1, sizeof *list, &list, error));
    for (size_t i = 0; i < s->count; i++)
        list[i] = (text_prefix){s->pieces[i].text.bytes, s->pieces[i].text.size, (int32_t)i};
    text_prefixes_free(&s->trie);
    sifr_status status = text_prefixes_build(&s->trie, list, s->count, error);
    free(list);
    return status;
}

static void set_unknown(state *s) {
    double least = INFINITY;
    for (size_t i = 0; i < s->count; i++) {
        if (s->pieces[i].alive && s->pieces[i].text.score < least) least = s->pieces[i].text.score;
    }
    s->unknown = least - UNKNOWN_PENALTY;
}

static sifr_status reserve(state *s, size_t size, sifr_error *error) {
    if (s->capacity >= size + 1) return SIFR_OK;
    size_t capacity = size + 64;
    free(s->before), free(s->behind), free(s->best), free(s->from);
    s->before = s->behind = NULL;
    s->best = s->from = NULL;
    s->capacity = 0;
    BASE_TRY(base_alloc(capacity, sizeof *s->before, &s->before, error));
    BASE_TRY(base_alloc(capacity, sizeof *s->behind, &s->behind, error));
    BASE_TRY(base_alloc(capacity, sizeof *s->best, &s->best, error));
    BASE_TRY(base_alloc(capacity, sizeof *s->from, &s->from, error));
    s->capacity = capacity;
    return SIFR_OK;
}

/* The pieces that bytes[at …] begin with, one after the other. */
typedef struct walk {
    uint32_t node;
    size_t next; /* byte to step by */
    size_t end;  /* of the piece found */
    double score;
    int32_t id;    /* -1: a character without a piece */
    size_t length; /* of the first character */
    bool single, done;
} walk;

static walk begin_walk(const uint8_t *bytes, size_t at) {
    walk w = {.next = at};
    text_utf8_get(bytes + at, &w.length);
    return w;
}

static bool walk_on(const state *s, const uint8_t *bytes, size_t size, size_t at, walk *w) {
    while (!w->done && w->next < size) {
        w->node = text_prefixes_step(&s->trie, w->node, bytes[w->next]);
        if (!w->node) break;
        w->next++;
        int32_t id = s->trie.nodes[w->node].value;
        if (id < 0 || !s->pieces[id].alive) continue;
        w->id = id;
        w->end = w->next;
        w->score = s->pieces[id].text.score;
        if (w->end - at == w->length) w->single = true;
        return true;
    }
    if (w->done || w->single) return false;
    w->done = true;
    w->id = -1;
    w->end = at + w->length;
    w->score = s->unknown;
    return true;
}

/* Adds to what is expected of the pieces, from one word that occurs `times`. */
static void expect(state *s, const uint8_t *bytes, size_t size, double times) {
    double *before = s->before, *behind = s->behind;
    for (size_t i = 0; i <= size; i++) before[i] = behind[i] = -INFINITY;
    before[0] = behind[size] = 0;
    for (size_t at = 0, length; at < size; at += length) {
        walk w = begin_walk(bytes, at);
        length = w.length;
        while (walk_on(s, bytes, size, at, &w))
            before[w.end] = add_logs(before[w.end], before[at] + w.score);
    }
    const uint8_t *p = bytes + size;
    while (p > bytes) {
        p = text_utf8_back(p, bytes);
        size_t at = (size_t)(p - bytes);
        walk w = begin_walk(bytes, at);
        while (walk_on(s, bytes, size, at, &w)) {
            behind[at] = add_logs(behind[at], w.score + behind[w.end]);
            if (w.id >= 0)
                s->pieces[w.id].expected +=
                    times * exp(before[at] + w.score + behind[w.end] - before[size]);
        }
    }
}

/* New scores from what is expected; what is expected too seldom goes. */
static void maximize(state *s) {
    double sum = 0;
    for (size_t i = 0; i < s->count; i++) {
        piece *p = &s->pieces[i];
        p->alive = p->alive && p->expected >= LEAST_EXPECTED;
        if (p->alive) sum += p->expected;
    }
    double all = digamma(sum);
    for (size_t i = 0; i < s->count; i++) {
        if (s->pieces[i].alive) s->pieces[i].text.score = digamma(s->pieces[i].expected) - all;
    }
}

static sifr_status learn(state *s, sifr_error *error) {
    const text_table *words = &s->trainer->words;
    for (int round = 0; round < ROUNDS; round++) {
        set_unknown(s);
        for (size_t i = 0; i < s->count; i++) s->pieces[i].expected = 0;
        for (size_t w = 0; w < words->count; w++) {
            size_t size;
            const uint8_t *bytes = text_table_bytes(words, w, &size);
            BASE_TRY(reserve(s, size, error));
            expect(s, bytes, size, (double)s->trainer->counts[w]);
        }
        maximize(s);
    }
    return SIFR_OK;
}

/* The best way through a word, without the piece that is all of it where `apart`: in s->best and
 * s->from by end; its score. */
static double search(state *s, const uint8_t *bytes, size_t size, bool apart) {
    for (size_t i = 0; i <= size; i++) s->before[i] = -INFINITY;
    s->before[0] = 0;
    for (size_t at = 0, length; at < size; at += length) {
        walk w = begin_walk(bytes, at);
        length = w.length;
        while (walk_on(s, bytes, size, at, &w)) {
            double score = s->before[at] + w.score;
            if ((apart && at == 0 && w.end == size) || !(score > s->before[w.end])) continue;
            s->before[w.end] = score;
            s->best[w.end] = w.id;
            s->from[w.end] = (int32_t)at;
        }
    }
    return s->before[size];
}

/* How else each piece is spelled. */
static sifr_status find_others(state *s, sifr_error *error) {
    for (size_t i = 0; i < s->count; i++) {
        piece *p = &s->pieces[i];
        size_t size = p->text.size, length;
        p->keep = true;
        p->other_count = 0;
        text_utf8_get(p->text.bytes, &length);
        if (!p->alive || size == length) continue;
        BASE_TRY(reserve(s, size, error));
        double score = search(s, p->text.bytes, size, true);
        if (score > p->text.score) { /* it is never on the best way */
            p->keep = false;
            continue;
        }
        for (size_t end = size; end > 0 && p->other_count < 16; end = (size_t)s->from[end])
            p->others[p->other_count++] = s->best[end];
    }
    return SIFR_OK;
}

static sifr_status count_used(state *s, double *all, sifr_error *error) {
    const text_table *words = &s->trainer->words;
    for (size_t i = 0; i < s->count; i++) s->pieces[i].used = 0;
    *all = 0;
    for (size_t w = 0; w < words->count; w++) {
        size_t size;
        const uint8_t *bytes = text_table_bytes(words, w, &size);
        double times = (double)s->trainer->counts[w];
        BASE_TRY(reserve(s, size, error));
        search(s, bytes, size, false);
        for (size_t end = size; end > 0; end = (size_t)s->from[end]) {
            if (s->best[end] >= 0) s->pieces[s->best[end]].used += times;
        }
        *all += times;
    }
    return SIFR_OK;
}

/* How much less likely the text is without each piece; INFINITY for one that stays in any case,
 * -INFINITY for one that goes. */
static void find_losses(state *s, double all) {
    double sum = 0;
    for (size_t i = 0; i < s->count; i++) sum += s->pieces[i].used;
    for (size_t i = 0; i < s->count; i++) {
        piece *p = &s->pieces[i];
        p->loss = -INFINITY;
        if (!p->alive || (p->used == 0 && (!p->keep || p->other_count))) continue;
        p->loss = INFINITY;
        if (!p->other_count) continue;
        double with = log(p->used) - log(sum), without = 0;
        double all_without = log(sum + p->used * (p->other_count - 1.0));
        for (uint32_t k = 0; k < p->other_count; k++) {
            double used = p->others[k] < 0 ? 0 : s->pieces[p->others[k]].used;
            without += log(used + p->used) - all_without;
        }
        p->loss = p->used / all * (with - without);
    }
}

/* By what the text misses most; of equals the one that was first. */
static int compare_loss(const void *a, const void *b) {
    const piece *x = *(piece *const *)a, *y = *(piece *const *)b;
    if (x->loss != y->loss) return x->loss > y->loss ? -1 : 1;
    return x < y ? -1 : x > y;
}

static size_t count_alive(const state *s) {
    size_t count = 0;
    for (size_t i = 0; i < s->count; i++) count += s->pieces[i].alive;
    return count;
}

/* Keeps at most `wanted` pieces, those that stay in any case first. */
static sifr_status prune(state *s, size_t wanted, sifr_error *error) {
    double all;
    piece **order, *kept;
    size_t count = 0, alive = count_alive(s);
    size_t limit = (size_t)(SHRINKING * (double)(alive + 1));
    if (limit < wanted) limit = wanted;
    set_unknown(s);
    BASE_TRY(find_others(s, error));
    BASE_TRY(count_used(s, &all, error));
    find_losses(s, all);
    BASE_TRY(base_alloc(s->count + 1, sizeof *order, &order, error));
    for (size_t i = 0; i < s->count; i++) order[i] = &s->pieces[i];
    qsort(order, s->count, sizeof *order, compare_loss);
    sifr_status status = base_alloc(s->count + 1, sizeof *kept, &kept, error);
    if (status == SIFR_OK) {
        for (size_t i = 0; i < s->count && order[i]->loss > -INFINITY; i++) {
            if (count + 1 >= limit && order[i]->loss < INFINITY) break;
            kept[count++] = *order[i];
        }
        free(s->pieces);
        s->pieces = kept;
        s->count = count;
        status = build_trie(s, error);
    }
    free(order);
    return status;
}

/* Without the pieces that the last rounds dropped. */
static sifr_status compact(state *s, sifr_error *error) {
    size_t count = 0;
    for (size_t i = 0; i < s->count; i++) {
        if (s->pieces[i].alive) s->pieces[count++] = s->pieces[i];
    }
    s->count = count;
    return build_trie(s, error);
}

static int compare_scores(const void *a, const void *b) {
    const text_seed *x = a, *y = b;
    if (x->score != y->score) return x->score > y->score ? -1 : 1;
    uint32_t size = x->size < y->size ? x->size : y->size;
    int order = memcmp(x->bytes, y->bytes, size);
    return order ? order : x->size < y->size ? -1 : x->size > y->size;
}

/* All characters, then pieces in their order, until there are `wanted`; by score. */
static sifr_status choose(const state *s, const text_seed *characters, size_t character_count,
                          size_t wanted, text_seed **out, size_t *count, sifr_error *error) {
    text_table seen = {0};
    text_seed *list;
    sifr_status status = SIFR_OK;
    double missing = INFINITY;
    size_t n = 0, index;
    bool added;
    BASE_TRY(base_alloc(wanted + 1, sizeof *list, &list, error));
    for (size_t i = 0; i < s->count; i++) {
        if (s->pieces[i].text.score < missing) missing = s->pieces[i].text.score;
    }
    if (isinf(missing)) missing = -UNKNOWN_PENALTY; /* no piece is left */
    for (size_t i = 0; i < character_count && status == SIFR_OK; i++) {
        list[n] = characters[i];
        list[n].score = NAN;
        status = text_table_add(&seen, list[n].bytes, list[n].size, &index, &added, error);
        n++;
    }
    for (size_t i = 0; i < s->count && status == SIFR_OK; i++) {
        const text_seed *text = &s->pieces[i].text;
        index = text_table_find(&seen, text->bytes, text->size);
        if (index != SIZE_MAX)
            list[index].score = text->score;
        else if (n < wanted)
            list[n++] = *text;
    }
    for (size_t i = 0; i < character_count; i++) {
        if (!isnan(list[i].score)) continue;
        list[i].score = missing; /* it came to be spelled within longer pieces only */
        missing += MISSING_STEP;
    }
    if (n) qsort(list, n, sizeof *list, compare_scores);
    text_table_free(&seen);
    *out = list;
    *count = n;
    return status;
}

static sifr_status write_tokens(text_tokenizer_trainer *t, const text_seed *list, size_t count,
                                sifr_error *error) {
    size_t special = t->tokens.count, index;
    bool added;
    BASE_TRY(base_alloc(special + count + 1, sizeof *t->scores, &t->scores, error));
    for (size_t i = 0; i < count; i++) {
        BASE_TRY(text_table_add(&t->tokens, list[i].bytes, list[i].size, &index, &added, error));
        if (added) t->scores[index] = list[i].score; /* "</s>" in the text is the special token */
    }
    return SIFR_OK;
}

static sifr_status begin(state *s, const text_seed *seeds, size_t count, sifr_error *error) {
    double sum = 0;
    BASE_TRY(base_alloc(count + 1, sizeof *s->pieces, &s->pieces, error));
    for (size_t i = 0; i < count; i++) sum += seeds[i].score;
    for (size_t i = 0; i < count; i++) {
        s->pieces[i] = (piece){.text = seeds[i], .alive = true};
        s->pieces[i].text.score = log(seeds[i].score) - log(sum);
    }
    s->count = count;
    return build_trie(s, error);
}

sifr_status text_train_unigram(text_tokenizer_trainer *t, sifr_error *error) {
    state s = {.trainer = t};
    text_seed *seeds = NULL, *list = NULL;
    size_t count, characters, special = t->tokens.count, chosen;
    size_t wanted = (size_t)t->options.vocab_size - special;
    size_t enough = (size_t)(t->options.vocab_size * 11 / 10);
    sifr_status status = text_train_seeds(t, SEED_LIMIT, &seeds, &count, &characters, error);
    if (status == SIFR_OK && characters > wanted)
        status =
            base_fail(error, SIFR_USAGE,
                      "vocab size %lld: the text has %zu different characters, and %zu tokens "
                      "are special; give at least %zu",
                      (long long)t->options.vocab_size, characters, special, characters + special);
    if (status == SIFR_OK) status = begin(&s, seeds, count, error);
    while (status == SIFR_OK) {
        status = learn(&s, error);
        /* One more than the pieces: the library counts its unknown piece. */
        if (status != SIFR_OK || count_alive(&s) + 1 <= enough) break;
        status = prune(&s, enough, error);
    }
    if (status == SIFR_OK) status = compact(&s, error);
    if (status == SIFR_OK) status = choose(&s, seeds, characters, wanted, &list, &chosen, error);
    if (status == SIFR_OK) status = write_tokens(t, list, chosen, error);
    text_prefixes_free(&s.trie);
    free(s.pieces);
    free(s.before), free(s.behind), free(s.best), free(s.from);
    free(list);
    free(seeds);
    return status;
}
