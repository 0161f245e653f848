/* Entities in tags, as seqeval finds them by default: a walk over the tags that says, between each
 * and the next, whether an entity ends and whether one begins. */
#include <math.h>
#include <stdbool.h>
#include <string.h>

#include "train/evaluate/scores.h"

/* A tag's letter, and what it is of; "O" and no tag at all are letter 'O' of type "_". */
typedef struct entity_tag {
    char letter; /* 0: one beyond ASCII */
    const char *type;
} entity_tag;

typedef struct entity_walk {
    entity_tag last;
    int64_t begin;
} entity_walk;

static const entity_tag outside = {'O', "_"};

static bool is_letter(const entity_tag *tag, const char *letters) {
    return tag->letter && strchr(letters, tag->letter);
}

/* "B-PER" is letter B of type PER, and so is "BPER" to seqeval. */
static entity_tag read_tag(const char *name) {
    unsigned char first = (unsigned char)name[0];
    entity_tag tag = {first < 0x80 ? name[0] : 0, name};
    if (!first) return outside;
    for (tag.type++; ((unsigned char)*tag.type & 0xC0) == 0x80;) tag.type++;
    const char *dash = strchr(tag.type, '-');
    if (dash) tag.type = dash + 1;
    if (!*tag.type) tag.type = "_";
    return tag;
}

static bool ends(const entity_tag *last, const entity_tag *next, bool same) {
    if (is_letter(last, "ES")) return true;
    if (is_letter(last, "BI") && is_letter(next, "BSO")) return true;
    return !is_letter(last, "O.") && !same;
}

static bool begins(const entity_tag *last, const entity_tag *next, bool same) {
    if (is_letter(next, "BS")) return true;
    if (is_letter(last, "ESO") && is_letter(next, "EI")) return true;
    return !is_letter(next, "O.") && !same;
}

typedef struct entity_end {
    bool ended;
    const char *type;
    int64_t begin;
} entity_end;

/* Goes on to the tag at `at`; the entity that ended before it. */
static entity_end step(entity_walk *walk, entity_tag next, int64_t at) {
    bool same = strcmp(walk->last.type, next.type) == 0;
    entity_end out = {ends(&walk->last, &next, same), walk->last.type, walk->begin};
    if (begins(&walk->last, &next, same)) walk->begin = at;
    walk->last = next;
    return out;
}

typedef struct entity_count {
    entity_walk labels, predictions;
    int64_t at; /* tags seen */
    int64_t both, labelled, predicted, tokens, right;
} entity_count;

static void count_tag(entity_count *c, entity_tag label, entity_tag prediction) {
    entity_end a = step(&c->labels, label, c->at), b = step(&c->predictions, prediction, c->at);
    c->labelled += a.ended;
    c->predicted += b.ended;
    c->both += a.ended && b.ended && a.begin == b.begin && strcmp(a.type, b.type) == 0;
    c->at++;
}

static sifr_status count_sequence(entity_count *c, const int32_t *labels,
                                  const int32_t *predictions, int64_t first, int64_t end,
                                  const char *const *names, int32_t classes, sifr_error *error) {
    for (int64_t i = first; i < end; i++) {
        if (labels[i] < 0) continue;
        if (labels[i] >= classes || predictions[i] < 0 || predictions[i] >= classes)
            return base_fail(error, SIFR_FAILED,
                             "scores: entry %lld has label %d and prediction %d, but there are "
                             "classes 0 to %d only",
                             (long long)i, labels[i], predictions[i], classes - 1);
        const char *label = names[labels[i]], *prediction = names[predictions[i]];
        c->tokens++;
        c->right += strcmp(label, prediction) == 0;
        count_tag(c, read_tag(label), read_tag(prediction));
    }
    count_tag(c, outside, outside); /* no entity goes on in the next sequence */
    return SIFR_OK;
}

sifr_status train_score_entities(const int32_t *labels, const int32_t *predictions,
                                 const int64_t *starts, int64_t sequences, const char *const *names,
                                 int32_t classes, train_scores *out, sifr_error *error) {
    entity_walk begin = {.last = {'O', ""}};
    entity_count c = {.labels = begin, .predictions = begin};
    *out = (train_scores){0};
    for (int64_t s = 0; s < sequences; s++)
        BASE_TRY(count_sequence(&c, labels, predictions, starts[s], starts[s + 1], names, classes,
                                error));
    double precision = c.predicted ? (double)c.both / (double)c.predicted : 0;
    double recall = c.labelled ? (double)c.both / (double)c.labelled : 0;
    double sum = precision + recall;
    *out = (train_scores){
        .items = {{"precision", precision},
                  {"recall", recall},
                  {"f1", sum > 0 ? 2 * precision * recall / sum : 0},
                  {"accuracy", c.tokens ? (double)c.right / (double)c.tokens : (double)NAN}},
        .count = 4};
    return SIFR_OK;
}
