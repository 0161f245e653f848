/* Assertions: what a reader would otherwise have to believe, checked where it is used. */
#ifndef BASE_ASSERT_H
#define BASE_ASSERT_H

/* If `condition` does not hold, prints file, line and condition to standard error and aborts. This
 * is the one place where the library does either, in builds with SIFR_ASSERTS alone (presets debug,
 * asan and tsan; `make soak`). Elsewhere the condition is compiled and never evaluated, so it must
 * not have effects. It is about sifr's own code: what comes from outside is refused through
 * base_fail. */
#ifdef SIFR_ASSERTS
#define base_assert(condition)                                                                     \
    ((condition) ? (void)0 : base_assert_failed(__FILE__, __LINE__, #condition))

_Noreturn void base_assert_failed(const char *file, int line, const char *condition);
#else
#define base_assert(condition) ((void)(0 && (condition)))
#endif

#endif
