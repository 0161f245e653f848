/* Draws one step of a trace that `sifr train --trace` wrote, as text or as SVG, and says how much
 * of its time each queue was busy. Fails where a queue does two things at a time; a disk may. */
#include <jansson.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* By tid, as src/train/profile/trace_file.c numbers them. */
static const char *const queues[] = {"compute", "communication", "disk reads",  "copies in",
                                     "peer",    "near",          "disk writes", "copies out"};
enum { QUEUES = sizeof queues / sizeof *queues, READS = 2, DISK_WRITES = 6 };
enum { LABEL = 110, WIDTH = 1000, LANE = 20, GAP = 4, HEAD = 44, FOOT = 30 };

/* What the picture tells apart; the rest is "other". */
typedef struct kind {
    const char *categories; /* "a|b" */
    const char *name, *colour;
    char letter;
} kind;

static const kind kinds[] = {
    {"forward", "forward", "#4e79a7", 'f'},
    {"backward|add", "backward", "#76b7b2", 'b'},
    {"squares|update", "update", "#59a14f", 'u'},
    {"wait|count|norm", "waits for others", "#d8d3ce", '-'},
    {"start", "starts transfers", "#edc948", 's'},
    {"gather", "gather", "#f28e2b", 'g'},
    {"reduce", "reduce", "#e15759", 'r'},
    {"read", "read", "#b07aa1", 'i'},
    {"write", "write", "#ff9da7", 'w'},
    {"control", "control", "#9c755f", 'c'},
    {"", "other", "#bab0ac", 'o'},
};
enum { KINDS = sizeof kinds / sizeof *kinds, WAITS = 3, STARTS = 4 };

typedef struct span {
    double start, end; /* microseconds */
    int rank, queue, kind;
    char unit[40];
} span;

typedef struct picture {
    span *spans;
    size_t count;
    int ranks;
    bool has[QUEUES]; /* spans of any rank */
    long long step;
    double start, end;
} picture;

static int fail(const char *what, const char *detail) {
    fprintf(stderr, "trace_picture: %s%s%s\n", what, detail ? ": " : "", detail ? detail : "");
    return 1;
}

static int kind_of(const char *category) {
    size_t length = strlen(category);
    for (int k = 0; k < KINDS; k++) {
        const char *at = kinds[k].categories;
        while ((at = strstr(at, category))) {
            bool begins = at == kinds[k].categories || at[-1] == '|';
            if (length && begins && (at[length] == '|' || !at[length])) return k;
            at++;
        }
    }
    return KINDS - 1;
}

static const char *text_of(const json_t *object, const char *key) {
    const char *text = json_string_value(json_object_get(object, key));
    return text ? text : "";
}

static long long step_of(const json_t *event) {
    return (long long)json_integer_value(json_object_get(json_object_get(event, "args"), "step"));
}

/* By rank, queue and time. */
static int compare(const void *a, const void *b) {
    const span *x = a, *y = b;
    if (x->rank != y->rank) return x->rank - y->rank;
    if (x->queue != y->queue) return x->queue - y->queue;
    return x->start < y->start ? -1 : x->start > y->start;
}

/* The spans of step p->step; 0: of the last one. */
static int read_spans(const json_t *events, picture *p) {
    size_t index;
    long long last = 0;
    json_t *event;
    p->spans = calloc(json_array_size(events) + 1, sizeof *p->spans);
    if (!p->spans) return fail("out of memory", NULL);
    json_array_foreach((json_t *)(size_t)events, index, event) {
        int rank = (int)json_integer_value(json_object_get(event, "pid"));
        if (rank >= p->ranks) p->ranks = rank + 1;
        if (step_of(event) > last) last = step_of(event);
    }
    if (!p->step) p->step = last;
    json_array_foreach((json_t *)(size_t)events, index, event) {
        if (strcmp(text_of(event, "ph"), "X") != 0 || step_of(event) != p->step) continue;
        span s = {.start = json_number_value(json_object_get(event, "ts")),
                  .rank = (int)json_integer_value(json_object_get(event, "pid")),
                  .queue = (int)json_integer_value(json_object_get(event, "tid")),
                  .kind = kind_of(text_of(event, "cat"))};
        s.end = s.start + json_number_value(json_object_get(event, "dur"));
        if (strcmp(text_of(event, "cat"), "step") == 0) {
            if (p->end <= p->start || s.start < p->start) p->start = s.start;
            if (s.end > p->end) p->end = s.end;
            continue;
        }
        snprintf(s.unit, sizeof s.unit, "%s", text_of(json_object_get(event, "args"), "unit"));
        if (s.rank < 0 || s.queue < 0 || s.queue >= QUEUES)
            return fail("an event of no rank or queue", text_of(event, "name"));
        p->has[s.queue] = true;
        p->spans[p->count++] = s;
    }
    if (!p->count || p->end <= p->start) return fail("the trace has no such step", NULL);
    qsort(p->spans, p->count, sizeof *p->spans, compare);
    for (size_t i = 1; i < p->count; i++) {
        const span *before = &p->spans[i - 1], *now = &p->spans[i];
        bool disk = now->queue == READS || now->queue == DISK_WRITES;
        if (!disk && now->rank == before->rank && now->queue == before->queue &&
            now->start < before->end - 0.002)
            return fail("a queue does two things at a time", now->unit);
    }
    return 0;
}

/* The kind that takes most of start … end, or -1 where nothing is done. */
static int most_of(const picture *p, int rank, int queue, double start, double end) {
    double time[KINDS] = {0}, most = 0;
    int best = -1;
    for (size_t i = 0; i < p->count; i++) {
        const span *s = &p->spans[i];
        if (s->rank != rank || s->queue != queue || s->end <= start || s->start >= end) continue;
        double from = s->start > start ? s->start : start, to = s->end < end ? s->end : end;
        time[s->kind] += to - from;
        if (time[s->kind] > most) most = time[s->kind], best = s->kind;
    }
    return best;
}

/* Spans of a disk that are side by side count once. */
static void say_busy(const picture *p) {
    static const char *const words[QUEUES] = {
        [1] = "communicates",       [2] = "reads the disk", [3] = "copies in",
        [4] = "sends and receives", [5] = "sums nearby",    [6] = "writes the disk",
        [7] = "copies out"};
    for (int rank = 0; rank < p->ranks; rank++) {
        double time[QUEUES] = {0}, seen[QUEUES] = {0}, waits = 0, starts = 0;
        double all = (p->end - p->start) / 100;
        for (size_t i = 0; i < p->count; i++) {
            const span *s = &p->spans[i];
            if (s->rank != rank) continue;
            double *sum = s->kind == WAITS ? &waits : s->kind == STARTS ? &starts : &time[s->queue];
            double from = s->start > seen[s->queue] ? s->start : seen[s->queue];
            if (s->end <= from) continue;
            *sum += s->end - from;
            seen[s->queue] = s->end;
        }
        printf("rank %d: computes %.1f %% of the step, waits %.1f %%, starts transfers %.1f %%;",
               rank, time[0] / all, waits / all, starts / all);
        for (int queue = 1; queue < QUEUES; queue++)
            if (queue == 1 || p->has[queue])
                printf("%s %s %.1f %%", queue > 1 ? "," : "", words[queue], time[queue] / all);
        putchar('\n');
    }
}

/* The first two are always there. */
static bool is_drawn(const picture *p, int queue) {
    return queue < 2 || p->has[queue];
}

static void draw_text(const picture *p, int width) {
    printf("step %lld, %.3f ms\n", p->step, (p->end - p->start) / 1e3);
    double cell = (p->end - p->start) / width;
    for (int rank = 0; rank < p->ranks; rank++) {
        for (int queue = 0; queue < QUEUES; queue++) {
            if (!is_drawn(p, queue)) continue;
            printf("rank %-3d %-13s |", rank, queues[queue]);
            for (int x = 0; x < width; x++) {
                int best = most_of(p, rank, queue, p->start + x * cell, p->start + (x + 1) * cell);
                putchar(best < 0 ? ' ' : kinds[best].letter);
            }
            puts("|");
        }
    }
    bool moves = false;
    for (int queue = 2; queue < QUEUES; queue++) moves |= p->has[queue];
    for (int k = 0; k < KINDS; k++) {
        if (!moves && (kinds[k].letter == 'i' || kinds[k].letter == 'w')) continue;
        printf("%s%c %s", k ? ", " : "", kinds[k].letter, kinds[k].name);
    }
    putchar('\n');
    say_busy(p);
}

/* Names of units are letters, digits and points; anything else must not end up as markup. */
static const char *plain(const char *text) {
    return strpbrk(text, "<>&\"") ? "" : text;
}

/* Spans of one kind and unit that follow each other are one box. */
static void draw_queue(const picture *p, int rank, int queue, double y) {
    double scale = (double)(WIDTH - LABEL - 10) / (p->end - p->start);
    for (size_t i = 0; i < p->count; i++) {
        const span *s = &p->spans[i];
        if (s->rank != rank || s->queue != queue) continue;
        double end = s->end;
        while (i + 1 < p->count && p->spans[i + 1].rank == rank && p->spans[i + 1].queue == queue &&
               p->spans[i + 1].kind == s->kind && strcmp(p->spans[i + 1].unit, s->unit) == 0 &&
               (p->spans[i + 1].start - end) * scale < 0.3)
            end = p->spans[++i].end;
        double x = LABEL + (s->start - p->start) * scale, width = (end - s->start) * scale;
        if (width < 0.1) continue;
        printf("<rect x=\"%.1f\" y=\"%.0f\" width=\"%.1f\" height=\"%d\" fill=\"%s\">"
               "<title>%s %s, %.3f ms</title></rect>\n",
               x, y, width, LANE, kinds[s->kind].colour, kinds[s->kind].name, plain(s->unit),
               (end - s->start) / 1e3);
        if (s->unit[0] && s->kind != WAITS && width > 6.5 * (double)strlen(s->unit))
            printf("<text x=\"%.1f\" y=\"%.0f\" text-anchor=\"middle\" fill=\"#fff\" "
                   "font-size=\"10\">%s</text>\n",
                   x + width / 2, y + LANE - 6, plain(s->unit));
    }
}

static void draw_svg(const picture *p) {
    int lanes = 0;
    for (int queue = 0; queue < QUEUES; queue++) lanes += is_drawn(p, queue);
    int height = HEAD + p->ranks * (lanes * (LANE + GAP) + 2 * GAP) + FOOT;
    printf("<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %d %d\" "
           "font-family=\"sans-serif\" font-size=\"12\">\n"
           "<rect width=\"%d\" height=\"%d\" fill=\"#fff\"/>\n",
           WIDTH, height, WIDTH, height);
    double x = LABEL;
    for (int k = 0; k < KINDS - 1; k++) {
        if (lanes == 2 && (kinds[k].letter == 'i' || kinds[k].letter == 'w')) continue;
        printf("<rect x=\"%.0f\" y=\"12\" width=\"12\" height=\"12\" fill=\"%s\"/>"
               "<text x=\"%.0f\" y=\"22\">%s</text>\n",
               x, kinds[k].colour, x + 16, kinds[k].name);
        x += 34 + 7 * (double)strlen(kinds[k].name);
    }
    double y = HEAD;
    for (int rank = 0; rank < p->ranks; rank++, y += 2 * GAP) {
        for (int queue = 0; queue < QUEUES; queue++) {
            if (!is_drawn(p, queue)) continue;
            printf("<text x=\"4\" y=\"%.0f\">%d %s</text>\n", y + LANE - 5, rank, queues[queue]);
            draw_queue(p, rank, queue, y);
            y += LANE + GAP;
        }
    }
    printf("<text x=\"%d\" y=\"%.0f\">0</text><text x=\"%d\" y=\"%.0f\" text-anchor=\"end\">%.2f ms"
           "</text>\n</svg>\n",
           LABEL, y + 14, WIDTH - 10, y + 14, (p->end - p->start) / 1e3);
}

int main(int argc, char **argv) {
    picture p = {0};
    bool svg = false;
    const char *path = NULL;
    json_error_t where;
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--svg") == 0)
            svg = true;
        else if (strcmp(argv[i], "--step") == 0 && i + 1 < argc)
            p.step = atoll(argv[++i]);
        else if (argv[i][0] != '-' && !path)
            path = argv[i];
        else
            path = NULL, i = argc;
    }
    if (!path) return fail("usage: trace_picture [--svg] [--step N] FILE", NULL) + 1;
    json_t *file = json_load_file(path, JSON_REJECT_DUPLICATES, &where);
    if (!file) return fail(path, where.text);
    int code = read_spans(json_object_get(file, "traceEvents"), &p);
    if (code == 0 && svg)
        draw_svg(&p);
    else if (code == 0)
        draw_text(&p, 100);
    free(p.spans);
    json_decref(file);
    return code;
}
