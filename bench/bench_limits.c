/* What this machine can do at most, without any of sifr's code:
 *
 *     bench_limits [operations] [memory] [processes] [MIB]     (all three where none is named)
 *     bench_limits triad                                       (of memory's that by all threads)
 *
 * operations: loops that multiply and add in registers, in the widest instructions that the
 * processor has, by 1 thread and by all. memory: read, copy and triad (a = b + s c) over arrays
 * beyond all caches, with ordinary and with streaming stores. processes: 1 and 2 of them, each
 * copying a buffer of its own. MIB: of each array, 192 where it is not given. The best of several
 * runs; one JSON object.
 *
 *     bench_limits watch
 *
 * beside another program: what the processors give it at the time. Ten times a second a thread on
 * each core multiplies and adds for less than 1 ms; its rate is that of its processor time, so that
 * the other program's turns do not count, while a neighbour on the same core does. A line each:
 * seconds of the monotonic clock, core, fp32 GFLOP/s; until it is ended. */
#include <pthread.h>
#include <sched.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

enum { MOST_THREADS = 256, RUNS = 5, CHAINS = 12 };

typedef struct limit_work limit_work;
typedef void (*limit_loop)(const limit_work *work);

struct limit_work {
    limit_loop loop;
    int64_t rounds; /* of a loop in registers */
    limit_loop watched;
    double operations; /* of a round of it */
    float *a, *b, *c;  /* this thread's part */
    int64_t count;
    pthread_barrier_t *start;
    double begun, ended;
    int core;
};

static int64_t array_bytes = (int64_t)192 << 20; /* of each of the three */
static volatile float sink;

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* --- loops: as many independent sums as hide the latency of two multiply-add units --- */

static void add_plain(const limit_work *w) {
    float sums[CHAINS] = {0}, a = 1.0f, b = 0x1p-20f;
    for (int64_t r = 0; r < w->rounds; r++)
        for (int i = 0; i < CHAINS; i++) {
            sums[i] += a * b;
            __asm__ volatile("" : "+m"(sums[i]));
        }
    sink = sums[0];
}

static void read_plain(const limit_work *w) {
    float sums[16] = {0};
    for (int64_t i = 0; i + 16 <= w->count; i += 16)
        for (int j = 0; j < 16; j++) sums[j] += w->b[i + j];
    for (int j = 0; j < 16; j++) sink = sums[j];
}

static void copy_plain(const limit_work *w) {
    memcpy(w->a, w->b, (size_t)w->count * sizeof(float));
}

static void triad_plain(const limit_work *w) {
    for (int64_t i = 0; i < w->count; i++) w->a[i] = w->b[i] + 0.5f * w->c[i];
}

#if defined(__x86_64__)
#define CHAIN(INSTRUCTION, WIDE, N) INSTRUCTION " %%" WIDE "14,%%" WIDE "15,%%" WIDE #N "\n"
#define LOOP(NAME, INSTRUCTION, WIDE)                                                              \
    static void NAME(const limit_work *w) {                                                        \
        for (int64_t r = 0; r < w->rounds; r++)                                                    \
            __asm__ volatile(                                                                      \
                CHAIN(INSTRUCTION, WIDE, 0) CHAIN(INSTRUCTION, WIDE, 1)                            \
                    CHAIN(INSTRUCTION, WIDE, 2) CHAIN(INSTRUCTION, WIDE, 3)                        \
                        CHAIN(INSTRUCTION, WIDE, 4) CHAIN(INSTRUCTION, WIDE, 5)                    \
                            CHAIN(INSTRUCTION, WIDE, 6) CHAIN(INSTRUCTION, WIDE, 7)                \
                                CHAIN(INSTRUCTION, WIDE, 8) CHAIN(INSTRUCTION, WIDE, 9)            \
                                    CHAIN(INSTRUCTION, WIDE, 10) CHAIN(INSTRUCTION, WIDE, 11)      \
                :                                                                                  \
                :                                                                                  \
                : "xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm7", "xmm8", "xmm9",  \
                  "xmm10", "xmm11");                                                               \
    }
LOOP(add_avx2, "vfmadd231ps", "ymm")
LOOP(add_avx512, "vfmadd231ps", "zmm")
LOOP(dot_bf16, "vdpbf16ps", "zmm")

/* Streaming stores do not read what they overwrite. */
__attribute__((target("avx2,fma"))) static void triad_stream_avx2(const limit_work *w) {
    __m256 s = _mm256_set1_ps(0.5f);
    for (int64_t i = 0; i + 8 <= w->count; i += 8)
        _mm256_stream_ps(w->a + i,
                         _mm256_fmadd_ps(_mm256_load_ps(w->c + i), s, _mm256_load_ps(w->b + i)));
    _mm_sfence();
}

__attribute__((target("avx2"))) static void copy_stream_avx2(const limit_work *w) {
    for (int64_t i = 0; i + 8 <= w->count; i += 8)
        _mm256_stream_ps(w->a + i, _mm256_load_ps(w->b + i));
    _mm_sfence();
}

__attribute__((target("avx512f"))) static void triad_stream_avx512(const limit_work *w) {
    __m512 s = _mm512_set1_ps(0.5f);
    for (int64_t i = 0; i + 16 <= w->count; i += 16)
        _mm512_stream_ps(w->a + i,
                         _mm512_fmadd_ps(_mm512_load_ps(w->c + i), s, _mm512_load_ps(w->b + i)));
    _mm_sfence();
}

__attribute__((target("avx512f"))) static void copy_stream_avx512(const limit_work *w) {
    for (int64_t i = 0; i + 16 <= w->count; i += 16)
        _mm512_stream_ps(w->a + i, _mm512_load_ps(w->b + i));
    _mm_sfence();
}
#endif

typedef struct limit_set {
    const char *fp32_instruction, *bf16_instruction; /* the latter NULL: not there */
    limit_loop add, dot, triad_stream, copy_stream;  /* the last three may be NULL */
    double add_operations, dot_operations;           /* of a round */
} limit_set;

static limit_set choose_set(void) {
#if defined(__x86_64__)
    __builtin_cpu_init();
    if (__builtin_cpu_supports("avx512f")) {
        bool bf16 = __builtin_cpu_supports("avx512bf16");
        return (limit_set){"vfmadd231ps, 512 bits",
                           bf16 ? "vdpbf16ps, 512 bits" : NULL,
                           add_avx512,
                           bf16 ? dot_bf16 : NULL,
                           triad_stream_avx512,
                           copy_stream_avx512,
                           CHAINS * 32,
                           CHAINS * 64};
    }
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))
        return (limit_set){"vfmadd231ps, 256 bits", NULL,        add_avx2, NULL, triad_stream_avx2,
                           copy_stream_avx2,        CHAINS * 16, 0};
#endif
    return (limit_set){"compiled C", NULL, add_plain, NULL, NULL, NULL, CHAINS * 2, 0};
}

/* --- threads, each on a core of its own --- */

static int find_cores(int cores[MOST_THREADS]) {
    cpu_set_t allowed;
    int count = 0;
    if (sched_getaffinity(0, sizeof allowed, &allowed) != 0) return 0;
    for (int c = 0; c < CPU_SETSIZE && count < MOST_THREADS; c++)
        if (CPU_ISSET(c, &allowed)) cores[count++] = c;
    return count;
}

static void settle(int core) {
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(core, &one);
    sched_setaffinity(0, sizeof one, &one);
}

static void *run_thread(void *argument) {
    limit_work *work = argument;
    settle(work->core);
    pthread_barrier_wait(work->start);
    work->begun = now();
    work->loop(work);
    work->ended = now();
    return NULL;
}

/* Seconds from the first one's begin to the last one's end. */
static double run_once(limit_work *work, int threads) {
    pthread_t thread[MOST_THREADS];
    pthread_barrier_t start;
    double begun = 1e300, ended = 0;
    pthread_barrier_init(&start, NULL, (unsigned)threads);
    for (int t = 0; t < threads; t++) {
        work[t].start = &start;
        if (pthread_create(&thread[t], NULL, run_thread, &work[t]) != 0) exit(1);
    }
    for (int t = 0; t < threads; t++) {
        pthread_join(thread[t], NULL);
        if (work[t].begun < begun) begun = work[t].begun;
        if (work[t].ended > ended) ended = work[t].ended;
    }
    pthread_barrier_destroy(&start);
    return ended - begun;
}

static double best_of(limit_work *work, int threads) {
    double best = 1e300;
    for (int run = 0; run < RUNS; run++) {
        double seconds = run_once(work, threads);
        if (seconds < best) best = seconds;
    }
    return best;
}

static double operations_of(limit_loop loop, double operations, const int *cores, int threads) {
    limit_work work[MOST_THREADS] = {0};
    if (!loop) return 0;
    for (int t = 0; t < threads; t++)
        work[t] = (limit_work){.loop = loop, .rounds = 4000000, .core = cores[t]};
    return operations * 4e6 * threads / best_of(work, threads);
}

static void print_operations(const limit_set *set, const int *cores, int threads) {
    printf(" \"fp32_instruction\": \"%s\", \"bf16_instruction\": \"%s\",\n", set->fp32_instruction,
           set->bf16_instruction ? set->bf16_instruction : "none");
    for (int all = 0; all < 2; all++) {
        int n = all ? threads : 1;
        const char *who = all ? "all" : "one";
        double fp32 = operations_of(set->add, set->add_operations, cores, n);
        double bf16 = operations_of(set->dot, set->dot_operations, cores, n);
        /* Without instructions for it, a product of bf16 numbers is one of fp32 numbers. */
        printf(" \"fp32_gflops_%s\": %.1f, \"bf16_gflops_%s\": %.1f,\n", who, fp32 / 1e9, who,
               (bf16 > 0 ? bf16 : fp32) / 1e9);
    }
}

static void *take(int64_t bytes, int flags) {
    void *block = mmap(NULL, (size_t)bytes, PROT_READ | PROT_WRITE, MAP_ANONYMOUS | flags, -1, 0);
    if (block == MAP_FAILED) {
        fprintf(stderr, "bench_limits: out of memory\n");
        exit(3);
    }
    madvise(block, (size_t)bytes, MADV_HUGEPAGE);
    return block;
}

/* GB a second of `arrays` arrays. */
static double bandwidth_of(limit_loop loop, int arrays, float *const *memory, const int *cores,
                           int threads) {
    limit_work work[MOST_THREADS] = {0};
    int64_t part = array_bytes / (int64_t)sizeof(float) / threads / 16 * 16;
    if (!loop) return 0;
    for (int t = 0; t < threads; t++)
        work[t] = (limit_work){.loop = loop,
                               .a = memory[0] + t * part,
                               .b = memory[1] + t * part,
                               .c = memory[2] + t * part,
                               .count = part,
                               .core = cores[t]};
    return arrays * (double)part * threads * sizeof(float) / best_of(work, threads) / 1e9;
}

static void print_triads(const limit_set *set, float *const *memory, const int *cores, int threads,
                         const char *who) {
    printf(" \"triad_gbytes_%s\": %.1f, \"triad_stream_gbytes_%s\": %.1f,\n", who,
           bandwidth_of(triad_plain, 3, memory, cores, threads), who,
           bandwidth_of(set->triad_stream, 3, memory, cores, threads));
}

static void print_memory(const limit_set *set, const int *cores, int threads, bool triad_alone) {
    /* A little more than their length apart: two that a multiple of 128 MiB lies between meet on
     * the same banks of memory. */
    int64_t each = array_bytes + (17 << 10);
    char *block = take(3 * each, MAP_PRIVATE);
    memset(block, 0, (size_t)(3 * each));
    float *memory[3];
    for (int i = 0; i < 3; i++) memory[i] = (float *)(void *)(block + i * each);
    for (int all = triad_alone; all < 2; all++) {
        int n = all ? threads : 1;
        const char *who = all ? "all" : "one";
        if (!triad_alone)
            printf(" \"read_gbytes_%s\": %.1f, \"copy_gbytes_%s\": %.1f, "
                   "\"copy_stream_gbytes_%s\": %.1f,\n",
                   who, bandwidth_of(read_plain, 1, memory, cores, n), who,
                   bandwidth_of(copy_plain, 2, memory, cores, n), who,
                   bandwidth_of(set->copy_stream, 2, memory, cores, n));
        print_triads(set, memory, cores, n, who);
    }
    munmap(block, (size_t)(3 * each));
}

/* GB a second of one buffer, counted once, that each of `count` processes copies at a time. */
static double copies_by(int count, const int *cores, int threads) {
    typedef struct copies {
        pthread_barrier_t start;
        double begun[2][RUNS], ended[2][RUNS];
    } copies;
    copies *shared = take(sizeof *shared, MAP_SHARED);
    pthread_barrierattr_t between;
    pthread_barrierattr_init(&between);
    pthread_barrierattr_setpshared(&between, PTHREAD_PROCESS_SHARED);
    pthread_barrier_init(&shared->start, &between, (unsigned)count);
    fflush(stdout);
    for (int p = 0; p < count; p++) {
        if (fork() != 0) continue;
        char *from = take(array_bytes, MAP_PRIVATE), *to = take(array_bytes, MAP_PRIVATE);
        settle(cores[p % threads]);
        memset(from, 1, (size_t)array_bytes);
        memset(to, 1, (size_t)array_bytes);
        for (int run = 0; run < RUNS; run++) {
            pthread_barrier_wait(&shared->start);
            shared->begun[p][run] = now();
            memcpy(to, from, (size_t)array_bytes);
            shared->ended[p][run] = now();
        }
        sink = (float)to[1234];
        _exit(0);
    }
    while (wait(NULL) > 0) continue;
    double best = 1e300;
    for (int run = 0; run < RUNS; run++) {
        double begun = shared->begun[0][run], ended = shared->ended[0][run];
        for (int p = 1; p < count; p++) {
            if (shared->begun[p][run] < begun) begun = shared->begun[p][run];
            if (shared->ended[p][run] > ended) ended = shared->ended[p][run];
        }
        if (ended - begun < best) best = ended - begun;
    }
    munmap(shared, sizeof *shared);
    return (double)array_bytes / best / 1e9;
}

/* --- beside another program --- */

static double processor_time(void) {
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void watch_core(const limit_work *w) {
    const double wanted = 0.4e-3;
    limit_work warming = {.rounds = 1000}, piece = {.rounds = 1000};
    for (;;) {
        struct timespec pause = {.tv_nsec = 100 * 1000 * 1000};
        nanosleep(&pause, NULL);
        w->watched(&warming); /* a core takes some time to give its full width */
        double begun = processor_time();
        w->watched(&piece);
        double took = processor_time() - begun;
        printf("%.3f %d %.1f\n", now(), w->core, w->operations * (double)piece.rounds / took / 1e9);
        fflush(stdout);
        if (took < wanted / 2) piece.rounds *= 2, warming.rounds = piece.rounds / 4;
    }
}

static void watch(const limit_set *set, const int *cores, int threads) {
    limit_work work[MOST_THREADS] = {0};
    for (int t = 0; t < threads; t++)
        work[t] = (limit_work){.loop = watch_core,
                               .watched = set->add,
                               .operations = set->add_operations,
                               .core = cores[t]};
    run_once(work, threads);
}

/* True where the part is named, or none is. */
static bool wanted(int argc, char **argv, const char *part) {
    bool named = false;
    for (int i = 1; i < argc; i++) {
        if (!strcmp(argv[i], part)) return true;
        named |= atoi(argv[i]) <= 0;
    }
    return !named;
}

int main(int argc, char **argv) {
    int cores[MOST_THREADS];
    int threads = find_cores(cores);
    if (threads < 1) return 1;
    for (int i = 1; i < argc; i++)
        if (atoi(argv[i]) > 0) array_bytes = (int64_t)atoi(argv[i]) << 20;
    limit_set set = choose_set();
    if (argc > 1 && !strcmp(argv[1], "watch")) watch(&set, cores, threads);
    printf("{");
    if (wanted(argc, argv, "operations")) print_operations(&set, cores, threads);
    bool triad = argc > 1 && !strcmp(argv[1], "triad");
    if (triad || wanted(argc, argv, "memory")) print_memory(&set, cores, threads, triad);
    if (wanted(argc, argv, "processes")) {
        printf(" \"copies_gbytes_by_1\": %.1f,", copies_by(1, cores, threads));
        printf(" \"copies_gbytes_by_2\": %.1f,\n", copies_by(2, cores, threads));
    }
    printf(" \"cores\": %d}\n", threads);
    return 0;
}
